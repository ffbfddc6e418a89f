/* Products of panels with the dot product instructions of Armv8.2: a register holds four codes of
 * each of 4 rows, so a panel is done in two halves of two registers. Codes become signed numbers by
 * taking away their zero. Up to 4 activation rows go through together; one load gives the activations
 * of four steps, each used by lane. */
#include "kernels/dot/panel.h"

#include <arm_neon.h>

enum { MAX_ROWS = 4 };

/* One step: 4 codes of 8 rows with 4 activations of each of m rows. */
#define STEP(lane)                                                                                 \
    do {                                                                                           \
        const int8x16_t w0_ = vreinterpretq_s8_u8(vsubq_u8(vld1q_u8(q), zero));                    \
        const int8x16_t w1_ = vreinterpretq_s8_u8(vsubq_u8(vld1q_u8(q + 16), zero));               \
        for (size_t i_ = 0; i_ < m; i_++) {                                                        \
            isum[i_][0] = vdotq_laneq_s32(isum[i_][0], w0_, act[i_], lane);                        \
            isum[i_][1] = vdotq_laneq_s32(isum[i_][1], w1_, act[i_], lane);                        \
        }                                                                                          \
        q += 64;                                                                                   \
    } while (0)

/* m rows with 8 rows of the panel; m, group and has_min are constants where this is inlined. */
GN_INLINE void dot_rows(size_t m, size_t group, int has_min, size_t half, const panel *p,
                        activations a, results out)
{
    const size_t n_blocks = a.ld / 32;
    const uint8x16_t zero = vdupq_n_u8((uint8_t)p->zero);
    const uint8_t *q = p->q + half * 32;
    const float *scale = p->scale + half * 8;
    const float *min = has_min ? p->min + half * 8 : NULL;
    float32x4_t acc[MAX_ROWS][2];
    for (size_t i = 0; i < m; i++) {
        acc[i][0] = out.resume ? vld1q_f32(out.y + i * out.ld + half * 8) : vdupq_n_f32(0.0f);
        acc[i][1] = out.resume ? vld1q_f32(out.y + i * out.ld + half * 8 + 4) : vdupq_n_f32(0.0f);
    }
    for (size_t g = 0; g < p->k / group; g++) {
        int32x4_t isum[MAX_ROWS][2];
        for (size_t i = 0; i < m; i++) {
            isum[i][0] = vdupq_n_s32(0);
            isum[i][1] = vdupq_n_s32(0);
        }
        for (size_t first = 0; first < group; first += 16) {
            int8x16_t act[MAX_ROWS];
            for (size_t i = 0; i < m; i++) {
                act[i] = vld1q_s8(a.q + i * a.ld + g * group + first);
            }
            STEP(0);
            STEP(1);
            STEP(2);
            STEP(3);
        }
        for (size_t i = 0; i < m; i++) {
            const float as = a.scale[i * n_blocks + g * group / 32];
            const int32_t *sum = a.sum + i * n_blocks * 2 + g * group / 16;
            const float asum = (float)(group == 32 ? sum[0] + sum[1] : sum[0]) * as;
            for (size_t j = 0; j < 2; j++) {
                const float32x4_t s = vmulq_n_f32(vld1q_f32(scale + g * 16 + j * 4), as);
                acc[i][j] = vfmaq_f32(acc[i][j], vcvtq_f32_s32(isum[i][j]), s);
                if (has_min) {
                    acc[i][j] = vfmaq_n_f32(acc[i][j], vld1q_f32(min + g * 16 + j * 4), asum);
                }
            }
        }
    }
    for (size_t i = 0; i < m; i++) {
        vst1q_f32(out.y + i * out.ld + half * 8, acc[i][0]);
        vst1q_f32(out.y + i * out.ld + half * 8 + 4, acc[i][1]);
    }
}

GN_INLINE void dot_panel(size_t group, int has_min, const panel *p, size_t m, activations a,
                         results out)
{
    while (m > 0) {
        const size_t n = m >= 4 ? 4 : m >= 2 ? 2 : 1;
        for (size_t half = 0; half < 2; half++) {
            if (n == 4) {
                dot_rows(4, group, has_min, half, p, a, out);
            } else if (n == 2) {
                dot_rows(2, group, has_min, half, p, a, out);
            } else {
                dot_rows(1, group, has_min, half, p, a, out);
            }
        }
        a.q += n * a.ld;
        a.scale += n * (a.ld / 32);
        a.sum += n * (a.ld / 16);
        out.y += n * out.ld;
        m -= n;
    }
}

GN_INLINE void dot_panel_any(size_t group, const panel *p, size_t m, activations a, results out)
{
    if (p->min != NULL) {
        dot_panel(group, 1, p, m, a, out);
    } else {
        dot_panel(group, 0, p, m, a, out);
    }
}

GN_DOT_PANEL_ENTRIES(arm_neon)
