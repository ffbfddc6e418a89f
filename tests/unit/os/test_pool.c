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

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_item_once),
                                       cmocka_unit_test(test_arguments)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
