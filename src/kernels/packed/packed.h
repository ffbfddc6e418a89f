/* Packed panels: 16 weight rows in the order kernels read them, with the file's own numbers: codes in planes
 * of bits, scales of whole bytes. Products straight from them, and the way back to the panel form of
 * kernels/quant.
 *
 * A panel is a sequence of chunks of 256 elements of k, the last one shorter where k is not a multiple of
 * 256. A chunk of n blocks of 32 elements is a head (the scales) and n blocks of codes; head and blocks are
 * multiples of 64 bytes, so every line is read whole and once, in ascending order.
 *
 * Blocks of codes. A line is 64 bytes, byte (r, t) = 4r + t belongs to row r and the elements t, 4 + t,
 * 8 + t, ... of the block; the 8 steps s of a block are its elements 4s .. 4s+3.
 *
 *   byte plane    8 lines   line s: the code of step s
 *   nibble plane  4 lines   line j: low nibble step 2j, high nibble step 2j + 1
 *   crumb plane   2 lines   line h: bits 2u, 2u+1 are those of step 4h + u
 *   bit plane     1 line    bit s is that of step s
 *
 *   codes   planes, one behind the other                    lines
 *   C2      crumbs                                            2
 *   C3      crumbs, bits (bit 2 of the code)                  3
 *   C4      nibbles                                           4
 *   C5      nibbles, bits (bit 4)                             5
 *   C6      nibbles, crumbs (bits 4 and 5)                    6
 *   C8      bytes                                             8
 *   CNL     nibbles, looked up in the table of IQ4            4
 *   CE2M1   nibbles, looked up in the table of E2M1           4
 *
 * Heads, with n blocks in the chunk; f16 and bytes of 16 rows side by side, padded to whole lines:
 *
 *   SF16    f16 scale [n][16]
 *   SPAIR   f16 scale, min [n][2][16]
 *   SU8     f16 d [16], dmin [16];  u8 scale, min [n][2][16]         scale = d * u8, min = -(dmin * u8)
 *   SU4     f16 d [16], dmin [16];  u8 scale | min << 4 [2n][16]     groups of 16
 *   SI8     f16 d [16], 32 bytes of zeros;  i8 scale [groups][16]    scale = d * i8
 *   SE8     u8 exponent [n][16]                                      scale = 2^(e - 128)
 *
 * Values of absent rows of a last panel are unspecified but for the stride's bytes, which are zeros. */
#ifndef GN_KERNELS_PACKED_PACKED_H
#define GN_KERNELS_PACKED_PACKED_H

#include "base/attr.h"

#include <stddef.h>
#include <stdint.h>

enum { GN_PACKED_CHUNK = 256, GN_PACKED_BLOCK = 32, GN_PACKED_LINE = 64 };

typedef enum gn_packed_codes {
    GN_PACKED_C2,
    GN_PACKED_C3,
    GN_PACKED_C4,
    GN_PACKED_C5,
    GN_PACKED_C6,
    GN_PACKED_C8,
    GN_PACKED_CNL,
    GN_PACKED_CE2M1
} gn_packed_codes;

typedef enum gn_packed_scales {
    GN_PACKED_SF16,
    GN_PACKED_SPAIR,
    GN_PACKED_SU8,
    GN_PACKED_SU4,
    GN_PACKED_SI8,
    GN_PACKED_SE8
} gn_packed_scales;

/* X(type, codes, scales, group, zero, has_min): the last three as in the panel form of kernels/quant. */
#define GN_PACKED_LIST(X)                                                                          \
    X(q4_0, C4, SF16, 32, 8, 0)                                                                    \
    X(q4_1, C4, SPAIR, 32, 0, 1)                                                                   \
    X(q5_0, C5, SF16, 32, 16, 0)                                                                   \
    X(q5_1, C5, SPAIR, 32, 0, 1)                                                                   \
    X(q8_0, C8, SF16, 32, 128, 0)                                                                  \
    X(q2_k, C2, SU4, 16, 0, 1)                                                                     \
    X(q3_k, C3, SI8, 16, 4, 0)                                                                     \
    X(q4_k, C4, SU8, 32, 0, 1)                                                                     \
    X(q5_k, C5, SU8, 32, 0, 1)                                                                     \
    X(q6_k, C6, SI8, 16, 32, 0)                                                                    \
    X(iq4_nl, CNL, SF16, 32, 128, 0)                                                               \
    X(iq4_xs, CNL, SI8, 32, 128, 0)                                                                \
    X(mxfp4, CE2M1, SE8, 32, 128, 0)

