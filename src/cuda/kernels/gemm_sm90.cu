/* SPDX-License-Identifier: Apache-2.0
 *
 * gemm_sm90.cu - Y = epilogue(X W^T) on Hopper for m from about 65 on: persistent blocks, one warpgroup that loads, one or two
 * that multiply. Launched by gemm_sm90.c, whose text() adds RFT_WM, RFT_WN, RFT_X_BOX, RFT_W_BOX to config.h.
 *
 *            W rows: bn            ring in shared memory, `stages` deep, 128-byte swizzle:
 *          +-----------+             X bm x bk and W bn x bk, by TMA; full[s]: the bytes have come,
 *   X rows |  WG 1     | wm          empty[s]: every warp that multiplies, in every block of the cluster, has done with it
 *   bm     +-----------+           cluster of 2: the two blocks load halves of the operand they share, to both
 *          |  WG 2     | wm        ping-pong: each warpgroup has a tile of its own, and one multiplies while the other stores
 *          +-----------+ wn        split: the blocks of a cluster sum parts of k, then add them up in order of k
 *
 * Figures of 128 x 256 x 64 (16-bit): a stage 48 KiB, 4 stages; a step 4 wgmma m64n256k16 a warpgroup, 4.2 MFLOP a block, and
 * 80 KiB read from shared memory in 1024 clocks (80 of 128 bytes a clock). Registers: 168 at launch; 40 where TMA is issued,
 * 232 where wgmma is, 128 of them accumulators.
 */
#include "config.h"
#define RFT_WGMMA_A_MN RFT_X_MN
#define RFT_WGMMA_B_MN RFT_W_MN
#include "epilogue.cuh"
#include "gemm_sm90_layout.h"
#include "hopper.cuh"

#define CONSUMERS (RFT_WARPS / 4 - 1)
#define SHARES_W (RFT_OPTION0 == 1) /* by two blocks, one below the other */
#define SHARES_X (RFT_OPTION0 == 2) /* by two blocks side by side */
#define PING_PONG RFT_OPTION1
#define RELEASES (SHARES_W || SHARES_X ? 2 : 1) /* blocks that a stage is released to */

#define ELEMENT (RFT_COMPUTE_TYPE == 4 ? 4 : 2)
#define K_ROW (128 / ELEMENT)     /* k of a 128-byte row */
#define K_ROWS (RFT_BK / K_ROW)   /* such rows of a stage */
#define K_STEPS (RFT_BK * ELEMENT / 32)
#define X_BYTES (RFT_BM * RFT_BK * ELEMENT)
#define W_BYTES (RFT_BN * RFT_BK * ELEMENT)
#define STAGE_BYTES (X_BYTES + W_BYTES)
#define RING_BYTES (RFT_STAGES * STAGE_BYTES)

#define M_BLOCKS (RFT_WM / 64)
#define CHUNKS_ROW (RFT_WN / RFT_CHUNK_COLUMNS)
#define CHUNKS (M_BLOCKS * CHUNKS_ROW)
#define Y_COLUMNS (RFT_GLU ? RFT_CHUNK_COLUMNS / 2 : RFT_CHUNK_COLUMNS) /* of a chunk */
#define SPANS_ROW (Y_COLUMNS / RFT_SPAN)
#define STAGING_BYTES (RFT_SPLIT > 1 ? 0 : CONSUMERS * 4 * RFT_CHUNK_BYTES)

/* y of 16 bits: rounded accumulators wait in registers and are stored while the next tile is multiplied. */
#define Y_WIDTH (RFT_GLU ? RFT_WN / 2 : RFT_WN) /* columns of y of a warpgroup */
#define Y_GROUPS (Y_WIDTH / 8)
#define Y_CHUNKS_ROW (Y_WIDTH / RFT_CHUNK_COLUMNS)
#define Y_CHUNKS (M_BLOCKS * Y_CHUNKS_ROW)
#define Y_WORDS (DEFERRED ? M_BLOCKS * Y_GROUPS * 2 : 1)
#define DEFERRED RFT_DEFERRED

