/* The kernels of rope_simd.h for NEON. */
#include "kernels/rope/rope_simd.h"
