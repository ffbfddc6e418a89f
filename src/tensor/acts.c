/* Quantizing activation rows. Whether a row has a second plane is found where its first one is made, so
 * that rows stay independent jobs; a counter hands out the second planes, whose order is no one's concern. */
#include "tensor/acts.h"

#include "base/alloc.h"

#include <assert.h>
#include <string.h>

/* Would one int8 plane lose too much of this row? Rounding a block to steps of `scale` leaves an error of
 * scale²/12 a value on average; the sum is held against the row's own energy. Rows drawn from a normal
 * distribution lose about 3e-5 of it; rows with outliers, whose blocks have steps too coarse for their other
 * values, several times that. */
#define MAX_LOSS 1.3e-4f

gn_status gn_q8_acts_init(gn_q8_acts *acts, size_t max_m, size_t max_k)
{
    *acts = (gn_q8_acts){.max_m = max_m, .max_k = (max_k + 63) / 64 * 64};
    acts->second_of = gn_alloc_array(max_m, sizeof *acts->second_of);
    acts->q = gn_alloc_aligned(2 * max_m, acts->max_k);
    acts->scale = gn_alloc_aligned(2 * max_m, acts->max_k / GN_ACTS_BLOCK * sizeof *acts->scale);
    acts->sum = gn_alloc_aligned(2 * max_m, acts->max_k / 16 * sizeof *acts->sum);
    if (acts->second_of == NULL || acts->q == NULL || acts->scale == NULL || acts->sum == NULL) {
        gn_q8_acts_fini(acts);
        return gn_alloc_failed();
    }
    return GN_OK;
}

void gn_q8_acts_fini(gn_q8_acts *acts)
{
    if (acts == NULL) {
        return;
    }
    gn_free(acts->second_of);
    gn_free_aligned(acts->q);
    gn_free_aligned(acts->scale);
    gn_free_aligned(acts->sum);
    *acts = (gn_q8_acts){0};
}

void gn_q8_acts_begin(gn_q8_acts *acts, size_t m, size_t k)
{
    assert(m >= 1 && m <= acts->max_m && k % GN_ACTS_BLOCK == 0 && k <= acts->max_k);
    acts->m = m;
    acts->k = k;
    acts->piece = m > GN_ACTS_FEW_ROWS && k > GN_ACTS_PIECE ? GN_ACTS_PIECE : k;
    atomic_store_explicit(&acts->n_second, 0, memory_order_relaxed);
}

/* Elements of the piece that starts at `first`. */
static size_t piece_at(const gn_q8_acts *acts, size_t first)
{
    return acts->k - first < acts->piece ? acts->k - first : acts->piece;
}

gn_q8_part gn_q8_acts_part(const gn_q8_acts *acts, size_t plane, size_t first)
{
    size_t start = first / acts->piece * acts->piece;
    size_t ld = piece_at(acts, start);
    size_t at = start * 2 * acts->m + plane * ld + (first - start);
    return (gn_q8_part){acts->q + at, acts->scale + at / GN_ACTS_BLOCK, acts->sum + at / 16, ld};
}

/* Quantize x as a plane; returns the sum of its squared scales. */
static float put_plane(gn_q8_acts *acts, const gn_kernels *kernels, size_t plane, const float *x)
{
    float steps = 0.0f;
    for (size_t first = 0; first < acts->k; first += acts->piece) {
        size_t n = piece_at(acts, first);
        size_t at = first * 2 * acts->m + plane * n;
        float *scale = acts->scale + at / GN_ACTS_BLOCK;
        kernels->quantize_q8(x + first, n, acts->q + at, scale, acts->sum + at / 16);
        for (size_t b = 0; b < n / GN_ACTS_BLOCK; b++) {
            steps += scale[b] * scale[b];
        }
    }
    return steps;
}

/* What the plane leaves of x. */
static void find_rest(const gn_q8_acts *acts, size_t plane, const float *x, float *rest)
{
    for (size_t first = 0; first < acts->k; first += acts->piece) {
        gn_q8_part part = gn_q8_acts_part(acts, plane, first);
        for (size_t j = 0; j < part.ld; j++) {
            rest[first + j] = x[first + j] - part.scale[j / GN_ACTS_BLOCK] * (float)part.q[j];
        }
    }
}

void gn_q8_acts_put(gn_q8_acts *acts, const gn_kernels *kernels, size_t i, const float *x,
                    bool two_planes, float *rest)
{
    size_t k = acts->k;
    float steps = put_plane(acts, kernels, i, x);
    if (!two_planes) {
        float energy;
        kernels->matmul_f32(k, x, 1, k, 1, x, k, &energy, 1);
        if (!(steps * ((float)GN_ACTS_BLOCK / 12.0f) > MAX_LOSS * energy)) {
            return;
        }
    }
    uint32_t second = atomic_fetch_add_explicit(&acts->n_second, 1, memory_order_relaxed);
    acts->second_of[second] = (uint32_t)i;
    find_rest(acts, i, x, rest);
    (void)put_plane(acts, kernels, acts->m + second, rest);
}
