/* The kernels of act_simd.h for AVX-512. */
#include "kernels/act/act_simd.h"
