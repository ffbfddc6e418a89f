/* Scalar conversions between f32 and the 16-bit float types, by integer arithmetic, so that they give
 * the same bits on every machine. */
#ifndef GN_KERNELS_SIMD_HALF_H
#define GN_KERNELS_SIMD_HALF_H

#include "base/attr.h"

#include <stdint.h>
#include <string.h>

GN_INLINE float gn_f32_from_bits(uint32_t bits)
{
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

GN_INLINE uint32_t gn_f32_to_bits(float f)
{
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    return bits;
}

/* IEEE binary16 to binary32: exact. Signalling NaNs become quiet, as the hardware does it. */
GN_INLINE float gn_f32_from_f16(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000) << 16;
    uint32_t exponent = h >> 10 & 31;
    uint32_t mantissa = h & 0x3ff;
    if (exponent == 31) {
        uint32_t quiet = mantissa != 0 ? 0x400000 : 0;
        return gn_f32_from_bits(sign | 0x7f800000 | quiet | mantissa << 13);
    }
    if (exponent == 0) {
        float magnitude = (float)mantissa * 0x1p-24f;
        return gn_f32_from_bits(sign | gn_f32_to_bits(magnitude));
    }
    return gn_f32_from_bits(sign | (exponent + 112) << 23 | mantissa << 13);
}

/* bfloat16 to binary32: exact. */
GN_INLINE float gn_f32_from_bf16(uint16_t h)
{
    return gn_f32_from_bits((uint32_t)h << 16);
}

#endif
