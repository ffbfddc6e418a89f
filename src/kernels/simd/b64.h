/* A vector of 64 bytes, also seen as 16 lanes of 32 bits, integer or float: one register with
 * AVX-512, two with AVX2, four with NEON. Kernels that only need these few operations are written
 * once and compiled per level; a file that includes this is compiled for one of the three.
 *
 * Shifts are by constants, logical, on 32-bit lanes: bits that cross bytes are masked off by the
 * caller. */
#ifndef GN_KERNELS_SIMD_B64_H
#define GN_KERNELS_SIMD_B64_H

#include "base/attr.h"

#if defined(__AVX512BW__)
#include "kernels/simd/b64_avx512.h"
#elif defined(__AVX2__)
#include "kernels/simd/b64_avx2.h"
#elif defined(__aarch64__)
#include "kernels/simd/b64_neon.h"
#else
#error "b64.h needs a file compiled for AVX-512, AVX2 or NEON"
#endif

GN_INLINE b64 b64_set_u8(uint8_t x)
{
    return b64_set_u32(x * 0x01010101u);
}

#endif
