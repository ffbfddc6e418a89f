/* The meaning of the panel products, in plain C. */
#include "kernels/dot/dot.h"

#include <math.h>

static void dot_panel(size_t group, size_t k, const uint8_t *q, const float *scale,
                      const float *min, int zero, size_t m, const int8_t *a, size_t lda,
                      const float *a_scale, const int32_t *a_sum, float *y, size_t ldy, int resume)
{
    for (size_t i = 0; i < m; i++) {
        const int8_t *ai = a + i * lda;
        for (size_t r = 0; r < 16; r++) {
            float acc = resume ? y[i * ldy + r] : 0.0f;
            for (size_t b = 0; b < k / group; b++) {
                int32_t isum = 0;
                for (size_t j = b * group; j < (b + 1) * group; j++) {
                    isum += (q[(j / 4 * 16 + r) * 4 + j % 4] - zero) * ai[j];
                }
                float as = a_scale[i * (lda / 32) + b * group / 32];
                acc = fmaf((float)isum, scale[b * 16 + r] * as, acc);
                if (min != NULL) {
                    int32_t asum = 0;
                    for (size_t s = b * group / 16; s < (b + 1) * group / 16; s++) {
                        asum += a_sum[i * (lda / 16) + s];
                    }
                    acc = fmaf((float)asum * as, min[b * 16 + r], acc);
                }
            }
            y[i * ldy + r] = acc;
        }
    }
}

void gn_k_dot_panel_g32_ref(size_t k, const uint8_t *q, const float *scale, const float *min,
                            int zero, size_t m, const int8_t *a, size_t lda, const float *a_scale,
                            const int32_t *a_sum, float *y, size_t ldy, int resume)
{
    dot_panel(32, k, q, scale, min, zero, m, a, lda, a_scale, a_sum, y, ldy, resume);
}

void gn_k_dot_panel_g16_ref(size_t k, const uint8_t *q, const float *scale, const float *min,
                            int zero, size_t m, const int8_t *a, size_t lda, const float *a_scale,
                            const int32_t *a_sum, float *y, size_t ldy, int resume)
{
    dot_panel(16, k, q, scale, min, zero, m, a, lda, a_scale, a_sum, y, ldy, resume);
}
