/* SPDX-License-Identifier: Apache-2.0
 *
 * gemm_sm90.cu - Y = epilogue(X W^T) on Hopper for m from about 65 on: persistent blocks, one warpgroup that loads, one or two
 * that multiply. Launched by gemm_sm90.c, whose text() adds to config.h: RFT_WM x RFT_WN, the tile of a warpgroup as wgmma has
 * it, with rows of X above, or those of W where RFT_TURNED; RFT_X_BOX and RFT_W_BOX, rows of a TMA box; RFT_PACKED, RFT_DEFERRED,
 * RFT_ROLLED, RFT_AHEAD, RFT_RESIDUAL and its operand, the way of the epilogue.
 *
 *            W rows: bn            ring in shared memory, `stages` deep, 128-byte swizzle:
 *          +-----------+             X bm x bk and W bn x bk, by TMA; full[s]: the bytes have come,
 *   X rows |  WG 1     | wm          empty[s]: every warp that multiplies, in every block of the cluster, has done with it
 *   bm     +-----------+           clusters of 2 and 2 x 2: two blocks load halves of an operand they share, to both
 *          |  WG 2     | wm        ping-pong: each warpgroup has a tile of its own, and one multiplies while the other finishes
 *          +-----------+ wn        split: the blocks of a cluster sum parts of k, then add them up in order of k
 *                                  tail: the last tiles alone are split so, by the two blocks of a cluster
 *
 * Figures of 128 x 256 x 64 (16-bit): a stage 48 KiB, 4 stages; a step 4 wgmma m64n256k16 a warpgroup, 4.2 MFLOP a block, and
 * 80 KiB read from shared memory in 1024 clocks (80 of 128 bytes a clock); with a shared W 32 KiB from L2 in that time.
 * Registers: 168 at launch; 40 where TMA is issued, 232 where wgmma is: 128 accumulators, and 64 of y that waits to be stored; up
 * to 192 accumulators where warpgroups take turns, as nothing waits there.
 * Best configs on an H200, bf16, us at m = 128, 256, 512, 1024; in front: before W passed L2, tiles of 224, 144, 96, 2 x 2.
 *      4096 x 4096   13.6 13.2 12.3   21.0 17.1 15.5    28.6  25.9  24.4    46.0  43.7
 *      2112 x 7168   15.2 14.8 13.2   24.4 18.7 17.8    38.2  26.4  23.4    53.5  42.8
 *      7168 x 2048   10.2 10.2  9.7   15.3 13.3 12.8    24.0  21.6  23.8    44.2  40.5
 *     28672 x 4096   64.1 59.9 61.5   89.3 81.5 (a)    162.0 154.8  (a)    306.8 297.7
 * The last of each: stages of 64 k in the small tiles, so that 6 of 8 are on their way where 2 of 4 were, and tiles of 64 x 64 to
 * 112 and 128 x 112. (a): from some ten GFLOP on, calls in a row draw 690 W, the clock falls from 1980 to 1400 MHz, and a figure
 * says little without the peer's of the same minute: 96 and 178 us there, cuBLASLt 96 and 184.
 *
 * What a busy chip told (24576 x 1536, m = 2048, 128 x 256, us; cuBLASLt 229 in the same minute):
 *     258   no operand shared                               251   W shared by two blocks: L2 gives a third less
 *     236   y stored by TMA, next unit found under wgmma    249   the same, stored by the warps
 *     251   without y stored    238  all loads the same     195   no loads: time is energy, and loads are a fifth of it
 * Rows of a box that are not there take TMA some 4 clocks each: 4096 x 4096 at m = 96 took 16.4 us with a box of 128 rows, 12.6
 * with one of 96, and m = 200 took 24.9 where m = 256 takes 15.6; so the last tile has boxes of its own.
 */
