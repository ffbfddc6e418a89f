/* SplitMix64 (Steele, Lea, Flood 2014): 64 bits of state, equal output everywhere. */
#ifndef GN_BASE_RNG_H
#define GN_BASE_RNG_H

#include "base/attr.h"

#include <stdint.h>

typedef struct gn_rng {
    uint64_t state;
} gn_rng;

GN_INLINE uint64_t gn_rng_next(gn_rng *rng)
{
    uint64_t z = (rng->state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* Uniform in [0, 1) with 53 bits. */
GN_INLINE double gn_rng_uniform(gn_rng *rng)
{
    return (double)(gn_rng_next(rng) >> 11) * 0x1p-53;
}

#endif
