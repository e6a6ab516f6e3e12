/* SPDX-License-Identifier: Apache-2.0
 *
 * gemm_sm90_epilogue.cuh - from accumulators of wgmma to y, in three ways, each by a warp on its own rows:
 *     staged    chunks of f32 go through shared memory and become spans of 8 columns: any list, any y, sums of split parts
 *     packed    the list is applied to pairs of columns in registers, which are rounded to 16 bits there, and y is stored a chunk
 *               at a time, by TMA if it can: lists that read no matrix, or one of 16 bits that comes through the ring behind the
 *               tile's last step (RFT_RESIDUAL), and any matrices where warpgroups take turns
 *     deferred  packed, but for short lists without activation and matrix the pairs wait in registers, and are stored a chunk a
 *               step while the next tile is multiplied
 * Turned (RFT_TURNED), wgmma's rows are those of W and its columns tokens: a packed chunk is then 64 tokens of all four warps.
 * Included by gemm_sm90.cu behind RFT_WM x RFT_WN, the tile of a warpgroup as wgmma has it.
 */
#ifndef RFT_CUDA_KERNELS_GEMM_SM90_EPILOGUE_CUH
#define RFT_CUDA_KERNELS_GEMM_SM90_EPILOGUE_CUH

#include "epilogue.cuh"
#include "gemm_sm90_layout.h"
#include "hopper.cuh"

#define STAGED_CHUNKS RFT_OPTION3 /* of 16-bit y, by a warp: 1 or 2; a chunk of f32 takes two places */
#define M_BLOCKS (RFT_WM / 64)
#define CHUNKS_ROW ((RFT_WN + RFT_CHUNK_COLUMNS - 1) / RFT_CHUNK_COLUMNS) /* the last may be half a chunk */
#define CHUNKS (M_BLOCKS * CHUNKS_ROW)
#define Y_COLUMNS (RFT_GLU ? RFT_CHUNK_COLUMNS / 2 : RFT_CHUNK_COLUMNS) /* of a chunk */
#define SPANS_ROW (Y_COLUMNS / RFT_SPAN)

/* Packed y of 16 bits. */
#define Y_WIDTH (RFT_GLU ? RFT_WN / 2 : RFT_WN) /* columns of y of a warpgroup */
#define Y_CHUNKS_ROW ((Y_WIDTH + RFT_CHUNK_COLUMNS - 1) / RFT_CHUNK_COLUMNS)
#define Y_CHUNKS (M_BLOCKS * Y_CHUNKS_ROW)
#define Y_WORDS (RFT_DEFERRED ? Y_CHUNKS * 16 : 1)
#define SLICE   8 /* registers: 16 columns of a chunk, one stmatrix */
#define SLICES  (32 / SLICE)
#define OWNERS  (RFT_TURNED ? 128 : 32) /* threads that make a chunk */
#define RESIDUAL_CHUNKS ((RFT_BM + RFT_BN) / RFT_BM) /* of a tile's rows, in a slot of the ring */

typedef struct spot { /* of y: where something begins */
    int batch, m, n;
} spot;

/* The list's matrix, where it has come through the ring: shared addresses of the slots that hold it, the tile's first chunks and,
 * where a slot has not room for all, the others. 0: it is read from memory. */
typedef struct residual {
    unsigned first, second;
    int row, chunk; /* of the tile: the warpgroup's first */
} residual;

typedef struct parcel {
    unsigned word[Y_WORDS]; /* pairs of columns: [chunk][8 columns][row or row + 8] */
    spot at;                /* of the warpgroup */
    bool waits, by_map;
    unsigned place;         /* of the next chunk in what is staged */
} parcel;

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
                const int from = chunk_register(c % CHUNKS_ROW, i);
                v[i] = from < RFT_WN / 2 ? acc[c / CHUNKS_ROW][from] : 0;
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

RFT_FN float4 load4_of_rank(const char *from, int rank, int parts) {
    if (parts == 1) {
        return *(const float4 *)from;
    }
    return rft__cluster_load4(rft__cluster_map(rft__shared(from), rank));
}

