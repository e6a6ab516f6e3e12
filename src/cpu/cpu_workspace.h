/* SPDX-License-Identifier: Apache-2.0
 *
 * cpu_workspace.h - what a run takes of its workspace: packed X, a strip of W and sums for each thread, then the sums of k
 * parts, a copy of X for tiles (cpu_rows.h) and the rows of y that quantize_rows waits for. cpu_gemm.c lays it out by these,
 * plans ask for as much (rft__cpu_workspace).
 */
#ifndef RFT_CPU_CPU_WORKSPACE_H
#define RFT_CPU_CPU_WORKSPACE_H

#include "cpu/cpu_choice.h"

/* Bytes of one thread's packed X, of its strip of W, and of all its buffers. */
int64_t rft__x_bytes(const rft__choice *c, const rft__cpu_pick *pick, int64_t rows);
int64_t rft__w_bytes(const rft__choice *c, const rft__cpu_pick *pick);
int64_t rft__thread_bytes(const rft__choice *c, const rft__cpu_pick *pick, int64_t m);
/* Sums that one k part leaves. */
int64_t rft__partial_sums(const rft__choice *c, int64_t m);
/* Of all parts; 0 where k is one. */
int64_t rft__partial_bytes(const rft__choice *c, const rft__grid *g, int64_t m);
/* Of y in f32, dense, until its rows are complete; 0 where their scales are not asked for. */
int64_t rft__y_rows_bytes(const rft__choice *c, int64_t m);

#endif
