/* The kernels of rope_simd.h for AVX-512. */
#include "kernels/rope/rope_simd.h"
