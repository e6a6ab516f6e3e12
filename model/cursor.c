/* SPDX-License-Identifier: Apache-2.0
 *
 * cursor.c - bounds-checked little-endian reads. See cursor.h.
 */
#include "cursor.h"

#include <inttypes.h>

uint64_t rft__little_endian(const unsigned char *p, uint32_t bytes) {
    uint64_t value = 0;
    for (uint32_t i = 0; i < bytes; i++) {
        value |= (uint64_t)p[i] << 8 * i;
    }
    return value;
}

rft_status rft__cursor_take(rft__cursor *c, uint64_t n, const char *what, const unsigned char **out) {
    if (n > c->size - c->at) {
        RFT_FAIL(c->err, RFT_E_ARG, "%s needs %" PRIu64 " bytes at offset %zu, but the file ends at %zu", what, n, c->at,
                 c->size);
    }
    *out = c->bytes + c->at;
    c->at += (size_t)n;
    return RFT_OK;
}

rft_status rft__cursor_u32(rft__cursor *c, const char *what, uint32_t *out) {
    const unsigned char *p = NULL;
    RFT_TRY(rft__cursor_take(c, 4, what, &p));
    *out = (uint32_t)rft__little_endian(p, 4);
    return RFT_OK;
}

rft_status rft__cursor_u64(rft__cursor *c, const char *what, uint64_t *out) {
    const unsigned char *p = NULL;
    RFT_TRY(rft__cursor_take(c, 8, what, &p));
    *out = rft__little_endian(p, 8);
    return RFT_OK;
}

rft_status rft__cursor_string(rft__cursor *c, const char *what, const char **text, size_t *length) {
    uint64_t n = 0;
    const unsigned char *p = NULL;
    RFT_TRY(rft__cursor_u64(c, what, &n));
    RFT_TRY(rft__cursor_take(c, n, what, &p));
    *text = (const char *)p;
    *length = (size_t)n;
    return RFT_OK;
}
