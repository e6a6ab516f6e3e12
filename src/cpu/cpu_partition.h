/* SPDX-License-Identifier: Apache-2.0
 *
 * cpu_partition.h - how a product is divided over threads: a grid of row parts x panel parts x k parts, and their shares. Pure
 * functions.
 * Invariant: the parts 0..count-1 cover every (row, panel, k) exactly once, whatever the numbers, and so do the shares.
 */
#ifndef RFT_CPU_CPU_PARTITION_H
#define RFT_CPU_CPU_PARTITION_H

#include <stdbool.h>
#include <stdint.h>

typedef struct rft__grid {
    int64_t rows, units, k; /* to divide; a unit is the smallest group of panels that may not be split */
    int64_t row_step;       /* rows are cut at multiples of it */
    int64_t k_step;
    int m, n, kk;           /* parts of each; m * n * kk parts in all */
} rft__grid;

typedef struct rft__part {
    int64_t row0, row1, unit0, unit1, k0, k1;
    int kk; /* which of the k parts */
} rft__part;

/* The grid of at most `threads` parts with the least time in the longest part. k is split only when k_split says so and rows
 * and units are too few for the threads; each k part then has at least min_k. */
rft__grid rft__grid_make(int threads, int64_t rows, int64_t row_step, int64_t units, int64_t k, int64_t k_step, int64_t min_k,
                         int k_split);
/* Units alone in `parts` parts: how weights are packed and split sums added, by the threads that own those units. */
rft__grid rft__grid_of_units(int64_t units, int parts);
int rft__grid_parts(const rft__grid *g);
rft__part rft__grid_part(const rft__grid *g, int i); /* 0 <= i < parts; may be empty */

/* Threads differ in speed: a busy sibling, another program, cores of two kinds. So a thread begins with half of its own part, and
 * the rest of all parts, in shares of a quarter and two of an eighth, is taken by whoever is ready. */
typedef enum rft__cut { RFT__CUT_NONE, RFT__CUT_ROWS, RFT__CUT_UNITS } rft__cut;

/* How a part is worked off: each block of so many rows packs them and reads W's panels once. */
typedef struct rft__blocking {
    int64_t rows, unit_step, columns; /* of a block; units at a time; columns of a unit */
    int64_t reread;                   /* of a unit by a block, in eighths of a row's product */
} rft__blocking;

typedef struct rft__shares {
    rft__grid grid;
    rft__cut cut;
    int64_t unit_step;
    int count; /* the first are the threads' own, one for each part */
} rft__shares;

/* Parts are cut where products set the pace and the shares are long; else each is one share. */
rft__shares rft__shares_of(const rft__grid *g, const rft__blocking *b);
rft__part rft__share(const rft__shares *s, int i); /* 0 <= i < count */

/* Rows in tiles of at most so many: heights differ by at most one, so that no tile is a sliver. */
typedef struct rft__tiling {
    int64_t rows, count;
} rft__tiling;

static inline rft__tiling rft__tile_rows(int64_t rows, int64_t most) { return (rft__tiling){rows, (rows + most - 1) / most}; }

static inline int64_t rft__tile_start(const rft__tiling *t, int64_t i) {
    const int64_t each = t->rows / t->count, more = t->rows % t->count;
    return i * each + (i < more ? i : more);
}

static inline int64_t rft__tile_height(const rft__tiling *t, int64_t i) {
    return t->rows / t->count + (i < t->rows % t->count);
}

#endif