typedef enum gn_packed_type {
#define GN_PACKED_ENUM(type, codes, scales, group, zero, has_min) GN_PACKED_##type,
    GN_PACKED_LIST(GN_PACKED_ENUM)
#undef GN_PACKED_ENUM
        GN_PACKED_N_TYPES
} gn_packed_type;

/* Lines of one block of codes. */
GN_INLINE size_t gn_packed_block_lines(gn_packed_codes codes)
{
    static const uint8_t lines[] = {2, 3, 4, 5, 6, 8, 4, 4};
    return lines[codes];
}

/* Bytes of the head of a chunk of n blocks. */
GN_INLINE size_t gn_packed_head_bytes(gn_packed_scales scales, size_t group, size_t n)
{
    size_t bytes = 0;
    switch (scales) {
    case GN_PACKED_SF16: bytes = 32 * n; break;
    case GN_PACKED_SPAIR: bytes = 64 * n; break;
    case GN_PACKED_SU8:
    case GN_PACKED_SU4: bytes = 64 + 32 * n; break;
    case GN_PACKED_SI8: bytes = 64 + 16 * n * (GN_PACKED_BLOCK / group); break;
    case GN_PACKED_SE8: bytes = 16 * n; break;
    }
    return (bytes + GN_PACKED_LINE - 1) / GN_PACKED_LINE * GN_PACKED_LINE;
}

/* Bytes of k elements of 16 rows, from the start of a chunk; k is a multiple of 32. */
GN_INLINE size_t gn_packed_bytes(gn_packed_type type, size_t k)
{
    static const struct {
        gn_packed_codes codes;
        gn_packed_scales scales;
        size_t group;
    } forms[] = {
#define GN_PACKED_FORM(type, codes, scales, group, zero, has_min)                                  \
    {GN_PACKED_##codes, GN_PACKED_##scales, group},
        GN_PACKED_LIST(GN_PACKED_FORM)
#undef GN_PACKED_FORM
    };
    const size_t blocks = k / GN_PACKED_BLOCK;
    const size_t per_chunk = GN_PACKED_CHUNK / GN_PACKED_BLOCK;
    const size_t rest = blocks % per_chunk;
    size_t heads =
        blocks / per_chunk * gn_packed_head_bytes(forms[type].scales, forms[type].group, per_chunk);
    if (rest != 0) {
        heads += gn_packed_head_bytes(forms[type].scales, forms[type].group, rest);
    }
    return heads + blocks * gn_packed_block_lines(forms[type].codes) * GN_PACKED_LINE;
}

/* dot_packed: one panel times m rows of activations, the bits of dot_panel_g32 or _g16 (kernels/dot) on
 * the panel form of the same rows.
 * k        elements of each row, a multiple of 32
 * panel    gn_packed_bytes(type, k), 64-byte aligned; what lies behind it is asked for ahead of time, but
 *          never read
 * a, lda, a_scale, a_sum, y, ldy   as in kernels/dot; y is only written */
typedef void gn_k_dot_packed_fn(gn_packed_type type, size_t k, const void *panel, size_t m,
                                const int8_t *a, size_t lda, const float *a_scale,
                                const int32_t *a_sum, float *y, size_t ldy);

/* unpack_packed: n elements from the start of a chunk on to the panel form of kernels/quant; n is a
 * multiple of 256, or ends where the panel does. min is not touched where the type has none. */
typedef void gn_k_unpack_packed_fn(gn_packed_type type, size_t n, const void *chunks, uint8_t *q,
                                   float *scale, float *min);

#define GN_KERNEL_OP(op, CLASS)       gn_k_##op##_fn gn_k_##op##_ref;
#define GN_KERNEL(op, variant, level) gn_k_##op##_fn gn_k_##op##_##variant;
#include "kernels/packed/kernels.inc"
#undef GN_KERNEL_OP
#undef GN_KERNEL

#endif
