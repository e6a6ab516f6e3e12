/* SPDX-License-Identifier: Apache-2.0
 *
 * cpu_partition.c - see cpu_partition.h. Called for each run, so it is a short search without divisions in its heart.
 */
#include "cpu/cpu_partition.h"

#include "base/alloc.h"

/* Bounds of part i of `parts` over total items cut at multiples of step: the first parts take one step more. */
static int64_t cut(int64_t total, int64_t step, int parts, int i) {
    const int64_t steps = rft__ceil_div(total, step), each = steps / parts, more = steps % parts;
    return rft__min(total, (i * each + rft__min(i, more)) * step);
}

/* Time of the longest part in units of one row times one unit: its product, the packing of its rows of X (a row costs about
 * as much as an eighth of a unit) and its panels of W, streamed or widened once (about a row and a half each). */
static int64_t cost(const rft__grid *g, int64_t row_steps, int m, int n) {
    const int64_t rows = rft__min(g->rows, rft__ceil_div(row_steps, m) * g->row_step), units = rft__ceil_div(g->units, n);
    return 8 * rows * units + rows + 12 * units;
}

rft__grid rft__grid_make(int threads, int64_t rows, int64_t row_step, int64_t units, int64_t k, int64_t k_step, int64_t min_k,
                         int k_split) {
    rft__grid g = {.rows = rows, .units = units, .k = k, .row_step = row_step, .k_step = k_step, .m = 1, .n = 1, .kk = 1};
    const int64_t row_steps = rft__ceil_div(rows, row_step);
    int64_t best = INT64_MAX;
    for (int m = 1; m <= threads && m <= rft__max(1, row_steps); m++) {
        const int n = (int)rft__max(1, rft__min(threads / m, units));
        const int64_t c = cost(&g, row_steps, m, n);
        if (c < best) {
            best = c;
            g.m = m;
            g.n = n;
        }
    }
    if (k_split && g.m * g.n * 2 <= threads) {
        g.kk = (int)rft__max(1, rft__min(threads / (g.m * g.n), k / min_k));
    }
    return g;
}

enum { SHARES = 4 }; /* of a part */

/* Bounds of share i of from..to: a half, a quarter, an eighth and an eighth. */
static void cut_share(int64_t *from, int64_t *to, int64_t step, int i) {
    const int64_t start = *from, steps = rft__ceil_div(*to - start, step),
                  at[SHARES + 1] = {0, steps / 2, steps - steps / 4, steps - steps / 8, steps};
    *from = start + at[i] * step;
    *to = rft__min(*to, start + at[i + 1] * step);
}

/* Blocks that shares of rows have more than the whole. */
static int64_t more_blocks(int64_t rows, int64_t row_step, int64_t block) {
    int64_t more = -rft__ceil_div(rows, block);
    for (int i = 0; i < SHARES; i++) {
        int64_t from = 0, to = rows;
        cut_share(&from, &to, row_step, i);
        more += rft__ceil_div(to - from, block);
    }
    return more;
}

/* Which cut of a part adds less, in the terms of cost: rows in shares read W's panels again, units in shares the rows of X.
 * Neither where that is above a 32nd of the product, or a share would be less than a step. */
static rft__cut cheaper_cut(const rft__grid *g, const rft__blocking *b, int64_t rows, int64_t units) {
    const int64_t most = rows * units / 4, by_rows = b->reread * units * more_blocks(rows, g->row_step, b->rows),
                  by_units = (SHARES - 1) * rows;
    const bool rows_do = rows >= 2 * SHARES * g->row_step && by_rows <= most,
               units_do = units >= 2 * SHARES * b->unit_step && by_units <= most;
    if (rows_do && units_do) {
        return by_rows <= by_units ? RFT__CUT_ROWS : RFT__CUT_UNITS;
    }
    return rows_do ? RFT__CUT_ROWS : units_do ? RFT__CUT_UNITS : RFT__CUT_NONE;
}

/* Below so many rows memory may set the pace, and W lies near the thread that read it first. A share of an eighth takes at least
 * ten times what it adds: the counter's line comes from another core, and nothing has fetched the first strip. */
rft__shares rft__shares_of(const rft__grid *g, const rft__blocking *b) {
    enum { LEAST_ROWS = 64, LEAST_PRODUCTS = 1 << 21 };
    const int parts = rft__grid_parts(g);
    rft__shares s = {.grid = *g, .cut = RFT__CUT_NONE, .unit_step = b->unit_step, .count = parts};
    const int64_t rows = g->rows / g->m, units = g->units / g->n;
    const double products = (double)rows * (double)units * (double)b->columns * (double)g->k;
    if (parts > 1 && g->kk == 1 && g->rows >= LEAST_ROWS && products >= 2.0 * SHARES * LEAST_PRODUCTS) {
        s.cut = cheaper_cut(g, b, rows, units);
    }
    s.count *= s.cut != RFT__CUT_NONE ? SHARES : 1;
    return s;
}

rft__part rft__share(const rft__shares *s, int i) {
    const int parts = rft__grid_parts(&s->grid);
    rft__part part = rft__grid_part(&s->grid, i % parts);
    if (s->cut == RFT__CUT_ROWS) {
        cut_share(&part.row0, &part.row1, s->grid.row_step, i / parts);
    } else if (s->cut == RFT__CUT_UNITS) {
        cut_share(&part.unit0, &part.unit1, s->unit_step, i / parts);
    }
    return part;
}

rft__grid rft__grid_of_units(int64_t units, int parts) {
    return (rft__grid){.units = units, .row_step = 1, .k_step = 1, .m = 1, .n = parts, .kk = 1};
}

int rft__grid_parts(const rft__grid *g) { return g->m * g->n * g->kk; }

rft__part rft__grid_part(const rft__grid *g, int i) {
    const int n = i % g->n, m = i / g->n % g->m, kk = i / (g->n * g->m);
    return (rft__part){
        .row0 = cut(g->rows, g->row_step, g->m, m),
        .row1 = cut(g->rows, g->row_step, g->m, m + 1),
        .unit0 = cut(g->units, 1, g->n, n),
        .unit1 = cut(g->units, 1, g->n, n + 1),
        .k0 = cut(g->k, g->k_step, g->kk, kk),
        .k1 = cut(g->k, g->k_step, g->kk, kk + 1),
        .kk = kk,
    };
}