#include "config.h"
#if RFT_TURNED
#define RFT_WGMMA_A_MN RFT_W_MN
#define RFT_WGMMA_B_MN RFT_X_MN
#else
#define RFT_WGMMA_A_MN RFT_X_MN
#define RFT_WGMMA_B_MN RFT_W_MN
#endif
#include "gemm_sm90_epilogue.cuh"

#define CONSUMERS (RFT_WARPS / 4 - 1)
#define SHARES_W (RFT_OPTION0 & 1)      /* by two blocks, one below the other */
#define SHARES_X (RFT_OPTION0 >> 1 & 1) /* by two blocks side by side */
#define PING_PONG RFT_OPTION1
#define TAIL RFT_OPTION2 /* 1: the last tiles of a grid are shared by the blocks of a cluster */
#define PARTS (RFT_SPLIT > 1 ? RFT_SPLIT : 2) /* of a tile that is shared */
#define ROUNDS (SPANS_ROW / 2 / SHARED_SPANS) /* of a chunk's spans, each by a warp */
#define RELEASES (1 + SHARES_W + SHARES_X)    /* blocks that a stage is released to */

#define ELEMENT (RFT_COMPUTE_TYPE == 4 ? 4 : 2)
#define X_BYTES (RFT_BM * RFT_SWIZZLE_ROW)
#define W_BYTES (RFT_BN * RFT_SWIZZLE_ROW)
#define STAGE_BYTES (X_BYTES + W_BYTES)
#define RING_BYTES (RFT_STAGES * STAGE_BYTES)
#define STAGED_BYTES (STAGED_CHUNKS * RFT_Y_CHUNK_BYTES) /* by a warp */
#define RESIDUAL_ALL ((RFT_BN + RFT_CHUNK_COLUMNS - 1) / RFT_CHUNK_COLUMNS) /* chunks of a tile's rows */
#define RESIDUAL_SLOTS ((RESIDUAL_ALL + RESIDUAL_CHUNKS - 1) / RESIDUAL_CHUNKS)
#define STAGING_BYTES (RFT_SPLIT > 1 ? 0 : CONSUMERS * 4 * STAGED_BYTES)

#if RFT_BK * ELEMENT != RFT_SWIZZLE_ROW
#error "a stage has one swizzled row of k"
#endif
#if RFT_RESIDUAL && RESIDUAL_SLOTS > 2
#error "a matrix comes in at most two slots"
#endif

typedef struct maps {
    const rft__cuda_map *x, *w, *y, *x_last, *w_last; /* the last: with the boxes of tiles that go beyond m or n */
    const rft__cuda_map *residual;
} maps;

typedef struct cta { /* what a block knows */
    const rft__cuda_args *a;
    maps map;
    char *memory;               /* the ring, then what is staged, then barriers */
    unsigned ring, full, empty; /* shared addresses */
    int rank;                   /* in the cluster: where operands are shared, 2 x 2 blocks go across first */
    unsigned long long x_policy, w_policy;
    bool residual; /* the list's matrix comes through the ring */
} cta;

typedef struct work {
    int m0, n0, batch;      /* first row of X and of W */
    int step, steps, parts; /* of k: the first, how many, and blocks that share the tile, each with steps of its own */
} work;

/* ---- what to work on: units from the cluster's index on, by the number of clusters ---- */

RFT_FN int first_unit(void) { return (int)blockIdx.x / RFT_CLUSTER; }
RFT_FN int unit_stride(void) { return (int)gridDim.x / RFT_CLUSTER; }

/* Parts of a tail are of one length, as the blocks' rings go on in step: what is beyond k is zero. */
RFT_FN void take_part(const cta *b, int parts, work *w) {
    const int all = w->steps, half = (all + 1) / 2;
    w->parts = parts;
    w->step = TAIL ? b->rank * half : rft__part_begin(all, parts, b->rank);
    w->steps = TAIL ? half : rft__part_begin(all, parts, b->rank + 1) - w->step;
}

