#define VARIANT x86_avx2
#include "kernels/packed/lanes_avx2.h"

#include "kernels/packed/packed_simd.h"
