/* kernels/quant with NEON. */
#define VARIANT arm_neon
#include "kernels/quant/dequant_simd.h"
#include "kernels/quant/panel_simd.h"
#include "kernels/quant/quantize_simd.h"
