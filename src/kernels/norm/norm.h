/* Normalisation of one row. Sums, alignment, overlap and NaN: see kernels/vec/vec.h. Both are SAME. */
#ifndef GN_KERNELS_NORM_NORM_H
#define GN_KERNELS_NORM_NORM_H

#include "base/attr.h"

#include <stddef.h>

/* Root mean square (Zhang and Sennrich 2019):
 *   inv  = 1 / sqrtf(sum_j x[j]^2 / n + eps)
 *   y[j] = (x[j] * inv) * (w[j] + w_add)        or x[j] * inv where w is NULL
 * x        row [n]; n 1 .. 2^24
 * w        weights [n], or NULL for none
 * w_add    0, or 1 for models that store the weight minus one
 * y        result [n]; may be x */
typedef void gn_k_rmsnorm_fn(const float *x, size_t n, float eps, const float *w, float w_add,
                             float *y);

/* Layer norm (Ba, Kiros and Hinton 2016), the variance taken around the mean in a second pass:
 *   mean = sum_j x[j] / n
 *   inv  = 1 / sqrtf(sum_j (x[j] - mean)^2 / n + eps)
 *   y[j] = fmaf((x[j] - mean) * inv, w[j], b[j])
 * x        row [n]; n 1 .. 2^24
 * w, b     weights and bias [n]; b may be NULL (the product alone)
 * y        result [n]; may be x */
typedef void gn_k_layernorm_fn(const float *x, size_t n, float eps, const float *w, const float *b,
                               float *y);

#define GN_KERNEL_OP(op, CLASS)       gn_k_##op##_fn gn_k_##op##_ref;
#define GN_KERNEL(op, variant, level) gn_k_##op##_fn gn_k_##op##_##variant;
#include "kernels/norm/kernels.inc"
#undef GN_KERNEL_OP
#undef GN_KERNEL

#endif
