/* Checks of kernels/vec: the float matrix product, conversions, element-wise helpers. */
#include "kerncheck.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool check_matmul_case(const kc_row *row, size_t k, size_t n_rows, size_t m, bool special)
{
    size_t ldw = k + kc_below(4);
    size_t ldx = k + kc_below(4);
    size_t ldy = n_rows + kc_below(4);
    size_t n_w = kc_strided(n_rows, ldw, k);
    size_t n_x = kc_strided(m, ldx, k);
    size_t n_y = kc_strided(m, ldy, n_rows);
    float *w = kc_alloc(n_w * sizeof *w);
    float *x = kc_alloc(n_x * sizeof *x);
    float *found = kc_alloc(n_y * sizeof *found);
    float *expected = kc_alloc(n_y * sizeof *expected);
    kc_fill_sparse(w, n_w, special);
    kc_fill_sparse(x, n_x, special);
    ((gn_k_matmul_f32_fn *)row->fn)(k, w, n_rows, ldw, m, x, ldx, found, ldy);
    ((gn_k_matmul_f32_fn *)row->ref)(k, w, n_rows, ldw, m, x, ldx, expected, ldy);
    bool good = kc_same_f32(row, "y", found, expected, n_y) ||
                kc_differs(row, "with k=%zu n_rows=%zu m=%zu", k, n_rows, m);
    return kc_release(row) && good;
}

static bool check_matmul(const kc_row *row)
{
    bool good = true;
    for (size_t k = 0; k <= 66 && good; k += k < 34 ? 1 : 8) {
        for (size_t m = 0; m <= 9 && good; m++) {
            good = check_matmul_case(row, k, kc_below(36), m, (k + m) % 4 == 0);
        }
    }
    for (size_t n_rows = 0; n_rows <= 34 && good; n_rows++) {
        good = check_matmul_case(row, 1 + kc_below(200), n_rows, 1 + kc_below(9), false);
    }
    /* More weights than the second-level cache is asked to hold. */
    return good && check_matmul_case(row, 1000, 250, 5, false) &&
           check_matmul_case(row, 7000, 40, 3, false);
}

/* Every half, with every length near it. */
static bool check_widen(const kc_row *row)
{
    typedef void widen_fn(const uint16_t *x, size_t n, float *y);
    bool good = true;
    size_t next = 0;
    for (size_t n = 0; next < 65536 && good; n = (n + 1) % 67) {
        uint16_t *x = kc_alloc(n * sizeof *x);
        float *found = kc_alloc(n * sizeof *found);
        float *expected = kc_alloc(n * sizeof *expected);
        for (size_t i = 0; i < n; i++) {
            x[i] = (uint16_t)next++;
        }
        ((widen_fn *)row->fn)(x, n, found);
        ((widen_fn *)row->ref)(x, n, expected);
        good = kc_same_bytes(row, "y", found, expected, n * sizeof *found);
        good = kc_release(row) && good;
    }
    return good;
}

