/* SPDX-License-Identifier: Apache-2.0
 *
 * gguf.h - the GGUF v3 container: keys with values, tensors with data in place.
 *
 * Called by model.c, which owns the bytes. Invariant after rft__gguf_parse: every pointer below lies in those bytes with
 * its whole extent, names are unique and printable, tensors lie one behind the other without overlap.
 */
#ifndef RFT_MODEL_GGUF_H
#define RFT_MODEL_GGUF_H

#include "tensors.h"

#define RFT_GGUF_MAX_NAME 64 /* of a tensor, with its terminator */

typedef struct rft__gguf_key {
    const char *name; /* not terminated */
    size_t length;
    uint32_t type; /* of the value; of the elements where is_array */
    bool is_array;
    const unsigned char *value; /* of an array: its first element */
    size_t record;              /* bytes of all of it in the file, from 8 before `name` on */
} rft__gguf_key;

typedef struct rft__gguf {
    rft__allocator allocator;
    rft__gguf_key *keys; /* sorted by name */
    size_t n_keys;
    rft__tensors tensors;
} rft__gguf;

/* On failure everything is released. */
rft_status rft__gguf_parse(const rft__allocator *a, const unsigned char *bytes, size_t size, rft__gguf *out, rft_error *err);
void rft__gguf_free(rft__gguf *gguf);

/* Integers of any width, in min..max. An absent key leaves *out alone and is an error only if required. */
rft_status rft__gguf_integer(const rft__gguf *gguf, const char *key, bool required, int64_t min, int64_t max, int64_t *out,
                             rft_error *err);
/* Copies a string, cut to cap - 1 bytes, control characters as '?'. Absent: "". */
rft_status rft__gguf_string(const rft__gguf *gguf, const char *key, char *out, size_t cap, rft_error *err);

#endif
