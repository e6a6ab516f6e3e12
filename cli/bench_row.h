/* SPDX-License-Identifier: Apache-2.0
 *
 * bench_row.h - one measured product as it is shown: the row of the table and of the JSON output.
 */
#ifndef BENCH_ROW_H
#define BENCH_ROW_H

#include "cli_parse.h"

#define ROW_PEERS 8
#define ROW_NAME  96

typedef struct row_peer {
    char name[32], version[ROW_NAME];
    double us, ratio; /* ratio: median over rounds of its time / ours */
} row_peer;

typedef struct bench_row {
    const char *device, *layout, *epi, *phase, *y, *compute, *bound;
    char kernel[ROW_NAME], x[X_TEXT], w[WEIGHT_TEXT];
    int64_t m, n, k;
    double flops, min_bytes, intensity;
    double us, us_min, spread, call_us;
    double tflops, gbps;
    double bound_us, pct_roof; /* 0: no machine profile */
    double packed_bytes;       /* of W, scales and padding among them; 0: none is packed */
    double pct_read, pct_peak; /* of the bandwidth that reads of packed W reach; of the arithmetic peak; 0: no profile */
    double err, err_limit;     /* at the element nearest to its bound */
    bool cold, beside;         /* beside: a warm run, behind the row of its cold one */
    bool low_bit;              /* W is codes: packed bytes and both shares are shown */
    bool on_gpu;               /* us is then time on the device, call_us what enqueuing a call takes */
    int threads;
    row_peer peer[ROW_PEERS];
    int n_peer;
} bench_row;

/* The streaming table of bench: a header for the run, one line a row. */
void text_bench_header(const bench_row *row);
void text_bench_row(const bench_row *row);
void json_bench_row(const bench_row *row);

#endif
