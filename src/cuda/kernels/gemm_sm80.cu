/* SPDX-License-Identifier: Apache-2.0
 *
 * gemm_sm80.cu - Y = X * W^T with mma.sync, from sm_80 on: cp.async ring in shared memory, ldmatrix, f32 sums.
 *
 *     block 128 x 256, 8 warps        warp 64 x 64, a step of 32 bytes of k: 4 + 4 ldmatrix.x4, 32 mma
 *        n: 4 x 64                       k
 *      +--+--+--+--+                   +--+--+--+--+ stage: rows of BK k, chunks of 16 bytes swizzled;
 *   m: |  |  |  |  |                   |  |  |  |  | RFT_STAGES of them, all but one on their way
 *   2 x+--+--+--+--+                   +--+--+--+--+
 *   64 |  |  |  |  |      bytes of shared memory a step and block: (BM + BN) * 32 written once, 8 warps * 4096 read, for
 *      +--+--+--+--+      2 * BM * BN * 16 FLOPs of 16-bit types (8 of tf32)
 *
 * bf16 and f16 pairs multiply as they are. f32 is rounded to tf32 in registers. f16 with bf16 multiplies as tf32, which holds
 * both exactly: a word of 2 k becomes two words of 1 k, so that the k of a step are permuted, alike for x and w.
 * MN-contiguous operands stay so in shared memory: ldmatrix.trans turns 16-bit ones, f32 is read word by word.
 * RFT_OPTION0: alignment of runs of x and w: 16: one copy a chunk; 4: four; less: plain loads. RFT_GLU 1: rows of the gate and
 * up halves alternate in a tile every 8 columns.
 * Tiles of 16 or 32 rows: warps of 32 columns; those that are left share the steps of a stage and add up at the end, in order.
 * RFT_OPTION1: how many times RFT_BK a stage holds. RFT_OPTION2: 1: blocks take tiles in turn; the ring runs on from one tile to
 * the next, and the sums leave through memory behind it. RFT_OPTION3: 1: K-contiguous rows end with a chunk.
 * A step is read while the one before is multiplied, so the last of a stage is multiplied behind the barrier that ends it, when
 * the first of the next has been asked for, be it another tile's: tensor cores have work while warps meet and read on. Sums leave
 * through a warp's own part of shared memory, 16 rows at a time.
 * SASS of a stage of 128 x 256 x 64 (sm_90): 128 HMMA.16816 in about 250 instructions, 32 LDSM, 12 LDGSTS; 128 registers of sums,
 * 64 of fragments, 248 in all; 124 HMMA share a fragment with the one before. Shared memory serves 1408 of the about 1660 cycles
 * that tensor cores need. Timed with a branch in the loop, 70 shared fragments and products in one block behind the loads:
 * bf16 4096^3 on an H200, cold weights, 2026-11-29, us (cuBLASLt with wgmma: 176 to 187; mma.sync at its issue rate: 230):
 *     297  128 x 256 x 64, 3 stages, tiles in turn: 463 TFLOP/s      377  with the last step ahead of its barrier
 *     297  256 x 128 x 64                                             309  a block a tile, 4 stages
 *     328  128 x 128 x 32, 2 blocks an SM                             321  128 x 256 x 32, 7 stages in turn
 *     384  64 x 128 and 393  128 x 64, 2 blocks an SM                 344  128 x 256 x 32, 8 stages, a block a tile
 * In one run, before and after that was mended: 128 x 256 343 and 326, 256 x 128 336 and 314 (0.58 of cuBLASLt).
 * m = 128: 41 us with 4 stages, 23 with a ring of 64 x 64 that fills an SM.
 */
#include "config.h"

#include "convert.cuh"
#include "cuda_args.h"
#include "device.cuh"
#include "epilogue.cuh"
#include "gemm_sm80_layout.h"
#include "gemm_tile.h"
#include "mma.cuh"

#if RFT_OPTION1 < 1 || RFT_STAGES < 2
#error "a config of gemm_sm80.c has a depth and stages"
#endif

