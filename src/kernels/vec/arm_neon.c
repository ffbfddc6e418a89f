/* The kernels of vec_simd.h for NEON. */
#include "kernels/vec/vec_simd.h"
