/* SPDX-License-Identifier: Apache-2.0
 *
 * gemm_amx.c - products of tile registers (16 rows of 64 bytes) with TDPBF16PS, over the bf16 panels of all levels: 16 columns
 * times 32 k of a panel are 1 KiB in a row, which is just the tile that the instruction wants of W. X is read in rows.
 *
 *               16 columns a tile                  17..32 rows: r0 + r1, halves
 *           6 W0 | 7 W1                            1..16 rows, up to 4 panels (16x64): sums 0 1 2 3, X 4, W 6 7 6 7
 *     4 X0  0    | 1      rows 0..r0               all 8 tiles in use
 *     5 X1  2    | 3      rows r0..r0 + r1
 *
 * A step is 32 k. At 32x32 it is 4 products of 16 cycles (one unit a core) and 4 loads of 8: 65536 FLOPs in 64 cycles on 4 KiB.
 * So it reads 64 bytes a cycle; L1 has 128 of them, L2 some 40. 16x64 takes 5 loads a step and reads W for 16 rows alone: for
 * few rows, where W comes from memory anyway.
 *   Measured on 16 threads of a Xeon with 48 KiB of L1, shared with other machines, medians of 4 rounds in GFLOP/s (register loop
 * of all threads: 14990). A strip of W over kc in 24, 32, 48 or 96 KiB, without fetching X to L1; in brackets with it:
 *                                24           32     48     96
 *     512 x 4096 x 14336         5200 (5060)  5420   5500   5830
 *     2048 x 4096 x 4096         4640 (4720)  5160   5200   5580
 *     512 x 4096 x 4096          5060 (4630)  4900   5110   5200
 * Traffic of sums at short kc costs more than W does that L1 does not hold. Lines of W that are not fetched ahead cost 10 %.
 * A product takes as many cycles as X has rows, so heights are halved, not cut at 16. A tail of k is padded in a buffer, since
 * another shape of tiles would mean to configure them anew, which takes about 200 cycles and clears them.
 * Proved on machines without it by the stand-in of tests/unit/amx_standin.h.
 */
#include "cpu/amx/shape_amx.h"
#include "cpu/amx/tile_amx.h"
#include "cpu/tile_family.h"

#include <string.h>

enum {
    STEP_K = RFT__TILE_BYTES / 2,
    BLOCK = RFT__TILE_ROWS * RFT__TILE_BYTES /* of a panel in a step */
};

/* ---- what is fetched meanwhile ---- */

/* Lines of W to L2: `lines` of each panel every (mask + 1)-th step. */
typedef struct fetch {
    const char *w;
    size_t stride;
    int64_t mask;
    int lines;
} fetch;

/* A step reads 16 lines of a panel. */
static fetch fetch_of(const rft__ahead *ahead) {
    const int64_t every = ahead->mask + 1;
    if (every <= 0) {
        return (fetch){ahead->w, ahead->stride, 0, 0};
    }
    return every < RFT__TILE_ROWS ? (fetch){ahead->w, ahead->stride, 0, (int)(RFT__TILE_ROWS / every)}
                        : (fetch){ahead->w, ahead->stride, every / RFT__TILE_ROWS - 1, 1};
}

RFT_INLINE void fetch_w(int panels, int64_t step, fetch *f) {
    if ((step & f->mask) != 0) {
        return;
    }
    for (int i = 0; i < f->lines; i++) {
        RFT_UNROLL
        for (int p = 0; p < panels; p++) {
            __builtin_prefetch(f->w + (size_t)p * f->stride, 0, 2);
        }
        f->w += RFT__TILE_BYTES;
    }
}

/* ---- one call ---- */

typedef struct operands {
    const char *x0, *x1; /* first rows of the halves */
    int64_t x_stride;
    const char *w;
    size_t w_stride;
} operands;

RFT_INLINE void step_tall(int panels, const operands *o) {
    RFT_TILE_LOAD(6, o->w, RFT__TILE_BYTES);
    RFT_TILE_LOAD(4, o->x0, o->x_stride);
    RFT_TILE_DOT_BF16(0, 4, 6);
    if (panels > 1) {
        RFT_TILE_LOAD(7, o->w + o->w_stride, RFT__TILE_BYTES);
        RFT_TILE_DOT_BF16(1, 4, 7);
    }
    RFT_TILE_LOAD(5, o->x1, o->x_stride);
    RFT_TILE_DOT_BF16(2, 5, 6);
    if (panels > 1) {
        RFT_TILE_DOT_BF16(3, 5, 7);
    }
}

