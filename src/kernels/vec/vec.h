/* Vector helpers, conversions between float formats, and the float matrix product.
 *
 * Order of sums. Every float reduction of the kernels, here and in norm/, act/ and attention/, has one
 * fixed order, so that each level gives the same bits: element j is added to chain j mod 16 in
 * ascending order (products with fmaf), the row counts as padded with +0 to a multiple of 16, and the
 * 16 chains are added as l[i] + l[i+8], then i+4, i+2, i+1.
 *
 * Pointers need the alignment of their element only. Nothing is read or written past the stated
 * counts; a count of 0 is allowed. Outputs do not overlap inputs unless stated. A NaN in the input
 * gives a NaN wherever it takes part in the result; its sign and payload are not specified.
 * Reentrant, no state. */
#ifndef GN_KERNELS_VEC_VEC_H
#define GN_KERNELS_VEC_VEC_H

#include "base/attr.h"

#include <stddef.h>
#include <stdint.h>

/* y[i*ldy + r] = sum_j w[r*ldw + j] * x[i*ldx + j],  r < n_rows, i < m, j < k.   SAME
 * The value of one output depends on its own row of w and of x alone, never on n_rows or m.
 * k        length of the sum; any
 * w        weights [n_rows, k], rows ldw floats apart
 * x        activations [m, k], rows ldx floats apart
 * y        result [m, n_rows], rows ldy floats apart */
typedef void gn_k_matmul_f32_fn(size_t k, const float *w, size_t n_rows, size_t ldw, size_t m,
                                const float *x, size_t ldx, float *y, size_t ldy);

/* y[i] = (float)x[i], IEEE binary16 to binary32, denormals kept, a signalling NaN made quiet.   EXACT */
typedef void gn_k_f16_to_f32_fn(const uint16_t *x, size_t n, float *y);

/* y[i] = (binary16)x[i], round to nearest even, denormals kept; beyond the range infinity. A NaN
 * stays a quiet NaN with its sign and the upper bits of its payload.   EXACT */
typedef void gn_k_f32_to_f16_fn(const float *x, size_t n, uint16_t *y);

/* y[i] = x[i] as the upper half of a binary32.   EXACT */
typedef void gn_k_bf16_to_f32_fn(const uint16_t *x, size_t n, float *y);

/* y[i] = y[i] + x[i]; x may be y.   SAME */
typedef void gn_k_add_fn(float *y, const float *x, size_t n);

/* y[i] = y[i] * x[i]; x may be y.   SAME */
typedef void gn_k_mul_fn(float *y, const float *x, size_t n);

/* y[i] = y[i] * a.   SAME */
typedef void gn_k_scale_fn(float *y, size_t n, float a);

/* y[i] = fmaf(a, x[i], y[i]).   SAME */
typedef void gn_k_axpy_fn(float *y, const float *x, size_t n, float a);

/* *sum = sum_j x[j] modulo 2^32.   EXACT
 * For measuring how fast memory is read: lines are asked for ahead, as the products of packed weights do. */
typedef void gn_k_sum_u32_fn(const uint32_t *x, size_t n, uint32_t *sum);

#define GN_KERNEL_OP(op, CLASS)       gn_k_##op##_fn gn_k_##op##_ref;
#define GN_KERNEL(op, variant, level) gn_k_##op##_fn gn_k_##op##_##variant;
#include "kernels/vec/kernels.inc"
#undef GN_KERNEL_OP
#undef GN_KERNEL

#endif
