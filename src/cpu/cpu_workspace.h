/* SPDX-License-Identifier: Apache-2.0
 *
 * cpu_workspace.h - what a run takes of its workspace: packed X, a strip of W and sums for each thread, then the sums of k parts.
 * cpu_gemm.c lays it out by these, plans ask for as much (rft__cpu_workspace).
 */
#ifndef RFT_CPU_CPU_WORKSPACE_H
#define RFT_CPU_CPU_WORKSPACE_H

#include "cpu/cpu_choice.h"

/* From row to row of X that is copied for kernels of rows: a line more than k, so that rows do not meet in one set of L1. */
int64_t rft__x_stride(const rft__cpu_kernel *kernel, int64_t k);
/* Bytes of one thread's packed X, of its strip of W, and of all its buffers. */
int64_t rft__x_bytes(const rft__cpu_pick *pick, int64_t rows, int64_t k);
int64_t rft__w_bytes(const rft__cpu_pick *pick);
int64_t rft__thread_bytes(const rft__choice *c, const rft__cpu_pick *pick, int64_t m);
/* Sums that one k part leaves. */
int64_t rft__partial_sums(const rft__choice *c, int64_t m);

#endif
