/* The table of hot loops: one pointer per op, filled once with the best version for this machine.
 *
 * docs/KERNELS.md has the contract of every op in words; the family headers have it beside the types.
 * Kernels take raw pointers, counts and strides, never allocate, never fail, and never read or write
 * past the stated ends. Inputs and outputs do not overlap unless the op says so. */
#ifndef GN_KERNELS_KERNELS_H
#define GN_KERNELS_KERNELS_H

#include "cpu/features.h"
#include "kernels/act/act.h"
#include "kernels/attention/attention.h"
#include "kernels/dot/dot.h"
#include "kernels/norm/norm.h"
#include "kernels/packed/packed.h"
#include "kernels/paged/paged.h"
#include "kernels/quant/quant.h"
#include "kernels/rope/rope.h"
#include "kernels/vec/vec.h"

typedef struct gn_kernels {
    gn_cpu_level level;
#define GN_KERNEL_OP(op, CLASS) gn_k_##op##_fn *op;
#define GN_KERNEL(op, variant, level)
#include "kernels/kernels.inc"
#undef GN_KERNEL_OP
#undef GN_KERNEL
} gn_kernels;

/* The table for the level in force (gn_cpu_active()). Built on the first call; thread-safe. */
const gn_kernels *gn_kernels_get(void);

/* Fill `out` for a level that gn_cpu_has(): each op gets its highest version that needs no more. */
void gn_kernels_for_level(gn_cpu_level level, gn_kernels *out);

#endif
