/* SPDX-License-Identifier: Apache-2.0
 *
 * check_rows.h - which problems prove one kernel row, or the library's choice under an ISA level: every size round the edges of
 * its tiles, every way to hand over X, W and Y, and sizes that need several passes over K, blocks of rows and parts of K.
 * Called by rooftile_check.c; each problem goes to the engine that `rooftile check` uses, which the repro line of a failure
 * names.
 */
#ifndef RFT_TESTS_CHECK_CHECK_ROWS_H
#define RFT_TESTS_CHECK_CHECK_ROWS_H

#include "cli/check_core.h"

typedef struct row_tally {
    int64_t run, refused, failed;
    double worst; /* |error| / bound */
} row_tally;

typedef struct row_session {
    checker *checker;
    uint64_t seed;
    int64_t thin;  /* one problem in that many; 1: all */
    int64_t count; /* problems met so far */
    void (*failure)(const check_problem *p, const check_result *r);
} row_session;

/* All problems of a row with options.max_isa = isa. */
void check_row(row_session *s, const rft_kernel_info *row, const char *isa, row_tally *tally);
/* The ways alone: what a row has from a level above its own are packing and epilogue. */
void check_row_ways(row_session *s, const rft_kernel_info *row, const char *isa, row_tally *tally);
/* The same for what the library chooses under that level. */
void check_chosen(row_session *s, const char *isa, row_tally *tally);

#endif
