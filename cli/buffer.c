/* SPDX-License-Identifier: Apache-2.0
 *
 * buffer.c - see buffer.h. Random data is made block by block, each of a seed of its own, so that cores can share the work and
 * the copy of one block in this program's memory is enough for a device.
 */
#include "buffer.h"
#include "team.h"

#include <stdlib.h>

#define BLOCK ((int64_t)1 << 18) /* elements; even, so that blocks of two elements a byte begin on a byte */

bool on_host(const rft_ctx *ctx) {
    rft_device_info device = {.struct_size = sizeof device};
    return rft_ctx_get_device(ctx, &device) == RFT_OK && device.arch == 0;
}

rft_status buffer_make(buffer *b, rft_ctx *ctx, size_t bytes, rft_error *err) {
    *b = (buffer){.ctx = ctx, .bytes = bytes};
    return rft_memory_alloc(ctx, bytes, &b->p, err);
}

void buffer_free(buffer *b) {
    if (b->p)
        rft_memory_free(b->ctx, b->p, b->bytes);
    *b = (buffer){0};
}

rft_status buffer_write(const buffer *b, size_t at, const void *src, size_t bytes, rft_error *err) {
    return rft_memory_write(b->ctx, (char *)b->p + at, src, bytes, err);
}

rft_status buffer_read(const buffer *b, size_t at, void *dst, size_t bytes, rft_error *err) {
    return rft_memory_read(b->ctx, dst, (const char *)b->p + at, bytes, err);
}

rft_status buffer_set(const buffer *b, int byte, rft_error *err) { return rft_memory_fill(b->ctx, b->p, byte, b->bytes, err); }

/* ---- random data ---- */

typedef struct random_job {
    rft_type type;
    char *dst;
    size_t block_bytes;
    int64_t count, first; /* first: number of the first block */
    uint64_t seed;
} random_job;

static void fill_block(void *arg, int i) {
    const random_job *job = arg;
    int64_t at = i * BLOCK, count = job->count - at < BLOCK ? job->count - at : BLOCK;
    uint64_t seed = job->seed + (uint64_t)(job->first + i) * 0x9e3779b97f4a7c15U;
    rft_fill_random(job->type, job->dst + (size_t)i * job->block_bytes, count, seed, NULL);
}

static int64_t blocks_of(int64_t count) { return (count + BLOCK - 1) / BLOCK; }

rft_status fill_random(rft_type type, void *dst, int64_t count, uint64_t seed, rft_error *err) {
    random_job job = {.type = type, .dst = dst, .count = count, .seed = seed};
    rft_status status = rft_fill_random(type, dst, count < BLOCK ? count : BLOCK, seed, err);
    if (status != RFT_OK || count <= BLOCK || !cli_bytes(type, BLOCK, &job.block_bytes))
        return status;
    team *t = team_create(0);
    if (!t)
        return rft_fill_random(type, dst, count, seed, err);
    team_for(t, (int)blocks_of(count), fill_block, &job);
    team_free(t);
    return RFT_OK;
}

rft_status buffer_random(const buffer *b, rft_type type, int64_t count, uint64_t seed, rft_error *err) {
    size_t bytes = 0;
    if (on_host(b->ctx))
        return fill_random(type, b->p, count, seed, err);
    cli_bytes(type, count, &bytes);
    void *data = cli_map(bytes);
    if (!data) {
        *err = (rft_error){.status = RFT_E_NOMEM, .message = "no memory for random data"};
        return RFT_E_NOMEM;
    }
    rft_status status = fill_random(type, data, count, seed, err);
    if (status == RFT_OK)
        status = buffer_write(b, 0, data, bytes, err);
    cli_unmap(data, bytes);
    return status;
}
