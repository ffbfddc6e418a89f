/* The control groups that this process is in. No state; any thread. */
#ifndef GN_OS_CGROUP_H
#define GN_OS_CGROUP_H

#include <stdbool.h>

#define GN_OS_CGROUP_FILE "/proc/self/cgroup"
#define GN_OS_CGROUP_ROOT "/sys/fs/cgroup"

/* Most bytes of a folder's path that a visit gets, its NUL included. */
#define GN_OS_CGROUP_DIR 2048

typedef void gn_os_cgroup_visit(void *ctx, const char *dir, bool v2);

/* Call visit for the folder of each group that limits the process for one controller ("cpu", "memory"):
 * its own and all above it, of version 2 and of version 1 where that has the controller. cgroup_file lists
 * the process's groups, root is where they are mounted: the two names above, or a test's. A folder may be
 * missing or visited twice. A file that is missing or malformed is no group. */
void gn_os_cgroup_walk(const char *cgroup_file, const char *root, const char *controller,
                       gn_os_cgroup_visit *visit, void *ctx);

#endif
