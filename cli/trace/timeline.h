/* SPDX-License-Identifier: Apache-2.0
 *
 * timeline.h - ops on threads, what they launch, and the kernels of a GPU: whose time is whose.
 * Called by the readers of profilers, which record all of these. An op that is a product, attention, a norm or a collective
 * owns the time of all that it runs; what nobody owns counts for itself.
 */
#ifndef TIMELINE_H
#define TIMELINE_H

#include "trace/trace.h"

typedef enum host_kind { HOST_OP, HOST_NOTE, HOST_LAUNCH } host_kind;

typedef struct host_event {
    double start, end; /* us */
    uint64_t thread;
    int64_t id;   /* of an op, as kernels name it; of a launch its correlation; 0: none */
    double inner; /* us of the ops directly within */
    uint32_t row;
    int32_t op, owner; /* the op around or itself, and who owns its time: indices, -1: none */
    host_kind kind;
    unsigned char phase;
    bool counted;
} host_event;

typedef struct gpu_event {
    int64_t correlation, id; /* of the launch, and of the op where the recorder knows it; 0: not told */
    double us;
    uint32_t row;
} gpu_event;

typedef struct timeline {
    host_event *host;
    gpu_event *gpu;
    size_t n_host, cap_host, n_gpu, cap_gpu;
} timeline;

/* Times in us that are not finite and durations below 0 are refused. */
bool timeline_host(timeline *l, host_kind kind, uint64_t thread, double start, double us, int64_t id, uint32_t row);
bool timeline_kernel(timeline *l, trace *t, const char *name, int64_t correlation, int64_t id, double us);
/* Counts all of it in the trace: kernels where there are any, else the ops themselves. */
void timeline_settle(timeline *l, trace *t);
void timeline_free(timeline *l);

#endif
