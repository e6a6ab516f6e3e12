/* SPDX-License-Identifier: Apache-2.0
 *
 * ranks.h - the rules of ranks that share a step, and the tokens of one group of them. Called by shards.c and exchange.c.
 */
#ifndef RFT_MODEL_RANKS_H
#define RFT_MODEL_RANKS_H

#include "model_object.h"

#define RFT_MAX_RANKS    1024
#define RFT_RESULT_BYTES 2.0 /* of a result that ranks exchange */

/* Phase and ranks are sound, and the model is one that ranks can share; `what` they would. */
rft_status rft__ranks_check(const rft_model *m, const rft_phase *phase, const rft_ranks *ranks, const char *what,
                            rft_error *err);

/* Groups with tokens of their own. */
static inline int64_t rft__ranks_groups(const rft_ranks *r) { return r->ep > 0 ? r->ep / r->tp : 1; }

/* The step of the fullest group. */
static inline rft_phase rft__ranks_phase(const rft_ranks *r, const rft_phase *phase) {
    return (rft_phase){phase->kind, rft__ceil_div(phase->batch, rft__ranks_groups(r)), phase->tokens};
}

#endif
