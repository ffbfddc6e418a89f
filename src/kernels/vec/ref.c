/* Vector helpers in plain C: the meaning of each op. */
#include "kernels/vec/vec.h"

#include "kernels/simd/half.h"
#include "kernels/simd/lanes.h"

#include <math.h>

/* value >> shift, rounded to nearest, ties to even; 0 < shift < 32. */
static uint32_t shift_rounded(uint32_t value, uint32_t shift)
{
    uint32_t kept = value >> shift;
    uint32_t rest = value & ((1u << shift) - 1);
    uint32_t tie = 1u << (shift - 1);
    return kept + (rest > tie || (rest == tie && (kept & 1u) != 0));
}

static uint16_t f16_from_f32(float value)
{
    uint32_t bits = gn_f32_to_bits(value);
    uint32_t sign = (bits >> 16) & 0x8000u;
    uint32_t exponent = (bits >> 23) & 0xFFu;
    uint32_t mantissa = bits & 0x7FFFFFu;
    uint32_t half = 0;
    if (exponent == 0xFF) {
        half = mantissa != 0 ? 0x7E00u | mantissa >> 13 : 0x7C00u;
    } else if (exponent >= 113) {
        /* A carry out of the mantissa moves into the exponent, as it should; infinity is the end. */
        half = shift_rounded((exponent - 112) << 23 | mantissa, 13);
        half = half > 0x7C00u ? 0x7C00u : half;
    } else if (exponent >= 102) {
        half = shift_rounded(mantissa | 0x800000u, 126 - exponent);
    }
    return (uint16_t)(sign | half);
}

void gn_k_matmul_f32_ref(size_t k, const float *w, size_t n_rows, size_t ldw, size_t m,
                         const float *x, size_t ldx, float *y, size_t ldy)
{
    for (size_t i = 0; i < m; i++) {
        for (size_t r = 0; r < n_rows; r++) {
            y[i * ldy + r] = lanes_dot(w + r * ldw, x + i * ldx, k);
        }
    }
}

void gn_k_f16_to_f32_ref(const uint16_t *x, size_t n, float *y)
{
    for (size_t i = 0; i < n; i++) {
        y[i] = gn_f32_from_f16(x[i]);
    }
}

void gn_k_f32_to_f16_ref(const float *x, size_t n, uint16_t *y)
{
    for (size_t i = 0; i < n; i++) {
        y[i] = f16_from_f32(x[i]);
    }
}

void gn_k_bf16_to_f32_ref(const uint16_t *x, size_t n, float *y)
{
    for (size_t i = 0; i < n; i++) {
        y[i] = gn_f32_from_bf16(x[i]);
    }
}

void gn_k_add_ref(float *y, const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        y[i] += x[i];
    }
}

void gn_k_mul_ref(float *y, const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        y[i] *= x[i];
    }
}

void gn_k_scale_ref(float *y, size_t n, float a)
{
    for (size_t i = 0; i < n; i++) {
        y[i] *= a;
    }
}

void gn_k_axpy_ref(float *y, const float *x, size_t n, float a)
{
    for (size_t i = 0; i < n; i++) {
        y[i] = fmaf(a, x[i], y[i]);
    }
}

void gn_k_sum_u32_ref(const uint32_t *x, size_t n, uint32_t *sum)
{
    *sum = 0;
    for (size_t j = 0; j < n; j++) {
        *sum += x[j];
    }
}
