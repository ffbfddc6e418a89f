/* Blocks of every quantized format taken apart, in plain C: into unsigned codes q, and a scale (and a
 * minimum) per group, such that weight = scale * (q - zero) + min. Inlined, so that compilers see the
 * loops together with what is done with their results. */
#ifndef GN_KERNELS_QUANT_UNPACK_H
#define GN_KERNELS_QUANT_UNPACK_H

#include "kernels/simd/half.h"

#include <stddef.h>
#include <stdint.h>

#define MAX_BLOCK  256
#define MAX_GROUPS 16

typedef struct unpacked {
    uint8_t q[MAX_BLOCK];
    float scale[MAX_GROUPS];
    float min[MAX_GROUPS];
} unpacked;

GN_INLINE uint16_t load_u16(const uint8_t *p)
{
    return (uint16_t)(p[0] | p[1] << 8);
}

GN_INLINE uint32_t load_u32(const uint8_t *p)
{
    return (uint32_t)load_u16(p) | (uint32_t)load_u16(p + 2) << 16;
}

GN_INLINE float load_f16(const uint8_t *p)
{
    return gn_f32_from_f16(load_u16(p));
}

/* 16 bytes hold 32 codes: low nibbles the first 16, high nibbles the other 16. */
GN_INLINE void unpack_nibbles(const uint8_t *qs, uint8_t *q)
{
    for (int i = 0; i < 16; i++) {
        q[i] = qs[i] & 15;
        q[16 + i] = qs[i] >> 4;
    }
}

/* Bit i of `high` becomes bit 4 of code i. */
GN_INLINE void add_fifth_bits(uint32_t high, uint8_t *q)
{
    for (int i = 0; i < 32; i++) {
        q[i] = (uint8_t)(q[i] | (high >> i & 1) << 4);
    }
}

GN_INLINE void unpack_q4_0(const uint8_t *block, unpacked *u)
{
    u->scale[0] = load_f16(block);
    unpack_nibbles(block + 2, u->q);
}

GN_INLINE void unpack_q4_1(const uint8_t *block, unpacked *u)
{
    u->scale[0] = load_f16(block);
    u->min[0] = load_f16(block + 2);
    unpack_nibbles(block + 4, u->q);
}

GN_INLINE void unpack_q5_0(const uint8_t *block, unpacked *u)
{
    u->scale[0] = load_f16(block);
    unpack_nibbles(block + 6, u->q);
    add_fifth_bits(load_u32(block + 2), u->q);
}

GN_INLINE void unpack_q5_1(const uint8_t *block, unpacked *u)
{
    u->scale[0] = load_f16(block);
    u->min[0] = load_f16(block + 2);
    unpack_nibbles(block + 8, u->q);
    add_fifth_bits(load_u32(block + 4), u->q);
}

GN_INLINE void unpack_q8_0(const uint8_t *block, unpacked *u)
{
    u->scale[0] = load_f16(block);
    for (int i = 0; i < 32; i++) {
        u->q[i] = block[2 + i] ^ 0x80;
    }
}

/* The 2-bit codes of Q2_K and Q3_K: 32 bytes hold four groups of 32, two bits each. */
GN_INLINE void unpack_crumbs(const uint8_t *qs, uint8_t *q)
{
    for (int g = 0; g < 8; g++) {
        for (int i = 0; i < 32; i++) {
            q[g * 32 + i] = qs[g / 4 * 32 + i] >> (g % 4 * 2) & 3;
        }
    }
}

/* Bit g of 32 bytes becomes `bit` of the codes of the g-th group of 32. */
GN_INLINE void add_bits(const uint8_t *flags, int bit, uint8_t *q)
{
    for (int g = 0; g < 8; g++) {
        for (int i = 0; i < 32; i++) {
            q[g * 32 + i] = (uint8_t)(q[g * 32 + i] | (flags[i] >> g & 1) * bit);
        }
    }
}

GN_INLINE void unpack_q2_k(const uint8_t *block, unpacked *u)
{
    float d = load_f16(block + 80);
    float dmin = load_f16(block + 82);
    for (int g = 0; g < 16; g++) {
        u->scale[g] = d * (float)(block[g] & 15);
        u->min[g] = -(dmin * (float)(block[g] >> 4));
    }
    unpack_crumbs(block + 16, u->q);
}

