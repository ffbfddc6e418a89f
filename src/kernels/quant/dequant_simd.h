/* Rows to floats, for any level that simd/b64.h knows. Half precision, whose matrices are widened on
 * every pass, has its own loop; blocks are taken apart by the plain C of unpack.h, which compilers turn
 * into vectors of the level once the format's numbers are constants. The file that includes this
 * defines VARIANT. */
#include "kernels/quant/quant.h"
#include "kernels/quant/unpack.h"
#include "kernels/simd/b64.h"
#include "kernels/simd/half.h"

#include <string.h>

#define DEQUANT_F16_NAME_(variant) gn_k_dequant_f16_##variant
#define DEQUANT_F16_NAME(variant)  DEQUANT_F16_NAME_(variant)

void DEQUANT_F16_NAME(VARIANT)(const void *row, size_t k, float *out)
{
    const uint8_t *p = row;
    size_t i = 0;
    for (; i + 16 <= k; i += 16) {
        f32x16_store(out + i, f32x16_load_f16(p + 2 * i));
    }
    for (; i < k; i++) {
        uint16_t half;
        memcpy(&half, p + 2 * i, sizeof half);
        out[i] = gn_f32_from_f16(half);
    }
}

#define DEQUANT_NAME_(type, variant) gn_k_dequant_##type##_##variant
#define DEQUANT_NAME(type, variant)  DEQUANT_NAME_(type, variant)
#define DEFINE_DEQUANT(type, len, bytes, group, zero, has_min)                                     \
    void DEQUANT_NAME(type, VARIANT)(const void *row, size_t k, float *out)                        \
    {                                                                                              \
        const uint8_t *block = row;                                                                \
        unpacked u;                                                                                \
        for (size_t start = 0; start < k; start += (len), block += (bytes), out += (len)) {        \
            unpack_##type(block, &u);                                                              \
            for (size_t g = 0; g < (len) / (group); g++) {                                         \
                for (size_t i = g * (group); i < (g + 1) * (group); i++) {                         \
                    float product = u.scale[g] * (float)(u.q[i] - (zero));                         \
                    out[i] = (has_min) ? product + u.min[g] : product;                             \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
    }
GN_PANEL_LIST(DEFINE_DEQUANT)