typedef struct parcel {
    unsigned word[Y_WORDS]; /* pairs of columns: [block of 64 rows][8 columns][row or row + 8] */
    int batch, m, n;        /* where: first row and column of y of the warpgroup */
    bool waits;
} parcel;

typedef struct block {
    const rft__cuda_args *a;
    char *memory;    /* the ring, then what is staged, then barriers */
    unsigned ring, full, empty; /* shared addresses */
    int rank;        /* in the cluster */
    int step, steps; /* of k: the first, and how many */
    unsigned long long x_policy, w_policy;
} block;

typedef struct work {
    int m0, n0, batch; /* first row of X and of W */
} work;

/* ---- tiles ---- */

RFT_FN int first_unit(void) { return (int)blockIdx.x / RFT_CLUSTER; }
RFT_FN int unit_stride(void) { return (int)gridDim.x / RFT_CLUSTER; }
RFT_FN int unit_count(const block *b) { return b->a->number[3]; }

RFT_FN work work_of(const block *b, int unit) {
    const rft__unit u = rft__unit_at(unit, b->a->number, SHARES_W ? 2 : 1, SHARES_X ? 2 : 1, b->rank);
    const work w = {u.tile_m * RFT_BM, u.tile_n * RFT_BN, RFT_BATCHED ? u.batch : 0};
    return w;
}

/* ---- the warpgroup that loads: one thread ---- */

RFT_FN unsigned long long policy_normal(void) {
    unsigned long long policy;
    asm volatile("createpolicy.fractional.L2::evict_normal.b64 %0, 1.0;" : "=l"(policy));
    return policy;
}

/* One box to where it belongs, or to the same place in both blocks. */
RFT_FN void load_box(unsigned to, const rft__cuda_map *map, int c0, int c1, int batch, unsigned full, bool shared,
                     unsigned long long policy) {
    if (shared && RFT_BATCHED) {
        rft__map_load3_multicast(to, map, c0, c1, batch, full, 3, policy);
    } else if (shared) {
        rft__map_load2_multicast(to, map, c0, c1, full, 3, policy);
    } else if (RFT_BATCHED) {
        rft__map_load3(to, map, c0, c1, batch, full, policy);
    } else {
        rft__map_load2(to, map, c0, c1, full, policy);
    }
}

RFT_FN void load_x(const block *b, const rft__cuda_map *map, int stage, const work *w, int step) {
    const unsigned to = b->ring + stage * STAGE_BYTES, full = b->full + 8 * stage;
    RFT_UNROLL
    for (int i = 0; i < (RFT_X_MN ? 1 : K_ROWS) * RFT_BM / RFT_X_BOX; i++) {
        const int row = i * RFT_X_BOX % RFT_BM, k = step * RFT_BK + i * RFT_X_BOX / RFT_BM * K_ROW;
        const unsigned at = to + i * RFT_X_BOX * 128 * (RFT_X_MN ? RFT_BK / 64 : 1);
        if (SHARES_X && i % 2 != b->rank) {
            continue;
        }
        load_box(at, map, RFT_X_MN ? w->m0 + row : k, RFT_X_MN ? k : w->m0 + row, w->batch, full, SHARES_X, b->x_policy);
    }
}

