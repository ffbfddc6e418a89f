/* Checks of kernels/dot: the products of panels with 8-bit rows. */
#include "kerncheck.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct dot_case {
    size_t group;
    size_t k;
    size_t lda;
    size_t m;
    int zero;
    bool has_min;
    bool extreme; /* only the largest codes and activations: sums as large as they can get */
    bool resume;
    bool special; /* infinities, NaNs and denormals among scales */
} dot_case;

typedef struct dot_args {
    uint8_t *q;
    float *scale;
    float *min;
    int8_t *a;
    float *a_scale;
    int32_t *a_sum;
} dot_args;

/* Elements of the m rows, from the first of the first to the last of the last. */
static size_t n_activations(const dot_case *c)
{
    return c->m == 0 ? 0 : (c->m - 1) * c->lda + c->k;
}

static void fill(const dot_case *c, dot_args *d)
{
    uint32_t n_codes = c->zero == 0 ? 32 : 2 * (uint32_t)c->zero;
    for (size_t i = 0; i < c->k * 16; i++) {
        uint32_t code = kc_below(n_codes);
        d->q[i] = (uint8_t)(c->extreme ? code % 2 * (n_codes - 1) : code);
    }
    for (size_t i = 0; i < n_activations(c); i++) {
        int code = (int)kc_below(255) - 127;
        d->a[i] = (int8_t)(c->extreme ? (i / 64 % 2 != 0 ? -127 : 127) : code);
    }
    for (size_t i = 0; i < n_activations(c) / 16; i++) {
        d->a_sum[i] = 0;
        for (size_t j = 0; j < 16; j++) {
            d->a_sum[i] += d->a[i * 16 + j];
        }
    }
    void (*fill_f32)(float *, size_t) = c->special ? kc_fill_special : kc_fill_uniform;
    fill_f32(d->scale, c->k / c->group * 16);
    fill_f32(d->a_scale, n_activations(c) / 32);
    if (d->min != NULL) {
        fill_f32(d->min, c->k / c->group * 16);
    }
}

/* Elements [first, first + n) of the rows of the case. */
static void run(kc_fn *fn, const dot_case *c, const dot_args *d, size_t first, size_t n, float *y,
                size_t ldy, int resume)
{
    const size_t scales = first / c->group * 16;
    ((gn_k_dot_panel_fn *)fn)(
        n, d->q + first * 16, d->scale + scales, d->min != NULL ? d->min + scales : NULL, c->zero,
        c->m, d->a + first, c->lda, d->a_scale + first / 32, d->a_sum + first / 16, y, ldy, resume);
}

static bool check_case(const kc_row *row, const dot_case *c)
{
    size_t n_scales = c->k / c->group * 16;
    size_t ldy = 16 + kc_below(5);
    size_t n_y = c->m == 0 ? 0 : (c->m - 1) * ldy + 16;
    dot_args d = {.q = kc_alloc(c->k * 16),
                  .scale = kc_alloc(n_scales * sizeof(float)),
                  .min = c->has_min ? kc_alloc(n_scales * sizeof(float)) : NULL,
                  .a = kc_alloc(n_activations(c)),
                  .a_scale = kc_alloc(n_activations(c) / 8),
                  .a_sum = kc_alloc(n_activations(c) / 4)};
    fill(c, &d);
    float *found = kc_alloc(n_y * sizeof *found);
    float *pieces = kc_alloc(n_y * sizeof *pieces);
    float *expected = kc_alloc(n_y * sizeof *expected);
    kc_fill_uniform(expected, n_y);
    memcpy(found, expected, n_y * sizeof *found);
    memcpy(pieces, expected, n_y * sizeof *pieces);
    run(row->ref, c, &d, 0, c->k, expected, ldy, c->resume);
    run(row->fn, c, &d, 0, c->k, found, ldy, c->resume);
    size_t cut = kc_below((uint32_t)(c->k / 32)) * 32;
    run(row->fn, c, &d, 0, cut, pieces, ldy, c->resume);
    run(row->fn, c, &d, cut, c->k - cut, pieces, ldy, 1);
    bool good = (kc_same_f32(row, "y", found, expected, n_y) &&
                 kc_same_f32(row, "y in pieces", pieces, expected, n_y)) ||
                kc_differs(row, "with k=%zu m=%zu lda=%zu ldy=%zu zero=%d min=%d extreme=%d", c->k,
                           c->m, c->lda, ldy, c->zero, c->has_min, c->extreme);
    return kc_release(row) && good;
}

