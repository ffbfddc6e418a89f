/* simd/b64.h with NEON: four registers. What the operations mean is said in b64_avx512.h. */
#ifndef GN_KERNELS_SIMD_B64_NEON_H
#define GN_KERNELS_SIMD_B64_NEON_H

#include "base/attr.h"

#include <arm_neon.h>
#include <stddef.h>
#include <stdint.h>

typedef struct b64 {
    uint8x16_t q[4];
} b64;
typedef struct f32x16 {
    float32x4_t q[4];
} f32x16;

#define B64_U32(v)        vreinterpretq_u32_u8(v)
#define B64_S32(v)        vreinterpretq_s32_u8(v)
#define B64_EACH(expr)    ((b64){{expr(0), expr(1), expr(2), expr(3)}})
#define F32X16_EACH(expr) ((f32x16){{expr(0), expr(1), expr(2), expr(3)}})

GN_INLINE b64 b64_load(const void *p)
{
    const uint8_t *b = p;
    return (b64){{vld1q_u8(b), vld1q_u8(b + 16), vld1q_u8(b + 32), vld1q_u8(b + 48)}};
}

GN_INLINE void b64_store(void *p, b64 v)
{
    for (int i = 0; i < 4; i++) {
        vst1q_u8((uint8_t *)p + 16 * i, v.q[i]);
    }
}

GN_INLINE b64 b64_set_u32(uint32_t x)
{
    uint8x16_t v = vreinterpretq_u8_u32(vdupq_n_u32(x));
    return (b64){{v, v, v, v}};
}

GN_INLINE b64 b64_set_16(const void *p)
{
    uint8x16_t v = vld1q_u8(p);
    return (b64){{v, v, v, v}};
}

GN_INLINE b64 b64_and(b64 a, b64 b)
{
#define E(i) vandq_u8(a.q[i], b.q[i])
    return B64_EACH(E);
#undef E
}

GN_INLINE b64 b64_or(b64 a, b64 b)
{
#define E(i) vorrq_u8(a.q[i], b.q[i])
    return B64_EACH(E);
#undef E
}

GN_INLINE b64 b64_xor(b64 a, b64 b)
{
#define E(i) veorq_u8(a.q[i], b.q[i])
    return B64_EACH(E);
#undef E
}

GN_INLINE b64 b64_add_u32(b64 a, b64 b)
{
#define E(i) vreinterpretq_u8_u32(vaddq_u32(B64_U32(a.q[i]), B64_U32(b.q[i])))
    return B64_EACH(E);
#undef E
}

GN_INLINE b64 b64_mul_i32(b64 a, b64 b)
{
#define E(i) vreinterpretq_u8_u32(vmulq_u32(B64_U32(a.q[i]), B64_U32(b.q[i])))
    return B64_EACH(E);
#undef E
}

GN_INLINE b64 b64_load_u8(const void *p)
{
    const uint8x16_t bytes = vld1q_u8(p);
    const uint16x8_t lo = vmovl_u8(vget_low_u8(bytes));
    const uint16x8_t hi = vmovl_u8(vget_high_u8(bytes));
    return (b64){{vreinterpretq_u8_u32(vmovl_u16(vget_low_u16(lo))),
                  vreinterpretq_u8_u32(vmovl_u16(vget_high_u16(lo))),
                  vreinterpretq_u8_u32(vmovl_u16(vget_low_u16(hi))),
                  vreinterpretq_u8_u32(vmovl_u16(vget_high_u16(hi)))}};
}

GN_INLINE b64 b64_shl(b64 v, int n)
{
#define E(i) vreinterpretq_u8_u32(vshlq_u32(B64_U32(v.q[i]), vdupq_n_s32(n)))
    return B64_EACH(E);
#undef E
}

GN_INLINE b64 b64_shr(b64 v, int n)
{
    return b64_shl(v, -n);
}

GN_INLINE b64 b64_select_less(b64 a, b64 b, b64 x, b64 y)
{
#define E(i)                                                                                       \
    vbslq_u8(vreinterpretq_u8_u32(vcltq_s32(B64_S32(a.q[i]), B64_S32(b.q[i]))), x.q[i], y.q[i])
    return B64_EACH(E);
#undef E
}

GN_INLINE b64 b64_look_up(b64 table, b64 v)
{
#define E(i) vqtbl1q_u8(table.q[i], v.q[i])
    return B64_EACH(E);
#undef E
}

GN_INLINE b64 b64_shuffle(b64 v, b64 control)
{
#define E(i) vqtbl1q_u8(v.q[i], control.q[i])
    return B64_EACH(E);
#undef E
}

GN_INLINE b64 b64_or_if(b64 base, b64 v, b64 mask, b64 bit)
{
#define E(i) vorrq_u8(base.q[i], vandq_u8(vtstq_u8(v.q[i], mask.q[i]), bit.q[i]))
    return B64_EACH(E);
#undef E
}

GN_INLINE uint32x4_t b64_row_words(const uint8_t *p)
{
    return vreinterpretq_u32_u8(vld1q_u8(p));
}

GN_INLINE uint8x16_t b64_low_pair(uint32x4_t a, uint32x4_t b)
{
    return vreinterpretq_u8_u64(vtrn1q_u64(vreinterpretq_u64_u32(a), vreinterpretq_u64_u32(b)));
}

