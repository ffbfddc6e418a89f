/* kv_write: what is written into pages comes back through the reference kernels that attention reads with, within the
 * error that each type's bits allow, whatever the size of a head; nothing else in the page changes. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "model/net_impl.h"

enum { HEADS = 2, LAYERS = 2, MOST = 256 };

/* As much of a net as writing needs. */
typedef struct bench {
    gn_net net;
    gn_attn_scratch scratch;
    float head[MOST + 32];
    uint16_t half[MOST + 32];
    gn_kv_pool *pool;
    gn_kv_table table;
    gn_rng rng;
} bench;

static void begin(bench *b, gn_kv_type type, uint32_t head_dim)
{
    memset(b, 0, sizeof *b);
    gn_kv_shape shape = {.n_layer = LAYERS, .n_head_kv = HEADS, .head_dim = head_dim, .type = type};
    b->scratch = (gn_attn_scratch){.head = b->head, .half = b->half};
    b->net.hp.head_dim = head_dim;
    b->net.hp.n_head_kv = HEADS;
    b->net.k = gn_kernels_get();
    b->net.kv_type = type;
    b->net.rotated = type != GN_KV_F32 && type != GN_KV_F16;
    b->net.d_kv = gn_kv_padded_dim(&shape);
    b->net.attn = &b->scratch;
    b->rng.state = 17 + head_dim;
    assert_int_equal(gn_kv_pool_create(&shape, 1 << 24, &b->pool), GN_OK);
    gn_kv_table_init(&b->table, b->pool);
    assert_int_equal(gn_kv_table_reserve(&b->table, 2 * GN_KV_PAGE_TOK), GN_OK);
}

static void end(bench *b)
{
    gn_kv_table_fini(&b->table);
    gn_kv_pool_destroy(b->pool);
    assert_int_equal(gn_alloc_live(), 0);
}

static void store(bench *b, uint32_t pos, uint32_t layer, uint32_t value, const float *x)
{
    gn_row row = {.pos = pos, .table = &b->table};
    gn_net_store(&b->net, &row, layer, value, x, 0);
}

/* The elements of one head of all tokens of a page, as attention sees them: each by a query or a weight that is 1
 * there. out [GN_KV_PAGE_TOK][d_kv]. */
static void load_page(const bench *b, uint32_t page, uint32_t layer, uint32_t value, uint32_t head,
                      float *out)
{
    gn_kernels ref;
    gn_kernels_for_level(GN_CPU_REF, &ref);
    size_t d = b->net.d_kv;
    gn_kv_type type = b->net.kv_type;
    const void *block = gn_kv_block(b->pool, b->table.pages[page], layer, value, head);
    float weights[GN_KV_PAGE_TOK] = {0};
    if (value == 0) {
        gn_k_paged_scores_fn *scores = type == GN_KV_F32   ? ref.paged_scores_f32
                                       : type == GN_KV_F16 ? ref.paged_scores_f16
                                       : type == GN_KV_FP8 ? ref.paged_scores_fp8
                                                           : ref.paged_scores_q8;
        for (size_t j = 0; j < d; j++) {
            float q[MOST + 32] = {0};
            q[j] = 1.0f;
            scores(1, q, 1, d, block, weights, GN_KV_PAGE_TOK);
            for (size_t t = 0; t < GN_KV_PAGE_TOK; t++) {
                out[t * d + j] = weights[t];
            }
        }
        return;
    }
    gn_k_paged_accum_fn *accum = type == GN_KV_F32   ? ref.paged_accum_f32
                                 : type == GN_KV_F16 ? ref.paged_accum_f16
                                 : type == GN_KV_Q8  ? ref.paged_accum_q8
                                 : type == GN_KV_FP8 ? ref.paged_accum_fp8
                                                     : ref.paged_accum_q4;
    bool scaled = type == GN_KV_Q8 || type == GN_KV_FP8;
    const float *scales = (const float *)(const void *)((const char *)block + d * GN_KV_PAGE_TOK);
    memset(out, 0, GN_KV_PAGE_TOK * d * sizeof *out);
    for (uint32_t t = 0; t < GN_KV_PAGE_TOK; t++) {
        weights[t] = scaled ? scales[t] : 1.0f;
        accum(1, weights, GN_KV_PAGE_TOK, block, t, t + 1, d, out + t * d, d);
    }
}

