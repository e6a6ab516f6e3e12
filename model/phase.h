/* SPDX-License-Identifier: Apache-2.0
 *
 * phase.h - the rules of a phase. Called by model.c; rft_phase_parse is public.
 */
#ifndef RFT_MODEL_PHASE_H
#define RFT_MODEL_PHASE_H

#include "rooftile_model.h"

#include <stdbool.h>

#define RFT_MAX_ROWS ((int64_t)1 << 30) /* batch * tokens */

/* Whether texts begin in it, so that their source is read: others go on behind a context. */
static inline bool rft__phase_begins(const rft_phase *phase) {
    return phase->kind != RFT_PHASE_DECODE && phase->kind != RFT_PHASE_VERIFY;
}

rft_status rft__phase_check(const rft_phase *phase, rft_error *err);

#endif
