#define VARIANT arm_neon
#include "kernels/packed/lanes_neon.h"

#include "kernels/packed/packed_simd.h"
