/* The packed panel layout of a weight: the same numbers as the file's blocks, in the order the kernels read
 * them. A panel holds 16 consecutive rows of one matrix, the last one padded with rows of zeros; panels lie
 * one behind the other, each a multiple of 64 bytes, so that a worker reads one linear stream. Within a
 * panel the codes of one step of k lie side by side for its 16 rows (docs/KERNELS.md has each type's
 * picture). Packing never changes a value: products from panels and from the file's blocks are equal to the
 * bit.
 *
 * A view of n dimensions counts its outer ones as separate matrices [shape[n-2], shape[n-1]], one behind
 * the other. */
#ifndef GN_TENSOR_PANELS_H
#define GN_TENSOR_PANELS_H

#include "tensor/view.h"

/* Goes up with every change of the layout; cache files of another layout are not used. */
#define GN_PANELS_LAYOUT 1u

/* Panels of all the view's matrices together, and the bytes of one. 0: this type or shape has no packed
 * form and is always read in place. */
size_t gn_panels_count(const gn_view *w);
size_t gn_panels_stride(const gn_view *w);

#define GN_PANELS_SCRATCH 6144u /* bytes that packing needs for itself */

/* Pack panels [first, first + n) of the view: out [n × stride], wholly written; scratch [GN_PANELS_SCRATCH]
 * means nothing afterwards. Both are 64-byte aligned. Any thread; never blocks, allocates nothing. */
void gn_panels_pack(const gn_view *w, size_t first, size_t n, void *scratch, void *out);

#endif