/* False: there is no such unit. */
RFT_FN bool work_at(const cta *b, int unit, work *w) {
    const int units = b->a->number[3], tail = TAIL ? rft__tail_units(units, unit_stride()) : 0, full = units - tail;
    const bool in_tail = TAIL && unit >= full;
    const int of_tail = unit - full, at = in_tail ? full + of_tail / 2 : unit, rank = in_tail ? of_tail % 2 : b->rank;
    if (unit >= full + 2 * tail) {
        return false;
    }
    const rft__unit u = rft__unit_at(at, b->a->number, SHARES_W ? 2 : 1, SHARES_X ? 2 : 1, rank);
    w->m0 = u.tile_m * RFT_BM, w->n0 = u.tile_n * RFT_BN, w->batch = RFT_BATCHED ? u.batch : 0;
    w->step = 0, w->steps = (b->a->k - 1) / RFT_BK + 1, w->parts = 1;
    if (in_tail || RFT_SPLIT > 1) {
        take_part(b, in_tail ? 2 : RFT_SPLIT, w);
    }
    return true;
}

/* Whether blocks have a part of this tile each. Told by its steps: `parts` would take a register through the loop of products. */
RFT_FN bool is_shared(const cta *b, const work *w) {
    return RFT_SPLIT > 1 || (TAIL && w->steps < (b->a->k - 1) / RFT_BK + 1);
}

/* ---- the warpgroup that loads: one thread ---- */

/* One box to where it belongs, or to the same place in each of `blocks`, a set, if that is not empty. */
RFT_FN void load_box(unsigned to, const rft__cuda_map *map, int c0, int c1, int batch, unsigned full, unsigned blocks,
                     unsigned long long policy) {
    if (blocks != 0 && RFT_BATCHED) {
        rft__map_load3_multicast(to, map, c0, c1, batch, full, (unsigned short)blocks, policy);
    } else if (blocks != 0) {
        rft__map_load2_multicast(to, map, c0, c1, full, (unsigned short)blocks, policy);
    } else if (RFT_BATCHED) {
        rft__map_load3(to, map, c0, c1, batch, full, policy);
    } else {
        rft__map_load2(to, map, c0, c1, full, policy);
    }
}

typedef struct box { /* of an operand: where its rows come from, and how many they are */
    const rft__cuda_map *map;
    int rows;
} box;

RFT_FN box x_box(const cta *b, const work *w) {
    const bool last = !RFT_X_MN && w->m0 + RFT_BM > b->a->m;
    const box x = {last ? b->map.x_last : b->map.x, last ? b->a->number[4] : RFT_X_BOX};
    return x;
}

RFT_FN box w_box(const cta *b, const work *w) {
    const bool last = !RFT_W_MN && RFT_GLU != 1 && w->n0 + RFT_BN > b->a->n;
    const box v = {last ? b->map.w_last : b->map.w, last ? b->a->number[5] : RFT_W_BOX};
    return v;
}

/* What a stage waits for. */
RFT_FN unsigned stage_bytes(const cta *b, const work *w) {
    return STAGE_BYTES - (RFT_X_BOX - x_box(b, w).rows) * (X_BYTES / RFT_X_BOX) -
           (RFT_W_BOX - w_box(b, w).rows) * (W_BYTES / RFT_W_BOX);
}

RFT_FN void load_x(const cta *b, int stage, const work *w, int k) {
    const unsigned to = b->ring + stage * STAGE_BYTES, full = b->full + 8 * stage;
    const unsigned blocks = SHARES_X && w->parts == 1 ? 3u << b->rank / 2 * 2 : 0;
    const box x = x_box(b, w);
    RFT_UNROLL
    for (int i = 0; i < RFT_BM / RFT_X_BOX; i++) {
        const int row = w->m0 + i * x.rows;
        if (blocks == 0 || i % 2 == b->rank % 2) {
            load_box(to + i * x.rows * 128, x.map, RFT_X_MN ? row : k, RFT_X_MN ? k : row, w->batch, full, blocks, b->x_policy);
        }
    }
}

