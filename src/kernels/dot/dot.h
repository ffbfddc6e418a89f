/* Products of a panel of 16 quantized weight rows with 8-bit activation rows.
 *
 * Panels come from kernels/quant (panel_<type>), activations from quantize_q8 (-127 .. 127).
 *
 * For each activation row i < m and each weight row r < 16, over the groups b = 0 .. k/group-1:
 *
 *   isum = sum over the group of (q[k][r] - zero) * a[i][k]                       exact, 32 bits
 *   acc  = fmaf((float)isum, scale[b][r] * a_scale[i][b'], acc)
 *   acc  = fmaf((float)asum * a_scale[i][b'], min[b][r], acc)                     only if min != NULL
 *   y[i * ldy + r] = acc
 *
 * b' is the block of 32 that holds the group, asum the sum of the group's a. acc starts at 0, or at y
 * where the product continues that of the elements before: a long row taken in pieces gives the bits
 * of the whole. The order is fixed, so every version gives the same bits, and a row's result does not
 * depend on m. */
#ifndef GN_KERNELS_DOT_DOT_H
#define GN_KERNELS_DOT_DOT_H

#include "base/attr.h"

#include <stddef.h>
#include <stdint.h>

/* dot_panel_g32, dot_panel_g16: groups of 32 and 16.
 * k        elements of each row, a multiple of 32
 * q        [k/4][16][4]; q < 2 * zero, and q < 32 where zero is 0
 * scale    [k/group][16];  min: the same shape, or NULL; zero is 0 where there is a min
 * a        [m][k], rows lda apart, lda a multiple of 32;  a_scale: [m][k/32], rows lda/32 apart;
 *          a_sum: [m][k/16], the sums of a per 16, rows lda/16 apart
 * y        16 floats at y + i * ldy for each i < m; ldy >= 16; read only where `resume` is not 0 */
typedef void gn_k_dot_panel_fn(size_t k, const uint8_t *q, const float *scale, const float *min,
                               int zero, size_t m, const int8_t *a, size_t lda,
                               const float *a_scale, const int32_t *a_sum, float *y, size_t ldy,
                               int resume);
typedef gn_k_dot_panel_fn gn_k_dot_panel_g32_fn;
typedef gn_k_dot_panel_fn gn_k_dot_panel_g16_fn;

#define GN_KERNEL_OP(op, CLASS)       gn_k_##op##_fn gn_k_##op##_ref;
#define GN_KERNEL(op, variant, level) gn_k_##op##_fn gn_k_##op##_##variant;
#include "kernels/dot/kernels.inc"
#undef GN_KERNEL_OP
#undef GN_KERNEL

#endif
