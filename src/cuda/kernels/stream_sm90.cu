/* SPDX-License-Identifier: Apache-2.0
 *
 * stream_sm90.cu - Y = X * W^T for up to RFT_BM tokens on Hopper's tensor cores: W streams through once, at memory's pace.
 * W stands on the side of wgmma that is always 64 rows, so that tokens are padded to 8 and no further.
 *
 *          W: RFT_BN rows          X: RFT_BM tokens           a stage of the ring, RFT_OPTION0 chunks:
 *         +---------------+       +-----------+               +--------------------+-----------+
 *      k  | 128 bytes     |    k  | 128 bytes |               | W  RFT_BN x 128 B  | X RFT_BM  |  x chunks
 *         | a chunk, a row|       | a row     |               +--------------------+-----------+
 *         +---------------+       +-----------+               rows swizzled by 128 bytes, as TMA writes and wgmma reads
 *
 *   producer warp:  [W W W W] wait for the kernel before  [X X X X]  then a stage as soon as one is free
 *   consumers:      warpgroup g has rows 64 g.. of the tile: 4 wgmma m64nNk16 a chunk
 *
 * The RFT_SPLIT blocks of a cluster have one part of k each. Sums meet at the end of a tile, a slab of RFT_OPTION1 tokens at a
 * time: each block packs a parcel for every other one, of the rows on which that one has the last word, and sends it by one bulk
 * copy (stream_layout.h); the owner adds the parts in ascending order of k, applies the epilogue and stores. Where clusters go
 * on to further tiles, the ring does not stop between them. Where each has but one (RFT_OPTION2), all its tokens meet at once,
 * over the ring.
 *
 * Shared memory: one block an SM, all of it: at 16 x 64 the ring keeps 11 x 16 KB of W under way, 23 MB on 132 SMs.
 * Registers: RFT_BM / 2 sums, of 128 with 13 warps, 168 with 9, 255 with 5.
 * Loads: an SM takes (RFT_BN + RFT_BM) * 2 bytes a k, its wgmma read (RFT_BN + RFT_BM * RFT_BN / 64) * 2 from shared memory,
 * which moves 128 bytes a clock in all: 128 x 128 costs 10 clocks a k so, 8 on the tensor cores.
 *
 * Measured on an H200, 2026-11-29: bf16, microseconds a launch in a graph of launches back to back, W from memory, best config;
 * in brackets cuBLASLt in other runs that day (at 128 the best of its kernels; gemm_sm90 is 5 to 15 % faster there since, and has
 * the rows of 128 tokens alone).
 *      n x k           M = 1      16           32     48     64           96     128
 *       2112 x 7168    8.6      8.8  (13.7)  9.2    9.6    9.8  (14.4)  12.4   13.9 (14.2)
 *       4096 x 4096    8.8      8.8  (13.5)  8.9    9.4    10.1 (12.2)  12.1   13.2 (12.7)
 *       4096 x 14336   28.1     28.2 (33.4)  28.4   28.8   29.1 (36.5)  32.2   36.0 (38.1)
 *       6144 x 4096    12.9     13.3 (15.8)  13.6   14.1   14.8 (16.3)  15.9   17.5 (16.6)
 *       7168 x 2048    7.7      7.8  (10.0)  8.0    8.3    8.7  (10.3)  10.3   11.3 (10.3)
 *       7168 x 16384   56.5     56.0 (65.5)  56.8   57.7   59.0 (64.2)  60.9   62.5 (71.0)
 *      24576 x 1536    17.6     18.1 (21.1)  18.6   19.1   19.4 (22.4)  21.4   23.3 (24.4)
 *      28672 x 4096    55.3     55.9 (59.2)  56.1   57.6   59.0 (62.7)  63.8   65.9 (62.9)
 * What grows with M is taken to be the end of a tile, when sums meet, outputs are stored and no bytes are under way: a reading of
 * these figures, not traced.
 */
#include "config.h"

#include "epilogue.cuh"
#include "hopper.cuh"
#include "stream_layout.h"

