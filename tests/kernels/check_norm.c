/* Checks of kernels/norm. */
#include "kerncheck.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The same call for both ops: second is the weights' addend or the bias. */
static void call_norm(const kc_row *row, kc_fn *fn, const float *x, size_t n, const float *w,
                      const float *b, float *y)
{
    if (strcmp(row->op, "rmsnorm") == 0) {
        ((gn_k_rmsnorm_fn *)fn)(x, n, 1e-5f, w, b != NULL ? 1.0f : 0.0f, y);
    } else {
        ((gn_k_layernorm_fn *)fn)(x, n, 1e-5f, w, b, y);
    }
}

/* The reference itself against the formula in double precision. */
static bool near_formula(const kc_row *row, const float *x, size_t n, const float *w,
                         const float *b, const float *y)
{
    bool rms = strcmp(row->op, "rmsnorm") == 0;
    double mean = 0;
    double square = 0;
    for (size_t j = 0; j < n && !rms; j++) {
        mean += (double)x[j] / (double)n;
    }
    for (size_t j = 0; j < n; j++) {
        square += ((double)x[j] - mean) * ((double)x[j] - mean) / (double)n;
    }
    for (size_t j = 0; j < n; j++) {
        double v = ((double)x[j] - mean) / sqrt(square + 1e-5);
        double weight = w == NULL ? 1.0 : (double)w[j] + (rms && b != NULL ? 1.0 : 0.0);
        double expected = v * weight + (!rms && b != NULL ? (double)b[j] : 0.0);
        if (fabs((double)y[j] - expected) > 1e-4 * (1 + fabs(expected))) {
            return kc_differs(row, "y[%zu] of %zu: found %g, by the formula %g", j, n, (double)y[j],
                              expected);
        }
    }
    return true;
}

typedef struct norm_case {
    size_t n;
    bool weights;
    bool second;
    bool special;
    bool in_place;
} norm_case;

static bool check_case(const kc_row *row, const norm_case *c)
{
    size_t bytes = c->n * sizeof(float);
    float *x = kc_alloc(bytes);
    float *w = c->weights ? kc_alloc(bytes) : NULL;
    float *b = c->second ? kc_alloc(bytes) : NULL;
    float *found = kc_alloc(bytes);
    float *expected = kc_alloc(bytes);
    kc_fill_sparse(x, c->n, c->special);
    if (w != NULL) {
        kc_fill_sparse(w, c->n, c->special);
    }
    if (b != NULL) {
        kc_fill_sparse(b, c->n, c->special);
    }
    memcpy(found, x, bytes);
    call_norm(row, row->fn, c->in_place ? found : x, c->n, w, b, found);
    call_norm(row, row->ref, x, c->n, w, b, expected);
    bool good = kc_same_f32(row, "y", found, expected, c->n) &&
                (c->special || near_formula(row, x, c->n, w, b, found));
    if (!good) {
        kc_differs(row, "with n=%zu weights=%d second=%d", c->n, c->weights, c->second);
    }
    return kc_release(row) && good;
}

static bool check(const kc_row *row)
{
    bool may_lack_weights = strcmp(row->op, "rmsnorm") == 0;
    bool good = true;
    for (size_t n = 1; n < 3000 && good; n += n < 70 ? 1 : 300 + kc_below(50)) {
        for (uint32_t form = 0; form < 16 && good; form++) {
            norm_case c = {n, !may_lack_weights || form % 2 != 0, form / 2 % 2 != 0,
                           form / 4 % 2 != 0, form / 8 != 0};
            good = check_case(row, &c);
        }
    }
    return good;
}

typedef struct bench_ctx {
    const kc_row *row;
    size_t n;
    float *x;
    float *w;
    float *y;
} bench_ctx;

static void call_bench(void *ctx)
{
    bench_ctx *b = ctx;
    call_norm(b->row, b->row->fn, b->x, b->n, b->w, b->w, b->y);
}

static void bench(const kc_row *row)
{
    bench_ctx b = {.row = row, .n = 2048};
    b.x = kc_bench_floats(b.n);
    b.w = kc_bench_floats(b.n);
    b.y = kc_bench_floats(b.n);
    kc_time_elements(row, "n=2048", call_bench, &b, (double)b.n);
    free(b.x);
    free(b.w);
    free(b.y);
}

const kc_checker kc_norm_checkers[] = {
    {"rmsnorm", check, bench},
    {"layernorm", check, bench},
    {NULL, NULL, NULL},
};
