/* SPDX-License-Identifier: Apache-2.0
 *
 * gemm_i8_amx.c - products in 8 bits of tile registers with TDPBSUD: X signed, in the records of its rows, 384 bytes apart; W's
 * codes unsigned, of which 64 k of 16 columns are 1 KiB in a row, as panels of 8 bits and strips of bytes have them.
 *
 *               16 columns a tile                 up to 16 rows: sums 0 1, X 4, W 6 7
 *           6 W0 | 7 W1
 *     4 X0  0    | 1      rows 0..r0              A sum of 16 or 32 k: rows of X and columns of W have as many bytes
 *     5 X1  2    | 3      rows r0..r0 + r1        in a tile; longer ones take a step for each 64 k
 *
 * A complete sum goes to memory as int32 and is scaled by AVX-512 (avx512/codes8_avx512.h) onto totals there, in the order and
 * with the bits of the kernels of that level. No load may meet a store that still waits for a product, so each tile is stored
 * just before its first product of the next sum, while the others multiply, and scaled from the next step on:
 *
 *     step           0 of sum i                           1 .. last of sum i                   0 of sum i + 1
 *     tile t         store i - 1, zero, product           product                              store i, zero, product
 *     AVX-512        i - 2, where sums have one step      i - 1, some rows behind each product
 *
 * Where one sum goes over all k its words stay in the tiles, begin as what acc has and go back there, and nothing is scaled.
 *   By the manuals, cycles of 32 rows x 32 columns: 4 products 64 a step, whatever k it has, loads of tiles 32; a sum stored 64,
 * scaled 128 (64 vectors of addition, conversion, multiplication, FMA on two ports; 160 of loads with those of a step). Sums
 * of 16 to 64 k so take 128, of 128 160, of 256 256; vpdpbusd takes 224, 352, 608, 1120 and 2144.
 *   Measured on a shared Xeon, 2026-11-30, i8, 512 x 4096 x 14336: on 16 threads 7.4 TOP/s of 42 in a register loop, on one 1.07
 * of 2.9. In cycles that make its step 64 one with loads takes 100 to 145 from L1 and 136 to 220 from L2, whether or not sums of
 * 256 k are stored and scaled beside it. Tiles fetched to L1 two steps ahead cost 13 to 15 %.
 *   Proved on machines without it by the stand-in of tests/unit/amx_standin.h.
 */
#include "cpu/amx/shape_amx.h"
#include "cpu/amx/tile_amx.h"
#include "cpu/avx512/codes8_avx512.h"
#include "cpu/tile_family.h"

#include <string.h>

enum {
    X_STRIDE = sizeof(rft__x8),
    QUADS = 4 * RFT__COLUMNS, /* bytes of 4 k of a panel */
    HEAD = 2 * (RFT__CHUNK / RFT__LEAST_SUM) * RFT__COLUMNS,
    WORDS = 2 * RFT__TILE_ROWS * RFT__SUM8_PANELS * RFT__COLUMNS
};

/* Sums on their way from tiles to totals. */
typedef struct way {
    bool one_sum, goes_on;   /* no sum is complete before all k are; goes_on: it began in an earlier pass */
    int32_t (*words)[WORDS]; /* of two sums, by turns */
    rft__sum8 inside;        /* in the tiles, complete */
    bool full;               /* there is such a one */
    rft__sum8 outside;       /* in memory, scaled up to row `done` */
    int done, rows, share;   /* share: rows that are scaled at once */
    int turn;
    rft__scale8_fn *scale;
    float *acc;
    int acc_stride;
} way;

RFT_INLINE void scale_some(int rows, way *s) {
    const int last = s->done + rows < s->rows ? s->done + rows : s->rows;
    if (s->done < last) {
        s->scale(&s->outside, s->done, last, s->acc, s->acc_stride);
        s->done = last;
    }
}

