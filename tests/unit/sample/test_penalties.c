/* Bias, bans, repetition penalties and DRY, against values worked out by hand or by brute force. */
#include "sample_test.h"

#include "base/rng.h"
#include "sample/sampler.h"

#include <float.h>
#include <math.h>

#define N 5

static const float plain[N] = {1.0F, 4.0F, -1.0F, -2.0F, 0.5F};

static void adjust(gn_sampler *sampler, const float *logits)
{
    memcpy(sampler->work, logits, (size_t)sampler->n_vocab * sizeof *logits);
    gn_sample_adjust(sampler);
}

static void expect_work(const gn_sampler *sampler, const float *expected)
{
    for (int32_t i = 0; i < sampler->n_vocab; i++) {
        if (sampler->work[i] != expected[i]) {
            fail_msg("logit %d: found %g, expected %g", i, (double)sampler->work[i],
                     (double)expected[i]);
        }
    }
}

static void test_bias(void **state)
{
    (void)state;
    gn_logit_bias bias[] = {{0, 2.5F}, {1, -INFINITY}, {1, 5.0F}, {4, FLT_MAX}, {0, -1.0F}};
    gn_sample_params p = gn_sample_defaults();
    p.logit_bias = bias;
    p.n_logit_bias = GN_COUNTOF(bias);
    gn_sampler *sampler = make(&p, N);
    bias[0].bias = 77.0F; /* the sampler has its own copy */
    adjust(sampler, plain);
    expect_work(sampler, (float[N]){2.5F, -INFINITY, -1.0F, -2.0F, FLT_MAX});
    adjust(sampler, (float[N]){0, 0, 0, 0, FLT_MAX});
    assert_true(sampler->work[4] == FLT_MAX);
    gn_sampler_destroy(sampler);
}

static void test_end_ids(void **state)
{
    (void)state;
    static const int32_t ends[] = {1, 3};
    gn_sample_params p = gn_sample_defaults();
    p.temperature = 0.0F;
    p.end_ids = ends;
    p.n_end_ids = 2;
    p.min_tokens = 2;
    gn_sampler *sampler = make(&p, N);
    int32_t id = -1;
    static const int32_t expected[] = {0, 0, 0, 1}; /* a prompt token does not count */
    for (int i = 0; i < 4; i++) {
        assert_int_equal(gn_sampler_pick(sampler, plain, NULL, &id), GN_OK);
        assert_int_equal(id, expected[i]);
        assert_int_equal(gn_sampler_accept(sampler, id, i != 0), GN_OK);
    }
    gn_sampler_reset(sampler);
    assert_int_equal(gn_sampler_pick(sampler, plain, NULL, &id), GN_OK);
    assert_int_equal(id, 0);
    gn_sampler_destroy(sampler);

    p.min_tokens = 0;
    p.ignore_eos = true;
    sampler = make(&p, N);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(gn_sampler_pick(sampler, plain, NULL, &id), GN_OK);
        assert_int_equal(id, 0);
        assert_int_equal(gn_sampler_accept(sampler, id, true), GN_OK);
    }
    gn_sampler_destroy(sampler);
}

static void test_penalties(void **state)
{
    (void)state;
    gn_sample_params p = gn_sample_defaults();
    p.repetition_penalty = 2.0F;
    p.presence_penalty = 0.5F;
    p.frequency_penalty = 0.25F;
    gn_sampler *sampler = make(&p, N);
    accept_all(sampler, (int32_t[]){1, 3, 1}, 3);
    adjust(sampler, plain);
    /* 4 / 2 − 2 · 0.25 − 0.5 and −2 · 2 − 0.25 − 0.5 */
    expect_work(sampler, (float[N]){1.0F, 1.0F, -1.0F, -4.75F, 0.5F});
    adjust(sampler, plain); /* the scratch is clean */
    expect_work(sampler, (float[N]){1.0F, 1.0F, -1.0F, -4.75F, 0.5F});
    adjust(sampler, (float[N]){0, -INFINITY, 0, -FLT_MAX, 0});
    expect_work(sampler, (float[N]){0, -INFINITY, 0, -FLT_MAX, 0});
    gn_sampler_reset(sampler);
    adjust(sampler, plain);
    expect_work(sampler, plain);
    gn_sampler_destroy(sampler);
}

static void test_penalty_window(void **state)
{
    (void)state;
    gn_sample_params p = gn_sample_defaults();
    p.frequency_penalty = 1.0F;
    static const int32_t windows[] = {0, 1, 3, 200, 300, 1000, -1};
    gn_rng rng = {.state = 1};
    for (size_t w = 0; w < GN_COUNTOF(windows); w++) {
        p.penalty_last_n = windows[w];
        gn_sampler *sampler = make(&p, N);
        static int32_t ids[2500];
        for (int n = 0; n < 2500; n++) {
            ids[n] = (int32_t)(gn_rng_next(&rng) % N);
            assert_int_equal(gn_sampler_accept(sampler, ids[n], false), GN_OK);
            if (n % 97 != 0) {
                continue;
            }
            float expected[N] = {0};
            int from = windows[w] < 0 ? 0 : n + 1 - windows[w];
            for (int i = from < 0 ? 0 : from; i <= n; i++) {
                expected[ids[i]] -= 1.0F;
            }
            adjust(sampler, (float[N]){0});
            expect_work(sampler, expected);
        }
        assert_true(windows[w] != 3 || sampler->history.cap == 256); /* memory stays bounded */
        gn_sampler_destroy(sampler);
    }
}