RFT_FN void load_w(const block *b, const rft__cuda_map *map, int stage, const work *w, int step) {
    const unsigned to = b->ring + stage * STAGE_BYTES + X_BYTES, full = b->full + 8 * stage;
    const int batch = b->a->w_batch_stride != 0 ? w->batch : 0;
    RFT_UNROLL
    for (int i = 0; i < (RFT_W_MN ? 1 : K_ROWS) * RFT_BN / RFT_W_BOX; i++) {
        const int c = i * RFT_W_BOX % RFT_BN, k = step * RFT_BK + i * RFT_W_BOX / RFT_BN * K_ROW;
        const int row = rft__tile_w_row(w->n0 + c / RFT_WN * RFT_WN, c % RFT_WN, RFT_WN, b->a->n, RFT_GLU == 1);
        const unsigned at = to + i * RFT_W_BOX * 128 * (RFT_W_MN ? RFT_BK / 64 : 1);
        if (SHARES_W && i % 2 != b->rank) {
            continue;
        }
        load_box(at, map, RFT_W_MN ? row : k, RFT_W_MN ? k : row, batch, full, SHARES_W, b->w_policy);
    }
}

RFT_FN void wait_empty(const block *b, const rft__ring *ring) {
    if (RELEASES > 1) {
        rft__await_cluster(b->empty + 8 * ring->stage, ring->parity ^ 1);
    } else {
        rft__await(b->empty + 8 * ring->stage, ring->parity ^ 1);
    }
}

/* W does not depend on the kernel before: as much of it as the ring holds may be under way before X may be read. */
RFT_FN int load_w_early(const block *b, const rft__cuda_map *w_map) {
    const work w = work_of(b, first_unit());
    const int early = !RFT_W_EARLY ? 0 : b->steps < RFT_STAGES ? b->steps : RFT_STAGES;
    for (int i = 0; i < early; i++) {
        rft__mbarrier_expect(b->full + 8 * i, STAGE_BYTES);
        load_w(b, w_map, i, &w, b->step + i);
    }
    return early;
}

/* Where one row of tiles reads W, nobody reads it twice, and everybody X. */
RFT_FN void choose_policies(block *b) {
    const bool once = b->a->number[0] == 1 && !SHARES_W;
    b->x_policy = once ? rft__policy_keep() : policy_normal();
    b->w_policy = once ? rft__policy_stream() : policy_normal();
}

RFT_FN void produce(block *b, const rft__cuda_map *x_map, const rft__cuda_map *w_map) {
    rft__ring ring = {0, 0};
    choose_policies(b);
    int early = load_w_early(b, w_map);
    rft__pdl_wait();
    for (int unit = first_unit(); unit < unit_count(b); unit += unit_stride()) {
        const work w = work_of(b, unit);
        for (int i = 0; i < b->steps; i++) {
            if (early > 0) {
                early--;
            } else {
                wait_empty(b, &ring);
                rft__mbarrier_expect(b->full + 8 * ring.stage, STAGE_BYTES);
                load_w(b, w_map, ring.stage, &w, b->step + i);
            }
            load_x(b, x_map, ring.stage, &w, b->step + i);
            rft__ring_next(&ring, RFT_STAGES);
        }
    }
}

/* ---- warpgroups that multiply ---- */

/* One stage into the accumulators: K_STEPS times 32 bytes of k. x, w: shared addresses of this warpgroup's rows. */
RFT_FN void multiply(float acc[M_BLOCKS][RFT_WN / 2], unsigned x, unsigned w, bool accumulate) {
    const unsigned long long dx = RFT_X_MN ? rft__descriptor_mn_major(x, 128 * RFT_BK) : rft__descriptor_k_major(x);
    const unsigned long long dw = RFT_W_MN ? rft__descriptor_mn_major(w, 128 * RFT_BK) : rft__descriptor_k_major(w);
    RFT_UNROLL
    for (int s = 0; s < K_STEPS; s++) {
        const int sx = RFT_X_MN ? s * RFT_DESCRIPTOR_STEP_MN : s % 4 * RFT_DESCRIPTOR_STEP_K + s / 4 * (RFT_BM * 128 / 16);
        const int sw = RFT_W_MN ? s * RFT_DESCRIPTOR_STEP_MN : s % 4 * RFT_DESCRIPTOR_STEP_K + s / 4 * (RFT_BN * 128 / 16);
        RFT_UNROLL
        for (int i = 0; i < M_BLOCKS; i++) {
            RFT_WGMMA_N(RFT_WN)(acc[i], dx + sx + i * (RFT_X_MN ? 8 * RFT_BK : 64 * 8), dw + sw, s > 0 || accumulate);
        }
    }
}

