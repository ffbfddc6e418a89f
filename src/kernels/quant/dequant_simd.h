/* Rows of half-precision floats, for any level that simd/b64.h knows: whole matrices of them are
 * widened on their way into products. The file that includes this defines VARIANT. */
#include "kernels/quant/quant.h"
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
