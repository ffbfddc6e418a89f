/* What changes logits before any filter: bias, bans of end tokens, repetition penalties, DRY.
 *
 * All work on sampler->work. A logit that is -infinity (banned) stays so; every other result is held to
 * the finite floats, so that a huge penalty makes a token the last choice but never leaves no choice. */
#include "sample/sampler.h"

#include <assert.h>
#include <float.h>
#include <math.h>

static float hold_finite(double x)
{
    if (x > (double)FLT_MAX) {
        return FLT_MAX;
    }
    return x < -(double)FLT_MAX ? -FLT_MAX : (float)x;
}

static void add(float *logit, double value)
{
    if (*logit != -INFINITY) {
        *logit = hold_finite((double)*logit + value);
    }
}

bool gn_sample_uses_penalties(const gn_sample_params *p)
{
    return p->penalty_last_n != 0 && (p->repetition_penalty != 1.0F ||
                                      p->presence_penalty != 0.0F || p->frequency_penalty != 0.0F);
}

bool gn_sample_uses_dry(const gn_sample_params *p)
{
    return p->dry_multiplier > 0.0F && p->dry_last_n != 0;
}

static bool bans_end(const gn_sampler *s)
{
    return s->params.n_end_ids != 0 &&
           (s->params.ignore_eos || s->n_generated < s->params.min_tokens);
}

bool gn_sample_adjusts(const gn_sampler *s)
{
    return s->params.n_logit_bias != 0 || bans_end(s) ||
           (s->history.n != 0 &&
            (gn_sample_uses_penalties(&s->params) || gn_sample_uses_dry(&s->params)));
}

/* The last tokens of the history: at most `last_n`, -1 for all. */
static const int32_t *last_tokens(const gn_sampler *s, int32_t last_n, size_t *n)
{
    *n = s->history.n;
    if (last_n >= 0 && *n > (size_t)last_n) {
        *n = (size_t)last_n;
    }
    return s->history.ids + (s->history.n - *n);
}

/* Repetition: N. S. Keskar et al., "CTRL" (2019), section 4.1, divides the logit of a token that occurred
 * by θ. That favours tokens with a negative logit, so these are multiplied instead, as transformers does.
 * Presence and frequency: logit − count · frequency − presence, OpenAI's API reference. */
static void penalise_repeats(gn_sampler *s)
{
    const gn_sample_params *p = &s->params;
    size_t n;
    const int32_t *ids = last_tokens(s, p->penalty_last_n, &n);
    for (size_t i = 0; i < n; i++) {
        s->per_id[ids[i]]++;
    }
    double theta = (double)p->repetition_penalty;
    for (size_t i = 0; i < n; i++) {
        int32_t id = ids[i];
        int32_t count = s->per_id[id];
        if (count == 0) {
            continue; /* an earlier occurrence settled this id */
        }
        s->per_id[id] = 0;
        if (s->work[id] == -INFINITY) {
            continue;
        }
        double logit = (double)s->work[id];
        logit = logit > 0.0 ? logit / theta : logit * theta;
        logit -= (double)count * (double)p->frequency_penalty + (double)p->presence_penalty;
        s->work[id] = hold_finite(logit);
    }
}

static bool is_breaker(const gn_sampler *s, int32_t id)
{
    return (s->breaker_set[(uint32_t)id / 32] >> ((uint32_t)id % 32) & 1u) != 0;
}

/* base^n by squaring: the same bits on every machine, infinity where it overflows. */
static double power(double base, int32_t n)
{
    double result = 1.0;
    for (; n > 0; n >>= 1) {
        result = (n & 1) != 0 ? result * base : result;
        base *= base;
    }
    return result;
}

/* z[k], 1 ≤ k < n: how many tokens that end k tokens before the end equal the tokens at the end. This is
 * the Z function of the reversed sequence (D. Gusfield, "Algorithms on Strings, Trees and Sequences",
 * 1997, section 1.4), O(n). */
static void suffix_matches(const int32_t *ids, size_t n, int32_t *z)
{
    const int32_t *last = ids + n - 1;
    size_t left = 0;
    size_t right =
        0; /* last[-left .. -right) equals the end: the match that reaches furthest back */
    for (size_t k = 1; k < n; k++) {
        size_t len = 0;
        if (k < right) {
            size_t known = (size_t)z[k - left];
            len = known < right - k ? known : right - k;
        }
        while (k + len < n && *(last - len) == *(last - k - len)) {
            len++;
        }
        z[k] = (int32_t)len;
        if (k + len > right) {
            left = k;
            right = k + len;
        }
    }
}

/* DRY ("don't repeat yourself"): p-e-w, text-generation-webui pull request 5677 (2024). A token that would
 * make a repeated sequence of n ≥ allowed_length tokens longer loses multiplier · base^(n − allowed_length).
 * A breaker ends a sequence: no match reaches over the last one, and a breaker itself is not penalised. */
static void penalise_sequences(gn_sampler *s)
{
    const gn_sample_params *p = &s->params;
    size_t n;
    const int32_t *ids = last_tokens(s, p->dry_last_n, &n);
    size_t limit = 0; /* tokens since the last breaker */
    while (limit < n && !is_breaker(s, ids[n - 1 - limit])) {
        limit++;
    }
    if (n < 2 || limit < (size_t)p->dry_allowed_length) {
        return;
    }
    int32_t *z = s->history.matches;
    suffix_matches(ids, n, z);
    for (size_t k = 1; k < n; k++) {
        int32_t len = (size_t)z[k] < limit ? z[k] : (int32_t)limit;
        int32_t next = ids[n - k];
        if (len >= p->dry_allowed_length && len > s->per_id[next] && !is_breaker(s, next)) {
            s->per_id[next] = len;
        }
    }
    for (size_t k = 1; k < n; k++) {
        int32_t next = ids[n - k];
        int32_t len = s->per_id[next];
        if (len != 0) {
            s->per_id[next] = 0;
            add(&s->work[next], -(double)p->dry_multiplier *
                                    power((double)p->dry_base, len - p->dry_allowed_length));
        }
    }
}

void gn_sample_adjust(gn_sampler *s)
{
    const gn_sample_params *p = &s->params;
    for (size_t i = 0; i < p->n_logit_bias; i++) {
        if (p->logit_bias[i].bias == -INFINITY) {
            s->work[p->logit_bias[i].id] = -INFINITY;
        } else {
            add(&s->work[p->logit_bias[i].id], (double)p->logit_bias[i].bias);
        }
    }
    if (bans_end(s)) {
        for (size_t i = 0; i < p->n_end_ids; i++) {
            s->work[p->end_ids[i]] = -INFINITY;
        }
    }
    if (gn_sample_uses_penalties(p)) {
        penalise_repeats(s);
    }
    if (gn_sample_uses_dry(p)) {
        penalise_sequences(s);
    }
}