/* This warp has read the stage for the last time. */
RFT_FN void release(const block *b, int stage) {
    const int lane = threadIdx.x % 32;
    if (RELEASES > 1) {
        if (lane < RELEASES) {
            rft__mbarrier_arrive_at(b->empty + 8 * stage, lane);
        }
    } else if (lane == 0) {
        rft__mbarrier_arrive(b->empty + 8 * stage);
    }
}

/* ---- epilogue: accumulators -> chunks of f32 in shared memory -> spans of y ---- */

/* Register i of a chunk: 8 columns are 4 registers; with halves of a gated unit 32 gate columns come before their up columns. */
RFT_FN int chunk_register(int chunk, int i) {
    if (RFT_GLU == 1) {
        return (i < 16 ? 0 : RFT_WN / 4 - 16) + 16 * chunk + i;
    }
    return 32 * chunk + i;
}

/* chunk is not a constant, so that the code behind is there once. */
RFT_FN void take_chunk(float acc[M_BLOCKS][RFT_WN / 2], int chunk, float v[32]) {
    RFT_UNROLL
    for (int c = 0; c < CHUNKS; c++) {
        if (c == chunk) {
            RFT_UNROLL
            for (int i = 0; i < 32; i++) {
                v[i] = acc[c / CHUNKS_ROW][chunk_register(c % CHUNKS_ROW, i)];
            }
        }
    }
}

RFT_FN void stage_chunk(const float v[32], char *to) {
    const int lane = threadIdx.x % 32;
    RFT_UNROLL
    for (int i = 0; i < 32; i += 2) {
        *(float2 *)(to + rft__chunk_at(rft__wgmma_row(lane, i), rft__wgmma_column(lane, i))) = make_float2(v[i], v[i + 1]);
    }
}

RFT_FN float4 load4_of_rank(const char *from, int rank) {
    if (RFT_SPLIT == 1) {
        return *(const float4 *)from;
    }
    float4 v;
    asm volatile("ld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
                 : "r"(rft__cluster_map(rft__shared(from), rank))
                 : "memory");
    return v;
}

/* count columns, a multiple of 4, summed over the parts of k in ascending order. */
RFT_FN void read_staged(const char *chunk, int row, int column, int count, float *v) {
    RFT_UNROLL
    for (int i = 0; i < count; i += 4) {
        const char *const from = chunk + rft__chunk_at(row, column + i);
        float4 sum = load4_of_rank(from, 0);
        RFT_UNROLL
        for (int rank = 1; rank < RFT_SPLIT; rank++) {
            const float4 part = load4_of_rank(from, rank);
            sum.x += part.x, sum.y += part.y, sum.z += part.z, sum.w += part.w;
        }
        v[i] = sum.x, v[i + 1] = sum.y, v[i + 2] = sum.z, v[i + 3] = sum.w;
    }
}

/* v: columns of y, up: what belongs to them of a gated unit. */
RFT_FN void read_span(const char *chunk, int row, int span, float v[RFT_SPAN], float up[RFT_SPAN]) {
    if (RFT_GLU == 2) {
        float both[2 * RFT_SPAN];
        read_staged(chunk, row, span * 2 * RFT_SPAN, 2 * RFT_SPAN, both);
        RFT_UNROLL
        for (int i = 0; i < RFT_SPAN; i++) {
            v[i] = both[2 * i], up[i] = both[2 * i + 1];
        }
        return;
    }
    read_staged(chunk, row, span * RFT_SPAN, RFT_SPAN, v);
    if (RFT_GLU == 1) {
        read_staged(chunk, row, RFT_CHUNK_COLUMNS / 2 + span * RFT_SPAN, RFT_SPAN, up);
    }
}

