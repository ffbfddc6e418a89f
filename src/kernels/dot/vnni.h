/* Products of panels with AVX-512 VNNI: a register holds four codes of each of the 16 rows, and is
 * multiplied with four activations, the same for all lanes. Up to 8 activation rows go through
 * together, so the panel is read once for them.
 *
 * Codes are unsigned, as the instruction wants them: sum (q - zero) * a is started at -zero * sum a. */
#ifndef GN_KERNELS_DOT_VNNI_H
#define GN_KERNELS_DOT_VNNI_H

#include "kernels/dot/panel.h"

#include <immintrin.h>

enum { VNNI_ROWS = 8 };

/* acc += codes * the four activations at p, for all lanes. Written out because compilers load the
 * broadcast with an instruction of its own, and the front end is the bottleneck. */
GN_INLINE __m512i multiply_four(__m512i acc, __m512i codes, const int8_t *p)
{
    __asm__("vpdpbusd %2%{1to16%}, %1, %0" : "+v"(acc) : "v"(codes), "m"(*(const int8_t(*)[4])p));
    return acc;
}

/* Sums of activations over n (1 .. 16) groups. */
GN_INLINE __m512i group_sums(size_t group, size_t n, const int32_t *sum)
{
    const uint32_t mask = (1u << n) - 1;
    if (group == 16) {
        return _mm512_maskz_loadu_epi32((__mmask16)mask, sum);
    }
    const __m512i even =
        _mm512_set_epi32(30, 28, 26, 24, 22, 20, 18, 16, 14, 12, 10, 8, 6, 4, 2, 0);
    const __m512i odd = _mm512_add_epi32(even, _mm512_set1_epi32(1));
    const uint32_t both = n == 16 ? 0xffffffff : (1u << 2 * n) - 1;
    const __m512i lo = _mm512_maskz_loadu_epi32((__mmask16)both, sum);
    const __m512i hi = _mm512_maskz_loadu_epi32((__mmask16)(both >> 16), sum + 16);
    return _mm512_add_epi32(_mm512_permutex2var_epi32(lo, even, hi),
                            _mm512_permutex2var_epi32(lo, odd, hi));
}

/* The scales of activations for n (1 .. 16) groups. */
GN_INLINE __m512 group_scales(size_t group, size_t n, const float *scale)
{
    const uint32_t mask = (1u << n) - 1;
    if (group == 32) {
        return _mm512_maskz_loadu_ps((__mmask16)mask, scale);
    }
    const __m512i twice = _mm512_set_epi32(7, 7, 6, 6, 5, 5, 4, 4, 3, 3, 2, 2, 1, 1, 0, 0);
    const __m512 scales = _mm512_maskz_loadu_ps((__mmask16)((1u << (n + 1) / 2) - 1), scale);
    return _mm512_permutexvar_ps(twice, scales);
}

/* What the epilogues need of 16 groups: the sums of activations times their scale where there is a minimum,
 * else what the integer sums start at. Kept in memory because broadcasts from there are free. */
typedef struct group_terms {
    int32_t start[VNNI_ROWS][16];
    float sum[VNNI_ROWS][16];
} group_terms;

/* m rows at once; m, group and has_min are constants where this is inlined. */
GN_INLINE void dot_rows(size_t m, size_t group, int has_min, const panel *p, activations a,
                        results out)
{
    const size_t n_blocks = a.ld / 32;
    const uint8_t *q = p->q;
    const float *scale = p->scale;
    const float *min = p->min;
    group_terms terms;
    __m512 acc[VNNI_ROWS];
    for (size_t i = 0; i < m; i++) {
        acc[i] = out.resume ? _mm512_loadu_ps(out.y + i * out.ld) : _mm512_setzero_ps();
    }
    for (size_t first = 0; first < p->k / group; first += 16) {
        const size_t n_groups = p->k / group - first < 16 ? p->k / group - first : 16;
        for (size_t i = 0; i < m; i++) {
            const int32_t *sum = a.sum + i * n_blocks * 2 + first * group / 16;
            const __m512i sums = group_sums(group, n_groups, sum);
            if (has_min) {
                const __m512 as =
                    group_scales(group, n_groups, a.scale + i * n_blocks + first * group / 32);
                _mm512_storeu_ps(terms.sum[i], _mm512_mul_ps(_mm512_cvtepi32_ps(sums), as));
            } else {
                const __m512i starts = _mm512_mullo_epi32(sums, _mm512_set1_epi32(-p->zero));
                _mm512_storeu_si512(terms.start[i], starts);
            }
        }
        for (size_t g = 0; g < n_groups; g++) {
            const int8_t *four = a.q + (first + g) * group;
            __m512i isum[VNNI_ROWS];
#pragma GCC unroll 8
            for (size_t i = 0; i < m; i++) {
                isum[i] = has_min ? _mm512_setzero_si512() : _mm512_set1_epi32(terms.start[i][g]);
            }
#pragma GCC unroll 8
            for (size_t step = 0; step < group / 4; step++, q += 64) {
                const __m512i codes = _mm512_loadu_si512(q);
#pragma GCC unroll 8
                for (size_t i = 0; i < m; i++) {
                    isum[i] = multiply_four(isum[i], codes, four + i * a.ld + step * 4);
                }
            }
            const __m512 s = _mm512_loadu_ps(scale + (first + g) * 16);
#pragma GCC unroll 8
            for (size_t i = 0; i < m; i++) {
                const __m512 as = _mm512_set1_ps(a.scale[i * n_blocks + (first + g) * group / 32]);
                acc[i] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(isum[i]), _mm512_mul_ps(s, as), acc[i]);
                if (has_min) {
                    const __m512 mins = _mm512_loadu_ps(min + (first + g) * 16);
                    acc[i] = _mm512_fmadd_ps(_mm512_set1_ps(terms.sum[i][g]), mins, acc[i]);
                }
            }
        }
    }
    for (size_t i = 0; i < m; i++) {
        _mm512_storeu_ps(out.y + i * out.ld, acc[i]);
    }
}

GN_INLINE void vnni_panel(size_t group, int has_min, const panel *p, size_t m, activations a,
                          results out)
{
    while (m > 0) {
        size_t n;
        if (m >= 8) {
            n = 8;
            dot_rows(8, group, has_min, p, a, out);
        } else if (m >= 4) {
            n = 4;
            dot_rows(4, group, has_min, p, a, out);
        } else if (m >= 2) {
            n = 2;
            dot_rows(2, group, has_min, p, a, out);
        } else {
            n = 1;
            dot_rows(1, group, has_min, p, a, out);
        }
        a.q += n * a.ld;
        a.scale += n * (a.ld / 32);
        a.sum += n * (a.ld / 16);
        out.y += n * out.ld;
        m -= n;
    }
}

#endif
