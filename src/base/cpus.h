/* SPDX-License-Identifier: Apache-2.0
 *
 * cpus.h - how many CPUs this process may keep busy, and keeping a thread off one of them. Called by the pool.
 */
#ifndef RFT_BASE_CPUS_H
#define RFT_BASE_CPUS_H

#include <pthread.h>

/* CPUs in the calling thread's affinity mask, capped by the cgroup quota; at least 1. */
int rft__cpus_available(void);
/* CPUs that cgroup quotas grant, rounded up; 0: no quota. membership: a file like /proc/self/cgroup; mount: a folder like
 * /sys/fs/cgroup. */
int rft__cpus_quota(const char *membership, const char *mount);
/* Takes cpu (-1: none) out of the thread's affinity mask and puts back before, which an earlier call took out (-1: none).
 * Returns the CPU that is now out, or -1. A thread that may use no other CPU keeps its mask. */
int rft__cpus_avoid(pthread_t thread, int before, int cpu);

#endif
