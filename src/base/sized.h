/* SPDX-License-Identifier: Apache-2.0
 *
 * sized.h - structs that begin with their size, so that an old program can meet a new library and the reverse.
 * Called by every public function that takes or fills such a struct. Invariant: bytes beyond the caller's size are never
 * touched, and bytes beyond ours must be zero, since we cannot honour what they ask.
 */
#ifndef RFT_BASE_SIZED_H
#define RFT_BASE_SIZED_H

#include "rooftile.h"

/* Copies a caller's struct into ours, zero where the caller's is shorter. name: the argument's, for messages. */
rft_status rft__sized_read(void *own, size_t own_size, const void *given, const char *name, rft_error *err);
/* The check of a struct to be filled, before the work. */
rft_status rft__sized_check(const void *given, const char *name, rft_error *err);
/* Fills a checked struct with as much of ours as it holds, zeros its tail and keeps its struct_size. */
void rft__sized_write(void *given, const void *own, size_t own_size);

#endif