/* count columns, a multiple of 4, summed over parts first..last-1 of k in ascending order; parts, a constant, are blocks of the
 * cluster. */
RFT_FN void read_staged(const char *chunk, int row, int column, int count, int first, int last, int parts, float *v) {
    RFT_UNROLL
    for (int i = 0; i < count; i += 4) {
        const char *const from = chunk + rft__chunk_at(row, column + i);
        float4 sum = load4_of_rank(from, first, parts);
        RFT_UNROLL
        for (int rank = first + 1; rank < last; rank++) {
            const float4 part = load4_of_rank(from, rank, parts);
            sum.x += part.x, sum.y += part.y, sum.z += part.z, sum.w += part.w;
        }
        v[i] = sum.x, v[i + 1] = sum.y, v[i + 2] = sum.z, v[i + 3] = sum.w;
    }
}

/* v: columns of y, up: what belongs to them of a gated unit. */
RFT_FN void read_span_from(const char *chunk, int row, int span, int first, int last, int parts, float v[RFT_SPAN],
                           float up[RFT_SPAN]) {
    if (RFT_GLU == 2) {
        float both[2 * RFT_SPAN];
        read_staged(chunk, row, span * 2 * RFT_SPAN, 2 * RFT_SPAN, first, last, parts, both);
        RFT_UNROLL
        for (int i = 0; i < RFT_SPAN; i++) {
            v[i] = both[2 * i], up[i] = both[2 * i + 1];
        }
        return;
    }
    read_staged(chunk, row, span * RFT_SPAN, RFT_SPAN, first, last, parts, v);
    if (RFT_GLU == 1) {
        read_staged(chunk, row, RFT_CHUNK_COLUMNS / 2 + span * RFT_SPAN, RFT_SPAN, first, last, parts, up);
    }
}

RFT_FN void read_span(const char *chunk, int row, int span, int parts, float v[RFT_SPAN], float up[RFT_SPAN]) {
    read_span_from(chunk, row, span, 0, parts, parts, v, up);
}

/* A debug build: the sums of a span, or those of one block where `parts` have one each. */
RFT_FN void dump_span(const rft__cuda_args *a, const spot *at, const char *chunk, int row, int span, int parts, const float *v,
                      const float *up, int valid) {
    const int m = at->m + row, column = at->n + span * RFT_SPAN;
    if (RFT_DUMPS(RFT_DUMP_ACC) || (RFT_DUMPS(RFT_DUMP_PART(0)) && parts == 1)) {
        RFT_DUMP_SPAN(a, at->batch, m, column, v, up, RFT_SPAN, valid);
    }
    for (int rank = 0; rank < parts && parts > 1; rank++) {
        if (RFT_DUMPS(RFT_DUMP_PART(rank))) {
            float own[RFT_SPAN], other[RFT_SPAN];
            read_span_from(chunk, row, span, rank, rank + 1, parts, own, other);
            RFT_DUMP_SPAN(a, at->batch, m, column, own, other, RFT_SPAN, valid);
        }
    }
    (void)a, (void)chunk, (void)m, (void)column, (void)v, (void)up, (void)valid;
}

/* The same of the pair of columns in registers r, r + 1 of a chunk at `at`. */
RFT_FN void dump_pair(const rft__cuda_args *a, const spot *at, int r, const float *v, const float *up) {
    const int lane = threadIdx.x % 32, m = at->m + rft__wgmma_row(lane, r), column = at->n + rft__wgmma_column(lane, r);
    if ((RFT_DUMPS(RFT_DUMP_ACC) || RFT_DUMPS(RFT_DUMP_PART(0))) && m < a->m) {
        RFT_DUMP_SPAN(a, at->batch, m, column, v, up, 2, (RFT_GLU ? a->n / 2 : a->n) - column);
    }
    (void)column, (void)v, (void)up;
}

