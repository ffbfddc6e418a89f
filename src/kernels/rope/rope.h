/* Rotary position embedding (Su et al. 2021) of one head, in place, with the angles' cosines and
 * sines given. Both are SAME: each pair (a, b) turns into
 *   a' = fmaf(a, c, -(b * s))      b' = fmaf(b, c, a * s)
 * Alignment and NaN: see kernels/vec/vec.h.
 *
 * x        the head's first n_rot elements; the rest of the head is not touched
 * n_rot    even
 * cos, sin [n_rot / 2], one angle a pair, ascending */
#ifndef GN_KERNELS_ROPE_ROPE_H
#define GN_KERNELS_ROPE_ROPE_H

#include "base/attr.h"

#include <stddef.h>

/* Pairs of neighbours: (x[2i], x[2i+1]). */
typedef void gn_k_rope_norm_fn(float *x, size_t n_rot, const float *cos, const float *sin);

/* Pairs half a head apart: (x[i], x[i + n_rot/2]). */
typedef void gn_k_rope_neox_fn(float *x, size_t n_rot, const float *cos, const float *sin);

#define GN_KERNEL_OP(op, CLASS)       gn_k_##op##_fn gn_k_##op##_ref;
#define GN_KERNEL(op, variant, level) gn_k_##op##_fn gn_k_##op##_##variant;
#include "kernels/rope/kernels.inc"
#undef GN_KERNEL_OP
#undef GN_KERNEL

#endif