/* The rows from m, the columns of y from n on. */
RFT_FN void finish_chunk(const block *b, const char *chunk, int batch, int m, int n) {
    const int lane = threadIdx.x % 32, span = rft__chunk_span(lane, SPANS_ROW), column = n + span * RFT_SPAN;
    const int left = (RFT_GLU ? b->a->n / 2 : b->a->n) - column, valid = left < 0 ? 0 : left < RFT_SPAN ? left : RFT_SPAN;
    RFT_UNROLL
    for (int i = 0; i < SPANS_ROW / 2; i++) {
        const int row = rft__chunk_row(lane, i, SPANS_ROW);
        float v[RFT_SPAN], up[RFT_SPAN];
        read_span(chunk, row, span, v, up);
        if (m + row < b->a->m) {
            rft__finish_span(b->a, batch, m + row, column, v, up, RFT_SPAN, valid);
        }
    }
}

/* m, n: first row and column of y of chunk c of a warp's accumulators, from those of its warpgroup. */
RFT_FN int chunk_m(int m, int c, int warp) { return m + c / CHUNKS_ROW * 64 + warp * RFT_CHUNK_ROWS; }
RFT_FN int chunk_n(int n, int c) { return n + c % CHUNKS_ROW * Y_COLUMNS; }

/* Of one warpgroup. m, n: its first row and column of y. */
RFT_FN void finish_tile(const block *b, float acc[M_BLOCKS][RFT_WN / 2], char *staged, int batch, int m, int n) {
    const int warp = threadIdx.x / 32 % 4;
    _Pragma("unroll 1")
    for (int c = 0; c < CHUNKS; c++) {
        float v[32];
        take_chunk(acc, c, v);
        stage_chunk(v, staged);
        __syncwarp();
        finish_chunk(b, staged, batch, chunk_m(m, c, warp), chunk_n(n, c));
        __syncwarp();
    }
}

/* ---- epilogue of 16-bit y: accumulators -> pairs in registers -> chunks of 16 bits in shared memory -> y ---- */

/* First row and column of y of chunk c of this warp. */
RFT_FN int parcel_m(int m, int c) { return m + c / Y_CHUNKS_ROW * 64 + (int)threadIdx.x / 32 % 4 * RFT_CHUNK_ROWS; }

RFT_FN int parcel_n(int n, int c) { return n + c % Y_CHUNKS_ROW * RFT_CHUNK_COLUMNS; }

/* Applies the list to the accumulators where they are; unrolled, as each register is free once its word is made. Pairs beyond
 * an edge take the operands of the last one within; they are not stored. text() promises an even number of columns. */
RFT_FN void pack(const block *b, float acc[M_BLOCKS][RFT_WN / 2], int batch, int m, int n, parcel *to) {
    const int lane = threadIdx.x % 32, columns = RFT_GLU ? b->a->n / 2 : b->a->n;
    RFT_UNROLL
    for (int i = 0; i < Y_WORDS; i++) {
        const int chunk = i / 16, r = i % 16 * 2;
        float *const v = acc[chunk / Y_CHUNKS_ROW] + chunk % Y_CHUNKS_ROW * 32 + r, *const up = v + (RFT_GLU ? RFT_WN / 4 : 0);
        if (RFT_EPI_COUNT > 0) {
            const int row = parcel_m(m, chunk) + rft__wgmma_row(lane, r), column = parcel_n(n, chunk) + rft__wgmma_column(lane, r);
            rft__epi_span(b->a, batch, min(row, b->a->m - 1), min(column, columns - 2), v, up, 2, 2);
        }
        to->word[i] = rft__narrow_pair(RFT_Y_TYPE, v[0], v[1]);
    }
    to->batch = batch, to->m = m, to->n = n, to->waits = true;
}

