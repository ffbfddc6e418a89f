#include "os/memory.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#define FLOOR_BYTES (64ull << 20)

static uint64_t read_number(const char *path)
{
    unsigned long long value = 0;
    FILE *f = fopen(path, "re");
    if (f == NULL) {
        return 0;
    }
    if (fscanf(f, "%llu", &value) != 1) {
        value = 0; /* "max": no limit */
    }
    (void)fclose(f);
    return value;
}

static uint64_t mem_available(void)
{
    FILE *f = fopen("/proc/meminfo", "re");
    if (f == NULL) {
        return 0;
    }
    char line[128];
    unsigned long long kib = 0;
    while (fgets(line, sizeof line, f) != NULL) {
        if (sscanf(line, "MemAvailable: %llu kB", &kib) == 1) {
            break;
        }
    }
    (void)fclose(f);
    return kib * 1024;
}

uint64_t gn_os_free_memory(void)
{
    uint64_t bytes = mem_available();
    uint64_t limit = read_number("/sys/fs/cgroup/memory.max");
    uint64_t used = read_number("/sys/fs/cgroup/memory.current");
    if (limit != 0) {
        uint64_t left = limit > used ? limit - used : 0;
        bytes = left < bytes ? left : bytes;
    }
    return bytes > FLOOR_BYTES ? bytes : FLOOR_BYTES;
}

#define LARGE_PAGE ((uintptr_t)2 << 20)

void gn_os_prefer_large_pages(void *p, size_t bytes)
{
    uintptr_t begin = ((uintptr_t)p + LARGE_PAGE - 1) / LARGE_PAGE * LARGE_PAGE;
    uintptr_t end = ((uintptr_t)p + bytes) / LARGE_PAGE * LARGE_PAGE;
    if (begin < end) {
        (void)madvise((void *)begin, end - begin, MADV_HUGEPAGE);
    }
}
