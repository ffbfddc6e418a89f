/* The CPU time that control groups leave to this process. */
#ifndef GN_OS_QUOTA_H
#define GN_OS_QUOTA_H

/* The smallest CPU quota of the groups this process is in, from its own up to the root, in whole
 * processors, rounded up; 0: none.
 * cgroup_file  the process's groups, in the form of /proc/self/cgroup, version 1 and 2
 * root         where the hierarchies are mounted: version 2 at root or root/unified, version 1's
 *              controller at root/cpu or root/cpu,cpuacct
 * Files that are missing or malformed count as no quota. */
int gn_os_cpu_quota(const char *cgroup_file, const char *root);

#endif
