/* SPDX-License-Identifier: Apache-2.0
 *
 * cpu_ahead.h - calls of register tiles, and what they fetch to L2 for the tiles after them. cpu_gemm.c calls it tile by tile.
 */
#ifndef RFT_CPU_CPU_AHEAD_H
#define RFT_CPU_CPU_AHEAD_H

#include "cpu/cpu_kernel.h"

/* Panels side by side, `stride` bytes apart; 0: nothing to fetch. */
typedef struct rft__panels {
    const char *w;
    size_t stride;
} rft__panels;

/* A register tile over k: rows of x times some panels of w, summed into acc. */
typedef struct rft__tile_job {
    const rft__cpu_kernel *kernel;
    int rows, panels;
    int64_t k;
    const char *x;    /* packed, or the first row */
    int64_t x_stride; /* from row to row, where it is not packed */
    rft__panels w;
    float *acc;
    bool accumulate;
} rft__tile_job;

/* The only tile of a strip, whose w comes from memory: it fetches that itself, and at its end the first lines of `next`. */
void rft__tile_stream(const rft__tile_job *t, rft__panels next);

/* One of several tiles that share a strip, number `index` of `count`: it fetches its share of `next`, panels of
 * packed_bytes. */
void rft__tile_share(const rft__tile_job *t, rft__panels next, int64_t packed_bytes, int64_t index, int64_t count);

/* A register tile in 8 bits, likewise. */
typedef struct rft__codes8_job {
    const rft__cpu_kernel *kernel;
    const rft__packing *packing;
    int rows, panels;
    int64_t k;
    const rft__x8 *x;
    int64_t x_stride; /* records from chunk to chunk */
    rft__panels w;
    float *acc;
    bool accumulate;
} rft__codes8_job;

/* Beside as many panels at once as there is a tile for. Several tiles fetch their share of `next`, packed panels; a lone tile of
 * panels fetches what it reads, and the first chunks of those. x_ahead: the same rows over the next k, once no strip is left of
 * these; else NULL. */
void rft__codes8_multiply(const rft__codes8_job *j, rft__panels next, const rft__x8 *x_ahead, int64_t index, int64_t count);

#endif
