/* SPDX-License-Identifier: Apache-2.0
 *
 * backend.h - what a device must offer to plan and api: one table of functions a backend, found by plan/registry.
 * Objects are opaque to the callers; every argument was checked by api, every rft__problem is canonical.
 */
#ifndef RFT_PROBLEM_BACKEND_H
#define RFT_PROBLEM_BACKEND_H

#include "base/alloc.h"
#include "base/log.h"
#include "problem/stored.h"
#include "rooftile_analysis.h"

typedef struct rft__device rft__device;   /* one context's share of a device: threads, caches, chosen rates */
typedef struct rft__choice rft__choice;   /* a plan's table from ranges of m to kernels */

/* Text that grows to what snprintf would need; the sink of explain. */
typedef struct rft__text {
    char *buf;
    size_t cap, length;
} rft__text;

void rft__text_add(rft__text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));

typedef struct rft__device_options {
    const rft_ctx_options *ctx; /* as checked by api; strings valid during the call only */
    const rft__allocator *allocator;
    const rft__log *log;
    const rft_machine *machine; /* the context's profile; NULL: it has none */
    int ordinal;
    bool strict;           /* of the context: what would run a fallback is an error */
    const rft_machine *as; /* NULL, or open a device that only judges candidates, as if this machine were here; it never runs */
    uint32_t as_threads;   /* of that device */
    bool compile;          /* such a device compiles its plans' kernels into the cache all the same */
} rft__device_options;

typedef struct rft__run {       /* one product, checked */
    const rft__choice *choice;
    const rft_linear_args *args; /* strides filled in: no zeros left. For a view too w, ldw and w_batch_stride say where W is.
                                  * w_batch_stride is 0 where one W serves every batch. weight, w and x may be NULL when
                                  * k = 0 or alpha = 0. m, n and batch are not 0. */
} rft__run;

typedef enum rft__direction { RFT__TO_DEVICE, RFT__TO_HOST } rft__direction;

typedef rft_status rft__timed_call(void *user, uint32_t i, void *stream, rft_error *err);

typedef struct rft__backend {
    const char *name; /* "cpu", "cuda" */
    bool (*present)(void); /* a device of this kind can be opened here */
    rft_status (*open)(const rft__device_options *options, rft__device **out, rft_error *err);
    void (*close)(rft__device *device);
    void (*describe)(const rft__device *device, rft_device_info *info);

    /* Memory, copies that are complete on return, and time, as rooftile_analysis.h says. bytes is not 0. */
    rft_status (*memory_alloc)(rft__device *device, size_t bytes, void **p, rft_error *err);
    void (*memory_free)(rft__device *device, void *p, size_t bytes);
    rft_status (*memory_copy)(rft__device *device, void *dst, const void *src, size_t bytes, rft__direction direction,
                              rft_error *err);
    rft_status (*memory_fill)(rft__device *device, void *dst, int byte, size_t bytes, rft_error *err);
    rft_status (*sync)(rft__device *device, void *stream, rft_error *err);
    rft_status (*measure)(rft__device *device, rft__timed_call *call, void *user, uint32_t count, rft_timing *timing,
                          rft_error *err);

    /* Names the memory that p lies in, and that a device reads its weights from: a run needs the same. NULL: no device's. */
    const void *(*memory_of)(const rft__device *device, const void *p);
    const void *(*memory_read)(const rft__device *device);

    uint64_t (*weight_layout)(const rft__matrix *w);            /* of the packed form; 0: this W cannot be packed */
    rft_status (*weight_bytes)(const rft__matrix *w, size_t *bytes, rft_error *err); /* of the packed data behind the header */
    rft_status (*weight_pack)(rft__device *device, const rft__matrix *w, const rft__stored_w *from, void *data, void *stream,
                              rft_error *err);
    rft_status (*weight_unpack)(rft__device *device, const rft__matrix *w, const void *data, float *out, int64_t ld,
                                rft_error *err); /* out: host memory */

    /* Fixes a kernel for each range of m. forced: a kernel's name, or NULL. */
    rft_status (*choose)(rft__device *device, const rft__problem *p, const char *forced, rft__choice **out, rft_error *err);
    void (*choice_free)(rft__device *device, rft__choice *choice);
    /* kernel, error constants and threads at one m, workspace for any m of the plan; leaves the bound alone. */
    void (*choice_info)(const rft__choice *choice, int64_t m, rft_plan_info *info);
    /* Why some m is left to a fallback kernel, as one sentence that lives as long as the choice; NULL: none is. NULL itself: it
     * has no such kernels. */
    const char *(*choice_fallback)(const rft__choice *choice);
    void (*choice_explain)(const rft__choice *choice, int64_t m, rft__text *text);
    rft_status (*run)(rft__device *device, const rft__run *runs, uint32_t count, rft_error *err);
    /* Strides filled in, m and k not 0. NULL: it has no kernel for that. */
    rft_status (*quantize)(rft__device *device, const rft_quantize_args *args, rft_error *err);

    uint32_t (*kernel_count)(void);
    rft_status (*kernel_get)(uint32_t i, rft_kernel_info *info); /* i < kernel_count() */
} rft__backend;

extern const rft__backend rft__backend_cpu, rft__backend_cuda;

/* What a weight object holds; api owns the object, backends read it. */
struct rft_weight {
    rft__matrix w;
    uint64_t layout;    /* 0: a view */
    const void *data;   /* packed data, or W itself for a view */
    const void *memory; /* that data lies in, as backend.memory_of names it */
    const rft_ctx *ctx;
};

#endif
