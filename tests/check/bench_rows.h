/* SPDX-License-Identifier: Apache-2.0
 *
 * bench_rows.h - the speed of single kernel rows, `rooftile_check --bench`: for a first look at a change to a kernel. Weights
 * stay in L2, so this is the kernel's own rate; `rooftile bench` measures what a user gets.
 */
#ifndef RFT_TESTS_CHECK_BENCH_ROWS_H
#define RFT_TESTS_CHECK_BENCH_ROWS_H

#include "rooftile_analysis.h"

#include <stdbool.h>

/* Prints one line; false where a call failed. */
bool bench_row(const rft_kernel_info *row, uint64_t seed);

#endif
