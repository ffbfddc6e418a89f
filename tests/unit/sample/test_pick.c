/* The choice itself: greedy, drawing (chi-square with fixed seeds), masks, mirostat, log-probabilities,
 * arguments, and each allocation failing. */
#include "sample_test.h"

#include "base/rng.h"
#include "sample/sampler.h"

#include <float.h>
#include <math.h>

static void test_greedy(void **state)
{
    (void)state;
    gn_sample_params p = gn_sample_defaults();
    p.temperature = 0.0F;
    gn_sampler *sampler = make(&p, 40);
    float logits[40] = {0};
    logits[7] = 3.0F;
    logits[35] = 3.0F;
    logits[36] = 2.0F;
    int32_t id = -1;
    assert_int_equal(gn_sampler_pick(sampler, logits, NULL, &id), GN_OK);
    assert_int_equal(id, 7); /* the lowest id among equals */
    uint32_t mask[2] = {~(1u << 7), ~0u};
    assert_int_equal(gn_sampler_pick(sampler, logits, mask, &id), GN_OK);
    assert_int_equal(id, 35);
    mask[1] = 1u << 4;
    assert_int_equal(gn_sampler_pick(sampler, logits, mask, &id), GN_OK);
    assert_int_equal(id, 36);
    gn_sampler_destroy(sampler);
}

static void test_nothing_allowed(void **state)
{
    (void)state;
    float logits[3] = {0.0F, -INFINITY, 1.0F};
    for (int greedy = 0; greedy < 2; greedy++) {
        gn_sample_params p = gn_sample_defaults();
        p.temperature = greedy != 0 ? 0.0F : 1.0F;
        gn_sampler *sampler = make(&p, 3);
        int32_t id = 77;
        uint32_t mask = 0;
        assert_int_equal(gn_sampler_pick(sampler, logits, &mask, &id), GN_E_REFUSED);
        mask = 2; /* allowed, but the logit bans it */
        assert_int_equal(gn_sampler_pick(sampler, logits, &mask, &id), GN_E_REFUSED);
        assert_int_equal(id, 77);
        assert_int_equal(sampler->rng.state, 0); /* a failure draws nothing */
        gn_sampler_destroy(sampler);
    }
}

static void test_bad_logits(void **state)
{
    (void)state;
    static const float bad[] = {NAN, INFINITY};
    for (int i = 0; i < 4; i++) {
        gn_sample_params p = gn_sample_defaults();
        p.temperature = (float)(i / 2);
        gn_sampler *sampler = make(&p, 3);
        float logits[3] = {0.0F, bad[i % 2], 1.0F};
        int32_t id = 77;
        assert_int_equal(gn_sampler_pick(sampler, logits, NULL, &id), GN_E_FORMAT);
        assert_string_equal(gn_error_message(), i % 2 == 0 ? "logit of token 1 is NaN"
                                                           : "logit of token 1 is infinite");
        assert_int_equal(id, 77);
        gn_sampler_destroy(sampler);
    }
}

/* Pearson's statistic of `draws` picks against probabilities e^(logit / T) / Σ, over `bins` runs of ids. */
static double chi_square(gn_sampler *sampler, const float *logits, int n, int bins, int draws)
{
    double expected[64] = {0};
    int found[64] = {0};
    double total = 0.0;
    for (int i = 0; i < n; i++) {
        double w = exp((double)logits[i] / (double)sampler->params.temperature);
        expected[(long)i * bins / n] += w;
        total += w;
    }
    for (int i = 0; i < draws; i++) {
        int32_t id = -1;
        assert_int_equal(gn_sampler_pick(sampler, logits, NULL, &id), GN_OK);
        found[(long)id * bins / n]++;
    }
    double sum = 0.0;
    for (int b = 0; b < bins; b++) {
        double e = expected[b] / total * draws;
        assert_true(e > 5.0);
        sum += (found[b] - e) * (found[b] - e) / e;
    }
    return sum;
}

static void test_draw_distribution(void **state)
{
    (void)state;
    static const float temperatures[] = {0.5F, 1.0F, 2.0F};
    static const float logits[6] = {0.5F, -1.0F, 2.0F, 1.5F, 0.0F, -0.5F};
    for (size_t i = 0; i < GN_COUNTOF(temperatures); i++) {
        gn_sample_params p = gn_sample_defaults();
        p.temperature = temperatures[i];
        p.seed = 42 + i;
        gn_sampler *sampler = make(&p, 6);
        assert_true(chi_square(sampler, logits, 6, 6, 40000) < 25.7); /* 5 degrees, 1e-4 */
        p.top_k = 6; /* sorted candidates, same distribution */
        gn_sampler *sorted = make(&p, 6);
        assert_true(chi_square(sorted, logits, 6, 6, 40000) < 25.7);
        gn_sampler_destroy(sorted);
        gn_sampler_destroy(sampler);
    }
}

