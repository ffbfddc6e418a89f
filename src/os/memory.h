/* The machine's memory. */
#ifndef GN_OS_MEMORY_H
#define GN_OS_MEMORY_H

#include <stddef.h>
#include <stdint.h>

/* Bytes that could be allocated now without swapping: the kernel's estimate (MemAvailable), lowered to what
 * the limits of its control groups leave. At least 64 MiB where nothing can be read. */
uint64_t gn_os_free_memory(void);

/* Bytes that the process's control groups leave it, nested ones and both versions counted; UINT64_MAX without
 * a limit. The names are those of gn_os_cgroup_walk(). */
uint64_t gn_os_cgroup_memory(const char *cgroup_file, const char *root);

/* Ask for large pages behind [p, p + bytes), which is not written yet. Only speed depends on it. */
void gn_os_prefer_large_pages(void *p, size_t bytes);

#endif
