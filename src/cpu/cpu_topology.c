/* SPDX-License-Identifier: Apache-2.0
 *
 * cpu_topology.c - cache sizes, NUMA nodes and memory: from hwloc where it is built in, else from libc. See cpu_device.h.
 */
#include "cpu/cpu_device.h"

#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#if RFT_HAVE_HWLOC
#include <hwloc.h>

static uint64_t cache_size(hwloc_topology_t t, hwloc_obj_type_t type) {
    const hwloc_obj_t cache = hwloc_get_obj_by_type(t, type, 0);
    return cache != NULL && cache->attr != NULL ? cache->attr->cache.size : 0;
}

static rft__topology discover(void) {
    rft__topology found = {.nodes = 1};
    hwloc_topology_t t;
    if (hwloc_topology_init(&t) != 0) {
        return found;
    }
    if (hwloc_topology_load(t) == 0) {
        const int nodes = hwloc_get_nbobjs_by_type(t, HWLOC_OBJ_NUMANODE);
        found = (rft__topology){cache_size(t, HWLOC_OBJ_L1CACHE), cache_size(t, HWLOC_OBJ_L2CACHE),
                                cache_size(t, HWLOC_OBJ_L3CACHE), nodes > 0 ? nodes : 1};
    }
    hwloc_topology_destroy(t);
    return found;
}
#else
static uint64_t cache_size(int name) {
    const long size = sysconf(name);
    return size > 0 ? (uint64_t)size : 0;
}

static rft__topology discover(void) {
    return (rft__topology){cache_size(_SC_LEVEL1_DCACHE_SIZE), cache_size(_SC_LEVEL2_CACHE_SIZE),
                           cache_size(_SC_LEVEL3_CACHE_SIZE), 1};
}
#endif

static rft__topology here;
static pthread_once_t here_once = PTHREAD_ONCE_INIT;

static void find_here(void) { here = discover(); }

rft__topology rft__topology_here(void) {
    pthread_once(&here_once, find_here);
    return here;
}

static uint64_t cgroup_limit(const char *path) {
    unsigned long long limit = 0;
    FILE *f = fopen(path, "re");
    if (f == NULL) {
        return UINT64_MAX;
    }
    const int fields = fscanf(f, "%llu", &limit); /* "max" is no number */
    fclose(f);
    return fields == 1 ? limit : UINT64_MAX;
}

uint64_t rft__memory_bytes(void) {
    uint64_t bytes = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGE_SIZE);
    static const char *const limits[] = {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"};
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        const uint64_t limit = cgroup_limit(limits[i]);
        bytes = limit < bytes ? limit : bytes;
    }
    return bytes;
}
