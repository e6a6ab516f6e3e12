/* SPDX-License-Identifier: Apache-2.0
 *
 * gemm_simt.cu - Y = X * W^T on the FMA units, f32 chains in ascending k, one an element and team: the kernel for any pair of
 * types, any order, stride and alignment, so the last candidate of every plan and the f32 kernel of GPUs.
 *
 *     block 128 x 128, 128 threads             thread 8 x 16: rows 4 + 4, columns 4 + 4 + 4 + 4
 *               n: 4 groups of 32                   a warp: 8 lanes down, 4 lanes across
 *          +----+----+----+----+               +--+         w: 4 x 16 bytes, same for 8 lanes
 *     m: 2 |    |    |    |    |               |  | x: 2 x 16 bytes, 128 bytes of a row of k a warp
 *       of +----+----+----+----+               +--+
 *       64 |    |    |    |    |               128 FMA a k for 6 shared loads of 16 bytes
 *          +----+----+----+----+
 *
 * Shared memory holds two steps of RFT_BK k as f32, k-major, rows of BM + 4 floats: the 16-byte loads of a step have no bank
 * conflict, nor has the transposing store of K-contiguous quads (quads 4 k apart lie 16 banks apart). The next step is on its
 * way in registers while this one is multiplied; one barrier a step. FLOPs a step: 2 * BM * BN * BK for 4 * (BM + BN) * BK
 * bytes of f32. In smaller tiles teams of threads share the k of a step and add up at the end. Lanes i and i ^ 1 have the same
 * rows, lanes i and i ^ 2 the same columns, so that quarters of a warp are served together in a 16-byte load of either.
 * RFT_OPTION0: 1 where quads of both operands are aligned, so that they are one load. RFT_OPTION1: 1: blocks take tiles in turn.
 * SASS of a step of 128 x 128 (sm_90): 1024 FFMA of about 1140 executed, 48 LDS.128, 4 LDG.128, 16 STS; 128 registers of sums, 48
 * of operands, 16 in flight, 237 in all. 918 FFMA of 256 x 128 read one new register of each bank, the others more of one.
 * f32 4096^3 on an H200, cold weights, 2026-11-29, us (cuBLAS: 2695), with sums row by row, where 784 FFMA did,
 * later 2893, in this order 2801 (0.96 of cuBLAS):
 *     2890  256 x 128 x 8, 8 warps: 48 TFLOP/s     3040, 3145  with 4 and 2 k in the body of the loop
 *     2950  128 x 128 x 8, 4 warps, 2 blocks       3304, 3477  with steps of 16 k, 8 and all of them in the body
 */
#include "config.h"

#include "cuda_args.h"
#include "device.cuh"
#include "convert.cuh"
#include "epilogue.cuh"
#include "gemm_tile.h"

#define THREADS (32 * RFT_WARPS)
#define AREA (RFT_BM * RFT_BN)
#define LEAST (AREA >= 64 * 64 ? 64 : 32)
#define EACH (AREA / THREADS > LEAST ? AREA / THREADS : LEAST) /* sums of a thread */
#define TEAM (AREA / EACH)     /* threads that have the whole tile */
#define TEAMS (THREADS / TEAM) /* each multiplies its part of a step's k */
#define PART (RFT_BK / TEAMS)
#define TM (EACH >= 64 ? 8 : 4)
#define TN (EACH / TM)
#define RESIDENT (EACH >= 128 ? 256 / THREADS : EACH >= 64 || RFT_BM < 32 ? 1 : 2) /* blocks of an SM, by registers */
#define ROW_GROUPS (TM / 4)
#define COLUMN_GROUPS (TN / 4)
#define ROW_THREADS (RFT_BM / TM)
#define LANES_M (ROW_THREADS < 8 ? ROW_THREADS : 8)
#define LANES_N (32 / LANES_M)
#define WARPS_M (ROW_THREADS / LANES_M)
#define X_QUADS (RFT_BM * RFT_BK / 4 / THREADS) /* of a thread and step */
#define W_QUADS (RFT_BN * RFT_BK / 4 / THREADS)
#define QUADS (X_QUADS > W_QUADS ? X_QUADS : W_QUADS)
#define X_PITCH (RFT_BM + 4)
#define W_PITCH (RFT_BN + 4)

