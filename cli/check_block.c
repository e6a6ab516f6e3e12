/* SPDX-License-Identifier: Apache-2.0
 *
 * check_block.c - see check_block.h.
 */
#include "check_block.h"

int64_t block_span(const block *b) {
    if (b->rows == 0 || b->columns == 0 || b->batch == 0)
        return 0;
    return (b->batch - 1) * b->stride + (b->rows - 1) * b->ld + b->columns;
}

static bool all_ones(const char *p, const char *end) {
    for (; p < end; p++)
        if ((unsigned char)*p != 0xff)
            return false;
    return true;
}

bool block_gaps_intact(const block *y) {
    for (int64_t b = 0; b < y->batch; b++)
        for (int64_t r = 0; r < y->rows; r++) {
            bool last_row = r == y->rows - 1, last = last_row && b == y->batch - 1;
            int64_t from = b * y->stride + r * y->ld + y->columns;
            int64_t to = last ? from : last_row ? (b + 1) * y->stride : b * y->stride + (r + 1) * y->ld;
            if (!all_ones(y->p + (size_t)from * y->size, y->p + (size_t)to * y->size))
                return false;
        }
    return true;
}
