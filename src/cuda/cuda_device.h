/* SPDX-License-Identifier: Apache-2.0
 *
 * cuda_device.h - one context's share of a GPU: its facts, its driver context, the compiler and the kernels loaded so far.
 * Made by cuda_backend.c, read by every file of cuda/ that plans, packs or runs.
 */
#ifndef RFT_CUDA_CUDA_DEVICE_H
#define RFT_CUDA_CUDA_DEVICE_H

#include "cuda/cuda_family.h"
#include "cuda/driver.h"
#include "cuda/jit.h"

#include <pthread.h>

/* A loaded kernel; equal texts share one. Immutable once made, but for users. */
typedef struct rft__cuda_kernel {
    struct rft__cuda_kernel *next;
    uint64_t hash;
    char *config; /* text of config.h */
    size_t config_bytes;
    const char *source, *entry;
    CUmodule module;
    CUfunction function;
    int registers;
    uint32_t users;
} rft__cuda_kernel;

typedef struct rft__cuda_device {
    rft__allocator allocator;
    rft__log log;
    rft__cuda_facts facts;
    char name[64];
    uint64_t memory;
    rft__jit *jit;
    const rft__driver *driver; /* NULL: a device described by a profile, which only judges candidates */
    CUcontext context;
    CUdevice ordinal;
    bool primary;  /* context is the primary one, retained */
    bool debug;    /* RFT_KERNEL_DEBUG: kernels are compiled with checks */
    int dump;      /* RFT_KERNEL_DUMP: an RFT_DUMP_... of cuda_args.h; 0: none */
    rft__cuda_fault *fault; /* of the host; a debug build's record, else NULL */
    bool strict;   /* a run that its plan's kernels do not suit is an error */
    long process;  /* that opened it; a forked child must not touch the driver */
    pthread_mutex_t lock; /* of the list of kernels */
    rft__cuda_kernel *kernels;
} rft__cuda_device;

static inline rft__cuda_device *rft__cuda_of(rft__device *d) { return (rft__cuda_device *)(void *)d; }
static inline const rft__cuda_device *rft__cuda_of_const(const rft__device *d) {
    return (const rft__cuda_device *)(const void *)d;
}

/* Makes the device's context current where it is not; leave undoes exactly that. */
typedef struct rft__cuda_scope {
    const rft__driver *driver;
    bool pushed;
} rft__cuda_scope;
rft_status rft__cuda_enter(const rft__cuda_device *d, rft__cuda_scope *scope, rft_error *err);
void rft__cuda_leave(const rft__cuda_scope *scope);

/* Facts of the GPU behind ordinal, and of one that a profile describes; sm_limit 0: none. */
rft_status rft__cuda_facts_here(const rft__driver *driver, CUdevice ordinal, const rft_machine *machine, uint32_t sm_limit,
                                rft__cuda_facts *facts, rft_error *err);
rft_status rft__cuda_facts_of(const rft_machine *machine, uint32_t sms, rft__cuda_facts *facts, rft_error *err);

/* One kernel each for count texts of config.h; what is not loaded yet comes from the cache or is compiled, several at once.
 * On failure nothing is held. */
typedef struct rft__cuda_wanted {
    const rft__cuda_family *family;
    const char *config;
    unsigned shared; /* the most dynamic shared memory of a launch */
    unsigned cluster;
} rft__cuda_wanted;
rft_status rft__cuda_kernels_get(rft__cuda_device *d, const rft__cuda_wanted *wanted, uint32_t count, rft__cuda_kernel **out,
                                 rft_error *err);
void rft__cuda_kernel_drop(rft__cuda_device *d, rft__cuda_kernel *kernel);
/* Enqueues one. dependent: it may begin while the one before it on the stream drains, and waits for it by itself. */
rft_status rft__cuda_enqueue(const rft__cuda_device *d, const rft__cuda_kernel *kernel, const rft__cuda_launch *l, bool dependent,
                             void **parameters, CUstream stream, const char *what, rft_error *err);

/* The rows of kernels_cuda.def. */
extern const rft__cuda_row rft__cuda_rows[];
extern const int rft__cuda_row_count;

/* Text of config.h. */
void rft__cuda_config_text(const rft__problem *p, const rft__cuda_config *c, rft__text *t);

/* Memory and time, as problem/backend.h says. */
rft_status rft__cuda_memory_alloc(rft__device *device, size_t bytes, void **p, rft_error *err);
void rft__cuda_memory_free(rft__device *device, void *p, size_t bytes);
rft_status rft__cuda_memory_copy(rft__device *device, void *dst, const void *src, size_t bytes, rft__direction direction,
                                 rft_error *err);
rft_status rft__cuda_memory_fill(rft__device *device, void *dst, int byte, size_t bytes, rft_error *err);
const void *rft__cuda_memory_of(const rft__device *device, const void *p);
const void *rft__cuda_memory_read(const rft__device *device);
rft_status rft__cuda_sync(rft__device *device, void *stream, rft_error *err);
rft_status rft__cuda_measure(rft__device *device, rft__timed_call *call, void *user, uint32_t count, rft_timing *timing,
                             rft_error *err);
/* True where the driver knows p as memory of a device. */
bool rft__cuda_on_device(const rft__cuda_device *d, const void *p);

#endif