static void test_dry(void **state)
{
    (void)state;
    /* a b c c b c y a b c: "a b c" was followed by c, "b c" by y, "c" by b. */
    enum { A = 1, B, C, Y };
    static const int32_t ids[] = {A, B, C, C, B, C, Y, A, B, C};
    gn_sample_params p = gn_sample_defaults();
    p.dry_multiplier = 3.0F;
    p.dry_base = 2.0F;
    gn_sampler *sampler = make(&p, N);
    accept_all(sampler, ids, GN_COUNTOF(ids));
    adjust(sampler, (float[N]){0});
    expect_work(sampler, (float[N]){0, 0, 0, -6.0F, -3.0F}); /* 3 · 2^(3-2), 3 · 2^0 */
    gn_sampler_destroy(sampler);

    p.dry_breakers = (int32_t[]){Y};
    p.n_dry_breakers = 1; /* y itself is free, and the match of 3 does not reach over it */
    sampler = make(&p, N);
    accept_all(sampler, ids, GN_COUNTOF(ids));
    adjust(sampler, (float[N]){0});
    expect_work(sampler, (float[N]){0, 0, 0, -6.0F, 0});
    gn_sampler_destroy(sampler);

    p.dry_breakers = (int32_t[]){A};
    sampler = make(&p, N); /* "b c" is what is left: c and y after it */
    accept_all(sampler, ids, GN_COUNTOF(ids));
    adjust(sampler, (float[N]){0});
    expect_work(sampler, (float[N]){0, 0, 0, -3.0F, -3.0F});
    gn_sampler_destroy(sampler);

    p.n_dry_breakers = 0;
    p.dry_last_n = 7; /* c b c y a b c: only y and b follow a match */
    sampler = make(&p, N);
    accept_all(sampler, ids, GN_COUNTOF(ids));
    adjust(sampler, (float[N]){0});
    expect_work(sampler, (float[N]){0, 0, 0, 0, -3.0F});
    gn_sampler_destroy(sampler);
}

/* The definition, word for word: for each earlier place, how long is the match that ends before it? */
static void dry_brute_force(const int32_t *ids, size_t n, int32_t breaker, int32_t allowed_length,
                            float *expected)
{
    int32_t longest[N] = {0};
    for (size_t at = 1; at < n; at++) {
        int32_t len = 0;
        while ((size_t)len < at && ids[n - 1 - (size_t)len] == ids[at - 1 - (size_t)len] &&
               ids[n - 1 - (size_t)len] != breaker) {
            len++;
        }
        int32_t next = ids[at];
        longest[next] = len > longest[next] ? len : longest[next];
    }
    for (int32_t id = 0; id < N; id++) {
        expected[id] = longest[id] >= allowed_length && id != breaker
                           ? -(float)ldexp(1.0, longest[id] - allowed_length)
                           : 0.0F;
    }
}

static void test_dry_property(void **state)
{
    (void)state;
    gn_rng rng = {.state = 5};
    for (int round = 0; round < 3000; round++) {
        int32_t ids[40];
        size_t n = 1 + gn_rng_next(&rng) % GN_COUNTOF(ids);
        uint64_t letters = 1 + gn_rng_next(&rng) % N;
        for (size_t i = 0; i < n; i++) {
            ids[i] = (int32_t)(gn_rng_next(&rng) % letters);
        }
        int32_t breaker = (int32_t)(gn_rng_next(&rng) % N);
        gn_sample_params p = gn_sample_defaults();
        p.dry_multiplier = 1.0F;
        p.dry_base = 2.0F;
        p.dry_allowed_length = 1 + (int32_t)(gn_rng_next(&rng) % 3);
        p.dry_breakers = &breaker;
        p.n_dry_breakers = 1;
        float expected[N];
        dry_brute_force(ids, n, breaker, p.dry_allowed_length, expected);
        gn_sampler *sampler = make(&p, N);
        accept_all(sampler, ids, n);
        adjust(sampler, (float[N]){0});
        expect_work(sampler, expected);
        gn_sampler_destroy(sampler);
    }
}

static void test_dry_long_repeat_stays_finite(void **state)
{
    (void)state;
    gn_sample_params p = gn_sample_defaults();
    p.dry_multiplier = 1.0F;
    p.temperature = 0.0F;
    gn_sampler *sampler = make(&p, 1); /* the only token there is */
    for (int i = 0; i < 20000; i++) {
        assert_int_equal(gn_sampler_accept(sampler, 0, true), GN_OK);
    }
    int32_t id = -1;
    assert_int_equal(gn_sampler_pick(sampler, (float[]){1.0F}, NULL, &id), GN_OK);
    assert_int_equal(id, 0);
    assert_true(sampler->work[0] == -FLT_MAX);
    gn_sampler_destroy(sampler);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bias),
        cmocka_unit_test(test_end_ids),
        cmocka_unit_test(test_penalties),
        cmocka_unit_test(test_penalty_window),
        cmocka_unit_test(test_dry),
        cmocka_unit_test(test_dry_property),
        cmocka_unit_test(test_dry_long_repeat_stays_finite),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
