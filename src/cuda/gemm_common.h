/* SPDX-License-Identifier: Apache-2.0
 *
 * gemm_common.h - what the host halves of the product kernels share: how operands lie, what is aligned, tiles and waves,
 * launches, tensor maps. Included by the .c file of each family.
 */
#ifndef RFT_CUDA_GEMM_COMMON_H
#define RFT_CUDA_GEMM_COMMON_H

#include "cuda/cuda_family.h"
#include "cuda/kernels/hopper_layout.h"

enum { RFT__CUDA_MAX_GRID_Y = 65535 };

typedef struct rft__tiles {
    int64_t m, n, count; /* of one batch; of all batches */
} rft__tiles;

/* A packed W is K-contiguous, whatever it was packed from. */
static inline bool rft__cuda_w_mn(const rft__problem *p) {
    return (p->w.view || p->w_dynamic) && p->w.order == RFT_MN_CONTIGUOUS;
}

static inline bool rft__cuda_x_mn(const rft__problem *p) { return p->x_order == RFT_MN_CONTIGUOUS; }

static inline int rft__cuda_size(rft_type t) { return t == RFT_F32 ? 4 : 2; }

/* Whether every run of `bytes` bytes that begins at a multiple of itself within its row or column has an aligned address. */
static inline bool rft__cuda_runs_aligned(const void *p, int64_t ld, int64_t batch_stride, rft_type t, int bytes) {
    const int64_t per = bytes / rft__cuda_size(t);
    return (uintptr_t)p % (uintptr_t)bytes == 0 && ld % per == 0 && batch_stride % per == 0;
}

/* The rule that x or w breaks where its runs of so many bytes, 4, 8 or 16, must be aligned; NULL: none. */
static inline const char *rft__cuda_unaligned(const rft__problem *p, const rft__cuda_args *a, int x_bytes, int w_bytes) {
#define RFT_RULE(x, bytes) #x ", ld" #x " and its batch stride must be multiples of " #bytes " bytes"
    static const char *const rules[2][3] = {{RFT_RULE(x, 4), RFT_RULE(x, 8), RFT_RULE(x, 16)},
                                            {RFT_RULE(w, 4), RFT_RULE(w, 8), RFT_RULE(w, 16)}};
#undef RFT_RULE
    const bool batched = p->batch > 1;
    if (!rft__cuda_runs_aligned(a->x, a->ldx, batched ? a->x_batch_stride : 0, p->x, x_bytes)) {
        return rules[0][x_bytes / 8];
    }
    if (!rft__cuda_runs_aligned(a->w, a->ldw, batched ? a->w_batch_stride : 0, p->w.elem, w_bytes)) {
        return rules[1][w_bytes / 8];
    }
    return NULL;
}

/* An MN-contiguous W of gate and up halves has a second run of rows, from n / 2 on. */
static inline bool rft__cuda_halves_aligned(const rft__problem *p, int bytes) {
    return p->w.glu != RFT__GLU_HALVES || !rft__cuda_w_mn(p) || p->w.n / 2 % (bytes / rft__cuda_size(p->w.elem)) == 0;
}

static inline rft__tiles rft__cuda_tiles(const rft__problem *p, const rft__cuda_row *r, int64_t m) {
    const rft__tiles t = {rft__ceil_div(m, r->bm), rft__ceil_div(p->w.n, r->bn), 0};
    return (rft__tiles){t.m, t.n, t.m * t.n * p->batch};
}

/* Rows of tiles that the blocks of a wave walk down before they go right: such that a wave reads the fewest rows of x and w. */
static inline int rft__cuda_raster(const rft__cuda_row *r, rft__tiles t, int64_t wave) {
    int64_t best = 1, least = INT64_MAX;
    for (int64_t g = 1; g <= rft__min(t.m, 32); g++) {
        const int64_t rows = g * r->bm + rft__ceil_div(wave, g) * r->bn;
        best = rows <= least ? g : best;
        least = rft__min(rows, least);
    }
    return (int)best;
}

