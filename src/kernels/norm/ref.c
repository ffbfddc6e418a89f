/* Normalisation in plain C: the meaning of each op. */
#include "kernels/norm/norm.h"

#include "kernels/simd/lanes.h"

#include <math.h>

void gn_k_rmsnorm_ref(const float *x, size_t n, float eps, const float *w, float w_add, float *y)
{
    float inv = 1.0f / sqrtf(lanes_dot(x, x, n) / (float)n + eps);
    for (size_t j = 0; j < n; j++) {
        float scaled = x[j] * inv;
        y[j] = w != NULL ? scaled * (w[j] + w_add) : scaled;
    }
}

void gn_k_layernorm_ref(const float *x, size_t n, float eps, const float *w, const float *b,
                        float *y)
{
    float chain[LANES] = {0};
    for (size_t j = 0; j < lanes_padded(n); j++) {
        chain[j % LANES] += lanes_at(x, j, n);
    }
    float mean = lanes_sum(chain) / (float)n;
    float square[LANES] = {0};
    for (size_t j = 0; j < lanes_padded(n); j++) {
        float off = j < n ? x[j] - mean : 0.0f;
        square[j % LANES] = fmaf(off, off, square[j % LANES]);
    }
    float inv = 1.0f / sqrtf(lanes_sum(square) / (float)n + eps);
    for (size_t j = 0; j < n; j++) {
        float scaled = (x[j] - mean) * inv;
        y[j] = b != NULL ? fmaf(scaled, w[j], b[j]) : scaled * w[j];
    }
}