RFT_FN void load_w(const cta *b, int stage, const work *w, int k) {
    const unsigned to = b->ring + stage * STAGE_BYTES + X_BYTES, full = b->full + 8 * stage;
    const int batch = b->a->w_batch_stride != 0 ? w->batch : 0, below = b->rank / (1 + SHARES_X);
    const unsigned blocks = SHARES_W && w->parts == 1 ? SHARES_X ? 5u << b->rank % 2 : 3u : 0;
    const box v = w_box(b, w);
    RFT_UNROLL
    for (int i = 0; i < RFT_BN / RFT_W_BOX; i++) {
        const int c = i * v.rows, row = rft__tile_w_row(w->n0 + c / RFT_WN * RFT_WN, c % RFT_WN, RFT_WN, b->a->n, RFT_GLU == 1);
        if (blocks == 0 || i % 2 == below) {
            load_box(to + c * 128, v.map, RFT_W_MN ? row : k, RFT_W_MN ? k : row, batch, full, blocks, b->w_policy);
        }
    }
}

RFT_FN bool residual_by_map(const rft__cuda_args *a) {
    const rft__cuda_operand *const o = &a->operand[RFT_RESIDUAL_OPERAND];
    return RFT_RESIDUAL && rft__fits_map((unsigned long long)o->ptr, o->ld, RFT_BATCHED ? o->batch_stride : 0);
}

/* The list's matrix at a whole tile: the slots behind its last step, chunk by chunk. */
RFT_FN void load_residual(const cta *b, rft__ring *ring, const work *w) {
    const int batch = b->a->operand[RFT_RESIDUAL_OPERAND].batch_stride != 0 ? w->batch : 0;
    RFT_UNROLL
    for (int first = 0; first < RESIDUAL_ALL; first += RESIDUAL_CHUNKS) {
        const int count = min(RESIDUAL_CHUNKS, RESIDUAL_ALL - first);
        const unsigned full = b->full + 8 * ring->stage, slot = b->ring + ring->stage * STAGE_BYTES;
        rft__await(b->empty + 8 * ring->stage, ring->parity ^ 1);
        rft__mbarrier_expect(full, count * RFT_BM * 128);
        RFT_UNROLL
        for (int i = 0; i < count; i++) {
            load_box(slot + i * RFT_BM * 128, b->map.residual, w->n0 + (first + i) * RFT_CHUNK_COLUMNS, w->m0, batch, full, 0,
                     rft__policy_stream());
        }
        rft__ring_next(ring, RFT_STAGES);
    }
}

/* W does not depend on the kernel before: as much of it as the ring holds may be under way before X may be read. */
RFT_FN int load_w_early(const cta *b) {
    work w;
    const int early = RFT_W_EARLY && work_at(b, first_unit(), &w) ? min(w.steps, RFT_STAGES) : 0;
    for (int i = 0; i < early; i++) {
        rft__mbarrier_expect(b->full + 8 * i, stage_bytes(b, &w));
        load_w(b, i, &w, (w.step + i) * RFT_BK);
    }
    return early;
}

/* Where the raster walks down all rows before it goes right, W passes L2 once, and X stays. */
RFT_FN void choose_policies(cta *b) {
    const bool once = b->a->number[0] <= b->a->number[2];
    b->x_policy = once ? rft__policy_keep() : rft__policy_normal();
    b->w_policy = once ? rft__policy_stream() : rft__policy_normal();
}

/* All releases of this block's stages have come, so that it may leave: see leave(). */
RFT_FN void await_releases(const cta *b, rft__ring ring) {
    _Pragma("unroll 1")
    for (int s = 0; s < RFT_STAGES; s++) {
        rft__await(b->empty + 8 * s, s < ring.stage ? ring.parity : ring.parity ^ 1);
    }
}