#define BK (RFT_BK * RFT_OPTION1) /* of a stage */
#define THREADS (32 * RFT_WARPS)
#define WHOLE RFT_OPTION3
#define SIZE (RFT_X_TYPE == 1 ? 4 : 2) /* of an element, of x and w alike */
#define PER (16 / SIZE)                /* elements of a chunk */
#define X_CHUNKS ((RFT_X_MN ? RFT_BM : BK) / PER) /* of a stored row */
#define W_CHUNKS ((RFT_W_MN ? RFT_BN : BK) / PER)
#define X_LOADS (RFT_BM * BK / PER / THREADS) /* of a thread and stage */
#define W_LOADS (RFT_BN * BK / PER / THREADS)
#define X_BYTES (RFT_BM * BK * SIZE)
#define STAGE_BYTES ((RFT_BM + RFT_BN) * BK * SIZE)
#define STEPS (BK * SIZE / 32 / WARPS_K) /* of a warp in a stage, 32 bytes of k each */
#define WM (RFT_BM >= 128 ? 64 : RFT_BM >= 32 ? 32 : 16)
#define WARPS_M (RFT_BM / WM)
#define WN (RFT_BM <= 32 ? 32 : RFT_BN / (RFT_WARPS / WARPS_M))
#define WARPS_N (RFT_BN / WN)
#define WARPS_K (RFT_WARPS / (WARPS_M * WARPS_N)) /* that share the steps of a stage */
#define MI (WM / 16)
#define NJ (WN / 8)
#define MIXED (RFT_COMPUTE_TYPE == 4 && SIZE == 2)
#define AHEAD (MI * NJ < 32 || !(MIXED || (SIZE == 4 && RFT_OPTION0 < 16))) /* registers last for fragments of two steps */
#define RESIDENT (MI * NJ * 4 >= 64 ? 256 / THREADS : 3) /* blocks of an SM, by registers */
#define PITCH (WN + 8) /* floats of a row of sums on its way out: 8 banks more than the row before */
#define X_WORDS (RFT_X_MN && SIZE == 4)
#define W_WORDS (RFT_W_MN && SIZE == 4)

/* In a loop where chunks take many instructions, or the fragments leave no registers for addresses. */
#if RFT_OPTION0 == 16 && !RFT_X_MN && !RFT_W_MN && (RFT_COMPUTE_TYPE != 4 || (RFT_HOPPER && RFT_X_TYPE == 1))
#define LOADS_UNROLL RFT_UNROLL
#else
#define LOADS_UNROLL _Pragma("unroll 1")
#endif

extern __shared__ __align__(1024) unsigned char shared_bytes[];

/* ---- global to shared ---- */

typedef struct side {  /* a thread's chunks of one operand */
    const char *at;    /* the first one, of the next stage */
    long long apart;   /* bytes from one to the next */
    long long forward; /* bytes from a stage to the next */
    long long up;      /* bytes from a gate row to its up row */
    int rows;          /* K-contiguous: rows of the operand from the first one's on; MN-contiguous: bytes of a chunk that exist */
    int left;          /* k from the first one's on that no stage has yet taken */
    RFT_ORIGIN(origin)
} side;

#define X_SIDE X_LOADS, X_CHUNKS, RFT_X_MN, 0, X_WORDS
#define W_SIDE W_LOADS, W_CHUNKS, RFT_W_MN, RFT_GLU == 1, W_WORDS

/* Of a chunk. Where compilers see that there is all or nothing, a copy takes 5 instructions less. */
RFT_FN int clamp_bytes(int elements) { return elements <= 0 ? 0 : WHOLE || elements >= PER ? 16 : elements * SIZE; }

/* Where a thread's first chunk lies in the tile. */
RFT_FN int first_row(int chunks) { return (int)threadIdx.x / chunks; }
RFT_FN int first_chunk(int chunks) { return (int)threadIdx.x % chunks; }

