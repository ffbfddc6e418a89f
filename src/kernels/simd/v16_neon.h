/* The 16-lane vector of simd/v16.h in four NEON registers. */
#ifndef GN_KERNELS_SIMD_V16_NEON_H
#define GN_KERNELS_SIMD_V16_NEON_H

#include "base/attr.h"

#include <arm_neon.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define V16_FN(op) gn_k_##op##_arm_neon

#define V16_TILE 4
#define V16_ROWS 4

typedef struct v16 {
    float32x4_t q[4];
} v16;

/* Apply an expression in i to the four registers. */
#define V16_EACH(expr)                                                                             \
    v16 y;                                                                                         \
    for (int i = 0; i < 4; i++) {                                                                  \
        y.q[i] = (expr);                                                                           \
    }                                                                                              \
    return y

GN_INLINE v16 v16_set1(float x)
{
    V16_EACH(vdupq_n_f32(x));
}

GN_INLINE v16 v16_load(const float *p)
{
    V16_EACH(vld1q_f32(p + 4 * i));
}

GN_INLINE v16 v16_load_n(const float *p, size_t n)
{
    float padded[16] = {0};
    memcpy(padded, p, n * sizeof *p);
    return v16_load(padded);
}

GN_INLINE void v16_store(float *p, v16 x)
{
    for (int i = 0; i < 4; i++) {
        vst1q_f32(p + 4 * i, x.q[i]);
    }
}

GN_INLINE void v16_store_n(float *p, v16 x, size_t n)
{
    float all[16];
    v16_store(all, x);
    memcpy(p, all, n * sizeof *p);
}

GN_INLINE v16 v16_load_f16(const uint16_t *p)
{
    V16_EACH(vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(p + 4 * i))));
}

GN_INLINE v16 v16_load_f16_n(const uint16_t *p, size_t n)
{
    uint16_t padded[16] = {0};
    memcpy(padded, p, n * sizeof *p);
    return v16_load_f16(padded);
}

GN_INLINE void v16_store_f16(uint16_t *p, v16 x)
{
    for (int i = 0; i < 4; i++) {
        vst1_u16(p + 4 * i, vreinterpret_u16_f16(vcvt_f16_f32(x.q[i])));
    }
}

GN_INLINE void v16_store_f16_n(uint16_t *p, v16 x, size_t n)
{
    uint16_t all[16];
    v16_store_f16(all, x);
    memcpy(p, all, n * sizeof *p);
}

GN_INLINE v16 v16_load_bf16(const uint16_t *p)
{
    V16_EACH(vreinterpretq_f32_u32(vshll_n_u16(vld1_u16(p + 4 * i), 16)));
}

GN_INLINE v16 v16_load_bf16_n(const uint16_t *p, size_t n)
{
    uint16_t padded[16] = {0};
    memcpy(padded, p, n * sizeof *p);
    return v16_load_bf16(padded);
}

GN_INLINE v16 v16_load_i8(const int8_t *p)
{
    int8x16_t x = vld1q_s8(p);
    int16x8_t low = vmovl_s8(vget_low_s8(x));
    int16x8_t high = vmovl_s8(vget_high_s8(x));
    return (v16){{vcvtq_f32_s32(vmovl_s16(vget_low_s16(low))),
                  vcvtq_f32_s32(vmovl_s16(vget_high_s16(low))),
                  vcvtq_f32_s32(vmovl_s16(vget_low_s16(high))),
                  vcvtq_f32_s32(vmovl_s16(vget_high_s16(high)))}};
}

GN_INLINE uint16x8_t v16_e4m3_fields(uint8x8_t x)
{
    int16x8_t fields = vshlq_n_s16(vmovl_s8(vreinterpret_s8_u8(x)), 7);
    return vandq_u16(vreinterpretq_u16_s16(fields), vdupq_n_u16(0xbf80));
}

GN_INLINE v16 v16_load_e4m3(const uint8_t *p)
{
    uint8x16_t x = vld1q_u8(p);
    uint16x8_t low = v16_e4m3_fields(vget_low_u8(x));
    uint16x8_t high = v16_e4m3_fields(vget_high_u8(x));
    return (v16){{vcvt_f32_f16(vreinterpret_f16_u16(vget_low_u16(low))),
                  vcvt_f32_f16(vreinterpret_f16_u16(vget_high_u16(low))),
                  vcvt_f32_f16(vreinterpret_f16_u16(vget_low_u16(high))),
                  vcvt_f32_f16(vreinterpret_f16_u16(vget_high_u16(high)))}};
}

GN_INLINE void v16_load_i4(const uint8_t *p, v16 *low, v16 *high)
{
    int8x16_t x = vld1q_s8((const int8_t *)p);
    int8x16_t one = vdupq_n_s8(1);
    int8_t codes[16];
    vst1q_s8(codes, vorrq_s8(vshrq_n_s8(vshlq_n_s8(x, 4), 3), one));
    *low = v16_load_i8(codes);
    vst1q_s8(codes, vorrq_s8(vshrq_n_s8(x, 3), one));
    *high = v16_load_i8(codes);
}

GN_INLINE v16 v16_add(v16 a, v16 b)
{
    V16_EACH(vaddq_f32(a.q[i], b.q[i]));
}

GN_INLINE v16 v16_sub(v16 a, v16 b)
{
    V16_EACH(vsubq_f32(a.q[i], b.q[i]));
}