RFT_FN void produce(cta *b) {
    rft__ring ring = {0, 0};
    choose_policies(b);
    int early = load_w_early(b);
    rft__pdl_wait();
    work w;
    for (int unit = first_unit(); work_at(b, unit, &w); unit += unit_stride()) {
        for (int i = w.step; i < w.step + w.steps; i++) {
            if (early > 0) {
                early--;
            } else {
                rft__await(b->empty + 8 * ring.stage, ring.parity ^ 1);
                rft__mbarrier_expect(b->full + 8 * ring.stage, stage_bytes(b, &w));
                load_w(b, ring.stage, &w, i * RFT_BK);
            }
            load_x(b, ring.stage, &w, i * RFT_BK);
            rft__ring_next(&ring, RFT_STAGES);
        }
        if (b->residual && !is_shared(b, &w)) {
            load_residual(b, &ring, &w);
        }
    }
    if (RELEASES > 1 && !TAIL) {
        await_releases(b, ring);
    }
}

/* ---- warpgroups that multiply ---- */

typedef struct role { /* of a warpgroup that multiplies */
    int group;        /* 0, 1 */
    int m, n;         /* first row and column (of W) in the tile */
    unsigned a, b;    /* bytes from a stage's begin to its rows on either side of wgmma */
} role;

RFT_FN role role_of(int group) {
    const int rows = RFT_TURNED ? RFT_BN : RFT_BM, in_turn = PING_PONG ? 0 : group;
    const int a = in_turn * RFT_WM % rows, b = in_turn * RFT_WM / rows * RFT_WN;
    const unsigned w = X_BYTES;
    const role r = {group, RFT_TURNED ? b : a, RFT_TURNED ? a : b, (RFT_TURNED ? w : 0) + a * RFT_SWIZZLE_ROW,
                    (RFT_TURNED ? 0 : w) + b * RFT_SWIZZLE_ROW};
    return r;
}

/* One stage into the accumulators, 32 bytes of k at a time. a, b: shared addresses of this warpgroup's rows on either side. */
RFT_FN void multiply(float acc[M_BLOCKS][RFT_WN / 2], unsigned a, unsigned b, bool accumulate) {
    const unsigned long long da = RFT_WGMMA_A_MN ? rft__descriptor_mn_major(a, 128 * RFT_BK) : rft__descriptor_k_major(a);
    const unsigned long long db = RFT_WGMMA_B_MN ? rft__descriptor_mn_major(b, 128 * RFT_BK) : rft__descriptor_k_major(b);
    RFT_UNROLL
    for (int s = 0; s < RFT_SWIZZLE_ROW / 32; s++) {
        const int sa = s * (RFT_WGMMA_A_MN ? RFT_DESCRIPTOR_STEP_MN : RFT_DESCRIPTOR_STEP_K);
        const int sb = s * (RFT_WGMMA_B_MN ? RFT_DESCRIPTOR_STEP_MN : RFT_DESCRIPTOR_STEP_K);
        RFT_UNROLL
        for (int i = 0; i < M_BLOCKS; i++) {
            RFT_WGMMA_N(RFT_WN)(acc[i], da + sa + i * (RFT_WGMMA_A_MN ? 8 * RFT_BK : 64 * 8), db + sb, s > 0 || accumulate);
        }
    }
}

/* This warp has read the stage for the last time. Blocks that load into it: this one, the one beside, the one below or above. */
RFT_FN void release(const cta *b, int stage) {
    const int lane = threadIdx.x % 32;
    if (RELEASES > 1) {
        if (lane < RELEASES) {
            rft__mbarrier_free_at(b->empty + 8 * stage, b->rank ^ lane);
        }
    } else if (lane == 0) {
        rft__mbarrier_arrive(b->empty + 8 * stage);
    }
}

/* ---- warpgroups that multiply: a tile ---- */