/* Columns of y from `column` on, of the warpgroup's own where its last chunk is half; none where negative. in: of its chunk. */
RFT_FN int columns_left(const rft__cuda_args *a, int in, int column) {
    const int columns = RFT_GLU ? a->n / 2 : a->n;
    return (Y_WIDTH % RFT_CHUNK_COLUMNS ? min(columns, (in / Y_WIDTH + 1) * Y_WIDTH) : columns) - column;
}

RFT_FN void fetch_span(const rft__cuda_args *a, const spot *at, int i, rft__epi_operands *o) {
    const int lane = threadIdx.x % 32, column = at->n + rft__chunk_span(lane, SPANS_ROW) * RFT_SPAN;
    const int m = at->m + rft__chunk_row(lane, i, SPANS_ROW);
    if (m < a->m) {
        rft__epi_fetch(a, at->batch, m, column, RFT_SPAN, columns_left(a, at->n, column), o);
    }
}

/* So many spans and their operands are asked for at once, as registers allow: stores of y would else keep each waiting. */
#define SPANS (RFT_AHEAD < SPANS_ROW / 2 ? RFT_AHEAD : SPANS_ROW / 2)
#define SHARED_SPANS (SPANS < 2 ? SPANS : 2) /* where parts of k are summed */

/* count: a constant. */
RFT_FN void finish_spans(const rft__cuda_args *a, const char *chunk, int parts, const spot *at, int first, int count) {
    const int lane = threadIdx.x % 32, span = rft__chunk_span(lane, SPANS_ROW), column = at->n + span * RFT_SPAN;
    const int valid = columns_left(a, at->n, column);
    rft__epi_operands o[SPANS];
    float v[SPANS][RFT_SPAN], up[SPANS][RFT_SPAN];
    RFT_UNROLL
    for (int i = 0; i < count; i++) {
        const int row = rft__chunk_row(lane, first + i, SPANS_ROW);
        fetch_span(a, at, first + i, &o[i]);
        if (parts > 1 && at->m + row < a->m) { /* from afar */
            read_span(chunk, row, span, parts, v[i], up[i]);
        }
    }
    RFT_UNROLL
    for (int i = 0; i < count; i++) {
        const int row = rft__chunk_row(lane, first + i, SPANS_ROW), m = at->m + row;
        if (parts == 1) {
            read_span(chunk, row, span, parts, v[i], up[i]);
        }
        if (m < a->m) {
            dump_span(a, at, chunk, row, span, parts, v[i], up[i], valid);
            rft__epi_apply(a, at->batch, m, column, &o[i], v[i], up[i], RFT_SPAN, valid);
            rft__store_span(a, at->batch, m, column, v[i], RFT_SPAN, valid);
        }
    }
}

RFT_FN void finish_chunk(const rft__cuda_args *a, const char *chunk, const spot *at) {
    _Pragma("unroll 1")
    for (int i = 0; i < SPANS_ROW / 2; i += SPANS) {
        finish_spans(a, chunk, 1, at, i, SPANS);
    }
}

/* Chunk c of a warp's accumulators, from the first row and column of y of its warpgroup. */
RFT_FN spot chunk_spot(const spot *first, int c, int warp) {
    const spot s = {first->batch, first->m + c / CHUNKS_ROW * 64 + warp * RFT_CHUNK_ROWS, first->n + c % CHUNKS_ROW * Y_COLUMNS};
    return s;
}

/* Lines of 128 bytes of the warpgroup's rows, one a thread. A row that begins within a line has one more, and a matrix that gate
 * and up read has twice the columns: the loads themselves bring those. */
RFT_FN void prefetch_matrix(const rft__cuda_args *a, const rft__cuda_operand *o, int size, const spot *first) {
    const int lines = (Y_WIDTH * size + 127) / 128, columns = RFT_GLU ? a->n / 2 : a->n;
    const char *const p = (const char *)o->ptr + (RFT_BATCHED ? first->batch * o->batch_stride : 0) * size;
    _Pragma("unroll 1")
    for (int i = threadIdx.x % 128; i < RFT_WM * lines; i += 128) {
        const int m = first->m + i / lines, n = first->n + i % lines * (128 / size);
        if (m < a->m && n < columns) {
            rft__prefetch_l2(p + (m * o->ld + n) * size);
        }
    }
}

