/* The sampler: its memory, its history, and the choice.
 *
 * A pick runs over the vocabulary once to check the logits, once to collect the candidates (greedy: to find
 * the largest, and that is all), and then over what the filters leave. All memory comes with the sampler
 * (about 13 bytes a vocabulary entry) or with the history, so a pick allocates nothing. */
#include "sample/sampler.h"

#include "base/alloc.h"
#include "base/rng.h"
#include "sample/explog.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#define FIRST_HISTORY 256 /* tokens of the first allocation */

static size_t window_of(int32_t last_n)
{
    return last_n < 0 ? SIZE_MAX : (size_t)last_n;
}

static void *copy_array(const void *from, size_t n, size_t bytes)
{
    void *copy = gn_alloc_array(n, bytes);
    if (copy != NULL && n != 0) {
        memcpy(copy, from, n * bytes);
    }
    return copy;
}

static gn_status alloc_scratch(gn_sampler *s)
{
    size_t n = (size_t)s->n_vocab;
    s->cand = gn_alloc_array(n, sizeof *s->cand);
    s->work = gn_alloc_array(n, sizeof *s->work);
    s->block_sums = gn_alloc_array((n + GN_CAND_BLOCK - 1) / GN_CAND_BLOCK, sizeof *s->block_sums);
    if (s->cand == NULL || s->work == NULL || s->block_sums == NULL) {
        return gn_alloc_failed();
    }
    if (s->history.window != 0) {
        s->per_id = gn_calloc(n, sizeof *s->per_id);
        if (s->per_id == NULL) {
            return gn_alloc_failed();
        }
    }
    if (gn_sample_uses_dry(&s->params)) {
        s->breaker_set = gn_calloc((n + 31) / 32, sizeof *s->breaker_set);
        if (s->breaker_set == NULL) {
            return gn_alloc_failed();
        }
        for (size_t i = 0; i < s->params.n_dry_breakers; i++) {
            uint32_t id = (uint32_t)s->params.dry_breakers[i];
            s->breaker_set[id / 32] |= 1u << (id % 32);
        }
    }
    return GN_OK;
}

static gn_status build(gn_sampler *s, const gn_sample_params *params, int32_t n_vocab)
{
    s->params = *params;
    s->n_vocab = n_vocab;
    s->bias = copy_array(params->logit_bias, params->n_logit_bias, sizeof *s->bias);
    s->end_ids = copy_array(params->end_ids, params->n_end_ids, sizeof *s->end_ids);
    if (s->bias == NULL || s->end_ids == NULL) {
        return gn_alloc_failed();
    }
    if (gn_sample_uses_penalties(params)) {
        s->history.window = window_of(params->penalty_last_n);
    }
    if (gn_sample_uses_dry(params)) {
        size_t window = window_of(params->dry_last_n);
        s->history.window = window > s->history.window ? window : s->history.window;
    }
    GN_TRY(alloc_scratch(s));
    s->params.logit_bias = s->bias;
    s->params.end_ids = s->end_ids;
    s->params.dry_breakers = NULL; /* they live on in breaker_set */
    s->params.n_dry_breakers = 0;
    gn_sampler_reset(s);
    return GN_OK;
}

gn_status gn_sampler_create(const gn_sample_params *params, int32_t n_vocab, gn_sampler **out)
{
    GN_TRY(gn_sample_check(params, n_vocab));
    gn_sampler *s = gn_calloc(1, sizeof *s);
    if (s == NULL) {
        return gn_alloc_failed();
    }
    gn_status status = build(s, params, n_vocab);
    if (status != GN_OK) {
        gn_sampler_destroy(s);
        return status;
    }
    *out = s;
    return GN_OK;
}

void gn_sampler_destroy(gn_sampler *s)
{
    if (s == NULL) {
        return;
    }
    gn_free(s->history.matches);
    gn_free(s->history.ids);
    gn_free(s->breaker_set);
    gn_free(s->per_id);
    gn_free(s->block_sums);
    gn_free(s->work);
    gn_free(s->cand);
    gn_free(s->end_ids);
    gn_free(s->bias);
    gn_free(s);
}

void gn_sampler_reset(gn_sampler *s)
{
    s->history.n = 0;
    s->n_generated = 0;
    s->mirostat_mu = 2.0 * (double)s->params.mirostat_tau;
    s->rng.state = s->params.seed;
}

/* Room for one more token: drop what no window sees, or grow to double. */
static gn_status history_reserve(gn_sample_history *h)
{
    if (h->n < h->cap) {
        return GN_OK;
    }
    if (h->n / 2 >= h->window) {
        memmove(h->ids, h->ids + (h->n - h->window), h->window * sizeof *h->ids);
        h->n = h->window;
        return GN_OK;
    }
    size_t cap = h->cap == 0 ? FIRST_HISTORY : 2 * h->cap;
    GN_REQUIRE(cap <= INT32_MAX, GN_E_LIMIT, "sampler: the history is limited to 2^30 tokens");
    int32_t *ids = gn_realloc_array(h->ids, cap, sizeof *ids);
    if (ids == NULL) {
        return gn_alloc_failed();
    }
    h->ids = ids;
    int32_t *matches = gn_realloc_array(h->matches, cap, sizeof *matches);
    if (matches == NULL) {
        return gn_alloc_failed();
    }
    h->matches = matches;
    h->cap = cap;
    return GN_OK;
}

