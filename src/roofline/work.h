/* SPDX-License-Identifier: Apache-2.0
 *
 * work.h - what one call must do at least: floating-point operations, and each operand's bytes once.
 * Called by bound.c and by plan info.
 */
#ifndef RFT_ROOFLINE_WORK_H
#define RFT_ROOFLINE_WORK_H

#include "problem/problem.h"
#include "rooftile_analysis.h"

/* With alpha = 0, or where a size of the product is 0, nothing is multiplied: no FLOPs, no bytes of X and W. */
void rft__work(const rft__problem *p, int64_t m, rft_work *work);
/* The canonical problem of a caller's descriptor, for m rows. */
rft_status rft__work_read(rft__problem *p, const rft_linear_desc *desc, int64_t m, rft_error *err);

#endif
