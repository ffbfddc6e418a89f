/* All products of a few float rows with many rows, float or half: the loop under the float matrix
 * product and under the scores of attention.
 *
 * V16_TILE sums are kept in registers at once, R query rows by T = V16_TILE / R key rows (R rounded up
 * to a power of two), so that each key row loaded, and converted, serves R queries and the closing
 * trees of all T x R sums run together. Key rows go through in groups of four at most: more would
 * need more addresses than there are registers. A last, partial tile reads its last row again in
 * place of the missing ones and stores what is there. */
#ifndef GN_KERNELS_SIMD_V16_DOTS_H
#define GN_KERNELS_SIMD_V16_DOTS_H

#include "kernels/simd/v16.h"

#include <stdbool.h>
#include <string.h>

enum { DOTS_GROUP = 4 };

GN_INLINE const void *v16_row(const void *base, size_t elements, bool half)
{
    return half ? (const void *)((const uint16_t *)base + elements)
                : (const void *)((const float *)base + elements);
}

GN_INLINE v16 v16_row_get(const void *row, size_t j, size_t n, bool half)
{
    return half ? v16_get_f16((const uint16_t *)row + j, n) : v16_get((const float *)row + j, n);
}

GN_INLINE void v16_dots_step(size_t rows, size_t group, bool half, const float *q, size_t ldq,
                             const void *const *key, v16 *acc, size_t width, size_t j, size_t count)
{
    v16 loaded[DOTS_GROUP];
    V16_UNROLL
    for (size_t u = 0; u < group; u++) {
        loaded[u] = v16_row_get(key[u], j, count, half);
    }
    V16_UNROLL
    for (size_t r = 0; r < rows; r++) {
        v16 query = v16_get(q + r * ldq + j, count);
        V16_UNROLL
        for (size_t u = 0; u < group; u++) {
            acc[r * width + u] = v16_fma(query, loaded[u], acc[r * width + u]);
        }
    }
}

/* `group` columns of the tile from key row g on, the last row again where there are no more. */
GN_INLINE void v16_dots_group(size_t rows, size_t group, bool half, const float *q, size_t ldq,
                              size_t d, const void *k, size_t ldk, size_t left, v16 *acc,
                              size_t width, size_t g)
{
    const void *key[DOTS_GROUP];
    V16_UNROLL
    for (size_t u = 0; u < group; u++) {
        size_t t = g + u < left ? g + u : left - 1;
        key[u] = v16_row(k, t * ldk, half);
    }
    V16_FOR(d, v16_dots_step, rows, group, half, q, ldq, key, acc + g, width);
}

/* rows by `left` sums, or by the tile's width where there are more. */
GN_INLINE void v16_dots_tile(size_t rows, bool half, const float *q, size_t ldq, size_t d,
                             const void *k, size_t ldk, size_t left, float scale, float *s,
                             size_t lds)
{
    const size_t width = v16_tile_width(rows);
    const size_t group = width < DOTS_GROUP ? width : DOTS_GROUP;
    v16 acc[V16_TILE];
    V16_UNROLL
    for (size_t i = 0; i < V16_TILE; i++) {
        acc[i] = v16_set1(0.0f);
    }
    V16_UNROLL
    for (size_t g = 0; g < width; g += group) {
        if (g < left) {
            v16_dots_group(rows, group, half, q, ldq, d, k, ldk, left, acc, width, g);
        }
    }
    float out[V16_TILE];
    v16_sum_tile(acc, scale, out);
    V16_UNROLL
    for (size_t r = 0; r < rows; r++) {
        if (left >= width) {
            memcpy(s + r * lds, out + r * width, width * sizeof *out);
        } else {
            memcpy(s + r * lds, out + r * width, left * sizeof *out);
        }
    }
}

GN_INLINE void v16_dots_rows(size_t rows, bool half, const float *q, size_t ldq, size_t d,
                             const void *k, size_t ldk, size_t n, float scale, float *s, size_t lds)
{
    const size_t width = v16_tile_width(rows);
    for (size_t t = 0; t < n; t += width) {
        v16_dots_tile(rows, half, q, ldq, d, v16_row(k, t * ldk, half), ldk, n - t, scale, s + t,
                      lds);
    }
}

#endif