RFT_INLINE void step_flat(int panels, const operands *o) {
    RFT_TILE_LOAD(4, o->x0, o->x_stride);
    RFT_TILE_LOAD(6, o->w, RFT__TILE_BYTES);
    RFT_TILE_DOT_BF16(0, 4, 6);
    if (panels > 1) {
        RFT_TILE_LOAD(7, o->w + o->w_stride, RFT__TILE_BYTES);
        RFT_TILE_DOT_BF16(1, 4, 7);
    }
    if (panels > 2) {
        RFT_TILE_LOAD(6, o->w + 2 * o->w_stride, RFT__TILE_BYTES);
        RFT_TILE_DOT_BF16(2, 4, 6);
    }
    if (panels > 3) {
        RFT_TILE_LOAD(7, o->w + 3 * o->w_stride, RFT__TILE_BYTES);
        RFT_TILE_DOT_BF16(3, 4, 7);
    }
}

RFT_INLINE void step(bool tall, int panels, const operands *o) {
    if (tall) {
        step_tall(panels, o);
    } else {
        step_flat(panels, o);
    }
}

/* The k that are left, fewer than a step, with zeros behind them on both sides. */
RFT_INLINE void step_tail(bool tall, int panels, int rows, int k, const operands *o) {
    _Alignas(RFT__TILE_BYTES) char x[2 * RFT__TILE_ROWS * RFT__TILE_BYTES], w[RFT__MAX_PANELS * BLOCK];
    const int pairs = (k + 1) / 2;
    for (int r = 0; r < rows; r++) {
        rft__tile_pad(x + r * RFT__TILE_BYTES, o->x0 + r * o->x_stride, 2 * k);
    }
    for (int p = 0; p < panels; p++) {
        memcpy(w + p * BLOCK, o->w + (size_t)p * o->w_stride, (size_t)(pairs * RFT__TILE_BYTES));
        memset(w + p * BLOCK + pairs * RFT__TILE_BYTES, 0, (size_t)(BLOCK - pairs * RFT__TILE_BYTES));
    }
    step(tall, panels, &(operands){x, x + rft__tiles_first(rows) * RFT__TILE_BYTES, RFT__TILE_BYTES, w, BLOCK});
}

#define RFT_SUM(t, used, at)                        \
    if (used) {                                     \
        if (accumulate) {                           \
            RFT_TILE_LOAD(t, acc + (at), stride);   \
        } else {                                    \
            RFT_TILE_ZERO(t);                       \
        }                                           \
    }
#define RFT_KEEP(t, used, at)                     \
    if (used) {                                   \
        RFT_TILE_STORE(t, acc + (at), stride);    \
    }
/* The four sums in memory: a second row of tiles begins `half` further. */
#define RFT_SUMS(each)                                                         \
    each(0, true, 0);                                                          \
    each(1, panels > 1, RFT__PANEL);                                           \
    each(2, tall || panels > 2, tall ? half : 2 * RFT__PANEL);                 \
    each(3, panels > 3 || (tall && panels > 1), (tall ? half + RFT__PANEL : 3 * RFT__PANEL))

RFT_INLINE void multiply(bool tall, int panels, int rows, int64_t k, operands o, float *acc, bool accumulate,
                         const rft__ahead *ahead) {
    const int half = rft__tiles_first(rows) * panels * RFT__PANEL, stride = panels * RFT__PANEL * (int)sizeof(float);
    fetch next = fetch_of(ahead);
    RFT_SUMS(RFT_SUM);
    for (int64_t i = 0; i < k / STEP_K; i++) {
        step(tall, panels, &o);
        fetch_w(panels, i, &next);
        o.x0 += RFT__TILE_BYTES;
        o.x1 += RFT__TILE_BYTES;
        o.w += BLOCK;
    }
    if (k % STEP_K != 0) {
        step_tail(tall, panels, rows, (int)(k % STEP_K), &o);
    }
    RFT_SUMS(RFT_KEEP);
}

static void tiles_bf16(int rows, int panels, int64_t k, const void *x, int64_t x_stride, const void *w, size_t w_stride,
                       float *acc, bool accumulate, const rft__ahead *ahead) {
    const char *rows0 = x;
    const operands o = {rows0, rows0 + rft__tiles_first(rows) * x_stride, x_stride, w, w_stride};
    rft__tiles_shape(rows, RFT__TILE_BYTES);
    switch (panels + (rows > RFT__TILE_ROWS ? RFT__MAX_PANELS : 0)) {
    case 1:
        multiply(false, 1, rows, k, o, acc, accumulate, ahead);
        break;
    case 2:
        multiply(false, 2, rows, k, o, acc, accumulate, ahead);
        break;
    case 3:
        multiply(false, 3, rows, k, o, acc, accumulate, ahead);
        break;
    case 4:
        multiply(false, 4, rows, k, o, acc, accumulate, ahead);
        break;
    case RFT__MAX_PANELS + 1:
        multiply(true, 1, rows, k, o, acc, accumulate, ahead);
        break;
    default:
        multiply(true, 2, rows, k, o, acc, accumulate, ahead);
    }
}

const rft__tiles rft__tiles_bf16_bf16_amx = {.multiply = tiles_bf16, .leave = rft__tiles_leave};
