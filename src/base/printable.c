/* SPDX-License-Identifier: Apache-2.0
 *
 * printable.c - see printable.h.
 */
#include "base/printable.h"

/* Bytes of the control character that a text of `left` bytes begins with; 0: it begins with another. */
static size_t control_bytes(const char *text, size_t left) {
    const unsigned char first = (unsigned char)text[0];
    if (first < 0x20 || first == 0x7f) {
        return 1;
    }
    return first == 0xc2 && left > 1 && ((unsigned char)text[1] & 0xe0) == 0x80 ? 2 : 0;
}

bool rft__is_printable(const char *text, size_t length) {
    for (size_t i = 0; i < length; i++) {
        if (control_bytes(text + i, length - i) > 0) {
            return false;
        }
    }
    return true;
}

void rft__copy_printable(char *out, size_t cap, const char *text, size_t length) {
    size_t used = 0;
    for (size_t i = 0; i < length && used < cap - 1; used++) {
        const size_t control = control_bytes(text + i, length - i);
        out[used] = control > 0 ? '?' : text[i];
        i += control > 0 ? control : 1;
    }
    out[used] = 0;
}