/* Step i of a tile: one stage is multiplied, the one before is released once its wgmma is done. So two groups of wgmma are
 * under way, and the tensor cores never wait for a barrier. */
RFT_FN void multiply_step(const cta *b, float acc[M_BLOCKS][RFT_WN / 2], rft__ring *ring, int *before, const role *r,
                          bool first) {
    const unsigned stage = b->ring + ring->stage * STAGE_BYTES;
    rft__await(b->full + 8 * ring->stage, ring->parity);
    rft__wgmma_fence();
    multiply(acc, stage + r->a, stage + r->b, !first);
    rft__wgmma_commit();
    RFT_WGMMA_WAIT(1);
    if (!first) {
        release(b, *before);
    }
    *before = ring->stage;
    rft__ring_next(ring, RFT_STAGES);
}

/* The tile before, if it waits, is stored a chunk a step; text() promises as many steps as chunks. Returns the last stage, which
 * is being multiplied yet. */
RFT_FN int multiply_tile(const cta *b, float acc[M_BLOCKS][RFT_WN / 2], rft__ring *ring, int steps, const role *r, parcel *last,
                         char *staged) {
    int before = 0, i = 0;
    _Pragma("unroll 1")
    for (; RFT_DEFERRED && i < Y_CHUNKS; i++) {
        multiply_step(b, acc, ring, &before, r, i == 0);
        if (last->waits) {
            deliver_chunk(b->a, b->map.y, last, i, staged);
        }
    }
    for (; i < steps; i++) {
        multiply_step(b, acc, ring, &before, r, i == 0);
    }
    return before;
}

RFT_FN void finish_products(const cta *b, int stage) {
    RFT_WGMMA_WAIT(0);
    release(b, stage);
}

/* ---- roles ---- */

RFT_FN spot spot_of(const role *r, const work *w) {
    const spot s = {w->batch, w->m0 + r->m, (w->n0 + r->n) / (RFT_GLU ? 2 : 1)};
    return s;
}

/* A tile of which this block has a part of k: the accumulators go to where the ring was, as nothing is loaded any more; then
 * each block sums and finishes its share of their spans. */
RFT_FN void finish_shared(const cta *b, float acc[M_BLOCKS][RFT_WN / 2], const work *w) {
    const int warp = threadIdx.x / 32 - 4, warps = 4 * CONSUMERS;
    rft__bar_sync(1, 32 * warps);
    RFT_UNROLL
    for (int c = 0; c < CHUNKS; c++) {
        float v[32];
        take_chunk(acc, c, v);
        stage_chunk(v, b->memory + (warp * CHUNKS + c) * RFT_CHUNK_BYTES);
    }
    rft__cluster_arrive();
    rft__cluster_wait();
    for (int i = b->rank * warps + warp; i < warps * CHUNKS * ROUNDS; i += PARTS * warps) {
        const int chunk = i / ROUNDS, of = chunk / CHUNKS;
        const role owner = role_of(of / 4);
        const spot first = spot_of(&owner, w), at = chunk_spot(&first, chunk % CHUNKS, of % 4);
        finish_spans(b->a, b->memory + chunk * RFT_CHUNK_BYTES, PARTS, &at, i % ROUNDS * SHARED_SPANS, SHARED_SPANS);
    }
}

/* Where the owners of a chunk stage it. */
RFT_FN char *staged_of(const cta *b) {
    return b->memory + RING_BYTES + (threadIdx.x - 128) / OWNERS * (OWNERS / 32 * STAGED_BYTES);
}

RFT_FN parcel empty_parcel(const cta *b) {
    parcel p;
    p.waits = false, p.by_map = y_by_map(b->a), p.place = 0;
    return p;
}

