/* Arithmetic on sizes that come from a file or a peer. Each returns false, and leaves *out alone,
 * where the result does not fit. */
#ifndef GN_BASE_CHECKED_H
#define GN_BASE_CHECKED_H

#include "base/attr.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

GN_INLINE bool gn_checked_add(size_t a, size_t b, size_t *out)
{
    if (a > SIZE_MAX - b) {
        return false;
    }
    *out = a + b;
    return true;
}

GN_INLINE bool gn_checked_mul(size_t a, size_t b, size_t *out)
{
    if (b != 0 && a > SIZE_MAX / b) {
        return false;
    }
    *out = a * b;
    return true;
}

/* Round up to a multiple of `align`, a power of two. */
GN_INLINE bool gn_checked_align(size_t a, size_t align, size_t *out)
{
    size_t sum;
    if (!gn_checked_add(a, align - 1, &sum)) {
        return false;
    }
    *out = sum & ~(align - 1);
    return true;
}

/* Is [offset, offset + len) inside [0, total)? */
GN_INLINE bool gn_checked_range(size_t offset, size_t len, size_t total)
{
    return offset <= total && len <= total - offset;
}

#endif
