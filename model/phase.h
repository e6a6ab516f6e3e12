/* SPDX-License-Identifier: Apache-2.0
 *
 * phase.h - the rules of a phase. Called by model.c; rft_phase_parse is public.
 */
#ifndef RFT_MODEL_PHASE_H
#define RFT_MODEL_PHASE_H

#include "rooftile_model.h"

#define RFT_MAX_ROWS ((int64_t)1 << 30) /* batch * tokens */

rft_status rft__phase_check(const rft_phase *phase, rft_error *err);

#endif
