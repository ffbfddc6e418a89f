/* Filters: each shrinks the set of candidates, in the order that ganglion/sample.h fixes. Temperature comes
 * last, so they see the model's own distribution. None removes the last candidate.
 *
 * Probabilities are weights e^(logit − max) against their sum: no filter normalises the set itself. */
#include "sample/sampler.h"

#include "base/rng.h"
#include "sample/explog.h"

#include <assert.h>
#include <math.h>

#define MASS_WALK 1024 /* candidates looked at one by one for a mass */

/* C. Tang et al., "Top-nσ: Not All Logits Are You Need" (2024): keep logits ≥ max − n·σ, σ being the
 * standard deviation of the logits. */
static void top_n_sigma(gn_cand_set *set, double n_sigma)
{
    double n = (double)set->n;
    double max = gn_cand_max(set);
    double mean = 0.0;
    for (size_t i = 0; i < set->n; i++) {
        mean += (double)set->c[i].logprob;
    }
    mean /= n;
    double variance = 0.0;
    for (size_t i = 0; i < set->n; i++) {
        double d = (double)set->c[i].logprob - mean;
        variance += d * d;
    }
    gn_cand_keep_from(set, max - n_sigma * sqrt(variance / n));
}

/* A. Fan et al., "Hierarchical Neural Story Generation" (2018): the k most probable. */
static void top_k(gn_cand_set *set, size_t k)
{
    if (k < set->n) {
        gn_cand_select(set->c, set->n, k);
        set->n = k;
        set->n_sorted = k;
    }
}

/* Keep the shortest run of best candidates whose weights reach `mass`. Mostly a few dozen tokens hold it and
 * a short sorted part finds them; a flat distribution needs selection. */
static void take_mass(gn_cand_set *set, const float *logits, double max, double mass)
{
    size_t keep = 0;
    for (; keep < set->n && keep < MASS_WALK && mass > 0.0; keep++) {
        gn_cand_sort_to(set, keep);
        mass -= gn_sample_exp((double)logits[set->c[keep].id] - max);
    }
    set->n_sorted = keep;
    if (mass > 0.0) {
        keep += gn_cand_take_mass(set->c + keep, set->n - keep, logits, max, mass);
    }
    set->n = keep;
}

/* C. Meister et al., "Locally Typical Sampling" (2022): the tokens whose information −log p is closest to
 * the entropy H, until they hold the mass p. With m the mean of max − logit under the distribution,
 * |−log p_i − H| = |max − logit_i − m|: the normaliser cancels. */
static void typical(gn_cand_set *set, const float *logits, double p)
{
    double max = gn_cand_max(set);
    double weights[GN_CAND_BLOCK];
    double total = 0.0;
    double mean = 0.0;
    for (size_t start = 0; start < set->n; start += GN_CAND_BLOCK) {
        size_t len = set->n - start < GN_CAND_BLOCK ? set->n - start : GN_CAND_BLOCK;
        gn_cand_weights(set->c + start, len, max, 1.0, weights);
        for (size_t i = 0; i < len; i++) {
            total += weights[i];
            mean += weights[i] * (max - (double)set->c[start + i].logprob);
        }
    }
    mean /= total;
    for (size_t i = 0; i < set->n; i++) {
        set->c[i].logprob = (float)-fabs(max - (double)set->c[i].logprob - mean);
    }
    set->n_sorted = 0;
    take_mass(set, logits, max, p * total);
    for (size_t i = 0; i < set->n; i++) {
        set->c[i].logprob = logits[set->c[i].id];
    }
    set->n_sorted = 0;
}

/* A. Holtzman et al., "The Curious Case of Neural Text Degeneration" (2020): the smallest set of most
 * probable tokens that holds the mass p. */
static void top_p(gn_cand_set *set, const float *logits, double p)
{
    double max = gn_cand_max(set);
    take_mass(set, logits, max, p * gn_cand_sum(set->c, set->n, max, 1.0, NULL));
}

/* N. Nguyen et al., "Turning Up the Heat: Min-p Sampling" (2024): p_i ≥ min_p · p_max. */
static void min_p(gn_cand_set *set, double p)
{
    gn_cand_keep_from(set, gn_cand_max(set) + gn_sample_log(p));
}

/* XTC ("exclude top choices"): p-e-w, text-generation-webui pull request 6335 (2024). With the given
 * probability, all tokens at or above the threshold go, but the least probable of them. */
static void xtc(gn_cand_set *set, gn_rng *rng, double probability, double threshold)
{
    if (gn_rng_uniform(rng) >= probability) {
        return;
    }
    double max = gn_cand_max(set);
    double bound = threshold * gn_cand_sum(set->c, set->n, max, 1.0, NULL);
    size_t above = 0;
    for (; above < set->n; above++) {
        gn_cand_sort_to(set, above);
        if (gn_sample_exp((double)set->c[above].logprob - max) < bound) {
            break;
        }
    }
    if (above >= 2) {
        set->c += above - 1;
        set->n -= above - 1;
        set->n_sorted -= above - 1;
    }
}

void gn_sample_filter(gn_sampler *s, const float *logits, gn_cand_set *set)
{
    const gn_sample_params *p = &s->params;
    assert(set->n > 0);
    if (p->top_n_sigma > 0.0F) {
        top_n_sigma(set, (double)p->top_n_sigma);
    }
    if (p->top_k > 0) {
        top_k(set, (size_t)p->top_k);
    }
    if (p->typical_p < 1.0F) {
        typical(set, logits, (double)p->typical_p);
    }
    if (p->top_p < 1.0F) {
        top_p(set, logits, (double)p->top_p);
    }
    if (p->min_p > 0.0F) {
        min_p(set, (double)p->min_p);
    }
    if (p->xtc_probability > 0.0F) {
        xtc(set, &s->rng, (double)p->xtc_probability, (double)p->xtc_threshold);
    }
    assert(set->n > 0);
}
