/* The 16-lane vector of simd/v16.h in two AVX registers. */
#ifndef GN_KERNELS_SIMD_V16_AVX2_H
#define GN_KERNELS_SIMD_V16_AVX2_H

#include "base/attr.h"

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define V16_FN(op) gn_k_##op##_x86_avx2

#define V16_TILE 4
#define V16_ROWS 4

typedef struct v16 {
    __m256 lo;
    __m256 hi;
} v16;

/* Lanes below n - base set, n - base clamped to 0 .. 8. */
GN_INLINE __m256i v16_mask8(size_t n, int base)
{
    __m256i lane =
        _mm256_add_epi32(_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7), _mm256_set1_epi32(base));
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n), lane);
}

GN_INLINE v16 v16_set1(float x)
{
    return (v16){_mm256_set1_ps(x), _mm256_set1_ps(x)};
}

GN_INLINE v16 v16_load(const float *p)
{
    return (v16){_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)};
}

GN_INLINE v16 v16_load_n(const float *p, size_t n)
{
    return (v16){_mm256_maskload_ps(p, v16_mask8(n, 0)),
                 n > 8 ? _mm256_maskload_ps(p + 8, v16_mask8(n, 8)) : _mm256_setzero_ps()};
}

GN_INLINE void v16_store(float *p, v16 x)
{
    _mm256_storeu_ps(p, x.lo);
    _mm256_storeu_ps(p + 8, x.hi);
}

GN_INLINE void v16_store_n(float *p, v16 x, size_t n)
{
    _mm256_maskstore_ps(p, v16_mask8(n, 0), x.lo);
    if (n > 8) {
        _mm256_maskstore_ps(p + 8, v16_mask8(n, 8), x.hi);
    }
}

GN_INLINE v16 v16_load_f16(const uint16_t *p)
{
    return (v16){_mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)p)),
                 _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(p + 8)))};
}

GN_INLINE v16 v16_load_f16_n(const uint16_t *p, size_t n)
{
    uint16_t padded[16] = {0};
    memcpy(padded, p, n * sizeof *p);
    return v16_load_f16(padded);
}

GN_INLINE void v16_store_f16(uint16_t *p, v16 x)
{
    enum { mode = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC };
    _mm_storeu_si128((__m128i *)p, _mm256_cvtps_ph(x.lo, mode));
    _mm_storeu_si128((__m128i *)(p + 8), _mm256_cvtps_ph(x.hi, mode));
}

GN_INLINE void v16_store_f16_n(uint16_t *p, v16 x, size_t n)
{
    uint16_t all[16];
    v16_store_f16(all, x);
    memcpy(p, all, n * sizeof *p);
}

GN_INLINE __m256 v16_from_bf16(__m128i bits)
{
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16));
}

GN_INLINE v16 v16_load_bf16(const uint16_t *p)
{
    return (v16){v16_from_bf16(_mm_loadu_si128((const __m128i *)p)),
                 v16_from_bf16(_mm_loadu_si128((const __m128i *)(p + 8)))};
}

GN_INLINE v16 v16_load_bf16_n(const uint16_t *p, size_t n)
{
    uint16_t padded[16] = {0};
    memcpy(padded, p, n * sizeof *p);
    return v16_load_bf16(padded);
}

GN_INLINE v16 v16_load_i8(const int8_t *p)
{
    __m128i x = _mm_loadu_si128((const __m128i *)p);
    return (v16){_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(x)),
                 _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_srli_si128(x, 8)))};
}

GN_INLINE v16 v16_load_e4m3(const uint8_t *p)
{
    __m256i fields =
        _mm256_slli_epi16(_mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)p)), 7);
    fields = _mm256_and_si256(fields, _mm256_set1_epi16((short)0xbf80));
    return (v16){_mm256_cvtph_ps(_mm256_castsi256_si128(fields)),
                 _mm256_cvtph_ps(_mm256_extracti128_si256(fields, 1))};
}

GN_INLINE void v16_odd_codes(__m256i both, __m256 *low, __m256 *high)
{
    __m256i one = _mm256_set1_epi32(1);
    __m256i first = _mm256_srai_epi32(_mm256_slli_epi32(both, 28), 27);
    *low = _mm256_cvtepi32_ps(_mm256_or_si256(first, one));
    *high = _mm256_cvtepi32_ps(_mm256_or_si256(_mm256_srai_epi32(both, 3), one));
}