GN_INLINE v16 v16_mul(v16 a, v16 b)
{
    V16_EACH(vmulq_f32(a.q[i], b.q[i]));
}

GN_INLINE v16 v16_div(v16 a, v16 b)
{
    V16_EACH(vdivq_f32(a.q[i], b.q[i]));
}

GN_INLINE v16 v16_fma(v16 a, v16 b, v16 c)
{
    V16_EACH(vfmaq_f32(c.q[i], a.q[i], b.q[i]));
}

GN_INLINE v16 v16_fms(v16 a, v16 b, v16 c)
{
    V16_EACH(vfmaq_f32(vnegq_f32(c.q[i]), a.q[i], b.q[i]));
}

GN_INLINE v16 v16_fnma(v16 a, v16 b, v16 c)
{
    V16_EACH(vfmsq_f32(c.q[i], a.q[i], b.q[i]));
}

GN_INLINE v16 v16_neg(v16 a)
{
    V16_EACH(vnegq_f32(a.q[i]));
}

GN_INLINE v16 v16_abs(v16 a)
{
    V16_EACH(vabsq_f32(a.q[i]));
}

GN_INLINE v16 v16_copysign(v16 a, v16 sign)
{
    V16_EACH(vbslq_f32(vdupq_n_u32(0x80000000u), sign.q[i], a.q[i]));
}

/* Not FMAX and FMIN: these pass NaN on from either side and order the zeros. */
GN_INLINE v16 v16_max(v16 a, v16 b)
{
    V16_EACH(vbslq_f32(vcgtq_f32(a.q[i], b.q[i]), a.q[i], b.q[i]));
}

GN_INLINE v16 v16_min(v16 a, v16 b)
{
    V16_EACH(vbslq_f32(vcltq_f32(a.q[i], b.q[i]), a.q[i], b.q[i]));
}

GN_INLINE v16 v16_if_lt(v16 a, v16 b, v16 yes, v16 no)
{
    V16_EACH(vbslq_f32(vcltq_f32(a.q[i], b.q[i]), yes.q[i], no.q[i]));
}

GN_INLINE v16 v16_first_n(v16 x, size_t n, v16 rest)
{
    static const uint32_t lane[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    V16_EACH(
        vbslq_f32(vcltq_u32(vld1q_u32(lane + 4 * i), vdupq_n_u32((uint32_t)n)), x.q[i], rest.q[i]));
}

GN_INLINE v16 v16_round(v16 x)
{
    V16_EACH(vrndnq_f32(x.q[i]));
}

/* Two factors, each a normal number: the first product is exact, the second rounds once. */
GN_INLINE float32x4_t v16_scale2_quarter(float32x4_t x, float32x4_t n)
{
    int32x4_t whole = vcvtq_s32_f32(n);
    int32x4_t first = vshrq_n_s32(whole, 1);
    int32x4_t second = vsubq_s32(whole, first);
    int32x4_t bias = vdupq_n_s32(127);
    first = vshlq_n_s32(vaddq_s32(first, bias), 23);
    second = vshlq_n_s32(vaddq_s32(second, bias), 23);
    return vmulq_f32(vmulq_f32(x, vreinterpretq_f32_s32(first)), vreinterpretq_f32_s32(second));
}

GN_INLINE v16 v16_scale2(v16 x, v16 n)
{
    V16_EACH(v16_scale2_quarter(x.q[i], n.q[i]));
}

GN_INLINE void v16_load_pairs(const float *p, v16 *even, v16 *odd)
{
    for (int i = 0; i < 4; i++) {
        float32x4x2_t pair = vld2q_f32(p + 8 * i);
        even->q[i] = pair.val[0];
        odd->q[i] = pair.val[1];
    }
}

GN_INLINE void v16_store_pairs(float *p, v16 even, v16 odd)
{
    for (int i = 0; i < 4; i++) {
        vst2q_f32(p + 8 * i, (float32x4x2_t){{even.q[i], odd.q[i]}});
    }
}

/* The first two levels of the tree. */
GN_INLINE float32x4_t v16_sum_block(v16 x)
{
    return vaddq_f32(vaddq_f32(x.q[0], x.q[2]), vaddq_f32(x.q[1], x.q[3]));
}

/* The third level over a and b. */
GN_INLINE float32x4_t v16_sum_pair(float32x4_t a, float32x4_t b)
{
    return vaddq_f32(vcombine_f32(vget_low_f32(a), vget_low_f32(b)),
                     vcombine_f32(vget_high_f32(a), vget_high_f32(b)));
}

GN_INLINE float v16_sum(v16 x)
{
    float32x4_t x4 = v16_sum_block(x);
    return vpadds_f32(vadd_f32(vget_low_f32(x4), vget_high_f32(x4)));
}

GN_INLINE float v16_hmax(v16 x)
{
    float lane[16];
    v16_store(lane, x);
    for (int half = 8; half > 0; half /= 2) {
        for (int i = 0; i < half; i++) {
            lane[i] = lane[i] > lane[i + half] ? lane[i] : lane[i + half];
        }
    }
    return lane[0];
}

GN_INLINE void v16_sum_tile(const v16 *x, float scale, float *out)
{
    float32x4_t ab = v16_sum_pair(v16_sum_block(x[0]), v16_sum_block(x[1]));
    float32x4_t cd = v16_sum_pair(v16_sum_block(x[2]), v16_sum_block(x[3]));
    vst1q_f32(out, vmulq_n_f32(vpaddq_f32(ab, cd), scale));
}

#endif
