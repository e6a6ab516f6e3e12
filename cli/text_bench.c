/* SPDX-License-Identifier: Apache-2.0
 *
 * text_bench.c - the table of bench: rows appear as they are measured, so widths are fixed beforehand.
 */
#include "bench_row.h"
#include "out_text.h"

#include <stdio.h>
#include <string.h>

#define FIXED   11
#define CODES   3
#define COLUMNS (FIXED + CODES + 2 * ROW_PEERS + 2)

static const column fixed[FIXED] = {
    {"m", 5, false},      {"n", 6, false},      {"k", 6, false},       {"us", 8, false},
    {"min us", 8, false}, {"spread", 6, false}, {"GFLOP/s", 7, false}, {"GB/s", 5, false},
    {"bound", 7, true},   {"roof %", 6, false}, {"err/lim", 7, false},
};

/* Of a W of codes. */
static const column codes[CODES] = {{"W MB", 6, false}, {"read %", 6, false}, {"peak %", 6, false}};

/* Titles of peers live as long as the header is printed. */
static int make_columns(column *columns, char (*title)[2][48], const bench_row *row) {
    int n = FIXED;
    memcpy(columns, fixed, sizeof fixed);
    for (int i = 0; i < CODES && row->low_bit; i++)
        columns[n++] = codes[i];
    for (int i = 0; i < row->n_peer; i++) {
        snprintf(title[i][0], sizeof title[i][0], "%s us", row->peer[i].name);
        columns[n++] = (column){title[i][0], (int)strlen(title[i][0]) < 8 ? 8 : (int)strlen(title[i][0]), false};
        columns[n++] = (column){"ratio", 5, false};
    }
    if (row->on_gpu)
        columns[n++] = (column){"call us", 7, false};
    columns[n++] = (column){"kernel", 0, true};
    return n;
}

void text_bench_header(const bench_row *row) {
    column columns[COLUMNS];
    char title[ROW_PEERS][2][48];
    printf("%s", row->device);
    if (!row->on_gpu)
        printf(" · %d thread%s", row->threads, row->threads == 1 ? "" : "s");
    printf(" · x %s  w %s  y %s  compute %s · layout %s · epilogue %s\n", row->x, row->w, row->y, row->compute, row->layout,
           row->epi);
    for (int i = 0; i < row->n_peer; i++)
        printf("%s%s: %s · ratio: its time / ours, median over rounds%s\n", text_dim(), row->peer[i].name, row->peer[i].version,
               text_plain());
    text_header(columns, make_columns(columns, title, row));
}

/* How many it fills. */
static int fill_cells(cell *c, const bench_row *r) {
    snprintf(c[0], CELL, "%lld", (long long)r->m);
    snprintf(c[1], CELL, "%lld", (long long)r->n);
    snprintf(c[2], CELL, "%lld", (long long)r->k);
    format_us(c[3], r->us);
    format_us(c[4], r->us_min);
    snprintf(c[5], CELL, "%.1f %%", 100 * r->spread);
    format_3(c[6], 1e3 * r->tflops);
    format_3(c[7], r->gbps);
    snprintf(c[8], CELL, "%s", r->bound);
    snprintf(c[9], CELL, r->bound_us > 0 ? "%.1f" : "-", r->pct_roof);
    snprintf(c[10], CELL, "%.3f", r->err_limit > 0 ? r->err / r->err_limit : 0);
    if (!r->low_bit)
        return FIXED;
    format_3(c[FIXED], 1e-6 * r->packed_bytes);
    snprintf(c[FIXED + 1], CELL, r->pct_read > 0 ? "%.1f" : "-", r->pct_read);
    snprintf(c[FIXED + 2], CELL, r->pct_peak > 0 ? "%.1f" : "-", r->pct_peak);
    return FIXED + CODES;
}

void text_bench_row(const bench_row *r) {
    column columns[COLUMNS];
    char title[ROW_PEERS][2][48];
    cell cells[COLUMNS];
    int n = make_columns(columns, title, r);
    int at = fill_cells(cells, r);
    for (int i = 0; i < r->n_peer; i++) {
        format_us(cells[at + 2 * i], r->peer[i].us);
        snprintf(cells[at + 2 * i + 1], CELL, "%.2f", r->peer[i].ratio);
    }
    if (r->on_gpu)
        format_us(cells[n - 2], r->call_us);
    snprintf(cells[n - 1], CELL, "%s%s", r->kernel, r->cold ? "" : " (warm)");
    text_row(columns, cells, n);
    fflush(stdout);
}