#if X_QUADS < 1 || W_QUADS < 1
#error "more threads than quads in a step"
#endif

typedef struct quad { /* 4 neighbours in memory, as stored */
    unsigned word[4];
} quad;

typedef struct quad_place { /* of quad q in a tile: rows along M or N of the tile, k inside a step */
    int row, k;
} quad_place;

/* K-contiguous: 2 quads of a row side by side, so that a warp reads whole sectors. MN-contiguous: along the row. */
RFT_FN quad_place place_of(int q, int mn, int rows) {
    const quad_place along_row = {q % (rows / 4) * 4, q / (rows / 4)};
    const quad_place along_k = {q / 2 % rows, (q / 2 / rows * 2 + q % 2) * 4};
    return mn ? along_row : along_k;
}

RFT_FN quad quad_load(const char *p, int type) {
    quad q = {{0, 0, 0, 0}};
    if (type == RFT_TYPE_F32) {
        const uint4 v = *(const uint4 *)p;
        q.word[0] = v.x, q.word[1] = v.y, q.word[2] = v.z, q.word[3] = v.w;
    } else {
        const uint2 v = *(const uint2 *)p;
        q.word[0] = v.x, q.word[1] = v.y;
    }
    return q;
}

/* The `valid` first of 4 neighbours, at any address; the others are 0. */
RFT_FN quad quad_load_part(const char *p, int type, int valid) {
    quad q = {{0, 0, 0, 0}};
    RFT_UNROLL
    for (int i = 0; i < 4; i++) {
        if (i < valid && type == RFT_TYPE_F32) {
            q.word[i] = ((const unsigned *)p)[i];
        } else if (i < valid) {
            q.word[i / 2] |= (unsigned)((const unsigned short *)p)[i] << i % 2 * 16;
        }
    }
    return q;
}

RFT_FN float quad_value(quad q, int type, int i) {
    return type == RFT_TYPE_F32 ? __uint_as_float(q.word[i]) : i % 2 ? rft__widen_high(type, q.word[i / 2])
                                                              : rft__widen_low(type, q.word[i / 2]);
}

/* Where a quad goes in the k-major f32 tile. */
RFT_FN void quad_store(float *tile, int pitch, quad q, int type, quad_place at, int mn) {
    float v[4];
    RFT_UNROLL
    for (int i = 0; i < 4; i++) {
        v[i] = quad_value(q, type, i);
    }
    if (mn) {
        *(float4 *)(tile + at.k * pitch + at.row) = make_float4(v[0], v[1], v[2], v[3]);
        return;
    }
    RFT_UNROLL
    for (int i = 0; i < 4; i++) {
        tile[(at.k + i) * pitch + at.row] = v[i];
    }
}

typedef struct side { /* what a thread brings of one operand: `quads` quads a step */
    const char *at[QUADS];
    int rows; /* MN-contiguous: rows from its quads' first on; they lie behind each other along k */
    quad next[QUADS];
    RFT_ORIGIN(origin)
} side;

#define X_SIDE X_QUADS, RFT_X_TYPE, RFT_X_MN, RFT_BM
#define W_SIDE W_QUADS, RFT_W_TYPE, RFT_W_MN, RFT_BN

/* tile_row: the row of the operand behind row 0 of the tile, halves: see rft__tile_w_row. A K-contiguous quad past the last
 * row reads that row instead; its sums are not stored. */