/* Blocks of one batch along x, batches along y, no more than may run side by side where multiprocessors are limited; wave: blocks
 * at a time. */
static inline rft__cuda_launch rft__cuda_tile_launch(const rft__cuda_facts *f, const rft__problem *p, const rft__cuda_row *r,
                                                     rft__tiles t, int64_t blocks, int64_t wave) {
    const int64_t across = f->limited ? rft__max(f->sms / rft__max(blocks, 1), 1) : RFT__CUDA_MAX_GRID_Y;
    return (rft__cuda_launch){.grid = {(unsigned)blocks, (unsigned)rft__min(p->batch, rft__min(across, RFT__CUDA_MAX_GRID_Y)), 1},
                              .block = 32 * (unsigned)r->warps,
                              .cluster = 1,
                              .number = {(int)t.m, (int)t.n, rft__cuda_raster(r, t, wave)}};
}

/* Seconds of `count` equal tiles. An SM takes its part of them, `resident` side by side, which share its units: `work` seconds a
 * step of each, but none is shorter than `least`. */
static inline double rft__cuda_waves(int64_t count, int sms, int resident, double steps, double work, double least) {
    const int64_t each = rft__ceil_div(count, sms);
    const double busy = (double)each * work, waits = (double)rft__ceil_div(each, resident) * least;
    return steps * (busy > waits ? busy : waits);
}

/* Bytes of x, w and y, each once, and the epilogue's. */
static inline double rft__cuda_traffic(const rft__problem *p, int64_t m) {
    const double rows = (double)m * (double)p->batch;
    return rft__matrix_bytes(&p->w) + rows * (double)p->w.k * rft__cuda_size(p->x) +
           rows * (double)p->epi.n_out * rft__cuda_size(p->y) + rft__epi_bytes(&p->epi, m, p->batch);
}

/* ---- tensor maps: boxes are 128 bytes along the contiguous side by `box` along the other ---- */

/* Element (i, j) of batch b at b * batch_stride + j * ld + i; a batch stride of 0: all batches share one matrix. */
static inline rft__cuda_map_spec rft__cuda_map_of(const void *address, rft_type t, int64_t along, int64_t across, int64_t batch,
                                                  int64_t ld, int64_t batch_stride, int box) {
    const uint64_t size = (uint64_t)rft__cuda_size(t);
    rft__cuda_map_spec s = {.address = address, .elem = t, .rank = batch > 1 ? 3 : 2, .swizzle = RFT_SWIZZLE_ROW};
    s.dim[0] = (uint64_t)along, s.dim[1] = (uint64_t)across, s.dim[2] = batch_stride != 0 ? (uint64_t)batch : 1;
    s.stride[1] = (uint64_t)ld * size;
    s.stride[2] = (batch_stride != 0 ? (uint64_t)batch_stride : (uint64_t)ld) * size;
    s.box[0] = (uint32_t)(RFT_SWIZZLE_ROW / size), s.box[1] = (uint32_t)box, s.box[2] = 1;
    return s;
}

static inline rft__cuda_map_spec rft__cuda_x_map(const rft__problem *p, const rft__cuda_args *a, int box) {
    const bool mn = rft__cuda_x_mn(p);
    return rft__cuda_map_of(a->x, p->x, mn ? a->m : a->k, mn ? a->k : a->m, p->batch, a->ldx, a->x_batch_stride, box);
}

static inline rft__cuda_map_spec rft__cuda_w_map(const rft__problem *p, const rft__cuda_args *a, int box) {
    const bool mn = rft__cuda_w_mn(p);
    return rft__cuda_map_of(a->w, p->w.elem, mn ? a->n : a->k, mn ? a->k : a->n, p->batch, a->ldw, a->w_batch_stride, box);
}

#endif
