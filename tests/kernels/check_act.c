/* Checks of kernels/act: against the reference, and the reference against the C library in double
 * precision, within the bounds that act.h promises. */
#include "kerncheck.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* One call for all ops of the family: x in, y out, the scalar result returned. */
static float call_act(const kc_row *row, kc_fn *fn, const float *x, const float *up, size_t n,
                      float a, float *y)
{
    float scalar = 0;
    if (strcmp(row->op, "max") == 0) {
        ((gn_k_max_fn *)fn)(x, n, &scalar);
    } else if (strcmp(row->op, "exp_sum") == 0) {
        memcpy(y, x, n * sizeof *y);
        ((gn_k_exp_sum_fn *)fn)(y, n, a, &scalar);
    } else if (strcmp(row->op, "tanh_cap") == 0) {
        memcpy(y, x, n * sizeof *y);
        ((gn_k_tanh_cap_fn *)fn)(y, n, fabsf(a));
    } else if (strcmp(row->op, "gelu_erf") == 0) {
        ((gn_k_gelu_erf_fn *)fn)(x, n, y);
    } else {
        ((gn_k_silu_mul_fn *)fn)(x, up, n, y); /* silu_mul and gelu_tanh_mul have one type */
    }
    return scalar;
}

static bool check_case(const kc_row *row, size_t n, int form)
{
    static const float spread[] = {1.0f, 10.0f, 100.0f};
    float *x = kc_alloc(n * sizeof *x);
    float *up = kc_alloc(n * sizeof *up);
    float *found = kc_alloc(n * sizeof *found);
    float *expected = kc_alloc(n * sizeof *expected);
    if (form < 3) {
        kc_fill_uniform(x, n);
        for (size_t i = 0; i < n; i++) {
            x[i] *= spread[form];
        }
    } else if (form == 3) {
        kc_fill_special(x, n);
    } else {
        kc_fill_bytes(x, n * sizeof *x); /* any bits */
    }
    kc_fill_uniform(up, n);
    float a = kc_uniform() * (form % 2 != 0 ? 30.0f : 1.0f);
    float got = call_act(row, row->fn, x, up, n, a, found);
    float wanted = call_act(row, row->ref, x, up, n, a, expected);
    bool good =
        kc_same_f32(row, "scalar", &got, &wanted, 1) && kc_same_f32(row, "y", found, expected, n);
    if (!good) {
        kc_differs(row, "with n=%zu form=%d", n, form);
    }
    return kc_release(row) && good;
}

/* What op(x) is, and how far off it may be. */
static double exact(const kc_row *row, double x, double a, double *bound)
{
    double y;
    if (strcmp(row->op, "exp_sum") == 0) {
        y = exp(x);
        *bound = 0x1p-23 * y + 0x1p-149;
    } else if (strcmp(row->op, "silu_mul") == 0) {
        y = x / (1 + exp(-x));
        *bound = 0x1p-21 * fabs(y) + 0x1p-120;
    } else if (strcmp(row->op, "gelu_tanh_mul") == 0) {
        y = 0.5 * x * (1 + tanh(sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
        *bound = 2e-7 * fmax(1, fabs(x));
    } else if (strcmp(row->op, "gelu_erf") == 0) {
        y = 0.5 * x * erfc(-x / sqrt(2));
        *bound = 2e-7 * fmax(1, fabs(x));
    } else {
        y = a * tanh(x / a);
        *bound = 0x1p-21 * fabs(y) + 0x1p-149;
    }
    return y;
}

static bool check_accuracy(const kc_row *row)
{
    static const double limits[] = {0.01, 1, 8, 88, 110};
    double worst = 0;
    for (size_t i = 0; i < 100000; i++) {
        double limit = limits[i % GN_COUNTOF(limits)];
        float x = kc_uniform() * (float)limit;
        float up = 1.0f;
        float y;
        /* exp_sum takes the maximum off, tanh_cap needs a cap. */
        float a = strcmp(row->op, "exp_sum") == 0 ? 0.0f : 30.0f;
        (void)call_act(row, row->ref, &x, &up, 1, a, &y);
        double bound;
        double expected = exact(row, (double)x, (double)a, &bound);
        if (fabs(expected) > 3.4028235e38) {
            expected = copysign(INFINITY, expected);
        }
        double off = isinf(expected) ? (double)y != expected : fabs((double)y - expected) / bound;
        worst = fmax(worst, off);
        if (!(off <= 1)) {
            return kc_differs(row, "of %a: found %a, exact %a, %g times the bound", (double)x,
                              (double)y, expected, off);
        }
    }
    return worst > 0;
}

static bool check(const kc_row *row)
{
    bool good = true;
    for (size_t n = 0; n < 600 && good; n += n < 70 ? 1 : 101) {
        for (int form = 0; form < 5 && good; form++) {
            good = check_case(row, n, form);
        }
    }
    return good && (strcmp(row->op, "max") == 0 || row->fn != row->ref || check_accuracy(row));
}

typedef struct bench_ctx {
    const kc_row *row;
    size_t n;
    float *x;
    float *up;
    float *y;
} bench_ctx;

static void call_bench(void *ctx)
{
    bench_ctx *b = ctx;
    (void)call_act(b->row, b->row->fn, b->x, b->up, b->n, 1.0f, b->y);
}

static void bench(const kc_row *row)
{
    bench_ctx b = {.row = row, .n = 2048};
    b.x = kc_bench_floats(b.n);
    b.up = kc_bench_floats(b.n);
    b.y = kc_bench_floats(b.n);
    kc_time_elements(row, "n=2048", call_bench, &b, (double)b.n);
    free(b.x);
    free(b.up);
    free(b.y);
}

const kc_checker kc_act_checkers[] = {
    {"max", check, bench},      {"exp_sum", check, bench},
    {"silu_mul", check, bench}, {"gelu_tanh_mul", check, bench},
    {"gelu_erf", check, bench}, {"tanh_cap", check, bench},
    {NULL, NULL, NULL},
};