static void test_draw_over_blocks(void **state)
{
    (void)state;
    enum { n = 5000 }; /* 20 blocks of weights, the last one partial */
    static float logits[n];
    for (int i = 0; i < n; i++) {
        logits[i] = (float)(i % 7) * 0.25F + (i > 4000 ? 1.0F : 0.0F);
    }
    gn_sample_params p = gn_sample_defaults();
    p.seed = 9;
    gn_sampler *sampler = make(&p, n);
    assert_true(chi_square(sampler, logits, n, 50, 30000) < 95.0); /* 49 degrees, 1e-4 */
    gn_sampler_destroy(sampler);
}

static void test_extreme_temperatures(void **state)
{
    (void)state;
    static const float logits[4] = {1.0F, FLT_MAX, -FLT_MAX, FLT_MAX / 2.0F};
    gn_sample_params p = gn_sample_defaults();
    static const float temperatures[] = {FLT_MIN, 1e-3F, 1.0F, 100.0F};
    for (size_t i = 0; i < GN_COUNTOF(temperatures); i++) {
        p.temperature = temperatures[i];
        gn_sampler *sampler = make(&p, 4);
        for (int k = 0; k < 100; k++) {
            int32_t id = -1;
            assert_int_equal(gn_sampler_pick(sampler, logits, NULL, &id), GN_OK);
            assert_int_equal(id, 1);
        }
        gn_sampler_destroy(sampler);
    }
}

/* The same on every machine, compiler and build: these ids are part of the contract. */
static void test_known_sequence(void **state)
{
    (void)state;
    enum { n = 3000 };
    static float logits[n];
    gn_rng rng = {.state = 2026};
    for (int i = 0; i < n; i++) {
        logits[i] = (float)(gn_rng_uniform(&rng) * 8.0);
    }
    gn_sample_params p = gn_sample_defaults();
    p.temperature = 0.8F;
    p.top_k = 400;
    p.top_p = 0.95F;
    p.min_p = 0.02F;
    p.typical_p = 0.97F;
    p.repetition_penalty = 1.1F;
    p.dry_multiplier = 0.8F;
    p.xtc_probability = 0.1F;
    p.xtc_threshold = 0.002F;
    p.seed = 1;
    gn_sampler *sampler = make(&p, n);
    static const int32_t expected[10] = {2005, 48, 958, 1275, 2018, 2764, 751, 2181, 942, 887};
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 10; i++) {
            int32_t id = -1;
            assert_int_equal(gn_sampler_pick(sampler, logits, NULL, &id), GN_OK);
            assert_int_equal(id, expected[i]);
            assert_int_equal(gn_sampler_accept(sampler, id, true), GN_OK);
        }
        gn_sampler_reset(sampler); /* and again from the start */
    }
    gn_sampler_destroy(sampler);
}

static void test_mirostat_step(void **state)
{
    (void)state;
    /* 1/2, 1/4, 1/8, 1/8: μ = 2 leaves the tokens of 1 and 2 bits. */
    static const float logits[4] = {0.0F, -0.69314718F, -1.38629436F, -1.38629436F};
    int seen[2] = {0};
    for (uint64_t seed = 0; seed < 64; seed++) {
        gn_sample_params p = gn_sample_defaults();
        p.mirostat_tau = 1.0001F;
        p.mirostat_eta = 0.5F;
        p.seed = seed;
        gn_sampler *sampler = make(&p, 4);
        int32_t id = -1;
        assert_int_equal(gn_sampler_pick(sampler, logits, NULL, &id), GN_OK);
        assert_in_range(id, 0, 1);
        seen[id]++;
        double error = (id == 0 ? 1.0 : 2.0) - (double)p.mirostat_tau;
        double expected = 2.0 * (double)p.mirostat_tau - 0.5 * error;
        assert_true(fabs(sampler->mirostat_mu - expected) < 1e-6);
        gn_sampler_reset(sampler);
        assert_true(sampler->mirostat_mu == 2.0 * (double)p.mirostat_tau);
        gn_sampler_destroy(sampler);
    }
    assert_true(seen[0] > 30 && seen[1] > 8); /* 2 to 1 */
}