#define CONSUMERS        (RFT_BN / 64) /* warpgroups of 64 rows each; one more warp loads */
#define CONSUMER_THREADS (128 * CONSUMERS)
#define CONSUMER_WARPS   (4 * CONSUMERS)
#define THREADS          (32 * RFT_WARPS)
#define W_BYTES          (RFT_BN * RFT_SWIZZLE_ROW)
#define CHUNK_BYTES      (W_BYTES + RFT_BM * RFT_SWIZZLE_ROW)
#define STAGE_BYTES      (RFT_OPTION0 * CHUNK_BYTES)
#define STAGE_K          (RFT_OPTION0 * RFT_BK)
#define HALVES           (RFT_GLU == 1 ? 2 : 1)
#define GROUPS           (RFT_BN / 8)
#define SHARE            ((GROUPS / HALVES + RFT_SPLIT - 1) / RFT_SPLIT) /* rft__stream_share */
#define SLOTS            (HALVES * SHARE)
#define SLAB             RFT_OPTION1
#define ONCE             RFT_OPTION2 /* a cluster has one tile: its sums come where the ring was */
#define SLABS            (RFT_BM / SLAB)
#define TOKEN_GROUPS     (SLAB / 8)
#define PARCEL_BYTES     (SLAB / 8 * SLOTS * RFT_STREAM_PITCH * 4) /* rft__stream_parcel_bytes */
#define REGISTERS        (RFT_BM / 2) /* of a thread's sums */

/* A unit is what a thread finishes at a time: some rows of a fragment, or of two where the gate's belong to the up's, and one
 * token. Half fragments where whole ones would leave half of the threads without, or where the operands of a long list would
 * take too many registers. */
#define FRAGMENTS    (SHARE * TOKEN_GROUPS)
#define UNIT_ROWS    (FRAGMENTS * 8 >= CONSUMER_THREADS && RFT_EPI_COUNT <= 3 ? 8 : 4)
#define UNITS        (FRAGMENTS * 8 * (8 / UNIT_ROWS))
#define UNIT_COLUMNS (RFT_GLU == 2 ? UNIT_ROWS / 2 : UNIT_ROWS)
#define TILE_COLUMNS (RFT_GLU ? RFT_BN / 2 : RFT_BN)

extern __shared__ __align__(1024) unsigned char shared[];

typedef struct work {  /* of a block */
    int part;          /* of k, and rank in the cluster */
    int first, stride; /* tiles */
    int tiles, across; /* in all; of one batch */
    int begin, steps;  /* stages of k */
} work;

typedef struct cursor {
    int tile, step;
    rft__ring ring;
} cursor;

/* ---- shared memory ---- */

#define PARCELS (ONCE ? 0 : RFT_STAGES * STAGE_BYTES) /* where they begin */

RFT_FN unsigned barrier(int i) {
    const int sums = rft__stream_parcels(RFT_SPLIT) * PARCEL_BYTES;
    return rft__shared(shared) + rft__stream_data_bytes(RFT_STAGES * STAGE_BYTES, sums, ONCE) + 8 * i;
}
RFT_FN unsigned parcel(int i) { return PARCELS + i * PARCEL_BYTES; } /* offset in shared memory */
RFT_FN unsigned full(int stage) { return barrier(stage); }
RFT_FN unsigned empty(int stage) { return barrier(RFT_STAGES + stage); }
#define RECEIVED barrier(2 * RFT_STAGES)     /* the others' parcels are here */
#define READ     barrier(2 * RFT_STAGES + 1) /* every block has read what will be overwritten: send */

RFT_FN void barriers_init(void) {
    for (int i = 0; i < RFT_STAGES; i++) {
        rft__mbarrier_init(full(i), 1);
        rft__mbarrier_init(empty(i), CONSUMER_WARPS);
    }
    rft__mbarrier_init(RECEIVED, 1);
    rft__mbarrier_init(READ, RFT_SPLIT * CONSUMER_WARPS);
    rft__mbarrier_init_fence();
}

/* ---- the order of work ---- */

RFT_FN work work_of(const rft__cuda_args *a) {
    work w;
    const int stages = a->k / STAGE_K + (a->k % STAGE_K != 0), columns = RFT_GLU ? a->n / 2 : a->n;
    w.part = RFT_SPLIT > 1 ? (int)rft__cluster_rank() : 0;
    w.first = (int)blockIdx.x / RFT_SPLIT, w.stride = (int)gridDim.x / RFT_SPLIT;
    w.across = columns / TILE_COLUMNS + (columns % TILE_COLUMNS != 0);
    w.tiles = RFT_BATCHED ? w.across * a->batch : w.across;
    w.begin = rft__part_begin(stages, RFT_SPLIT, w.part);
    w.steps = rft__part_begin(stages, RFT_SPLIT, w.part + 1) - w.begin;
    return w;
}

