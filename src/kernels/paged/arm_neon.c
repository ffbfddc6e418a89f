/* The kernels of paged_simd.h for NEON. */
#include "kernels/paged/paged_simd.h"
