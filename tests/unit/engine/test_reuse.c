/* Requests that find pages of others get the bits that each gets alone: with a tree that is empty, full, short of pages, and
 * with pages of its own taken away. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "mix.h"

#ifdef __SANITIZE_THREAD__
enum { MANY = 60 }; /* it is slow */
#else
enum { MANY = MIX_MOST };
#endif

static mix_request requests[MIX_MOST];
static mix_answer expected[MIX_MOST];

static const char *const names[] = {"llama/", "gemma3/", "phi3/"};

static void prepare(const char *name, gn_kv_format format, size_t n)
{
    gn_model *model = mix_open(name, 1ull << 30, format);
    for (size_t i = 0; i < n; i++) {
        mix_make(&requests[i], i, gn_model_get_info(model).n_vocab);
        mix_alone(model, &requests[i], &expected[i]);
    }
    gn_model_close(model);
}

static gn_engine *start(gn_model *model)
{
    gn_engine *engine = NULL;
    if (gn_engine_create(model, NULL, &engine) != GN_OK) {
        fail_msg("%s", gn_error_message());
    }
    return engine;
}

static gn_engine_stats stats_of(gn_engine *engine)
{
    gn_engine_stats stats;
    gn_engine_get_stats(engine, &stats);
    return stats;
}

/* The same requests three times: each time more of them is there already. */
static void test_again(void **state)
{
    (void)state;
    for (size_t k = 0; k < GN_COUNTOF(names); k++) {
        size_t n = k == 0 ? MANY : 40;
        gn_kv_format format = (gn_kv_format)(k % 4);
        prepare(names[k], format, n);
        gn_model *model = mix_open(names[k], 1ull << 30, format);
        gn_engine *engine = start(model);
        uint64_t hits[3];
        for (size_t round = 0; round < GN_COUNTOF(hits); round++) {
            gn_engine_stats before = stats_of(engine);
            (void)mix_together(names[k], engine, requests, expected, n);
            gn_engine_stats after = stats_of(engine);
            hits[round] = after.n_cache_hit_tok - before.n_cache_hit_tok;
            assert_true(after.n_cache_query_tok > before.n_cache_query_tok + hits[round]);
        }
        assert_true(hits[1] > hits[0] && hits[1] > 64 * n / 4);
        assert_int_equal(hits[2], hits[1]);
        gn_engine_destroy(engine);
        assert_int_equal(gn_kv_pool_in_use(model->kv), 0);
        gn_model_close(model);
    }
    assert_int_equal(gn_alloc_live(), 0);
}

static void test_short_of_pages(void **state)
{
    (void)state;
    for (size_t k = 0; k < 2; k++) {
        prepare(names[k], GN_KV_FORMAT_F16, MANY);
        gn_model *model = mix_open(names[k], 1ull << 30, GN_KV_FORMAT_F16);
        uint64_t page = gn_model_get_info(model).kv_bytes_per_tok * GN_KV_PAGE_TOK;
        gn_model_close(model);
        static const uint64_t sizes[] = {12, 30};
        for (size_t s = 0; s < GN_COUNTOF(sizes); s++) {
            model = mix_open(names[k], sizes[s] * page, GN_KV_FORMAT_F16);
            gn_engine *engine = start(model);
            int32_t n_preempted = mix_together(names[k], engine, requests, expected, MANY);
            assert_true(sizes[s] > 12 || n_preempted > 0);
            (void)mix_together(names[k], engine, requests, expected, MANY);
            assert_true(stats_of(engine).n_cache_hit_tok > 0);
            gn_engine_destroy(engine);
            assert_int_equal(gn_kv_pool_in_use(model->kv), 0);
            gn_model_close(model);
        }
    }
    assert_int_equal(gn_alloc_live(), 0);
}

/* One request; returns what it found. */
static int32_t ask(gn_engine *engine, size_t i, uint64_t salt, bool no_cache)
{
    gn_request_options o = mix_options(&requests[i]);
    gn_request *request = NULL;
    mix_answer answer;
    o.salt = salt;
    o.no_cache = no_cache;
    assert_int_equal(gn_request_submit(engine, &o, &request), GN_OK);
    mix_collect(request, &answer);
    mix_compare("one", i, &answer, &expected[i]);
    int32_t n_cached = gn_request_get_usage(request).n_cached;
    gn_request_release(request);
    return n_cached;
}

/* Another salt, another tenant. */
static void test_salts(void **state)
{
    (void)state;
    enum { LONG = 7 }; /* 200 tokens: three pages, the fourth is begun */
    prepare(names[0], GN_KV_FORMAT_F16, LONG + 1);
    gn_model *model = mix_open(names[0], 1ull << 30, GN_KV_FORMAT_F16);
    gn_engine *engine = start(model);
    assert_int_equal(ask(engine, LONG, 1, true), 0);
    assert_int_equal(ask(engine, LONG, 1, false), 0);
    assert_int_equal(ask(engine, LONG, 1, true), 0);
    assert_int_equal(ask(engine, LONG, 2, false), 0);
    assert_int_equal(ask(engine, LONG, 1, false), 192);
    assert_int_equal(ask(engine, LONG, 2, false), 192);
    gn_engine_destroy(engine);
    gn_model_close(model);
}

/* A prompt that ends where a page does: its last token is computed all the same. */
static void test_whole_pages(void **state)
{
    (void)state;
    enum { EVEN = 8 }; /* 128 tokens */
    prepare(names[0], GN_KV_FORMAT_F16, EVEN + 1);
    assert_int_equal(requests[EVEN].n_prompt, 128);
    gn_model *model = mix_open(names[0], 1ull << 30, GN_KV_FORMAT_F16);
    gn_engine *engine = start(model);
    assert_int_equal(ask(engine, EVEN, 0, false), 0);
    assert_int_equal(ask(engine, EVEN, 0, false), 64);
    gn_engine_destroy(engine);
    gn_model_close(model);
}

/* A session beside the engine gets pages that only the tree holds. */
static void test_sessions_take_idle_pages(void **state)
{
    (void)state;
    prepare(names[0], GN_KV_FORMAT_F16, 60);
    gn_model *model = mix_open(names[0], 1ull << 30, GN_KV_FORMAT_F16);
    uint64_t page = gn_model_get_info(model).kv_bytes_per_tok * GN_KV_PAGE_TOK;
    gn_model_close(model);
    model = mix_open(names[0], 20 * page, GN_KV_FORMAT_F16);
    gn_engine *engine = start(model);
    (void)mix_together(names[0], engine, requests, expected, 60);
    mix_answer alone;
    for (size_t i = 0; i < 60; i++) {
        mix_alone(model, &requests[i], &alone);
        mix_compare("beside", i, &alone, &expected[i]);
    }
    (void)mix_together(names[0], engine, requests, expected, 60);
    gn_engine_destroy(engine);
    gn_model_close(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_again),
        cmocka_unit_test(test_short_of_pages),
        cmocka_unit_test(test_salts),
        cmocka_unit_test(test_whole_pages),
        cmocka_unit_test(test_sessions_take_idle_pages),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
