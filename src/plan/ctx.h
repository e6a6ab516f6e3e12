/* SPDX-License-Identifier: Apache-2.0
 *
 * ctx.h - what a context holds. Made and freed by api/ctx.c, read by plan and api.
 * Invariant: immutable once made, but for the plan cache, which has its own lock.
 */
#ifndef RFT_PLAN_CTX_H
#define RFT_PLAN_CTX_H

#include "plan/plan_cache.h"
#include "problem/backend.h"

struct rft_ctx {
    rft__allocator allocator;
    rft__log log;
    bool strict; /* a plan that would run a fallback kernel is an error */
    const rft__backend *backend;
    rft__device *device;
    uint32_t threads; /* of the device's pool */
    bool has_machine;
    rft_machine machine; /* the profile, if there is one */
    rft__plan_cache cache;
};

#endif
