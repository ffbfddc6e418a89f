/* Rotary position embedding in plain C: the meaning of each op. */
#include "kernels/rope/rope.h"

#include <math.h>

static void rotate(float *a, float *b, float c, float s)
{
    float a0 = *a;
    float b0 = *b;
    *a = fmaf(a0, c, -(b0 * s));
    *b = fmaf(b0, c, a0 * s);
}

void gn_k_rope_norm_ref(float *x, size_t n_rot, const float *cos, const float *sin)
{
    for (size_t i = 0; i < n_rot / 2; i++) {
        rotate(&x[2 * i], &x[2 * i + 1], cos[i], sin[i]);
    }
}

void gn_k_rope_neox_ref(float *x, size_t n_rot, const float *cos, const float *sin)
{
    size_t half = n_rot / 2;
    for (size_t i = 0; i < half; i++) {
        rotate(&x[i], &x[i + half], cos[i], sin[i]);
    }
}