/* The matrices that the list reads, of the tile that is about to be multiplied, come to L2 meanwhile. */
RFT_FN void prefetch_matrices(const rft__cuda_args *a, const spot *first) {
#define RFT_STEP(KIND, ACCESS, TYPE, INDEX, ALPHA, BETA)                       \
    if (RFT_ACCESS_##ACCESS == RFT_ACCESS_MATRIX) {                            \
        prefetch_matrix(a, &a->operand[INDEX], rft__size_of(TYPE), first);     \
    }
    RFT_EPI(RFT_STEP)
#undef RFT_STEP
    (void)a, (void)first;
}

/* Of one warpgroup, whose first row and column of y are first's. */
RFT_FN void finish_tile(const rft__cuda_args *a, float acc[M_BLOCKS][RFT_WN / 2], char *staged, const spot *first) {
    const int warp = threadIdx.x / 32 % 4;
    _Pragma("unroll 1")
    for (int c = 0; c < CHUNKS; c++) {
        const spot at = chunk_spot(first, c, warp);
        float v[32];
        take_chunk(acc, c, v);
        stage_chunk(v, staged);
        __syncwarp();
        finish_chunk(a, staged, &at);
        __syncwarp();
    }
}

/* ---- epilogue of 16-bit y: accumulators -> pairs in registers -> chunks of 16 bits in shared memory -> y ---- */

/* Chunk c of this warp's parcel, from that of the warpgroup. */
RFT_FN spot parcel_spot(const spot *first, int c) {
    const int warp = threadIdx.x / 32 % 4, block = c / Y_CHUNKS_ROW * 64, in_row = c % Y_CHUNKS_ROW * RFT_CHUNK_COLUMNS;
    const spot turned = {first->batch, first->m + in_row, first->n + block};
    const spot s = {first->batch, first->m + block + warp * RFT_CHUNK_ROWS, first->n + in_row};
    return RFT_TURNED ? turned : s;
}

/* All threads that make a chunk together. */
RFT_FN void sync_owners(void) {
    if (RFT_TURNED) {
        rft__bar_sync(2 + threadIdx.x / 128, 128);
    } else {
        __syncwarp();
    }
}

/* Whether the warpgroup has it: its last chunk may end before. */
RFT_FN bool slice_exists(int chunk, int slice) { return (chunk % Y_CHUNKS_ROW * SLICES + slice) * SLICE < Y_WIDTH / 2; }

/* Turned: pairs of tokens, and a warp has 16 columns of a chunk. */
RFT_FN void pack_turned(const rft__cuda_args *a, const spot *at, int r, float v[SLICE], unsigned word[SLICE / 2]) {
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4;
    RFT_UNROLL
    for (int i = 0; i < SLICE; i++) {
        const int m = at->m + rft__wgmma_column(lane, r + i), n = at->n + warp * 16 + rft__wgmma_row(lane, r + i);
        if (RFT_DUMPS(RFT_DUMP_ACC) || RFT_DUMPS(RFT_DUMP_PART(0))) {
            if (m < a->m) {
                RFT_DUMP_SPAN(a, at->batch, m, n, v + i, v + i, 1, a->n - n);
            }
        }
        if (RFT_EPI_COUNT > 0) {
            rft__epi_span(a, at->batch, min(m, a->m - 1), min(n, a->n - 1), v + i, v + i, 1, 1);
        }
    }
    RFT_UNROLL
    for (int i = 0; i < SLICE; i += 2) {
        word[i / 2] = rft__narrow_pair(RFT_Y_TYPE, v[i], v[i + 1]);
    }
}

