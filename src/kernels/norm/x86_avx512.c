/* The kernels of norm_simd.h for AVX-512. */
#include "kernels/norm/norm_simd.h"
