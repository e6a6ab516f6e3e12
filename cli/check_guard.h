/* SPDX-License-Identifier: Apache-2.0
 *
 * check_guard.h - memory between two pages that cannot be touched: an access one byte past either end faults at once.
 */
#ifndef CHECK_GUARD_H
#define CHECK_GUARD_H

#include <stdbool.h>
#include <stddef.h>

typedef struct guard {
    char *base;      /* first byte that may be touched */
    size_t capacity; /* whole pages */
    char *placed;    /* the piece handed out last */
    size_t bytes;
} guard;

/* A piece that ends at the upper guard page (at_end) or begins at the lower one, filled with 0xff: NaN in every float type.
 * align is a power of two up to a page. NULL: no memory. */
void *guard_place(guard *g, size_t bytes, size_t align, bool at_end);
/* True when the bytes beside the piece, on the side without a guard page, still hold what guard_place wrote there. */
bool guard_intact(const guard *g);
void guard_free(guard *g);

#endif
