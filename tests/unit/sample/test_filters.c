/* Every filter against survivors worked out by hand, and against full sorts on large vocabularies. */
#include "sample_test.h"

#include "base/rng.h"
#include "sample/explog.h"
#include "sample/sampler.h"

#include <math.h>
#include <stdlib.h>

#define N 5

/* Probabilities 1/2 (id 1), 1/4 (3), 1/8 (0), 1/16 (2), 1/16 (4): entropy 1.875 bits. */
static const float halves[N] = {-3.0F * 0.69314718F, -0.69314718F, -4.0F * 0.69314718F,
                                -2.0F * 0.69314718F, -4.0F * 0.69314718F};

static int by_id(const void *a, const void *b)
{
    return ((const gn_logprob *)a)->id - ((const gn_logprob *)b)->id;
}

/* The ids that the filters leave, as digits in ascending order. Also: their values are their logits. */
static const char *survivors(const gn_sample_params *params, const float *logits)
{
    static char digits[N + 1];
    gn_sampler *sampler = make(params, N);
    gn_logprob c[N];
    for (int32_t i = 0; i < N; i++) {
        c[i] = (gn_logprob){.id = i, .logprob = logits[i]};
    }
    gn_cand_set set = {.c = c, .n = N};
    gn_sample_filter(sampler, logits, &set);
    for (size_t i = 0; i < set.n; i++) {
        assert_true(set.c[i].logprob == logits[set.c[i].id]);
    }
    qsort(set.c, set.n, sizeof *set.c, by_id);
    for (size_t i = 0; i < set.n; i++) {
        digits[i] = (char)('0' + set.c[i].id);
    }
    digits[set.n] = '\0';
    gn_sampler_destroy(sampler);
    return digits;
}

static void test_neutral(void **state)
{
    (void)state;
    gn_sample_params p = gn_sample_defaults();
    assert_string_equal(survivors(&p, halves), "01234");
}

static void test_top_k(void **state)
{
    (void)state;
    gn_sample_params p = gn_sample_defaults();
    static const char *const expected[] = {"01234", "1", "13", "013", "0123", "01234", "01234"};
    for (int32_t k = 0; k < 7; k++) {
        p.top_k = k; /* k = 4: ids 2 and 4 are equal, the lower id stays */
        assert_string_equal(survivors(&p, halves), expected[k]);
    }
}

static void test_top_p(void **state)
{
    (void)state;
    gn_sample_params p = gn_sample_defaults();
    p.top_p = 1e-6F;
    assert_string_equal(survivors(&p, halves), "1");
    p.top_p = 0.49F;
    assert_string_equal(survivors(&p, halves), "1");
    p.top_p = 0.57F;
    assert_string_equal(survivors(&p, halves), "13");
    p.top_p = 0.76F;
    assert_string_equal(survivors(&p, halves), "013");
    p.top_p = 0.93F; /* 15/16 with the first of the two equals */
    assert_string_equal(survivors(&p, halves), "0123");
    p.top_p = 0.57F;
    p.top_k = 3; /* of what top-k leaves: 1/2 is 4/7 ≥ 0.57 of it */
    assert_string_equal(survivors(&p, halves), "1");
}

static void test_min_p(void **state)
{
    (void)state;
    gn_sample_params p = gn_sample_defaults();
    p.min_p = 0.2F;
    assert_string_equal(survivors(&p, halves), "013");
    p.min_p = 0.3F;
    assert_string_equal(survivors(&p, halves), "13");
    p.min_p = 0.12F;
    assert_string_equal(survivors(&p, halves), "01234");
    p.min_p = 1.0F;
    assert_string_equal(survivors(&p, halves), "1");
}

static void test_typical(void **state)
{
    (void)state;
    /* Distances from 1.875 bits: id 3 0.125, id 1 0.875, id 0 1.125, ids 2 and 4 2.125. */
    gn_sample_params p = gn_sample_defaults();
    p.typical_p = 0.2F;
    assert_string_equal(survivors(&p, halves), "3");
    p.typical_p = 0.3F;
    assert_string_equal(survivors(&p, halves), "13");
    p.typical_p = 0.8F;
    assert_string_equal(survivors(&p, halves), "013");
    p.typical_p = 0.9F;
    assert_string_equal(survivors(&p, halves), "0123");
    p.min_p = 0.6F; /* after typical: all of 0123 against 1/2 */
    assert_string_equal(survivors(&p, halves), "1");
}

