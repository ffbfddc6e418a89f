/* Attention's two products over simd/v16.h.
 *
 * Both keep R query rows by C vectors in registers, so that each key or value loaded, and converted, serves
 * R rows: scores over the dimensions of the head with 16 tokens a vector, sums of values over the tokens with
 * 16 dimensions a vector. C follows from R and from how many registers there are. */
#ifndef GN_KERNELS_PAGED_PAGED_SIMD_H
#define GN_KERNELS_PAGED_PAGED_SIMD_H

#include "kernels/paged/paged.h"
#include "kernels/simd/v16.h"

#include <stdbool.h>

typedef enum paged_type { PAGED_F32, PAGED_F16, PAGED_Q8, PAGED_FP8, PAGED_Q4 } paged_type;

enum { PAGED_ROWS = 6, PAGED_COLS = 4 };

#define PAGED_CASE(n, f, ...)                                                                      \
    case n: f(n, __VA_ARGS__); break
/* Call f with the number of rows, 1 .. PAGED_ROWS, as a constant. */
#define PAGED_WITH_ROWS(rows, f, ...)                                                              \
    switch (rows) {                                                                                \
        PAGED_CASE(1, f, __VA_ARGS__);                                                             \
        PAGED_CASE(2, f, __VA_ARGS__);                                                             \
        PAGED_CASE(3, f, __VA_ARGS__);                                                             \
        PAGED_CASE(4, f, __VA_ARGS__);                                                             \
        PAGED_CASE(5, f, __VA_ARGS__);                                                             \
        PAGED_CASE(6, f, __VA_ARGS__);                                                             \
    default: break;                                                                                \
    }

/* 24 accumulators of one register with AVX-512; 6 of more than one elsewhere. */
GN_INLINE size_t paged_cols(size_t rows)
{
    if (V16_TILE == 16) {
        return PAGED_COLS;
    }
    return rows == 1 ? 4 : rows == 2 ? 2 : 1;
}

/* Elements i .. i+15 of a block of anything but q4, without their scale. */
GN_INLINE v16 paged_load(paged_type type, const void *block, size_t i)
{
    switch (type) {
    case PAGED_F32: return v16_load((const float *)block + i);
    case PAGED_F16: return v16_load_f16((const uint16_t *)block + i);
    case PAGED_Q8: return v16_load_i8((const int8_t *)block + i);
    default: break;
    }
    return v16_load_e4m3((const uint8_t *)block + i);
}

GN_INLINE const uint16_t *paged_q4_scales(const void *block, size_t d)
{
    return (const uint16_t *)(const void *)((const uint8_t *)block + d / 2 * GN_PAGED_TOK);
}

/* One dimension of the keys into the tile. */
GN_INLINE void scores_step(size_t rows, size_t cols, const float *q, const v16 *key, v16 *acc)
{
    V16_UNROLL
    for (size_t r = 0; r < rows; r++) {
        v16 query = v16_set1(q[r]);
        V16_UNROLL
        for (size_t c = 0; c < cols; c++) {
            acc[r * cols + c] = v16_fma(query, key[c], acc[r * cols + c]);
        }
    }
}

/* Tokens t .. t + 16 cols - 1. */
GN_INLINE void scores_tile(size_t rows, paged_type type, const float *q, size_t ldq, size_t d,
                           const void *k, size_t t, float *s, size_t lds)
{
    const size_t cols = paged_cols(rows);
    v16 acc[PAGED_ROWS * PAGED_COLS];
    V16_UNROLL
    for (size_t i = 0; i < rows * cols; i++) {
        acc[i] = v16_set1(0.0f);
    }
    for (size_t j = 0; j < d; j++) {
        v16 key[PAGED_COLS];
        V16_UNROLL
        for (size_t c = 0; c < cols; c++) {
            key[c] = paged_load(type, k, j * GN_PAGED_TOK + t + c * V16_LANES);
        }
        scores_step(rows, cols, q + j * ldq, key, acc);
    }
    const float *scale = (const float *)(const void *)((const char *)k + d * GN_PAGED_TOK);
    V16_UNROLL
    for (size_t c = 0; c < cols; c++) {
        size_t at = t + c * V16_LANES;
        V16_UNROLL
        for (size_t r = 0; r < rows; r++) {
            v16 sum = acc[r * cols + c];
            if (type == PAGED_Q8 || type == PAGED_FP8) {
                sum = v16_mul(sum, v16_load(scale + at));
            }
            v16_store(s + r * lds + at, sum);
        }
    }
}

GN_INLINE void scores_rows(size_t rows, paged_type type, const float *q, size_t ldq, size_t d,
                           const void *k, float *s, size_t lds)
{
    for (size_t t = 0; t < GN_PAGED_TOK; t += V16_LANES * paged_cols(rows)) {
        scores_tile(rows, type, q, ldq, d, k, t, s, lds);
    }
}

