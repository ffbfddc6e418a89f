/* Matrix products of activation rows with mapped weights, split over the workers.
 *
 * Every row's result depends on that row and the weight alone: not on the number of rows, the number of
 * workers, or which worker ran it. Two forms of activations:
 *
 * int8   per block of 32 values an int8 form with an f32 scale; integer dot products with the weight's own
 *        quants (kernels/dot). A row that would lose too much, judged by its own content, gets a second int8
 *        plane that holds what the first one left over, so its error falls from 2^-8 to 2^-16 of each
 *        block's largest value. The plane is one more row for the same kernels; the two results are added.
 * f32    weights de-quantized row by row, f32 multiply-adds (kernels/vec). For unquantized weights always,
 *        for all weights in exact mode. */
#ifndef GN_TENSOR_COMPUTE_H
#define GN_TENSOR_COMPUTE_H

#include "base/status.h"
#include "kernels/kernels.h"
#include "os/pool.h"
#include "tensor/view.h"

#include <stdbool.h>

typedef struct gn_compute gn_compute;

/* pool: borrowed, may be NULL. max_k: longest row of a weight; max_m: most activation rows.
 * exact: f32 activations for every weight. */
GN_MUST_USE gn_status gn_compute_create(gn_os_pool *pool, size_t max_k, size_t max_m, bool exact,
                                        gn_compute **out);
void gn_compute_destroy(gn_compute *compute);

gn_os_pool *gn_compute_pool(const gn_compute *compute);
const gn_kernels *gn_compute_kernels(const gn_compute *compute);
bool gn_compute_is_exact(const gn_compute *compute);

/* Activation rows made ready for products. The quantized form
 * lives inside the gn_compute while a product runs. */
typedef struct gn_acts {
    const float *x; /* [m, k], rows ldx floats apart; borrowed */
    size_t ldx;
    size_t m;
    size_t k;
    bool two_planes; /* int8: every row gets a second plane, whatever it holds */
} gn_acts;

/* One product y[i*ldy + r] = Σ_j w[r][j]·x[i][j]; w is [n_out, k] of a computed type. */
typedef struct gn_matmul {
    const gn_view *w;
    float *y; /* [m, n_out] */
    size_t ldy;
} gn_matmul;

/* Run all products over the same activations in one parallel loop. acts->k equals each weight's row length.
 * Blocks until done. */
void gn_compute_matmul(gn_compute *compute, const gn_acts *acts, const gn_matmul *jobs,
                       size_t n_jobs);

/* One row of a computed type as f32: out [row length]. Rows of all outer dimensions count on. */
void gn_compute_dequant(const gn_view *w, size_t row, float *out);

/* May `dtype` be used as a weight? */
bool gn_compute_supports(gn_dtype dtype);

#endif
