/* SPDX-License-Identifier: Apache-2.0
 *
 * cpus.c - affinity mask and cgroup CPU quota: v2 cpu.max, v1 cpu.cfs_quota_us / cpu.cfs_period_us.
 * A quota binds each group below it, so the least one on the way up to the root counts. A container often sees its own
 * group mounted as the root and the host's path in the membership file: folders that do not exist are skipped.
 */
#define _GNU_SOURCE 1
#include "base/cpus.h"

#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static int affinity(void) {
    for (int cpus = 1024; cpus <= 1 << 20; cpus *= 2) { /* EINVAL: the kernel's mask is wider */
        cpu_set_t *set = CPU_ALLOC((size_t)cpus);
        if (set == NULL) {
            return 1;
        }
        const size_t size = CPU_ALLOC_SIZE((size_t)cpus);
        const int code = sched_getaffinity(0, size, set) == 0 ? 0 : errno;
        const int count = code == 0 ? CPU_COUNT_S(size, set) : 1;
        CPU_FREE(set);
        if (code != EINVAL) {
            return count;
        }
    }
    return 1;
}

/* The first line of folder/name. */
static bool read_line(const char *folder, const char *name, char *text, int cap) {
    char path[PATH_MAX];
    const int length = snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = length > 0 && length < PATH_MAX ? fopen(path, "re") : NULL;
    if (file == NULL) {
        return false;
    }
    const bool good = fgets(text, cap, file) != NULL;
    fclose(file);
    return good;
}

static int folder_quota(const char *folder) {
    char text[64], period_text[64];
    long long quota = 0, period = 0;
    if (read_line(folder, "cpu.max", text, sizeof text)) {
        if (sscanf(text, "%lld %lld", &quota, &period) != 2) { /* "max 100000" */
            return 0;
        }
    } else if (read_line(folder, "cpu.cfs_quota_us", text, sizeof text) &&
               read_line(folder, "cpu.cfs_period_us", period_text, sizeof period_text)) {
        if (sscanf(text, "%lld", &quota) != 1 || sscanf(period_text, "%lld", &period) != 1) {
            return 0;
        }
    }
    if (quota <= 0 || period <= 0) { /* v1 writes -1 for no quota */
        return 0;
    }
    const long long cpus = quota / period + (quota % period != 0);
    return cpus < INT_MAX ? (int)cpus : INT_MAX;
}

static int stricter(int a, int b) {
    return a == 0 || (b != 0 && b < a) ? b : a;
}

/* hierarchy: the folder that a group tree is mounted on; group: "/a/b", cut here. */
static int least_quota(const char *hierarchy, char *group) {
    char folder[PATH_MAX];
    int quota = 0;
    for (;;) {
        const int length = snprintf(folder, sizeof folder, "%s%s", hierarchy, group);
        if (length > 0 && length < PATH_MAX) {
            quota = stricter(quota, folder_quota(folder));
        }
        char *slash = strrchr(group, '/');
        if (slash == NULL) {
            return quota;
        }
        *slash = '\0';
    }
}

static bool has_cpu(const char *controllers) {
    for (const char *p = controllers; *p != '\0'; p += strcspn(p, ","), p += *p == ',') {
        if (strcspn(p, ",") == 3 && strncmp(p, "cpu", 3) == 0) {
            return true;
        }
    }
    return false;
}

/* A line is "0::/group" (v2) or "4:cpu,cpuacct:/group" (v1, mounted on a folder named like the controllers). */
static int line_quota(char *line, const char *mount) {
    char *controllers = strchr(line, ':');
    char *group = controllers != NULL ? strchr(controllers + 1, ':') : NULL;
    if (group == NULL) {
        return 0;
    }
    *group++ = '\0';
    controllers++;
    group[strcspn(group, "\n")] = '\0';
    if (*controllers != '\0' && !has_cpu(controllers)) {
        return 0;
    }
    char hierarchy[PATH_MAX];
    const int length = snprintf(hierarchy, sizeof hierarchy, "%s%s%s", mount, *controllers != '\0' ? "/" : "", controllers);
    return length > 0 && length < PATH_MAX ? least_quota(hierarchy, group) : 0;
}

int rft__cpus_quota(const char *membership, const char *mount) {
    FILE *file = fopen(membership, "re");
    if (file == NULL) {
        return 0;
    }
    char line[PATH_MAX];
    int quota = 0;
    while (fgets(line, sizeof line, file) != NULL) {
        quota = stricter(quota, line_quota(line, mount));
    }
    fclose(file);
    return quota;
}

int rft__cpus_available(void) {
    const int allowed = affinity();
    const int quota = rft__cpus_quota("/proc/self/cgroup", "/sys/fs/cgroup");
    return quota > 0 && quota < allowed ? quota : allowed;
}

int rft__cpus_avoid(pthread_t thread, int before, int cpu) {
    cpu_set_t set;
    if (cpu == before || cpu >= CPU_SETSIZE || pthread_getaffinity_np(thread, sizeof set, &set) != 0) {
        return before;
    }
    if (before >= 0) {
        CPU_SET((size_t)before, &set);
    }
    const bool taken = cpu >= 0 && CPU_ISSET((size_t)cpu, &set);
    if (taken) {
        CPU_CLR((size_t)cpu, &set);
    }
    if (pthread_setaffinity_np(thread, sizeof set, &set) != 0) { /* it refuses an empty mask */
        return before;
    }
    return taken ? cpu : -1;
}
