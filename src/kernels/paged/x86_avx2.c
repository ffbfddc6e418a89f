/* The kernels of paged_simd.h for AVX2. */
#include "kernels/paged/paged_simd.h"