/* The list's matrix behind the last step of a tile, once it has come. */
RFT_FN residual await_residual(const cta *b, rft__ring ring, const role *r) {
    residual given = {0, 0, r->m, r->n / RFT_CHUNK_COLUMNS};
    if (b->residual) {
        rft__await(b->full + 8 * ring.stage, ring.parity);
        given.first = b->ring + ring.stage * STAGE_BYTES;
        if (RESIDUAL_SLOTS > 1) {
            rft__ring_next(&ring, RFT_STAGES);
            rft__await(b->full + 8 * ring.stage, ring.parity);
            given.second = b->ring + ring.stage * STAGE_BYTES;
        }
    }
    return given;
}

RFT_FN void release_residual(const cta *b, rft__ring *ring) {
    if (b->residual) {
        __syncwarp();
        RFT_UNROLL
        for (int i = 0; i < RESIDUAL_SLOTS; i++) {
            release(b, ring->stage);
            rft__ring_next(ring, RFT_STAGES);
        }
    }
}

/* A tile that no product of this warpgroup hides. */
RFT_FN void finish(const cta *b, float acc[M_BLOCKS][RFT_WN / 2], const spot *at, const residual *given, parcel *p,
                   char *staged) {
    if (RFT_PACKED) {
        p->at = *at;
        finish_packed(b->a, b->map.y, acc, given, p, staged);
    } else {
        finish_tile(b->a, acc, staged, at);
    }
}

/* All warpgroups on each tile. The next unit is found while the last products of this one are under way. */
RFT_FN void consume(const cta *b, const role *r) {
    char *const staged = staged_of(b);
    rft__ring ring = {0, 0};
    parcel last = empty_parcel(b);
    work w, next;
    int unit = first_unit();
    for (bool more = work_at(b, unit, &next); more;) {
        float acc[M_BLOCKS][RFT_WN / 2];
        w = next;
        const spot at = spot_of(r, &w);
        if (!b->residual || is_shared(b, &w)) {
            prefetch_matrices(b->a, &at);
        }
        const int stage = multiply_tile(b, acc, &ring, w.steps, r, &last, staged);
        unit += unit_stride();
        more = work_at(b, unit, &next);
        finish_products(b, stage);
        last.waits = false;
        if (is_shared(b, &w)) {
            finish_shared(b, acc, &w);
            forget(&last);
        } else if (RFT_DEFERRED) {
            pack(b->a, acc, &at, &last);
        } else {
            const residual given = await_residual(b, ring, r);
            finish(b, acc, &at, &given, &last, staged);
            release_residual(b, &ring);
        }
    }
    if (RFT_DEFERRED && last.waits) {
        deliver(b->a, b->map.y, &last, staged);
    }
    RFT_BULK_WAIT_READ(0);
}

/* Each warpgroup on every other tile, one multiplying at a time: barrier 1 + group says that it is this group's turn, as soon as
 * the other's last products are on their way. */
RFT_FN void consume_in_turn(const cta *b, const role *r) {
    char *const staged = staged_of(b);
    const residual none = {0, 0, 0, 0};
    rft__ring ring = {0, 0};
    parcel last = empty_parcel(b);
    work w;
    int unit = first_unit();
    if (r->group == 1) {
        work_at(b, unit, &w);
        rft__bar_arrive(1, 256);
        rft__ring_skip(&ring, RFT_STAGES, w.steps);
        unit += unit_stride();
    }
    for (; work_at(b, unit, &w); unit += 2 * unit_stride()) {
        const spot at = spot_of(r, &w);
        float acc[M_BLOCKS][RFT_WN / 2];
        prefetch_matrices(b->a, &at);
        rft__bar_sync(1 + r->group, 256);
        const int stage = multiply_tile(b, acc, &ring, w.steps, r, &last, staged);
        if (unit + unit_stride() < b->a->number[3]) {
            rft__bar_arrive(2 - r->group, 256);
        }
        finish_products(b, stage);
        finish(b, acc, &at, &none, &last, staged);
        rft__ring_skip(&ring, RFT_STAGES, w.steps);
    }
    RFT_BULK_WAIT_READ(0);
}

