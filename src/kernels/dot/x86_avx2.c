/* Products of panels with AVX2: a register holds four codes of each of 8 rows, so a panel is done in
 * two halves. Up to 4 activation rows go through together.
 *
 * vpmaddubsw multiplies unsigned codes with signed activations and adds pairs in 16 bits, where they
 * must not overflow: 2 * 31 * 127 leaves room for four such steps, 2 * 63 * 127 for two. Codes of 8
 * bits are taken as signed numbers; their sign is moved to the activations, which gives at most
 * 2 * 128 * 127, one step. Sums of codes up to 63 start at -zero * sum a. */
#include "kernels/dot/panel.h"

#include <immintrin.h>
#include <string.h>

enum { MAX_ROWS = 4 };

/* How codes are multiplied: the number of steps that fit into 16 bits. */
enum { SIGNED_CODES = 1, CODES_TO_63 = 2, CODES_TO_31 = 4 };

GN_INLINE __m256i broadcast_four(const int8_t *p)
{
    int32_t four;
    memcpy(&four, p, sizeof four);
    return _mm256_set1_epi32(four);
}

/* m rows with 8 rows of the panel; m, group, has_min and steps are constants where this is inlined. */
GN_INLINE void dot_rows(size_t m, size_t group, int has_min, size_t steps, size_t half,
                        const panel *p, activations a, results out)
{
    const size_t n_blocks = a.ld / 32;
    const __m256i ones = _mm256_set1_epi16(1);
    const uint8_t *q = p->q + half * 32;
    const float *scale = p->scale + half * 8;
    const float *min = has_min ? p->min + half * 8 : NULL;
    __m256 acc[MAX_ROWS];
    for (size_t i = 0; i < m; i++) {
        acc[i] = out.resume ? _mm256_loadu_ps(out.y + i * out.ld + half * 8) : _mm256_setzero_ps();
    }
    for (size_t g = 0; g < p->k / group; g++) {
        __m256i isum[MAX_ROWS];
        int32_t asum[MAX_ROWS];
#pragma GCC unroll 4
        for (size_t i = 0; i < m; i++) {
            const int32_t *sum = a.sum + i * n_blocks * 2 + g * group / 16;
            asum[i] = group == 32 ? sum[0] + sum[1] : sum[0];
            isum[i] = has_min || steps == SIGNED_CODES ? _mm256_setzero_si256()
                                                       : _mm256_set1_epi32(-p->zero * asum[i]);
        }
#pragma GCC unroll 8
        for (size_t first = 0; first < group / 4; first += steps) {
            __m256i pairs[MAX_ROWS];
#pragma GCC unroll 4
            for (size_t step = 0; step < steps; step++, q += 64) {
                const int8_t *four = a.q + g * group + (first + step) * 4;
                __m256i codes = _mm256_loadu_si256((const __m256i *)q);
                __m256i weights = codes;
                if (steps == SIGNED_CODES) {
                    weights = _mm256_xor_si256(codes, _mm256_set1_epi8(-128));
                    codes = _mm256_abs_epi8(weights);
                }
#pragma GCC unroll 4
                for (size_t i = 0; i < m; i++) {
                    __m256i act = broadcast_four(four + i * a.ld);
                    act = steps == SIGNED_CODES ? _mm256_sign_epi8(act, weights) : act;
                    const __m256i products = _mm256_maddubs_epi16(codes, act);
                    pairs[i] = step == 0 ? products : _mm256_add_epi16(pairs[i], products);
                }
            }
#pragma GCC unroll 4
            for (size_t i = 0; i < m; i++) {
                isum[i] = _mm256_add_epi32(isum[i], _mm256_madd_epi16(pairs[i], ones));
            }
        }
        const __m256 s = _mm256_loadu_ps(scale + g * 16);
#pragma GCC unroll 4
        for (size_t i = 0; i < m; i++) {
            const __m256 as = _mm256_set1_ps(a.scale[i * n_blocks + g * group / 32]);
            acc[i] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(isum[i]), _mm256_mul_ps(s, as), acc[i]);
            if (has_min) {
                const __m256 sum = _mm256_mul_ps(_mm256_set1_ps((float)asum[i]), as);
                acc[i] = _mm256_fmadd_ps(sum, _mm256_loadu_ps(min + g * 16), acc[i]);
            }
        }
    }
    for (size_t i = 0; i < m; i++) {
        _mm256_storeu_ps(out.y + i * out.ld + half * 8, acc[i]);
    }
}

GN_INLINE void dot_panel(size_t group, int has_min, size_t steps, const panel *p, size_t m,
                         activations a, results out)
{
    while (m > 0) {
        const size_t n = m >= 4 ? 4 : m >= 2 ? 2 : 1;
        for (size_t half = 0; half < 2; half++) {
            if (n == 4) {
                dot_rows(4, group, has_min, steps, half, p, a, out);
            } else if (n == 2) {
                dot_rows(2, group, has_min, steps, half, p, a, out);
            } else {
                dot_rows(1, group, has_min, steps, half, p, a, out);
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
        dot_panel(group, 1, CODES_TO_31, p, m, a, out);
    } else if (p->zero <= 16) {
        dot_panel(group, 0, CODES_TO_31, p, m, a, out);
    } else if (p->zero <= 32) {
        dot_panel(group, 0, CODES_TO_63, p, m, a, out);
    } else {
        dot_panel(group, 0, SIGNED_CODES, p, m, a, out);
    }
}

GN_DOT_PANEL_ENTRIES(x86_avx2)