/* The sums of vectors j .. j + 16 cols - 1. */
GN_INLINE void accum_tile(size_t rows, size_t cols, paged_type type, const float *p, size_t ldp,
                          const void *v, size_t begin, size_t end, size_t d, float *o, size_t ldo,
                          size_t j)
{
    v16 acc[PAGED_ROWS * PAGED_COLS];
    V16_UNROLL
    for (size_t r = 0; r < rows; r++) {
        V16_UNROLL
        for (size_t c = 0; c < cols; c++) {
            acc[r * cols + c] = v16_load(o + r * ldo + j + c * V16_LANES);
        }
    }
    for (size_t t = begin; t < end; t++) {
        v16 value[PAGED_COLS];
        if (type == PAGED_Q4) {
            const uint8_t *codes = (const uint8_t *)v + t * (d / 2);
            const uint16_t *scales = paged_q4_scales(v, d) + t * (d / GN_PAGED_Q4_GROUP);
            V16_UNROLL
            for (size_t c = 0; c < cols; c += 2) {
                size_t group = (j + c * V16_LANES) / GN_PAGED_Q4_GROUP;
                v16 scale = v16_set1(v16_from_bf16_1(scales[group]));
                v16_load_i4(codes + group * 16, &value[c], &value[c + 1]);
                value[c] = v16_mul(value[c], scale);
                value[c + 1] = v16_mul(value[c + 1], scale);
            }
        } else {
            V16_UNROLL
            for (size_t c = 0; c < cols; c++) {
                value[c] = paged_load(type, v, t * d + j + c * V16_LANES);
            }
        }
        V16_UNROLL
        for (size_t r = 0; r < rows; r++) {
            v16 weight = v16_set1(p[r * ldp + t]);
            V16_UNROLL
            for (size_t c = 0; c < cols; c++) {
                acc[r * cols + c] = v16_fma(weight, value[c], acc[r * cols + c]);
            }
        }
    }
    V16_UNROLL
    for (size_t r = 0; r < rows; r++) {
        V16_UNROLL
        for (size_t c = 0; c < cols; c++) {
            v16_store(o + r * ldo + j + c * V16_LANES, acc[r * cols + c]);
        }
    }
}

GN_INLINE void accum_rows(size_t rows, paged_type type, const float *p, size_t ldp, const void *v,
                          size_t begin, size_t end, size_t d, float *o, size_t ldo)
{
    const size_t least = type == PAGED_Q4 ? 2 : 1;
    const size_t cols = paged_cols(rows) > least ? paged_cols(rows) : least;
    size_t j = 0;
    for (; j + cols * V16_LANES <= d; j += cols * V16_LANES) {
        accum_tile(rows, cols, type, p, ldp, v, begin, end, d, o, ldo, j);
    }
    if (cols > least) {
        for (; j < d; j += least * V16_LANES) {
            accum_tile(rows, least, type, p, ldp, v, begin, end, d, o, ldo, j);
        }
    }
}

GN_INLINE void scores(paged_type type, size_t nq, const float *q, size_t ldq, size_t d,
                      const void *k, float *s, size_t lds)
{
    for (size_t i = 0; i < nq; i += PAGED_ROWS) {
        size_t rows = nq - i < PAGED_ROWS ? nq - i : PAGED_ROWS;
        PAGED_WITH_ROWS(rows, scores_rows, type, q + i, ldq, d, k, s + i * lds, lds);
    }
}

GN_INLINE void accum(paged_type type, size_t nq, const float *p, size_t ldp, const void *v,
                     size_t begin, size_t end, size_t d, float *o, size_t ldo)
{
    for (size_t i = 0; i < nq; i += PAGED_ROWS) {
        size_t rows = nq - i < PAGED_ROWS ? nq - i : PAGED_ROWS;
        PAGED_WITH_ROWS(rows, accum_rows, type, p + i * ldp, ldp, v, begin, end, d, o + i * ldo,
                        ldo);
    }
}

#define PAGED_SCORES(name, type)                                                                   \
    void V16_FN(paged_scores_##name)(size_t nq, const float *q, size_t ldq, size_t d,              \
                                     const void *k, float *s, size_t lds)                          \
    {                                                                                              \
        scores(type, nq, q, ldq, d, k, s, lds);                                                    \
    }
PAGED_SCORES(f32, PAGED_F32)
PAGED_SCORES(f16, PAGED_F16)
PAGED_SCORES(q8, PAGED_Q8)
PAGED_SCORES(fp8, PAGED_FP8)

#define PAGED_ACCUM(name, type)                                                                    \
    void V16_FN(paged_accum_##name)(size_t nq, const float *p, size_t ldp, const void *v,          \
                                    size_t begin, size_t end, size_t d, float *o, size_t ldo)      \
    {                                                                                              \
        accum(type, nq, p, ldp, v, begin, end, d, o, ldo);                                         \
    }
PAGED_ACCUM(f32, PAGED_F32)
PAGED_ACCUM(f16, PAGED_F16)
PAGED_ACCUM(q8, PAGED_Q8)
PAGED_ACCUM(fp8, PAGED_FP8)
PAGED_ACCUM(q4, PAGED_Q4)

#endif
