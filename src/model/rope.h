/* Angles of the rotary embedding (Su et al. 2021) and its context extensions: linear (Chen et al. 2023),
 * YaRN (Peng et al. 2023), Llama 3's by wavelength, LongRoPE (Ding et al. 2024). A table holds the inverse
 * frequencies; the cosines and sines of a position follow from them alone. */
#ifndef GN_MODEL_ROPE_H
#define GN_MODEL_ROPE_H

#include "model/hparams.h"

typedef struct gn_rope {
    uint32_t n_pairs;
    float *inv_freq;      /* [n_pairs] */
    float *inv_freq_long; /* [n_pairs], LongRoPE beyond the original context; else NULL */
    float mscale;         /* cos and sin are multiplied by it */
} gn_rope;

/* factors, factors_long: divisors of the frequencies [n_rot / 2] that came with the file (GGUF's rope_freqs
 * and rope_factors tensors), or NULL. GN_E_FORMAT, GN_E_NOMEM. */
GN_MUST_USE gn_status gn_rope_init(gn_rope *rope, const gn_rope_params *params, uint32_t n_rot,
                                   uint32_t n_ctx, const float *factors, const float *factors_long);
void gn_rope_fini(gn_rope *rope);

/* cos and sin [n_pairs] at a position. The angle is the f32 product of position and inverse frequency. */
void gn_rope_angles(const gn_rope *rope, uint32_t pos, bool long_context, float *cos, float *sin);

#endif
