/* SPDX-License-Identifier: Apache-2.0
 *
 * check_grid.h - which problems prove a kernel: sizes round its tile's edges, and random ones. Feeds check_jobs.
 */
#ifndef CHECK_GRID_H
#define CHECK_GRID_H

#include "check_jobs.h"

/* All shapes of the grid on one kernel, which must serve at least one of them. */
void check_kernel(check_session *s, const rft_kernel_info *kernel, check_tally *tally);
/* The same shapes on what the library chooses under a cap. */
void check_level(check_session *s, const char *isa, check_tally *tally);
/* count problems of random size, type, layout and epilogue. isa, kernel: NULL or as in check_problem. */
void check_random(check_session *s, int64_t count, const char *isa, const char *kernel, check_tally *tally);
/* Whether a kernel runs on GPUs. */
bool check_on_gpu(const rft_kernel_info *kernel);

#endif
