/* Checks of kernels/quant: floats and panels of every format, quantization of activations. */
#include "kerncheck.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct format {
    const char *type;
    size_t len;
    size_t bytes;
    size_t group;
    int zero;
    bool has_min;
} format;

static const format formats[] = {
#define FORMAT_ROW(type, len, bytes, group, zero, has_min)                                         \
    {#type, len, bytes, group, zero, (has_min) != 0},
    GN_PANEL_LIST(FORMAT_ROW)
#undef FORMAT_ROW
        {"f32", 1, 4, 1, 0, false},
    {"f16", 1, 2, 1, 0, false},
    {"bf16", 1, 2, 1, 0, false},
};

/* The format that the op's name ends in. */
static const format *format_of(const kc_row *row)
{
    const char *type = strchr(row->op, '_') + 1;
    for (size_t i = 0; i < GN_COUNTOF(formats); i++) {
        if (strcmp(type, formats[i].type) == 0) {
            return &formats[i];
        }
    }
    kc_differs(row, "names no known format");
    exit(2);
}

/* Random bytes are valid blocks of every format; their factors run over all of half precision. */
static bool check_dequant(const kc_row *row)
{
    const format *f = format_of(row);
    gn_k_dequant_fn *ref = (gn_k_dequant_fn *)row->ref;
    gn_k_dequant_fn *fn = (gn_k_dequant_fn *)row->fn;
    bool good = true;
    for (size_t n = 0; n < 70 && good; n = n < 20 ? n + 1 : n + 17) {
        size_t k = n * f->len;
        uint8_t *in = kc_alloc(n * f->bytes);
        float *found = kc_alloc(k * sizeof *found);
        float *expected = kc_alloc(k * sizeof *expected);
        kc_fill_bytes(in, n * f->bytes);
        fn(in, k, found);
        ref(in, k, expected);
        good = kc_same_f32(row, "out", found, expected, k);
        good = kc_release(row) && good;
    }
    return good;
}

typedef struct panel_out {
    uint8_t *q;
    float *scale;
    float *min;
} panel_out;

static panel_out panel_alloc(const format *f, size_t k)
{
    panel_out p = {kc_alloc(k * 16), kc_alloc(k / f->group * 64), NULL};
    if (f->has_min) {
        p.min = kc_alloc(k / f->group * 64);
    }
    return p;
}

static gn_k_dequant_fn *dequant_ref(const format *f)
{
#define DEQUANT_ROW(t, len, bytes, group, zero, has_min)                                           \
    if (strcmp(f->type, #t) == 0) {                                                                \
        return gn_k_dequant_##t##_ref;                                                             \
    }
    GN_PANEL_LIST(DEQUANT_ROW)
#undef DEQUANT_ROW
    return NULL;
}

/* The panel stands for the same numbers as the rows do, and keeps the bounds that products rely on. */
static bool check_panel_meaning(const kc_row *row, const format *f, const panel_out *p,
                                const uint8_t *in, size_t row_bytes, size_t n_rows, size_t k)
{
    float *expected = malloc(k * sizeof *expected);
    float *found = malloc(k * sizeof *found);
    bool good = expected != NULL && found != NULL;
    for (size_t r = 0; r < 16 && good; r++) {
        memset(expected, 0, k * sizeof *expected);
        if (r < n_rows) {
            dequant_ref(f)(in + r * row_bytes, k, expected);
        }
        for (size_t j = 0; j < k; j++) {
            uint8_t q = p->q[(j / 4 * 16 + r) * 4 + j % 4];
            if (q >= (f->zero == 0 ? 32 : 2 * f->zero)) {
                good = kc_differs(row, "q[%zu] of row %zu: found %d", j, r, q);
            }
            size_t at = j / f->group * 16 + r;
            float product = p->scale[at] * (float)(q - f->zero);
            found[j] = f->has_min ? product + p->min[at] : product;
            found[j] = r < n_rows ? found[j] : product + 0.0f; /* -0 of an absent row */
        }
        good = kc_same_f32(row, "weight", found, expected, k) && good;
    }
    free(expected);
    free(found);
    return good;
}

static bool check_panel_case(const kc_row *row, const format *f, size_t n_blocks, size_t n_rows,
                             size_t gap)
{
    size_t k = n_blocks * f->len;
    size_t row_bytes = n_blocks * f->bytes + gap;
    size_t in_bytes = n_rows * row_bytes - gap;
    uint8_t *in = kc_alloc(in_bytes);
    kc_fill_bytes(in, in_bytes);
    panel_out found = panel_alloc(f, k);
    panel_out expected = panel_alloc(f, k);
    ((gn_k_panel_fn *)row->fn)(in, row_bytes, n_rows, k, in, found.q, found.scale, found.min);
    ((gn_k_panel_fn *)row->ref)(in, row_bytes, n_rows, k, NULL, expected.q, expected.scale,
                                expected.min);
    size_t n_scales = k / f->group * 16;
    bool good = kc_same_bytes(row, "q", found.q, expected.q, k * 16) &&
                kc_same_f32(row, "scale", found.scale, expected.scale, n_scales) &&
                (!f->has_min || kc_same_f32(row, "min", found.min, expected.min, n_scales)) &&
                check_panel_meaning(row, f, &found, in, row_bytes, n_rows, k);
    return kc_release(row) && good;
}

static bool check_panel(const kc_row *row)
{
    const format *f = format_of(row);
    bool good = true;
    for (size_t n_rows = 1; n_rows <= 16 && good; n_rows++) {
        good = check_panel_case(row, f, 1 + n_rows % 3, n_rows, n_rows % 5);
    }
    for (size_t n_blocks = 1; n_blocks <= 40 && good; n_blocks = n_blocks * 2 + 1) {
        good = check_panel_case(row, f, n_blocks, 16, n_blocks % 4) &&
               check_panel_case(row, f, n_blocks, 16, 0);
    }
    return good;
}

static bool check_quantize(const kc_row *row)
{
    gn_k_quantize_q8_fn *ref = (gn_k_quantize_q8_fn *)row->ref;
    gn_k_quantize_q8_fn *fn = (gn_k_quantize_q8_fn *)row->fn;
    static const float magnitudes[] = {1.0f, 1e-3f, 1e30f, 1e-30f, 1e-36f, 0.0f};
    bool good = true;
    for (size_t round = 0; round < 400 && good; round++) {
        size_t k = 32 * kc_below(9);
        float *x = kc_alloc(k * sizeof *x);
        if (round % 4 == 3) {
            kc_fill_special(x, k);
        } else {
            kc_fill_uniform(x, k);
        }
        for (size_t i = 0; i < k; i++) {
            if (round % 4 == 2) { /* many ties: halves of the step that a maximum of 127 gives */
                x[i] = i % 32 == 5 ? 127.0f : (float)((int)kc_below(509) - 254) * 0.5f;
            }
            x[i] *= magnitudes[round % GN_COUNTOF(magnitudes)];
        }
        int8_t *q = kc_alloc(k);
        int8_t *q_ref = kc_alloc(k);
        float *scale = kc_alloc(k / 8);
        float *scale_ref = kc_alloc(k / 8);
        int32_t *sum = kc_alloc(k / 4);
        int32_t *sum_ref = kc_alloc(k / 4);
        fn(x, k, q, scale, sum);
        ref(x, k, q_ref, scale_ref, sum_ref);
        good = kc_same_bytes(row, "q", q, q_ref, k) &&
               kc_same_f32(row, "scale", scale, scale_ref, k / 32) &&
               kc_same_bytes(row, "sum", sum, sum_ref, k / 4);
        for (size_t i = 0; i < k && good; i++) {
            good = q[i] != -128 || kc_differs(row, "q[%zu]: found -128", i);
        }
        good = kc_release(row) && good;
    }
    return good;
}

/* Timing. */
typedef struct bench_ctx {
    kc_fn *fn;
    uint8_t *rows;
    size_t row_bytes;
    size_t n_rows;
    size_t at;
    size_t k;
    panel_out out;
    const format *format;
    gn_k_dot_panel_fn *dot; /* NULL: panels alone */
} bench_ctx;

enum { BENCH_K = 1536, BENCH_PIECE = 512 };
static int8_t act[BENCH_K];
static float act_scale[BENCH_K / 32];
static int32_t act_sum[BENCH_K / 16];

/* A row of panels in pieces that stay in the first-level cache, as products take them. */
static void call_panel(void *ctx)
{
    bench_ctx *b = ctx;
    panel_out *out = &b->out;
    const uint8_t *rows = b->rows + b->at * b->row_bytes;
    const uint8_t *ahead = rows + 16 * b->row_bytes;
    size_t piece_bytes = BENCH_PIECE / b->format->len * b->format->bytes;
    float y[16];
    for (size_t first = 0; first < BENCH_K; first += BENCH_PIECE) {
        ((gn_k_panel_fn *)b->fn)(rows, b->row_bytes, 16, BENCH_PIECE, ahead, out->q, out->scale,
                                 out->min);
        if (b->dot != NULL) {
            b->dot(BENCH_PIECE, out->q, out->scale, b->format->has_min ? out->min : NULL,
                   b->format->zero, 1, act + first, BENCH_K, act_scale + first / 32,
                   act_sum + first / 16, y, 16, first != 0);
        }
        rows += piece_bytes;
        ahead += 16 * piece_bytes;
    }
    b->at = b->at + 32 <= b->n_rows ? b->at + 16 : 0;
}

static void bench_panel_at(const kc_row *row, const char *label, size_t total_bytes, bool dot)
{
    bench_ctx b = {.fn = row->fn, .k = BENCH_K, .format = format_of(row)};
    b.row_bytes = b.k / b.format->len * b.format->bytes;
    b.n_rows = total_bytes / b.row_bytes / 16 * 16;
    b.rows = malloc(b.n_rows * b.row_bytes);
    size_t scale_bytes = b.k / b.format->group * 64;
    b.out = (panel_out){malloc(b.k * 16), malloc(scale_bytes), malloc(scale_bytes)};
    if (dot) {
        gn_kernels kernels;
        gn_kernels_for_level(row->level, &kernels);
        b.dot = b.format->group == 16 ? kernels.dot_panel_g16 : kernels.dot_panel_g32;
    }
    if (b.rows != NULL && b.out.q != NULL && b.out.scale != NULL && b.out.min != NULL) {
        memset(b.rows, 0x35, b.n_rows * b.row_bytes);
        kc_time(row, label, call_panel, &b, (double)b.row_bytes * 16, 0);
    }
    free(b.rows);
    free(b.out.q);
    free(b.out.scale);
    free(b.out.min);
}

/* A matrix that stays in the caches, and one far larger, as decoding walks through it: panel after
 * panel, and with the product for one row of activations after each. */
static void bench_panel(const kc_row *row)
{
    bench_panel_at(row, "256 KiB", (size_t)256 << 10, false);
    bench_panel_at(row, "384 MiB", (size_t)384 << 20, false);
    bench_panel_at(row, "384 MiB and product", (size_t)384 << 20, true);
}

static void call_dequant(void *ctx)
{
    bench_ctx *b = ctx;
    ((gn_k_dequant_fn *)b->fn)(b->rows, b->k, b->out.scale);
}

static void bench_dequant(const kc_row *row)
{
    const format *f = format_of(row);
    bench_ctx b = {.fn = row->fn, .k = 4096};
    b.row_bytes = b.k / f->len * f->bytes;
    b.rows = calloc(1, b.row_bytes);
    b.out.scale = malloc(b.k * sizeof *b.out.scale);
    if (b.rows != NULL && b.out.scale != NULL) {
        kc_time(row, "k=4096", call_dequant, &b, (double)b.row_bytes, 0);
    }
    free(b.rows);
    free(b.out.scale);
}

static void call_quantize(void *ctx)
{
    bench_ctx *b = ctx;
    ((gn_k_quantize_q8_fn *)b->fn)((const float *)b->rows, b->k, (int8_t *)b->out.q, b->out.scale,
                                   (int32_t *)b->out.min);
}

static void bench_quantize(const kc_row *row)
{
    bench_ctx b = {.fn = row->fn, .k = 1536};
    b.rows = malloc(b.k * sizeof(float));
    b.out = (panel_out){malloc(b.k), malloc(b.k / 8), malloc(b.k / 4)};
    if (b.rows != NULL && b.out.q != NULL && b.out.scale != NULL && b.out.min != NULL) {
        kc_fill_uniform((float *)b.rows, b.k);
        kc_time(row, "k=1536", call_quantize, &b, (double)b.k * sizeof(float), 0);
    }
    free(b.rows);
    free(b.out.q);
    free(b.out.scale);
    free(b.out.min);
}

const kc_checker kc_quant_checkers[] = {
    {"dequant_*", check_dequant, bench_dequant},
    {"panel_*", check_panel, bench_panel},
    {"quantize_q8", check_quantize, bench_quantize},
    {NULL, NULL, NULL},
};
