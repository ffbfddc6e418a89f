/* packed_simd.h's registers with AVX2: a register holds four codes of each of 8 rows.
 *
 * vpmaddubsw multiplies unsigned codes with signed activations and adds pairs in 16 bits, where `run` steps
 * must not overflow: 8 of codes up to 15 (30480), 4 up to 31, 2 up to 63. Codes of 8 bits are taken as signed
 * numbers; their sign is moved to the activations, which gives at most 2 * 128 * 127, one step. Other sums
 * start at -zero * sum a. */
#ifndef GN_KERNELS_PACKED_LANES_AVX2_H
#define GN_KERNELS_PACKED_LANES_AVX2_H

#include "base/attr.h"

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(NDEBUG)
#define MAX_ROWS 4 /* activation rows at once */
#else
#define MAX_ROWS 2
#endif

enum { LANE_ROWS = 8, SUMS_START = 1 };

typedef __m256i lane;
typedef __m256 lane_f32;
typedef struct lane_factor {
    lane size;
    lane sign; /* of signed codes */
} lane_factor;
typedef struct lane_sum {
    lane total;
    lane pairs; /* 16 bits */
} lane_sum;

GN_INLINE lane lane_shl(lane v, size_t n)
{
    return _mm256_slli_epi32(v, (int)n);
}

GN_INLINE lane lane_shr(lane v, size_t n)
{
    return _mm256_srli_epi32(v, (int)n);
}

GN_INLINE lane lane_load(const uint8_t *p)
{
    return _mm256_loadu_si256((const __m256i *)p);
}

GN_INLINE void lane_store(uint8_t *p, lane v)
{
    _mm256_storeu_si256((__m256i *)p, v);
}

GN_INLINE lane lane_set_u8(uint8_t x)
{
    return _mm256_set1_epi8((char)x);
}

GN_INLINE lane lane_set_16(const void *p)
{
    return _mm256_broadcastsi128_si256(_mm_loadu_si128(p));
}

GN_INLINE lane lane_and(lane a, lane b)
{
    return _mm256_and_si256(a, b);
}

GN_INLINE lane lane_merge(lane base, lane v, lane mask)
{
    return _mm256_or_si256(base, _mm256_and_si256(v, mask));
}

GN_INLINE lane lane_look_up(lane table, lane v)
{
    return _mm256_shuffle_epi8(table, v);
}

GN_INLINE lane_factor lane_prepare(lane codes, int is_signed, int zero)
{
    (void)zero;
    lane sign = _mm256_xor_si256(codes, lane_set_u8(128));
    return (lane_factor){is_signed ? _mm256_abs_epi8(sign) : codes, sign};
}

GN_INLINE lane_sum lane_sum_start(int32_t start)
{
    return (lane_sum){_mm256_set1_epi32(start), _mm256_setzero_si256()};
}

GN_INLINE lane_sum lane_sum_add(lane_sum sum, lane_factor codes, const int8_t *p, int is_signed,
                                size_t step, size_t run)
{
    int32_t four;
    memcpy(&four, p, sizeof four);
    lane act = _mm256_set1_epi32(four);
    act = is_signed ? _mm256_sign_epi8(act, codes.sign) : act;
    const lane products = _mm256_maddubs_epi16(codes.size, act);
    sum.pairs = step % run == 0 ? products : _mm256_add_epi16(sum.pairs, products);
    if (step % run == run - 1) {
        sum.total = _mm256_add_epi32(sum.total, _mm256_madd_epi16(sum.pairs, _mm256_set1_epi16(1)));
    }
    return sum;
}

GN_INLINE lane_f32 lane_sum_end(lane_sum sum)
{
    return _mm256_cvtepi32_ps(sum.total);
}

GN_INLINE lane_f32 lane_f32_load(const float *p)
{
    return _mm256_loadu_ps(p);
}

GN_INLINE void lane_f32_store(float *p, lane_f32 v)
{
    _mm256_storeu_ps(p, v);
}

GN_INLINE lane_f32 lane_f32_set(float x)
{
    return _mm256_set1_ps(x);
}

GN_INLINE lane_f32 lane_f32_mul(lane_f32 a, lane_f32 b)
{
    return _mm256_mul_ps(a, b);
}

GN_INLINE lane_f32 lane_f32_fma(lane_f32 a, lane_f32 b, lane_f32 c)
{
    return _mm256_fmadd_ps(a, b, c);
}

#endif
