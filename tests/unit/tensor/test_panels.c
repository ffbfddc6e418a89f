/* Packed panels: products from them have the bits of products from the file's blocks, for every type, any
 * number of threads and rows, odd shapes. */
#include "base/alloc.h"
#include "tensor/compute.h"
#include "tensor/panels.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static uint64_t state = 7;

static uint32_t random_u32(void)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 33);
}

static float uniform(void)
{
    return (float)(int32_t)(random_u32() % 2001) / 1000.0f - 1.0f;
}

static const gn_dtype types[] = {
    GN_DTYPE_Q4_0,   GN_DTYPE_Q4_1,   GN_DTYPE_Q5_0,  GN_DTYPE_Q5_1, GN_DTYPE_Q8_0,
    GN_DTYPE_Q2_K,   GN_DTYPE_Q3_K,   GN_DTYPE_Q4_K,  GN_DTYPE_Q5_K, GN_DTYPE_Q6_K,
    GN_DTYPE_IQ4_NL, GN_DTYPE_IQ4_XS, GN_DTYPE_MXFP4,
};

/* Where a block's half-precision factors lie, ended by -1. */
static const int *factors_of(gn_dtype dtype)
{
    static const int first[] = {0, -1};
    static const int first_two[] = {0, 2, -1};
    static const int q2_k[] = {80, 82, -1};
    static const int q3_k[] = {108, -1};
    static const int q6_k[] = {208, -1};
    static const int none[] = {-1};
    switch (dtype) {
    case GN_DTYPE_Q4_1:
    case GN_DTYPE_Q5_1:
    case GN_DTYPE_Q4_K:
    case GN_DTYPE_Q5_K: return first_two;
    case GN_DTYPE_Q2_K: return q2_k;
    case GN_DTYPE_Q3_K: return q3_k;
    case GN_DTYPE_Q6_K: return q6_k;
    case GN_DTYPE_MXFP4: return none;
    default: return first;
    }
}

/* Random codes; factors between 2^-14 and 2^-9, so that sums stay finite. */
static void fill_blocks(gn_dtype dtype, uint8_t *data, size_t bytes)
{
    const gn_dtype_info *info = gn_dtype_find((uint32_t)dtype);
    for (size_t i = 0; i < bytes; i++) {
        data[i] = (uint8_t)random_u32();
    }
    for (uint8_t *block = data; block < data + bytes; block += info->block_bytes) {
        for (const int *at = factors_of(dtype); *at >= 0; at++) {
            block[*at + 1] = (uint8_t)(random_u32() % 20 | (random_u32() % 2) << 7);
        }
        if (dtype == GN_DTYPE_MXFP4) {
            block[0] =
                (uint8_t)(random_u32() % 16 == 0 ? random_u32() % 3 : 110 + random_u32() % 20);
        }
    }
}

static gn_view make_view(gn_dtype dtype, size_t rows, size_t k)
{
    const gn_dtype_info *info = gn_dtype_find((uint32_t)dtype);
    gn_view w = {.dtype = dtype,
                 .n_dims = 2,
                 .shape = {rows, k, 1, 1},
                 .row_bytes = k / info->block_len * info->block_bytes};
    w.bytes = rows * w.row_bytes;
    uint8_t *data = malloc(w.bytes);
    assert_non_null(data);
    fill_blocks(dtype, data, w.bytes);
    w.data = data;
    return w;
}

static void *pack(const gn_view *w)
{
    size_t n = gn_panels_count(w);
    size_t stride = gn_panels_stride(w);
    assert_true(stride != 0 && stride % 64 == 0);
    uint8_t *panels = aligned_alloc(64, n * stride);
    assert_non_null(panels);
    memset(panels, 0xa5, n * stride);
    _Alignas(64) uint8_t scratch[GN_PANELS_SCRATCH];
    for (size_t first = 0; first < n; first += 2) {
        gn_panels_pack(w, first, n - first < 2 ? n - first : 2, scratch, panels + first * stride);
    }
    return panels;
}

enum { MAX_M = 256, ROWS = 83 };

static void compare(gn_compute *c, const gn_view *w, const float *x, size_t k)
{
    static const size_t more[] = {64, 256};
    gn_view packed = *w;
    void *panels = pack(w);
    packed.panels = panels;
    float *expected = malloc(MAX_M * ROWS * sizeof *expected);
    float *found = malloc(MAX_M * ROWS * sizeof *found);
    assert_true(expected != NULL && found != NULL);
    for (size_t i = 1; i <= 19; i++) {
        size_t m = i <= 17 ? i : more[i - 18];
        for (int planes = 0; planes < 2; planes++) {
            gn_acts acts = {.x = x, .ldx = k, .m = m, .k = k, .two_planes = planes != 0};
            memset(found, 0xff, MAX_M * ROWS * sizeof *found);
            gn_compute_matmul(c, &acts, &(gn_matmul){w, expected, ROWS}, 1);
            gn_compute_matmul(c, &acts, &(gn_matmul){&packed, found, ROWS}, 1);
            assert_memory_equal(found, expected, m * ROWS * sizeof *found);
            assert_true(isfinite(found[0]));
        }
    }
    free(expected);
    free(found);
    free(panels);
}