/* Rows of the operand, in its half, between a thread's chunk 0 and chunk i. */
RFT_FN int rows_apart(int i, int chunks, int halves) {
    const int rows = i * (THREADS / chunks);
    return halves ? rft__sm80_half_row(rows) : rows;
}

/* first: the operand's row behind row 0 of the tile, in its half; rows: of the operand or half. */
RFT_FN void side_open(side *s, int chunks, int mn, int halves, const void *base, long long batch_offset, long long ld, int first,
                      int rows, int k) {
    const int row = first_row(chunks), chunk = first_chunk(chunks);
    const int column = mn ? chunk * PER : row, k0 = mn ? row : chunk * PER; /* of the tile, along M or N, and along k */
    const int line = first + (halves ? rft__sm80_half_row(column) : column);
    s->up = halves ? rows * (mn ? 1 : ld) * SIZE : 0;
    s->at = (const char *)base + (batch_offset + (mn ? k0 * ld + line : line * ld + k0)) * SIZE;
    s->at += halves && rft__sm80_is_up(column) ? s->up : 0;
    s->apart = ld * SIZE;
    s->forward = (mn ? ld : 1) * (BK * SIZE);
    s->rows = mn ? clamp_bytes(rows - line) : rows - line;
    s->left = k - k0;
}

/* The first `bytes` of a chunk; the others become 0. */
RFT_FN void chunk_load(unsigned to, const char *from, int bytes) {
    if (RFT_OPTION0 == 16) {
        rft__cp_async16(to, from, bytes);
    } else if (RFT_OPTION0 == 4) {
        RFT_UNROLL
        for (int i = 0; i < 16; i += 4) {
            RFT_CP_ASYNC(to + (unsigned)i, from + i, 4, bytes <= i ? 0 : SIZE == 2 && bytes - i < 4 ? 2 : 4);
        }
    } else {
        unsigned word[4] = {0, 0, 0, 0};
        RFT_UNROLL
        for (int i = 0; i < 8; i++) {
            word[i / 2] |= 2 * i < bytes ? (unsigned)((const unsigned short *)from)[i] << i % 2 * 16 : 0u;
        }
        *(uint4 *)(shared_bytes + to - rft__shared(shared_bytes)) = make_uint4(word[0], word[1], word[2], word[3]);
    }
}

/* Sends part `part` of `parts` of a stage's chunks to the tile at `tile`, and with the last moves on by one stage. */
RFT_FN void side_load(side *s, int loads, int chunks, int mn, int halves, int words, unsigned tile, int part, int parts) {
    const int along = clamp_bytes(s->left);
    LOADS_UNROLL
    for (int i = loads * part / parts; i < loads * (part + 1) / parts; i++) {
        const int apart = i * (THREADS / chunks), down = mn ? apart : rows_apart(i, chunks, halves);
        const int bytes = mn ? (apart < s->left ? s->rows : 0) : (down < s->rows ? along : 0);
        const char *from = s->at + down * s->apart + (!mn && halves && apart / 8 % 2 ? s->up : 0);
        RFT_CHECK_AT(s->origin, from, bytes);
        chunk_load(tile + rft__sm80_offset(first_row(chunks) + apart, first_chunk(chunks), chunks, words), from, bytes);
    }
    if (part + 1 == parts) {
        s->at += s->forward;
        s->left -= BK;
    }
}

#define TURNS RFT_OPTION2 /* a block takes tiles in turn, and loads of the next begin before this one's sums leave */

typedef struct feed { /* what goes to shared memory next */
    side x, w;
    int tile, stages; /* stages of this tile that are not on their way */
} feed;

RFT_FN rft__tile tile_of(const rft__cuda_args *a, int tile) {
    return rft__tile_at(tile, a->number[0], a->number[1], a->number[2]);
}

