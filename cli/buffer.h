/* SPDX-License-Identifier: Apache-2.0
 *
 * buffer.h - memory that the products of a context read and write: of its device, filled and looked at from here.
 * bench keeps weights, activations and results in buffers, so that one text serves the CPU and a GPU.
 */
#ifndef BUFFER_H
#define BUFFER_H

#include "cli.h"

typedef struct buffer {
    rft_ctx *ctx;
    void *p; /* for the library's calls; to be read here only where the context is the CPU's */
    size_t bytes;
} buffer;

/* Whether the context's memory is this program's own. */
bool on_host(const rft_ctx *ctx);

rft_status buffer_make(buffer *b, rft_ctx *ctx, size_t bytes, rft_error *err);
void buffer_free(buffer *b); /* a zeroed one is allowed */
rft_status buffer_write(const buffer *b, size_t at, const void *src, size_t bytes, rft_error *err);
rft_status buffer_read(const buffer *b, size_t at, void *dst, size_t bytes, rft_error *err);
rft_status buffer_set(const buffer *b, int byte, rft_error *err);
/* Fills it from its start with random elements; the same for the same seed. */
rft_status buffer_random(const buffer *b, rft_type type, int64_t count, uint64_t seed, rft_error *err);

/* The same values in memory of this program, by all its cores. */
rft_status fill_random(rft_type type, void *dst, int64_t count, uint64_t seed, rft_error *err);

#endif
