/* A group's limit holds for all groups below it, so every one on the way up counts. In a container the
 * path may be the host's and not exist there; the way up then ends at the container's own limit. */
#include "os/quota.h"

#include "base/attr.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PATH_BYTES 2048

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

static int smaller(int a, int b)
{
    return a == 0 || (b != 0 && b < a) ? b : a;
}

/* From mount/group up to mount. */
static int walk_up(const char *mount, const char *group, bool v2)
{
    char dir[PATH_BYTES - 32];
    int n = snprintf(dir, sizeof dir, "%s%s", mount, group);
    if (n < 0 || n >= (int)sizeof dir) {
        return quota_at(mount, v2);
    }
    size_t end = strlen(mount);
    int quota = 0;
    for (;;) {
        quota = smaller(quota, quota_at(dir, v2));
        char *slash = strrchr(dir + end, '/');
        if (slash == NULL) {
            return quota;
        }
        *slash = '\0';
    }
}

/* Is "cpu" one of the names in a list with commas? */
static bool has_cpu(const char *list)
{
    for (const char *p = list; p != NULL; p = strchr(p, ',')) {
        p += *p == ',';
        if (strncmp(p, "cpu", 3) == 0 && (p[3] == ',' || p[3] == '\0')) {
            return true;
        }
    }
    return false;
}

/* One line of the process's list: id:controllers:group. */
static int quota_of_line(char *line, const char *root)
{
    line[strcspn(line, "\n")] = '\0';
    char *controllers = strchr(line, ':');
    char *group = controllers != NULL ? strchr(controllers + 1, ':') : NULL;
    if (group == NULL) {
        return 0;
    }
    *controllers++ = '\0';
    *group++ = '\0';
    bool v2 = *controllers == '\0';
    if (!v2 && !has_cpu(controllers)) {
        return 0;
    }
    static const char *const places[2][2] = {{"/cpu", "/cpu,cpuacct"}, {"", "/unified"}};
    int quota = 0;
    for (size_t i = 0; i < GN_COUNTOF(places[0]); i++) {
        char mount[512];
        int n = snprintf(mount, sizeof mount, "%s%s", root, places[v2][i]);
        if (n > 0 && n < (int)sizeof mount) {
            quota = smaller(quota, walk_up(mount, group, v2));
        }
    }
    return quota;
}

int gn_os_cpu_quota(const char *cgroup_file, const char *root)
{
    FILE *f = fopen(cgroup_file, "re");
    if (f == NULL) {
        return 0;
    }
    char line[PATH_BYTES / 2];
    int quota = 0;
    while (fgets(line, sizeof line, f) != NULL) {
        quota = smaller(quota, quota_of_line(line, root));
    }
    (void)fclose(f);
    return quota;
}