/* The matrix at slice of chunk, where it lies as y is staged. */
RFT_FN void residual_slice(const residual *from, int chunk, int slice, unsigned word[SLICE / 2]) {
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4, in_row = from->chunk + chunk % Y_CHUNKS_ROW;
    const int row = from->row + chunk / Y_CHUNKS_ROW * 64 + warp * RFT_CHUNK_ROWS + lane % 16;
    const unsigned slot = in_row < RESIDUAL_CHUNKS ? from->first : from->second;
    rft__ldmatrix4(word, slot + in_row % RESIDUAL_CHUNKS * RFT_BM * 128 +
                             rft__swizzle_128(row * 128 + (2 * slice + lane / 16) * 16));
}

/* Pairs beyond an edge are the last one within. */
RFT_FN int pair_row(const rft__cuda_args *a, const spot *at, int r) {
    return min(at->m + rft__wgmma_row(threadIdx.x % 32, r), a->m - 1);
}

RFT_FN int pair_column(const rft__cuda_args *a, const spot *at, int r) {
    return min(at->n + rft__wgmma_column(threadIdx.x % 32, r), (RFT_GLU ? a->n / 2 : a->n) - 2);
}

/* The same from memory, at registers r, ... of a chunk at `at`. */
RFT_FN void fetch_residual(const rft__cuda_args *a, const spot *at, int r, unsigned word[SLICE / 2]) {
    RFT_UNROLL
    for (int i = 0; i < SLICE; i += 2) {
        const rft__span s = rft__span_of(a, at->batch, pair_row(a, at, r + i), pair_column(a, at, r + i), 2, 2);
        rft__fetch(RFT_ACCESS_MATRIX, RFT_RESIDUAL_TYPE, RFT_RESIDUAL_OPERAND, &s, &word[i / 2]);
    }
}

/* Applies the list to slice of chunk, in registers v, ... at `at`, and rounds them; what is beyond an edge is not stored. given:
 * where the list's matrix is, with RFT_RESIDUAL. text() promises an even number of columns. */
RFT_FN void pack_slice(const rft__cuda_args *a, const spot *at, const residual *given, int chunk, int slice, float v[SLICE],
                       float up[SLICE], unsigned word[SLICE / 2]) {
    const int r = slice * SLICE;
    unsigned matrix[SLICE / 2];
    if (RFT_TURNED) {
        pack_turned(a, at, r, v, word);
        return;
    }
    if (RFT_RESIDUAL && given->first != 0) {
        residual_slice(given, chunk, slice, matrix);
    } else if (RFT_RESIDUAL) {
        fetch_residual(a, at, r, matrix);
    }
    RFT_UNROLL
    for (int i = 0; i < SLICE; i += 2) {
        dump_pair(a, at, r + i, v + i, up + i);
        if (RFT_EPI_COUNT > 0) {
            rft__epi_span_beside(a, at->batch, pair_row(a, at, r + i), pair_column(a, at, r + i),
                                 RFT_RESIDUAL ? &matrix[i / 2] : 0, v + i, up + i, 2, 2);
        }
        word[i / 2] = rft__narrow_pair(RFT_Y_TYPE, v[i], v[i + 1]);
    }
}

/* A chunk where it is; unrolled, as each register is free once its word is made. */
RFT_FN void pack_chunk(const rft__cuda_args *a, float acc[M_BLOCKS][RFT_WN / 2], int chunk, parcel *to) {
    const int first = chunk % Y_CHUNKS_ROW * 32;
    const spot at = parcel_spot(&to->at, chunk);
    RFT_UNROLL
    for (int s = 0; s < SLICES; s++) {
        unsigned *const word = to->word + 16 * chunk + s * SLICE / 2;
        if (slice_exists(chunk, s)) {
            float *const v = acc[chunk / Y_CHUNKS_ROW] + first + s * SLICE;
            pack_slice(a, &at, 0, chunk, s, v, v + (RFT_GLU ? RFT_WN / 4 : 0), word);
        } else {
            word[0] = word[1] = word[2] = word[3] = 0;
        }
    }
}

RFT_FN void pack(const rft__cuda_args *a, float acc[M_BLOCKS][RFT_WN / 2], const spot *first, parcel *to) {
    to->at = *first, to->waits = true;
    RFT_UNROLL
    for (int c = 0; c < Y_CHUNKS; c++) {
        pack_chunk(a, acc, c, to);
    }
}

