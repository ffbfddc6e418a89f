/* What the product versions of all instruction sets share: their arguments as three structs, and the two
 * entries. A version defines dot_panel_any(group, panel, m, activations, results) and then
 * GN_DOT_PANEL_ENTRIES(variant). */
#ifndef GN_KERNELS_DOT_PANEL_H
#define GN_KERNELS_DOT_PANEL_H

#include "kernels/dot/dot.h"

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
    size_t ld;
} activations;

typedef struct results {
    float *y;
    size_t ld;
    int resume;
} results;

#define GN_DOT_PANEL_ENTRY(name, group)                                                            \
    void name(size_t k, const uint8_t *q, const float *scale, const float *min, int zero,          \
              size_t m, const int8_t *a, size_t lda, const float *a_scale, const int32_t *a_sum,   \
              float *y, size_t ldy, int resume)                                                    \
    {                                                                                              \
        const panel p = {k, q, scale, min, zero};                                                  \
        const activations rows = {a, a_scale, a_sum, lda};                                         \
        const results out = {y, ldy, resume};                                                      \
        dot_panel_any(group, &p, m, rows, out);                                                    \
    }
#define GN_DOT_PANEL_ENTRIES(variant)                                                              \
    GN_DOT_PANEL_ENTRY(gn_k_dot_panel_g32_##variant, 32)                                           \
    GN_DOT_PANEL_ENTRY(gn_k_dot_panel_g16_##variant, 16)

#endif
