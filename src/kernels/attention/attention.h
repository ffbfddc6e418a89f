/* Attention's two products over rows of keys and values, as an encoder has them (a decoder's lie in pages:
 * kernels/paged), for all query rows that share them. Between them the caller takes the
 * softmax (kernels/act: max, exp_sum). Sums, alignment, overlap and NaN: see kernels/vec/vec.h.
 *
 * All are SAME, and the result of a query row depends on that row and the KV rows alone, never on nq.
 * Rows that may see different numbers of tokens are called apart, or in groups of equal n: a weight
 * of 0 is not the same as absence where the row of v holds an infinity or a NaN.
 *
 * The kinds of KV differ in the type behind the pointer alone, so one pointer type holds either:
 * _f16 takes IEEE binary16 (uint16_t), _f32 float.
 *
 * nq       query rows, any; d elements of a head, any (multiples of 16 are fast); n tokens, any */
#ifndef GN_KERNELS_ATTENTION_ATTENTION_H
#define GN_KERNELS_ATTENTION_ATTENTION_H

#include "base/attr.h"

#include <stddef.h>

/* s[i*lds + t] = scale * sum_j q[i*ldq + j] * k[t*ldk + j],  i < nq, t < n, j < d
 * q        queries [nq, d], rows ldq floats apart
 * k        keys [n, d], rows ldk elements apart
 * s        scores [nq, n], rows lds floats apart */
typedef void gn_k_attn_scores_fn(size_t nq, const float *q, size_t ldq, size_t d, const void *k,
                                 size_t ldk, size_t n, float scale, float *s, size_t lds);
typedef gn_k_attn_scores_fn gn_k_attn_scores_f16_fn;
typedef gn_k_attn_scores_fn gn_k_attn_scores_f32_fn;

/* for t = 0 .. n-1:  o[i*ldo + j] = fmaf(p[i*ldp + t], v[t*ldv + j], o[i*ldo + j])
 * p        weights [nq, n], rows ldp floats apart
 * v        values [n, d], rows ldv elements apart
 * o        sums [nq, d], rows ldo floats apart, read and written: start from 0 or a previous run */
typedef void gn_k_attn_accum_fn(size_t nq, const float *p, size_t ldp, const void *v, size_t ldv,
                                size_t n, size_t d, float *o, size_t ldo);
typedef gn_k_attn_accum_fn gn_k_attn_accum_f32_fn;

#define GN_KERNEL_OP(op, CLASS)       gn_k_##op##_fn gn_k_##op##_ref;
#define GN_KERNEL(op, variant, level) gn_k_##op##_fn gn_k_##op##_##variant;
#include "kernels/attention/kernels.inc"
#undef GN_KERNEL_OP
#undef GN_KERNEL

#endif
