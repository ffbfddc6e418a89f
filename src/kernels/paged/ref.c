/* Attention's two products in plain C: the meaning of each op. */
#include "kernels/paged/paged.h"

#include "kernels/simd/half.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

typedef enum kind { F32, F16, Q8, FP8, Q4 } kind;

/* Element `i` of a block of anything but q4, without its scale. */
static float element(kind type, const void *block, size_t i)
{
    switch (type) {
    case F32: return ((const float *)block)[i];
    case F16: return gn_f32_from_f16(((const uint16_t *)block)[i]);
    case Q8: return (float)((const int8_t *)block)[i];
    default: break;
    }
    unsigned code = ((const uint8_t *)block)[i];
    return gn_f32_from_f16((uint16_t)((code & 0x80u) << 8 | (code & 0x7fu) << 7));
}

static float q4_element(const uint8_t *codes, size_t byte, bool high, uint16_t scale)
{
    int code = high ? codes[byte] >> 4 : codes[byte] & 15;
    int value = 2 * (code < 8 ? code : code - 16) + 1;
    return (float)value * gn_f32_from_bits((uint32_t)scale << 16);
}

static float value(kind type, const void *v, size_t d, size_t t, size_t j)
{
    if (type != Q4) {
        return element(type, v, t * d + j);
    }
    const uint8_t *codes = v;
    const uint16_t *scale = (const uint16_t *)(const void *)(codes + d / 2 * GN_PAGED_TOK);
    size_t group = j / GN_PAGED_Q4_GROUP;
    size_t at = j % GN_PAGED_Q4_GROUP;
    return q4_element(codes, t * (d / 2) + group * 16 + at % 16, at >= 16,
                      scale[t * (d / GN_PAGED_Q4_GROUP) + group]);
}

static void scores(kind type, size_t nq, const float *q, size_t ldq, size_t d, const void *k,
                   float *s, size_t lds)
{
    const float *scale = NULL;
    if (type == Q8 || type == FP8) {
        scale = (const float *)(const void *)((const char *)k + d * GN_PAGED_TOK);
    }
    for (size_t i = 0; i < nq; i++) {
        for (size_t t = 0; t < GN_PAGED_TOK; t++) {
            float sum = 0.0f;
            for (size_t j = 0; j < d; j++) {
                sum = fmaf(q[j * ldq + i], element(type, k, j * GN_PAGED_TOK + t), sum);
            }
            s[i * lds + t] = scale != NULL ? sum * scale[t] : sum;
        }
    }
}

static void accum(kind type, size_t nq, const float *p, size_t ldp, const void *v, size_t begin,
                  size_t end, size_t d, float *o, size_t ldo)
{
    for (size_t i = 0; i < nq; i++) {
        for (size_t t = begin; t < end; t++) {
            for (size_t j = 0; j < d; j++) {
                float *out = &o[i * ldo + j];
                *out = fmaf(p[i * ldp + t], value(type, v, d, t, j), *out);
            }
        }
    }
}

#define PAGED_SCORES(name, type)                                                                   \
    void gn_k_paged_scores_##name##_ref(size_t nq, const float *q, size_t ldq, size_t d,           \
                                        const void *k, float *s, size_t lds)                       \
    {                                                                                              \
        scores(type, nq, q, ldq, d, k, s, lds);                                                    \
    }
PAGED_SCORES(f32, F32)
PAGED_SCORES(f16, F16)
PAGED_SCORES(q8, Q8)
PAGED_SCORES(fp8, FP8)

#define PAGED_ACCUM(name, type)                                                                    \
    void gn_k_paged_accum_##name##_ref(size_t nq, const float *p, size_t ldp, const void *v,       \
                                       size_t begin, size_t end, size_t d, float *o, size_t ldo)   \
    {                                                                                              \
        accum(type, nq, p, ldp, v, begin, end, d, o, ldo);                                         \
    }
PAGED_ACCUM(f32, F32)
PAGED_ACCUM(f16, F16)
PAGED_ACCUM(q8, Q8)
PAGED_ACCUM(fp8, FP8)
PAGED_ACCUM(q4, Q4)
