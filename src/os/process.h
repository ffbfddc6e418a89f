/* Other processes, and this one as the system sees it. */
#ifndef GN_OS_PROCESS_H
#define GN_OS_PROCESS_H

#include "base/status.h"

#include <stdint.h>

/* Start argv[0] (a path) with the arguments argv, NULL at the end, its standard input from /dev/null and its
 * standard error as ours. *ns is the time from before the start to the first byte on its standard output, or
 * to its close where there is none. Reads what follows and waits for the program's end. GN_E_UNAVAILABLE:
 * it can't be started, or ended with another code than 0. */
GN_MUST_USE gn_status gn_os_first_output(const char *const *argv, uint64_t *ns);

/* Path of the program that runs, for starting it again. */
#define GN_OS_SELF "/proc/self/exe"

/* Memory of this process now, in bytes; zeros where the system does not say. */
typedef struct gn_os_usage {
    uint64_t private_bytes; /* resident, of no file */
    uint64_t shared_bytes;  /* resident pages of mapped files, which processes share */
    uint64_t peak_bytes;    /* most that was resident, both kinds together */
} gn_os_usage;

gn_os_usage gn_os_memory_usage(void);

/* The processor's name as its maker gives it, "" where unknown. */
#define GN_OS_CPU_NAME 96
const char *gn_os_cpu_name(char out[GN_OS_CPU_NAME]);

#endif
