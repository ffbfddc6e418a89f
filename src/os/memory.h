/* The machine's memory. */
#ifndef GN_OS_MEMORY_H
#define GN_OS_MEMORY_H

#include <stdint.h>

/* Bytes that could be allocated now without swapping: the kernel's estimate (MemAvailable), lowered to what
 * the cgroup's limit leaves. At least 64 MiB where nothing can be read. */
uint64_t gn_os_free_memory(void);

#endif
