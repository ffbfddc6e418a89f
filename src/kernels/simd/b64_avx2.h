/* simd/b64.h with AVX2: two registers. What the operations mean is said in b64_avx512.h. */
#ifndef GN_KERNELS_SIMD_B64_AVX2_H
#define GN_KERNELS_SIMD_B64_AVX2_H

#include "base/attr.h"

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

typedef struct b64 {
    __m256i lo, hi;
} b64;
typedef struct f32x16 {
    __m256 lo, hi;
} f32x16;

/* op on both halves */
#define B64_EACH(op, a, b)    ((b64){op((a).lo, (b).lo), op((a).hi, (b).hi)})
#define B64_EACH_N(op, a, n)  ((b64){op((a).lo, n), op((a).hi, n)})
#define F32X16_EACH(op, a, b) ((f32x16){op((a).lo, (b).lo), op((a).hi, (b).hi)})

GN_INLINE b64 b64_load(const void *p)
{
    return (b64){_mm256_loadu_si256((const __m256i *)p),
                 _mm256_loadu_si256((const __m256i *)p + 1)};
}

GN_INLINE void b64_store(void *p, b64 v)
{
    _mm256_storeu_si256((__m256i *)p, v.lo);
    _mm256_storeu_si256((__m256i *)p + 1, v.hi);
}

GN_INLINE b64 b64_set_u32(uint32_t x)
{
    __m256i v = _mm256_set1_epi32((int)x);
    return (b64){v, v};
}

GN_INLINE b64 b64_set_16(const void *p)
{
    __m256i v = _mm256_broadcastsi128_si256(_mm_loadu_si128(p));
    return (b64){v, v};
}

GN_INLINE b64 b64_and(b64 a, b64 b)
{
    return B64_EACH(_mm256_and_si256, a, b);
}

GN_INLINE b64 b64_or(b64 a, b64 b)
{
    return B64_EACH(_mm256_or_si256, a, b);
}

GN_INLINE b64 b64_xor(b64 a, b64 b)
{
    return B64_EACH(_mm256_xor_si256, a, b);
}

GN_INLINE b64 b64_add_u32(b64 a, b64 b)
{
    return B64_EACH(_mm256_add_epi32, a, b);
}

GN_INLINE b64 b64_mul_i32(b64 a, b64 b)
{
    return B64_EACH(_mm256_mullo_epi32, a, b);
}

GN_INLINE b64 b64_load_u8(const void *p)
{
    const __m128i bytes = _mm_loadu_si128(p);
    return (b64){_mm256_cvtepu8_epi32(bytes), _mm256_cvtepu8_epi32(_mm_srli_si128(bytes, 8))};
}

#define b64_shl(v, n) B64_EACH_N(_mm256_slli_epi32, v, n)
#define b64_shr(v, n) B64_EACH_N(_mm256_srli_epi32, v, n)

GN_INLINE b64 b64_select_less(b64 a, b64 b, b64 x, b64 y)
{
    return (b64){_mm256_blendv_epi8(y.lo, x.lo, _mm256_cmpgt_epi32(b.lo, a.lo)),
                 _mm256_blendv_epi8(y.hi, x.hi, _mm256_cmpgt_epi32(b.hi, a.hi))};
}

GN_INLINE b64 b64_look_up(b64 table, b64 v)
{
    return B64_EACH(_mm256_shuffle_epi8, table, v);
}

GN_INLINE b64 b64_shuffle(b64 v, b64 control)
{
    return B64_EACH(_mm256_shuffle_epi8, v, control);
}

GN_INLINE b64 b64_or_if(b64 base, b64 v, b64 mask, b64 bit)
{
    b64 set = B64_EACH(_mm256_and_si256, v, mask);
    set = B64_EACH(_mm256_cmpeq_epi8, set, mask);
    return b64_or(base, b64_and(set, bit));
}

/* Rows r and r + 4 to the two 128-bit halves. */
GN_INLINE __m256i b64_pair_rows(const uint8_t *p, size_t stride)
{
    __m256i v = _mm256_castsi128_si256(_mm_loadu_si128((const __m128i *)p));
    return _mm256_inserti128_si256(v, _mm_loadu_si128((const __m128i *)(p + 4 * stride)), 1);
}

GN_INLINE void b64_load_8_rows(const uint8_t *p, size_t stride, __m256i out[4])
{
    __m256i a0 = b64_pair_rows(p, stride);
    __m256i a1 = b64_pair_rows(p + stride, stride);
    __m256i a2 = b64_pair_rows(p + 2 * stride, stride);
    __m256i a3 = b64_pair_rows(p + 3 * stride, stride);
    __m256i lo01 = _mm256_unpacklo_epi32(a0, a1);
    __m256i hi01 = _mm256_unpackhi_epi32(a0, a1);
    __m256i lo23 = _mm256_unpacklo_epi32(a2, a3);
    __m256i hi23 = _mm256_unpackhi_epi32(a2, a3);
    out[0] = _mm256_unpacklo_epi64(lo01, lo23);
    out[1] = _mm256_unpackhi_epi64(lo01, lo23);
    out[2] = _mm256_unpacklo_epi64(hi01, hi23);
    out[3] = _mm256_unpackhi_epi64(hi01, hi23);
}

