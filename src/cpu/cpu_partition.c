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
