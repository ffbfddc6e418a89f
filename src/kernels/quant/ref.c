/* The meaning of the quantized formats, in plain C.
 *
 * Each format has one function that takes a block apart into unsigned codes q, and a scale (and a
 * minimum) per group, such that weight = scale * (q - zero) + min. Both the floats of a row and the
 * panel form are made from that. */
#include "kernels/quant/quant.h"

#include "kernels/simd/half.h"

#include <math.h>
#include <string.h>

#define MAX_BLOCK  256
#define MAX_GROUPS 16

typedef struct unpacked {
    uint8_t q[MAX_BLOCK];
    float scale[MAX_GROUPS];
    float min[MAX_GROUPS];
} unpacked;

typedef void unpack_fn(const uint8_t *block, unpacked *u);

static uint16_t load_u16(const uint8_t *p)
{
    return (uint16_t)(p[0] | p[1] << 8);
}

static uint32_t load_u32(const uint8_t *p)
{
    return (uint32_t)load_u16(p) | (uint32_t)load_u16(p + 2) << 16;
}

static float load_f16(const uint8_t *p)
{
    return gn_f32_from_f16(load_u16(p));
}

/* 16 bytes hold 32 codes: low nibbles the first 16, high nibbles the other 16. */
static void unpack_nibbles(const uint8_t *qs, uint8_t *q)
{
    for (int i = 0; i < 16; i++) {
        q[i] = qs[i] & 15;
        q[16 + i] = qs[i] >> 4;
    }
}

/* Bit i of `high` becomes bit 4 of code i. */
static void add_fifth_bits(uint32_t high, uint8_t *q)
{
    for (int i = 0; i < 32; i++) {
        q[i] = (uint8_t)(q[i] | (high >> i & 1) << 4);
    }
}

static void unpack_q4_0(const uint8_t *block, unpacked *u)
{
    u->scale[0] = load_f16(block);
    unpack_nibbles(block + 2, u->q);
}

static void unpack_q4_1(const uint8_t *block, unpacked *u)
{
    u->scale[0] = load_f16(block);
    u->min[0] = load_f16(block + 2);
    unpack_nibbles(block + 4, u->q);
}

static void unpack_q5_0(const uint8_t *block, unpacked *u)
{
    u->scale[0] = load_f16(block);
    unpack_nibbles(block + 6, u->q);
    add_fifth_bits(load_u32(block + 2), u->q);
}

static void unpack_q5_1(const uint8_t *block, unpacked *u)
{
    u->scale[0] = load_f16(block);
    u->min[0] = load_f16(block + 2);
    unpack_nibbles(block + 8, u->q);
    add_fifth_bits(load_u32(block + 4), u->q);
}

static void unpack_q8_0(const uint8_t *block, unpacked *u)
{
    u->scale[0] = load_f16(block);
    for (int i = 0; i < 32; i++) {
        u->q[i] = block[2 + i] ^ 0x80;
    }
}

/* The 2-bit codes of Q2_K and Q3_K: 32 bytes hold four groups of 32, two bits each. */
static void unpack_crumbs(const uint8_t *qs, uint8_t *q)
{
    for (int i = 0; i < 256; i++) {
        q[i] = qs[i / 128 * 32 + i % 32] >> (i / 32 % 4 * 2) & 3;
    }
}

static void unpack_q2_k(const uint8_t *block, unpacked *u)
{
    float d = load_f16(block + 80);
    float dmin = load_f16(block + 82);
    for (int g = 0; g < 16; g++) {
        u->scale[g] = d * (float)(block[g] & 15);
        u->min[g] = -(dmin * (float)(block[g] >> 4));
    }
    unpack_crumbs(block + 16, u->q);
}

static void unpack_q3_k(const uint8_t *block, unpacked *u)
{
    const uint8_t *scales = block + 96; /* 8 bytes of low nibbles, 4 bytes of upper bit pairs */
    float d = load_f16(block + 108);
    for (int g = 0; g < 16; g++) {
        int low = scales[g % 8] >> (g / 8 * 4) & 15;
        int high = scales[8 + g % 4] >> (g / 4 * 2) & 3;
        u->scale[g] = d * (float)((low | high << 4) - 32);
    }
    unpack_crumbs(block + 32, u->q);
    for (int i = 0; i < 256; i++) {
        u->q[i] = (uint8_t)(u->q[i] | (block[i % 32] >> (i / 32) & 1) << 2);
    }
}

/* The scales and minima of Q4_K and Q5_K: eight of each, 6 bits, in 12 bytes. */
static void unpack_scales_k4(const uint8_t *block, unpacked *u)
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
static void unpack_nibbles_k(const uint8_t *qs, uint8_t *q)
{
    for (int i = 0; i < 256; i++) {
        q[i] = qs[i / 64 * 32 + i % 32] >> (i / 32 % 2 * 4) & 15;
    }
}

static void unpack_q4_k(const uint8_t *block, unpacked *u)
{
    unpack_scales_k4(block, u);
    unpack_nibbles_k(block + 16, u->q);
}

static void unpack_q5_k(const uint8_t *block, unpacked *u)
{
    unpack_scales_k4(block, u);
    unpack_nibbles_k(block + 48, u->q);
    for (int i = 0; i < 256; i++) {
        u->q[i] = (uint8_t)(u->q[i] | (block[16 + i % 32] >> (i / 32) & 1) << 4);
    }
}

