/* Activations over simd/v16.h: step for step what ref.c does, on 16 elements. */
#ifndef GN_KERNELS_ACT_ACT_SIMD_H
#define GN_KERNELS_ACT_ACT_SIMD_H

#include "kernels/act/act.h"
#include "kernels/act/constants.h"
#include "kernels/simd/v16.h"

#include <math.h>

/* a * x + c with a constant c. */
GN_INLINE v16 poly(v16 a, v16 x, float c)
{
    return v16_fma(a, x, v16_set1(c));
}

GN_INLINE v16 v16_exp(v16 x)
{
    x = v16_max(v16_set1(EXP_LO), x);
    x = v16_min(v16_set1(EXP_HI), x);
    v16 n = v16_round(v16_mul(x, v16_set1(EXP_LOG2E)));
    v16 r = v16_fnma(n, v16_set1(EXP_LN2_HI), x);
    r = v16_fnma(n, v16_set1(EXP_LN2_LO), r);
    v16 q = poly(v16_set1(EXP_E4), r, EXP_E3);
    q = poly(q, r, EXP_E2);
    q = poly(q, r, EXP_E1);
    q = poly(q, r, EXP_E0);
    v16 p = v16_add(v16_fma(q, v16_mul(r, r), r), v16_set1(1.0f));
    return v16_scale2(p, n);
}

GN_INLINE v16 v16_tanh(v16 x)
{
    v16 one = v16_set1(1.0f);
    v16 a = v16_abs(x);
    v16 z = v16_mul(x, x);
    v16 p = poly(v16_set1(TANH_T4), z, TANH_T3);
    p = poly(p, z, TANH_T2);
    p = poly(p, z, TANH_T1);
    p = poly(p, z, TANH_T0);
    v16 small = v16_fma(v16_mul(x, z), p, x);
    v16 e = v16_exp(v16_add(a, a));
    v16 large = v16_sub(one, v16_div(v16_set1(2.0f), v16_add(e, one)));
    return v16_if_lt(a, v16_set1(TANH_SMALL), small, v16_copysign(large, x));
}

GN_INLINE v16 v16_gelu_erf(v16 x)
{
    v16 one = v16_set1(1.0f);
    v16 a = v16_abs(x);
    v16 t = v16_div(one, v16_fma(v16_set1(TAIL_SLOPE), a, one));
    v16 p = poly(v16_set1(TAIL_P7), t, TAIL_P6);
    p = poly(p, t, TAIL_P5);
    p = poly(p, t, TAIL_P4);
    p = poly(p, t, TAIL_P3);
    p = poly(p, t, TAIL_P2);
    p = poly(p, t, TAIL_P1);
    p = poly(p, t, TAIL_P0);
    v16 e = v16_exp(v16_mul(v16_set1(-0.5f), v16_mul(a, a)));
    v16 tail = v16_mul(e, v16_mul(t, p));
    v16 share = v16_if_lt(v16_set1(0.0f), x, v16_sub(one, tail), tail);
    return v16_mul(x, share);
}

/* x / (1 + exp(-u)) */
GN_INLINE v16 v16_gated(v16 x, v16 u)
{
    return v16_div(x, v16_add(v16_set1(1.0f), v16_exp(v16_neg(u))));
}

GN_INLINE void max_step(const float *s, v16 *best, size_t j, size_t n)
{
    v16 v = v16_get(s + j, n);
    v = n == V16_LANES ? v : v16_first_n(v, n, v16_set1(-INFINITY));
    *best = v16_max(v, *best);
}

void V16_FN(max)(const float *s, size_t n, float *max)
{
    v16 best = v16_set1(-INFINITY);
    V16_FOR(n, max_step, s, &best);
    *max = v16_hmax(best);
}

GN_INLINE void exp_sum_step(float *s, v16 max, v16 *acc, size_t j, size_t n)
{
    v16 e = v16_exp(v16_sub(v16_get(s + j, n), max));
    v16_put(s + j, e, n);
    e = n == V16_LANES ? e : v16_first_n(e, n, v16_set1(0.0f));
    *acc = v16_add(*acc, e);
}

void V16_FN(exp_sum)(float *s, size_t n, float max, float *sum)
{
    v16 acc = v16_set1(0.0f);
    V16_FOR(n, exp_sum_step, s, v16_set1(max), &acc);
    *sum = v16_sum(acc);
}

GN_INLINE void silu_step(const float *gate, const float *up, float *y, size_t j, size_t n)
{
    v16 g = v16_get(gate + j, n);
    v16_put(y + j, v16_mul(v16_gated(g, g), v16_get(up + j, n)), n);
}

void V16_FN(silu_mul)(const float *gate, const float *up, size_t n, float *y)
{
    V16_FOR(n, silu_step, gate, up, y);
}

GN_INLINE void gelu_tanh_step(const float *gate, const float *up, float *y, size_t j, size_t n)
{
    v16 g = v16_get(gate + j, n);
    v16 u2 = v16_mul(g, poly(v16_set1(GELU_2C3), v16_mul(g, g), GELU_2C));
    v16_put(y + j, v16_mul(v16_gated(g, u2), v16_get(up + j, n)), n);
}

void V16_FN(gelu_tanh_mul)(const float *gate, const float *up, size_t n, float *y)
{
    V16_FOR(n, gelu_tanh_step, gate, up, y);
}

GN_INLINE void gelu_erf_step(const float *x, float *y, size_t j, size_t n)
{
    v16_put(y + j, v16_gelu_erf(v16_get(x + j, n)), n);
}

void V16_FN(gelu_erf)(const float *x, size_t n, float *y)
{
    V16_FOR(n, gelu_erf_step, x, y);
}

GN_INLINE void tanh_cap_step(float *x, v16 cap, size_t j, size_t n)
{
    v16_put(x + j, v16_mul(v16_tanh(v16_div(v16_get(x + j, n), cap)), cap), n);
}

void V16_FN(tanh_cap)(float *x, size_t n, float cap)
{
    V16_FOR(n, tanh_cap_step, x, v16_set1(cap));
}

#endif
