/* SPDX-License-Identifier: Apache-2.0
 *
 * cpu_memory.h - memory, copies and time of the CPU as a backend. See problem/backend.h for what each must do.
 */
#ifndef RFT_CPU_CPU_MEMORY_H
#define RFT_CPU_CPU_MEMORY_H

#include "cpu/cpu_device.h"

rft_status rft__cpu_memory_alloc(rft__device *d, size_t bytes, void **p, rft_error *err);
void rft__cpu_memory_free(rft__device *d, void *p, size_t bytes);
rft_status rft__cpu_memory_copy(rft__device *d, void *dst, const void *src, size_t bytes, rft__direction direction,
                                rft_error *err);
rft_status rft__cpu_memory_fill(rft__device *d, void *dst, int byte, size_t bytes, rft_error *err);
const void *rft__cpu_memory_of(const rft__device *d, const void *p);
const void *rft__cpu_memory_read(const rft__device *d);
rft_status rft__cpu_sync(rft__device *d, void *stream, rft_error *err);
rft_status rft__cpu_measure(rft__device *d, rft__timed_call *call, void *user, uint32_t count, rft_timing *timing,
                            rft_error *err);

#endif
