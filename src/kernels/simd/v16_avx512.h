/* The 16-lane vector of simd/v16.h in one AVX-512 register. */
#ifndef GN_KERNELS_SIMD_V16_AVX512_H
#define GN_KERNELS_SIMD_V16_AVX512_H

#include "base/attr.h"

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

#define V16_FN(op) gn_k_##op##_x86_avx512

#define V16_TILE 16
#define V16_ROWS 8

typedef __m512 v16;

GN_INLINE __mmask16 v16_mask(size_t n)
{
    return (__mmask16)((1u << n) - 1);
}

GN_INLINE v16 v16_set1(float x)
{
    return _mm512_set1_ps(x);
}

GN_INLINE v16 v16_load(const float *p)
{
    return _mm512_loadu_ps(p);
}

GN_INLINE v16 v16_load_n(const float *p, size_t n)
{
    return _mm512_maskz_loadu_ps(v16_mask(n), p);
}

GN_INLINE void v16_store(float *p, v16 x)
{
    _mm512_storeu_ps(p, x);
}

GN_INLINE void v16_store_n(float *p, v16 x, size_t n)
{
    _mm512_mask_storeu_ps(p, v16_mask(n), x);
}

GN_INLINE v16 v16_load_f16(const uint16_t *p)
{
    return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)p));
}

GN_INLINE v16 v16_load_f16_n(const uint16_t *p, size_t n)
{
    return _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(v16_mask(n), p));
}

GN_INLINE __m256i v16_to_f16(v16 x)
{
    return _mm512_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

GN_INLINE void v16_store_f16(uint16_t *p, v16 x)
{
    _mm256_storeu_si256((__m256i *)p, v16_to_f16(x));
}

GN_INLINE void v16_store_f16_n(uint16_t *p, v16 x, size_t n)
{
    _mm256_mask_storeu_epi16(p, v16_mask(n), v16_to_f16(x));
}

GN_INLINE v16 v16_from_bf16(__m256i bits)
{
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16));
}

GN_INLINE v16 v16_load_bf16(const uint16_t *p)
{
    return v16_from_bf16(_mm256_loadu_si256((const __m256i *)p));
}

GN_INLINE v16 v16_load_bf16_n(const uint16_t *p, size_t n)
{
    return v16_from_bf16(_mm256_maskz_loadu_epi16(v16_mask(n), p));
}

GN_INLINE v16 v16_load_i8(const int8_t *p)
{
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)p)));
}

GN_INLINE v16 v16_load_e4m3(const uint8_t *p)
{
    __m256i fields =
        _mm256_slli_epi16(_mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)p)), 7);
    return _mm512_cvtph_ps(_mm256_and_si256(fields, _mm256_set1_epi16((short)0xbf80)));
}

GN_INLINE void v16_load_i4(const uint8_t *p, v16 *low, v16 *high)
{
    __m512i both = _mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)p));
    __m512i one = _mm512_set1_epi32(1);
    __m512i first = _mm512_srai_epi32(_mm512_slli_epi32(both, 28), 27);
    *low = _mm512_cvtepi32_ps(_mm512_or_si512(first, one));
    *high = _mm512_cvtepi32_ps(_mm512_or_si512(_mm512_srai_epi32(both, 3), one));
}

GN_INLINE v16 v16_add(v16 a, v16 b)
{
    return _mm512_add_ps(a, b);
}

GN_INLINE v16 v16_sub(v16 a, v16 b)
{
    return _mm512_sub_ps(a, b);
}

GN_INLINE v16 v16_mul(v16 a, v16 b)
{
    return _mm512_mul_ps(a, b);
}

GN_INLINE v16 v16_div(v16 a, v16 b)
{
    return _mm512_div_ps(a, b);
}

GN_INLINE v16 v16_fma(v16 a, v16 b, v16 c)
{
    return _mm512_fmadd_ps(a, b, c);
}

GN_INLINE v16 v16_fms(v16 a, v16 b, v16 c)
{
    return _mm512_fmsub_ps(a, b, c);
}

GN_INLINE v16 v16_fnma(v16 a, v16 b, v16 c)
{
    return _mm512_fnmadd_ps(a, b, c);
}

GN_INLINE v16 v16_neg(v16 a)
{
    return _mm512_xor_ps(a, _mm512_set1_ps(-0.0f));
}

GN_INLINE v16 v16_abs(v16 a)
{
    return _mm512_andnot_ps(_mm512_set1_ps(-0.0f), a);
}

