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
 * with the bits of the kernels of that level. The rows of a sum are scaled in equal shares between the products of the next one;
 * the order of the program keeps both apart, so one buffer serves.
 *   By the manuals, cycles of 32 rows x 32 columns: 4 products 64 a step, whatever k it has, loads of tiles 32; a sum stored 64,
 * scaled 128 (64 vectors of addition, conversion, multiplication, FMA on two ports; 160 of loads with those of a step). Sums
 * of 16 to 64 k so take 128, of 128 160, of 256 256; vpdpbusd takes 224, 352, 608, 1120 and 2144. Not timed yet.
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
    HEAD = 2 * (RFT__CHUNK / RFT__LEAST_SUM) * RFT__COLUMNS
};

/* A complete sum of all rows that waits to be scaled. */
typedef struct waiting {
    _Alignas(RFT__TILE_BYTES) int32_t words[2 * RFT__TILE_ROWS * RFT__SUM8_PANELS * RFT__COLUMNS];
    rft__sum8 sum;
    rft__scale8_fn *scale;
    int rows, done; /* done = rows: none waits */
    float *acc;
    int acc_stride;
} waiting;

RFT_INLINE void scale_some(waiting *s, int rows) {
    const int last = s->done + rows < s->rows ? s->done + rows : s->rows;
    if (last > s->done) {
        s->scale(&s->sum, s->done, last, s->acc, s->acc_stride);
        s->done = last;
    }
}

/* One product of each tile of sums; behind each, so many rows of what waits. */
RFT_INLINE void step_bytes(bool tall, int panels, const signed char *x0, const signed char *x1, const char *w, size_t w_stride,
                           waiting *s, int share) {
    RFT_TILE_LOAD(6, w, QUADS);
    RFT_TILE_LOAD(4, x0, X_STRIDE);
    RFT_TILE_DOT_I8(0, 4, 6);
    scale_some(s, share);
    if (panels > 1) {
        RFT_TILE_LOAD(7, w + w_stride, QUADS);
        RFT_TILE_DOT_I8(1, 4, 7);
        scale_some(s, share);
    }
    if (tall) {
        RFT_TILE_LOAD(5, x1, X_STRIDE);
        RFT_TILE_DOT_I8(2, 5, 6);
        scale_some(s, share);
    }
    if (tall && panels > 1) {
        RFT_TILE_DOT_I8(3, 5, 7);
        scale_some(s, share);
    }
}

/* The last block of an odd number, with zeros behind it; X has them in its record. */
RFT_INLINE void step_half(bool tall, int panels, const signed char *x0, const signed char *x1, const char *w, size_t w_stride,
                          waiting *s, int share) {
    _Alignas(RFT__TILE_BYTES) char padded[RFT__SUM8_PANELS][RFT__TILE_ROWS * QUADS];
    for (int p = 0; p < panels; p++) {
        memcpy(padded[p], w + (size_t)p * w_stride, sizeof *padded / 2);
        memset(padded[p] + sizeof *padded / 2, 0, sizeof *padded / 2);
    }
    step_bytes(tall, panels, x0, x1, padded[0], sizeof *padded, s, share);
}

RFT_INLINE void clear_tiles(bool tall, int panels) {
    RFT_TILE_ZERO(0);
    if (panels > 1) {
        RFT_TILE_ZERO(1);
    }
    if (tall) {
        RFT_TILE_ZERO(2);
    }
    if (tall && panels > 1) {
        RFT_TILE_ZERO(3);
    }
}

RFT_INLINE void store_tiles(bool tall, int panels, int rows, int32_t *words) {
    const int stride = panels * QUADS;
    int32_t *below = words + rft__tiles_first(rows) * panels * RFT__COLUMNS;
    RFT_TILE_STORE(0, words, stride);
    if (panels > 1) {
        RFT_TILE_STORE(1, words + RFT__COLUMNS, stride);
    }
    if (tall) {
        RFT_TILE_STORE(2, below, stride);
    }
    if (tall && panels > 1) {
        RFT_TILE_STORE(3, below + RFT__COLUMNS, stride);
    }
}

RFT_INLINE void fetch_lines(int panels, int lines, rft__fetch *next) {
    for (int i = 0; i < lines; i++, next->w += 64) {
        RFT_UNROLL
        for (int p = 0; p < panels; p++) {
            __builtin_prefetch(next->w + (size_t)p * next->stride, 0, 2);
        }
    }
}

