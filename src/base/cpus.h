/* SPDX-License-Identifier: Apache-2.0
 *
 * cpus.h - how many CPUs this process may keep busy. Called by the pool.
 */
#ifndef RFT_BASE_CPUS_H
#define RFT_BASE_CPUS_H

/* CPUs in the calling thread's affinity mask, capped by the cgroup quota; at least 1. */
int rft__cpus_available(void);
/* CPUs that cgroup quotas grant, rounded up; 0: no quota. membership: a file like /proc/self/cgroup; mount: like /sys/fs/cgroup. */
int rft__cpus_quota(const char *membership, const char *mount);

#endif
