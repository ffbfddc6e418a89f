/* simd/b64.h with AVX-512: one register. What the operations mean is said here, for all levels. */
#ifndef GN_KERNELS_SIMD_B64_AVX512_H
#define GN_KERNELS_SIMD_B64_AVX512_H

#include "base/attr.h"

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

typedef __m512i b64;
typedef __m512 f32x16;

GN_INLINE b64 b64_load(const void *p)
{
    return _mm512_loadu_si512(p);
}

GN_INLINE void b64_store(void *p, b64 v)
{
    _mm512_storeu_si512(p, v);
}

GN_INLINE b64 b64_set_u32(uint32_t x)
{
    return _mm512_set1_epi32((int)x);
}

/* The same 16 bytes four times. */
GN_INLINE b64 b64_set_16(const void *p)
{
    return _mm512_broadcast_i32x4(_mm_loadu_si128(p));
}

GN_INLINE b64 b64_and(b64 a, b64 b)
{
    return _mm512_and_si512(a, b);
}

GN_INLINE b64 b64_or(b64 a, b64 b)
{
    return _mm512_or_si512(a, b);
}

GN_INLINE b64 b64_xor(b64 a, b64 b)
{
    return _mm512_xor_si512(a, b);
}

GN_INLINE b64 b64_add_u32(b64 a, b64 b)
{
    return _mm512_add_epi32(a, b);
}

GN_INLINE b64 b64_mul_i32(b64 a, b64 b)
{
    return _mm512_mullo_epi32(a, b);
}

/* 16 bytes, one to each lane. */
GN_INLINE b64 b64_load_u8(const void *p)
{
    return _mm512_cvtepu8_epi32(_mm_loadu_si128(p));
}

#define b64_shl(v, n) _mm512_slli_epi32(v, n)
#define b64_shr(v, n) _mm512_srli_epi32(v, n)

/* Per lane: a < b (as signed numbers) ? x : y. */
GN_INLINE b64 b64_select_less(b64 a, b64 b, b64 x, b64 y)
{
    return _mm512_mask_blend_epi32(_mm512_cmplt_epi32_mask(a, b), y, x);
}

/* Per byte: table[v], v < 16; the table is 16 bytes, four times. */
GN_INLINE b64 b64_look_up(b64 table, b64 v)
{
    return _mm512_shuffle_epi8(table, v);
}

/* Byte i of each group of 16 is byte control[i] of that group. */
GN_INLINE b64 b64_shuffle(b64 v, b64 control)
{
    return _mm512_shuffle_epi8(v, control);
}

/* Per byte: base, plus `bit` where v has the one bit of `mask`; base has not got it. */
GN_INLINE b64 b64_or_if(b64 base, b64 v, b64 mask, b64 bit)
{
    return _mm512_mask_add_epi8(base, _mm512_test_epi8_mask(v, mask), base, bit);
}

/* 16 bytes from each of 16 rows: lane r of out[c] is 32-bit word c of row r. */
GN_INLINE void b64_load_rows(const uint8_t *p, size_t stride, b64 out[4])
{
    b64 a[4]; /* quarter i of a[j] is row 4i + j */
    for (size_t j = 0; j < 4; j++, p += stride) {
        a[j] = _mm512_castsi128_si512(_mm_loadu_si128((const __m128i *)p));
        a[j] = _mm512_inserti32x4(a[j], _mm_loadu_si128((const __m128i *)(p + 4 * stride)), 1);
        a[j] = _mm512_inserti32x4(a[j], _mm_loadu_si128((const __m128i *)(p + 8 * stride)), 2);
        a[j] = _mm512_inserti32x4(a[j], _mm_loadu_si128((const __m128i *)(p + 12 * stride)), 3);
    }
    b64 lo01 = _mm512_unpacklo_epi32(a[0], a[1]);
    b64 hi01 = _mm512_unpackhi_epi32(a[0], a[1]);
    b64 lo23 = _mm512_unpacklo_epi32(a[2], a[3]);
    b64 hi23 = _mm512_unpackhi_epi32(a[2], a[3]);
    out[0] = _mm512_unpacklo_epi64(lo01, lo23);
    out[1] = _mm512_unpackhi_epi64(lo01, lo23);
    out[2] = _mm512_unpacklo_epi64(hi01, hi23);
    out[3] = _mm512_unpackhi_epi64(hi01, hi23);
}

GN_INLINE b64 b64_max_u32(b64 a, b64 b)
{
    return _mm512_max_epu32(a, b);
}

GN_INLINE uint32_t b64_reduce_max_u32(b64 v)
{
    return _mm512_reduce_max_epu32(v);
}

/* Not _mm512_reduce_add_epi32(): gcc's adds the last two as C integers, which may not wrap around. */
GN_INLINE int32_t b64_reduce_add_i32(b64 v)
{
    __m256i m = _mm256_add_epi32(_mm512_castsi512_si256(v), _mm512_extracti64x4_epi64(v, 1));
    __m128i n = _mm_add_epi32(_mm256_castsi256_si128(m), _mm256_extracti128_si256(m, 1));
    n = _mm_add_epi32(n, _mm_shuffle_epi32(n, 0x4e));
    n = _mm_add_epi32(n, _mm_shuffle_epi32(n, 0xb1));
    return _mm_cvtsi128_si32(n);
}

/* The low byte of each lane. */
GN_INLINE void b64_store_low_bytes(int8_t *p, b64 v)
{
    _mm_storeu_si128((__m128i *)p, _mm512_cvtepi32_epi8(v));
}

GN_INLINE f32x16 f32x16_from_bits(b64 v)
{
    return _mm512_castsi512_ps(v);
}

/* 16 half-precision floats. */
GN_INLINE f32x16 f32x16_load_f16(const void *p)
{
    return _mm512_cvtph_ps(_mm256_loadu_si256(p));
}

/* The low half of each lane as a half-precision float. */
GN_INLINE f32x16 f32x16_from_f16(b64 v)
{
    return _mm512_cvtph_ps(_mm512_cvtepi32_epi16(v));
}

GN_INLINE f32x16 f32x16_from_i32(b64 v)
{
    return _mm512_cvtepi32_ps(v);
}

/* Byte n of each lane as a signed number. */
#define f32x16_from_i8(v, n)                                                                       \
    _mm512_cvtepi32_ps(_mm512_srai_epi32(_mm512_slli_epi32(v, 24 - 8 * (n)), 24))

/* Rounded to nearest, ties to even. */
GN_INLINE b64 f32x16_to_i32(f32x16 v)
{
    return _mm512_cvtps_epi32(v);
}

GN_INLINE f32x16 f32x16_load(const float *p)
{
    return _mm512_loadu_ps(p);
}

/* 8 floats, each to two lanes side by side. */
GN_INLINE f32x16 f32x16_load_twice(const float *p)
{
    const __m512i pairs = _mm512_set_epi32(7, 7, 6, 6, 5, 5, 4, 4, 3, 3, 2, 2, 1, 1, 0, 0);
    return _mm512_permutexvar_ps(pairs, _mm512_castps256_ps512(_mm256_loadu_ps(p)));
}

GN_INLINE void f32x16_store(float *p, f32x16 v)
{
    _mm512_storeu_ps(p, v);
}

GN_INLINE f32x16 f32x16_set(float x)
{
    return _mm512_set1_ps(x);
}

GN_INLINE f32x16 f32x16_mul(f32x16 a, f32x16 b)
{
    return _mm512_mul_ps(a, b);
}

GN_INLINE f32x16 f32x16_neg(f32x16 v)
{
    return _mm512_xor_ps(v, _mm512_set1_ps(-0.0f));
}

#endif
