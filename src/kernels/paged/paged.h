/* Attention's two products over one page of 64 tokens of one key-value head, for all query rows that see it:
 * heads of one group, tokens of one batch. Between them the caller takes the softmax (kernels/act: max,
 * exp_sum). Alignment, overlap and NaN: see kernels/vec/vec.h.
 *
 * A page has a block of keys and a block of values. Keys lie with the tokens side by side, so that a score
 * is built in a lane and no sum crosses lanes; values lie token after token, so that a sum of values is a
 * stream. d is padded with zeros to whole vectors: a multiple of 16, for q4 of 32.
 *
 *   type   keys                         values                       scales behind the codes
 *   f32    float [d][64]                float [64][d]                -
 *   f16    binary16 [d][64]             binary16 [64][d]             -
 *   q8     int8 [d][64]                 int8 [64][d]                 float [64], one a token
 *   fp8    E4M3 [d][64]                 E4M3 [64][d]                 float [64], one a token
 *   q4     as q8                        [64][d/2] dims i | i + 16     bfloat16 [64][d/32], of values
 *
 * A q4 byte holds two codes c, low nibble first, of -8 .. 7 that stand for 2c + 1, so that all 16 values are
 * used and lie evenly around 0. An E4M3 byte is taken as the binary16 with the same fields, which is 2^-8 of
 * its value: scales are 256 times larger. Its code for NaN is not one here (it is never written).
 *
 * All are SAME, and the result of a query row depends on that row and the page alone, never on nq. */
#ifndef GN_KERNELS_PAGED_PAGED_H
#define GN_KERNELS_PAGED_PAGED_H

#include "base/attr.h"

#include <stddef.h>

enum { GN_PAGED_TOK = 64, GN_PAGED_Q4_GROUP = 32 };

/* s[i*lds + t] = scale[t] * sum_j q[j*ldq + i] * k[j][t],  i < nq, t < 64, one chain over j ascending by fmaf;
 * without the factor for f32 and f16.
 * q        queries, transposed: [d, nq], rows ldq floats apart
 * k        the page's block of keys
 * s        scores [nq, 64], rows lds floats apart; those of tokens that were never written mean nothing */
typedef void gn_k_paged_scores_fn(size_t nq, const float *q, size_t ldq, size_t d, const void *k,
                                  float *s, size_t lds);
typedef gn_k_paged_scores_fn gn_k_paged_scores_f32_fn;
typedef gn_k_paged_scores_fn gn_k_paged_scores_f16_fn;
typedef gn_k_paged_scores_fn gn_k_paged_scores_q8_fn;
typedef gn_k_paged_scores_fn gn_k_paged_scores_fp8_fn;

/* for t = begin .. end-1:  o[i*ldo + j] = fmaf(p[i*ldp + t], v[t][j], o[i*ldo + j])
 * p        weights [nq, 64], rows ldp floats apart; for q8 and fp8 the caller has multiplied them by the
 *          tokens' scales
 * v        the page's block of values; only those of the tokens named are read; q4: code times scale, rounded
 * o        sums [nq, d], rows ldo floats apart, read and written: start from 0 or a previous page */
typedef void gn_k_paged_accum_fn(size_t nq, const float *p, size_t ldp, const void *v, size_t begin,
                                 size_t end, size_t d, float *o, size_t ldo);
typedef gn_k_paged_accum_fn gn_k_paged_accum_f32_fn;
typedef gn_k_paged_accum_fn gn_k_paged_accum_f16_fn;
typedef gn_k_paged_accum_fn gn_k_paged_accum_q8_fn;
typedef gn_k_paged_accum_fn gn_k_paged_accum_fp8_fn;
typedef gn_k_paged_accum_fn gn_k_paged_accum_q4_fn;

#define GN_KERNEL_OP(op, CLASS)       gn_k_##op##_fn gn_k_##op##_ref;
#define GN_KERNEL(op, variant, level) gn_k_##op##_fn gn_k_##op##_##variant;
#include "kernels/paged/kernels.inc"
#undef GN_KERNEL_OP
#undef GN_KERNEL

#endif