GN_INLINE void b64_load_rows(const uint8_t *p, size_t stride, b64 out[4])
{
    __m256i lo[4];
    __m256i hi[4];
    b64_load_8_rows(p, stride, lo);
    b64_load_8_rows(p + 8 * stride, stride, hi);
    for (int c = 0; c < 4; c++) {
        out[c] = (b64){lo[c], hi[c]};
    }
}

GN_INLINE b64 b64_max_u32(b64 a, b64 b)
{
    return B64_EACH(_mm256_max_epu32, a, b);
}

GN_INLINE uint32_t b64_reduce_max_u32(b64 v)
{
    __m256i m = _mm256_max_epu32(v.lo, v.hi);
    __m128i n = _mm_max_epu32(_mm256_castsi256_si128(m), _mm256_extracti128_si256(m, 1));
    n = _mm_max_epu32(n, _mm_shuffle_epi32(n, 0x4e));
    n = _mm_max_epu32(n, _mm_shuffle_epi32(n, 0xb1));
    return (uint32_t)_mm_cvtsi128_si32(n);
}

GN_INLINE int32_t b64_reduce_add_i32(b64 v)
{
    __m256i m = _mm256_add_epi32(v.lo, v.hi);
    __m128i n = _mm_add_epi32(_mm256_castsi256_si128(m), _mm256_extracti128_si256(m, 1));
    n = _mm_add_epi32(n, _mm_shuffle_epi32(n, 0x4e));
    n = _mm_add_epi32(n, _mm_shuffle_epi32(n, 0xb1));
    return _mm_cvtsi128_si32(n);
}

GN_INLINE void b64_store_low_bytes(int8_t *p, b64 v)
{
    __m128i lo = _mm_packs_epi32(_mm256_castsi256_si128(v.lo), _mm256_extracti128_si256(v.lo, 1));
    __m128i hi = _mm_packs_epi32(_mm256_castsi256_si128(v.hi), _mm256_extracti128_si256(v.hi, 1));
    _mm_storeu_si128((__m128i *)p, _mm_packs_epi16(lo, hi)); /* callers keep within -128 .. 127 */
}

GN_INLINE f32x16 f32x16_from_bits(b64 v)
{
    return (f32x16){_mm256_castsi256_ps(v.lo), _mm256_castsi256_ps(v.hi)};
}

GN_INLINE f32x16 f32x16_load_f16(const void *p)
{
    const __m128i *halves = p;
    return (f32x16){_mm256_cvtph_ps(_mm_loadu_si128(halves)),
                    _mm256_cvtph_ps(_mm_loadu_si128(halves + 1))};
}

GN_INLINE __m256 f32x8_from_f16(__m256i v)
{
    __m256i low = _mm256_and_si256(v, _mm256_set1_epi32(0xffff));
    __m128i packed =
        _mm_packus_epi32(_mm256_castsi256_si128(low), _mm256_extracti128_si256(low, 1));
    return _mm256_cvtph_ps(packed);
}

GN_INLINE f32x16 f32x16_from_f16(b64 v)
{
    return (f32x16){f32x8_from_f16(v.lo), f32x8_from_f16(v.hi)};
}

GN_INLINE f32x16 f32x16_from_i32(b64 v)
{
    return (f32x16){_mm256_cvtepi32_ps(v.lo), _mm256_cvtepi32_ps(v.hi)};
}

#define f32x16_from_i8(v, n)                                                                       \
    f32x16_from_i32(B64_EACH_N(_mm256_srai_epi32, b64_shl(v, 24 - 8 * (n)), 24))

GN_INLINE b64 f32x16_to_i32(f32x16 v)
{
    return (b64){_mm256_cvtps_epi32(v.lo), _mm256_cvtps_epi32(v.hi)};
}

GN_INLINE f32x16 f32x16_load(const float *p)
{
    return (f32x16){_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)};
}

GN_INLINE f32x16 f32x16_load_twice(const float *p)
{
    const __m256 v = _mm256_loadu_ps(p);
    return (f32x16){_mm256_permutevar8x32_ps(v, _mm256_set_epi32(3, 3, 2, 2, 1, 1, 0, 0)),
                    _mm256_permutevar8x32_ps(v, _mm256_set_epi32(7, 7, 6, 6, 5, 5, 4, 4))};
}

GN_INLINE void f32x16_store(float *p, f32x16 v)
{
    _mm256_storeu_ps(p, v.lo);
    _mm256_storeu_ps(p + 8, v.hi);
}

GN_INLINE f32x16 f32x16_set(float x)
{
    __m256 v = _mm256_set1_ps(x);
    return (f32x16){v, v};
}

GN_INLINE f32x16 f32x16_mul(f32x16 a, f32x16 b)
{
    return F32X16_EACH(_mm256_mul_ps, a, b);
}

GN_INLINE f32x16 f32x16_neg(f32x16 v)
{
    return F32X16_EACH(_mm256_xor_ps, v, f32x16_set(-0.0f));
}

#endif
