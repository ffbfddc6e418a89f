/* Activations and the parts of a softmax. Sums, alignment, overlap and NaN: see kernels/vec/vec.h.
 * All are SAME: the exponential, the hyperbolic tangent and the error function are our own, made of
 * fmaf in a fixed order, not the C library's. Error bounds below are against the exact value and are
 * tested (tests/kernels).
 *
 * exp(x): x is clamped to [-104, 89], split as n ln 2 + r with |r| <= ln 2 / 2 (Cody and Waite), and
 * exp(r), a polynomial of degree 6, is scaled by 2^n with one rounding. Within 1.1 ulp; 0 for
 * x <= -104, -infinity included; infinity above 88.73. */
#ifndef GN_KERNELS_ACT_ACT_H
#define GN_KERNELS_ACT_ACT_H

#include "base/attr.h"

#include <stddef.h>

/* The largest of s[0 .. n-1], -infinity for n = 0; a NaN is passed over.   SAME */
typedef void gn_k_max_fn(const float *s, size_t n, float *max);

/* s[i] = exp(s[i] - max), *sum = sum_i s[i]. With max = -infinity (nothing attended to) the result
 * is NaN: the caller deals with it.   SAME */
typedef void gn_k_exp_sum_fn(float *s, size_t n, float max, float *sum);

/* y[i] = (g / (1 + exp(-g))) * up[i], g = gate[i]; y may be gate or up.   SAME, 4 ulp */
typedef void gn_k_silu_mul_fn(const float *gate, const float *up, size_t n, float *y);

/* y[i] = gelu(gate[i]) * up[i] with the tanh form 0.5 g (1 + tanh(sqrt(2/pi) (g + 0.044715 g^3))),
 * computed as g / (1 + exp(-2 u)); y may be gate or up.   SAME, gelu within 2e-7 max(1, |g|) */
typedef void gn_k_gelu_tanh_mul_fn(const float *gate, const float *up, size_t n, float *y);

/* y[i] = 0.5 x (1 + erf(x / sqrt 2)), x = x[i]; y may be x.   SAME, absolute error at most
 * 2e-7 max(1, |x|) */
typedef void gn_k_gelu_erf_fn(const float *x, size_t n, float *y);

/* x[i] = cap * tanh(x[i] / cap), cap > 0: soft-capping of scores and logits.   SAME, 4 ulp */
typedef void gn_k_tanh_cap_fn(float *x, size_t n, float cap);

#define GN_KERNEL_OP(op, CLASS)       gn_k_##op##_fn gn_k_##op##_ref;
#define GN_KERNEL(op, variant, level) gn_k_##op##_fn gn_k_##op##_##variant;
#include "kernels/act/kernels.inc"
#undef GN_KERNEL_OP
#undef GN_KERNEL

#endif
