/* Checks of kernels/dot: the products of panels with 8-bit rows. */
#include "kerncheck.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct dot_case {
    size_t group;
    size_t k;
    size_t m;
    int zero;
    bool has_min;
    bool extreme; /* only the largest codes and activations: sums as large as they can get */
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

static void fill(const dot_case *c, dot_args *d)
{
    uint32_t n_codes = c->zero == 0 ? 32 : 2 * (uint32_t)c->zero;
    for (size_t i = 0; i < c->k * 16; i++) {
        uint32_t code = kc_below(n_codes);
        d->q[i] = (uint8_t)(c->extreme ? code % 2 * (n_codes - 1) : code);
    }
    for (size_t i = 0; i < c->m * c->k; i++) {
        int code = (int)kc_below(255) - 127;
        d->a[i] = (int8_t)(c->extreme ? (i / 64 % 2 != 0 ? -127 : 127) : code);
    }
    for (size_t i = 0; i < c->m * c->k / 16; i++) {
        d->a_sum[i] = 0;
        for (size_t j = 0; j < 16; j++) {
            d->a_sum[i] += d->a[i * 16 + j];
        }
    }
    void (*fill_f32)(float *, size_t) = c->special ? kc_fill_special : kc_fill_uniform;
    fill_f32(d->scale, c->k / c->group * 16);
    fill_f32(d->a_scale, c->m * c->k / 32);
    if (d->min != NULL) {
        fill_f32(d->min, c->k / c->group * 16);
    }
}

static bool check_case(const kc_row *row, const dot_case *c)
{
    size_t n_scales = c->k / c->group * 16;
    size_t ldy = 16 + kc_below(5);
    size_t n_y = c->m == 0 ? 0 : (c->m - 1) * ldy + 16;
    dot_args d = {.q = kc_alloc(c->k * 16),
                  .scale = kc_alloc(n_scales * sizeof(float)),
                  .min = c->has_min ? kc_alloc(n_scales * sizeof(float)) : NULL,
                  .a = kc_alloc(c->m * c->k),
                  .a_scale = kc_alloc(c->m * c->k / 8),
                  .a_sum = kc_alloc(c->m * c->k / 4)};
    fill(c, &d);
    float *found = kc_alloc(n_y * sizeof *found);
    float *expected = kc_alloc(n_y * sizeof *expected);
    ((gn_k_dot_panel_fn *)row->fn)(c->k, d.q, d.scale, d.min, c->zero, c->m, d.a, d.a_scale,
                                   d.a_sum, found, ldy);
    ((gn_k_dot_panel_fn *)row->ref)(c->k, d.q, d.scale, d.min, c->zero, c->m, d.a, d.a_scale,
                                    d.a_sum, expected, ldy);
    bool good = kc_same_f32(row, "y", found, expected, n_y) ||
                kc_differs(row, "with k=%zu m=%zu ldy=%zu zero=%d min=%d extreme=%d", c->k, c->m,
                           ldy, c->zero, c->has_min, c->extreme);
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
    b->fn(b->c.k, b->d.q, b->d.scale, b->d.min, b->c.zero, b->c.m, b->d.a, b->d.a_scale, b->d.a_sum,
          b->y, 16);
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
            b.c = (dot_case){.group = group_of(row), .k = 1536, .m = ms[i], .zero = zeros[z]};
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
