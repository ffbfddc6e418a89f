/* The kernels of act_simd.h for AVX2. */
#include "kernels/act/act_simd.h"