GN_INLINE void unpack_q3_k(const uint8_t *block, unpacked *u)
{
    const uint8_t *scales = block + 96; /* 8 bytes of low nibbles, 4 bytes of upper bit pairs */
    float d = load_f16(block + 108);
    for (int g = 0; g < 16; g++) {
        int low = scales[g % 8] >> (g / 8 * 4) & 15;
        int high = scales[8 + g % 4] >> (g / 4 * 2) & 3;
        u->scale[g] = d * (float)((low | high << 4) - 32);
    }
    unpack_crumbs(block + 32, u->q);
    add_bits(block, 4, u->q);
}

/* The scales and minima of Q4_K and Q5_K: eight of each, 6 bits, in 12 bytes. */
GN_INLINE void unpack_scales_k4(const uint8_t *block, unpacked *u)
{
    float d = load_f16(block);
    float dmin = load_f16(block + 2);
    const uint8_t *s = block + 4;
    for (int g = 0; g < 8; g++) {
        int scale = g < 4 ? s[g] & 63 : (s[g + 4] & 15) | (s[g - 4] >> 6) << 4;
        int min = g < 4 ? s[g + 4] & 63 : s[g + 4] >> 4 | (s[g] >> 6) << 4;
        u->scale[g] = d * (float)scale;
        u->min[g] = -(dmin * (float)min);
    }
}

/* 32 bytes hold two groups of 32: low nibbles, then high nibbles. */
GN_INLINE void unpack_nibbles_k(const uint8_t *qs, uint8_t *q)
{
    for (int g = 0; g < 8; g++) {
        for (int i = 0; i < 32; i++) {
            q[g * 32 + i] = qs[g / 2 * 32 + i] >> (g % 2 * 4) & 15;
        }
    }
}

GN_INLINE void unpack_q4_k(const uint8_t *block, unpacked *u)
{
    unpack_scales_k4(block, u);
    unpack_nibbles_k(block + 16, u->q);
}

GN_INLINE void unpack_q5_k(const uint8_t *block, unpacked *u)
{
    unpack_scales_k4(block, u);
    unpack_nibbles_k(block + 48, u->q);
    add_bits(block + 16, 16, u->q);
}

GN_INLINE void unpack_q6_k(const uint8_t *block, unpacked *u)
{
    const uint8_t *low = block;        /* 2 x 64 bytes, each 128 nibbles */
    const uint8_t *high = block + 128; /* 2 x 32 bytes, each 128 bit pairs */
    const uint8_t *scales = block + 192;
    float d = load_f16(block + 208);
    for (int g = 0; g < 16; g++) {
        u->scale[g] = d * (float)(int8_t)scales[g];
    }
    for (int g = 0; g < 8; g++) {
        int part = g % 4;
        for (int i = 0; i < 32; i++) {
            int nibble = low[g / 4 * 64 + g % 2 * 32 + i] >> (part / 2 * 4) & 15;
            int pair = high[g / 4 * 32 + i] >> (part * 2) & 3;
            u->q[g * 32 + i] = (uint8_t)(nibble | pair << 4);
        }
    }
}

GN_INLINE void look_up(const int8_t table[16], size_t n, uint8_t *q)
{
    for (size_t i = 0; i < n; i++) {
        q[i] = (uint8_t)(table[q[i]] + 128);
    }
}

/* The non-linear 4-bit table of the IQ4 formats. */
static const int8_t iq4_values[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                      1,    13,   25,  38,  53,  69,  89,  113};
/* Twice the E2M1 values, for a scale that is halved. */
static const int8_t e2m1_values[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

GN_INLINE void unpack_iq4_nl(const uint8_t *block, unpacked *u)
{
    u->scale[0] = load_f16(block);
    unpack_nibbles(block + 2, u->q);
    look_up(iq4_values, 32, u->q);
}

GN_INLINE void unpack_iq4_xs(const uint8_t *block, unpacked *u)
{
    float d = load_f16(block);
    uint32_t high = load_u16(block + 2);
    for (int g = 0; g < 8; g++) {
        int scale = (block[4 + g / 2] >> (g % 2 * 4) & 15) | (int)(high >> 2 * g & 3) << 4;
        u->scale[g] = d * (float)(scale - 32);
        unpack_nibbles(block + 8 + g * 16, u->q + g * 32);
    }
    look_up(iq4_values, 256, u->q);
}

GN_INLINE void unpack_mxfp4(const uint8_t *block, unpacked *u)
{
    uint32_t e = block[0]; /* half of 2^(e - 127); the two lowest are subnormal */
    u->scale[0] = gn_f32_from_bits(e < 2 ? 0x200000u << e : (e - 1) << 23);
    unpack_nibbles(block + 1, u->q);
    look_up(e2m1_values, 32, u->q);
}

#endif