/* Tile t of all sums, `below` words from the first half of the rows to the second. */
#define STORE(t) RFT_TILE_STORE(t, s->words[s->turn] + (t) / 2 * below + (t) % 2 * RFT__COLUMNS, panels * QUADS)
/* The sum in tile t gives way to a new one. */
#define TURN(t)           \
    do {                  \
        if (s->full) {    \
            STORE(t);     \
        }                 \
        RFT_TILE_ZERO(t); \
    } while (0)

RFT_INLINE int words_below(int panels, const way *s) { return rft__tiles_first(s->rows) * panels * RFT__COLUMNS; }

/* The sum that was in the tiles is in memory; the one before it is scaled. */
RFT_INLINE void step_outside(way *s) {
    s->outside = s->inside;
    s->outside.words = s->words[s->turn];
    s->turn = 1 - s->turn;
    s->done = 0;
    s->full = false;
}

typedef struct reads {
    const signed char *x0, *x1; /* first rows of the halves */
    const char *w;
    size_t w_stride;
} reads;

/* One product of each tile, the first of a sum or a later one; rows are scaled behind those of each half. */
RFT_INLINE void step_bytes(bool tall, int panels, bool first, const reads *o, way *s) {
    const int below = words_below(panels, s);
    RFT_TILE_LOAD(6, o->w, QUADS);
    RFT_TILE_LOAD(4, o->x0, X_STRIDE);
    if (first) {
        TURN(0);
    }
    RFT_TILE_DOT_I8(0, 4, 6);
    if (panels > 1) {
        RFT_TILE_LOAD(7, o->w + o->w_stride, QUADS);
        if (first) {
            TURN(1);
        }
        RFT_TILE_DOT_I8(1, 4, 7);
    }
    scale_some(s->share, s);
    if (tall) {
        RFT_TILE_LOAD(5, o->x1, X_STRIDE);
        if (first) {
            TURN(2);
        }
        RFT_TILE_DOT_I8(2, 5, 6);
    }
    if (tall && panels > 1) {
        if (first) {
            TURN(3);
        }
        RFT_TILE_DOT_I8(3, 5, 7);
    }
    if (tall) {
        scale_some(s->share, s);
    }
    if (first && s->full) {
        step_outside(s);
    }
}

/* The last block of an odd number, with zeros behind it; X has them in its record. */
RFT_INLINE void pad_half(int panels, reads *o, char padded[RFT__SUM8_PANELS][RFT__TILE_ROWS * QUADS]) {
    for (int p = 0; p < panels; p++) {
        memcpy(padded[p], o->w + (size_t)p * o->w_stride, sizeof *padded / 2);
        memset(padded[p] + sizeof *padded / 2, 0, sizeof *padded / 2);
    }
    o->w = padded[0];
    o->w_stride = sizeof *padded;
}

RFT_INLINE void fetch_lines(int panels, int lines, rft__fetch *next) {
    for (int i = 0; i < lines; i++, next->w += 64) {
        RFT_UNROLL
        for (int p = 0; p < panels; p++) {
            __builtin_prefetch(next->w + (size_t)p * next->stride, 0, 2);
        }
    }
}

/* 64 k of the rows' next records; the line of scales behind the codes too. */
RFT_INLINE void fetch_x(const rft__x8 *x, int rows, int64_t at) {
    for (int r = 0; r < rows; r++) {
        __builtin_prefetch(x[r].code + at, 0, 2);
    }
    for (int r = 0; r < rows && at == 0; r++) {
        __builtin_prefetch(x[r].scale, 0, 2);
    }
}

/* A chunk of W as tiles read it. */
typedef struct chunk {
    int64_t k;
    const rft__x8 *x, *x_ahead;
    const float *head[RFT__SUM8_PANELS];
    const char *w;
    size_t w_stride;
} chunk;

/* Sum i of the chunk, complete. */
RFT_INLINE rft__sum8 sum_of(int panels, const rft__packing *packing, const chunk *c, int64_t i) {
    const int64_t sums = rft__packing_sums(packing, c->k);
    rft__sum8 sum = {.x = c->x, .i = i, .group = i * rft__packing_sum(packing) / packing->x_group};
    for (int p = 0; p < panels; p++) {
        sum.scale[p] = c->head[p] + i * RFT__COLUMNS;
        sum.shift[p] = sum.scale[p] + sums * RFT__COLUMNS;
    }
    return sum;
}