/* Nothing waits any more; said of each word, as else the compiler keeps them. */
RFT_FN void forget(parcel *p) {
    p->waits = false;
    RFT_UNROLL
    for (int i = 0; i < Y_WORDS; i++) {
        p->word[i] = 0;
    }
}

/* 16 of a chunk's columns, which is rows of 128 bytes, swizzled; each lane gives the address of a row of 8 columns. Turned: 16
 * tokens of the warp's 16 columns. */
RFT_FN void stage_slice(const unsigned *word, int slice, unsigned to) {
    const int lane = threadIdx.x % 32, row = lane % 16, warp = threadIdx.x / 32 % 4;
    if (RFT_TURNED) {
        const int token = 16 * slice + lane / 16 * 8 + lane % 8;
        rft__stmatrix4_turned(to + rft__swizzle_128(token * 128 + (2 * warp + lane / 8 % 2) * 16), word);
    } else {
        rft__stmatrix4(to + rft__swizzle_128(row * 128 + (2 * slice + lane / 16) * 16), word);
    }
}

RFT_FN void stage_words(const unsigned *v, unsigned to) {
    RFT_UNROLL
    for (int i = 0; i < SLICES; i++) {
        stage_slice(v + 4 * i, i, to);
    }
}

/* Chunk of a parcel, which is not a constant, so that the code around is there once. */
RFT_FN void stage_parcel(const parcel *from, int chunk, unsigned to) {
    RFT_UNROLL
    for (int c = 0; c < Y_CHUNKS; c++) {
        if (c == chunk) {
            stage_words(from->word + 16 * c, to);
        }
    }
}

/* 8 columns of y, from where on `left` exist. */
RFT_FN void store_words(const rft__cuda_args *a, int batch, int m, int n, uint4 w, int left) {
    const unsigned word[4] = {w.x, w.y, w.z, w.w};
    const rft__span s = rft__span_of(a, batch, m, n, RFT_SPAN, left);
    RFT_CHECK_Y(a, batch, m, n, left < RFT_SPAN ? left : RFT_SPAN);
    rft__write_span((char *)a->y + ((RFT_BATCHED ? batch * a->y_batch_stride : 0) + m * a->ldy + n) * 2, 2, &s, word);
}

RFT_FN bool y_by_map(const rft__cuda_args *a) {
    return RFT_PACKED &&
           rft__y_fits_map((unsigned long long)a->y, RFT_GLU ? a->n / 2 : a->n, a->ldy, RFT_BATCHED ? a->y_batch_stride : 0);
}

/* Where the next chunk is staged; where there is room for two, the store of the one before may still be reading the other. */
RFT_FN unsigned next_place(parcel *p) {
    const unsigned place = p->place;
    p->place = STAGED_CHUNKS == 2 ? place ^ OWNERS / 32 * RFT_Y_CHUNK_BYTES : 0;
    RFT_BULK_WAIT_READ(STAGED_CHUNKS - 1);
    sync_owners();
    return place;
}

/* A staged chunk by one bulk store. */
RFT_FN void send_chunk(const rft__cuda_map *map, const spot *at, unsigned from) {
    rft__fence_async();
    sync_owners();
    if (threadIdx.x % OWNERS == 0) {
        if (RFT_BATCHED) {
            rft__map_store3(map, from, at->n, at->m, at->batch);
        } else {
            rft__map_store2(map, from, at->n, at->m);
        }
        rft__bulk_commit();
    }
}

/* The same by its owners' own stores, for y of any alignment and for a chunk that is half another warpgroup's. An empty group
 * stands for the bulk store, so that next_place counts places. */
RFT_FN void store_chunk(const rft__cuda_args *a, const spot *at, const char *from) {
    const int id = threadIdx.x % OWNERS, n = at->n + id % 8 * 8, left = columns_left(a, at->n, n);
    sync_owners();
    _Pragma("unroll 1")
    for (int i = 0; i < 4; i++) {
        const int row = id / 8 + OWNERS / 8 * i, m = at->m + row;
        const uint4 w = *(const uint4 *)(from + rft__swizzle_128(row * 128 + id % 8 * 16));
        if (m < a->m) {
            store_words(a, at->batch, m, n, w, left);
        }
    }
    rft__bulk_commit();
}