static void test_top_n_sigma(void **state)
{
    (void)state;
    /* mean 2, variance (4 · 4 + 64) / 5 = 16, σ = 4 */
    static const float logits[N] = {0.0F, 0.0F, 10.0F, 0.0F, 0.0F};
    gn_sample_params p = gn_sample_defaults();
    p.top_n_sigma = 1.0F;
    assert_string_equal(survivors(&p, logits), "2");
    p.top_n_sigma = 2.4F;
    assert_string_equal(survivors(&p, logits), "2");
    p.top_n_sigma = 2.5F;
    assert_string_equal(survivors(&p, logits), "01234");
    p.top_n_sigma = -1.0F;
    assert_string_equal(survivors(&p, logits), "01234");
}

static void test_xtc(void **state)
{
    (void)state;
    gn_sample_params p = gn_sample_defaults();
    p.xtc_probability = 1.0F;
    p.xtc_threshold = 0.1F; /* ids 1, 3, 0 are at or above: 0 stays */
    assert_string_equal(survivors(&p, halves), "024");
    p.xtc_threshold = 0.3F; /* only one is: it stays */
    assert_string_equal(survivors(&p, halves), "01234");
    p.xtc_threshold = 0.05F; /* all are: the last stays */
    assert_string_equal(survivors(&p, halves), "4");
    p.top_k = 3; /* before XTC: 4/7, 2/7, 1/7 */
    p.xtc_threshold = 0.2F;
    assert_string_equal(survivors(&p, halves), "03");
    p.xtc_probability = 0.0F;
    assert_string_equal(survivors(&p, halves), "013");
}

static void test_xtc_probability(void **state)
{
    (void)state;
    gn_sample_params p = gn_sample_defaults();
    p.xtc_probability = 0.25F;
    int applied = 0;
    for (p.seed = 0; p.seed < 4000; p.seed++) {
        applied += strcmp(survivors(&p, halves), "024") == 0;
    }
    assert_in_range(applied, 890, 1110); /* 1000 ± 4 σ */
}

/* ---- against a full sort ---- */

#define LARGE 50000

static float large[LARGE];

static int by_rank(const void *a, const void *b)
{
    const gn_logprob *x = a;
    const gn_logprob *y = b;
    if (x->logprob != y->logprob) {
        return x->logprob > y->logprob ? -1 : 1;
    }
    return x->id - y->id;
}

/* Logits with many equals (steps of 1/64) or in ascending or descending order: worst cases of selection. */
static void fill_large(uint64_t seed, int shape)
{
    gn_rng rng = {.state = seed};
    for (int i = 0; i < LARGE; i++) {
        double u = gn_rng_uniform(&rng) + gn_rng_uniform(&rng) + gn_rng_uniform(&rng);
        double value = shape == 0 ? floor(u * 256.0) / 64.0 : (double)i / 4096.0;
        large[i] = (float)(shape == 2 ? -value : value);
    }
}

static void collect_large(gn_logprob *c)
{
    for (int32_t i = 0; i < LARGE; i++) {
        c[i] = (gn_logprob){.id = i, .logprob = large[i]};
    }
}

static void test_selection_equals_sort(void **state)
{
    (void)state;
    gn_logprob *sorted = gn_alloc_array(LARGE, sizeof *sorted);
    gn_logprob *c = gn_alloc_array(LARGE, sizeof *c);
    static const size_t ks[] = {1, 2, 40, 1000, LARGE - 1, LARGE};
    for (int shape = 0; shape < 3; shape++) {
        fill_large(7, shape);
        collect_large(sorted);
        qsort(sorted, LARGE, sizeof *sorted, by_rank);
        for (size_t i = 0; i < GN_COUNTOF(ks); i++) {
            collect_large(c);
            gn_cand_select(c, LARGE, ks[i]);
            assert_memory_equal(c, sorted, ks[i] * sizeof *c);
            gn_cand_select_values(large, LARGE, ks[i], c);
            assert_memory_equal(c, sorted, ks[i] * sizeof *c);
        }
        collect_large(c);
        gn_cand_set set = {.c = c, .n = LARGE};
        for (size_t i = 0; i < 5000; i++) { /* grows step by step */
            gn_cand_sort_to(&set, i);
            assert_memory_equal(&c[i], &sorted[i], sizeof *c);
        }
        assert_true(set.n_sorted < LARGE);
    }
    gn_free(c);
    gn_free(sorted);
}

