/* The fixed order of sums (kernels/vec/vec.h) in plain C, for the reference kernels alone: what
 * simd/v16_*.h do in registers is written out here with 16 explicit chains. */
#ifndef GN_KERNELS_SIMD_LANES_H
#define GN_KERNELS_SIMD_LANES_H

#include "base/attr.h"

#include <math.h>
#include <stddef.h>

enum { LANES = 16 };

/* n rounded up to whole rounds over the chains: where a padded row ends. */
GN_INLINE size_t lanes_padded(size_t n)
{
    return (n + LANES - 1) / LANES * LANES;
}

/* x[j], or the +0 that pads the row. */
GN_INLINE float lanes_at(const float *x, size_t j, size_t n)
{
    return j < n ? x[j] : 0.0f;
}

/* The closing tree; the chains are used up. */
GN_INLINE float lanes_sum(float *chain)
{
    for (size_t half = LANES / 2; half > 0; half /= 2) {
        for (size_t i = 0; i < half; i++) {
            chain[i] += chain[i + half];
        }
    }
    return chain[0];
}

/* sum_j x[j] * y[j] */
GN_INLINE float lanes_dot(const float *x, const float *y, size_t n)
{
    float chain[LANES] = {0};
    for (size_t j = 0; j < lanes_padded(n); j++) {
        chain[j % LANES] = fmaf(lanes_at(x, j, n), lanes_at(y, j, n), chain[j % LANES]);
    }
    return lanes_sum(chain);
}

#endif