RFT_FN void feed_open(feed *f, const rft__cuda_args *a, int batch, int tile) {
    const rft__tile at = tile_of(a, tile);
    const int halves = RFT_GLU == 1, n0 = at.n * RFT_BN;
    side_open(&f->x, X_CHUNKS, RFT_X_MN, 0, a->x, batch * a->x_batch_stride, a->ldx, at.m * RFT_BM, a->m, a->k);
    side_open(&f->w, W_CHUNKS, RFT_W_MN, halves, a->w, batch * a->w_batch_stride, a->ldw, halves ? n0 / 2 : n0,
              halves ? a->n / 2 : a->n, a->k);
    RFT_ORIGIN_SET(f->x.origin, a, RFT_AT_X, batch);
    RFT_ORIGIN_SET(f->w.origin, a, RFT_AT_W, batch);
    f->tile = tile;
    f->stages = (a->k + BK - 1) / BK;
}

/* On to the next tile, if there is one, when all of this one is on its way. */
RFT_FN void feed_turn(feed *f, const rft__cuda_args *a, int batch) {
    const int next = f->tile + (int)gridDim.x;
    if (TURNS && f->stages == 0 && next < a->number[0] * a->number[1]) {
        feed_open(f, a, batch, next);
    }
}

/* The first stages of the first tile: w may be read before the kernel before is done. A feed that turns has as many at least. */
RFT_FN void feed_begin(feed *f) {
    const unsigned ring = rft__shared(shared_bytes);
    if (!RFT_W_EARLY) {
        rft__pdl_wait();
    }
    RFT_UNROLL
    for (int s = 0; s < RFT_STAGES - 1; s++) {
        if (s < f->stages) {
            side_load(&f->w, W_SIDE, ring + (unsigned)(s * STAGE_BYTES + X_BYTES), 0, 1);
        }
    }
    if (RFT_W_EARLY) {
        rft__pdl_wait();
    }
    RFT_UNROLL
    for (int s = 0; s < RFT_STAGES - 1; s++) {
        if (s < f->stages) {
            side_load(&f->x, X_SIDE, ring + (unsigned)(s * STAGE_BYTES), 0, 1);
        }
        rft__cp_async_commit();
    }
    f->stages -= RFT_STAGES - 1;
}

/* ---- shared to registers ---- */

typedef struct fragments { /* of one step: 32 bytes of k */
    unsigned x[MI][4], w[NJ / 2][4];
} fragments;

/* 16 rows of an operand: for x one fragment of 16 x k, for w two of k x 8. at: the lane's place in this stage. */
RFT_FN void block_load(unsigned r[4], unsigned at, unsigned block, unsigned step, unsigned chunks, int mn, int words, int is_w) {
    if (words) {
        RFT_UNROLL
        for (int i = 0; i < 4; i++) {
            const int beside = is_w ? i / 2 : i % 2, further = is_w ? i % 2 : i / 2;
            const unsigned flip = rft__sm80_flip(block, step, mn, 1, beside);
            const unsigned word = (at ^ flip) + rft__sm80_add(block, step, chunks, mn, 1, further);
            r[i] = *(const unsigned *)(shared_bytes + (word - rft__shared(shared_bytes)));
        }
        return;
    }
    const unsigned row = (at ^ rft__sm80_flip(block, step, mn, 0, 0)) + rft__sm80_add(block, step, chunks, mn, 0, 0);
    if (mn) {
        rft__ldmatrix4_trans(r, row);
    } else {
        rft__ldmatrix4(r, row);
    }
}

/* x, w: the lane's places at the warp's first step of this stage. */
RFT_FN void fragments_load(fragments *f, unsigned x, unsigned w, unsigned own) {
    const unsigned step = own * WARPS_K;
    RFT_UNROLL
    for (unsigned i = 0; i < MI; i++) {
        block_load(f->x[i], x, i, step, X_CHUNKS, RFT_X_MN, X_WORDS, 0);
    }
    RFT_UNROLL
    for (unsigned j = 0; j < NJ / 2; j++) {
        block_load(f->w[j], w, j, step, W_CHUNKS, RFT_W_MN, W_WORDS, 1);
    }
}

/* ---- products ---- */

