/* Attention's two products over simd/v16.h.
 *
 * Scores are the products of simd/v16_dots.h. Sums keep R query rows by C vectors of the head in
 * registers, R x C <= V16_TILE, and run over all tokens, so that each value loaded, and converted,
 * serves R rows and each sum is read and written once. */
#ifndef GN_KERNELS_ATTENTION_ATTENTION_SIMD_H
#define GN_KERNELS_ATTENTION_ATTENTION_SIMD_H

#include "kernels/attention/attention.h"
#include "kernels/simd/v16.h"
#include "kernels/simd/v16_dots.h"

GN_INLINE void scores(bool half, size_t nq, const float *q, size_t ldq, size_t d, const void *k,
                      size_t ldk, size_t n, float scale, float *s, size_t lds)
{
    for (size_t i = 0; i < nq; i += V16_ROWS) {
        size_t rows = nq - i < V16_ROWS ? nq - i : V16_ROWS;
        V16_WITH_ROWS(rows, v16_dots_rows, half, q + i * ldq, ldq, d, k, ldk, n, scale, s + i * lds,
                      lds);
    }
}

void V16_FN(attn_scores_f16)(size_t nq, const float *q, size_t ldq, size_t d, const void *k,
                             size_t ldk, size_t n, float scale, float *s, size_t lds)
{
    scores(true, nq, q, ldq, d, k, ldk, n, scale, s, lds);
}

void V16_FN(attn_scores_f32)(size_t nq, const float *q, size_t ldq, size_t d, const void *k,
                             size_t ldk, size_t n, float scale, float *s, size_t lds)
{
    scores(false, nq, q, ldq, d, k, ldk, n, scale, s, lds);
}

/* One tile over all tokens: the vectors j, j + 16 … of `rows` sums; the last, or only, has `count`
 * elements. */
GN_INLINE void accum_tile(size_t rows, size_t width, bool half, const float *p, size_t ldp,
                          const void *v, size_t ldv, size_t n, float *o, size_t ldo, size_t count)
{
    v16 acc[V16_TILE];
    V16_UNROLL
    for (size_t r = 0; r < rows; r++) {
        V16_UNROLL
        for (size_t c = 0; c < width; c++) {
            acc[r * width + c] = v16_get(o + r * ldo + V16_LANES * c, count);
        }
    }
    for (size_t t = 0; t < n; t++) {
        v16 value[V16_TILE];
        V16_UNROLL
        for (size_t c = 0; c < width; c++) {
            value[c] = v16_row_get(v16_row(v, t * ldv, half), V16_LANES * c, count, half);
        }
        V16_UNROLL
        for (size_t r = 0; r < rows; r++) {
            v16 weight = v16_set1(p[r * ldp + t]);
            V16_UNROLL
            for (size_t c = 0; c < width; c++) {
                acc[r * width + c] = v16_fma(weight, value[c], acc[r * width + c]);
            }
        }
    }
    V16_UNROLL
    for (size_t r = 0; r < rows; r++) {
        V16_UNROLL
        for (size_t c = 0; c < width; c++) {
            v16_put(o + r * ldo + V16_LANES * c, acc[r * width + c], count);
        }
    }
}

/* As many tiles of `width` vectors as still fit behind element j; returns where they end. */
GN_INLINE size_t accum_run(size_t rows, size_t width, bool half, const float *p, size_t ldp,
                           const void *v, size_t ldv, size_t n, size_t d, float *o, size_t ldo,
                           size_t j)
{
    if (width <= v16_tile_width(rows)) {
        for (; j + V16_LANES * width <= d; j += V16_LANES * width) {
            accum_tile(rows, width, half, p, ldp, v16_row(v, j, half), ldv, n, o + j, ldo,
                       V16_LANES);
        }
    }
    return j;
}

GN_INLINE void accum_rows(size_t rows, bool half, const float *p, size_t ldp, const void *v,
                          size_t ldv, size_t n, size_t d, float *o, size_t ldo)
{
    size_t j = accum_run(rows, 8, half, p, ldp, v, ldv, n, d, o, ldo, 0);
    j = accum_run(rows, 4, half, p, ldp, v, ldv, n, d, o, ldo, j);
    j = accum_run(rows, 2, half, p, ldp, v, ldv, n, d, o, ldo, j);
    j = accum_run(rows, 1, half, p, ldp, v, ldv, n, d, o, ldo, j);
    if (j < d) {
        accum_tile(rows, 1, half, p, ldp, v16_row(v, j, half), ldv, n, o + j, ldo, d - j);
    }
}

GN_INLINE void accum(bool half, size_t nq, const float *p, size_t ldp, const void *v, size_t ldv,
                     size_t n, size_t d, float *o, size_t ldo)
{
    for (size_t i = 0; i < nq; i += V16_ROWS) {
        size_t rows = nq - i < V16_ROWS ? nq - i : V16_ROWS;
        V16_WITH_ROWS(rows, accum_rows, half, p + i * ldp, ldp, v, ldv, n, d, o + i * ldo, ldo);
    }
}

void V16_FN(attn_accum_f32)(size_t nq, const float *p, size_t ldp, const void *v, size_t ldv,
                            size_t n, size_t d, float *o, size_t ldo)
{
    accum(false, nq, p, ldp, v, ldv, n, d, o, ldo);
}

#endif
