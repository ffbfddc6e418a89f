/* kv/: pages are taken and given back exactly, limits hold, a failed call changes nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "kv/table.h"

static const gn_kv_shape shape = {.n_layer = 3, .n_head_kv = 2, .head_dim = 16, .type = GN_KV_F16};

static void test_layout(void **state)
{
    (void)state;
    size_t rows = (size_t)GN_KV_PAGE_TOK * 16 * 2;
    assert_int_equal(gn_kv_page_bytes(&shape), 3 * 2 * 2 * rows);
    gn_kv_pool *pool = NULL;
    assert_int_equal(gn_kv_pool_create(&shape, 1 << 20, &pool), GN_OK);
    uint32_t page;
    assert_int_equal(gn_kv_take(pool, 1, &page), GN_OK);
    unsigned char *base = gn_kv_block(pool, page, 0, 0, 0);
    assert_int_equal((uintptr_t)base % 64, 0);
    size_t index = 0;
    for (uint32_t layer = 0; layer < 3; layer++) {
        for (uint32_t value = 0; value < 2; value++) {
            for (uint32_t head = 0; head < 2; head++) {
                assert_ptr_equal(gn_kv_block(pool, page, layer, value, head),
                                 base + index++ * rows);
            }
        }
    }
    gn_kv_give(pool, 1, &page);
    gn_kv_pool_destroy(pool);
}

static void test_limits(void **state)
{
    (void)state;
    gn_kv_pool *pool = NULL;
    assert_int_equal(gn_kv_pool_create(&shape, gn_kv_page_bytes(&shape) - 1, &pool), GN_E_ARG);
    gn_kv_shape huge = {.n_layer = 1024, .n_head_kv = 1u << 31, .head_dim = 1u << 31};
    assert_int_equal(gn_kv_pool_create(&huge, UINT64_MAX, &pool), GN_E_ARG);
    assert_int_equal(gn_kv_pool_create(&shape, 5 * gn_kv_page_bytes(&shape), &pool), GN_OK);
    assert_int_equal(gn_kv_pool_capacity(pool), 5);
    gn_kv_table a;
    gn_kv_table b;
    gn_kv_table_init(&a, pool);
    gn_kv_table_init(&b, pool);
    assert_int_equal(gn_kv_table_reserve(&a, 3 * GN_KV_PAGE_TOK), GN_OK);
    assert_int_equal(gn_kv_table_reserve(&b, 2 * GN_KV_PAGE_TOK + 1), GN_E_NO_PAGES);
    assert_int_equal(b.n_pages, 0);
    assert_int_equal(gn_kv_pool_in_use(pool), 3);
    assert_int_equal(gn_kv_table_reserve(&b, 2 * GN_KV_PAGE_TOK), GN_OK);
    a.n_tok = 3 * GN_KV_PAGE_TOK;
    gn_kv_table_truncate(&a, GN_KV_PAGE_TOK + 1);
    assert_int_equal(a.n_pages, 2);
    assert_int_equal(a.n_tok, GN_KV_PAGE_TOK + 1);
    gn_kv_table_truncate(&a, 0);
    assert_int_equal(gn_kv_pool_in_use(pool), 2);
    gn_kv_table_fini(&a);
    gn_kv_table_fini(&b);
    gn_kv_pool_destroy(pool);
}

/* A random walk of reserve and truncate over many tables: no page is ever owned twice. */
static void test_random_walk(void **state)
{
    (void)state;
    enum { TABLES = 7 };
    gn_kv_pool *pool = NULL;
    assert_int_equal(gn_kv_pool_create(&shape, 40 * gn_kv_page_bytes(&shape), &pool), GN_OK);
    gn_kv_pool_shuffle(pool, 42);
    gn_kv_table tables[TABLES];
    for (int i = 0; i < TABLES; i++) {
        gn_kv_table_init(&tables[i], pool);
    }
    srand(7);
    for (int step = 0; step < 5000; step++) {
        gn_kv_table *t = &tables[rand() % TABLES];
        uint32_t n = (uint32_t)(rand() % (12 * (int)GN_KV_PAGE_TOK));
        if (n > t->n_tok) {
            if (gn_kv_table_reserve(t, n) == GN_OK) {
                t->n_tok = n;
            }
        } else {
            gn_kv_table_truncate(t, n);
        }
        bool owned[40] = {false};
        uint32_t total = 0;
        for (int i = 0; i < TABLES; i++) {
            for (uint32_t p = 0; p < tables[i].n_pages; p++) {
                assert_true(tables[i].pages[p] < 40);
                assert_false(owned[tables[i].pages[p]]);
                owned[tables[i].pages[p]] = true;
                total++;
            }
        }
        assert_int_equal(total, gn_kv_pool_in_use(pool));
    }
    for (int i = 0; i < TABLES; i++) {
        gn_kv_table_fini(&tables[i]);
    }
    gn_kv_pool_destroy(pool);
    assert_int_equal(gn_alloc_live(), 0);
}

