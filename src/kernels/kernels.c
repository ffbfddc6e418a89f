/* Fills the op table from the rows of kernels.inc: the reference first, then each variant that the
 * level allows, in ascending order, so that the last assignment is the best. */
#include "kernels/kernels.h"

#include <pthread.h>

void gn_kernels_for_level(gn_cpu_level level, gn_kernels *out)
{
    out->level = level;
#define GN_KERNEL_OP(op, CLASS) out->op = gn_k_##op##_ref;
#define GN_KERNEL(op, variant, needs)                                                              \
    if (level >= (needs)) {                                                                        \
        out->op = gn_k_##op##_##variant;                                                           \
    }
#include "kernels/kernels.inc"
#undef GN_KERNEL_OP
#undef GN_KERNEL
}

static gn_kernels active;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void fill_active(void)
{
    gn_kernels_for_level(gn_cpu_active(), &active);
}

const gn_kernels *gn_kernels_get(void)
{
    (void)pthread_once(&once, fill_active);
    return &active;
}
