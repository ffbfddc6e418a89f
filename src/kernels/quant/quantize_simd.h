/* Quantization of activations to 8 bits, for any level that simd/b64.h knows. The file that includes
 * this defines VARIANT. */
#include "kernels/quant/quant.h"
#include "kernels/simd/b64.h"
#include "kernels/simd/half.h"

#define QUANTIZE_NAME_(variant) gn_k_quantize_q8_##variant
#define QUANTIZE_NAME(variant)  QUANTIZE_NAME_(variant)

void QUANTIZE_NAME(VARIANT)(const float *x, size_t k, int8_t *q, float *scale, int32_t *sum)
{
    const b64 magnitude = b64_set_u32(0x7fffffff);
    for (size_t b = 0; b < k / 32; b++, x += 32, q += 32) {
        b64 bits =
            b64_max_u32(b64_and(b64_load(x), magnitude), b64_and(b64_load(x + 16), magnitude));
        float amax = gn_f32_from_bits(b64_reduce_max_u32(bits));
        int usable = amax >= 0x1p-100f && amax <= 0x1.fffffep127f;
        f32x16 inv = f32x16_set(usable ? 127.0f / amax : 0.0f);
        b64 keep = b64_set_u32(usable ? 0xffffffff : 0); /* an infinity times 0 is not 0 */
        scale[b] = amax / 127.0f;
        for (size_t half = 0; half < 2; half++) {
            b64 codes = f32x16_to_i32(f32x16_mul(f32x16_load(x + 16 * half), inv));
            codes = b64_and(codes, keep);
            b64_store_low_bytes(q + 16 * half, codes);
            sum[2 * b + half] = b64_reduce_add_i32(codes);
        }
    }
}