RFT_FN cursor cursor_at(const work *w) {
    const cursor c = {w->first, 0, {0, 0}};
    return c;
}

RFT_FN void cursor_next(cursor *c, const work *w) {
    rft__ring_next(&c->ring, RFT_STAGES);
    if (++c->step == w->steps) {
        c->step = 0;
        c->tile += w->stride;
    }
}

RFT_FN int batch_of(int tile, const work *w) { return RFT_BATCHED ? tile / w->across : 0; }
RFT_FN int column_of(int tile, const work *w) { return (RFT_BATCHED ? tile % w->across : tile) * TILE_COLUMNS; }

/* ---- producer ---- */

RFT_FN void load_box(unsigned to, const rft__cuda_map *map, int k, int row, int batch, unsigned bar, unsigned long long policy) {
    if (RFT_BATCHED) {
        rft__map_load3(to, map, k, row, batch, bar, policy);
    } else {
        rft__map_load2(to, map, k, row, bar, policy);
    }
}

RFT_FN void load_w(const rft__cuda_args *a, const rft__cuda_map *map, const cursor *c, const work *w, unsigned long long policy) {
    const int row = column_of(c->tile, w) * (RFT_GLU == 2 ? 2 : 1), batch = a->w_batch_stride ? batch_of(c->tile, w) : 0;
    rft__mbarrier_expect(full(c->ring.stage), STAGE_BYTES);
    RFT_UNROLL
    for (int i = 0; i < RFT_OPTION0; i++) {
        const unsigned to = rft__shared(shared) + c->ring.stage * STAGE_BYTES + i * CHUNK_BYTES;
        const int k = (w->begin + c->step) * STAGE_K + i * RFT_BK;
        load_box(to, map, k, row, batch, full(c->ring.stage), policy);
        if (HALVES == 2) {
            load_box(to + W_BYTES / 2, map, k, a->n / 2 + row, batch, full(c->ring.stage), policy);
        }
    }
}

RFT_FN void load_x(const rft__cuda_args *a, const rft__cuda_map *map, const cursor *c, const work *w, unsigned long long policy) {
    const int batch = a->x_batch_stride ? batch_of(c->tile, w) : 0;
    RFT_UNROLL
    for (int i = 0; i < RFT_OPTION0; i++) {
        const unsigned to = rft__shared(shared) + c->ring.stage * STAGE_BYTES + i * CHUNK_BYTES + W_BYTES;
        load_box(to, map, (w->begin + c->step) * STAGE_K + i * RFT_BK, 0, batch, full(c->ring.stage), policy);
    }
}

/* One thread. number: tiles of each cluster, and how many clusters have one more. The first stages need no free buffer: their W
 * may come before the kernel before has ended, their X may not. */
RFT_FN void produce(const rft__cuda_args *a, const rft__cuda_map *x_map, const rft__cuda_map *w_map, const work *w) {
    const unsigned long long once = rft__policy_stream(), often = rft__policy_keep();
    const int total = (a->number[0] + (w->first < a->number[1])) * w->steps;
    const int ahead = total < RFT_STAGES ? total : RFT_STAGES;
    cursor c = cursor_at(w), x = c;
    if (!RFT_W_EARLY) {
        rft__pdl_wait();
    }
    for (int i = 0; i < ahead; i++, cursor_next(&c, w)) {
        load_w(a, w_map, &c, w, once);
    }
    if (RFT_W_EARLY) {
        rft__pdl_wait();
    }
    for (int i = 0; i < ahead; i++, cursor_next(&x, w)) {
        load_x(a, x_map, &x, w, often);
    }
    for (int i = ahead; i < total; i++, cursor_next(&c, w)) {
        rft__await(empty(c.ring.stage), c.ring.parity ^ 1);
        load_w(a, w_map, &c, w, once);
        load_x(a, x_map, &c, w, often);
    }
}

/* ---- consumers ---- */

