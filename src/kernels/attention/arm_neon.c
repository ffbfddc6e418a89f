/* The kernels of attention_simd.h for NEON. */
#include "kernels/attention/attention_simd.h"
