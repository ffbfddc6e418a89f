/* Activation rows in the form that integer products read (kernels/dot): signed bytes with a scale per 32
 * and sums per 16, in one or two planes a row.
 *
 * A row's first plane is its quantized form. A row that loses too much by it, judged by its own content,
 * gets a second plane that holds what the first one left over, so its error falls from 2^-8 to 2^-16 of
 * each block's largest value. Planes are rows of the same kernels: [0, m) are the first planes,
 * [m, m + n_second) the second ones in no fixed order, plane m + i that of row second_of[i].
 *
 * Of many rows, pieces of GN_ACTS_PIECE elements lie together, piece by piece, so that the part of all rows
 * that a piece of weights meets is one run of memory whose rows are close; few rows lie whole. */
#ifndef GN_TENSOR_ACTS_H
#define GN_TENSOR_ACTS_H

#include "base/status.h"
#include "kernels/kernels.h"

#include <stdatomic.h>
#include <stdbool.h>

#define GN_ACTS_BLOCK    32u  /* elements with one scale */
#define GN_ACTS_PIECE    512u /* elements of a row that lie together where there are many rows */
#define GN_ACTS_FEW_ROWS 16u  /* up to so many lie whole */

typedef struct gn_q8_acts {
    size_t max_m;
    size_t max_k;
    size_t m;
    size_t k;
    size_t piece;               /* elements of a row that lie together: k or GN_ACTS_PIECE */
    _Atomic(uint32_t) n_second; /* second planes */
    uint32_t *second_of;        /* [max_m] */
    int8_t *q;                  /* [2 max_m][max_k] */
    float *scale;               /* [2 max_m][max_k / 32] */
    int32_t *sum;               /* [2 max_m][max_k / 16] */
} gn_q8_acts;

/* Room for max_m rows of up to max_k elements, all zero afterwards where it fails. */
GN_MUST_USE gn_status gn_q8_acts_init(gn_q8_acts *acts, size_t max_m, size_t max_k);
void gn_q8_acts_fini(gn_q8_acts *acts);

/* Start over with m (1 .. max_m) rows of k elements, a multiple of 32 up to max_k. */
void gn_q8_acts_begin(gn_q8_acts *acts, size_t m, size_t k);

/* Quantize x [k] as row i. Every row once after gn_q8_acts_begin(), by any thread, several at a time.
 * two_planes: a second plane whatever the row holds. rest: [k] floats of scratch memory. */
void gn_q8_acts_put(gn_q8_acts *acts, const gn_kernels *kernels, size_t i, const float *x,
                    bool two_planes, float *rest);

/* All planes, once every row is there. */
static inline size_t gn_q8_acts_planes(const gn_q8_acts *acts)
{
    return acts->m + atomic_load_explicit(&acts->n_second, memory_order_relaxed);
}

/* Where element `first`, a multiple of 32, of a plane lies; its piece goes on from there. */
typedef struct gn_q8_part {
    const int8_t *q;
    const float *scale;
    const int32_t *sum;
    size_t ld; /* from a plane to the next: ld codes, ld / 32 scales, ld / 16 sums */
} gn_q8_part;

gn_q8_part gn_q8_acts_part(const gn_q8_acts *acts, size_t plane, size_t first);

#endif
