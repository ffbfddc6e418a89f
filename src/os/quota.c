/* The least quota of all groups that the process is in, rounded up to whole processors. */
#include "os/quota.h"

#include "os/cgroup.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define PATH_BYTES (GN_OS_CGROUP_DIR + 32)

/* Up to two numbers at the start of a file; how many there were. */
static int read_numbers(const char *path, long long *a, long long *b)
{
    FILE *f = fopen(path, "re");
    if (f == NULL) {
        return 0;
    }
    char line[64];
    int n = 0;
    if (fgets(line, sizeof line, f) != NULL) {
        char *end = line;
        *a = strtoll(line, &end, 10);
        n += end != line;
        char *second = end;
        *b = strtoll(second, &end, 10);
        n += n != 0 && end != second;
    }
    (void)fclose(f);
    return n;
}

static int whole(long long quota, long long period)
{
    if (quota <= 0 || period <= 0 || quota > INT32_MAX || period > INT32_MAX) {
        return 0;
    }
    return (int)((quota + period - 1) / period);
}

/* The quota in one folder of version 2 (cpu.max: "max 100000" or "50000 100000") or 1. */
static int quota_at(const char *dir, bool v2)
{
    static const char *const names[] = {"cpu.max", "cpu.cfs_quota_us", "cpu.cfs_period_us"};
    char path[PATH_BYTES];
    long long quota = 0;
    long long period = 0;
    long long unused;
    if (snprintf(path, sizeof path, "%s/%s", dir, names[v2 ? 0 : 1]) >= (int)sizeof path) {
        return 0;
    }
    int n = read_numbers(path, &quota, &period);
    if (v2) {
        return n == 2 ? whole(quota, period) : 0;
    }
    (void)snprintf(path, sizeof path, "%s/%s", dir, names[2]);
    return n >= 1 && read_numbers(path, &period, &unused) >= 1 ? whole(quota, period) : 0;
}

static void visit(void *ctx, const char *dir, bool v2)
{
    int *least = ctx;
    int quota = quota_at(dir, v2);
    if (quota != 0 && (*least == 0 || quota < *least)) {
        *least = quota;
    }
}

int gn_os_cpu_quota(const char *cgroup_file, const char *root)
{
    int least = 0;
    gn_os_cgroup_walk(cgroup_file, root, "cpu", visit, &least);
    return least;
}
