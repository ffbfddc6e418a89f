/* Which of the processors are cores of their own. */
#ifndef GN_CPU_TOPOLOGY_H
#define GN_CPU_TOPOLOGY_H

/* Physical cores with at least one processor that the calling thread may run on; 0 where they can't be
 * found out. Takes some milliseconds and does not move the thread.
 * synthetic  NULL: this machine; tests give hwloc's description of another, like "core:4 pu:2"
 * allowed    NULL: the thread's affinity; with `synthetic`, the processors allowed, like "0-3,8" */
int gn_cpu_count_cores(const char *synthetic, const char *allowed);

#endif