static void test_large_top_p_and_typical(void **state)
{
    fill_large(11, *(const int *)*state);
    gn_logprob *sorted = gn_alloc_array(LARGE, sizeof *sorted);
    gn_logprob *c = gn_alloc_array(LARGE, sizeof *c);
    collect_large(sorted);
    qsort(sorted, LARGE, sizeof *sorted, by_rank);
    double total = 0.0;
    for (int i = 0; i < LARGE; i++) {
        total += exp((double)large[i]);
    }
    static const float ps[] = {0.001F, 0.1F, 0.9F, 0.999F};
    for (size_t i = 0; i < GN_COUNTOF(ps); i++) {
        gn_sample_params p = gn_sample_defaults();
        p.top_p = ps[i];
        size_t keep = 0;
        for (double sum = 0.0; sum < (double)ps[i] * total; keep++) {
            sum += exp((double)sorted[keep].logprob);
        }
        gn_sampler *sampler = make(&p, LARGE);
        collect_large(c);
        gn_cand_set set = {.c = c, .n = LARGE};
        gn_sample_filter(sampler, large, &set);
        assert_int_equal(set.n, keep);
        for (size_t k = 0; k < set.n_sorted; k++) {
            assert_memory_equal(&set.c[k], &sorted[k], sizeof *c);
        }
        qsort(set.c, set.n, sizeof *c, by_rank);
        assert_memory_equal(set.c, sorted, keep * sizeof *c);
        gn_sampler_destroy(sampler);

        p.top_p = 1.0F;
        p.typical_p = ps[i];
        sampler = make(&p, LARGE);
        collect_large(c);
        set = (gn_cand_set){.c = c, .n = LARGE};
        gn_sample_filter(sampler, large, &set);
        double mass = 0.0;
        for (size_t k = 0; k < set.n; k++) {
            mass += exp((double)set.c[k].logprob) / total;
        }
        assert_true(mass >= (double)ps[i] - 1e-9 && mass < (double)ps[i] + 0.001);
        gn_sampler_destroy(sampler);
    }
    gn_free(c);
    gn_free(sorted);
}

/* ---- exp and log ---- */

static void test_explog(void **state)
{
    (void)state;
    for (int i = -699000; i <= 699000; i += 37) {
        double x = i / 1000.0;
        assert_true(fabs(gn_sample_exp(x) / exp(x) - 1.0) < 5e-16);
    }
    assert_true(gn_sample_exp(0.0) == 1.0);
    assert_true(gn_sample_exp(-INFINITY) < 1e-300);
    gn_rng rng = {.state = 3};
    for (int i = 0; i < 100000; i++) {
        double x = ldexp(0.5 + gn_rng_uniform(&rng), (int)(gn_rng_next(&rng) % 2000) - 1000);
        double expected = log(x);
        assert_true(fabs(gn_sample_log(x) - expected) <= 5e-16 * fabs(expected) + 1e-300);
    }
    for (double d = 1e-15; d < 0.5; d *= 1.7) {
        assert_true(fabs(gn_sample_log(1.0 + d) - log(1.0 + d)) <= 5e-16 * log(1.0 + d));
        assert_true(fabs(gn_sample_log(1.0 - d) - log(1.0 - d)) <= -5e-16 * log(1.0 - d));
    }
    assert_true(gn_sample_log(1.0) == 0.0);
}

int main(void)
{
    static int shapes[] = {0, 1, 2};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_neutral),
        cmocka_unit_test(test_top_k),
        cmocka_unit_test(test_top_p),
        cmocka_unit_test(test_min_p),
        cmocka_unit_test(test_typical),
        cmocka_unit_test(test_top_n_sigma),
        cmocka_unit_test(test_xtc),
        cmocka_unit_test(test_xtc_probability),
        cmocka_unit_test(test_selection_equals_sort),
        cmocka_unit_test_prestate(test_large_top_p_and_typical, &shapes[0]),
        cmocka_unit_test_prestate(test_large_top_p_and_typical, &shapes[1]),
        cmocka_unit_test_prestate(test_large_top_p_and_typical, &shapes[2]),
        cmocka_unit_test(test_explog),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
