/* Constants of the elementary functions (kernels/act/act.h), shared by the reference and the vector
 * code. The polynomials are minimax fits of our own (Remez exchange in 50 digits, the coefficients
 * rounded to binary32 one at a time and the rest refitted); errors are relative, in exact arithmetic. */
#ifndef GN_KERNELS_ACT_CONSTANTS_H
#define GN_KERNELS_ACT_CONSTANTS_H

/* exp(r) = 1 + r + r^2 (E0 + r E1 + ... + r^4 E4), |r| <= ln 2 / 2: 4.4e-9. */
#define EXP_E0     0x1p-1f
#define EXP_E1     0x1.555466p-3f
#define EXP_E2     0x1.555302p-5f
#define EXP_E3     0x1.1257ap-7f
#define EXP_E4     0x1.6fe43ep-10f
#define EXP_LOG2E  0x1.715476p+0f
#define EXP_LN2_HI 0x1.62e43p-1f
#define EXP_LN2_LO -0x1.05c61p-29f
/* Below LO the result is less than half the smallest denormal; above HI it is infinite. */
#define EXP_LO -104.0f
#define EXP_HI 89.0f

/* tanh(x) = x + x^3 (T0 + x^2 T1 + ... + x^8 T4), |x| < TANH_SMALL: 4.6e-9. */
#define TANH_SMALL 0.625f
#define TANH_T0    -0x1.555532p-2f
#define TANH_T1    0x1.1106f6p-3f
#define TANH_T2    -0x1.b835a4p-5f
#define TANH_T3    0x1.51f8cep-6f
#define TANH_T4    -0x1.750ce4p-8f

/* The normal distribution's upper tail, 0.5 erfc(a / sqrt 2) = exp(-a^2 / 2) t (P0 + t P1 + ... +
 * t^7 P7) with t = 1 / (1 + TAIL_SLOPE a), 0 <= a <= 14: 1.6e-7. */
#define TAIL_SLOPE 0x1.333334p-2f
#define TAIL_P0    0x1.ea006ap-4f
#define TAIL_P1    0x1.ee9bb6p-4f
#define TAIL_P2    0x1.993ee2p-4f
#define TAIL_P3    0x1.074b56p-3f
#define TAIL_P4    -0x1.b7c6ecp-5f
#define TAIL_P5    0x1.a69cb6p-3f
#define TAIL_P6    -0x1.41f3bap-3f
#define TAIL_P7    0x1.243f78p-5f

/* sqrt(2 / pi) and sqrt(2 / pi) * 0.044715, doubled: the argument of the sigmoid in gelu's tanh form. */
#define GELU_2C  0x1.988454p+0f
#define GELU_2C3 0x1.2444f2p-4f

#endif
