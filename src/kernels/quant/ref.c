/* The meaning of the ops on quantized formats, in plain C: both the floats of a row and the panel form are
 * made from blocks that unpack.h takes apart. */
#include "kernels/quant/quant.h"

#include "kernels/quant/unpack.h"
#include "kernels/simd/half.h"

#include <math.h>
#include <string.h>

typedef void unpack_fn(const uint8_t *block, unpacked *u);

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
