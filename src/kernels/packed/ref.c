/* The meaning of the ops on packed panels, in plain C: a block is taken apart to the panel form, and
 * products are those of kernels/dot on it. */
#include "kernels/packed/packed.h"

#include "kernels/simd/half.h"

#include <math.h>
#include <string.h>

enum { ROWS = 16 };

typedef struct form {
    gn_packed_codes codes;
    gn_packed_scales scales;
    size_t group;
    int zero;
    int has_min;
} form;

static const form forms[] = {
#define FORM(type, codes, scales, group, zero, has_min)                                            \
    {GN_PACKED_##codes, GN_PACKED_##scales, group, zero, has_min},
    GN_PACKED_LIST(FORM)
#undef FORM
};

/* One block of 32 elements of 16 rows, and what has been read so far of a chunk. */
typedef struct block {
    uint8_t q[GN_PACKED_BLOCK][ROWS];
    float scale[2][ROWS];
    float min[2][ROWS];
} block;

/* The non-linear 4-bit table of the IQ4 formats; twice the E2M1 values. */
static const int8_t iq4_values[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                      1,    13,   25,  38,  53,  69,  89,  113};
static const int8_t e2m1_values[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

static unsigned nibble_of(const uint8_t *plane, size_t s, size_t at)
{
    return (unsigned)plane[s / 2 * 64 + at] >> (s % 2 * 4) & 15u;
}

static unsigned crumb_of(const uint8_t *plane, size_t s, size_t at)
{
    return (unsigned)plane[s / 4 * 64 + at] >> (s % 4 * 2) & 3u;
}

static unsigned bit_of(const uint8_t *plane, size_t s, size_t at)
{
    return (unsigned)plane[at] >> s & 1u;
}

/* The code of step s at byte `at` of a line. */
static unsigned code_of(gn_packed_codes codes, const uint8_t *p, size_t s, size_t at)
{
    switch (codes) {
    case GN_PACKED_C2: return crumb_of(p, s, at);
    case GN_PACKED_C3: return crumb_of(p, s, at) | bit_of(p + 128, s, at) << 2;
    case GN_PACKED_C4: return nibble_of(p, s, at);
    case GN_PACKED_C5: return nibble_of(p, s, at) | bit_of(p + 256, s, at) << 4;
    case GN_PACKED_C6: return nibble_of(p, s, at) | crumb_of(p + 256, s, at) << 4;
    case GN_PACKED_C8: return p[s * 64 + at];
    case GN_PACKED_CNL: return (unsigned)(iq4_values[nibble_of(p, s, at)] + 128);
    case GN_PACKED_CE2M1: return (unsigned)(e2m1_values[nibble_of(p, s, at)] + 128);
    }
    return 0;
}

static float f16_at(const uint8_t *p, size_t i)
{
    return gn_f32_from_f16((uint16_t)(p[2 * i] | p[2 * i + 1] << 8));
}

/* Scale and minimum of row r in group g of the chunk whose head is p. */
static void scales_of(const form *f, const uint8_t *p, size_t g, size_t r, float *scale, float *min)
{
    *min = 0.0f;
    switch (f->scales) {
    case GN_PACKED_SF16: *scale = f16_at(p + 32 * g, r); break;
    case GN_PACKED_SPAIR:
        *scale = f16_at(p + 64 * g, r);
        *min = f16_at(p + 64 * g + 32, r);
        break;
    case GN_PACKED_SU8:
        *scale = f16_at(p, r) * (float)p[64 + 32 * g + r];
        *min = -(f16_at(p + 32, r) * (float)p[64 + 32 * g + 16 + r]);
        break;
    case GN_PACKED_SU4:
        *scale = f16_at(p, r) * (float)(p[64 + 16 * g + r] & 15);
        *min = -(f16_at(p + 32, r) * (float)(p[64 + 16 * g + r] >> 4));
        break;
    case GN_PACKED_SI8: *scale = f16_at(p, r) * (float)(int8_t)p[64 + 16 * g + r]; break;
    case GN_PACKED_SE8: {
        uint32_t e = p[16 * g + r]; /* 2^(e - 128); the two lowest are subnormal */
        *scale = gn_f32_from_bits(e < 2 ? 0x200000u << e : (e - 1) << 23);
        break;
    }
    }
}

/* Block b of the chunk of n blocks at p. */
static void read_block(const form *f, const uint8_t *p, size_t n, size_t b, block *out)
{
    const size_t groups = GN_PACKED_BLOCK / f->group;
    for (size_t g = 0; g < groups; g++) {
        for (size_t r = 0; r < ROWS; r++) {
            scales_of(f, p, b * groups + g, r, &out->scale[g][r], &out->min[g][r]);
        }
    }
    const uint8_t *codes = p + gn_packed_head_bytes(f->scales, f->group, n) +
                           b * gn_packed_block_lines(f->codes) * GN_PACKED_LINE;
    for (size_t j = 0; j < GN_PACKED_BLOCK; j++) {
        for (size_t r = 0; r < ROWS; r++) {
            out->q[j][r] = (uint8_t)code_of(f->codes, codes, j / 4, 4 * r + j % 4);
        }
    }
}

/* Block b of the panel of k elements at p. */
static void read_panel_block(gn_packed_type type, const uint8_t *p, size_t k, size_t b, block *out)
{
    const size_t per_chunk = GN_PACKED_CHUNK / GN_PACKED_BLOCK;
    const size_t first = b / per_chunk * per_chunk;
    const size_t left = k / GN_PACKED_BLOCK - first;
    read_block(&forms[type], p + gn_packed_bytes(type, first * GN_PACKED_BLOCK),
               left < per_chunk ? left : per_chunk, b - first, out);
}

void gn_k_dot_packed_ref(gn_packed_type type, size_t k, const void *panel, size_t m,
                         const int8_t *a, size_t lda, const float *a_scale, const int32_t *a_sum,
                         float *y, size_t ldy)
{
    const form *f = &forms[type];
    for (size_t i = 0; i < m; i++) {
        memset(y + i * ldy, 0, ROWS * sizeof *y);
    }
    block w;
    for (size_t b = 0; b < k / GN_PACKED_BLOCK; b++) {
        read_panel_block(type, panel, k, b, &w);
        for (size_t i = 0; i < m; i++) {
            const int8_t *ai = a + i * lda + b * GN_PACKED_BLOCK;
            const int32_t *sum = a_sum + i * (lda / 16) + b * 2;
            const float as = a_scale[i * (lda / 32) + b];
            for (size_t r = 0; r < ROWS; r++) {
                float acc = y[i * ldy + r];
                for (size_t g = 0; g < GN_PACKED_BLOCK / f->group; g++) {
                    int32_t isum = 0;
                    for (size_t j = g * f->group; j < (g + 1) * f->group; j++) {
                        isum += (w.q[j][r] - f->zero) * ai[j];
                    }
                    acc = fmaf((float)isum, w.scale[g][r] * as, acc);
                    if (f->has_min) {
                        const int32_t asum = f->group == 32 ? sum[0] + sum[1] : sum[g];
                        acc = fmaf((float)asum * as, w.min[g][r], acc);
                    }
                }
                y[i * ldy + r] = acc;
            }
        }
    }
}

void gn_k_unpack_packed_ref(gn_packed_type type, size_t n, const void *chunks, uint8_t *q,
                            float *scale, float *min)
{
    const form *f = &forms[type];
    const size_t groups = GN_PACKED_BLOCK / f->group;
    block w;
    for (size_t b = 0; b < n / GN_PACKED_BLOCK; b++) {
        read_panel_block(type, chunks, n, b, &w);
        for (size_t j = 0; j < GN_PACKED_BLOCK; j++) {
            for (size_t r = 0; r < ROWS; r++) {
                q[((b * GN_PACKED_BLOCK + j) / 4 * ROWS + r) * 4 + j % 4] = w.q[j][r];
            }
        }
        memcpy(scale + b * groups * ROWS, w.scale, groups * sizeof w.scale[0]);
        if (f->has_min) {
            memcpy(min + b * groups * ROWS, w.min, groups * sizeof w.min[0]);
        }
    }
}