static void test_mirostat_converges(void **state)
{
    (void)state;
    enum { n = 4000 };
    static float logits[n]; /* a power law, as the paper assumes */
    for (int i = 0; i < n; i++) {
        logits[i] = -1.5F * (float)log(i + 1.0);
    }
    double lse = gn_sample_logsumexp(logits, n);
    static const float taus[] = {1.5F, 2.0F, 3.0F};
    for (size_t t = 0; t < GN_COUNTOF(taus); t++) {
        gn_sample_params p = gn_sample_defaults();
        p.mirostat_tau = taus[t];
        gn_sampler *sampler = make(&p, n);
        double sum = 0.0;
        for (int i = 0; i < 3000; i++) {
            int32_t id = -1;
            assert_int_equal(gn_sampler_pick(sampler, logits, NULL, &id), GN_OK);
            sum += i < 1000 ? 0.0 : (lse - (double)logits[id]) / 0.6931471805599453;
        }
        assert_true(fabs(sum / 2000.0 - (double)taus[t]) < 0.05);
        gn_sampler_destroy(sampler);
    }
}

static void test_logprobs(void **state)
{
    (void)state;
    static const float logits[6] = {1.0F, 3.0F, -INFINITY, 3.0F, 0.0F, 2.0F};
    double lse = log(exp(1.0) + 2.0 * exp(3.0) + 1.0 + exp(2.0));
    assert_true(fabs(gn_sample_logsumexp(logits, 6) - lse) < 1e-14);
    gn_logprob top[6];
    assert_int_equal(gn_sample_top_logprobs(logits, 6, 6, top), GN_OK);
    static const int32_t order[6] = {1, 3, 5, 0, 4, 2};
    for (int i = 0; i < 6; i++) {
        assert_int_equal(top[i].id, order[i]);
        assert_true(top[i].logprob == (float)((double)logits[order[i]] - lse));
    }
    top[0].id = 77;
    assert_int_equal(gn_sample_top_logprobs(logits, 6, 0, top), GN_OK);
    assert_int_equal(top[0].id, 77);
    assert_int_equal(gn_sample_top_logprobs(logits, 6, 7, top), GN_E_ARG);
    assert_int_equal(gn_sample_top_logprobs(logits, 6, -1, top), GN_E_ARG);
    assert_int_equal(gn_sample_top_logprobs((float[]){NAN, 0}, 2, 1, top), GN_E_FORMAT);
    assert_int_equal(gn_sample_top_logprobs((float[]){-INFINITY}, 1, 1, top), GN_E_FORMAT);
    assert_true(isnan(gn_sample_logsumexp((float[]){0, NAN}, 2)));
    assert_true(gn_sample_logsumexp((float[]){-INFINITY}, 1) == -INFINITY);
    assert_true(gn_sample_logsumexp(NULL, 0) == -INFINITY);
    assert_true(fabs(gn_sample_logsumexp((float[]){FLT_MAX, -FLT_MAX}, 2) - (double)FLT_MAX) < 1);
}

static void expect_refused(const gn_sample_params *p, int32_t n_vocab, const char *start)
{
    gn_sampler *sampler = NULL;
    assert_int_equal(gn_sampler_create(p, n_vocab, &sampler), GN_E_ARG);
    assert_null(sampler);
    if (strncmp(gn_error_message(), start, strlen(start)) != 0) {
        fail_msg("found \"%s\", expected \"%s…\"", gn_error_message(), start);
    }
}

