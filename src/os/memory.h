/* The machine's memory. */
#ifndef GN_OS_MEMORY_H
#define GN_OS_MEMORY_H

#include <stddef.h>
#include <stdint.h>

/* Bytes that could be allocated now without swapping: the kernel's estimate (MemAvailable), lowered to what
 * the cgroup's limit leaves. At least 64 MiB where nothing can be read. */
uint64_t gn_os_free_memory(void);

/* Ask for large pages behind [p, p + bytes), which is not written yet. Only speed depends on it. */
void gn_os_prefer_large_pages(void *p, size_t bytes);

#endif
