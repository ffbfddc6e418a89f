#define VARIANT x86_vnni
#include "kernels/packed/lanes_vnni.h"

#include "kernels/packed/packed_simd.h"
