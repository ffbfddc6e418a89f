/* The kernels of vec_simd.h for AVX-512. */
#include "kernels/vec/vec_simd.h"
