/* Normalisation over simd/v16.h. */
#ifndef GN_KERNELS_NORM_NORM_SIMD_H
#define GN_KERNELS_NORM_NORM_SIMD_H

#include "kernels/norm/norm.h"
#include "kernels/simd/v16.h"

#include <math.h>

GN_INLINE void square_step(const float *x, v16 *acc, size_t j, size_t n)
{
    v16 v = v16_get(x + j, n);
    *acc = v16_fma(v, v, *acc);
}

GN_INLINE void rms_step(const float *x, v16 inv, const float *w, v16 w_add, float *y, size_t j,
                        size_t n)
{
    v16 v = v16_mul(v16_get(x + j, n), inv);
    v16_put(y + j, v16_mul(v, v16_add(v16_get(w + j, n), w_add)), n);
}

GN_INLINE void rms_bare_step(const float *x, v16 inv, float *y, size_t j, size_t n)
{
    v16_put(y + j, v16_mul(v16_get(x + j, n), inv), n);
}

void V16_FN(rmsnorm)(const float *x, size_t n, float eps, const float *w, float w_add, float *y)
{
    v16 acc = v16_set1(0.0f);
    V16_FOR(n, square_step, x, &acc);
    v16 inv = v16_set1(1.0f / sqrtf(v16_sum(acc) / (float)n + eps));
    if (w != NULL) {
        V16_FOR(n, rms_step, x, inv, w, v16_set1(w_add), y);
    } else {
        V16_FOR(n, rms_bare_step, x, inv, y);
    }
}

GN_INLINE void sum_step(const float *x, v16 *acc, size_t j, size_t n)
{
    *acc = v16_add(*acc, v16_get(x + j, n));
}

/* Lanes beyond the row are no distance from the mean. */
GN_INLINE void variance_step(const float *x, v16 mean, v16 *acc, size_t j, size_t n)
{
    v16 off = v16_sub(v16_get(x + j, n), mean);
    off = n == V16_LANES ? off : v16_first_n(off, n, v16_set1(0.0f));
    *acc = v16_fma(off, off, *acc);
}

GN_INLINE void layer_step(const float *x, v16 mean, v16 inv, const float *w, const float *b,
                          float *y, size_t j, size_t n)
{
    v16 v = v16_mul(v16_sub(v16_get(x + j, n), mean), inv);
    v16_put(y + j, v16_fma(v, v16_get(w + j, n), v16_get(b + j, n)), n);
}

GN_INLINE void layer_bare_step(const float *x, v16 mean, v16 inv, const float *w, float *y,
                               size_t j, size_t n)
{
    v16 v = v16_mul(v16_sub(v16_get(x + j, n), mean), inv);
    v16_put(y + j, v16_mul(v, v16_get(w + j, n)), n);
}

void V16_FN(layernorm)(const float *x, size_t n, float eps, const float *w, const float *b,
                       float *y)
{
    v16 acc = v16_set1(0.0f);
    V16_FOR(n, sum_step, x, &acc);
    v16 mean = v16_set1(v16_sum(acc) / (float)n);
    acc = v16_set1(0.0f);
    V16_FOR(n, variance_step, x, mean, &acc);
    v16 inv = v16_set1(1.0f / sqrtf(v16_sum(acc) / (float)n + eps));
    if (b != NULL) {
        V16_FOR(n, layer_step, x, mean, inv, w, b, y);
    } else {
        V16_FOR(n, layer_bare_step, x, mean, inv, w, y);
    }
}

#endif