RFT_INLINE void multiply_chunk(bool tall, int panels, const rft__packing *packing, const chunk *c, rft__fetch *next, way *s) {
    const int64_t each = rft__packing_sum(packing), step = rft__min(each, RFT__TILE_BYTES), k = rft__round_up(c->k, RFT__BLOCK);
    const int lines = (int)rft__ceil_div(next->lines * step, RFT__BLOCK);
    _Alignas(RFT__TILE_BYTES) char padded[RFT__SUM8_PANELS][RFT__TILE_ROWS * QUADS];
    reads o = {c->x->code, c->x[tall ? rft__tiles_first(s->rows) : 0].code, c->w, c->w_stride};
    for (int64_t i = 0, at = 0; at < k; i++) {
        const int64_t end = rft__min(k, at + each);
        bool first = !s->one_sum;
        for (; at < end; at += step, first = false) {
            if (at + step > k) {
                pad_half(panels, &o, padded);
            }
            if (first) {
                step_bytes(tall, panels, true, &o, s);
            } else {
                step_bytes(tall, panels, false, &o, s);
            }
            fetch_lines(panels, lines, next);
            if (c->x_ahead != NULL && at % RFT__TILE_BYTES == 0) {
                fetch_x(c->x_ahead, s->rows, at);
            }
            o.x0 += step;
            o.x1 += step;
            o.w += step / 4 * QUADS;
        }
        if (!s->one_sum) {
            s->inside = sum_of(panels, packing, c, i);
            s->full = true;
        }
    }
}

/* The tiles of sums that there are. */
#define EACH_SUM(F)               \
    do {                          \
        F(0);                     \
        if (panels > 1) {         \
            F(1);                 \
        }                         \
        if (tall) {               \
            F(2);                 \
        }                         \
        if (tall && panels > 1) { \
            F(3);                 \
        }                         \
    } while (0)

/* What no later product hides. */
RFT_INLINE void end_way(bool tall, int panels, way *s) {
    const int below = words_below(panels, s);
    scale_some(s->rows, s);
    if (s->full) {
        EACH_SUM(STORE);
        step_outside(s);
        scale_some(s->rows, s);
    }
}

/* One sum over all k: tile t has its words where totals are else. */
#define TOTAL(t)      (s->acc + (t) / 2 * rft__tiles_first(s->rows) * s->acc_stride + (t) % 2 * RFT__COLUMNS)
#define LOAD_TOTAL(t)  RFT_TILE_LOAD(t, TOTAL(t), s->acc_stride * (int64_t)sizeof(float))
#define STORE_TOTAL(t) RFT_TILE_STORE(t, TOTAL(t), s->acc_stride * (int64_t)sizeof(float))

RFT_INLINE void begin_totals(bool tall, int panels, const way *s) {
    if (s->goes_on) {
        EACH_SUM(LOAD_TOTAL);
    } else {
        EACH_SUM(RFT_TILE_ZERO);
    }
}

RFT_INLINE void end_totals(bool tall, int panels, const way *s) { EACH_SUM(STORE_TOTAL); }

/* The scales of a chunk's sums as f32 in a row: those of 32 k and more that are that already, or widened to `own`. One sum over
 * all k asks for none. */
RFT_INLINE const float *head_of(const rft__packing *packing, const char *head, int64_t k, float *own) {
    if (packing->one_sum) {
        return NULL;
    }
    if (packing->scale == RFT__SCALE_F32 && packing->offset == RFT__OFFSET_NONE && packing->step >= RFT__BLOCK &&
        packing->step == rft__packing_sum(packing)) {
        return (const float *)(const void *)head;
    }
    rft__head8_avx512(packing, head, k, own);
    return own;
}