/* One stage: d += W * X^T for this warpgroup's rows. stage: address of the first chunk. */
RFT_FN void multiply(float *d, unsigned stage, int warpgroup) {
    RFT_UNROLL
    for (int i = 0; i < RFT_OPTION0; i++) {
        const unsigned chunk = stage + i * CHUNK_BYTES;
        const unsigned long long rows = rft__descriptor_k_major(chunk + warpgroup * 64 * RFT_SWIZZLE_ROW);
        const unsigned long long x = rft__descriptor_k_major(chunk + W_BYTES);
        RFT_UNROLL
        for (int k = 0; k < 4; k++) {
            RFT_WGMMA_N(RFT_BM)
            (d, rft__descriptor_add(rows, k * RFT_DESCRIPTOR_STEP_K), rft__descriptor_add(x, k * RFT_DESCRIPTOR_STEP_K), 1);
        }
    }
}

/* This part's sums of one tile. A stage is given back when the next one's wgmma are on their way. */
RFT_FN void tile_sums(float *d, int steps, rft__ring *ring, int warpgroup, bool speaker) {
    int done = -1;
    RFT_UNROLL
    for (int i = 0; i < REGISTERS; i++) {
        d[i] = 0;
    }
#pragma unroll 1
    for (int i = 0; i < steps; i++) {
        rft__await(full(ring->stage), ring->parity);
        rft__wgmma_fence();
        multiply(d, rft__shared(shared) + ring->stage * STAGE_BYTES, warpgroup);
        rft__wgmma_commit();
        RFT_WGMMA_WAIT(1);
        if (speaker && done >= 0) {
            rft__mbarrier_arrive(empty(done));
        }
        done = ring->stage;
        rft__ring_next(ring, RFT_STAGES);
    }
    RFT_WGMMA_WAIT(0);
    if (speaker && done >= 0) {
        rft__mbarrier_arrive(empty(done));
    }
}

/* ---- sums meet: each fragment goes to the block that finishes it ---- */

/* A warp's register pair is 256 bytes in a row of a parcel. */
RFT_FN void pack(float *d, int part, int warpgroup) {
    const rft__stream_share share = rft__stream_share_of(GROUPS, HALVES, RFT_SPLIT);
    const int warp = (int)threadIdx.x / 32 % 4, lane = (int)threadIdx.x % 32;
    RFT_UNROLL
    for (int high = 0; high < 2; high++) {
        const int group = warpgroup * 8 + warp * 2 + high;
        const int slot = rft__stream_slot(share, group), owner = rft__stream_owner(share, group);
        float *const to = (float *)(shared + parcel(rft__stream_parcel(RFT_SPLIT, part, owner))) + 2 * lane;
        RFT_UNROLL
        for (int j = 0; j < TOKEN_GROUPS; j++) {
            const int r = 4 * j + 2 * high;
            *(float2 *)(to + rft__stream_place(j, slot, SLOTS)) = make_float2(d[r], d[r + 1]);
        }
    }
}

/* One thread a parcel. */
RFT_FN void send(int part) {
    const int i = (int)threadIdx.x, owner = i + (i >= part);
    rft__cluster_copy(rft__cluster_map(rft__shared(shared) + parcel(part), owner), rft__shared(shared) + parcel(RFT_SPLIT + i),
                      PARCEL_BYTES, rft__cluster_map(RECEIVED, owner));
}

/* Every block of the cluster may overwrite what this warp has read: one arrival at each. */
RFT_FN void release(void) {
    if (RFT_SPLIT > 1) {
        __syncwarp();
        if (threadIdx.x % 32 < RFT_SPLIT) {
            rft__mbarrier_free_at(READ, threadIdx.x % 32);
        }
    }
}

/* round: parity of the slab's number in this block. Returns with all parts of this block's rows in its shared memory. Where the
 * sums come over the ring, this block has read its own before it packs, the others theirs before it sends. */
RFT_FN void exchange(float *d, int part, int warpgroup, unsigned round) {
    if (ONCE || RFT_SPLIT == 1) {
        release();
        rft__bar_sync(1, CONSUMER_THREADS);
    } else {
        rft__await(READ, round ^ 1);
    }
    pack(d, part, warpgroup);
    if (RFT_SPLIT > 1) {
        rft__fence_async();
    }
    rft__bar_sync(1, CONSUMER_THREADS);
    if (RFT_SPLIT > 1) {
        if (threadIdx.x == 0) {
            rft__mbarrier_expect(RECEIVED, (RFT_SPLIT - 1) * PARCEL_BYTES);
        }
        if (threadIdx.x < RFT_SPLIT - 1) {
            if (ONCE) {
                rft__await(READ, round);
            }
            send(part);
        }
        rft__await_cluster(RECEIVED, round);
    }
}

