/* Threads that work only while nobody else wants the processor. */
#ifndef GN_OS_PRIORITY_H
#define GN_OS_PRIORITY_H

#include <stdbool.h>
#include <stdint.h>

/* The kernel's number of the calling thread. */
int64_t gn_os_thread_id(void);

/* Let a thread of this process yield to all others (SCHED_IDLE), or put it back among them. A kernel that
 * refuses leaves it as it is. */
void gn_os_thread_set_idle(int64_t thread_id, bool idle);

#endif
