/* One pass over many sessions gives each of them the bits it gets alone, and fails for all or for none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "ganglion/ganglion.h"

#define MOST  300 /* more sessions than a forward pass has rows */
#define STEPS 3

typedef struct many {
    gn_model *model;
    size_t n;
    size_t n_vocab;
    gn_session *sessions[MOST];
    float *logits; /* [n, n_vocab] */
} many;

static int32_t token(size_t session, size_t pos, size_t n_vocab)
{
    return (int32_t)((session * 131 + pos * 7919 + 13) % n_vocab);
}

/* Lengths differ; some end at a page's edge. */
static size_t length_of(size_t session)
{
    static const size_t lengths[] = {1, 64, 3, 63, 65, 130, 17, 2};
    return lengths[session % GN_COUNTOF(lengths)];
}

static void open_many(many *m, const char *name, size_t n, uint64_t kv_bytes, int32_t n_ctx)
{
    char path[512];
    (void)snprintf(path, sizeof path, "%s/tiny/%s", GN_TEST_GOLDEN, name);
    const gn_model_options options = {.threads = 3, .kv_bytes = kv_bytes, .cache = GN_CACHE_OFF};
    memset(m, 0, sizeof *m);
    assert_int_equal(gn_model_open(path, &options, &m->model), GN_OK);
    m->n = n;
    m->n_vocab = (size_t)gn_model_get_info(m->model).n_vocab;
    m->logits = malloc(n * m->n_vocab * sizeof *m->logits);
    int32_t ids[256];
    for (size_t i = 0; i < n; i++) {
        const gn_session_options session_options = {.n_ctx = n_ctx};
        assert_int_equal(gn_session_create(m->model, &session_options, &m->sessions[i]), GN_OK);
        for (size_t p = 0; p < length_of(i); p++) {
            ids[p] = token(i, p, m->n_vocab);
        }
        assert_int_equal(gn_session_eval(m->sessions[i], ids, length_of(i), NULL, 0), GN_OK);
    }
}

static void close_many(many *m)
{
    for (size_t i = 0; i < m->n; i++) {
        gn_session_destroy(m->sessions[i]);
    }
    gn_model_close(m->model);
    free(m->logits);
}

static void check_same(const char *name, size_t n)
{
    many alone;
    many together;
    open_many(&alone, name, n, 1ull << 30, 200);
    open_many(&together, name, n, 1ull << 30, 200);
    int32_t ids[MOST];
    for (size_t step = 0; step < STEPS; step++) {
        for (size_t i = 0; i < n; i++) {
            ids[i] = token(i, length_of(i) + step, alone.n_vocab);
            assert_int_equal(
                gn_session_eval(alone.sessions[i], &ids[i], 1, alone.logits + i * alone.n_vocab, 1),
                GN_OK);
        }
        assert_int_equal(gn_session_eval_many(together.sessions, ids, n, together.logits), GN_OK);
        if (memcmp(alone.logits, together.logits, n * alone.n_vocab * sizeof(float)) != 0) {
            fail_msg("%s: %zu sessions in one pass get other bits in step %zu", name, n, step);
        }
        for (size_t i = 0; i < n; i++) {
            assert_int_equal(gn_session_length(together.sessions[i]), length_of(i) + step + 1);
        }
    }
    close_many(&alone);
    close_many(&together);
}

static void test_same_bits(void **state)
{
    (void)state;
    static const char *const names[] = {"llama/", "gemma3/", "mixtral/", "phi3/",
                                        "gguf_llama/model.gguf"};
    for (size_t i = 0; i < GN_COUNTOF(names); i++) {
        check_same(names[i], 1);
        check_same(names[i], 5);
        check_same(names[i], 16);
    }
    check_same("gguf_llama/model.gguf", MOST);
}

/* gn_session_next() for each session, then one pass for what they chose: a server's loop. */
static void test_chosen(void **state)
{
    (void)state;
    many alone;
    many together;
    gn_sampler *sampler = NULL;
    gn_sample_params params = gn_sample_defaults();
    params.temperature = 0.0f;
    open_many(&alone, "llama/", 4, 1ull << 30, 200);
    open_many(&together, "llama/", 4, 1ull << 30, 200);
    assert_int_equal(gn_sampler_create(&params, (int32_t)alone.n_vocab, &sampler), GN_OK);
    for (size_t step = 0; step < 6; step++) {
        for (size_t i = 0; i < alone.n; i++) {
            int32_t a = -1;
            int32_t b = -1;
            assert_int_equal(gn_session_next(alone.sessions[i], sampler, &a, NULL), GN_OK);
            /* Session 3 lags behind: it joins the common passes only now and then. */
            assert_int_equal(gn_session_next(together.sessions[i], sampler, &b, NULL), GN_OK);
            assert_int_equal(a, b);
        }
        size_t n = step % 3 == 2 ? 4 : 3;
        assert_int_equal(gn_session_eval_many(together.sessions, NULL, n, together.logits), GN_OK);
        /* What is evaluated already may be asked for again. */
        memcpy(alone.logits, together.logits, n * alone.n_vocab * sizeof(float));
        assert_int_equal(gn_session_eval_many(together.sessions, NULL, n, together.logits), GN_OK);
        assert_memory_equal(alone.logits, together.logits, n * alone.n_vocab * sizeof(float));
    }
    close_many(&alone);
    close_many(&together);
    gn_sampler_destroy(sampler);
}

