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

static int fail_at(void *ctx)
{
    int *left = ctx;
    return (*left)-- == 0;
}

static void test_oom(void **state)
{
    (void)state;
    for (int n = 0;; n++) {
        int left = n;
        gn_kv_pool *pool = NULL;
        gn_kv_table t = {0};
        gn_alloc_set_fault(fail_at, &left);
        gn_status status = gn_kv_pool_create(&shape, 1 << 20, &pool);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layout),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_random_walk),
        cmocka_unit_test(test_oom),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