RFT_FN void side_open(side *s, int quads, int type, int mn, int tile_rows, const void *base, long long batch_offset, long long ld,
                      int tile_row, int all_rows, int halves) {
    RFT_UNROLL
    for (int i = 0; i < quads; i++) {
        const quad_place at = place_of((int)threadIdx.x + i * THREADS, mn, tile_rows);
        const int rows = halves && at.row < tile_rows / 2 ? all_rows / 2 : all_rows;
        const int row = rft__tile_w_row(tile_row, at.row, tile_rows, all_rows, halves);
        const long long element = mn ? at.k * ld + row : (row < rows ? row : rows - 1) * ld + at.k;
        s->rows = rows - row;
        s->at[i] = (const char *)base + (batch_offset + element) * rft__size_of(type);
    }
}

/* Sends the loads of the step that begins at k0 on their way and moves on by one step. k past the end counts as 0. */
RFT_FN void side_fetch(side *s, int quads, int type, int mn, int tile_rows, long long ld, int k0, int k_all) {
    const int whole = RFT_OPTION0 && k0 + RFT_BK <= k_all && (!mn || s->rows >= 4);
    RFT_UNROLL
    for (int i = 0; i < quads && whole; i++) {
        RFT_CHECK_AT(s->origin, s->at[i], 4 * rft__size_of(type));
        s->next[i] = quad_load(s->at[i], type);
    }
    RFT_UNROLL
    for (int i = 0; i < quads && !whole; i++) {
        const int k = k0 + place_of((int)threadIdx.x + i * THREADS, mn, tile_rows).k;
        const int valid = mn ? (k < k_all ? s->rows : 0) : k_all - k;
        RFT_CHECK_AT(s->origin, s->at[i], min(valid, 4) * rft__size_of(type));
        s->next[i] = quad_load_part(s->at[i], type, valid);
    }
    RFT_UNROLL
    for (int i = 0; i < quads; i++) {
        s->at[i] += (mn ? ld : 1) * (RFT_BK * rft__size_of(type));
    }
}

RFT_FN void side_store(const side *s, int quads, int type, int mn, int tile_rows, float *tile) {
    RFT_UNROLL
    for (int i = 0; i < quads; i++) {
        quad_store(tile, tile_rows + 4, s->next[i], type, place_of((int)threadIdx.x + i * THREADS, mn, tile_rows), mn);
    }
}

/* A thread's values of one k: `groups` groups of 4, `apart` floats apart. */
RFT_FN void operand_load(float *v, const float *row, int groups, int apart) {
    RFT_UNROLL
    for (int g = 0; g < groups; g++) {
        const float4 f = *(const float4 *)(row + g * apart);
        v[4 * g] = f.x, v[4 * g + 1] = f.y, v[4 * g + 2] = f.z, v[4 * g + 3] = f.w;
    }
}

/* Down one column and up the next: neighbours share w or x, so that an FMA reads two registers anew, of the three that would take
 * two banks more than a cycle. */
RFT_FN void multiply(float (*sum)[TN], const float *x, const float *w) {
    RFT_UNROLL
    for (int j = 0; j < TN; j++) {
        RFT_UNROLL
        for (int t = 0; t < TM; t++) {
            const int i = j % 2 == 0 ? t : TM - 1 - t;
            sum[i][j] = __fmaf_rn(x[i], w[j], sum[i][j]);
        }
    }
}