/* 16 rows of 128 bytes, swizzled; each lane gives the address of a row of 8 columns. */
RFT_FN void stage_words(const unsigned *v, unsigned to) {
    const int lane = threadIdx.x % 32, row = lane % 16;
    RFT_UNROLL
    for (int i = 0; i < 4; i++) {
        const unsigned at = to + rft__swizzle_128(row * 128 + (2 * i + lane / 16) * 16);
        asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(at), "r"(v[4 * i]), "r"(v[4 * i + 1]),
                     "r"(v[4 * i + 2]), "r"(v[4 * i + 3])
                     : "memory");
    }
}

/* 8 columns of y, of which `left` exist. */
RFT_FN void store_words(const rft__cuda_args *a, int batch, int m, int n, uint4 w, int left) {
    const unsigned word[4] = {w.x, w.y, w.z, w.w};
    const rft__span s = rft__span_of(a, batch, m, n, RFT_SPAN, left < RFT_SPAN ? left : RFT_SPAN);
    rft__write_span((char *)a->y + ((RFT_BATCHED ? batch * a->y_batch_stride : 0) + m * a->ldy + n) * 2, 2, &s, word);
}

RFT_FN void deliver_chunk(const block *b, const parcel *from, int chunk, char *staged) {
    const int lane = threadIdx.x % 32;
    const int n = parcel_n(from->n, chunk) + lane % 8 * 8, left = (RFT_GLU ? b->a->n / 2 : b->a->n) - n;
    stage_words(from->word + 16 * chunk, rft__shared(staged));
    __syncwarp();
    RFT_UNROLL
    for (int i = 0; i < 4; i++) {
        const int row = lane / 8 + 4 * i, m = parcel_m(from->m, chunk) + row;
        const uint4 w = *(const uint4 *)(staged + rft__swizzle_128(row * 128 + lane % 8 * 16));
        if (m < b->a->m) {
            store_words(b->a, from->batch, m, n, w, left);
        }
    }
    __syncwarp();
}

RFT_FN void deliver(const block *b, const parcel *from, char *staged) {
    RFT_UNROLL
    for (int c = 0; c < Y_CHUNKS; c++) {
        deliver_chunk(b, from, c, staged);
    }
}

/* ---- warpgroups that multiply: a tile ---- */

/* Step i of a tile: one stage is multiplied, the one before is released once its wgmma is done. So two groups of wgmma are
 * under way, and the tensor cores never wait for a barrier. x, w: bytes from a stage's begin to this warpgroup's rows. */
RFT_FN void multiply_step(const block *b, float acc[M_BLOCKS][RFT_WN / 2], rft__ring *ring, int *before, unsigned x, unsigned w,
                          bool first) {
    const unsigned stage = b->ring + ring->stage * STAGE_BYTES;
    rft__await(b->full + 8 * ring->stage, ring->parity);
    rft__wgmma_fence();
    multiply(acc, stage + x, stage + w, !first);
    rft__wgmma_commit();
    RFT_WGMMA_WAIT(1);
    if (!first) {
        release(b, *before);
    }
    *before = ring->stage;
    rft__ring_next(ring, RFT_STAGES);
}

/* The tile before, if it waits, is stored a chunk a step; text() promises as many steps as chunks. */
RFT_FN void multiply_tile(const block *b, float acc[M_BLOCKS][RFT_WN / 2], rft__ring *ring, unsigned x, unsigned w,
                          const parcel *last, char *staged) {
    int before = 0, i = 0;
    RFT_UNROLL
    for (; DEFERRED && i < Y_CHUNKS; i++) {
        multiply_step(b, acc, ring, &before, x, w, i == 0);
        if (last->waits) {
            deliver_chunk(b, last, i, staged);
        }
    }
    for (; i < b->steps; i++) {
        multiply_step(b, acc, ring, &before, x, w, i == 0);
    }
    RFT_WGMMA_WAIT(0);
    release(b, before);
}

