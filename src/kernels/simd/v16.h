/* A vector of 16 floats, the one width that all float kernels are written in: one AVX-512 register,
 * two AVX registers, four NEON registers. A family's <family>_simd.h holds its kernels once over this
 * vector; x86_avx2.c, x86_avx512.c and arm_neon.c compile it for their level, and V16_FN(op) gives
 * the function its name there.
 *
 * The 16 lanes are the 16 chains of the fixed order of sums (kernels/vec/vec.h). Every operation
 * rounds as IEEE binary32 says, once, so results are the same bits on each level; only a NaN's sign
 * and payload may differ. n is a number of elements: _n takes 0 .. 16 of them in memory, a lane
 * beyond reads as +0; nothing outside is touched. Pointers need the alignment of their element.
 *
 *   set1(x)                 load, load_n, store, store_n      _f16, _bf16: with conversion, to nearest
 *   load_i8                 16 signed bytes      load_e4m3: E4M3, times 2^-8, without NaN
 *   load_i4(p,lo,hi)        16 bytes of two codes c, -8 .. 7, as 2c + 1
 *   add sub mul div         fma(a,b,c) = ab + c               fms = ab - c, fnma = c - ab
 *   neg abs                 copysign(a, sign)                 round(x): to nearest, ties to even
 *   max(a,b) = a > b ? a : b      min(a,b) = a < b ? a : b    b where either is a NaN
 *   if_lt(a,b,yes,no) = a < b ? yes : no                      no where either is a NaN
 *   first_n(x,n,rest)       lanes below n of x, the others of rest
 *   scale2(x,n)             x * 2^n, rounded once; n whole, |n| <= 150, 0.5 <= |x| < 2
 *   load_pairs(p,e,o)       e[i] = p[2i], o[i] = p[2i+1]; store_pairs the other way round
 *   sum(x), hmax(x)         the closing tree with + and with max
 *   sum_tile(x,scale,out)   out[i] = scale * sum(x[i]) for V16_TILE vectors at once
 *
 * V16_TILE is also how many vectors a kernel may keep in registers as accumulators, V16_ROWS how many
 * rows may share them. */
#ifndef GN_KERNELS_SIMD_V16_H
#define GN_KERNELS_SIMD_V16_H

#if defined(__AVX512F__)
#include "kernels/simd/v16_avx512.h"
#elif defined(__AVX2__)
#include "kernels/simd/v16_avx2.h"
#else
#include "kernels/simd/v16_neon.h"
#endif

#include <string.h>

/* Before a loop of constant length over an array that must end up in registers. Builds with asserts
 * leave the loops as they are: sanitized, they would take minutes to compile. */
#if !defined(NDEBUG)
#define V16_UNROLL
#elif defined(__clang__)
#pragma clang diagnostic ignored "-Wpass-failed" /* a loop left as it is is slow, not wrong */
#define V16_UNROLL _Pragma("clang loop unroll(full)")
#else
#define V16_UNROLL _Pragma("GCC unroll 16")
#endif

enum { V16_LANES = 16 };

/* Loads and stores of n elements where 16 is the common case: with a literal 16 the branch is gone,
 * so a loop's body can be one inline function, called once more for the tail. */
GN_INLINE v16 v16_get(const float *p, size_t n)
{
    return n == V16_LANES ? v16_load(p) : v16_load_n(p, n);
}

GN_INLINE void v16_put(float *p, v16 x, size_t n)
{
    if (n == V16_LANES) {
        v16_store(p, x);
    } else {
        v16_store_n(p, x, n);
    }
}

GN_INLINE v16 v16_get_f16(const uint16_t *p, size_t n)
{
    return n == V16_LANES ? v16_load_f16(p) : v16_load_f16_n(p, n);
}

GN_INLINE float v16_from_bf16_1(uint16_t bits)
{
    uint32_t wide = (uint32_t)bits << 16;
    float x;
    memcpy(&x, &wide, sizeof x);
    return x;
}

/* Call f with the number of rows, 1 .. V16_ROWS, as a constant. */
#define V16_CASE(rows, f, ...)                                                                     \
    case rows:                                                                                     \
        f(rows, __VA_ARGS__);                                                                      \
        break
#if V16_ROWS > 4
#define V16_MORE_CASES(f, ...)                                                                     \
    V16_CASE(5, f, __VA_ARGS__);                                                                   \
    V16_CASE(6, f, __VA_ARGS__);                                                                   \
    V16_CASE(7, f, __VA_ARGS__);                                                                   \
    V16_CASE(8, f, __VA_ARGS__);
#else
#define V16_MORE_CASES(f, ...)
#endif
#define V16_WITH_ROWS(rows, f, ...)                                                                \
    switch (rows) {                                                                                \
        V16_CASE(1, f, __VA_ARGS__);                                                               \
        V16_CASE(2, f, __VA_ARGS__);                                                               \
        V16_CASE(3, f, __VA_ARGS__);                                                               \
        V16_CASE(4, f, __VA_ARGS__);                                                               \
        V16_MORE_CASES(f, __VA_ARGS__)                                                             \
    default: break;                                                                                \
    }

/* How many vectors each row may have when `rows` rows share the V16_TILE accumulators. */
GN_INLINE size_t v16_tile_width(size_t rows)
{
    size_t pow2 = rows > 4 ? 8 : rows > 2 ? 4 : rows;
    return V16_TILE / pow2;
}

/* Run a body(…, j, count) over n elements: whole vectors, then what is left. */
#define V16_FOR(n, body, ...)                                                                      \
    do {                                                                                           \
        size_t j_ = 0;                                                                             \
        for (; j_ + V16_LANES <= (n); j_ += V16_LANES) {                                           \
            body(__VA_ARGS__, j_, V16_LANES);                                                      \
        }                                                                                          \
        if (j_ < (n)) {                                                                            \
            body(__VA_ARGS__, j_, (n)-j_);                                                         \
        }                                                                                          \
    } while (0)

#endif
