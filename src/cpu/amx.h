/* Whether AMX can be used here. Not for other folders: they ask for the level. */
#ifndef GN_CPU_AMX_H
#define GN_CPU_AMX_H

#include <stdbool.h>
#include <stddef.h>

/* A self-test: 0 where the tiles multiply as they should. Async-signal-safe: it runs in a child process
 * that shares this one's memory. */
typedef int gn_cpu_amx_test(void);

/* The test of the real instructions. Only where CPUID advertises AMX. */
gn_cpu_amx_test gn_cpu_amx_multiply;

/* Ask the operating system for tile state and run `test` in a child process, which may be killed by it.
 * Process-wide, once; takes well under a millisecond unless the test hangs, which is ended after a second.
 * why   written where the result is false: one line of up to n - 1 characters. */
bool gn_cpu_amx_usable(gn_cpu_amx_test *test, char *why, size_t n);

#endif
