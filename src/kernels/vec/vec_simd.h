/* The vector helpers over simd/v16.h. */
#ifndef GN_KERNELS_VEC_VEC_SIMD_H
#define GN_KERNELS_VEC_VEC_SIMD_H

#include "kernels/simd/b64.h"
#include "kernels/simd/v16.h"
#include "kernels/simd/v16_dots.h"
#include "kernels/vec/vec.h"

/* Weight rows stay in the second-level cache while all activation rows pass over them: this many
 * floats of weights at a time. */
#define MATMUL_CHUNK ((size_t)96 * 1024)

enum { MATMUL_ROWS = 4 };

void V16_FN(matmul_f32)(size_t k, const float *w, size_t n_rows, size_t ldw, size_t m,
                        const float *x, size_t ldx, float *y, size_t ldy)
{
    size_t chunk = k < MATMUL_CHUNK / V16_TILE ? MATMUL_CHUNK / (k + 1) : V16_TILE;
    chunk = chunk / V16_TILE * V16_TILE;
    for (size_t r = 0; r < n_rows; r += chunk) {
        size_t n = n_rows - r < chunk ? n_rows - r : chunk;
        for (size_t i = 0; i < m; i += MATMUL_ROWS) {
            size_t rows = m - i < MATMUL_ROWS ? m - i : MATMUL_ROWS;
            V16_WITH_ROWS(rows, v16_dots_rows, false, x + i * ldx, ldx, k, w + r * ldw, ldw, n,
                          1.0f, y + i * ldy + r, ldy);
        }
    }
}

GN_INLINE void f16_to_f32_step(const uint16_t *x, float *y, size_t j, size_t n)
{
    v16_put(y + j, v16_get_f16(x + j, n), n);
}

void V16_FN(f16_to_f32)(const uint16_t *x, size_t n, float *y)
{
    V16_FOR(n, f16_to_f32_step, x, y);
}

GN_INLINE void f32_to_f16_step(const float *x, uint16_t *y, size_t j, size_t n)
{
    if (n == V16_LANES) {
        v16_store_f16(y + j, v16_load(x + j));
    } else {
        v16_store_f16_n(y + j, v16_load_n(x + j, n), n);
    }
}

void V16_FN(f32_to_f16)(const float *x, size_t n, uint16_t *y)
{
    V16_FOR(n, f32_to_f16_step, x, y);
}

GN_INLINE void bf16_to_f32_step(const uint16_t *x, float *y, size_t j, size_t n)
{
    v16_put(y + j, n == V16_LANES ? v16_load_bf16(x + j) : v16_load_bf16_n(x + j, n), n);
}

void V16_FN(bf16_to_f32)(const uint16_t *x, size_t n, float *y)
{
    V16_FOR(n, bf16_to_f32_step, x, y);
}

GN_INLINE void add_step(float *y, const float *x, size_t j, size_t n)
{
    v16_put(y + j, v16_add(v16_get(y + j, n), v16_get(x + j, n)), n);
}

void V16_FN(add)(float *y, const float *x, size_t n)
{
    V16_FOR(n, add_step, y, x);
}

GN_INLINE void mul_step(float *y, const float *x, size_t j, size_t n)
{
    v16_put(y + j, v16_mul(v16_get(y + j, n), v16_get(x + j, n)), n);
}

void V16_FN(mul)(float *y, const float *x, size_t n)
{
    V16_FOR(n, mul_step, y, x);
}

GN_INLINE void scale_step(float *y, v16 a, size_t j, size_t n)
{
    v16_put(y + j, v16_mul(v16_get(y + j, n), a), n);
}

void V16_FN(scale)(float *y, size_t n, float a)
{
    V16_FOR(n, scale_step, y, v16_set1(a));
}

GN_INLINE void axpy_step(float *y, const float *x, v16 a, size_t j, size_t n)
{
    v16_put(y + j, v16_fma(a, v16_get(x + j, n), v16_get(y + j, n)), n);
}

void V16_FN(axpy)(float *y, const float *x, size_t n, float a)
{
    V16_FOR(n, axpy_step, y, x, v16_set1(a));
}

#define SUM_AHEAD 9472 /* bytes; packed_simd.h has the same */

void V16_FN(sum_u32)(const uint32_t *x, size_t n, uint32_t *sum)
{
    b64 sums = b64_set_u32(0);
    size_t whole = n / 16 * 16;
    for (size_t j = 0; j < whole; j += 16) {
        __builtin_prefetch((const void *)((uintptr_t)(x + j) + SUM_AHEAD), 0, 2);
        sums = b64_add_u32(sums, b64_load(x + j));
    }
    *sum = (uint32_t)b64_reduce_add_i32(sums);
    for (size_t j = whole; j < n; j++) {
        *sum += x[j];
    }
}

#endif
