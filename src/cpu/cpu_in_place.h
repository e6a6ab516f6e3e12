/* SPDX-License-Identifier: Apache-2.0
 *
 * cpu_in_place.h - addresses in a W that kernels read where it lies. Pure functions; called by cpu_gemm.c.
 */
#ifndef RFT_CPU_CPU_IN_PLACE_H
#define RFT_CPU_CPU_IN_PLACE_H

#include "cpu/cpu_kernel.h"
#include "problem/problem.h"

/* A W as its owner stores it: first element of the batch and the stride between rows (of W or of k), in bytes. */
typedef struct rft__w_place {
    const char *w;
    int64_t stride;
} rft__w_place;

/* Panels panel.. of a strip at k0; beyond the last panel it repeats. */
rft__w_lines rft__in_place_lines(const rft__matrix *w, rft__w_place at, int64_t panel, int64_t k0);
/* Bytes from one strip of that many panels to the next in a row of an MN-contiguous W. */
int64_t rft__in_place_step(const rft__matrix *w, int panels);
/* Moves the sums of a kernel of columns to the columns of the panels, where they are others than those it read. */
void rft__in_place_settle(const rft__matrix *w, int64_t panel, int panels, int64_t rows, float *acc);

static inline void rft__in_place_move(rft__w_lines *lines, int64_t bytes) {
    for (int p = 0; p < RFT__MAX_PANELS; p++) {
        lines->panel[p] += bytes;
    }
}

#endif