static void products_equal(void **unused)
{
    (void)unused;
    for (int threads = 1; threads <= 3; threads++) {
        gn_os_pool *pool;
        assert_int_equal(gn_os_pool_create(threads, &pool), GN_OK);
        gn_compute *c;
        assert_int_equal(gn_compute_create(pool, 1280, MAX_M, false, &c), GN_OK);
        for (size_t t = 0; t < GN_COUNTOF(types); t++) {
            size_t len = gn_dtype_find((uint32_t)types[t])->block_len;
            static const size_t long_k[] = {1280, 256, 768};
            static const size_t odd_k[] = {896, 32, 544};
            size_t k = len == 256 ? long_k[threads - 1] : odd_k[threads - 1];
            gn_view w = make_view(types[t], ROWS, k);
            float *x = malloc(MAX_M * k * sizeof *x);
            assert_non_null(x);
            for (size_t i = 0; i < MAX_M * k; i++) {
                x[i] = uniform() * (random_u32() % 500 == 0 ? 40.0f : 1.0f);
            }
            compare(c, &w, x, k);
            free(x);
            free((void *)w.data);
        }
        gn_compute_destroy(c);
        gn_os_pool_destroy(pool);
    }
}

/* Halves are read in place, without a detour over floats; the bits are those of the floats they stand for. */
static void halves_in_place(void **unused)
{
    (void)unused;
    enum { K = 100, M = 9 };
    static uint16_t halves[ROWS * K];
    static float floats[ROWS * K];
    static float x[M * K];
    static float expected[M * ROWS];
    static float found[M * ROWS];
    for (size_t i = 0; i < ROWS * K; i++) {
        halves[i] = (uint16_t)(random_u32() & 0xbfff); /* below 2 */
    }
    for (size_t i = 0; i < M * K; i++) {
        x[i] = uniform();
    }
    gn_compute *c;
    assert_int_equal(gn_compute_create(NULL, K, M, false, &c), GN_OK);
    gn_view half = {.dtype = GN_DTYPE_F16,
                    .n_dims = 2,
                    .shape = {ROWS, K, 1, 1},
                    .data = halves,
                    .bytes = sizeof halves,
                    .row_bytes = K * sizeof *halves};
    for (size_t r = 0; r < ROWS; r++) {
        gn_compute_dequant(&half, r, floats + r * K);
    }
    gn_view whole = half;
    whole.dtype = GN_DTYPE_F32;
    whole.data = floats;
    whole.bytes = sizeof floats;
    whole.row_bytes = K * sizeof *floats;
    for (size_t m = 1; m <= M; m++) {
        gn_acts acts = {.x = x, .ldx = K, .m = m, .k = K};
        gn_compute_matmul(c, &acts, &(gn_matmul){&whole, expected, ROWS}, 1);
        gn_compute_matmul(c, &acts, &(gn_matmul){&half, found, ROWS}, 1);
        assert_memory_equal(found, expected, m * ROWS * sizeof *found);
    }
    gn_compute_destroy(c);
}

/* Outer dimensions are matrices one behind the other, each with a padded last panel of its own. */
static void outer_dimensions(void **unused)
{
    (void)unused;
    gn_view w = make_view(GN_DTYPE_Q4_K, 60, 512);
    gn_view stack = w;
    stack.n_dims = 4;
    memcpy(stack.shape, (uint64_t[]){1, 3, 20, 512}, sizeof stack.shape);
    assert_int_equal(gn_panels_count(&stack), 6);
    uint8_t *all = pack(&stack);
    size_t stride = gn_panels_stride(&stack);
    for (size_t e = 0; e < 3; e++) {
        gn_view one = w;
        one.shape[0] = 20;
        one.bytes = 20 * w.row_bytes;
        one.data = (const uint8_t *)w.data + e * one.bytes;
        uint8_t *panels = pack(&one);
        assert_memory_equal(panels, all + e * 2 * stride, 2 * stride);
        free(panels);
    }
    free(all);
    free((void *)w.data);
}

static void no_packed_form(void **unused)
{
    (void)unused;
    gn_view w = {.dtype = GN_DTYPE_F32, .n_dims = 2, .shape = {16, 64, 1, 1}, .row_bytes = 256};
    assert_int_equal(gn_panels_stride(&w), 0);
    assert_int_equal(gn_panels_count(&w), 0);
    w = (gn_view){.dtype = GN_DTYPE_Q8_0, .n_dims = 1, .shape = {64, 1, 1, 1}, .row_bytes = 68};
    assert_int_equal(gn_panels_stride(&w), 0);
    assert_int_equal(gn_panels_count(&w), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_equal),
        cmocka_unit_test(halves_in_place),
        cmocka_unit_test(outer_dimensions),
        cmocka_unit_test(no_packed_form),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