/* The next slab's sums to where the first one's were. */
RFT_FN void next_slab(float *d) {
    RFT_UNROLL
    for (int r = 0; r + SLAB / 2 < REGISTERS; r++) {
        d[r] = d[r + SLAB / 2];
    }
}

typedef struct unit {
    int token, column, valid, batch; /* of y */
    int place;                       /* of the first float in a parcel */
} unit;

RFT_FN unit unit_of(int u, int tile, int slab, const work *w, const rft__cuda_args *a) {
    const int row = u / 8 % (8 / UNIT_ROWS) * UNIT_ROWS, fragment = u / (64 / UNIT_ROWS);
    const int slot = fragment % SHARE, token_group = fragment / SHARE;
    const rft__stream_share share = rft__stream_share_of(GROUPS, HALVES, RFT_SPLIT);
    const int group = rft__stream_begin(share, w->part) + slot, tile_row = group * 8 + row;
    unit t;
    t.batch = batch_of(tile, w);
    t.token = slab * SLAB + token_group * 8 + u % 8;
    t.column = column_of(tile, w) + (RFT_GLU == 2 ? tile_row / 2 : tile_row);
    const int left = (RFT_GLU ? a->n / 2 : a->n) - t.column;
    t.valid = t.token >= a->m || group >= rft__stream_begin(share, w->part + 1) ? 0 : left < UNIT_COLUMNS ? left : UNIT_COLUMNS;
    t.place = rft__stream_place(token_group, slot, SLOTS) + row * 8 + u % 8;
    return t;
}

/* Rows of one unit: the parts in ascending order of k. */
RFT_FN void gather(const float *from, float *v) {
    RFT_UNROLL
    for (int p = 0; p < RFT_SPLIT; p++) {
        RFT_UNROLL
        for (int i = 0; i < UNIT_ROWS; i++) {
            const float part = from[p * (PARCEL_BYTES / 4) + 8 * i];
            v[i] = p ? v[i] + part : part;
        }
    }
}

typedef struct outputs {
    float v[UNIT_ROWS], up[UNIT_ROWS];
} outputs;

RFT_FN void sum(const unit *t, outputs *y) {
    const float *from = (const float *)(shared + PARCELS) + t->place;
    gather(from, y->v);
    if (RFT_GLU == 1) {
        gather(from + SHARE * RFT_STREAM_PITCH, y->up);
    } else if (RFT_GLU == 2) {
        RFT_UNROLL
        for (int i = 0; i < UNIT_COLUMNS; i++) {
            y->up[i] = y->v[2 * i + 1], y->v[i] = y->v[2 * i];
        }
    }
}

RFT_FN void fetch(const rft__cuda_args *a, const unit *t, rft__epi_operands *o) {
    rft__epi_fetch(a, t->batch, t->token, t->column, UNIT_COLUMNS, t->valid, o);
}

/* A debug build: what finish makes y of, or a part of it. */
RFT_FN void dump(const rft__cuda_args *a, const unit *t, const outputs *y) {
    if (RFT_DUMPS(RFT_DUMP_ACC)) {
        RFT_DUMP_SPAN(a, t->batch, t->token, t->column, y->v, y->up, UNIT_COLUMNS, t->valid);
    }
    for (int p = 0; p < RFT_SPLIT; p++) {
        const float *const from = (const float *)(shared + PARCELS) + t->place + p * (PARCEL_BYTES / 4);
        float v[UNIT_ROWS], up[UNIT_ROWS];
        RFT_UNROLL
        for (int i = 0; i < UNIT_COLUMNS && RFT_DUMPS(RFT_DUMP_PART(p)); i++) {
            v[i] = from[8 * (RFT_GLU == 2 ? 2 * i : i)];
            up[i] = RFT_GLU ? from[RFT_GLU == 2 ? 8 * (2 * i + 1) : SHARE * RFT_STREAM_PITCH + 8 * i] : 0.0f;
        }
        if (RFT_DUMPS(RFT_DUMP_PART(p))) {
            RFT_DUMP_SPAN(a, t->batch, t->token, t->column, v, up, UNIT_COLUMNS, t->valid);
        }
    }
    (void)a, (void)t, (void)y;
}