/* in_place: W is panels of codes of 8 bits; else the panels of a strip. */
RFT_INLINE void multiply_bytes(bool in_place, bool tall, int panels, const rft__packing *packing, int64_t k, const rft__x8 *x,
                               int64_t x_stride, const char *w, size_t w_stride, rft__fetch next, way *s) {
    _Alignas(RFT__TILE_BYTES) float own[2][RFT__SUM8_PANELS][HEAD]; /* a chunk's last sums are scaled in the next one */
    if (s->one_sum) {
        begin_totals(tall, panels, s);
    }
    for (int turn = 0; k > 0; k -= RFT__CHUNK, x += x_stride, turn = 1 - turn) {
        chunk c = {.k = rft__min(k, RFT__CHUNK), .x = x, .x_ahead = next.x, .w_stride = w_stride};
        for (int p = 0; p < panels; p++) {
            const char *head = w + (size_t)p * w_stride;
            c.head[p] = in_place ? head_of(packing, head, c.k, own[turn][p]) : (const float *)(const void *)head;
        }
        c.w = w + (in_place ? rft__packing_head_bytes(packing, c.k) : rft__strip_head_bytes(packing, c.k));
        multiply_chunk(tall, panels, packing, &c, &next, s);
        next.x = next.x != NULL ? next.x + x_stride : NULL;
        w += in_place ? rft__packing_chunk_bytes(packing, c.k) : rft__strip_chunk_bytes(packing, c.k);
    }
    if (s->one_sum) {
        end_totals(tall, panels, s);
    } else {
        end_way(tall, panels, s);
    }
}

/* Rows so many that a sum is scaled by the time that the next one leaves the tiles. */
static int share_of(const rft__packing *packing, int rows) {
    const int steps = (int)rft__ceil_div(rft__packing_sum(packing), RFT__TILE_BYTES);
    const int shares = (rows > RFT__TILE_ROWS ? 2 : 1) * (steps > 1 ? steps - 1 : 1);
    return (int)rft__ceil_div(rows, shares);
}

RFT_INLINE void multiply8(bool in_place, int rows, int panels, const rft__packing *packing, int64_t k, const rft__x8 *x,
                          int64_t x_stride, const char *w, size_t w_stride, float *acc, int acc_stride, bool accumulate,
                          rft__fetch next) {
    _Alignas(RFT__TILE_BYTES) int32_t words[2][WORDS];
    way s = {.one_sum = packing->one_sum, .goes_on = accumulate, .words = words, .done = rows, .rows = rows, .acc = acc};
    s.acc_stride = acc_stride;
    s.share = share_of(packing, rows);
    s.scale = rft__scale8_avx512[packing->offset][panels - 1];
    for (int r = 0; r < rows && !accumulate && !s.one_sum; r++) {
        memset(acc + r * acc_stride, 0, (size_t)(panels * QUADS));
    }
    rft__tiles_shape(rows, (int)rft__min(rft__packing_sum(packing), RFT__TILE_BYTES));
    if (rows > RFT__TILE_ROWS && panels > 1) {
        multiply_bytes(in_place, true, 2, packing, k, x, x_stride, w, w_stride, next, &s);
    } else if (rows > RFT__TILE_ROWS) {
        multiply_bytes(in_place, true, 1, packing, k, x, x_stride, w, w_stride, next, &s);
    } else if (panels > 1) {
        multiply_bytes(in_place, false, 2, packing, k, x, x_stride, w, w_stride, next, &s);
    } else {
        multiply_bytes(in_place, false, 1, packing, k, x, x_stride, w, w_stride, next, &s);
    }
}

#define TILES8(name, in_place)                                                                                                  \
    static void tiles_i8_##name(int rows, int panels, const rft__packing *packing, int64_t k, const rft__x8 *x,                 \
                                int64_t x_stride, const char *w, size_t w_stride, float *acc, int acc_stride, bool accumulate,  \
                                const rft__fetch *next) {                                                                       \
        multiply8(in_place, rows, panels, packing, k, x, x_stride, w, w_stride, acc, acc_stride, accumulate, *next);            \
    }                                                                                                                           \
    const rft__tiles rft__tiles_i8_##name##_amx = {.multiply8 = tiles_i8_##name, .leave = rft__tiles_leave};

TILES8(q8, true)
TILES8(bytes, false)
