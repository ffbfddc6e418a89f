/* Checks of kernels/rope. */
#include "kerncheck.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The rotation in double precision, of the pair that angle i turns. */
static bool near_formula(const kc_row *row, const float *x, const float *y, size_t n_rot,
                         const float *c, const float *s)
{
    bool neox = strcmp(row->op, "rope_neox") == 0;
    for (size_t i = 0; i < n_rot / 2; i++) {
        size_t first = neox ? i : 2 * i;
        size_t second = neox ? i + n_rot / 2 : 2 * i + 1;
        double a = (double)x[first] * (double)c[i] - (double)x[second] * (double)s[i];
        double b = (double)x[first] * (double)s[i] + (double)x[second] * (double)c[i];
        double bound = 1e-6 * (1 + hypot(a, b));
        if (fabs((double)y[first] - a) > bound || fabs((double)y[second] - b) > bound) {
            return kc_differs(row, "pair %zu: found %g, %g, by the formula %g, %g", i,
                              (double)y[first], (double)y[second], a, b);
        }
    }
    return true;
}

static bool check_case(const kc_row *row, size_t n_rot, bool special)
{
    float *x = kc_alloc(n_rot * sizeof *x);
    float *c = kc_alloc(n_rot / 2 * sizeof *c);
    float *s = kc_alloc(n_rot / 2 * sizeof *s);
    float *found = kc_alloc(n_rot * sizeof *found);
    float *expected = kc_alloc(n_rot * sizeof *expected);
    kc_fill_sparse(x, n_rot, special);
    kc_fill_sparse(c, n_rot / 2, special);
    kc_fill_sparse(s, n_rot / 2, special);
    memcpy(found, x, n_rot * sizeof *x);
    memcpy(expected, x, n_rot * sizeof *x);
    ((gn_k_rope_norm_fn *)row->fn)(found, n_rot, c, s);
    ((gn_k_rope_norm_fn *)row->ref)(expected, n_rot, c, s);
    bool good = kc_same_f32(row, "x", found, expected, n_rot) &&
                (special || near_formula(row, x, found, n_rot, c, s));
    if (!good) {
        kc_differs(row, "with n_rot=%zu", n_rot);
    }
    return kc_release(row) && good;
}

static bool check(const kc_row *row)
{
    bool good = true;
    for (size_t n_rot = 0; n_rot <= 258 && good; n_rot += 2) {
        good = check_case(row, n_rot, false) && check_case(row, n_rot, true);
    }
    return good;
}

typedef struct bench_ctx {
    gn_k_rope_norm_fn *fn;
    size_t n;
    float *x;
    float *angles;
} bench_ctx;

static void call_bench(void *ctx)
{
    bench_ctx *b = ctx;
    b->fn(b->x, b->n, b->angles, b->angles + b->n / 2);
}

static void bench(const kc_row *row)
{
    bench_ctx b = {.fn = (gn_k_rope_norm_fn *)row->fn, .n = 128};
    b.x = kc_bench_floats(b.n);
    b.angles = kc_bench_floats(b.n);
    for (size_t i = 0; i < b.n / 2; i++) {
        b.angles[i] = cosf((float)i);
        b.angles[i + b.n / 2] = sinf((float)i);
    }
    kc_time_elements(row, "n_rot=128", call_bench, &b, (double)b.n);
    free(b.x);
    free(b.angles);
}

const kc_checker kc_rope_checkers[] = {
    {"rope_norm", check, bench},
    {"rope_neox", check, bench},
    {NULL, NULL, NULL},
};