RFT_FN void finish(const rft__cuda_args *a, const unit *t, const rft__epi_operands *o, outputs *y) {
    dump(a, t, y);
    rft__epi_apply(a, t->batch, t->token, t->column, o, y->v, y->up, UNIT_COLUMNS, t->valid);
    rft__store_span(a, t->batch, t->token, t->column, y->v, UNIT_COLUMNS, t->valid);
}

RFT_FN void fetch_first(const rft__cuda_args *a, const unit *t, rft__epi_operands *o) {
    if (threadIdx.x < UNITS) {
        fetch(a, t, o);
    }
}

/* The sums of one slab, whose first operands are here: finished and stored. A later unit's operands and sums are on their way
 * while the unit before is stored. */
RFT_FN void finish_slab(const rft__cuda_args *a, const work *w, int tile, int slab, unit *t, rft__epi_operands *o) {
    outputs y;
    if (threadIdx.x < UNITS) {
        sum(t, &y);
    }
#pragma unroll 1
    for (int u = (int)threadIdx.x; u < UNITS; u += CONSUMER_THREADS) {
        const int after = u + CONSUMER_THREADS;
        const unit now = *t;
        const rft__epi_operands operands = *o;
        outputs ready = y;
        if (after < UNITS) {
            *t = unit_of(after, tile, slab, w, a);
            fetch(a, t, o);
            sum(t, &y);
        }
        finish(a, &now, &operands, &ready);
    }
}

/* Operands of a thread's first unit come while the tile streams, where registers are left for them. */
RFT_FN void consume(const rft__cuda_args *a, const work *w) {
    const int warpgroup = CONSUMERS > 1 ? __shfl_sync(0xffffffffu, (int)threadIdx.x / 128, 0) : 0; /* uniform for the compiler */
    const bool speaker = threadIdx.x % 32 == 0, early = REGISTERS <= 48;
    rft__ring ring = {0, 0};
    unsigned round = 0;
    rft__pdl_wait();
#pragma unroll 1
    for (int tile = w->first; tile < w->tiles; tile += w->stride) {
        float d[REGISTERS];
        rft__epi_operands o;
        unit t;
        if (early) {
            t = unit_of((int)threadIdx.x, tile, 0, w, a);
            fetch_first(a, &t, &o);
        }
        tile_sums(d, w->steps, &ring, warpgroup, speaker);
#pragma unroll 1
        for (int slab = 0; slab < SLABS; slab++, round ^= 1) {
            if (slab > 0) {
                next_slab(d);
            }
            if (slab > 0 || !early) {
                t = unit_of((int)threadIdx.x, tile, slab, w, a);
                fetch_first(a, &t, &o);
            }
            const bool last = ONCE || (slab + 1 == SLABS && tile + w->stride >= w->tiles);
            exchange(d, w->part, warpgroup, round);
            if (RFT_SPLIT > 1 && last) {
                __syncwarp();
                rft__cluster_arrive_relaxed();
            }
            finish_slab(a, w, tile, slab, &t, &o);
            if (!last) {
                release(); /* these sums */
            }
        }
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, 1)
    stream_sm90(const __grid_constant__ rft__cuda_args args, const __grid_constant__ rft__cuda_map x_map,
                const __grid_constant__ rft__cuda_map w_map, const __grid_constant__ rft__cuda_map y_map) {
    const work w = work_of(&args);
    const bool loads = threadIdx.x >= CONSUMER_THREADS;
    rft__pdl_launch();
    if (loads && rft__elect()) {
        rft__map_prefetch(&w_map);
        rft__map_prefetch(&x_map);
        barriers_init();
    }
    __syncthreads();
    if (RFT_SPLIT > 1) {
        rft__cluster_arrive_relaxed();
    }
    if (loads) {
        if (rft__elect()) {
            produce(&args, &x_map, &w_map, &w);
        }
        __syncwarp();
    }
    if (RFT_SPLIT > 1) {
        rft__cluster_wait(); /* those that send must find the others' barriers */
    }
    if (!loads) {
        consume(&args, &w);
    } else if (RFT_SPLIT > 1) {
        rft__cluster_arrive_relaxed();
    }
    if (RFT_SPLIT > 1) {
        __syncwarp();
        rft__cluster_wait(); /* a block may leave when those to whom it sent have received */
    }
    (void)y_map;
}
