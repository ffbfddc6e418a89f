/* Cores, by hwloc. Only processors and cores are asked for, and not from the x86 component, which visits
 * every processor by binding the thread to it: the kernel's tables say the same. */
#include "cpu/topology.h"

#include <hwloc.h>
#include <stdbool.h>
#include <stddef.h>

static bool load(hwloc_topology_t topology, const char *synthetic)
{
    /* A build of hwloc without the component has nothing to leave out. */
    (void)hwloc_topology_set_components(topology, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, "x86");
    return hwloc_topology_set_all_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_NONE) == 0 &&
           hwloc_topology_set_type_filter(topology, HWLOC_OBJ_CORE, HWLOC_TYPE_FILTER_KEEP_ALL) ==
               0 &&
           (synthetic == NULL || hwloc_topology_set_synthetic(topology, synthetic) == 0) &&
           hwloc_topology_load(topology) == 0;
}

/* Each core found takes its processors off `allowed`; one that no core has counts as a core. */
static int count(hwloc_topology_t topology, hwloc_bitmap_t allowed)
{
    int n = 0;
    hwloc_obj_t pu = NULL;
    while ((pu = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_PU, pu)) != NULL) {
        if (!hwloc_bitmap_isset(allowed, pu->os_index)) {
            continue;
        }
        hwloc_obj_t core = hwloc_get_ancestor_obj_by_type(topology, HWLOC_OBJ_CORE, pu);
        (void)hwloc_bitmap_andnot(allowed, allowed, core != NULL ? core->cpuset : pu->cpuset);
        n++;
    }
    return n;
}

int gn_cpu_count_cores(const char *synthetic, const char *allowed)
{
    hwloc_topology_t topology = NULL;
    if (hwloc_topology_init(&topology) != 0) {
        return 0;
    }
    int n = 0;
    hwloc_bitmap_t set = hwloc_bitmap_alloc();
    if (set != NULL && load(topology, synthetic)) {
        int found = allowed != NULL ? hwloc_bitmap_list_sscanf(set, allowed)
                                    : hwloc_get_cpubind(topology, set, HWLOC_CPUBIND_THREAD);
        n = found == 0 ? count(topology, set) : 0;
    }
    hwloc_bitmap_free(set);
    hwloc_topology_destroy(topology);
    return n;
}