/* Any bits, and all values that lie on, or one unit beside, a half or the middle of two. */
static float f16_candidate(size_t i)
{
    uint32_t bits = kc_u32();
    if (i % 2 == 0) {
        float base;
        uint16_t half = (uint16_t)kc_u32();
        gn_k_f16_to_f32_ref(&half, 1, &base);
        memcpy(&bits, &base, sizeof bits);
        bits += (kc_below(2) << 12) + kc_below(3) - 1;
    }
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static bool check_narrow(const kc_row *row)
{
    bool good = true;
    for (size_t round = 0; round < 4000 && good; round++) {
        size_t n = round % 67;
        float *x = kc_alloc(n * sizeof *x);
        uint16_t *found = kc_alloc(n * sizeof *found);
        uint16_t *expected = kc_alloc(n * sizeof *expected);
        for (size_t i = 0; i < n; i++) {
            x[i] = f16_candidate(i);
        }
        ((gn_k_f32_to_f16_fn *)row->fn)(x, n, found);
        ((gn_k_f32_to_f16_fn *)row->ref)(x, n, expected);
        good = kc_same_bytes(row, "y", found, expected, n * sizeof *found);
        good = kc_release(row) && good;
    }
    return good;
}

static void call_by_name(const kc_row *row, kc_fn *fn, float *y, const float *x, size_t n, float a)
{
    if (strcmp(row->op, "scale") == 0) {
        ((gn_k_scale_fn *)fn)(y, n, a);
    } else if (strcmp(row->op, "axpy") == 0) {
        ((gn_k_axpy_fn *)fn)(y, x, n, a);
    } else {
        ((gn_k_add_fn *)fn)(y, x, n); /* add and mul have one type */
    }
}

static bool check_elementwise(const kc_row *row)
{
    bool good = true;
    for (size_t n = 0; n < 500 && good; n += n < 70 ? 1 : 97) {
        float *x = kc_alloc(n * sizeof *x);
        float *found = kc_alloc(n * sizeof *found);
        float *expected = kc_alloc(n * sizeof *expected);
        float a = kc_uniform();
        kc_fill_special(x, n);
        kc_fill_special(found, n);
        memcpy(expected, found, n * sizeof *found);
        call_by_name(row, row->fn, found, x, n, a);
        call_by_name(row, row->ref, expected, x, n, a);
        good = kc_same_f32(row, "y", found, expected, n);
        good = kc_release(row) && good;
    }
    return good;
}

static bool check_sum(const kc_row *row)
{
    bool good = true;
    for (size_t n = 0; n < 500 && good; n += n < 70 ? 1 : 97) {
        uint32_t *x = kc_alloc(n * sizeof *x);
        uint32_t *sums = kc_alloc(2 * sizeof *sums);
        for (size_t i = 0; i < n; i++) {
            x[i] = kc_u32();
        }
        ((gn_k_sum_u32_fn *)row->fn)(x, n, &sums[0]);
        ((gn_k_sum_u32_fn *)row->ref)(x, n, &sums[1]);
        good = kc_same_bytes(row, "sum", &sums[0], &sums[1], sizeof *sums);
        good = kc_release(row) && good;
    }
    return good;
}

typedef struct bench_ctx {
    const kc_row *row;
    size_t k;
    size_t n_rows;
    size_t m;
    float *w;
    float *x;
    float *y;
} bench_ctx;

static void call_matmul(void *ctx)
{
    bench_ctx *b = ctx;
    ((gn_k_matmul_f32_fn *)b->row->fn)(b->k, b->w, b->n_rows, b->k, b->m, b->x, b->k, b->y,
                                       b->n_rows);
}

static void bench_matmul(const kc_row *row)
{
    static const size_t ms[] = {1, 2, 4, 8, 64};
    for (size_t i = 0; i < GN_COUNTOF(ms); i++) {
        bench_ctx b = {.row = row, .k = 1536, .n_rows = 256, .m = ms[i]};
        b.w = kc_bench_floats(b.k * b.n_rows);
        b.x = kc_bench_floats(b.k * b.m);
        b.y = kc_bench_floats(b.n_rows * b.m);
        char label[32];
        (void)snprintf(label, sizeof label, "256 x 1536, m=%zu", b.m);
        kc_time(row, label, call_matmul, &b, (double)(b.k * b.n_rows * sizeof *b.w),
                (double)(b.k * b.n_rows * b.m));
        free(b.w);
        free(b.x);
        free(b.y);
    }
}

static void call_widen(void *ctx)
{
    bench_ctx *b = ctx;
    ((gn_k_f16_to_f32_fn *)b->row->fn)((const uint16_t *)(const void *)b->x, b->k, b->y);
}

static void call_narrow(void *ctx)
{
    bench_ctx *b = ctx;
    ((gn_k_f32_to_f16_fn *)b->row->fn)(b->x, b->k, (uint16_t *)(void *)b->y);
}

static void call_elementwise(void *ctx)
{
    bench_ctx *b = ctx;
    call_by_name(b->row, b->row->fn, b->y, b->x, b->k, 1.0f);
}

static void bench_line(const kc_row *row, void (*call)(void *ctx))
{
    bench_ctx b = {.row = row, .k = 2048};
    b.x = kc_bench_floats(b.k);
    b.y = kc_bench_floats(b.k);
    for (size_t i = 0; i < b.k; i++) {
        b.x[i] = 1.0f; /* so that a product repeated stays what it is */
    }
    kc_time_elements(row, "n=2048", call, &b, (double)b.k);
    free(b.x);
    free(b.y);
}

static void bench_widen(const kc_row *row)
{
    bench_line(row, call_widen);
}

static void bench_narrow(const kc_row *row)
{
    bench_line(row, call_narrow);
}

static void call_sum(void *ctx)
{
    bench_ctx *b = ctx;
    uint32_t *sum = (uint32_t *)(void *)b->y;
    ((gn_k_sum_u32_fn *)b->row->fn)((const uint32_t *)(const void *)b->x, b->k, sum);
}

static void bench_sum(const kc_row *row)
{
    bench_line(row, call_sum);
}

static void bench_elementwise(const kc_row *row)
{
    bench_line(row, call_elementwise);
}

const kc_checker kc_vec_checkers[] = {
    {"matmul_f32", check_matmul, bench_matmul},
    {"f16_to_f32", check_widen, bench_widen},
    {"bf16_to_f32", check_widen, bench_widen},
    {"f32_to_f16", check_narrow, bench_narrow},
    {"add", check_elementwise, bench_elementwise},
    {"mul", check_elementwise, bench_elementwise},
    {"scale", check_elementwise, bench_elementwise},
    {"axpy", check_elementwise, bench_elementwise},
    {"sum_u32", check_sum, bench_sum},
    {NULL, NULL, NULL},
};
