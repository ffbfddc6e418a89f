/* The inside of a gn_sampler, shared by the files of sample/ alone. */
#ifndef GN_SAMPLE_SAMPLER_H
#define GN_SAMPLE_SAMPLER_H

#include "base/rng.h"
#include "sample/cand.h"

/* The recent tokens, oldest first, as one run: ids[0 .. n). At least the last `window` tokens are there. */
typedef struct gn_sample_history {
    int32_t *ids; /* [cap] */
    int32_t
        *matches; /* [cap]: DRY's scratch, sized with the history so that pick allocates nothing */
    size_t n;
    size_t cap;
    size_t window; /* tokens that someone looks at; 0: nobody; SIZE_MAX: all */
} gn_sample_history;

struct gn_sampler {
    gn_sample_params params; /* its pointers point into this sampler's own copies */
    int32_t n_vocab;

    gn_logit_bias *bias;   /* [params.n_logit_bias] */
    int32_t *end_ids;      /* [params.n_end_ids] */
    uint32_t *breaker_set; /* bit id: a DRY breaker; NULL where DRY is off */

    gn_logprob *cand;   /* [n_vocab] */
    float *work;        /* [n_vocab]: logits after bias, bans and penalties */
    int32_t *per_id;    /* [n_vocab]: zero between uses; NULL where no penalty needs it */
    double *block_sums; /* [n_vocab / GN_CAND_BLOCK, rounded up] */

    gn_sample_history history;
    int32_t n_generated; /* holds at INT32_MAX */
    double mirostat_mu;
    gn_rng rng;
};

/* params.c: GN_E_ARG names the first parameter out of its range. */
GN_MUST_USE gn_status gn_sample_check(const gn_sample_params *params, int32_t n_vocab);

/* penalties.c. Does anything change the logits before the filters? */
bool gn_sample_adjusts(const gn_sampler *sampler);
bool gn_sample_uses_penalties(const gn_sample_params *params);
bool gn_sample_uses_dry(const gn_sample_params *params);
/* Bias, bans, penalties and DRY, on sampler->work. Never gives NaN or +infinity. */
void gn_sample_adjust(gn_sampler *sampler);

/* filters.c: shrink a set that is not empty to one that is not empty. `logits` is what the candidates'
 * values were taken from. May draw from the random state (XTC). */
void gn_sample_filter(gn_sampler *sampler, const float *logits, gn_cand_set *set);

#endif
