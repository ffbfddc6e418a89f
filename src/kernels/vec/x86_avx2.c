/* The kernels of vec_simd.h for AVX2. */
#include "kernels/vec/vec_simd.h"
