/* SPDX-License-Identifier: Apache-2.0
 *
 * check_grid.h - which problems prove a kernel: sizes round its tile's edges. Feeds check_jobs.
 */
#ifndef CHECK_GRID_H
#define CHECK_GRID_H

#include "check_jobs.h"

/* All shapes of the grid on one kernel, which must serve at least one of them. */
void check_kernel(check_session *s, const rft_kernel_info *kernel, check_tally *tally);
/* The same shapes on what the library chooses under a cap. */
void check_level(check_session *s, const char *isa, check_tally *tally);
/* Draws all but the size of a problem that a kernel mostly serves. */
void check_vary(check_problem *p, const rft_kernel_info *native, check_dice *d);
/* Whether a kernel runs on GPUs. */
bool check_on_gpu(const rft_kernel_info *kernel);

#endif
