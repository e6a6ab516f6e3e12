/* SPDX-License-Identifier: Apache-2.0
 *
 * check_grid.h - which problems prove a kernel: sizes round its tile's edges, and random ones. Feeds check_core.
 */
#ifndef CHECK_GRID_H
#define CHECK_GRID_H

#include "check_core.h"

typedef struct check_tally {
    int64_t run, refused, failed;
    double worst; /* |error| / bound */
} check_tally;

typedef struct check_session {
    checker *c;
    uint64_t seed;
    int64_t thin; /* take about one problem of this many; 1: all */
    void (*failure)(void *user, const check_problem *p, const check_result *r);
    void *user;
} check_session;

/* All shapes of the grid on one kernel, which must serve at least one of them. */
void check_kernel(const check_session *s, const rft_kernel_info *kernel, check_tally *tally);
/* The same shapes on what the library chooses under a cap. */
void check_level(const check_session *s, const char *isa, check_tally *tally);
/* count problems of random size, type, layout and epilogue. isa, kernel: NULL or as in check_problem. */
void check_random(const check_session *s, int64_t count, const char *isa, const char *kernel, check_tally *tally);
/* One given problem. */
void check_one(const check_session *s, const check_problem *p, check_tally *tally);

#endif
