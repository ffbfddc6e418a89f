/* The kernels of norm_simd.h for AVX2. */
#include "kernels/norm/norm_simd.h"