/* The same of one token. */
static void load(const bench *b, uint32_t pos, uint32_t layer, uint32_t value, uint32_t head,
                 float *out)
{
    size_t d = b->net.d_kv;
    float *page = malloc(GN_KV_PAGE_TOK * d * sizeof *page);
    load_page(b, pos / GN_KV_PAGE_TOK, layer, value, head, page);
    memcpy(out, page + pos % GN_KV_PAGE_TOK * d, d * sizeof *out);
    free(page);
}

/* The Hadamard transform by its definition, in blocks of the largest powers of two that fit. */
static void rotate(const float *x, size_t d, double *out)
{
    while (d > 0) {
        size_t n = 1;
        while (n * 2 <= d) {
            n *= 2;
        }
        for (size_t i = 0; i < n; i++) {
            out[i] = 0.0;
            for (size_t j = 0; j < n; j++) {
                int odd = __builtin_popcountll(i & j) & 1;
                out[i] += (odd != 0 ? -1.0 : 1.0) * (double)x[j] / sqrt((double)n);
            }
        }
        x += n;
        out += n;
        d -= n;
    }
}

/* How far from x [d] what was stored for element j may be. */
static double bound(gn_kv_type type, uint32_t value, const double *x, size_t d, size_t j)
{
    size_t begin_ = type == GN_KV_Q4 && value != 0 ? j / 32 * 32 : 0;
    size_t end_ = type == GN_KV_Q4 && value != 0 ? begin_ + 32 : d;
    double most = 0.0;
    for (size_t i = begin_; i < end_ && i < d; i++) {
        most = fabs(x[i]) > most ? fabs(x[i]) : most;
    }
    double slack = 1e-6 * most; /* floats on the way */
    switch (type) {
    case GN_KV_F32: return 0.0;
    case GN_KV_F16: return fabs(x[j]) * 0x1p-11 + 0x1p-25;
    case GN_KV_FP8: return fmax(fabs(x[j]) * 0x1p-4, most / 448 * 0x1p-10) + slack;
    case GN_KV_Q4:
        if (value != 0) {
            return most / 15 * (1 + 0x1p-7) + slack; /* codes lie two scales apart */
        }
        break;
    case GN_KV_Q8: break;
    }
    return most / 127 / 2 + slack;
}

/* Heads with one large element, with a few, with none. */
static void fill(bench *b, float *x, size_t n, int kind)
{
    for (size_t i = 0; i < n; i++) {
        x[i] = (float)gn_rng_uniform(&b->rng) * 2.0f - 1.0f;
        if (kind == 1 && i % 37 == 5) {
            x[i] *= 300.0f;
        }
        if (kind == 2) {
            x[i] *= 1e-3f;
        }
    }
}

/* What was read of one head of one token [d_kv] against what was stored. */
static void check_head(const bench *b, uint32_t layer, uint32_t value, uint32_t h, const float *x,
                       const float *found)
{
    size_t d = b->net.hp.head_dim;
    double expected[MOST + 32] = {0};
    float head[MOST];
    for (size_t j = 0; j < d; j++) {
        bool offset = value == 0 && b->net.key_offsets != NULL;
        head[j] = x[j];
        head[j] -= offset ? b->net.key_offsets[((size_t)layer * HEADS + h) * d + j] : 0.0f;
        expected[j] = (double)head[j];
    }
    if (b->net.rotated) {
        rotate(head, d, expected);
    }
    for (size_t j = 0; j < b->net.d_kv; j++) {
        double most = bound(b->net.kv_type, value, expected, b->net.d_kv, j);
        if (!(fabs((double)found[j] - expected[j]) <= most)) {
            fail_msg("type %d, heads of %zu, value %u, head %u, element %zu: found %g, expected "
                     "%g within %g",
                     (int)b->net.kv_type, d, value, h, j, (double)found[j], expected[j], most);
        }
    }
}

static const uint32_t dims[] = {16, 64, 80, 96, 128, 256, 40};

