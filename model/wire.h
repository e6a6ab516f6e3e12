/* SPDX-License-Identifier: Apache-2.0
 *
 * wire.h - the fields of a Protocol Buffers message, one after the other, from bytes that are not trusted.
 *
 * Called by the readers of ONNX files, which know what the numbers of the fields mean. Invariant: at <= size, and every span that
 * is handed out lies in the message with its whole extent; nothing is copied or kept.
 */
#ifndef RFT_MODEL_WIRE_H
#define RFT_MODEL_WIRE_H

#include "rooftile.h"

#include <stdbool.h>

typedef struct rft__span {
    const unsigned char *bytes; /* not terminated; NULL where `size` is 0 and nothing was read */
    size_t size;
} rft__span;

typedef enum rft__wire_kind {
    RFT_WIRE_VARINT = 0,
    RFT_WIRE_FIXED64 = 1,
    RFT_WIRE_BYTES = 2,
    RFT_WIRE_FIXED32 = 5
} rft__wire_kind;

typedef struct rft__wire {
    const unsigned char *bytes;
    size_t size, at;
    const unsigned char *file; /* its first byte: messages tell offsets in it */
    rft_error *err;
} rft__wire;

typedef struct rft__field {
    uint32_t number;
    rft__wire_kind kind;
    uint64_t value;  /* of all kinds but bytes */
    rft__span bytes; /* of bytes */
} rft__field;

/* The message inside of a field of kind bytes. */
rft__wire rft__wire_open(const rft__wire *outer, rft__span bytes);
/* Whether a field, or a packed number, is left. */
static inline bool rft__wire_more(const rft__wire *w) {
    return w->at < w->size;
}
/* The next field, of which rft__wire_more has told. */
rft_status rft__wire_next(rft__wire *w, rft__field *field);
/* The next varint where nothing else stands, as in packed repeated numbers. */
rft_status rft__wire_varint(rft__wire *w, uint64_t *out);
/* A field that the format has in another kind is an error which names it. */
rft_status rft__wire_expect(const rft__wire *w, const rft__field *field, rft__wire_kind kind, const char *what);

bool rft__span_is(rft__span span, const char *text);

#endif
