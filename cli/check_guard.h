/* SPDX-License-Identifier: Apache-2.0
 *
 * check_guard.h - memory between two pages that cannot be touched: an access one byte past either end faults at once.
 * A device has no such pages: there a copy of the piece lies between bands of NaN, which are looked at afterwards.
 */
#ifndef CHECK_GUARD_H
#define CHECK_GUARD_H

#include "cli.h"

typedef struct guard {
    char *base;      /* first byte that may be touched */
    size_t capacity; /* whole pages */
    char *placed;    /* the piece handed out last; NULL: none since guard_forget */
    size_t bytes;
    rft_ctx *ctx;    /* of the copy */
    char *device, *image; /* band, copy, band: on the device and here */
    size_t device_bytes;
    size_t at; /* of the copy, behind device */
} guard;

/* A piece that ends at the upper guard page (at_end) or begins at the lower one, filled with 0xff: NaN in every float type.
 * align is a power of two up to a page. NULL: no memory. */
void *guard_place(guard *g, size_t bytes, size_t align, bool at_end);
/* True when the bytes beside the piece, on the side without a guard page, still hold what guard_place wrote there. */
bool guard_intact(const guard *g);
void guard_forget(guard *g);
void guard_free(guard *g);

/* Copies the piece to the device, to an address that is as aligned as its own. */
rft_status guard_send(guard *g, rft_ctx *ctx, rft_error *err);
void *guard_device(const guard *g); /* the copy sent last */
/* Reads the copy and its bands back; *stray: where the first changed byte of a band lies, from the piece's first byte. */
#define GUARD_INTACT INT64_MIN
rft_status guard_receive(guard *g, int64_t *stray, rft_error *err);
const void *guard_received(const guard *g); /* the copy read last */

#endif