GN_INLINE v16 v16_copysign(v16 a, v16 sign)
{
    v16 bit = _mm512_set1_ps(-0.0f);
    return _mm512_or_ps(_mm512_andnot_ps(bit, a), _mm512_and_ps(bit, sign));
}

GN_INLINE v16 v16_max(v16 a, v16 b)
{
    return _mm512_max_ps(a, b);
}

GN_INLINE v16 v16_min(v16 a, v16 b)
{
    return _mm512_min_ps(a, b);
}

GN_INLINE v16 v16_if_lt(v16 a, v16 b, v16 yes, v16 no)
{
    return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(a, b, _CMP_LT_OQ), no, yes);
}

GN_INLINE v16 v16_first_n(v16 x, size_t n, v16 rest)
{
    return _mm512_mask_blend_ps(v16_mask(n), rest, x);
}

GN_INLINE v16 v16_round(v16 x)
{
    return _mm512_roundscale_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

GN_INLINE v16 v16_scale2(v16 x, v16 n)
{
    return _mm512_scalef_ps(x, n);
}

GN_INLINE void v16_load_pairs(const float *p, v16 *even, v16 *odd)
{
    const __m512i pick =
        _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    v16 a = v16_load(p);
    v16 b = v16_load(p + 16);
    *even = _mm512_permutex2var_ps(a, pick, b);
    *odd = _mm512_permutex2var_ps(a, _mm512_add_epi32(pick, _mm512_set1_epi32(1)), b);
}

GN_INLINE void v16_store_pairs(float *p, v16 even, v16 odd)
{
    const __m512i pick = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
    v16_store(p, _mm512_permutex2var_ps(even, pick, odd));
    v16_store(p + 16,
              _mm512_permutex2var_ps(even, _mm512_add_epi32(pick, _mm512_set1_epi32(8)), odd));
}

GN_INLINE float v16_sum(v16 x)
{
    __m256 x8 = _mm256_add_ps(_mm512_castps512_ps256(x), _mm512_extractf32x8_ps(x, 1));
    __m128 x4 = _mm_add_ps(_mm256_castps256_ps128(x8), _mm256_extractf128_ps(x8, 1));
    __m128 x2 = _mm_add_ps(x4, _mm_movehl_ps(x4, x4));
    return _mm_cvtss_f32(_mm_add_ss(x2, _mm_movehdup_ps(x2)));
}

GN_INLINE float v16_hmax(v16 x)
{
    __m256 x8 = _mm256_max_ps(_mm512_castps512_ps256(x), _mm512_extractf32x8_ps(x, 1));
    __m128 x4 = _mm_max_ps(_mm256_castps256_ps128(x8), _mm256_extractf128_ps(x8, 1));
    __m128 x2 = _mm_max_ps(x4, _mm_movehl_ps(x4, x4));
    return _mm_cvtss_f32(_mm_max_ss(x2, _mm_movehdup_ps(x2)));
}

/* One 128-bit block a vector: block b is the first two levels of the tree over x[4b]. */
GN_INLINE v16 v16_sum_blocks(const v16 *x)
{
    v16 ab = _mm512_add_ps(_mm512_shuffle_f32x4(x[0], x[4], 0x44),
                           _mm512_shuffle_f32x4(x[0], x[4], 0xEE));
    v16 cd = _mm512_add_ps(_mm512_shuffle_f32x4(x[8], x[12], 0x44),
                           _mm512_shuffle_f32x4(x[8], x[12], 0xEE));
    return _mm512_add_ps(_mm512_shuffle_f32x4(ab, cd, 0x88), _mm512_shuffle_f32x4(ab, cd, 0xDD));
}

GN_INLINE void v16_sum_tile(const v16 *x, float scale, float *out)
{
    v16 a = v16_sum_blocks(x);
    v16 b = v16_sum_blocks(x + 1);
    v16 c = v16_sum_blocks(x + 2);
    v16 d = v16_sum_blocks(x + 3);
    v16 ab = _mm512_add_ps(_mm512_shuffle_ps(a, b, 0x44), _mm512_shuffle_ps(a, b, 0xEE));
    v16 cd = _mm512_add_ps(_mm512_shuffle_ps(c, d, 0x44), _mm512_shuffle_ps(c, d, 0xEE));
    v16 sums = _mm512_add_ps(_mm512_shuffle_ps(ab, cd, 0x88), _mm512_shuffle_ps(ab, cd, 0xDD));
    v16_store(out, v16_mul(sums, v16_set1(scale)));
}

#endif
