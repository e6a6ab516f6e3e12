/* SPDX-License-Identifier: Apache-2.0
 *
 * check_formats.h - the low-bit weights that prove a kernel of codes. The grids of rooftile check and of tests/check draw them.
 */
#ifndef CHECK_FORMATS_H
#define CHECK_FORMATS_H

#include "check_core.h"

/* A format that a kernel of codes reads (0: it is none), and one of any codes. */
rft_type check_code_format(const rft_kernel_info *kernel, uint64_t drawn);
rft_type check_any_format(uint64_t drawn);
/* f32, bf16 or f16. */
rft_type check_any_float(check_dice *d);
/* What a low-bit w asks of the rest of the problem: k in whole blocks, packed, K-contiguous. */
void check_low_bit(check_problem *p);

/* Draws x and y in 8 bits now and then, for a row that takes them so; a row of codes in 8 bits gets x so often. */
void check_draw_8bit(check_problem *p, const rft_kernel_info *kernel, uint64_t drawn);
/* What x and y in 8 bits ask of the rest of the problem: a K-contiguous x, and a list that ends in how y is quantised. */
void check_8bit(check_problem *p, uint64_t drawn);

#endif
