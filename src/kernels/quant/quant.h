/* Quantized rows: to floats, to panels; and float rows to 8 bits.
 *
 * Block layouts are those of the GGUF specification (ggml's block types); MXFP4 is that of the OCP
 * Microscaling specification 1.0. Rows may start at any address.
 *
 * The panel form holds 16 weight rows so that one vector register carries one step of all of them:
 *
 *   q      u8  [k/4][16 rows][4]     element 4i+j of row r is q[(i * 16 + r) * 4 + j]
 *   scale  f32 [k/group][16 rows]
 *   min    f32 [k/group][16 rows]    only types that have one
 *
 *   weight = scale * (q - zero) + min      with the type's constant zero; no min counts as 0 */
#ifndef GN_KERNELS_QUANT_QUANT_H
#define GN_KERNELS_QUANT_QUANT_H

#include "base/attr.h"

#include <stddef.h>
#include <stdint.h>

/* X(type, block_len, block_bytes, group, zero, has_min): the types that have a panel form. In a panel
 * q < 2 * zero, and q < 32 where zero is 0: the dot product kernels rely on it. */
#define GN_PANEL_LIST(X)                                                                           \
    X(q4_0, 32, 18, 32, 8, 0)                                                                      \
    X(q4_1, 32, 20, 32, 0, 1)                                                                      \
    X(q5_0, 32, 22, 32, 16, 0)                                                                     \
    X(q5_1, 32, 24, 32, 0, 1)                                                                      \
    X(q8_0, 32, 34, 32, 128, 0)                                                                    \
    X(q2_k, 256, 84, 16, 0, 1)                                                                     \
    X(q3_k, 256, 110, 16, 4, 0)                                                                    \
    X(q4_k, 256, 144, 32, 0, 1)                                                                    \
    X(q5_k, 256, 176, 32, 0, 1)                                                                    \
    X(q6_k, 256, 210, 16, 32, 0)                                                                   \
    X(iq4_nl, 32, 18, 32, 128, 0)                                                                  \
    X(iq4_xs, 256, 136, 32, 128, 0)                                                                \
    X(mxfp4, 32, 17, 32, 128, 0)

/* dequant_<type>: out[i], i < k, the floats that row stands for, each with the roundings of ggml's
 * reference (one product, then one sum where the type has a minimum). k is a multiple of the type's
 * block length. */
typedef void gn_k_dequant_fn(const void *row, size_t k, float *out);

/* panel_<type>: n_rows (1 .. 16) rows, each row_bytes after the one before, to the panel form above.
 * Missing rows become zeros. k is a multiple of the type's block length; min is not touched where the
 * type has none (and may be NULL). scale and min are exact: a block's half-precision factor times a
 * small integer. `ahead` is only a hint: as many bytes from there as this call reads will be wanted
 * soon; the address need not be valid. */
typedef void gn_k_panel_fn(const void *rows, size_t row_bytes, size_t n_rows, size_t k,
                           const void *ahead, uint8_t *q, float *scale, float *min);

/* quantize_q8: x[k], k a multiple of 32, to signed bytes with one scale per 32:
 *   amax  = max |x|, scale = amax / 127, inv = 127 / amax
 *   q     = x * inv rounded to nearest, ties to even: -127 .. 127
 *   sum   = sum of q per 16                                              [k/16]
 * Where amax is 0, tiny (< 2^-100), infinite or NaN, all q and sums of the 32 are 0 and scale is still
 * amax / 127: what is computed from an infinity or a NaN stays one (0 * inf). */
typedef void gn_k_quantize_q8_fn(const float *x, size_t k, int8_t *q, float *scale, int32_t *sum);

typedef gn_k_dequant_fn gn_k_dequant_f32_fn;
typedef gn_k_dequant_fn gn_k_dequant_f16_fn;
typedef gn_k_dequant_fn gn_k_dequant_bf16_fn;
#define GN_PANEL_TYPES(type, len, bytes, group, zero, has_min)                                     \
    typedef gn_k_dequant_fn gn_k_dequant_##type##_fn;                                              \
    typedef gn_k_panel_fn gn_k_panel_##type##_fn;
GN_PANEL_LIST(GN_PANEL_TYPES)
#undef GN_PANEL_TYPES

#define GN_KERNEL_OP(op, CLASS)       gn_k_##op##_fn gn_k_##op##_ref;
#define GN_KERNEL(op, variant, level) gn_k_##op##_fn gn_k_##op##_##variant;
#include "kernels/quant/kernels.inc"
#undef GN_KERNEL_OP
#undef GN_KERNEL

#endif