/* One row of a thread's sums through the epilogue to y; c0: the tile column of its first group. */
RFT_FN void finish_row(const rft__cuda_args *a, int batch, int m, int n0, int c0, float *row) {
    const int n_out = RFT_GLU ? a->n / 2 : a->n;
    if (RFT_GLU == 2) {
        RFT_UNROLL
        for (int g = 0; g < COLUMN_GROUPS; g++) {
            const int n = (n0 + g * (RFT_BN / COLUMN_GROUPS) + c0) / 2;
            float gate[2] = {row[4 * g], row[4 * g + 2]}, up[2] = {row[4 * g + 1], row[4 * g + 3]};
            if (n < n_out) {
                rft__finish_span(a, batch, m, n, gate, up, 2, n_out - n < 2 ? 1 : 2);
            }
        }
        return;
    }
    RFT_UNROLL
    for (int g = 0; g < (RFT_GLU ? COLUMN_GROUPS / 2 : COLUMN_GROUPS); g++) {
        const int n = (RFT_GLU ? n0 / 2 : n0) + g * (RFT_BN / COLUMN_GROUPS) + c0;
        if (n < n_out) {
            rft__finish_span(a, batch, m, n, row + 4 * g, RFT_GLU ? row + 4 * (g + COLUMN_GROUPS / 2) : (const float *)0, 4,
                             n_out - n < 4 ? n_out - n : 4);
        }
    }
}

/* Adds the sums of the other teams to those of the first, in ascending order. room: AREA floats. */
RFT_FN void teams_add(float (*sum)[TN], float *room, int team) {
    float *const own = room + (int)threadIdx.x % TEAM;
#pragma unroll 1
    for (int from = 1; from < TEAMS; from++) {
        __syncthreads();
        RFT_UNROLL
        for (int i = 0; i < EACH && team == from; i++) {
            own[i * TEAM] = sum[i / TN][i % TN];
        }
        __syncthreads();
        RFT_UNROLL
        for (int i = 0; i < EACH && team == 0; i++) {
            sum[i / TN][i % TN] += own[i * TEAM];
        }
    }
}

typedef struct spot { /* a batch, the tile's first row of x and w, the thread's first row and column in the tile */
    int batch, m0, n0, r0, c0;
} spot;

/* A debug build: a team's sums, a part of each. */
RFT_FN void dump_part(const rft__cuda_args *a, const spot *at, int team, float (*sum)[TN]) {
    RFT_UNROLL
    for (int i = 0; i < EACH && RFT_DUMPS(RFT_DUMP_PART(team)); i++) {
        const int row = i / TN, c = i % TN / 4 * (RFT_BN / COLUMN_GROUPS) + at->c0 + i % 4;
        const int m = at->m0 + row / 4 * (RFT_BM / ROW_GROUPS) + at->r0 + row % 4;
        const int n = rft__tile_w_row(at->n0, c, RFT_BN, a->n, RFT_GLU == 1);
        if (RFT_GLU != 1 || c >= RFT_BN / 2 || n < a->n / 2) {
            RFT_DUMP(a, at->batch, m, n, sum[row][i % TN]);
        }
        (void)m, (void)n;
    }
    (void)a, (void)sum;
}