static size_t group_of(const kc_row *row)
{
    return strcmp(row->op, "dot_panel_g16") == 0 ? 16 : 32;
}

static bool check(const kc_row *row)
{
    static const int zeros[] = {0, 4, 8, 16, 32, 128};
    bool good = true;
    for (size_t z = 0; z < GN_COUNTOF(zeros) && good; z++) {
        for (size_t m = 0; m <= 19 && good; m++) {
            for (int shape = 0; shape < 4 && good; shape++) {
                dot_case c = {.group = group_of(row), .k = 32 * (1 + kc_below(12)), .m = m};
                c.lda = c.k + 32 * kc_below(3);
                c.resume = kc_below(2) != 0;
                c.zero = zeros[z];
                c.has_min = c.zero == 0 && kc_below(4) != 0;
                c.extreme = shape % 2 != 0;
                c.special = shape / 2 != 0;
                good = check_case(row, &c);
            }
        }
    }
    return good;
}

typedef struct bench_ctx {
    gn_k_dot_panel_fn *fn;
    dot_case c;
    dot_args d;
    float *y;
} bench_ctx;

static void call_dot(void *ctx)
{
    bench_ctx *b = ctx;
    run((kc_fn *)b->fn, &b->c, &b->d, 0, b->c.k, b->y, 16, 0);
}

static void bench(const kc_row *row)
{
    static const size_t ms[] = {1, 2, 4, 8, 64};
    static const int zeros32[] = {0, 8, 128};
    static const int zeros16[] = {0, 32, 4};
    const int *zeros = group_of(row) == 16 ? zeros16 : zeros32;
    for (size_t z = 0; z < 3; z++) {
        for (size_t i = 0; i < GN_COUNTOF(ms); i++) {
            bench_ctx b = {.fn = (gn_k_dot_panel_fn *)row->fn};
            b.c = (dot_case){
                .group = group_of(row), .k = 1536, .lda = 1536, .m = ms[i], .zero = zeros[z]};
            b.c.has_min = b.c.zero == 0;
            size_t n_scales = b.c.k / b.c.group * 16;
            b.d =
                (dot_args){.q = aligned_alloc(64, b.c.k * 16),
                           .scale = aligned_alloc(64, n_scales * sizeof(float)),
                           .min = b.c.has_min ? aligned_alloc(64, n_scales * sizeof(float)) : NULL,
                           .a = aligned_alloc(64, b.c.m * b.c.k),
                           .a_scale = aligned_alloc(64, b.c.m * b.c.k / 8),
                           .a_sum = aligned_alloc(64, b.c.m * b.c.k / 4)};
            b.y = malloc(b.c.m * 16 * sizeof *b.y);
            fill(&b.c, &b.d);
            char label[32];
            (void)snprintf(label, sizeof label, "zero=%d m=%zu", b.c.zero, b.c.m);
            kc_time(row, label, call_dot, &b, (double)b.c.k * 16, (double)(b.c.k * 16 * b.c.m));
            free(b.d.q);
            free(b.d.scale);
            free(b.d.min);
            free(b.d.a);
            free(b.d.a_scale);
            free(b.d.a_sum);
            free(b.y);
        }
    }
}

const kc_checker kc_dot_checkers[] = {
    {"dot_panel_g32", check, bench},
    {"dot_panel_g16", check, bench},
    {NULL, NULL, NULL},
};