gn_status gn_sampler_accept(gn_sampler *s, int32_t id, bool generated)
{
    GN_REQUIRE(id >= 0 && id < s->n_vocab, GN_E_ARG, "token: found id %d, expected 0 to %d", id,
               s->n_vocab - 1);
    if (s->history.window != 0) {
        GN_TRY(history_reserve(&s->history));
        s->history.ids[s->history.n++] = id;
    }
    if (generated && s->n_generated < INT32_MAX) {
        s->n_generated++;
    }
    return GN_OK;
}

static gn_status check_logits(const float *logits, size_t n)
{
    bool ok = true;
    for (size_t i = 0; i < n; i++) {
        ok &= logits[i] < INFINITY; /* false for NaN too */
    }
    for (size_t i = 0; !ok && i < n; i++) {
        GN_REQUIRE(logits[i] < INFINITY, GN_E_FORMAT, "logit of token %zu is %s", i,
                   isnan(logits[i]) ? "NaN" : "infinite");
    }
    return GN_OK;
}

static bool allowed(const uint32_t *mask, size_t id)
{
    return mask == NULL || (mask[id / 32] >> (id % 32) & 1u) != 0;
}

static gn_status nothing_allowed(void)
{
    return gn_base_fail(GN_E_REFUSED, "no token is allowed here");
}

static gn_status pick_greedy(const float *logits, size_t n, const uint32_t *mask, int32_t *out)
{
    float best = -INFINITY;
    size_t best_id = n;
    for (size_t i = 0; i < n; i++) {
        if (logits[i] > best && allowed(mask, i)) {
            best = logits[i];
            best_id = i;
        }
    }
    if (best_id == n) {
        return nothing_allowed();
    }
    *out = (int32_t)best_id;
    return GN_OK;
}

/* Draw from the set with probability proportional to e^(logit / temperature): find the block of weights in
 * which the drawn share of the total lies, then the candidate in it. */
static size_t draw(gn_sampler *s, const gn_cand_set *set, double temperature)
{
    double max = gn_cand_max(set);
    double total = gn_cand_sum(set->c, set->n, max, temperature, s->block_sums);
    double left = gn_rng_uniform(&s->rng) * total;
    size_t block = 0;
    size_t last_block = (set->n - 1) / GN_CAND_BLOCK;
    while (block < last_block && left >= s->block_sums[block]) {
        left -= s->block_sums[block];
        block++;
    }
    size_t start = block * GN_CAND_BLOCK;
    size_t len = set->n - start < GN_CAND_BLOCK ? set->n - start : GN_CAND_BLOCK;
    double weights[GN_CAND_BLOCK];
    gn_cand_weights(set->c + start, len, max, temperature, weights);
    size_t i = 0;
    while (i + 1 < len && left >= weights[i]) {
        left -= weights[i];
        i++;
    }
    return start + i;
}

/* S. Basu et al., "Mirostat" (2021), algorithm 2: keep the tokens with a surprise −log2 p ≤ μ, draw, and
 * move μ against the error of the surprise observed. The surprise is taken from the whole distribution, as
 * in the paper and its authors' code (llama.cpp takes it from the distribution that is left). */
static size_t draw_mirostat(gn_sampler *s, gn_cand_set *set, double temperature)
{
    double max = gn_cand_max(set);
    double log_total = gn_sample_log(gn_cand_sum(set->c, set->n, max, temperature, NULL));
    double ln2 = GN_SAMPLE_LN2_HI + GN_SAMPLE_LN2_LO;
    double bound = max + temperature * (log_total - s->mirostat_mu * ln2);
    gn_cand_keep_from(set, bound < max ? bound : max);
    size_t i = draw(s, set, temperature);
    double log_p = ((double)set->c[i].logprob - max) / temperature - log_total;
    s->mirostat_mu -=
        (double)s->params.mirostat_eta * (-log_p / ln2 - (double)s->params.mirostat_tau);
    return i;
}

static void collect(gn_sampler *s, const float *logits, const uint32_t *mask, gn_cand_set *set)
{
    size_t n = 0;
    for (size_t i = 0; i < (size_t)s->n_vocab; i++) {
        if (logits[i] != -INFINITY && allowed(mask, i)) {
            s->cand[n++] = (gn_logprob){.id = (int32_t)i, .logprob = logits[i]};
        }
    }
    *set = (gn_cand_set){.c = s->cand, .n = n};
}

gn_status gn_sampler_pick(gn_sampler *s, const float *logits, const uint32_t *mask, int32_t *out)
{
    size_t n = (size_t)s->n_vocab;
    GN_TRY(check_logits(logits, n));
    if (gn_sample_adjusts(s)) {
        memcpy(s->work, logits, n * sizeof *logits);
        gn_sample_adjust(s);
        logits = s->work;
    }
    double temperature = (double)s->params.temperature;
    if (temperature <= 0.0) {
        return pick_greedy(logits, n, mask, out);
    }
    gn_cand_set set;
    collect(s, logits, mask, &set);
    if (set.n == 0) {
        return nothing_allowed();
    }
    size_t i;
    if (s->params.mirostat_tau > 0.0F) {
        i = draw_mirostat(s, &set, temperature);
    } else {
        gn_sample_filter(s, logits, &set);
        i = draw(s, &set, temperature);
    }
    *out = set.c[i].id;
    return GN_OK;
}