RFT_FN void round_all(unsigned (*block)[4], int count) {
    RFT_UNROLL
    for (int i = 0; i < 4 * count; i++) {
        block[i / 4][i % 4] = rft__round_tf32(__uint_as_float(block[i / 4][i % 4]));
    }
}

/* f32 becomes tf32. */
RFT_FN void fragments_round(fragments *f) {
    if (SIZE == 4) {
        round_all(f->x, MI);
        round_all(f->w, NJ / 2);
    }
}

/* The first or second 8 k of 16: a word of 2 k as a low and a high word of 1 k. f16 with bf16 as tf32, x row by row. */
RFT_FN void multiply_mixed(float (*sum)[NJ][4], const fragments *f, int half) {
    unsigned b[NJ][2], a[4];
    RFT_UNROLL
    for (int j = 0; j < NJ; j++) {
        const unsigned pair = f->w[j / 2][j % 2 * 2 + half];
        b[j][0] = __float_as_uint(rft__widen_low(RFT_W_TYPE, pair)), b[j][1] = __float_as_uint(rft__widen_high(RFT_W_TYPE, pair));
    }
    RFT_UNROLL
    for (int i = 0; i < MI; i++) {
        RFT_UNROLL
        for (int e = 0; e < 2; e++) {
            const unsigned pair = f->x[i][2 * half + e];
            a[e] = __float_as_uint(rft__widen_low(RFT_X_TYPE, pair));
            a[e + 2] = __float_as_uint(rft__widen_high(RFT_X_TYPE, pair));
        }
        RFT_UNROLL
        for (int j = 0; j < NJ; j++) {
            rft__mma_tf32(sum[i][j], a, b[j]);
        }
    }
}

RFT_FN void multiply(float (*sum)[NJ][4], fragments *f) {
    if (MIXED) {
        multiply_mixed(sum, f, 0);
        multiply_mixed(sum, f, 1);
        return;
    }
    RFT_UNROLL
    for (int i = 0; i < MI; i++) {
        RFT_UNROLL
        for (int t = 0; t < NJ; t++) { /* there and back: neighbours share x or w, which need not be read again */
            const int j = i % 2 == 0 ? t : NJ - 1 - t;
            const unsigned *const w = f->w[j / 2] + j % 2 * 2;
            if (SIZE == 4) {
                rft__mma_tf32(sum[i][j], f->x[i], w);
            } else if (RFT_COMPUTE_TYPE == 3) {
                rft__mma_bf16(sum[i][j], f->x[i], w);
            } else {
                rft__mma_f16(sum[i][j], f->x[i], w);
            }
        }
    }
}

/* A lane's place in the tile at `tile` from row `row` and step `step` on. */
RFT_FN unsigned place(unsigned tile, unsigned lane, unsigned row, unsigned step, unsigned chunks, int mn, int words, int is_w) {
    const unsigned start = rft__sm80_first(lane, row, chunks, mn, words, is_w);
    return tile + (start ^ rft__sm80_flip(0, step, mn, words, 0)) + rft__sm80_add(0, step, chunks, mn, words, 0);
}

typedef struct reader { /* of the ring */
    unsigned x_at, w_at; /* the lane's places in stage 0 */
    int here;            /* the stage that is multiplied next */
    fragments f[2];      /* of the step that is multiplied and the next one, where registers last; [0]: of a stage's first step */
} reader;

/* The next stage is there for all, and all have read the one before. */
RFT_FN void ring_meet(void) {
    RFT_CP_ASYNC_WAIT(RFT_STAGES - 2);
    __syncthreads();
}

RFT_FN void reader_load(reader *r, int f, int step) {
    const unsigned stage = (unsigned)(r->here * STAGE_BYTES);
    fragments_load(&r->f[f], r->x_at + stage, r->w_at + stage, (unsigned)step);
}