/* Layers 0 and 2 have a window of 100 tokens. */
static const bool windowed[] = {true, false, true};
static const gn_kv_shape mixed = {.n_layer = 3,
                                  .n_head_kv = 2,
                                  .head_dim = 16,
                                  .type = GN_KV_F16,
                                  .n_window = 100,
                                  .windowed = windowed};

static void test_parts(void **state)
{
    (void)state;
    size_t block = (size_t)GN_KV_PAGE_TOK * 16 * 2;
    assert_int_equal(gn_kv_page_bytes(&mixed), 3 * 4 * block);
    assert_int_equal(gn_kv_window_bytes(&mixed), 2 * 4 * block);
    gn_kv_pool *pool = NULL;
    assert_int_equal(gn_kv_pool_create(&mixed, 2 * gn_kv_page_bytes(&mixed), &pool), GN_OK);
    uint32_t ids[6];
    assert_int_equal(gn_kv_take(pool, 2, ids), GN_OK);
    assert_int_equal(gn_kv_pool_bytes_in_use(pool), 2 * 4 * block);
    assert_false(gn_kv_is_whole(pool, ids[0]));
    assert_int_equal(gn_kv_window_take(pool, 2, ids), GN_OK);
    assert_int_equal(gn_kv_window_take(pool, 2, ids), GN_OK); /* nothing is missing */
    assert_true(gn_kv_is_whole(pool, ids[0]) && gn_kv_is_whole(pool, ids[1]));
    assert_int_equal(gn_kv_pool_bytes_in_use(pool), 2 * 3 * 4 * block);
    unsigned char *near = gn_kv_block(pool, ids[0], 0, 0, 0);
    assert_ptr_equal(gn_kv_block(pool, ids[0], 2, 1, 1), near + 7 * block);
    unsigned char *far = gn_kv_block(pool, ids[0], 1, 0, 0);
    assert_ptr_equal(gn_kv_block(pool, ids[0], 1, 1, 0), far + 2 * block);

    /* A part that is given back makes room for two of the other kind, and they for it. */
    assert_int_equal(gn_kv_take(pool, 1, ids + 2), GN_E_NO_PAGES);
    gn_kv_window_give(pool, ids[0]);
    gn_kv_window_give(pool, ids[0]);
    assert_false(gn_kv_is_whole(pool, ids[0]));
    assert_int_equal(gn_kv_take(pool, 3, ids + 2), GN_E_NO_PAGES);
    assert_int_equal(gn_kv_pool_in_use(pool), 2);
    assert_int_equal(gn_kv_take(pool, 2, ids + 2), GN_OK);
    assert_int_equal(gn_kv_window_take(pool, 1, ids), GN_E_NO_PAGES);
    gn_kv_give(pool, 2, ids + 2);
    assert_int_equal(gn_kv_window_take(pool, 1, ids), GN_OK);
    assert_int_equal(gn_kv_pool_bytes_in_use(pool), 2 * 3 * 4 * block);
    gn_kv_give(pool, 2, ids);
    assert_int_equal(gn_kv_pool_bytes_in_use(pool), 0);
    gn_kv_pool_destroy(pool);
    assert_int_equal(gn_alloc_live(), 0);
}

/* Whether the windowed layers' part of every page that position n_tok and the next n after it see is there. */
static bool sees_all(const gn_kv_table *t, uint32_t n_tok, uint32_t n)
{
    uint32_t first = n_tok >= 100 ? (n_tok - 99) / GN_KV_PAGE_TOK : 0;
    for (uint32_t i = first; i < t->n_pages && i * GN_KV_PAGE_TOK < n_tok + n; i++) {
        if (!gn_kv_is_whole(t->pool, t->pages[i])) {
            return false;
        }
    }
    return true;
}

static uint32_t count_whole(const gn_kv_table *t)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < t->n_pages; i++) {
        n += gn_kv_is_whole(t->pool, t->pages[i]);
    }
    return n;
}

/* Evaluate up to n_tok in passes of m; the pool has room for no more than the first reserve took. */
static void evaluate(gn_kv_table *t, uint32_t n_tok, uint32_t m)
{
    while (t->n_tok < n_tok) {
        assert_int_equal(gn_kv_table_reserve(t, n_tok), GN_OK);
        uint32_t end = t->n_tok + m < n_tok ? t->n_tok + m : n_tok;
        assert_true(sees_all(t, t->n_tok, end - t->n_tok));
        gn_kv_table_advance(t, end);
    }
}

