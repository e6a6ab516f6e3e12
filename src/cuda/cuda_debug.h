/* SPDX-License-Identifier: Apache-2.0
 *
 * cuda_debug.h - debug builds of kernels from the host's side: RFT_KERNEL_DEBUG and RFT_KERNEL_DUMP, the record that a kernel
 * leaves when it reaches outside of its operands, and the room for a dump. The kernels' side is kernels/debug.cuh.
 * Called by cuda_backend.c, cuda_choose.c, cuda_run.c and cuda_memory.c.
 */
#ifndef RFT_CUDA_CUDA_DEBUG_H
#define RFT_CUDA_CUDA_DEBUG_H

#include "cuda/cuda_device.h"

/* Reads the environment into d->debug and d->dump; RFT_E_ARG: a dump of no known name, or without RFT_KERNEL_DEBUG=1. */
rft_status rft__cuda_debug_read(rft__cuda_device *d, rft_error *err);
/* The record, in memory that both sides reach; with d's context current. */
rft_status rft__cuda_debug_open(rft__cuda_device *d, rft_error *err);
void rft__cuda_debug_close(rft__cuda_device *d);

/* "acc", "part3"; NULL: none. */
const char *rft__cuda_dump_name(int dump, char name[16]);
/* Of one f32 for each sum of the product at m_max, 0 without a dump. */
rft_status rft__cuda_dump_bytes(const rft__cuda_device *d, const rft__problem *p, size_t *bytes, rft_error *err);
/* What a run adds to the arguments: of the kernel of row, whose workspace has the dump at `at`. */
void rft__cuda_debug_fill(const rft__cuda_device *d, const rft__cuda_row *row, size_t at, rft__cuda_args *a);

/* rft__driver_check, which names the access where a debug build trapped. */
rft_status rft__cuda_check(const rft__cuda_device *d, CUresult result, const char *what, rft_error *err);

#endif