/* Waits for the first stage; m, n: the warp's place in a tile, first: its first step of a stage. */
RFT_FN void reader_begin(reader *r, unsigned m, unsigned n, unsigned first) {
    const unsigned ring = rft__shared(shared_bytes), lane = threadIdx.x % 32;
    r->x_at = place(ring, lane, m, first, X_CHUNKS, RFT_X_MN, X_WORDS, 0);
    r->w_at = place(ring + X_BYTES, lane, n, first, W_CHUNKS, RFT_W_MN, W_WORDS, 1);
    r->here = 0;
    ring_meet();
    if (AHEAD) {
        reader_load(r, 0, 0);
    }
}

/* A part of the feed's next stage goes to where the one before `here` was; zeros when all k is on its way: no branch between
 * products. */
RFT_FN void stage_fill(feed *next, int here, int part, int parts) {
    const int before = here > 0 ? here - 1 : RFT_STAGES - 1;
    const unsigned free = rft__shared(shared_bytes) + (unsigned)(before * STAGE_BYTES);
    side_load(&next->x, X_SIDE, free, part, parts);
    side_load(&next->w, W_SIDE, free + X_BYTES, part, parts);
}

/* One stage, while the feed fills the one before it: each step is read while the one before it is multiplied. So the last is
 * multiplied when warps have met and read the first of the next stage, be it of the next tile. */
RFT_FN void stage_multiply(float (*sum)[NJ][4], reader *r, feed *next) {
    RFT_UNROLL
    for (int step = 0; step < STEPS; step++) {
        const int last = step + 1 == STEPS;
        if (!AHEAD) {
            reader_load(r, 0, step);
        }
        if (STEPS == 1) {
            stage_fill(next, r->here, 0, 1);
        }
        if (last) {
            rft__cp_async_commit();
            ring_meet();
            r->here = r->here + 1 < RFT_STAGES ? r->here + 1 : 0;
        }
        if (AHEAD) {
            reader_load(r, (step + 1) % 2, last ? 0 : step + 1);
        }
        if (!last) {
            stage_fill(next, r->here, step, STEPS - 1);
        }
        fragments_round(&r->f[AHEAD ? step % 2 : 0]);
        multiply(sum, &r->f[AHEAD ? step % 2 : 0]);
    }
    if (AHEAD && STEPS % 2 == 1) {
        r->f[0] = r->f[1];
    }
    next->stages -= next->stages > 0;
}

/* ---- out ---- */

#define PART (16 * PITCH) /* floats of a warp's part of shared memory */

/* One sum of all warps that share it, in ascending k of their steps. */
RFT_FN float part_sum(const float *at) {
    float v = at[0];
    RFT_UNROLL
    for (int i = 1; i < WARPS_K; i++) {
        v += at[i * PART];
    }
    return v;
}

/* A debug build: the part of those sums that one warp has. */
RFT_FN void dump_parts(const rft__cuda_args *a, int batch, int m, int n, const float *row, int valid) {
    for (int p = 0; p < WARPS_K; p++) {
        float v[8], up[8];
        RFT_UNROLL
        for (int i = 0; i < 8 && RFT_DUMPS(RFT_DUMP_PART(p)); i++) {
            v[i] = row[p * PART + (RFT_GLU == 2 ? 2 * i : i)];
            up[i] = RFT_GLU ? row[p * PART + (RFT_GLU == 2 ? 2 * i + 1 : 8 + i)] : 0.0f;
        }
        if (RFT_DUMPS(RFT_DUMP_PART(p))) {
            RFT_DUMP_SPAN(a, batch, m, n, v, up, 8, valid);
        }
    }
    (void)a, (void)batch, (void)m, (void)n, (void)row, (void)valid;
}

