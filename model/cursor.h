/* SPDX-License-Identifier: Apache-2.0
 *
 * cursor.h - reads little-endian values and strings from bytes of a file that is not trusted.
 *
 * The cursor is gguf.c's; what needs none serves all readers of files. Invariant: at <= size; a read that would pass the end
 * moves nothing and is an error with the numbers.
 */
#ifndef RFT_MODEL_CURSOR_H
#define RFT_MODEL_CURSOR_H

#include "base/error.h"

#include <stdbool.h>

typedef struct rft__cursor {
    const unsigned char *bytes;
    size_t size, at;
    rft_error *err;
} rft__cursor;

/* `what` names the field in the error text. */
rft_status rft__cursor_take(rft__cursor *c, uint64_t n, const char *what, const unsigned char **out);
rft_status rft__cursor_u32(rft__cursor *c, const char *what, uint32_t *out);
rft_status rft__cursor_u64(rft__cursor *c, const char *what, uint64_t *out);
/* A u64 length and that many bytes, not terminated. */
rft_status rft__cursor_string(rft__cursor *c, const char *what, const char **text, size_t *length);

/* A little-endian integer of 1..8 bytes. */
uint64_t rft__little_endian(const unsigned char *p, uint32_t bytes);

#endif