static void test_windows(void **state)
{
    (void)state;
    enum { N = 5000 };
    uint64_t most = gn_kv_table_bytes(&mixed, N);
    uint64_t n_pages = (N + GN_KV_PAGE_TOK - 1) / GN_KV_PAGE_TOK;
    assert_true(most < n_pages * gn_kv_page_bytes(&mixed) / 2);
    for (uint32_t m = 1; m <= GN_KV_PASS_TOK; m += 51) {
        gn_kv_pool *pool = NULL;
        assert_int_equal(gn_kv_pool_create(&mixed, most, &pool), GN_OK);
        gn_kv_table t;
        gn_kv_table_init(&t, pool);
        evaluate(&t, N, m);
        assert_int_equal(t.n_pages, n_pages);
        assert_in_range(count_whole(&t), (99 + GN_KV_KEEP) / GN_KV_PAGE_TOK, 8);

        /* A few tokens less cost nothing. */
        gn_kv_table_truncate(&t, N - GN_KV_KEEP);
        assert_int_equal(t.n_tok, N - GN_KV_KEEP);
        evaluate(&t, N, m);
        gn_kv_table_truncate(&t, N - 1);
        assert_int_equal(t.n_tok, N - 1);
        /* Many tokens less are all computed again. */
        assert_int_equal(gn_kv_table_usable(&t, 2000), 0);
        gn_kv_table_truncate(&t, 2000);
        assert_int_equal(t.n_tok, 0);
        assert_int_equal(gn_kv_pool_in_use(pool), 0);
        evaluate(&t, 2000, m);
        /* Also when the pages stay; then those of both ends are there for a while. */
        t.n_tok = gn_kv_table_usable(&t, 500);
        assert_int_equal(t.n_tok, 0);
        evaluate(&t, 2000, m);
        gn_kv_table_fini(&t);
        gn_kv_pool_destroy(pool);
    }
}

/* Pages of which a middle one lacks the part: what lies before it is still of use. */
static void test_usable(void **state)
{
    (void)state;
    gn_kv_pool *pool = NULL;
    assert_int_equal(gn_kv_pool_create(&mixed, 1 << 20, &pool), GN_OK);
    gn_kv_table t;
    gn_kv_table_init(&t, pool);
    evaluate(&t, 300, 256);
    gn_kv_window_give(pool, t.pages[2]);
    assert_int_equal(gn_kv_table_usable(&t, 300), 300); /* which sees from 201 on */
    assert_int_equal(gn_kv_table_usable(&t, 291), 291); /* from 192 */
    assert_int_equal(gn_kv_table_usable(&t, 290), 128);
    assert_int_equal(gn_kv_table_usable(&t, 128), 128);
    gn_kv_window_give(pool, t.pages[0]);
    assert_int_equal(gn_kv_table_usable(&t, 290), 0); /* 128 sees from 29 */
    assert_int_equal(gn_kv_window_take(pool, 1, &t.pages[2]), GN_OK);
    assert_int_equal(gn_kv_table_usable(&t, 163), 163); /* from 64 on */
    assert_int_equal(gn_kv_table_usable(&t, 162), 0);
    gn_kv_table_fini(&t);
    gn_kv_pool_destroy(pool);
}

/* A model whose layers all have a window. */
static void test_all_windowed(void **state)
{
    (void)state;
    static const bool all[] = {true, true, true};
    gn_kv_shape narrow = mixed;
    narrow.windowed = all;
    assert_int_equal(gn_kv_window_bytes(&narrow), gn_kv_page_bytes(&narrow));
    uint64_t most = gn_kv_table_bytes(&narrow, 100000);
    assert_int_equal(most, gn_kv_table_bytes(&narrow, 10000));
    gn_kv_pool *pool = NULL;
    assert_int_equal(gn_kv_pool_create(&narrow, most, &pool), GN_OK);
    gn_kv_table t;
    gn_kv_table_init(&t, pool);
    evaluate(&t, 100000, 256);
    assert_true(gn_kv_pool_bytes_in_use(pool) <= most);
    gn_kv_table_fini(&t);
    gn_kv_pool_destroy(pool);
}

static int fail_at(void *ctx)
{
    int *left = ctx;
    return (*left)-- == 0;
}

static void check_oom(const gn_kv_shape *of)
{
    for (int n = 0;; n++) {
        int left = n;
        gn_kv_pool *pool = NULL;
        gn_kv_table t = {0};
        gn_alloc_set_fault(fail_at, &left);
        gn_status status = gn_kv_pool_create(of, 1 << 20, &pool);
        if (status == GN_OK) {
            gn_kv_table_init(&t, pool);
            status = gn_kv_table_reserve(&t, 20 * GN_KV_PAGE_TOK);
        }
        gn_alloc_set_fault(NULL, NULL);
        gn_kv_table_fini(&t);
        gn_kv_pool_destroy(pool);
        assert_int_equal(gn_alloc_live(), 0);
        if (status == GN_OK) {
            assert_true(n > 3);
            return;
        }
        assert_int_equal(status, GN_E_NOMEM);
    }
}

static void test_oom(void **state)
{
    (void)state;
    check_oom(&shape);
    check_oom(&mixed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layout),       cmocka_unit_test(test_limits),
        cmocka_unit_test(test_random_walk),  cmocka_unit_test(test_parts),
        cmocka_unit_test(test_windows),      cmocka_unit_test(test_usable),
        cmocka_unit_test(test_all_windowed), cmocka_unit_test(test_oom),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
