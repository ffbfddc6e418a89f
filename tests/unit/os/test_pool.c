/* os/pool: every item is run once, whatever the grain and the number of workers; loops may follow each other
 * at once or after the workers fell asleep. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "os/pool.h"

#define MAX_ITEMS 5000

typedef struct counts {
    int n_threads;
    atomic_int seen[MAX_ITEMS];
} counts;

static void count(void *ctx, size_t begin, size_t end, int worker)
{
    counts *c = ctx;
    assert_true(worker >= 0 && worker < c->n_threads);
    for (size_t i = begin; i < end; i++) {
        atomic_fetch_add(&c->seen[i], 1);
    }
}

static void test_every_item_once(void **state)
{
    (void)state;
    static counts c;
    for (int threads = 1; threads <= 8; threads += threads < 3 ? 1 : 5) {
        gn_os_pool *pool = NULL;
        assert_int_equal(gn_os_pool_create(threads, &pool), GN_OK);
        assert_int_equal(gn_os_pool_threads(pool), threads);
        c.n_threads = threads;
        for (int round = 0; round < 300; round++) {
            size_t n = (size_t)(round * 37 % MAX_ITEMS);
            memset(c.seen, 0, sizeof c.seen);
            gn_os_pool_run(pool, n, (size_t)(1 + round % 13), count, &c);
            for (size_t i = 0; i < MAX_ITEMS; i++) {
                assert_int_equal(atomic_load(&c.seen[i]), i < n);
            }
            if (round % 100 == 50) {
                struct timespec pause = {0, 20 * 1000 * 1000};
                (void)nanosleep(&pause, NULL);
            }
        }
        gn_os_pool_destroy(pool);
    }
    assert_int_equal(gn_alloc_live(), 0);
}

static void test_arguments(void **state)
{
    (void)state;
    gn_os_pool *pool = NULL;
    assert_int_equal(gn_os_pool_create(0, &pool), GN_E_ARG);
    assert_int_equal(gn_os_pool_create(1025, &pool), GN_E_ARG);
    assert_int_equal(gn_os_pool_threads(NULL), 1);
    assert_true(gn_os_cpu_count() >= 1);
    gn_os_pool_destroy(NULL);
}

static void nap(void)
{
    struct timespec pause = {0, 20 * 1000 * 1000};
    (void)nanosleep(&pause, NULL);
}

/* The number of threads in use changes between loops, up and down; those not in use get nothing. */
static void test_use(void **state)
{
    (void)state;
    static counts c;
    gn_os_pool *pool = NULL;
    assert_int_equal(gn_os_pool_create(6, &pool), GN_OK);
    for (int round = 0; round < 200; round++) {
        c.n_threads = 1 + round * 5 % 6;
        gn_os_pool_use(pool, c.n_threads);
        for (int again = 0; again < 3; again++) {
            memset(c.seen, 0, sizeof c.seen);
            gn_os_pool_run(pool, MAX_ITEMS, 7, count, &c);
            for (size_t i = 0; i < MAX_ITEMS; i++) {
                assert_int_equal(atomic_load(&c.seen[i]), 1);
            }
        }
        if (round % 50 == 20) {
            nap();
        }
    }
    gn_os_pool_use(pool, 100);
    c.n_threads = 6;
    memset(c.seen, 0, sizeof c.seen);
    gn_os_pool_run(pool, 100, 1, count, &c);
    assert_int_equal(atomic_load(&c.seen[99]), 1);
    gn_os_pool_destroy(pool);
    assert_int_equal(gn_alloc_live(), 0);
}

typedef struct slow {
    size_t slow_item;
    atomic_int done;
} slow;

/* The slow item waits for all others, and a little longer. */
static void wait_in_one(void *ctx, size_t begin, size_t end, int worker)
{
    slow *s = ctx;
    (void)worker;
    for (size_t i = begin; i < end; i++) {
        while (i == s->slow_item && atomic_load(&s->done) < 99) {
            nap();
        }
        atomic_fetch_add(&s->done, 1);
    }
}

/* A thread that is held up in the first chunk of its lane loses the others to the one that is free,
 * whichever of the two it is: the loop would never end else. The caller waits asleep for the last. */
static void test_stealing(void **state)
{
    (void)state;
    gn_os_pool *pool = NULL;
    assert_int_equal(gn_os_pool_create(2, &pool), GN_OK);
    for (int round = 0; round < 20; round++) {
        slow s = {.slow_item = round % 2 == 0 ? 0 : 50};
        gn_os_pool_run(pool, 100, 1, wait_in_one, &s);
        assert_int_equal(atomic_load(&s.done), 100);
    }
    gn_os_pool_destroy(pool);
}

typedef struct nest {
    gn_os_pool *pool;
    counts *inner;
    atomic_int loops;
} nest;

static void count_as(void *ctx, size_t begin, size_t end, int worker)
{
    (void)worker;
    for (size_t i = begin; i < end; i++) {
        atomic_fetch_add((atomic_int *)ctx + i, 1);
    }
}

static void start_inner(void *ctx, size_t begin, size_t end, int worker)
{
    nest *n = ctx;
    (void)worker;
    for (size_t i = begin; i < end; i++) {
        gn_os_pool_run(n->pool, MAX_ITEMS, 1, count_as, n->inner->seen);
        atomic_fetch_add(&n->loops, 1);
    }
}

/* A loop started inside a loop of the same pool runs whole on the thread that started it. */
static void test_nesting(void **state)
{
    (void)state;
    static counts inner;
    nest n = {.inner = &inner};
    memset(inner.seen, 0, sizeof inner.seen);
    assert_int_equal(gn_os_pool_create(3, &n.pool), GN_OK);
    gn_os_pool_run(n.pool, 40, 1, start_inner, &n);
    assert_int_equal(atomic_load(&n.loops), 40);
    for (size_t i = 0; i < MAX_ITEMS; i++) {
        assert_int_equal(atomic_load(&inner.seen[i]), 40);
    }
    gn_os_pool_destroy(n.pool);
}

/* Destroyed while its workers sleep, or before they have looked at anything. */
static void test_destroy(void **state)
{
    (void)state;
    for (int round = 0; round < 40; round++) {
        gn_os_pool *pool = NULL;
        assert_int_equal(gn_os_pool_create(4, &pool), GN_OK);
        gn_os_pool_use(pool, 1 + round % 4);
        if (round % 4 == 1) {
            nap();
        }
        gn_os_pool_destroy(pool);
    }
    assert_int_equal(gn_alloc_live(), 0);
}

/* More chunks than a lane can number. */
static void test_many_chunks(void **state)
{
    (void)state;
    size_t n = 300000;
    atomic_int *seen = calloc(n, sizeof *seen);
    assert_non_null(seen);
    gn_os_pool *pool = NULL;
    assert_int_equal(gn_os_pool_create(2, &pool), GN_OK);
    gn_os_pool_run(pool, n, 1, count_as, seen);
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(atomic_load(&seen[i]), 1);
    }
    gn_os_pool_destroy(pool);
    free(seen);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_item_once), cmocka_unit_test(test_use),
        cmocka_unit_test(test_stealing),        cmocka_unit_test(test_nesting),
        cmocka_unit_test(test_destroy),         cmocka_unit_test(test_many_chunks),
        cmocka_unit_test(test_arguments)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
