/* SPDX-License-Identifier: Apache-2.0
 *
 * check_block.h - matrices of a problem as they lie in memory, with gaps of NaN. Called by check_core.c.
 */
#ifndef CHECK_BLOCK_H
#define CHECK_BLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct block { /* batch matrices of rows x columns, with gaps */
    int64_t rows, columns, ld, stride, batch;
    int64_t unit; /* elements that are stored together: columns, ld and stride count these */
    size_t size;  /* bytes of them */
    char *p;
} block;

/* Elements from the first to the last one described. */
int64_t block_span(const block *b);
/* Between the rows of y nothing may have been written. */
bool block_gaps_intact(const block *y);

#endif