RFT_FN void multiply_role(const cta *b, int group) {
    const role r = role_of(group);
    rft__pdl_wait();
    if (PING_PONG) {
        consume_in_turn(b, &r);
    } else {
        consume(b, &r);
    }
}

/* Whether the last work of this cluster is a tile that its blocks share. */
RFT_FN bool ends_shared(const cta *b) {
    const int units = b->a->number[3], tail = rft__tail_units(units, unit_stride());
    return first_unit() < 2 * tail;
}

RFT_FN void load_role(cta *b) {
    if (threadIdx.x / 32 == 0 && rft__elect()) {
        produce(b);
    }
    __syncwarp();
    if (RFT_SPLIT > 1 || (TAIL && ends_shared(b))) { /* the meeting in finish_shared */
        rft__cluster_arrive_relaxed();
        rft__cluster_wait();
    }
}

RFT_FN cta cta_of(const rft__cuda_args *a, const maps *m, char *memory) {
    const int rank = RFT_CLUSTER > 1 ? (int)rft__cluster_rank() : 0;
    const unsigned ring = rft__shared(memory), barriers = ring + RING_BYTES + STAGING_BYTES;
    const cta b = {a, *m, memory, ring, barriers, barriers + 8 * RFT_STAGES, rank, 0, 0, residual_by_map(a)};
    return b;
}

RFT_FN void prepare(const cta *b) {
    if (threadIdx.x == 0) {
        rft__map_prefetch(b->map.x);
        rft__map_prefetch(b->map.w);
        if (y_by_map(b->a)) {
            rft__map_prefetch(b->map.y);
        }
        if (b->residual) {
            rft__map_prefetch(b->map.residual);
        }
        for (int s = 0; s < RFT_STAGES; s++) {
            rft__mbarrier_init(b->full + 8 * s, 1);
            rft__mbarrier_init(b->empty + 8 * s, RELEASES * 4 * (PING_PONG ? 1 : CONSUMERS));
        }
        rft__mbarrier_init_fence();
    }
    if (RFT_CLUSTER > 1) {
        rft__cluster_arrive_relaxed();
        rft__cluster_wait();
    } else {
        __syncthreads();
    }
}

/* No block leaves while others read what it staged, or while what they release is on its way to its barriers. Where parts of k
 * meet, the last arrival is a release, which waits for both, even for a read whose value nobody uses: it faults if its block is
 * gone. Elsewhere the thread that loads has waited, while the last tile was stored. */
RFT_FN void leave(void) {
    __syncwarp();
    if (RFT_CLUSTER > 1) {
        if (RFT_SPLIT > 1 || TAIL) {
            rft__cluster_arrive();
        } else {
            rft__cluster_arrive_relaxed();
        }
        rft__cluster_wait();
    }
}

extern "C" __global__ void __launch_bounds__(32 * RFT_WARPS, 1)
    gemm_sm90(const __grid_constant__ rft__cuda_args a, const __grid_constant__ rft__cuda_map x,
              const __grid_constant__ rft__cuda_map w, const __grid_constant__ rft__cuda_map y,
              const __grid_constant__ rft__cuda_map x_last, const __grid_constant__ rft__cuda_map w_last,
              const __grid_constant__ rft__cuda_map residual_map) {
    extern __shared__ __align__(1024) char shared[]; /* a swizzle's atom */
    const maps m = {&x, &w, &y, &x_last, &w_last, &residual_map};
    cta b = cta_of(&a, &m, shared);
    const int group = __shfl_sync(0xffffffffu, (int)threadIdx.x / 128, 0);
    prepare(&b);
    rft__pdl_launch();
    if (group == 0) {
#if CONSUMERS == 2
        RFT_REGISTERS_LOWER(40);
#endif
        load_role(&b);
    } else {
#if CONSUMERS == 2
        RFT_REGISTERS_RAISE(232);
#endif
        multiply_role(&b, group - 1);
    }
    leave();
}
