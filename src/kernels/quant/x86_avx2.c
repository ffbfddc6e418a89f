/* kernels/quant with AVX2. */
#define VARIANT x86_avx2
#include "kernels/quant/dequant_simd.h"
#include "kernels/quant/panel_simd.h"
#include "kernels/quant/quantize_simd.h"
