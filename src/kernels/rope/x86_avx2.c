/* The kernels of rope_simd.h for AVX2. */
#include "kernels/rope/rope_simd.h"
