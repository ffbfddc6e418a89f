/* Products of panels with AVX-512 VNNI: a register holds four codes of each of the 16 rows, and is
 * multiplied with four activations, the same for all lanes. Up to 8 activation rows go through
 * together, so the panel is read once for them.
 *
 * Codes are unsigned, as the instruction wants them: sum (q - zero) * a is started at -zero * sum a. */
#include "kernels/dot/dot.h"

#include <immintrin.h>
#include <string.h>

enum { MAX_ROWS = 8 };

typedef struct panel {
    size_t k;
    const uint8_t *q;
    const float *scale;
    const float *min;
    int zero;
} panel;

typedef struct activations {
    const int8_t *q;
    const float *scale;
    const int32_t *sum;
} activations;

GN_INLINE __m512i broadcast_four(const int8_t *p)
{
    int32_t four;
    memcpy(&four, p, sizeof four);
    return _mm512_set1_epi32(four);
}

/* m rows at once; m, group and has_min are constants where this is inlined. */
GN_INLINE void dot_rows(size_t m, size_t group, int has_min, const panel *p, activations a,
                        float *y, size_t ldy)
{
    const size_t n_blocks = p->k / 32;
    const uint8_t *q = p->q;
    const float *scale = p->scale;
    const float *min = p->min;
    __m512 acc[MAX_ROWS];
    for (size_t i = 0; i < m; i++) {
        acc[i] = _mm512_setzero_ps();
    }
    for (size_t g = 0; g < p->k / group; g++) {
        const size_t block = g * group / 32;
        __m512i isum[MAX_ROWS];
        int32_t asum[MAX_ROWS];
#pragma GCC unroll 8
        for (size_t i = 0; i < m; i++) {
            const int32_t *sum = a.sum + i * n_blocks * 2 + g * group / 16;
            asum[i] = group == 32 ? sum[0] + sum[1] : sum[0];
            isum[i] = has_min ? _mm512_setzero_si512() : _mm512_set1_epi32(-p->zero * asum[i]);
        }
#pragma GCC unroll 8
        for (size_t step = 0; step < group / 4; step++, q += 64) {
            const __m512i codes = _mm512_loadu_si512(q);
#pragma GCC unroll 8
            for (size_t i = 0; i < m; i++) {
                const int8_t *four = a.q + i * p->k + g * group + step * 4;
                isum[i] = _mm512_dpbusd_epi32(isum[i], codes, broadcast_four(four));
            }
        }
        const __m512 s = _mm512_loadu_ps(scale + g * 16);
#pragma GCC unroll 8
        for (size_t i = 0; i < m; i++) {
            const __m512 as = _mm512_set1_ps(a.scale[i * n_blocks + block]);
            acc[i] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(isum[i]), _mm512_mul_ps(s, as), acc[i]);
            if (has_min) {
                const __m512 mins = _mm512_mul_ps(_mm512_loadu_ps(min + g * 16), as);
                acc[i] = _mm512_fmadd_ps(_mm512_set1_ps((float)asum[i]), mins, acc[i]);
            }
        }
    }
    for (size_t i = 0; i < m; i++) {
        _mm512_storeu_ps(y + i * ldy, acc[i]);
    }
}

GN_INLINE void dot_panel(size_t group, int has_min, const panel *p, size_t m, activations a,
                         float *y, size_t ldy)
{
    while (m > 0) {
        size_t n;
        if (m >= 8) {
            n = 8;
            dot_rows(8, group, has_min, p, a, y, ldy);
        } else if (m >= 4) {
            n = 4;
            dot_rows(4, group, has_min, p, a, y, ldy);
        } else if (m >= 2) {
            n = 2;
            dot_rows(2, group, has_min, p, a, y, ldy);
        } else {
            n = 1;
            dot_rows(1, group, has_min, p, a, y, ldy);
        }
        a.q += n * p->k;
        a.scale += n * (p->k / 32);
        a.sum += n * (p->k / 16);
        y += n * ldy;
        m -= n;
    }
}

void gn_k_dot_panel_g32_x86_vnni(size_t k, const uint8_t *q, const float *scale, const float *min,
                                 int zero, size_t m, const int8_t *a, const float *a_scale,
                                 const int32_t *a_sum, float *y, size_t ldy)
{
    const panel p = {k, q, scale, min, zero};
    const activations rows = {a, a_scale, a_sum};
    if (min != NULL) {
        dot_panel(32, 1, &p, m, rows, y, ldy);
    } else {
        dot_panel(32, 0, &p, m, rows, y, ldy);
    }
}

void gn_k_dot_panel_g16_x86_vnni(size_t k, const uint8_t *q, const float *scale, const float *min,
                                 int zero, size_t m, const int8_t *a, const float *a_scale,
                                 const int32_t *a_sum, float *y, size_t ldy)
{
    const panel p = {k, q, scale, min, zero};
    const activations rows = {a, a_scale, a_sum};
    if (min != NULL) {
        dot_panel(16, 1, &p, m, rows, y, ldy);
    } else {
        dot_panel(16, 0, &p, m, rows, y, ldy);
    }
}
