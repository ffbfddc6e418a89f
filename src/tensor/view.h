/* A view of tensor data that someone else owns, usually a mapped model file. Rows are contiguous. */
#ifndef GN_TENSOR_VIEW_H
#define GN_TENSOR_VIEW_H

#include "tensor/dtype.h"

#include <stddef.h>
#include <stdint.h>

#define GN_VIEW_MAX_DIMS 4

typedef struct gn_view {
    gn_dtype dtype;
    int n_dims;                       /* 1 .. GN_VIEW_MAX_DIMS */
    uint64_t shape[GN_VIEW_MAX_DIMS]; /* row-major, outermost first; each ≥ 1; 1 beyond n_dims */
    const void *data;                 /* borrowed; aligned as the file is, maybe to 1 byte */
    size_t bytes;                     /* of all of data: never overflows, checked by the reader */
    size_t row_bytes;                 /* bytes of one innermost row, shape[n_dims - 1] elements */
    const void *panels; /* the same values as packed panels (tensor/panels.h), or NULL; borrowed */
} gn_view;

#endif
