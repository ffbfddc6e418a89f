/* The kernels of attention_simd.h for AVX2. */
#include "kernels/attention/attention_simd.h"
