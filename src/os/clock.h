/* Time. */
#ifndef GN_OS_CLOCK_H
#define GN_OS_CLOCK_H

#include <stdint.h>

/* Monotonic nanoseconds since an arbitrary start. */
uint64_t gn_os_now_ns(void);

#endif