/* ---- roles ---- */

typedef struct role { /* of a warpgroup that multiplies */
    int group;        /* 0, 1 */
    int m, n;         /* first row and column (of W) in the tile */
    unsigned x, w;    /* the same as bytes in a stage */
} role;

RFT_FN role role_of(int group) {
    const int m = PING_PONG ? 0 : group * RFT_WM % RFT_BM, n = PING_PONG ? 0 : group * RFT_WM / RFT_BM * RFT_WN;
    const unsigned x = m * 128 * (RFT_X_MN ? RFT_BK / 64 : 1), w = X_BYTES + n * 128 * (RFT_W_MN ? RFT_BK / 64 : 1);
    const role r = {group, m, n, x, w};
    return r;
}

RFT_FN int y_column(const role *r, const work *w) { return (w->n0 + r->n) / (RFT_GLU ? 2 : 1); }

/* Both warpgroups on each tile. */
RFT_FN void consume(const block *b, const role *r) {
    char *const staged = b->memory + RING_BYTES + (threadIdx.x / 32 - 4) * RFT_CHUNK_BYTES;
    rft__ring ring = {0, 0};
    parcel last;
    last.waits = false;
    for (int unit = first_unit(); unit < unit_count(b); unit += unit_stride()) {
        const work w = work_of(b, unit);
        float acc[M_BLOCKS][RFT_WN / 2];
        multiply_tile(b, acc, &ring, r->x, r->w, &last, staged);
        if (DEFERRED) {
            pack(b, acc, w.batch, w.m0 + r->m, y_column(r, &w), &last);
        } else {
            finish_tile(b, acc, staged, w.batch, w.m0 + r->m, y_column(r, &w));
        }
    }
    if (DEFERRED) {
        deliver(b, &last, staged);
    }
}

/* Each warpgroup on every other tile, one multiplying at a time: barrier 1 + group says that it is this group's turn. */
RFT_FN void consume_in_turn(const block *b, const role *r) {
    char *const staged = b->memory + RING_BYTES + (threadIdx.x / 32 - 4) * RFT_CHUNK_BYTES;
    rft__ring ring = {0, 0};
    parcel none;
    none.waits = false;
    int unit = first_unit();
    if (r->group == 1) {
        rft__bar_arrive(1, 256);
        rft__ring_skip(&ring, RFT_STAGES, b->steps);
        unit += unit_stride();
    }
    for (; unit < unit_count(b); unit += 2 * unit_stride()) {
        const work w = work_of(b, unit);
        float acc[M_BLOCKS][RFT_WN / 2];
        rft__bar_sync(1 + r->group, 256);
        multiply_tile(b, acc, &ring, r->x, r->w, &none, staged);
        if (unit + unit_stride() < unit_count(b)) {
            rft__bar_arrive(2 - r->group, 256);
        }
        finish_tile(b, acc, staged, w.batch, w.m0 + r->m, y_column(r, &w));
        rft__ring_skip(&ring, RFT_STAGES, b->steps);
    }
}

/* One tile; its accumulators go to where the ring was, then each block sums and finishes its share of the chunks. */
RFT_FN void consume_split(const block *b, const role *r) {
    const int warp = threadIdx.x / 32 - 4, warps = 4 * CONSUMERS;
    const work w = work_of(b, first_unit());
    rft__ring ring = {0, 0};
    float acc[M_BLOCKS][RFT_WN / 2];
    parcel none;
    none.waits = false;
    multiply_tile(b, acc, &ring, r->x, r->w, &none, b->memory);
    rft__bar_sync(1, 32 * warps);
    RFT_UNROLL
    for (int c = 0; c < CHUNKS; c++) {
        float v[32];
        take_chunk(acc, c, v);
        stage_chunk(v, b->memory + (warp * CHUNKS + c) * RFT_CHUNK_BYTES);
    }
    rft__cluster_arrive();
    rft__cluster_wait();
    for (int i = b->rank * warps + warp; i < warps * CHUNKS; i += RFT_SPLIT * warps) {
        const int of = i / CHUNKS, c = i % CHUNKS;
        const role owner = role_of(of / 4);
        finish_chunk(b, b->memory + i * RFT_CHUNK_BYTES, w.batch, chunk_m(w.m0 + owner.m, c, of % 4), chunk_n(y_column(&owner, &w), c));
    }
}

