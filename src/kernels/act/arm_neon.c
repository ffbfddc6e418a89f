/* The kernels of act_simd.h for NEON. */
#include "kernels/act/act_simd.h"
