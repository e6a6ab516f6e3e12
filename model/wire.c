/* SPDX-License-Identifier: Apache-2.0
 *
 * wire.c - reads tags, varints and lengths. See wire.h.
 */
#include "wire.h"

#include "base/error.h"
#include "cursor.h"

#include <inttypes.h>
#include <string.h>

enum { VARINT_BYTES = 10, MAX_FIELD = (1 << 29) - 1 };

static size_t offset_of(const rft__wire *w) { return (size_t)(w->bytes + w->at - w->file); }

rft__wire rft__wire_open(const rft__wire *outer, rft__span bytes) {
    return (rft__wire){.bytes = bytes.bytes, .size = bytes.size, .file = outer->file, .err = outer->err};
}

rft_status rft__wire_varint(rft__wire *w, uint64_t *out) {
    uint64_t value = 0;
    for (size_t i = 0; i < VARINT_BYTES && w->at + i < w->size; i++) {
        const unsigned char byte = w->bytes[w->at + i];
        if (i == VARINT_BYTES - 1 && byte > 1) {
            break; /* more than 64 bits */
        }
        value |= (uint64_t)(byte & 0x7f) << 7 * i;
        if (byte < 0x80) {
            w->at += i + 1;
            *out = value;
            return RFT_OK;
        }
    }
    RFT_FAIL(w->err, RFT_E_ARG, "the number at offset %zu does not end within its message of %zu bytes and 64 bits", offset_of(w),
             w->size);
}

static rft_status take(rft__wire *w, uint64_t n, const unsigned char **out) {
    if (n > w->size - w->at) {
        RFT_FAIL(w->err, RFT_E_ARG, "a field at offset %zu claims %" PRIu64 " bytes, but its message ends after %zu",
                 offset_of(w), n, w->size - w->at);
    }
    *out = w->bytes + w->at;
    w->at += (size_t)n;
    return RFT_OK;
}

static rft_status take_fixed(rft__wire *w, uint32_t bytes, uint64_t *out) {
    const unsigned char *p = NULL;
    RFT_TRY(take(w, bytes, &p));
    *out = rft__little_endian(p, bytes);
    return RFT_OK;
}

static rft_status take_bytes(rft__wire *w, rft__span *out) {
    uint64_t n;
    RFT_TRY(rft__wire_varint(w, &n));
    RFT_TRY(take(w, n, &out->bytes));
    out->size = (size_t)n;
    return RFT_OK;
}

rft_status rft__wire_next(rft__wire *w, rft__field *field) {
    uint64_t tag;
    *field = (rft__field){0};
    const size_t at = offset_of(w);
    RFT_TRY(rft__wire_varint(w, &tag));
    if (tag >> 3 == 0 || tag >> 3 > MAX_FIELD) {
        RFT_FAIL(w->err, RFT_E_ARG, "the tag 0x%" PRIx64 " at offset %zu has no field number in 1..%d", tag, at, MAX_FIELD);
    }
    field->number = (uint32_t)(tag >> 3);
    field->kind = (rft__wire_kind)(tag & 7);
    switch (field->kind) {
    case RFT_WIRE_VARINT:
        return rft__wire_varint(w, &field->value);
    case RFT_WIRE_FIXED64:
        return take_fixed(w, 8, &field->value);
    case RFT_WIRE_FIXED32:
        return take_fixed(w, 4, &field->value);
    case RFT_WIRE_BYTES:
        return take_bytes(w, &field->bytes);
    default:
        RFT_FAIL(w->err, RFT_E_ARG, "field %" PRIu32 " at offset %zu has wire type %d, which is not used", field->number, at,
                 (int)(tag & 7));
    }
}

rft_status rft__wire_expect(const rft__wire *w, const rft__field *field, rft__wire_kind kind, const char *what) {
    if (field->kind != kind) {
        RFT_FAIL(w->err, RFT_E_ARG, "%s (field %" PRIu32 ") before offset %zu has wire type %d, not %d", what, field->number,
                 offset_of(w), (int)field->kind, (int)kind);
    }
    return RFT_OK;
}

bool rft__span_is(rft__span span, const char *text) {
    return span.size == strlen(text) && (span.size == 0 || memcmp(span.bytes, text, span.size) == 0);
}
