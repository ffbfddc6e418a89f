/* How fast this machine's memory can be read. */
#ifndef GN_TENSOR_BANDWIDTH_H
#define GN_TENSOR_BANDWIDTH_H

#include "base/status.h"

/* Bytes a second that `threads` threads (0: one for each processor) read together from a buffer larger than
 * the caches, the best of a few passes. Takes about a second and, while it runs, 1 GiB of memory or a
 * quarter of what is free. GN_E_NOMEM. */
GN_MUST_USE gn_status gn_tensor_read_bandwidth(int threads, double *bytes_s);

#endif
