/* Attention's two products in plain C: the meaning of each op. */
#include "kernels/attention/attention.h"

#include "kernels/simd/half.h"
#include "kernels/simd/lanes.h"

#include <math.h>
#include <stdint.h>

void gn_k_attn_scores_f16_ref(size_t nq, const float *q, size_t ldq, size_t d, const void *k,
                              size_t ldk, size_t n, float scale, float *s, size_t lds)
{
    for (size_t i = 0; i < nq; i++) {
        for (size_t t = 0; t < n; t++) {
            const uint16_t *key = (const uint16_t *)k + t * ldk;
            float chain[LANES] = {0};
            for (size_t j = 0; j < lanes_padded(d); j++) {
                float kj = j < d ? gn_f32_from_f16(key[j]) : 0.0f;
                chain[j % LANES] = fmaf(lanes_at(q + i * ldq, j, d), kj, chain[j % LANES]);
            }
            s[i * lds + t] = lanes_sum(chain) * scale;
        }
    }
}

void gn_k_attn_scores_f32_ref(size_t nq, const float *q, size_t ldq, size_t d, const void *k,
                              size_t ldk, size_t n, float scale, float *s, size_t lds)
{
    for (size_t i = 0; i < nq; i++) {
        for (size_t t = 0; t < n; t++) {
            s[i * lds + t] = lanes_dot(q + i * ldq, (const float *)k + t * ldk, d) * scale;
        }
    }
}

void gn_k_attn_accum_f32_ref(size_t nq, const float *p, size_t ldp, const void *v, size_t ldv,
                             size_t n, size_t d, float *o, size_t ldo)
{
    for (size_t i = 0; i < nq; i++) {
        for (size_t t = 0; t < n; t++) {
            const float *value = (const float *)v + t * ldv;
            for (size_t j = 0; j < d; j++) {
                float *out = &o[i * ldo + j];
                *out = fmaf(p[i * ldp + t], value[j], *out);
            }
        }
    }
}
