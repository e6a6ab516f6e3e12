/* SPDX-License-Identifier: Apache-2.0
 *
 * cpu_memory.c - the CPU's answer to a backend's memory and time: plain memory, plain copies, the host's clock.
 * Called by api through the backend's table.
 */
#include "base/clock.h"
#include "cpu/cpu_memory.h"

#include <string.h>

enum { ALIGNMENT = 256 };

rft_status rft__cpu_memory_alloc(rft__device *d, size_t bytes, void **p, rft_error *err) {
    *p = rft__alloc(&d->allocator, bytes, ALIGNMENT);
    if (*p == NULL) {
        RFT_FAIL(err, RFT_E_NOMEM, "no memory for a buffer of %zu bytes", bytes);
    }
    return RFT_OK;
}

void rft__cpu_memory_free(rft__device *d, void *p, size_t bytes) { rft__release(&d->allocator, p, bytes); }

rft_status rft__cpu_memory_copy(rft__device *d, void *dst, const void *src, size_t bytes, rft__direction direction,
                                rft_error *err) {
    (void)d;
    (void)direction;
    (void)err;
    memmove(dst, src, bytes);
    return RFT_OK;
}

rft_status rft__cpu_memory_fill(rft__device *d, void *dst, int byte, size_t bytes, rft_error *err) {
    (void)d;
    (void)err;
    memset(dst, byte, bytes);
    return RFT_OK;
}

/* All CPU devices read all memory of the process. */
static const char process_memory = 0;

const void *rft__cpu_memory_of(const rft__device *d, const void *p) {
    (void)d;
    (void)p;
    return &process_memory;
}

const void *rft__cpu_memory_read(const rft__device *d) {
    (void)d;
    return &process_memory;
}

/* Runs return when y is ready: there is nothing to wait for. */
rft_status rft__cpu_sync(rft__device *d, void *stream, rft_error *err) {
    (void)d;
    (void)stream;
    (void)err;
    return RFT_OK;
}

rft_status rft__cpu_measure(rft__device *d, rft__timed_call *call, void *user, uint32_t count, rft_timing *timing,
                            rft_error *err) {
    (void)d;
    const double start = rft__now();
    for (uint32_t i = 0; i < count; i++) {
        RFT_TRY(call(user, i, NULL, err));
    }
    timing->device_seconds = timing->host_seconds = rft__now() - start;
    return RFT_OK;
}