static void unpack_q6_k(const uint8_t *block, unpacked *u)
{
    const uint8_t *low = block;        /* 2 x 64 bytes, each 128 nibbles */
    const uint8_t *high = block + 128; /* 2 x 32 bytes, each 128 bit pairs */
    const uint8_t *scales = block + 192;
    float d = load_f16(block + 208);
    for (int g = 0; g < 16; g++) {
        u->scale[g] = d * (float)(int8_t)scales[g];
    }
    for (int i = 0; i < 256; i++) {
        int part = i / 32 % 4;
        int nibble = low[i / 128 * 64 + i % 64] >> (part / 2 * 4) & 15;
        int pair = high[i / 128 * 32 + i % 32] >> (part * 2) & 3;
        u->q[i] = (uint8_t)(nibble | pair << 4);
    }
}

static void look_up(const int8_t table[16], size_t n, uint8_t *q)
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

static void unpack_iq4_nl(const uint8_t *block, unpacked *u)
{
    u->scale[0] = load_f16(block);
    unpack_nibbles(block + 2, u->q);
    look_up(iq4_values, 32, u->q);
}

static void unpack_iq4_xs(const uint8_t *block, unpacked *u)
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

static void unpack_mxfp4(const uint8_t *block, unpacked *u)
{
    uint32_t e = block[0]; /* half of 2^(e - 127); the two lowest are subnormal */
    u->scale[0] = gn_f32_from_bits(e < 2 ? 0x200000u << e : (e - 1) << 23);
    unpack_nibbles(block + 1, u->q);
    look_up(e2m1_values, 32, u->q);
}

typedef struct format {
    unpack_fn *unpack;
    size_t len;   /* elements a block */
    size_t bytes; /* bytes a block */
    size_t group;
    int zero;
    int has_min;
} format;

static void dequant(const format *f, const uint8_t *row, size_t k, float *out)
{
    unpacked u;
    for (size_t start = 0; start < k; start += f->len, row += f->bytes) {
        f->unpack(row, &u);
        for (size_t i = 0; i < f->len; i++) {
            float product = u.scale[i / f->group] * (float)(u.q[i] - f->zero);
            out[start + i] = f->has_min ? product + u.min[i / f->group] : product;
        }
    }
}

static void panel(const format *f, const uint8_t *rows, size_t row_bytes, size_t n_rows, size_t k,
                  uint8_t *q, float *scale, float *min)
{
    unpacked u;
    memset(q, 0, k * 16);
    memset(scale, 0, k / f->group * 16 * sizeof *scale);
    if (f->has_min) {
        memset(min, 0, k / f->group * 16 * sizeof *min);
    }
    for (size_t r = 0; r < n_rows; r++) {
        const uint8_t *block = rows + r * row_bytes;
        for (size_t start = 0; start < k; start += f->len, block += f->bytes) {
            f->unpack(block, &u);
            for (size_t i = 0; i < f->len; i++) {
                size_t j = start + i;
                q[(j / 4 * 16 + r) * 4 + j % 4] = u.q[i];
            }
            for (size_t g = 0; g < f->len / f->group; g++) {
                scale[(start / f->group + g) * 16 + r] = u.scale[g];
                if (f->has_min) {
                    min[(start / f->group + g) * 16 + r] = u.min[g];
                }
            }
        }
    }
}

#define DEFINE_FORMAT(type, len, bytes, group, zero, has_min)                                      \
    static const format format_##type = {unpack_##type, len, bytes, group, zero, has_min};         \
    void gn_k_dequant_##type##_ref(const void *row, size_t k, float *out)                          \
    {                                                                                              \
        dequant(&format_##type, row, k, out);                                                      \
    }                                                                                              \
    void gn_k_panel_##type##_ref(const void *rows, size_t row_bytes, size_t n_rows, size_t k,      \
                                 const void *ahead, uint8_t *q, float *scale, float *min)          \
    {                                                                                              \
        (void)ahead;                                                                               \
        panel(&format_##type, rows, row_bytes, n_rows, k, q, scale, min);                          \
    }
GN_PANEL_LIST(DEFINE_FORMAT)
#undef DEFINE_FORMAT

void gn_k_dequant_f32_ref(const void *row, size_t k, float *out)
{
    memcpy(out, row, k * sizeof *out);
}

void gn_k_dequant_f16_ref(const void *row, size_t k, float *out)
{
    const uint8_t *p = row;
    for (size_t i = 0; i < k; i++) {
        out[i] = load_f16(p + 2 * i);
    }
}

void gn_k_dequant_bf16_ref(const void *row, size_t k, float *out)
{
    const uint8_t *p = row;
    for (size_t i = 0; i < k; i++) {
        out[i] = gn_f32_from_bf16(load_u16(p + 2 * i));
    }
}

void gn_k_quantize_q8_ref(const float *x, size_t k, int8_t *q, float *scale, int32_t *sum)
{
    for (size_t b = 0; b < k / 32; b++) {
        const float *xb = x + b * 32;
        uint32_t bits = 0; /* as integers, magnitudes order with infinity and NaN at the top */
        for (size_t i = 0; i < 32; i++) {
            uint32_t magnitude = gn_f32_to_bits(xb[i]) & 0x7fffffff;
            bits = magnitude > bits ? magnitude : bits;
        }
        float amax = gn_f32_from_bits(bits);
        int usable = amax >= 0x1p-100f && amax <= 0x1.fffffep127f;
        float inv = usable ? 127.0f / amax : 0.0f;
        scale[b] = amax / 127.0f;
        sum[2 * b] = 0;
        sum[2 * b + 1] = 0;
        for (size_t i = 0; i < 32; i++) {
            int code = usable ? (int)rintf(xb[i] * inv) : 0;
            q[b * 32 + i] = (int8_t)code;
            sum[2 * b + i / 16] += code;
        }
    }
}
