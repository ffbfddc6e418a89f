/* From logits to a token: penalties, filters and the choice, in one fixed order. A sampler keeps the recent
 * tokens that its penalties look at and its random state; the same seed and the same logits give the same
 * tokens on every machine. One thread at a time. Sources are named at each member. */
#ifndef GANGLION_SAMPLE_H
#define GANGLION_SAMPLE_H

#include "ganglion/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gn_logit_bias {
    int32_t id;
    float bias; /* added to the logit; -INFINITY bans the token */
} gn_logit_bias;

/* Order of work: logit bias and bans (min_tokens) → repetition, presence, frequency → DRY → top-n-sigma →
 * top-k → typical → top-p → min-p → XTC → temperature → pick (or mirostat in place of the filters).
 * temperature ≤ 0 is greedy: the largest logit after penalties, the lowest id among equals. */
typedef struct gn_sample_params {
    float temperature;        /* 0 … */
    int32_t top_k;            /* ≤ 0: off */
    float top_p;              /* (0, 1]; 1: off. Holtzman et al. 2020 */
    float min_p;              /* [0, 1]; 0: off. Nguyen et al. 2024 */
    float typical_p;          /* (0, 1]; 1: off. Meister et al. 2022 */
    float top_n_sigma;        /* ≤ 0: off. Tang et al. 2024 */
    float xtc_probability;    /* [0, 1]; 0: off */
    float xtc_threshold;      /* (0, 0.5] */
    float repetition_penalty; /* > 0; 1: off. Keskar et al. 2019 */
    float presence_penalty;
    float frequency_penalty;
    int32_t penalty_last_n; /* tokens looked back at; -1: all, 0: off */
    float dry_multiplier;   /* 0: off */
    float dry_base;
    int32_t dry_allowed_length;
    int32_t dry_last_n;          /* -1: all */
    const int32_t *dry_breakers; /* ids that end a repeated sequence; copied */
    size_t n_dry_breakers;
    float mirostat_tau; /* 0: off; else mirostat 2 (Basu et al. 2021) with target surprise tau */
    float mirostat_eta;
    const gn_logit_bias *logit_bias; /* copied */
    size_t n_logit_bias;
    const int32_t
        *end_ids; /* banned until min_tokens were accepted, or always if ignore_eos; copied */
    size_t n_end_ids;
    int32_t min_tokens;
    bool ignore_eos;
    uint64_t seed;
} gn_sample_params;

/* The neutral set: temperature 1, everything else off, seed 0. */
GN_API gn_sample_params gn_sample_defaults(void);

typedef struct gn_sampler gn_sampler;

/* GN_E_ARG names the parameter, the value found and the range expected (NaN and infinity are refused). */
GN_MUST_USE GN_API gn_status gn_sampler_create(const gn_sample_params *params, int32_t n_vocab,
                                               gn_sampler **out);
GN_API void gn_sampler_destroy(gn_sampler *sampler);
/* Back to the state after creation, history and random state included. */
GN_API void gn_sampler_reset(gn_sampler *sampler);

/* Tell the sampler a token that is in the context (prompt or output); `generated` counts towards
 * min_tokens. */
GN_MUST_USE GN_API gn_status gn_sampler_accept(gn_sampler *sampler, int32_t id, bool generated);

/* Choose from logits [n_vocab], which is not changed. mask (may be NULL): bit id of mask[id / 32] set means
 * allowed. Does not call accept. GN_E_FORMAT: a logit is NaN or +infinity; GN_E_REFUSED: nothing is allowed. */
GN_MUST_USE GN_API gn_status gn_sampler_pick(gn_sampler *sampler, const float *logits,
                                             const uint32_t *mask, int32_t *out);

typedef struct gn_logprob {
    int32_t id;
    float logprob; /* natural logarithm over the full vocabulary */
} gn_logprob;

/* The k best of logits [n], best first, the lower id first among equals; k ≤ n. */
GN_MUST_USE GN_API gn_status gn_sample_top_logprobs(const float *logits, int32_t n, int32_t k,
                                                    gn_logprob *out);
/* log Σ exp(logits) in double, from the largest logit; exact to float precision. */
GN_API double gn_sample_logsumexp(const float *logits, int32_t n);

/* Stop strings: feed text as it comes; a stop string, or the start of one, is held back and never shown.
 * strings are copied. */
typedef struct gn_stop gn_stop;
GN_MUST_USE GN_API gn_status gn_stop_create(const char *const *strings, const size_t *lens,
                                            size_t n, gn_stop **out);
GN_API void gn_stop_destroy(gn_stop *stop);
/* Feed `text`; *emit bytes of the internal pending text may be shown now: they are at gn_stop_text() until
 * the next call. *hit is the index of the stop string reached (nothing after it is ever shown), or -1. */
GN_MUST_USE GN_API gn_status gn_stop_push(gn_stop *stop, const char *text, size_t len, size_t *emit,
                                          int32_t *hit);
GN_API const char *gn_stop_text(const gn_stop *stop);
/* The end came without a stop string: what was held may be shown now. */
GN_API size_t gn_stop_flush(gn_stop *stop);

#ifdef __cplusplus
}
#endif
#endif
