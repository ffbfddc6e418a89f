/* The kernels of paged_simd.h for AVX-512. */
#include "kernels/paged/paged_simd.h"