GN_INLINE void v16_load_i4(const uint8_t *p, v16 *low, v16 *high)
{
    __m128i x = _mm_loadu_si128((const __m128i *)p);
    v16_odd_codes(_mm256_cvtepi8_epi32(x), &low->lo, &high->lo);
    v16_odd_codes(_mm256_cvtepi8_epi32(_mm_srli_si128(x, 8)), &low->hi, &high->hi);
}

GN_INLINE v16 v16_add(v16 a, v16 b)
{
    return (v16){_mm256_add_ps(a.lo, b.lo), _mm256_add_ps(a.hi, b.hi)};
}

GN_INLINE v16 v16_sub(v16 a, v16 b)
{
    return (v16){_mm256_sub_ps(a.lo, b.lo), _mm256_sub_ps(a.hi, b.hi)};
}

GN_INLINE v16 v16_mul(v16 a, v16 b)
{
    return (v16){_mm256_mul_ps(a.lo, b.lo), _mm256_mul_ps(a.hi, b.hi)};
}

GN_INLINE v16 v16_div(v16 a, v16 b)
{
    return (v16){_mm256_div_ps(a.lo, b.lo), _mm256_div_ps(a.hi, b.hi)};
}

GN_INLINE v16 v16_fma(v16 a, v16 b, v16 c)
{
    return (v16){_mm256_fmadd_ps(a.lo, b.lo, c.lo), _mm256_fmadd_ps(a.hi, b.hi, c.hi)};
}

GN_INLINE v16 v16_fms(v16 a, v16 b, v16 c)
{
    return (v16){_mm256_fmsub_ps(a.lo, b.lo, c.lo), _mm256_fmsub_ps(a.hi, b.hi, c.hi)};
}

GN_INLINE v16 v16_fnma(v16 a, v16 b, v16 c)
{
    return (v16){_mm256_fnmadd_ps(a.lo, b.lo, c.lo), _mm256_fnmadd_ps(a.hi, b.hi, c.hi)};
}

GN_INLINE v16 v16_neg(v16 a)
{
    __m256 bit = _mm256_set1_ps(-0.0f);
    return (v16){_mm256_xor_ps(a.lo, bit), _mm256_xor_ps(a.hi, bit)};
}

GN_INLINE v16 v16_abs(v16 a)
{
    __m256 bit = _mm256_set1_ps(-0.0f);
    return (v16){_mm256_andnot_ps(bit, a.lo), _mm256_andnot_ps(bit, a.hi)};
}

GN_INLINE v16 v16_copysign(v16 a, v16 sign)
{
    __m256 bit = _mm256_set1_ps(-0.0f);
    v16 size = v16_abs(a);
    return (v16){_mm256_or_ps(size.lo, _mm256_and_ps(bit, sign.lo)),
                 _mm256_or_ps(size.hi, _mm256_and_ps(bit, sign.hi))};
}

GN_INLINE v16 v16_max(v16 a, v16 b)
{
    return (v16){_mm256_max_ps(a.lo, b.lo), _mm256_max_ps(a.hi, b.hi)};
}

GN_INLINE v16 v16_min(v16 a, v16 b)
{
    return (v16){_mm256_min_ps(a.lo, b.lo), _mm256_min_ps(a.hi, b.hi)};
}

GN_INLINE v16 v16_if_lt(v16 a, v16 b, v16 yes, v16 no)
{
    return (v16){_mm256_blendv_ps(no.lo, yes.lo, _mm256_cmp_ps(a.lo, b.lo, _CMP_LT_OQ)),
                 _mm256_blendv_ps(no.hi, yes.hi, _mm256_cmp_ps(a.hi, b.hi, _CMP_LT_OQ))};
}

GN_INLINE v16 v16_first_n(v16 x, size_t n, v16 rest)
{
    return (v16){_mm256_blendv_ps(rest.lo, x.lo, _mm256_castsi256_ps(v16_mask8(n, 0))),
                 _mm256_blendv_ps(rest.hi, x.hi, _mm256_castsi256_ps(v16_mask8(n, 8)))};
}

GN_INLINE v16 v16_round(v16 x)
{
    enum { mode = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC };
    return (v16){_mm256_round_ps(x.lo, mode), _mm256_round_ps(x.hi, mode)};
}

