/* kernels/quant with AVX-512. */
#define VARIANT x86_avx512
#include "kernels/quant/dequant_simd.h"
#include "kernels/quant/panel_simd.h"
#include "kernels/quant/quantize_simd.h"
