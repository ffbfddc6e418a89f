/* The kernels of attention_simd.h for AVX-512. */
#include "kernels/attention/attention_simd.h"