/* Two factors, each a normal number: the first product is exact, the second rounds once. */
GN_INLINE __m256 v16_scale2_half(__m256 x, __m256 n)
{
    __m256i whole = _mm256_cvtps_epi32(n);
    __m256i first = _mm256_srai_epi32(whole, 1);
    __m256i second = _mm256_sub_epi32(whole, first);
    __m256i bias = _mm256_set1_epi32(127);
    first = _mm256_slli_epi32(_mm256_add_epi32(first, bias), 23);
    second = _mm256_slli_epi32(_mm256_add_epi32(second, bias), 23);
    return _mm256_mul_ps(_mm256_mul_ps(x, _mm256_castsi256_ps(first)), _mm256_castsi256_ps(second));
}

GN_INLINE v16 v16_scale2(v16 x, v16 n)
{
    return (v16){v16_scale2_half(x.lo, n.lo), v16_scale2_half(x.hi, n.hi)};
}

/* The even (imm 0x88) or the odd (0xDD) elements of two registers. */
#define V16_PICK(a, b, imm)                                                                        \
    _mm256_castpd_ps(                                                                              \
        _mm256_permute4x64_pd(_mm256_castps_pd(_mm256_shuffle_ps((a), (b), (imm))), 0xD8))

GN_INLINE void v16_load_pairs(const float *p, v16 *even, v16 *odd)
{
    v16 a = v16_load(p);
    v16 b = v16_load(p + 16);
    *even = (v16){V16_PICK(a.lo, a.hi, 0x88), V16_PICK(b.lo, b.hi, 0x88)};
    *odd = (v16){V16_PICK(a.lo, a.hi, 0xDD), V16_PICK(b.lo, b.hi, 0xDD)};
}

GN_INLINE v16 v16_interleave(__m256 even, __m256 odd)
{
    __m256 low = _mm256_unpacklo_ps(even, odd);
    __m256 high = _mm256_unpackhi_ps(even, odd);
    return (v16){_mm256_permute2f128_ps(low, high, 0x20), _mm256_permute2f128_ps(low, high, 0x31)};
}

GN_INLINE void v16_store_pairs(float *p, v16 even, v16 odd)
{
    v16_store(p, v16_interleave(even.lo, odd.lo));
    v16_store(p + 16, v16_interleave(even.hi, odd.hi));
}

GN_INLINE float v16_sum(v16 x)
{
    __m256 x8 = _mm256_add_ps(x.lo, x.hi);
    __m128 x4 = _mm_add_ps(_mm256_castps256_ps128(x8), _mm256_extractf128_ps(x8, 1));
    __m128 x2 = _mm_add_ps(x4, _mm_movehl_ps(x4, x4));
    return _mm_cvtss_f32(_mm_add_ss(x2, _mm_movehdup_ps(x2)));
}

GN_INLINE float v16_hmax(v16 x)
{
    __m256 x8 = _mm256_max_ps(x.lo, x.hi);
    __m128 x4 = _mm_max_ps(_mm256_castps256_ps128(x8), _mm256_extractf128_ps(x8, 1));
    __m128 x2 = _mm_max_ps(x4, _mm_movehl_ps(x4, x4));
    return _mm_cvtss_f32(_mm_max_ss(x2, _mm_movehdup_ps(x2)));
}

/* One 128-bit block a vector: the first two levels of the tree over a and b. */
GN_INLINE __m256 v16_sum_blocks(v16 a, v16 b)
{
    __m256 a8 = _mm256_add_ps(a.lo, a.hi);
    __m256 b8 = _mm256_add_ps(b.lo, b.hi);
    return _mm256_add_ps(_mm256_permute2f128_ps(a8, b8, 0x20),
                         _mm256_permute2f128_ps(a8, b8, 0x31));
}

GN_INLINE void v16_sum_tile(const v16 *x, float scale, float *out)
{
    __m256 a = v16_sum_blocks(x[0], x[2]);
    __m256 b = v16_sum_blocks(x[1], x[3]);
    __m256 ab = _mm256_add_ps(_mm256_shuffle_ps(a, b, 0x44), _mm256_shuffle_ps(a, b, 0xEE));
    __m128 low = _mm256_castps256_ps128(ab);
    __m128 high = _mm256_extractf128_ps(ab, 1);
    __m128 sums = _mm_add_ps(_mm_shuffle_ps(low, high, 0x88), _mm_shuffle_ps(low, high, 0xDD));
    _mm_storeu_ps(out, _mm_mul_ps(sums, _mm_set1_ps(scale)));
}

#endif
