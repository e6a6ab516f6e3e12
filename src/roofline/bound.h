/* SPDX-License-Identifier: Apache-2.0
 *
 * bound.h - the roofline bound of a call on one machine. Called by plan info and by rft_machine_bound.
 *
 * seconds = max(flops / peak, bytes / DRAM read bandwidth): peak and bandwidth overlap, operands come from memory once, and a
 * byte written costs what a byte read costs. The last is a model, not a law: y is a small part of a linear layer's bytes,
 * and streaming stores are on many machines faster than reads.
 * Invariant: mach has passed rft__machine_check, p is canonical.
 */
#ifndef RFT_ROOFLINE_BOUND_H
#define RFT_ROOFLINE_BOUND_H

#include "problem/problem.h"
#include "rooftile_analysis.h"

/* threads 0: as many as were measured. A roof that the profile does not know (0) bounds nothing. */
void rft__bound(const rft_machine *mach, const rft__problem *p, int64_t m, uint32_t threads, rft_bound *out);
/* One roof at a thread count: linear between measured counts and from zero to the first, constant beyond the last. */
double rft__roof_at(const rft_machine *mach, const double *roofs, uint32_t threads);
/* GFLOP/s of the fastest op named <unit>_<type>, such as fma_f32, dot_bf16 or wgmma_tf32; 0: none. */
double rft__peak_of_type(const rft_machine *mach, const char *type, uint32_t threads);
/* GFLOP/s of the fastest op that may multiply x by w: one of their type when they agree, tf32 where that is exact or asked for,
 * f32 for all. */
double rft__peak_at(const rft_machine *mach, const rft__problem *p, uint32_t threads);

#endif