static void test_arguments(void **state)
{
    (void)state;
    const gn_sample_params good = gn_sample_defaults();
    gn_sample_params p;
#define REFUSE(member, value, text)                                                                \
    do {                                                                                           \
        p = good;                                                                                  \
        p.member = value;                                                                          \
        expect_refused(&p, 10, text);                                                              \
    } while (0)
    REFUSE(temperature, NAN, "temperature: found nan, expected a finite number");
    REFUSE(temperature, INFINITY, "temperature: found inf");
    REFUSE(top_p, 0.0F, "top_p: found 0, expected a number above 0, up to 1");
    REFUSE(top_p, 1.5F, "top_p: found 1.5");
    REFUSE(min_p, -0.1F, "min_p: found -0.1, expected a number from 0 to 1");
    REFUSE(typical_p, NAN, "typical_p: found nan");
    REFUSE(top_n_sigma, INFINITY, "top_n_sigma: found inf");
    REFUSE(xtc_probability, 2.0F, "xtc_probability: found 2");
    REFUSE(xtc_threshold, 0.6F, "xtc_threshold: found 0.6");
    REFUSE(xtc_threshold, 0.0F, "xtc_threshold: found 0");
    REFUSE(repetition_penalty, 0.0F, "repetition_penalty: found 0");
    REFUSE(presence_penalty, NAN, "presence_penalty: found nan");
    REFUSE(frequency_penalty, -INFINITY, "frequency_penalty: found -inf");
    REFUSE(penalty_last_n, -2, "penalty_last_n: found -2, expected -1 or more");
    REFUSE(dry_multiplier, -1.0F, "dry_multiplier: found -1");
    REFUSE(dry_base, 0.5F, "dry_base: found 0.5");
    REFUSE(dry_allowed_length, 0, "dry_allowed_length: found 0, expected 1 or more");
    REFUSE(dry_last_n, -5, "dry_last_n: found -5");
    REFUSE(mirostat_tau, NAN, "mirostat_tau: found nan");
    REFUSE(mirostat_eta, -1.0F, "mirostat_eta: found -1");
    REFUSE(min_tokens, -1, "min_tokens: found -1");
    REFUSE(n_end_ids, 2, "end_ids: found NULL, expected 2 ids");
    REFUSE(n_dry_breakers, 1, "dry_breakers: found NULL");
    REFUSE(n_logit_bias, 1, "logit_bias: found NULL");
#undef REFUSE
    expect_refused(&good, 0, "n_vocab: found 0");
    p = good;
    p.end_ids = (int32_t[]){3, 10};
    p.n_end_ids = 2;
    expect_refused(&p, 10, "end_ids[1]: found id 10, expected 0 to 9");
    p = good;
    p.logit_bias = (gn_logit_bias[]){{-1, 0.0F}};
    p.n_logit_bias = 1;
    expect_refused(&p, 10, "logit_bias[0]: found id -1");
    p.logit_bias = (gn_logit_bias[]){{1, INFINITY}};
    expect_refused(&p, 10, "logit_bias[0]: found inf for id 1");

    gn_sampler *sampler = make(&good, 10);
    assert_int_equal(gn_sampler_accept(sampler, 10, true), GN_E_ARG);
    assert_int_equal(gn_sampler_accept(sampler, -1, true), GN_E_ARG);
    gn_sampler_destroy(sampler);
    gn_sampler_destroy(NULL);
}

/* Everything on: create, 2,000 accepts, a pick. */
static gn_status use_all(int *n_allocations_before_pick)
{
    gn_sample_params p = gn_sample_defaults();
    p.repetition_penalty = 1.1F;
    p.penalty_last_n = -1;
    p.dry_multiplier = 1.0F;
    p.dry_breakers = p.end_ids = (int32_t[]){1, 2};
    p.n_dry_breakers = p.n_end_ids = 2;
    p.logit_bias = (gn_logit_bias[]){{3, 1.0F}};
    p.n_logit_bias = 1;
    p.typical_p = p.top_p = 0.9F;
    gn_sampler *sampler = NULL;
    gn_status status = gn_sampler_create(&p, 600, &sampler);
    for (int i = 0; i < 2000 && status == GN_OK; i++) {
        status = gn_sampler_accept(sampler, i % 600, true);
        if (status != GN_OK) { /* the same call works when memory is back */
            assert_int_equal(gn_sampler_accept(sampler, i % 600, true), GN_OK);
        }
    }
    if (n_allocations_before_pick != NULL) {
        *n_allocations_before_pick = 1; /* from here on the first allocation fails */
    }
    float logits[600] = {0};
    int32_t id;
    if (sampler != NULL) {
        assert_int_equal(gn_sampler_pick(sampler, logits, NULL, &id), GN_OK);
    }
    gn_sampler_destroy(sampler);
    return status;
}

static void test_out_of_memory(void **state)
{
    (void)state;
    int n = 1;
    for (;; n++) {
        int left = n;
        gn_alloc_set_fault(fail_nth, &left);
        gn_status status = use_all(NULL);
        gn_alloc_set_fault(NULL, NULL);
        assert_int_equal(gn_alloc_live(), 0);
        if (status == GN_OK) {
            break;
        }
        assert_int_equal(status, GN_E_NOMEM);
    }
    assert_in_range(n, 10, 30);
    int left = 1000;
    gn_alloc_set_fault(fail_nth, &left);
    assert_int_equal(use_all(&left), GN_OK);
    gn_alloc_set_fault(NULL, NULL);
    assert_int_equal(left, 1); /* a pick allocates nothing */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_greedy),
        cmocka_unit_test(test_nothing_allowed),
        cmocka_unit_test(test_bad_logits),
        cmocka_unit_test(test_draw_distribution),
        cmocka_unit_test(test_draw_over_blocks),
        cmocka_unit_test(test_extreme_temperatures),
        cmocka_unit_test(test_known_sequence),
        cmocka_unit_test(test_mirostat_step),
        cmocka_unit_test(test_mirostat_converges),
        cmocka_unit_test(test_logprobs),
        cmocka_unit_test(test_arguments),
        cmocka_unit_test(test_out_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
