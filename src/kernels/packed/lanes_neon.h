/* packed_simd.h's registers with the dot product instructions of Armv8.2: a register holds four codes of
 * each of 4 rows. Codes become signed numbers by taking away their zero, so sums start at 0. */
#ifndef GN_KERNELS_PACKED_LANES_NEON_H
#define GN_KERNELS_PACKED_LANES_NEON_H

#include "base/attr.h"

#include <arm_neon.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(NDEBUG)
#define MAX_ROWS 4 /* activation rows at once */
#else
#define MAX_ROWS 2
#endif

enum { LANE_ROWS = 4, SUMS_START = 0 };

typedef uint8x16_t lane;
typedef float32x4_t lane_f32;
typedef int8x16_t lane_factor;
typedef int32x4_t lane_sum;

GN_INLINE lane lane_shl(lane v, size_t n)
{
    return vreinterpretq_u8_u32(vshlq_u32(vreinterpretq_u32_u8(v), vdupq_n_s32((int)n)));
}

GN_INLINE lane lane_shr(lane v, size_t n)
{
    return vreinterpretq_u8_u32(vshlq_u32(vreinterpretq_u32_u8(v), vdupq_n_s32(-(int)n)));
}

GN_INLINE lane lane_load(const uint8_t *p)
{
    return vld1q_u8(p);
}

GN_INLINE void lane_store(uint8_t *p, lane v)
{
    vst1q_u8(p, v);
}

GN_INLINE lane lane_set_u8(uint8_t x)
{
    return vdupq_n_u8(x);
}

GN_INLINE lane lane_set_16(const void *p)
{
    return vld1q_u8(p);
}

GN_INLINE lane lane_and(lane a, lane b)
{
    return vandq_u8(a, b);
}

GN_INLINE lane lane_merge(lane base, lane v, lane mask)
{
    return vorrq_u8(base, vandq_u8(v, mask));
}

GN_INLINE lane lane_look_up(lane table, lane v)
{
    return vqtbl1q_u8(table, v);
}

GN_INLINE lane_factor lane_prepare(lane codes, int is_signed, int zero)
{
    (void)is_signed;
    return vreinterpretq_s8_u8(vsubq_u8(codes, vdupq_n_u8((uint8_t)zero)));
}

GN_INLINE lane_sum lane_sum_start(int32_t start)
{
    return vdupq_n_s32(start);
}

GN_INLINE lane_sum lane_sum_add(lane_sum sum, lane_factor codes, const int8_t *p, int is_signed,
                                size_t step, size_t run)
{
    (void)is_signed;
    (void)step;
    (void)run;
    int32_t four;
    memcpy(&four, p, sizeof four);
    return vdotq_s32(sum, codes, vreinterpretq_s8_s32(vdupq_n_s32(four)));
}

GN_INLINE lane_f32 lane_sum_end(lane_sum sum)
{
    return vcvtq_f32_s32(sum);
}

GN_INLINE lane_f32 lane_f32_load(const float *p)
{
    return vld1q_f32(p);
}

GN_INLINE void lane_f32_store(float *p, lane_f32 v)
{
    vst1q_f32(p, v);
}

GN_INLINE lane_f32 lane_f32_set(float x)
{
    return vdupq_n_f32(x);
}

GN_INLINE lane_f32 lane_f32_mul(lane_f32 a, lane_f32 b)
{
    return vmulq_f32(a, b);
}

GN_INLINE lane_f32 lane_f32_fma(lane_f32 a, lane_f32 b, lane_f32 c)
{
    return vfmaq_f32(c, a, b);
}

#endif
