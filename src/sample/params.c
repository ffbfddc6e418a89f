/* Sampling parameters: the neutral set, and the check that gives each value its range. */
#include "sample/sampler.h"

#include "base/status.h"

#include <math.h>

gn_sample_params gn_sample_defaults(void)
{
    return (gn_sample_params){
        .temperature = 1.0F,
        .top_p = 1.0F,
        .typical_p = 1.0F,
        .xtc_threshold = 0.1F,
        .repetition_penalty = 1.0F,
        .penalty_last_n = 64,
        .dry_base = 1.75F,
        .dry_allowed_length = 2,
        .dry_last_n = -1,
        .mirostat_eta = 0.1F,
    };
}

/* A finite number in [low, high], or in (low, high] if `open`. */
static gn_status check_number(const char *name, float value, float low, bool open, float high,
                              const char *range)
{
    bool ok = isfinite(value) && value <= high && (open ? value > low : value >= low);
    GN_REQUIRE(ok, GN_E_ARG, "%s: found %g, expected %s", name, (double)value, range);
    return GN_OK;
}

static gn_status check_int(const char *name, int32_t value, int32_t low)
{
    GN_REQUIRE(value >= low, GN_E_ARG, "%s: found %d, expected %d or more", name, value, low);
    return GN_OK;
}

static gn_status check_ids(const char *name, const int32_t *ids, size_t n, int32_t n_vocab)
{
    GN_REQUIRE(ids != NULL || n == 0, GN_E_ARG, "%s: found NULL, expected %zu ids", name, n);
    for (size_t i = 0; i < n; i++) {
        GN_REQUIRE(ids[i] >= 0 && ids[i] < n_vocab, GN_E_ARG,
                   "%s[%zu]: found id %d, expected 0 to %d", name, i, ids[i], n_vocab - 1);
    }
    return GN_OK;
}

static gn_status check_bias(const gn_sample_params *p, int32_t n_vocab)
{
    GN_REQUIRE(p->logit_bias != NULL || p->n_logit_bias == 0, GN_E_ARG,
               "logit_bias: found NULL, expected %zu entries", p->n_logit_bias);
    for (size_t i = 0; i < p->n_logit_bias; i++) {
        const gn_logit_bias *b = &p->logit_bias[i];
        GN_REQUIRE(b->id >= 0 && b->id < n_vocab, GN_E_ARG,
                   "logit_bias[%zu]: found id %d, expected 0 to %d", i, b->id, n_vocab - 1);
        GN_REQUIRE(isfinite(b->bias) || b->bias == -INFINITY, GN_E_ARG,
                   "logit_bias[%zu]: found %g for id %d, expected a number or -infinity", i,
                   (double)b->bias, b->id);
    }
    return GN_OK;
}

gn_status gn_sample_check(const gn_sample_params *p, int32_t n_vocab)
{
    static const char number[] = "a finite number";
    static const char not_negative[] = "a finite number of 0 or more";
    static const char share[] = "a number from 0 to 1";
    static const char part[] = "a number above 0, up to 1";
    const float max = 3.402823466e+38F;
    GN_REQUIRE(n_vocab >= 1, GN_E_ARG, "n_vocab: found %d, expected 1 or more", n_vocab);
    GN_TRY(check_number("temperature", p->temperature, -max, false, max, number));
    GN_TRY(check_number("top_p", p->top_p, 0.0F, true, 1.0F, part));
    GN_TRY(check_number("min_p", p->min_p, 0.0F, false, 1.0F, share));
    GN_TRY(check_number("typical_p", p->typical_p, 0.0F, true, 1.0F, part));
    GN_TRY(check_number("top_n_sigma", p->top_n_sigma, -max, false, max, number));
    GN_TRY(check_number("xtc_probability", p->xtc_probability, 0.0F, false, 1.0F, share));
    GN_TRY(check_number("xtc_threshold", p->xtc_threshold, 0.0F, true, 0.5F,
                        "a number above 0, up to 0.5"));
    GN_TRY(check_number("repetition_penalty", p->repetition_penalty, 0.0F, true, max,
                        "a finite number above 0"));
    GN_TRY(check_number("presence_penalty", p->presence_penalty, -max, false, max, number));
    GN_TRY(check_number("frequency_penalty", p->frequency_penalty, -max, false, max, number));
    GN_TRY(check_int("penalty_last_n", p->penalty_last_n, -1));
    GN_TRY(check_number("dry_multiplier", p->dry_multiplier, 0.0F, false, max, not_negative));
    GN_TRY(check_number("dry_base", p->dry_base, 1.0F, false, max, "a finite number of 1 or more"));
    GN_TRY(check_int("dry_allowed_length", p->dry_allowed_length, 1));
    GN_TRY(check_int("dry_last_n", p->dry_last_n, -1));
    GN_TRY(check_number("mirostat_tau", p->mirostat_tau, 0.0F, false, max, not_negative));
    GN_TRY(check_number("mirostat_eta", p->mirostat_eta, 0.0F, false, max, not_negative));
    GN_TRY(check_int("min_tokens", p->min_tokens, 0));
    GN_TRY(check_bias(p, n_vocab));
    GN_TRY(check_ids("end_ids", p->end_ids, p->n_end_ids, n_vocab));
    return check_ids("dry_breakers", p->dry_breakers, p->n_dry_breakers, n_vocab);
}