/* The product of one tile and batch, in the threads of team 0. */
RFT_FN void tile_sums(float (*sum)[TN], side *xs, side *ws, const rft__cuda_args *a, const spot *at, int team) {
    static __shared__ __align__(16) float x_tile[2][RFT_BK * X_PITCH], w_tile[2][RFT_BK * W_PITCH];
    const int steps = (a->k + RFT_BK - 1) / RFT_BK;
    const int x_at = team * PART * X_PITCH + at->r0, w_at = team * PART * W_PITCH + at->c0;
    float x[2][TM], w[2][TN];
    if (steps == 0) {
        dump_part(a, at, team, sum);
        return;
    }
    side_fetch(xs, X_SIDE, a->ldx, 0, a->k);
    side_fetch(ws, W_SIDE, a->ldw, 0, a->k);
    __syncthreads(); /* the batch before may still be read */
    side_store(xs, X_SIDE, x_tile[0]);
    side_store(ws, W_SIDE, w_tile[0]);
    __syncthreads();
    operand_load(x[0], x_tile[0] + x_at, ROW_GROUPS, RFT_BM / ROW_GROUPS);
    operand_load(w[0], w_tile[0] + w_at, COLUMN_GROUPS, RFT_BN / COLUMN_GROUPS);
#pragma unroll 1
    for (int step = 0; step < steps; step++) {
        const int more = step + 1 < steps, here = step % 2;
        if (more) {
            side_fetch(xs, X_SIDE, a->ldx, (step + 1) * RFT_BK, a->k);
            side_fetch(ws, W_SIDE, a->ldw, (step + 1) * RFT_BK, a->k);
        }
        RFT_UNROLL
        for (int k = 0; k < PART; k++) {
            const int last = k + 1 == PART, from = last ? 1 - here : here, next = last ? 0 : k + 1;
            if (last && more) { /* all threads hold the last k of the other buffer: it was read a step ago */
                side_store(xs, X_SIDE, x_tile[from]);
                side_store(ws, W_SIDE, w_tile[from]);
                __syncthreads();
            }
            if (!last || more) {
                operand_load(x[(k + 1) % 2], x_tile[from] + next * X_PITCH + x_at, ROW_GROUPS, RFT_BM / ROW_GROUPS);
                operand_load(w[(k + 1) % 2], w_tile[from] + next * W_PITCH + w_at, COLUMN_GROUPS, RFT_BN / COLUMN_GROUPS);
            }
            multiply(sum, x[k % 2], w[k % 2]);
        }
    }
    dump_part(a, at, team, sum);
    teams_add(sum, w_tile[0], team);
}

/* The rows of a thread, one after the other at the place of the first: so the epilogue is in the text once. */
RFT_FN void finish(const rft__cuda_args *a, int batch, int m0, int n0, int r0, int c0, float (*sum)[TN]) {
#pragma unroll 1
    for (int i = 0; i < TM; i++) {
        const int m = m0 + i / 4 * (RFT_BM / ROW_GROUPS) + r0 + i % 4;
        if (m < a->m) {
            finish_row(a, batch, m, n0, c0, sum[0]);
        }
        RFT_UNROLL
        for (int j = 0; j < (TM - 1) * TN; j++) {
            sum[j / TN][j % TN] = sum[j / TN + 1][j % TN];
        }
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT)
    gemm_simt(const __grid_constant__ rft__cuda_args args) {
    const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x % TEAM / 32, team = (int)threadIdx.x / TEAM;
    const int down = lane / 2 % LANES_M, across = lane / 2 / LANES_M * 2 + lane % 2;
    const int r0 = 4 * (warp % WARPS_M * LANES_M + down), c0 = 4 * (warp / WARPS_M * LANES_N + across);
    int index = (int)blockIdx.x;
    rft__tile tile = rft__tile_at(index, args.number[0], args.number[1], args.number[2]);
    rft__pdl_launch();
    rft__pdl_wait();
    for (;;) {
        const int m0 = tile.m * RFT_BM, n0 = tile.n * RFT_BN;
        for (int batch = RFT_BATCHED ? (int)blockIdx.y : 0; batch < (RFT_BATCHED ? args.batch : 1); batch += (int)gridDim.y) {
            float sum[TM][TN] = {};
            side x, w;
            side_open(&x, X_SIDE, args.x, batch * args.x_batch_stride, args.ldx, m0, args.m, 0);
            side_open(&w, W_SIDE, args.w, batch * args.w_batch_stride, args.ldw, n0, args.n, RFT_GLU == 1);
            const spot at = {batch, m0, n0, r0, c0};
            RFT_ORIGIN_SET(x.origin, &args, RFT_AT_X, batch);
            RFT_ORIGIN_SET(w.origin, &args, RFT_AT_W, batch);
            tile_sums(sum, &x, &w, &args, &at, team);
            if (team == 0) {
                finish(&args, batch, m0, n0, r0, c0, sum);
            }
        }
        index += (int)gridDim.x;
        if (!RFT_OPTION1 || index >= args.number[0] * args.number[1]) {
            break;
        }
        tile = rft__tile_at(index, args.number[0], args.number[1], args.number[2]);
    }
}