RFT_FN void deliver_staged(const rft__cuda_args *a, const rft__cuda_map *map, const parcel *p, int chunk, const char *from) {
    const spot at = parcel_spot(&p->at, chunk);
    const bool whole = (chunk % Y_CHUNKS_ROW + 1) * RFT_CHUNK_COLUMNS <= Y_WIDTH;
    if (whole && p->by_map) {
        send_chunk(map, &at, rft__shared(from));
    } else {
        store_chunk(a, &at, from);
    }
}

RFT_FN void deliver_chunk(const rft__cuda_args *a, const rft__cuda_map *map, parcel *from, int chunk, char *staged) {
    char *const place = staged + next_place(from);
    stage_parcel(from, chunk, rft__shared(place));
    deliver_staged(a, map, from, chunk, place);
}

RFT_FN void deliver(const rft__cuda_args *a, const rft__cuda_map *map, parcel *from, char *staged) {
    _Pragma("unroll 1")
    for (int c = 0; c < Y_CHUNKS; c++) {
        deliver_chunk(a, map, from, c, staged);
    }
}

/* ---- the same without a wait in registers: a tile whose y is stored behind its last product ---- */

/* Slice s, a constant, of a warpgroup's accumulators, counted over its chunks. */
RFT_FN void take_slice(float acc[M_BLOCKS][RFT_WN / 2], int s, float v[SLICE], float up[SLICE]) {
    const int from = s % (Y_CHUNKS_ROW * SLICES) * SLICE;
    if (s < Y_CHUNKS * SLICES && slice_exists(s / SLICES, s % SLICES)) {
        RFT_UNROLL
        for (int i = 0; i < SLICE; i++) {
            v[i] = acc[s / (Y_CHUNKS_ROW * SLICES)][from + i];
            up[i] = RFT_GLU ? acc[s / (Y_CHUNKS_ROW * SLICES)][from + i + RFT_WN / 4] : 0;
        }
    }
}

/* The same where s is not a constant, by a jump: registers have no index, and comparisons would be taken for 8 moves each. */
#define RFT_TAKE(S)                   \
    case S:                           \
        take_slice(acc, S, v, up);    \
        break;
#define RFT_TAKE_4(S) RFT_TAKE(S) RFT_TAKE(S + 1) RFT_TAKE(S + 2) RFT_TAKE(S + 3)
RFT_FN void take_any_slice(float acc[M_BLOCKS][RFT_WN / 2], int s, float v[SLICE], float up[SLICE]) {
    switch (s) {
        RFT_TAKE_4(0)
        RFT_TAKE_4(4)
        RFT_TAKE_4(8)
        RFT_TAKE_4(12)
        RFT_TAKE_4(16)
        RFT_TAKE_4(20)
    }
}

#if RFT_ROLLED
#define RFT_EACH _Pragma("unroll 1")
#else
#define RFT_EACH RFT_UNROLL
#endif

/* p: what a parcel is without words. */
RFT_FN void finish_packed(const rft__cuda_args *a, const rft__cuda_map *map, float acc[M_BLOCKS][RFT_WN / 2],
                          const residual *given, parcel *p, char *staged) {
    RFT_EACH
    for (int c = 0; c < Y_CHUNKS; c++) {
        const spot at = parcel_spot(&p->at, c);
        char *const place = staged + next_place(p);
        RFT_EACH
        for (int s = 0; s < SLICES && slice_exists(c, s); s++) {
            float v[SLICE] = {0}, up[SLICE] = {0};
            unsigned word[SLICE / 2];
            take_any_slice(acc, c * SLICES + s, v, up);
            pack_slice(a, &at, given, c, s, v, up, word);
            stage_slice(word, s, rft__shared(place));
        }
        deliver_staged(a, map, p, c, place);
    }
}

#endif
