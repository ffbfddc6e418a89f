/* engine/tuner: machines whose times are made up, and a model that stays at what it was told. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "engine/model_impl.h"
#include "ganglion/ganglion.h"

/* Nanoseconds of a pass where `enough` threads use up the memory and each one more costs `more` ns. */
static uint64_t pass_ns(int n, int enough, uint64_t more)
{
    return n < enough ? (uint64_t)(40000000 / n)
                      : (uint64_t)(40000000 / enough) + (uint64_t)(n - enough) * more;
}

/* The choice; *passes gets how many it took. Every count's first pass is slow, and so is every third. */
static int choose(int most, int enough, uint64_t more, int *passes)
{
    gn_engine_tuner t;
    gn_engine_tuner_init(&t, most, false);
    int last = 0;
    *passes = 0;
    while (!t.done) {
        uint64_t ns = pass_ns(t.n_threads, enough, more);
        ns *= t.n_threads != last ? 10 : *passes % 3 == 0 ? 2 : 1;
        last = t.n_threads;
        gn_engine_tuner_add(&t, ns);
        assert_in_range(t.n_threads, 1, most);
        assert_true(++*passes < 200);
    }
    return t.n_threads;
}

static void test_choice(void **state)
{
    (void)state;
    int passes;
    assert_int_equal(choose(8, 8, 0, &passes), 8); /* each core adds its part */
    assert_int_equal(passes, 10);
    assert_int_equal(choose(8, 4, 0, &passes), 4); /* 8, 6, 5, 4, 3 */
    assert_int_equal(passes, 25);
    assert_int_equal(choose(8, 4, 500000, &passes), 4); /* more of them are in each other's way */
    assert_int_equal(choose(3, 1, 0, &passes), 1);
    assert_int_equal(choose(3, 3, 0, &passes), 3);
    assert_int_equal(choose(64, 16, 0, &passes), 16); /* 64, 48, 36, 27, 21, 16, 12 */
    assert_true(choose(1024, 1, 0, &passes) == 1);
}

/* Steps of 2 % each do not add up: the limit is the best of all. */
static void test_slack(void **state)
{
    (void)state;
    gn_engine_tuner t;
    gn_engine_tuner_init(&t, 4, false);
    while (!t.done) {
        gn_engine_tuner_add(&t, 1000u + 20u * (unsigned)(4 - t.n_threads));
    }
    assert_int_equal(t.n_threads, 3);
}

static void test_nothing_to_choose(void **state)
{
    (void)state;
    gn_engine_tuner t;
    for (int n = 1; n <= 2; n++) {
        gn_engine_tuner_init(&t, n, false);
        assert_true(t.done);
        assert_int_equal(t.n_threads, n);
    }
    gn_engine_tuner_init(&t, 16, true);
    assert_true(t.done);
    assert_int_equal(t.n_threads, 16);
}

#define PASSES 60

/* Logits of PASSES passes of one row each, by 5 threads or as few of them as prove enough; caller frees. */
static float *decode(bool tuned, int *threads, size_t *n)
{
    char path[512];
    (void)snprintf(path, sizeof path, "%s/tiny/llama/", GN_TEST_GOLDEN);
    const gn_model_options options = {.threads = 5, .cache = GN_CACHE_OFF};
    const gn_session_options session_options = {.n_ctx = PASSES};
    gn_model *model = NULL;
    gn_session *session = NULL;
    assert_int_equal(gn_model_open(path, &options, &model), GN_OK);
    assert_true(model->tuner.done);
    if (tuned) {
        gn_engine_tuner_init(&model->tuner, 5, false);
    }
    assert_int_equal(gn_session_create(model, &session_options, &session), GN_OK);
    size_t n_vocab = (size_t)gn_model_get_info(model).n_vocab;
    *n = PASSES * n_vocab;
    float *logits = malloc(*n * sizeof *logits);
    assert_non_null(logits);
    for (int32_t i = 0; i < PASSES; i++) {
        float *row = logits + (size_t)i * n_vocab;
        assert_int_equal(gn_session_eval(session, &i, 1, row, 1), GN_OK);
    }
    assert_true(model->tuner.done);
    *threads = gn_model_get_info(model).threads;
    assert_int_equal(*threads, model->tuner.n_threads);
    gn_session_destroy(session);
    gn_model_close(model);
    return logits;
}

static void test_same_bits(void **state)
{
    (void)state;
    int threads = 0;
    size_t n = 0;
    float *told = decode(false, &threads, &n);
    assert_int_equal(threads, 5);
    float *tuned = decode(true, &threads, &n);
    assert_in_range(threads, 1, 5);
    assert_memory_equal(told, tuned, n * sizeof *told);
    free(told);
    free(tuned);
    assert_int_equal(gn_alloc_live(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_choice), cmocka_unit_test(test_slack),
                                       cmocka_unit_test(test_nothing_to_choose),
                                       cmocka_unit_test(test_same_bits)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