GN_INLINE uint8x16_t b64_high_pair(uint32x4_t a, uint32x4_t b)
{
    return vreinterpretq_u8_u64(vtrn2q_u64(vreinterpretq_u64_u32(a), vreinterpretq_u64_u32(b)));
}

GN_INLINE void b64_load_rows(const uint8_t *p, size_t stride, b64 out[4])
{
    for (int i = 0; i < 4; i++, p += 4 * stride) {
        uint32x4_t r0 = b64_row_words(p);
        uint32x4_t r1 = b64_row_words(p + stride);
        uint32x4_t r2 = b64_row_words(p + 2 * stride);
        uint32x4_t r3 = b64_row_words(p + 3 * stride);
        uint32x4_t even01 = vtrn1q_u32(r0, r1);
        uint32x4_t odd01 = vtrn2q_u32(r0, r1);
        uint32x4_t even23 = vtrn1q_u32(r2, r3);
        uint32x4_t odd23 = vtrn2q_u32(r2, r3);
        out[0].q[i] = b64_low_pair(even01, even23);
        out[1].q[i] = b64_low_pair(odd01, odd23);
        out[2].q[i] = b64_high_pair(even01, even23);
        out[3].q[i] = b64_high_pair(odd01, odd23);
    }
}

GN_INLINE b64 b64_max_u32(b64 a, b64 b)
{
#define E(i) vreinterpretq_u8_u32(vmaxq_u32(B64_U32(a.q[i]), B64_U32(b.q[i])))
    return B64_EACH(E);
#undef E
}

GN_INLINE uint32_t b64_reduce_max_u32(b64 v)
{
    return vmaxvq_u32(vmaxq_u32(vmaxq_u32(B64_U32(v.q[0]), B64_U32(v.q[1])),
                                vmaxq_u32(B64_U32(v.q[2]), B64_U32(v.q[3]))));
}

GN_INLINE int32_t b64_reduce_add_i32(b64 v)
{
    return vaddvq_s32(vaddq_s32(vaddq_s32(B64_S32(v.q[0]), B64_S32(v.q[1])),
                                vaddq_s32(B64_S32(v.q[2]), B64_S32(v.q[3]))));
}

GN_INLINE void b64_store_low_bytes(int8_t *p, b64 v)
{
    int16x8_t lo = vcombine_s16(vmovn_s32(B64_S32(v.q[0])), vmovn_s32(B64_S32(v.q[1])));
    int16x8_t hi = vcombine_s16(vmovn_s32(B64_S32(v.q[2])), vmovn_s32(B64_S32(v.q[3])));
    vst1q_s8(p, vcombine_s8(vmovn_s16(lo), vmovn_s16(hi)));
}

GN_INLINE f32x16 f32x16_from_bits(b64 v)
{
#define E(i) vreinterpretq_f32_u8(v.q[i])
    return F32X16_EACH(E);
#undef E
}

GN_INLINE f32x16 f32x16_load_f16(const void *p)
{
#define E(i) vcvt_f32_f16(vreinterpret_f16_u8(vld1_u8((const uint8_t *)p + 8 * (i))))
    return F32X16_EACH(E);
#undef E
}

GN_INLINE f32x16 f32x16_from_f16(b64 v)
{
#define E(i) vcvt_f32_f16(vreinterpret_f16_u16(vmovn_u32(B64_U32(v.q[i]))))
    return F32X16_EACH(E);
#undef E
}

GN_INLINE f32x16 f32x16_from_i32(b64 v)
{
#define E(i) vcvtq_f32_s32(B64_S32(v.q[i]))
    return F32X16_EACH(E);
#undef E
}

GN_INLINE f32x16 f32x16_from_i8(b64 v, int n)
{
    v = b64_shl(v, 24 - 8 * n);
#define E(i) vcvtq_f32_s32(vshrq_n_s32(B64_S32(v.q[i]), 24))
    return F32X16_EACH(E);
#undef E
}

GN_INLINE b64 f32x16_to_i32(f32x16 v)
{
#define E(i) vreinterpretq_u8_s32(vcvtnq_s32_f32(v.q[i]))
    return B64_EACH(E);
#undef E
}

GN_INLINE f32x16 f32x16_load(const float *p)
{
#define E(i) vld1q_f32(p + 4 * (i))
    return F32X16_EACH(E);
#undef E
}

GN_INLINE f32x16 f32x16_load_twice(const float *p)
{
    const float32x4_t lo = vld1q_f32(p);
    const float32x4_t hi = vld1q_f32(p + 4);
    return (f32x16){
        {vzip1q_f32(lo, lo), vzip2q_f32(lo, lo), vzip1q_f32(hi, hi), vzip2q_f32(hi, hi)}};
}

GN_INLINE void f32x16_store(float *p, f32x16 v)
{
    for (int i = 0; i < 4; i++) {
        vst1q_f32(p + 4 * i, v.q[i]);
    }
}

GN_INLINE f32x16 f32x16_set(float x)
{
    float32x4_t v = vdupq_n_f32(x);
    return (f32x16){{v, v, v, v}};
}

GN_INLINE f32x16 f32x16_mul(f32x16 a, f32x16 b)
{
#define E(i) vmulq_f32(a.q[i], b.q[i])
    return F32X16_EACH(E);
#undef E
}

GN_INLINE f32x16 f32x16_neg(f32x16 v)
{
#define E(i) vnegq_f32(v.q[i])
    return F32X16_EACH(E);
#undef E
}

#endif
