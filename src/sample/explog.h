/* exp and log from additions and multiplications alone, so that every machine gives the same bits: the C
 * library's differ in the last place between versions, and one such bit can change which token a running
 * sum picks. Both are within 2 ulp. Argument reduction as in W. Cody and W. Waite, "Software Manual for
 * the Elementary Functions" (1980), then a Taylor series. */
#ifndef GN_SAMPLE_EXPLOG_H
#define GN_SAMPLE_EXPLOG_H

#include "base/attr.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

/* ln 2 in two parts; the first has zeros in its low bits, so that a small integer times it is exact. */
#define GN_SAMPLE_LN2_HI 0x1.62e42feep-1
#define GN_SAMPLE_LN2_LO 0x1.a39ef35793c76p-33
#define GN_SAMPLE_LOG2_E 0x1.71547652b82fep+0

/* e^x. Arguments are held to [-700, 700]: beyond, the result no longer matters to a sum with a 1 in it.
 * Branch-free, so that loops over it vectorise. */
GN_INLINE double gn_sample_exp(double x)
{
    x = x < -700.0 ? -700.0 : x;
    x = x > 700.0 ? 700.0 : x;
    /* Adding 1.5 · 2^52 rounds to the nearest integer k and leaves k in the low bits. */
    double shifted = x * GN_SAMPLE_LOG2_E + 0x1.8p52;
    double k = shifted - 0x1.8p52;
    double r = (x - k * GN_SAMPLE_LN2_HI) - k * GN_SAMPLE_LN2_LO;
    double p = 1.0 / 6227020800.0;
    p = p * r + 1.0 / 479001600.0;
    p = p * r + 1.0 / 39916800.0;
    p = p * r + 1.0 / 3628800.0;
    p = p * r + 1.0 / 362880.0;
    p = p * r + 1.0 / 40320.0;
    p = p * r + 1.0 / 5040.0;
    p = p * r + 1.0 / 720.0;
    p = p * r + 1.0 / 120.0;
    p = p * r + 1.0 / 24.0;
    p = p * r + 1.0 / 6.0;
    p = p * r + 0.5;
    p = p * r + 1.0;
    p = p * r + 1.0;
    uint64_t bits;
    memcpy(&bits, &shifted, sizeof bits);
    bits = (bits + 1023u) << 52;
    double scale;
    memcpy(&scale, &bits, sizeof scale);
    return p * scale;
}

/* Natural logarithm of a normal, positive, finite x. */
GN_INLINE double gn_sample_log(double x)
{
    assert(x >= 0x1p-1022 && x <= 0x1.fffffffffffffp1023);
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    double e = (double)((int64_t)(bits >> 52) - 1023);
    bits = (bits & 0xfffffffffffffu) | 0x3ff0000000000000u;
    double m;
    memcpy(&m, &bits, sizeof m);
    if (m > 0x1.6a09e667f3bcdp+0) { /* √2: centres m on 1 */
        m *= 0.5;
        e += 1.0;
    }
    double s = (m - 1.0) / (m + 1.0); /* log m = 2 artanh s */
    double z = s * s;
    double p = 1.0 / 23.0;
    for (int i = 21; i >= 3; i -= 2) {
        p = p * z + 1.0 / i;
    }
    double tail = 2.0 * s * (z * p) + e * GN_SAMPLE_LN2_LO;
    return e * GN_SAMPLE_LN2_HI + (2.0 * s + tail);
}

#endif
