/* SPDX-License-Identifier: Apache-2.0
 *
 * api.h - what the files of api share: opening a context, and the checks of one run.
 * Invariant of the folder: arguments are checked here, once, and work is done below; api computes nothing.
 */
#ifndef RFT_API_API_H
#define RFT_API_API_H

#include "plan/plan.h"

#define RFT__STORAGE_ALIGN 64 /* of weight storage and of workspace */

/* A machine that is not here: its device judges candidates as if it were, and with `compile` fills the kernel cache. */
typedef struct rft__described {
    const rft_machine *machine;
    uint32_t threads;
    bool compile;
} rft__described;

/* as NULL: the device itself. */
rft_status rft__ctx_open(const char *device, const rft_ctx_options *options, const rft__described *as, rft_ctx **out,
                         rft_error *err);

/* Passes status on; a failure's message gets "where: " in front. */
rft_status rft__status_in(const char *where, rft_status status, rft_error *err);

/* args.workspace of a run that needs that many bytes; whose: "plan" or "MLP", for messages. */
rft_status rft__workspace_check(const void *workspace, size_t bytes, size_t needed, const char *whose, rft_error *err);

/* One checked product. Lives on the caller's stack; `run` points into it. */
typedef struct rft__call {
    rft_linear_args args; /* defaults filled in */
    rft__run run;
    bool nothing; /* m, n or batch is 0: there is no y to write */
} rft__call;

/* All checks of rft_linear_run and the defaults, in O(1). */
rft_status rft__call_make(rft__call *call, const rft_plan *plan, const rft_linear_args *args, rft_error *err);
/* Runs checked calls of plans of one context in one hand-off. */
rft_status rft__call_run(const rft_plan *const *plans, const rft__call *calls, uint32_t count, rft_error *err);

#endif