/* A chunk of W as tiles read it. */
typedef struct chunk {
    int64_t k;
    const rft__x8 *x;
    const float *head[RFT__SUM8_PANELS];
    const char *w;
    size_t w_stride;
} chunk;

/* The sum that is in the tiles, number i of the chunk. */
RFT_INLINE void end_sum(bool tall, int panels, const rft__packing *packing, const chunk *c, int64_t i, waiting *s) {
    const int64_t sums = rft__packing_sums(packing, c->k);
    scale_some(s, s->rows);
    store_tiles(tall, panels, s->rows, s->words);
    for (int p = 0; p < panels; p++) {
        s->sum.scale[p] = c->head[p] + i * RFT__COLUMNS;
        s->sum.shift[p] = s->sum.scale[p] + sums * RFT__COLUMNS;
    }
    s->sum.x = c->x;
    s->sum.i = i;
    s->sum.group = i * rft__packing_sum(packing) / packing->x_group;
    s->done = 0;
}

RFT_INLINE void multiply_chunk(bool tall, int panels, const rft__packing *packing, const chunk *c, rft__fetch *next, waiting *s) {
    const int64_t each = rft__packing_sum(packing), step = rft__min(each, RFT__TILE_BYTES), k = rft__round_up(c->k, RFT__BLOCK);
    const int products = (tall ? 2 : 1) * panels * (int)(each / step), share = (s->rows + products - 1) / products;
    const int lines = (int)rft__ceil_div(next->lines * step, RFT__BLOCK);
    const signed char *x0 = c->x->code, *x1 = c->x[tall ? rft__tiles_first(s->rows) : 0].code;
    const char *w = c->w;
    for (int64_t i = 0, at = 0; at < k; i++) {
        clear_tiles(tall, panels);
        for (const int64_t end = rft__min(k, at + each); at < end; at += step, w += step / 4 * QUADS) {
            if (at + step <= k) {
                step_bytes(tall, panels, x0 + at, x1 + at, w, c->w_stride, s, share);
            } else {
                step_half(tall, panels, x0 + at, x1 + at, w, c->w_stride, s, share);
            }
            fetch_lines(panels, lines, next);
        }
        end_sum(tall, panels, packing, c, i, s);
    }
}

/* in_place: W is panels of codes of 8 bits, whose scales are widened here; else the panels of a strip. */
RFT_INLINE void multiply_bytes(bool in_place, bool tall, int panels, const rft__packing *packing, int64_t k, const rft__x8 *x,
                               int64_t x_stride, const char *w, size_t w_stride, rft__fetch next, waiting *s) {
    _Alignas(RFT__TILE_BYTES) float own[2][RFT__SUM8_PANELS][HEAD]; /* the last sum of a chunk is scaled in the next one */
    for (int turn = 0; k > 0; k -= RFT__CHUNK, x += x_stride, turn = 1 - turn) {
        chunk c = {.k = rft__min(k, RFT__CHUNK), .x = x, .w_stride = w_stride};
        for (int p = 0; p < panels; p++) {
            const char *head = w + (size_t)p * w_stride;
            if (in_place) {
                rft__head8_avx512(packing, head, c.k, own[turn][p]);
            }
            c.head[p] = in_place ? own[turn][p] : (const float *)(const void *)head;
        }
        c.w = w + (in_place ? rft__packing_head_bytes(packing, c.k) : rft__strip_head_bytes(packing, c.k));
        multiply_chunk(tall, panels, packing, &c, &next, s);
        w += in_place ? rft__packing_chunk_bytes(packing, c.k) : rft__strip_chunk_bytes(packing, c.k);
    }
    scale_some(s, s->rows);
}

RFT_INLINE void multiply8(bool in_place, int rows, int panels, const rft__packing *packing, int64_t k, const rft__x8 *x,
                          int64_t x_stride, const char *w, size_t w_stride, float *acc, int acc_stride, bool accumulate,
                          rft__fetch next) {
    waiting s = {.rows = rows, .done = rows, .acc = acc, .acc_stride = acc_stride};
    s.scale = rft__scale8_avx512[packing->offset][panels - 1];
    s.sum.words = s.words;
    for (int r = 0; r < rows && !accumulate; r++) {
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
                                rft__fetch next) {                                                                              \
        multiply8(in_place, rows, panels, packing, k, x, x_stride, w, w_stride, acc, acc_stride, accumulate, next);             \
    }                                                                                                                           \
    const rft__tiles rft__tiles_i8_##name##_amx = {.multiply8 = tiles_i8_##name, .leave = rft__tiles_leave};

TILES8(q8, true)
TILES8(bytes, false)
