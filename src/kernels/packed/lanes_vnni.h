/* packed_simd.h's registers with AVX-512 VNNI: a register holds a step, four codes of each of 16 rows, and is
 * multiplied with four activations, the same for all lanes. Codes are unsigned, as the instruction wants
 * them: sums start at -zero * sum a. */
#ifndef GN_KERNELS_PACKED_LANES_VNNI_H
#define GN_KERNELS_PACKED_LANES_VNNI_H

#include "base/attr.h"

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

#if defined(NDEBUG)
#define MAX_ROWS 8 /* activation rows at once */
#else
#define MAX_ROWS 2
#endif

enum { LANE_ROWS = 16, SUMS_START = 1 };

typedef __m512i lane;
typedef __m512 lane_f32;
typedef __m512i lane_factor;
typedef __m512i lane_sum;

GN_INLINE lane lane_shl(lane v, size_t n)
{
    return _mm512_slli_epi32(v, (unsigned)n);
}

GN_INLINE lane lane_shr(lane v, size_t n)
{
    return _mm512_srli_epi32(v, (unsigned)n);
}

GN_INLINE lane lane_load(const uint8_t *p)
{
    return _mm512_loadu_si512(p);
}

GN_INLINE void lane_store(uint8_t *p, lane v)
{
    _mm512_storeu_si512(p, v);
}

GN_INLINE lane lane_set_u8(uint8_t x)
{
    return _mm512_set1_epi8((char)x);
}

GN_INLINE lane lane_set_16(const void *p)
{
    return _mm512_broadcast_i32x4(_mm_loadu_si128(p));
}

GN_INLINE lane lane_and(lane a, lane b)
{
    return _mm512_and_si512(a, b);
}

/* base | (v & mask) */
GN_INLINE lane lane_merge(lane base, lane v, lane mask)
{
    return _mm512_ternarylogic_epi32(base, v, mask, 0xf8);
}

GN_INLINE lane lane_look_up(lane table, lane v)
{
    return _mm512_shuffle_epi8(table, v);
}

GN_INLINE lane_factor lane_prepare(lane codes, int is_signed, int zero)
{
    (void)is_signed;
    (void)zero;
    return codes;
}

GN_INLINE lane_sum lane_sum_start(int32_t start)
{
    return _mm512_set1_epi32(start);
}

/* The step with four activations at p, added to the sum. Written out because compilers load the broadcast with
 * an instruction of its own, and the front end is the bottleneck. */
GN_INLINE lane_sum lane_sum_add(lane_sum sum, lane_factor codes, const int8_t *p, int is_signed,
                                size_t step, size_t run)
{
    (void)is_signed;
    (void)step;
    (void)run;
    __asm__("vpdpbusd %2%{1to16%}, %1, %0" : "+v"(sum) : "v"(codes), "m"(*(const int8_t(*)[4])p));
    return sum;
}

GN_INLINE lane_f32 lane_sum_end(lane_sum sum)
{
    return _mm512_cvtepi32_ps(sum);
}

GN_INLINE lane_f32 lane_f32_load(const float *p)
{
    return _mm512_loadu_ps(p);
}

GN_INLINE void lane_f32_store(float *p, lane_f32 v)
{
    _mm512_storeu_ps(p, v);
}

GN_INLINE lane_f32 lane_f32_set(float x)
{
    return _mm512_set1_ps(x);
}

GN_INLINE lane_f32 lane_f32_mul(lane_f32 a, lane_f32 b)
{
    return _mm512_mul_ps(a, b);
}

GN_INLINE lane_f32 lane_f32_fma(lane_f32 a, lane_f32 b, lane_f32 c)
{
    return _mm512_fmadd_ps(a, b, c);
}

#endif
