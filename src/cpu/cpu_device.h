/* SPDX-License-Identifier: Apache-2.0
 *
 * cpu_device.h - one context's view of the CPU: threads, caches, the ISA level in use and its tables. Made by cpu_backend,
 * read by everything in cpu/. Immutable after open.
 */
#ifndef RFT_CPU_CPU_DEVICE_H
#define RFT_CPU_CPU_DEVICE_H

#include "base/pool.h"
#include "cpu/cpu_kernel.h"
#include "problem/backend.h"

typedef struct rft__topology {
    uint64_t l1d, l2, l3; /* bytes; a core's, a core's, the largest shared one; 0: unknown */
    int nodes;
} rft__topology;

struct rft__device {
    rft__allocator allocator;
    rft__pool *pool;      /* NULL in a device opened "as" another machine */
    int threads, level;   /* level: index of the ISA in use */
    uint32_t levels;      /* a bit for each that the machine has; of a machine opened "as" all. Those up to `level` serve */
    rft__topology topology;
    rft__isa_ops ops;     /* best of each entry over the levels */
    double dot_rate;      /* vdpbf16ps kernels' rate over the f32 kernels', per multiplication */
};

static inline bool rft__device_uses(const rft__device *d, int level) { return level <= d->level && d->levels >> level & 1; }

/* Of this machine, found once a process. */
rft__topology rft__topology_here(void);
uint64_t rft__memory_bytes(void); /* of the machine, or of the cgroup where that is less */

/* Rate of the bf16 dot kernels over the f32 FMA kernels on register tiles, timed once a process. */
double rft__dot_rate_here(void);

#endif