static void check_all(gn_kv_type type, uint32_t head_dim, float *key_offsets)
{
    enum { N = 2 * GN_KV_PAGE_TOK };
    bench b;
    begin(&b, type, head_dim);
    b.net.key_offsets = key_offsets;
    size_t n = (size_t)HEADS * head_dim;
    float *x = malloc((size_t)N * LAYERS * 2 * n * sizeof *x);
    for (uint32_t pos = 0; pos < N; pos++) {
        for (uint32_t i = 0; i < LAYERS * 2; i++) {
            float *row = x + (pos * LAYERS * 2 + i) * n;
            fill(&b, row, n, (int)((pos + i) % 3));
            store(&b, pos, i / 2, i % 2, row);
        }
    }
    /* Afterwards, so that a write that spoils another token's place is seen. */
    float *page = malloc(GN_KV_PAGE_TOK * b.net.d_kv * sizeof *page);
    for (uint32_t i = 0; i < N / GN_KV_PAGE_TOK * LAYERS * 2 * HEADS; i++) {
        uint32_t h = i % HEADS;
        uint32_t place = i / HEADS % (LAYERS * 2);
        uint32_t first = i / HEADS / (LAYERS * 2) * GN_KV_PAGE_TOK;
        load_page(&b, first / GN_KV_PAGE_TOK, place / 2, place % 2, h, page);
        for (uint32_t t = 0; t < GN_KV_PAGE_TOK; t += 1 + t % 7) {
            check_head(&b, place / 2, place % 2, h,
                       x + ((first + t) * LAYERS * 2 + place) * n + h * head_dim,
                       page + t * b.net.d_kv);
        }
    }
    free(page);
    free(x);
    end(&b);
}

static void test_types(void **state)
{
    (void)state;
    for (int type = GN_KV_F16; type <= GN_KV_Q4; type++) {
        for (size_t i = 0; i < GN_COUNTOF(dims); i++) {
            check_all((gn_kv_type)type, dims[i], NULL);
        }
    }
}

static void test_offsets(void **state)
{
    (void)state;
    float offsets[LAYERS * HEADS * 64];
    for (size_t i = 0; i < GN_COUNTOF(offsets); i++) {
        offsets[i] = (float)(i % 11) - 5.0f;
    }
    check_all(GN_KV_Q8, 64, offsets);
    check_all(GN_KV_Q4, 64, offsets);
}

/* Zeros stay zeros, what is too small for a scale too; a NaN or an infinity leaves a trace. */
static void test_edges(void **state)
{
    (void)state;
    for (int type = GN_KV_F16; type <= GN_KV_Q4; type++) {
        bench b;
        begin(&b, (gn_kv_type)type, 64);
        for (uint32_t value = 0; value < 2; value++) {
            float x[HEADS * 64] = {0};
            float found[64];
            store(&b, 3, 1, value, x);
            load(&b, 3, 1, value, 1, found);
            for (size_t j = 0; j < 64; j++) {
                assert_true(fabsf(found[j]) <= 0x1p-100f);
            }
            for (size_t j = 0; j < 64; j++) {
                x[64 + j] = 0x1p-120f;
            }
            store(&b, 4, 1, value, x);
            load(&b, 4, 1, value, 1, found);
            for (size_t j = 0; j < 64; j++) {
                assert_true(fabsf(found[j]) <= 0x1p-100f);
            }
            static const float bad[] = {NAN, INFINITY, -INFINITY};
            for (size_t i = 0; i < GN_COUNTOF(bad); i++) {
                x[64 + 20] = bad[i];
                store(&b, 5, 1, value, x);
                load(&b, 5, 1, value, 1, found);
                float sum = 0.0f;
                for (size_t j = 0; j < 64; j++) {
                    sum += found[j] * 0.0f;
                }
                assert_true(isnan(sum));
            }
        }
        end(&b);
    }
}

/* A rotation is its own inverse and keeps lengths. */
static void test_rotation(void **state)
{
    (void)state;
    bench b = {.rng = {.state = 5}};
    for (size_t i = 0; i < GN_COUNTOF(dims); i++) {
        float x[MOST];
        float y[MOST];
        double expected[MOST];
        fill(&b, x, dims[i], 0);
        memcpy(y, x, dims[i] * sizeof *y);
        rotate(x, dims[i], expected);
        gn_net_rotate_head(y, dims[i]);
        for (size_t j = 0; j < dims[i]; j++) {
            assert_true(fabs((double)y[j] - expected[j]) < 1e-5);
        }
        gn_net_rotate_head(y, dims[i]);
        for (size_t j = 0; j < dims[i]; j++) {
            assert_true(fabsf(y[j] - x[j]) < 1e-5f);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_types), cmocka_unit_test(test_offsets),
                                       cmocka_unit_test(test_edges),
                                       cmocka_unit_test(test_rotation)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
