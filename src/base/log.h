/* Lines for whoever set gn_set_log(): things worth knowing that are no failure. */
#ifndef GN_BASE_LOG_H
#define GN_BASE_LOG_H

#include "base/attr.h"
#include "ganglion/status.h"

/* One line, cut at 1,000 bytes, control characters as \xNN. Any thread; never allocates. */
void gn_base_log(const char *fmt, ...) GN_PRINTF(1, 2) GN_COLD;

#endif
