/* Sessions of models with windows: pages that windows have passed are given back, and going back further than
 * what is left computes the same bits again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/session_impl.h"
#include "ganglion/ganglion.h"
#include "kv/table.h"

#define N_CTX 1500

static gn_model *open_model(const char *name, uint64_t kv_bytes)
{
    char path[512];
    (void)snprintf(path, sizeof path, "%s/tiny/%s", GN_TEST_GOLDEN, name);
    const gn_model_options options = {.threads = 2, .kv_bytes = kv_bytes, .cache = GN_CACHE_OFF};
    gn_model *model = NULL;
    assert_int_equal(gn_model_open(path, &options, &model), GN_OK);
    return model;
}

static gn_session *open_session(gn_model *model)
{
    const gn_session_options options = {.n_ctx = N_CTX};
    gn_session *session = NULL;
    assert_int_equal(gn_session_create(model, &options, &session), GN_OK);
    return session;
}

static void fill(int32_t *ids, size_t n, size_t seed, const gn_model *model)
{
    for (size_t i = 0; i < n; i++) {
        ids[i] = (int32_t)((i * 7919 + seed) % (size_t)gn_model_get_info(model).n_vocab);
    }
}

/* The logits behind `ids` [n], by a session that holds nothing else. */
static void expect(gn_model *model, const int32_t *ids, size_t n, const float *logits)
{
    size_t n_vocab = (size_t)gn_model_get_info(model).n_vocab;
    float *fresh = malloc(n_vocab * sizeof *fresh);
    gn_session *session = open_session(model);
    assert_int_equal(gn_session_eval(session, ids, n, fresh, 1), GN_OK);
    assert_memory_equal(fresh, logits, n_vocab * sizeof *fresh);
    gn_session_destroy(session);
    free(fresh);
}

static void check_going_back(const char *name)
{
    gn_model *model = open_model(name, 1ull << 30);
    gn_session *session = open_session(model);
    size_t n_vocab = (size_t)gn_model_get_info(model).n_vocab;
    float *logits = malloc(n_vocab * sizeof *logits);
    int32_t ids[N_CTX];
    fill(ids, N_CTX, 13, model);
    assert_int_equal(gn_session_eval(session, ids, 1000, logits, 1), GN_OK);
    expect(model, ids, 1000, logits);
    /* To where windows have passed, to where they have not, and by one token. */
    static const size_t lengths[] = {400, 900, 1000, 990, 989, 64, 1};
    for (size_t i = 0; i < GN_COUNTOF(lengths); i++) {
        size_t n = lengths[i];
        size_t have = gn_session_length(session);
        if (n <= have) {
            assert_int_equal(gn_session_truncate(session, n - 1), GN_OK);
            have = n - 1;
        }
        assert_int_equal(gn_session_eval(session, ids + have, n - have, logits, 1), GN_OK);
        expect(model, ids, n, logits);
        /* The last token once more, as where no logits were wanted. */
        assert_int_equal(gn_session_eval_many(&session, NULL, 1, logits), GN_OK);
        expect(model, ids, n, logits);
    }
    /* Another end: what is common is kept where it can be gone on from. */
    assert_int_equal(gn_session_eval(session, ids + 1, 999, NULL, 0), GN_OK);
    int32_t other[N_CTX];
    memcpy(other, ids, sizeof ids);
    fill(other + 950, N_CTX - 950, 31, model);
    size_t reused = 0;
    assert_int_equal(gn_session_set(session, other, 1100, &reused), GN_OK);
    assert_int_equal(reused, 950);
    fill(other + 300, N_CTX - 300, 77, model);
    assert_int_equal(gn_session_set(session, other, 700, &reused), GN_OK);
    assert_int_equal(reused, 0);
    assert_int_equal(gn_session_eval(session, other + 700, 1, logits, 1), GN_OK);
    expect(model, other, 701, logits);
    gn_session_destroy(session);
    assert_int_equal(gn_kv_pool_in_use(model->kv), 0);
    free(logits);
    gn_model_close(model);
}

static void test_going_back(void **state)
{
    (void)state;
    check_going_back("gemma3");
    check_going_back("mistral");
}

/* A pool with room for a long sequence only where windows give pages back. */
static void test_memory(void **state)
{
    (void)state;
    gn_model *model = open_model("mistral", 1ull << 30);
    gn_kv_shape shape = *gn_kv_pool_shape(model->kv);
    uint64_t most = gn_kv_table_bytes(&shape, N_CTX);
    assert_true(most < (uint64_t)N_CTX * gn_model_get_info(model).kv_bytes_per_tok / 2);
    gn_model_close(model);

    model = open_model("mistral", most);
    gn_session *session = open_session(model);
    int32_t ids[N_CTX];
    fill(ids, N_CTX, 13, model);
    assert_int_equal(gn_session_eval(session, ids, N_CTX - 100, NULL, 0), GN_OK);
    for (size_t i = N_CTX - 100; i < N_CTX; i++) {
        assert_int_equal(gn_session_eval(session, &ids[i], 1, NULL, 0), GN_OK);
        assert_true(gn_kv_pool_bytes_in_use(model->kv) <= most);
    }
    /* Another one's prompt does not fit beside it; both keep what they have. */
    gn_session *other = open_session(model);
    assert_int_equal(gn_session_eval(other, ids, 600, NULL, 0), GN_E_NO_PAGES);
    assert_int_equal(gn_session_length(other), 0);
    size_t reused = 0;
    assert_int_equal(gn_session_set(session, ids, N_CTX, &reused), GN_OK);
    assert_int_equal(reused, N_CTX - 1);
    gn_session_destroy(session);
    assert_int_equal(gn_session_eval(other, ids, 600, NULL, 0), GN_OK);
    gn_session_destroy(other);
    gn_model_close(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_going_back),
                                       cmocka_unit_test(test_memory)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
