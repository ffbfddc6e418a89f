/* The prefix tree against a list of all that was ever put there, by random sequences over few tokens and few pages. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "kv/prefix.h"

enum { MOST_TOK = 6 * GN_KV_PAGE_TOK, TABLES = 4, PAGES = 24 };

typedef struct sequence {
    gn_kv_table table;
    gn_kv_place place;
    uint64_t root;
    int32_t ids[MOST_TOK];
    bool runs;
} sequence;

static const gn_kv_shape shape = {.n_layer = 1, .n_head_kv = 1, .head_dim = 16, .type = GN_KV_F32};

/* What a page holds says which tokens lead to it: a number of them, in its first element. */
static float mark(uint64_t root, const int32_t *ids, uint32_t n)
{
    uint32_t h = (uint32_t)root * 31 + 7;
    for (uint32_t i = 0; i < n; i++) {
        h = h * 16777619u + (uint32_t)ids[i];
    }
    return (float)(h % 8388608u);
}

static float *first_of(gn_kv_pool *pool, uint32_t page)
{
    return gn_kv_block(pool, page, 0, 0, 0);
}

static void check_pages(gn_kv_pool *pool, const sequence *s)
{
    for (uint32_t i = 0; i < s->table.n_tok / GN_KV_PAGE_TOK; i++) {
        float expected = mark(s->root, s->ids, (i + 1) * GN_KV_PAGE_TOK);
        assert_true(*first_of(pool, s->table.pages[i]) == expected);
    }
}

/* Compute n more tokens, as far as there are pages. */
static void run(gn_kv_pool *pool, sequence *s, uint32_t n)
{
    uint32_t end = s->table.n_tok + n < MOST_TOK ? s->table.n_tok + n : MOST_TOK;
    if (gn_kv_table_reserve(&s->table, end) != GN_OK) {
        return;
    }
    for (uint32_t i = s->table.n_tok / GN_KV_PAGE_TOK; i < end / GN_KV_PAGE_TOK; i++) {
        assert_int_equal(gn_kv_n_holders(pool, s->table.pages[i]), 1);
        *first_of(pool, s->table.pages[i]) = mark(s->root, s->ids, (i + 1) * GN_KV_PAGE_TOK);
    }
    gn_kv_table_advance(&s->table, end);
}

static void test_random(void **state)
{
    (void)state;
    gn_kv_pool *pool = NULL;
    gn_kv_prefix *prefix = NULL;
    assert_int_equal(gn_kv_pool_create(&shape, PAGES * gn_kv_page_bytes(&shape), &pool), GN_OK);
    gn_kv_pool_shuffle(pool, 9);
    assert_int_equal(gn_kv_prefix_create(pool, &prefix), GN_OK);
    static sequence sequences[TABLES];
    gn_rng rng = {.state = 3};
    uint64_t n_taken = 0;
    for (int step = 0; step < 20000; step++) {
        sequence *s = &sequences[gn_rng_next(&rng) % TABLES];
        uint32_t dice = (uint32_t)(gn_rng_next(&rng) % 10);
        if (!s->runs) {
            uint32_t same = (uint32_t)(gn_rng_next(&rng) % MOST_TOK);
            uint32_t kind = (uint32_t)(gn_rng_next(&rng) % 3);
            for (uint32_t i = 0; i < MOST_TOK; i++) {
                s->ids[i] = i < same ? (int32_t)kind : (int32_t)(gn_rng_next(&rng) % 2);
            }
            s->root = gn_rng_next(&rng) % 2;
            s->runs = true;
            gn_kv_table_init(&s->table, pool);
            uint32_t n = 1 + (uint32_t)(gn_rng_next(&rng) % MOST_TOK);
            uint32_t found = gn_kv_prefix_attach(prefix, s->root, s->ids, n, &s->table, &s->place);
            assert_true(found < n && found == s->table.n_tok && found % GN_KV_PAGE_TOK == 0);
            assert_int_equal(s->place.n_pages, found / GN_KV_PAGE_TOK);
            n_taken += found;
        } else if (dice < 6) {
            run(pool, s, (uint32_t)(gn_rng_next(&rng) % 90));
        } else if (dice < 8) {
            gn_kv_prefix_insert(prefix, s->root, s->ids, &s->table, &s->place);
        } else {
            gn_kv_table_fini(&s->table);
            s->place = (gn_kv_place){0};
            s->runs = false;
        }
        for (size_t i = 0; i < TABLES; i++) {
            if (sequences[i].runs) {
                check_pages(pool, &sequences[i]);
            }
        }
        uint32_t n_idle = 0;
        uint32_t n = gn_kv_prefix_count(prefix, &n_idle);
        assert_true(n_idle <= n && n <= gn_kv_pool_in_use(pool));
    }
    assert_true(n_taken > 100 * GN_KV_PAGE_TOK);
    for (size_t i = 0; i < TABLES; i++) {
        gn_kv_table_fini(&sequences[i].table);
    }
    gn_kv_prefix_destroy(prefix);
    assert_int_equal(gn_kv_pool_in_use(pool), 0);
    gn_kv_pool_destroy(pool);
    assert_int_equal(gn_alloc_live(), 0);
}

/* What was used last stays longest. */
static void test_least_used_first(void **state)
{
    (void)state;
    gn_kv_pool *pool = NULL;
    gn_kv_prefix *prefix = NULL;
    assert_int_equal(gn_kv_pool_create(&shape, 4 * gn_kv_page_bytes(&shape), &pool), GN_OK);
    assert_int_equal(gn_kv_prefix_create(pool, &prefix), GN_OK);
    static sequence s;
    for (int32_t k = 0; k < 3; k++) {
        memset(&s, 0, sizeof s);
        s.ids[0] = k;
        gn_kv_table_init(&s.table, pool);
        run(pool, &s, GN_KV_PAGE_TOK);
        gn_kv_prefix_insert(prefix, 0, s.ids, &s.table, &s.place);
        gn_kv_table_fini(&s.table);
    }
    /* The first is used again; a new sequence of three pages drives the others out. */
    s.ids[0] = 0;
    gn_kv_table_init(&s.table, pool);
    assert_int_equal(gn_kv_prefix_attach(prefix, 0, s.ids, 100, &s.table, &s.place), 64);
    gn_kv_table_fini(&s.table);
    gn_kv_table_init(&s.table, pool);
    assert_int_equal(gn_kv_table_reserve(&s.table, 3 * GN_KV_PAGE_TOK), GN_OK);
    gn_kv_table_fini(&s.table);
    for (int32_t k = 0; k < 3; k++) {
        s.ids[0] = k;
        gn_kv_table_init(&s.table, pool);
        assert_int_equal(gn_kv_prefix_attach(prefix, 0, s.ids, 100, &s.table, &s.place),
                         k == 0 ? 64 : 0);
        gn_kv_table_fini(&s.table);
    }
    gn_kv_prefix_destroy(prefix);
    gn_kv_pool_destroy(pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_random),
                                       cmocka_unit_test(test_least_used_first)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