RFT_FN void multiply_role(const block *b, int group) {
    const role r = role_of(group);
    rft__pdl_wait();
    if (RFT_SPLIT > 1) {
        consume_split(b, &r);
    } else if (PING_PONG) {
        consume_in_turn(b, &r);
    } else {
        consume(b, &r);
    }
}

RFT_FN void load_role(block *b, const rft__cuda_map *x_map, const rft__cuda_map *w_map) {
    if (threadIdx.x / 32 == 0 && rft__elect()) {
        produce(b, x_map, w_map);
    }
    __syncwarp();
    if (RFT_SPLIT > 1) { /* the meeting of consume_split */
        rft__cluster_arrive();
        rft__cluster_wait();
    }
}

RFT_FN block block_of(const rft__cuda_args *a, char *memory) {
    const int rank = RFT_CLUSTER > 1 ? (int)rft__cluster_rank() : 0, all = (a->k - 1) / RFT_BK + 1;
    const unsigned ring = rft__shared(memory), barriers = ring + RING_BYTES + STAGING_BYTES;
    block b = {a, memory, ring, barriers, barriers + 8 * RFT_STAGES, rank, 0, all, 0, 0};
    if (RFT_SPLIT > 1) {
        b.step = rft__part_begin(all, RFT_SPLIT, rank);
        b.steps = rft__part_begin(all, RFT_SPLIT, rank + 1) - b.step;
    }
    return b;
}

RFT_FN void prepare(const block *b, const rft__cuda_map *x_map, const rft__cuda_map *w_map) {
    if (threadIdx.x == 0) {
        rft__map_prefetch(x_map);
        rft__map_prefetch(w_map);
        for (int s = 0; s < RFT_STAGES; s++) {
            rft__mbarrier_init(b->full + 8 * s, 1);
            rft__mbarrier_init(b->empty + 8 * s, RELEASES * 4 * (PING_PONG ? 1 : CONSUMERS));
        }
        rft__mbarrier_init_fence();
    }
    if (RFT_CLUSTER > 1) {
        rft__cluster_arrive();
        rft__cluster_wait();
    } else {
        __syncthreads();
    }
}

extern "C" __global__ void __launch_bounds__(32 * RFT_WARPS, 1)
    gemm_sm90(const __grid_constant__ rft__cuda_args a, const __grid_constant__ rft__cuda_map x_map,
              const __grid_constant__ rft__cuda_map w_map, const __grid_constant__ rft__cuda_map y_map) {
    extern __shared__ char dynamic[];
    block b = block_of(&a, dynamic + (0u - rft__shared(dynamic)) % RFT_SWIZZLE_ATOM);
    const int group = __shfl_sync(0xffffffffu, (int)threadIdx.x / 128, 0);
    (void)y_map;
    prepare(&b, &x_map, &w_map);
    rft__pdl_launch();
    if (group == 0) {
#if CONSUMERS == 2
        RFT_REGISTERS_LOWER(40);
#endif
        load_role(&b, &x_map, &w_map);
    } else {
#if CONSUMERS == 2
        RFT_REGISTERS_RAISE(232);
#endif
        multiply_role(&b, group - 1);
    }
    __syncwarp();
    if (RFT_CLUSTER > 1) { /* nobody leaves while others still write to its barriers or read what it staged */
        rft__cluster_arrive();
        rft__cluster_wait();
    }
}
