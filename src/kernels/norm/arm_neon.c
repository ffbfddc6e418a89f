/* The kernels of norm_simd.h for NEON. */
#include "kernels/norm/norm_simd.h"
