/* What is free is the least of the machine's memory and of what each group on the way up leaves. */
#include "os/memory.h"

#include "os/cgroup.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#define FLOOR_BYTES (64ull << 20)

/* The number at the start of a file of a group; false without one, as in "max" for no limit. */
static bool read_number(const char *dir, const char *name, uint64_t *value)
{
    char path[GN_OS_CGROUP_DIR + 32];
    if (snprintf(path, sizeof path, "%s/%s", dir, name) >= (int)sizeof path) {
        return false;
    }
    FILE *f = fopen(path, "re");
    if (f == NULL) {
        return false;
    }
    char line[64];
    char *end = line;
    if (fgets(line, sizeof line, f) != NULL && line[0] >= '0' && line[0] <= '9') {
        *value = strtoull(line, &end, 10);
    }
    (void)fclose(f);
    return end != line;
}

/* Lower *ctx to what the limit of one group leaves. */
static void visit(void *ctx, const char *dir, bool v2)
{
    uint64_t *least = ctx;
    uint64_t limit;
    uint64_t used;
    if (read_number(dir, v2 ? "memory.max" : "memory.limit_in_bytes", &limit) &&
        read_number(dir, v2 ? "memory.current" : "memory.usage_in_bytes", &used)) {
        uint64_t left = limit > used ? limit - used : 0;
        *least = left < *least ? left : *least;
    }
}

uint64_t gn_os_cgroup_memory(const char *cgroup_file, const char *root)
{
    uint64_t least = UINT64_MAX;
    gn_os_cgroup_walk(cgroup_file, root, "memory", visit, &least);
    return least;
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
    uint64_t left = gn_os_cgroup_memory(GN_OS_CGROUP_FILE, GN_OS_CGROUP_ROOT);
    bytes = left < bytes ? left : bytes;
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
