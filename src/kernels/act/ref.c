/* Activations in plain C: the meaning of each op. */
#include "kernels/act/act.h"

#include "kernels/act/constants.h"
#include "kernels/simd/lanes.h"

#include <math.h>

static float exp_one(float x)
{
    if (isnan(x)) {
        return x;
    }
    x = EXP_LO > x ? EXP_LO : x;
    x = EXP_HI < x ? EXP_HI : x;
    float n = rintf(x * EXP_LOG2E);
    float r = fmaf(-n, EXP_LN2_HI, x);
    r = fmaf(-n, EXP_LN2_LO, r);
    float q = fmaf(EXP_E4, r, EXP_E3);
    q = fmaf(q, r, EXP_E2);
    q = fmaf(q, r, EXP_E1);
    q = fmaf(q, r, EXP_E0);
    float p = fmaf(q, r * r, r) + 1.0f;
    return ldexpf(p, (int)n);
}

static float tanh_one(float x)
{
    float a = fabsf(x);
    if (a < TANH_SMALL) {
        float z = x * x;
        float p = fmaf(TANH_T4, z, TANH_T3);
        p = fmaf(p, z, TANH_T2);
        p = fmaf(p, z, TANH_T1);
        p = fmaf(p, z, TANH_T0);
        return fmaf(x * z, p, x);
    }
    float t = 1.0f - 2.0f / (exp_one(a + a) + 1.0f);
    return copysignf(t, x);
}

static float gelu_erf_one(float x)
{
    float a = fabsf(x);
    float t = 1.0f / fmaf(TAIL_SLOPE, a, 1.0f);
    float p = fmaf(TAIL_P7, t, TAIL_P6);
    p = fmaf(p, t, TAIL_P5);
    p = fmaf(p, t, TAIL_P4);
    p = fmaf(p, t, TAIL_P3);
    p = fmaf(p, t, TAIL_P2);
    p = fmaf(p, t, TAIL_P1);
    p = fmaf(p, t, TAIL_P0);
    float tail = exp_one(-0.5f * (a * a)) * (t * p);
    return x > 0.0f ? x * (1.0f - tail) : x * tail;
}

void gn_k_max_ref(const float *s, size_t n, float *max)
{
    float chain[LANES];
    for (size_t i = 0; i < LANES; i++) {
        chain[i] = -INFINITY;
    }
    for (size_t j = 0; j < n; j++) {
        chain[j % LANES] = s[j] > chain[j % LANES] ? s[j] : chain[j % LANES];
    }
    for (size_t half = LANES / 2; half > 0; half /= 2) {
        for (size_t i = 0; i < half; i++) {
            chain[i] = chain[i] > chain[i + half] ? chain[i] : chain[i + half];
        }
    }
    *max = chain[0];
}

void gn_k_exp_sum_ref(float *s, size_t n, float max, float *sum)
{
    float chain[LANES] = {0};
    for (size_t j = 0; j < n; j++) {
        s[j] = exp_one(s[j] - max);
        chain[j % LANES] += s[j];
    }
    *sum = lanes_sum(chain);
}

void gn_k_silu_mul_ref(const float *gate, const float *up, size_t n, float *y)
{
    for (size_t i = 0; i < n; i++) {
        y[i] = gate[i] / (1.0f + exp_one(-gate[i])) * up[i];
    }
}

void gn_k_gelu_tanh_mul_ref(const float *gate, const float *up, size_t n, float *y)
{
    for (size_t i = 0; i < n; i++) {
        float g = gate[i];
        float u2 = g * fmaf(GELU_2C3, g * g, GELU_2C);
        y[i] = g / (1.0f + exp_one(-u2)) * up[i];
    }
}

void gn_k_gelu_erf_ref(const float *x, size_t n, float *y)
{
    for (size_t i = 0; i < n; i++) {
        y[i] = gelu_erf_one(x[i]);
    }
}

void gn_k_tanh_cap_ref(float *x, size_t n, float cap)
{
    for (size_t i = 0; i < n; i++) {
        x[i] = tanh_one(x[i] / cap) * cap;
    }
}
