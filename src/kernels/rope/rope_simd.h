/* Rotary position embedding over simd/v16.h. */
#ifndef GN_KERNELS_ROPE_ROPE_SIMD_H
#define GN_KERNELS_ROPE_ROPE_SIMD_H

#include "kernels/rope/rope.h"
#include "kernels/simd/v16.h"

#include <string.h>

GN_INLINE void rotate(v16 *a, v16 *b, v16 c, v16 s)
{
    v16 a0 = *a;
    *a = v16_fms(a0, c, v16_mul(*b, s));
    *b = v16_fma(*b, c, v16_mul(a0, s));
}

GN_INLINE void norm_step(float *x, const float *cos, const float *sin, size_t j, size_t n)
{
    float padded[2 * V16_LANES] = {0};
    float *pairs = x + 2 * j;
    if (n < V16_LANES) {
        memcpy(padded, pairs, 2 * n * sizeof *x);
        pairs = padded;
    }
    v16 a;
    v16 b;
    v16_load_pairs(pairs, &a, &b);
    rotate(&a, &b, v16_get(cos + j, n), v16_get(sin + j, n));
    v16_store_pairs(pairs, a, b);
    if (n < V16_LANES) {
        memcpy(x + 2 * j, padded, 2 * n * sizeof *x);
    }
}

void V16_FN(rope_norm)(float *x, size_t n_rot, const float *cos, const float *sin)
{
    V16_FOR(n_rot / 2, norm_step, x, cos, sin);
}

GN_INLINE void neox_step(float *low, float *high, const float *cos, const float *sin, size_t j,
                         size_t n)
{
    v16 a = v16_get(low + j, n);
    v16 b = v16_get(high + j, n);
    rotate(&a, &b, v16_get(cos + j, n), v16_get(sin + j, n));
    v16_put(low + j, a, n);
    v16_put(high + j, b, n);
}

void V16_FN(rope_neox)(float *x, size_t n_rot, const float *cos, const float *sin)
{
    V16_FOR(n_rot / 2, neox_step, x, x + n_rot / 2, cos, sin);
}

#endif