/* 8 columns of y from 8 sums of a row, or from 8 pairs. */
RFT_FN void span_finish(const rft__cuda_args *a, int batch, int m, int n, const float *row) {
    const int n_out = RFT_GLU ? a->n / 2 : a->n;
    float v[8], up[8];
    RFT_UNROLL
    for (int i = 0; i < 8; i++) {
        v[i] = part_sum(row + (RFT_GLU == 2 ? 2 * i : i));
        up[i] = RFT_GLU ? part_sum(row + (RFT_GLU == 2 ? 2 * i + 1 : 8 + i)) : 0.0f;
    }
    dump_parts(a, batch, m, n, row, n_out - n);
    rft__finish_span(a, batch, m, n, v, up, 8, n_out - n < 8 ? n_out - n : 8);
}

RFT_FN void sums_meet(void) {
    if (WARPS_K > 1) {
        __syncthreads();
    } else {
        __syncwarp();
    }
}

/* 16 rows at a time at the place of the first, so that the epilogue is in the text once; m, n: of the warp's first sum. */
RFT_FN void finish(const rft__cuda_args *a, int batch, int m, int n, float (*sum)[NJ][4]) {
    const int lane = (int)threadIdx.x % 32, group = (int)threadIdx.x / 32 % (WARPS_M * WARPS_N),
              share = (int)threadIdx.x / 32 / (WARPS_M * WARPS_N), width = RFT_GLU ? 16 : 8, spans = WN / width;
    float *const out = (float *)(shared_bytes + (TURNS ? RFT_STAGES * STAGE_BYTES : 0));
    float *const part = out + group * WARPS_K * PART, *const own = part + share * PART;
#pragma unroll 1
    for (int i = 0; i < MI; i++) {
        RFT_UNROLL
        for (int j = 0; j < NJ; j++) {
            float *const at = own + lane / 4 * PITCH + 8 * j + lane % 4 * 2;
            at[0] = sum[0][j][0], at[1] = sum[0][j][1];
            at[8 * PITCH] = sum[0][j][2], at[8 * PITCH + 1] = sum[0][j][3];
        }
        sums_meet();
#pragma unroll 1
        for (int s = lane + 32 * share; s < 16 * spans; s += 32 * WARPS_K) {
            const int row = s / spans, c = s % spans * width, column = RFT_GLU ? (n + c) / 2 : n + c;
            if (m + 16 * i + row < a->m && column < (RFT_GLU ? a->n / 2 : a->n)) {
                span_finish(a, batch, m + 16 * i + row, column, part + row * PITCH + c);
            }
        }
        sums_meet();
        RFT_UNROLL
        for (int j = 0; j < (MI - 1) * NJ * 4; j++) {
            sum[j / (NJ * 4)][j / 4 % NJ][j % 4] = sum[j / (NJ * 4) + 1][j / 4 % NJ][j % 4];
        }
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT) gemm_sm80(const __grid_constant__ rft__cuda_args args) {
    const int warp = (int)threadIdx.x / 32, m = warp % WARPS_M * WM, n = warp / WARPS_M % WARPS_N * WN;
    const int tiles = args.number[0] * args.number[1], stages = (args.k + BK - 1) / BK;
    rft__pdl_launch();
    for (int batch = RFT_BATCHED ? (int)blockIdx.y : 0; batch < (RFT_BATCHED ? args.batch : 1); batch += (int)gridDim.y) {
        feed next;
        reader r;
        feed_open(&next, &args, batch, (int)blockIdx.x);
        feed_begin(&next);
        reader_begin(&r, (unsigned)m, (unsigned)n, (unsigned)(warp / (WARPS_M * WARPS_N)));
        for (int tile = (int)blockIdx.x; tile < tiles; tile = TURNS ? tile + (int)gridDim.x : tiles) {
            const rft__tile at = tile_of(&args, tile);
            float sum[MI][NJ][4] = {};
#pragma unroll 1
            for (int stage = 0; stage < stages; stage++) {
                feed_turn(&next, &args, batch);
                stage_multiply(sum, &r, &next);
            }
            if (!TURNS) { /* the sums leave through the ring */
                RFT_CP_ASYNC_WAIT(0);
                __syncthreads();
            }
            finish(&args, batch, at.m * RFT_BM + m, at.n * RFT_BN + n, sum);
        }
        __syncthreads();
    }
}
