/* SPDX-License-Identifier: Apache-2.0
 *
 * plan.h - a plan: a canonical problem, the backend's choice for it, and how to ask about both.
 * Made by api; read by api at each run and by probe to verify results. Immutable once made.
 */
#ifndef RFT_PLAN_PLAN_H
#define RFT_PLAN_PLAN_H

#include "plan/ctx.h"

struct rft_plan {
    rft_ctx *ctx;
    rft__problem problem;
    rft__plan_entry *entry;    /* shared with equal plans through plan_cache */
    const rft__choice *choice; /* the entry's */
    uint64_t weight_layout;    /* that a weight must have; 0: a view */
    size_t workspace;          /* bytes, for any m of the plan */
};

/* forced: the only kernel that may serve it, or NULL. */
rft_status rft__plan_make(rft_ctx *ctx, const rft__problem *p, const char *forced, rft_plan **out, rft_error *err);
void rft__plan_drop(rft_plan *plan);
/* m must lie in the plan's range. struct_size is set to the whole struct's. */
void rft__plan_info(const rft_plan *plan, int64_t m, rft_plan_info *info);
/* The problem, each candidate with its reason, the work and the bound. */
void rft__plan_explain(const rft_plan *plan, int64_t m, rft__text *text);

#endif
