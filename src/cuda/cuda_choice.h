/* SPDX-License-Identifier: Apache-2.0
 *
 * cuda_choice.h - a plan's table from ranges of m to configs and loaded kernels. cuda_choose.c makes it, cuda_explain.c says
 * why, cuda_run.c runs it. Immutable once made.
 */
#ifndef RFT_CUDA_CUDA_CHOICE_H
#define RFT_CUDA_CUDA_CHOICE_H

#include "cuda/cuda_device.h"

#include <stdatomic.h>

typedef struct rft__cuda_pick {
    rft__cuda_config config;
    rft__cuda_kernel *kernel; /* NULL on a device that is only described */
} rft__cuda_pick;

typedef struct rft__cuda_range {
    int64_t m_last;
    rft__cuda_pick pick;
} rft__cuda_range;

enum { RFT__CUDA_RANGES = 192, RFT__CUDA_TABLE_M = 64, RFT__CUDA_INVARIANT_M = 128 };

typedef struct rft__cuda_choice {
    rft__cuda_device *device;
    rft__problem p;
    int n_range;
    rft__cuda_range range[RFT__CUDA_RANGES];
    bool forced, has_any; /* any: for operands that a range's kernel does not take */
    rft__cuda_pick any;
    size_t workspace, dump_at; /* bytes; where a dump begins in them */
    atomic_bool said; /* that a run took `any`; all that a run changes */
} rft__cuda_choice;

static inline const rft__cuda_choice *rft__cuda_choice_of(const rft__choice *c) {
    return (const rft__cuda_choice *)(const void *)c;
}

static inline const rft__cuda_pick *rft__cuda_pick_at(const rft__cuda_choice *c, int64_t m) {
    int i = 0;
    while (i < c->n_range - 1 && m > c->range[i].m_last) {
        i++;
    }
    return &c->range[i].pick;
}

/* One row's best config at m, or why the row is refused. */
typedef struct rft__cuda_candidate {
    rft__cuda_config config;
    double seconds;
    char reason[RFT__CUDA_REASON]; /* empty: allowed */
} rft__cuda_candidate;

/* forced: a kernel's name, or NULL. Returns rows looked at. */
int rft__cuda_judge(const rft__cuda_device *d, const rft__problem *p, const char *forced, int64_t m, rft__cuda_candidate *list,
                    int cap);

rft_status rft__cuda_choose(rft__device *device, const rft__problem *p, const char *forced, rft__choice **out, rft_error *err);
void rft__cuda_choice_free(rft__device *device, rft__choice *choice);
void rft__cuda_explain(const rft__choice *choice, int64_t m, rft__text *text);
void rft__cuda_choice_info(const rft__choice *choice, int64_t m, rft_plan_info *info);
rft_status rft__cuda_run(rft__device *device, const rft__run *runs, uint32_t count, rft_error *err);

#endif