/* The first n sessions as they were: length, and the logits they go on to. */
static void check_unchanged(many *m, size_t n)
{
    many fresh;
    open_many(&fresh, "llama/", n, 1ull << 30, 200);
    int32_t ids[MOST];
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(gn_session_length(m->sessions[i]), length_of(i));
        ids[i] = 7;
        assert_int_equal(gn_session_eval(m->sessions[i], &ids[i], 1, m->logits, 1), GN_OK);
        assert_int_equal(gn_session_eval(fresh.sessions[i], &ids[i], 1, fresh.logits, 1), GN_OK);
        assert_memory_equal(m->logits, fresh.logits, m->n_vocab * sizeof(float));
        assert_int_equal(gn_session_truncate(m->sessions[i], length_of(i)), GN_OK);
    }
    close_many(&fresh);
}

static void test_refused(void **state)
{
    (void)state;
    many m;
    open_many(&m, "llama/", 4, 1ull << 30, 200);
    int32_t ids[] = {1, 2, 3, 4};
    assert_int_equal(gn_session_eval_many(m.sessions, ids, 0, m.logits), GN_E_ARG);
    gn_session *twice[] = {m.sessions[0], m.sessions[1], m.sessions[0]};
    assert_int_equal(gn_session_eval_many(twice, ids, 3, m.logits), GN_E_ARG);
    assert_non_null(strstr(gn_error_message(), "twice"));
    many other;
    open_many(&other, "qwen2/", 1, 1ull << 30, 200);
    gn_session *mixed[] = {m.sessions[0], other.sessions[0]};
    assert_int_equal(gn_session_eval_many(mixed, ids, 2, m.logits), GN_E_ARG);
    close_many(&other);
    ids[3] = (int32_t)m.n_vocab;
    assert_int_equal(gn_session_eval_many(m.sessions, ids, 4, m.logits), GN_E_ARG);
    check_unchanged(&m, m.n);
    close_many(&m);
}

/* Session 1 of 64 tokens is full, session 0 is not: neither moves. */
static void test_limits(void **state)
{
    (void)state;
    many m;
    const int32_t ids[] = {1, 2, 3, 4};
    open_many(&m, "llama/", 2, 1ull << 30, 64);
    assert_int_equal(gn_session_eval_many(m.sessions, ids, 2, m.logits), GN_E_LIMIT);
    assert_int_equal(gn_session_length(m.sessions[0]), 1);
    assert_int_equal(gn_session_length(m.sessions[1]), 64);
    uint64_t page = gn_model_get_info(m.model).kv_bytes_per_tok * 64;
    close_many(&m);
    /* Two pages are all there are, and session 1 would need a third. */
    open_many(&m, "llama/", 2, 2 * page, 200);
    assert_int_equal(gn_session_eval_many(m.sessions, ids, 2, m.logits), GN_E_NO_PAGES);
    assert_int_equal(gn_session_length(m.sessions[1]), 64);
    check_unchanged(&m, 1);
    close_many(&m);
}

static int fail_nth(void *ctx)
{
    long *left = ctx;
    return --*left == 0;
}

static void test_no_memory(void **state)
{
    (void)state;
    const int32_t ids[] = {1, 2, 3, 4};
    gn_status status = GN_E_NOMEM;
    for (long nth = 1; status != GN_OK; nth++) {
        many m;
        open_many(&m, "llama/", 4, 1ull << 30, 200);
        long left = nth;
        gn_alloc_set_fault(fail_nth, &left);
        status = gn_session_eval_many(m.sessions, ids, 4, m.logits);
        gn_alloc_set_fault(NULL, NULL);
        if (status != GN_OK) {
            assert_int_equal(status, GN_E_NOMEM);
            check_unchanged(&m, m.n);
        }
        close_many(&m);
        assert_true(nth < 100);
    }
    assert_int_equal(gn_alloc_live(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_bits), cmocka_unit_test(test_chosen),
        cmocka_unit_test(test_refused),   cmocka_unit_test(test_limits),
        cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
