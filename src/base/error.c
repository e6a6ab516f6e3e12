/* SPDX-License-Identifier: Apache-2.0
 *
 * error.c - fills rft_error and names statuses. Called by every layer.
 * Invariant: message is always terminated; one that does not fit ends in "...".
 */
#include "base/error.h"

#include "base/printable.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

rft_status rft__error_set(rft_error *err, rft_status status, int32_t native, const char *format, ...) {
    if (err == NULL) {
        return status;
    }
    char message[sizeof err->message]; /* an argument may point into err->message, so that a caller can add to it */
    va_list args;
    va_start(args, format);
    const int length = vsnprintf(message, sizeof message, format, args);
    va_end(args);
    if (length < 0) {
        message[0] = '\0';
    } else if ((size_t)length >= sizeof message) {
        memcpy(message + sizeof message - 4, "...", 4);
    }
    err->status = status;
    err->native = native;
    /* A value quoted from a hostile file must not reach a terminal as an escape sequence, or a log as a second line. */
    rft__copy_printable(err->message, sizeof err->message, message, strlen(message));
    return status;
}

const char *rft_status_name(rft_status s) {
    switch (s) {
#define RFT_STATUS(name) \
    case name:           \
        return #name;
#include "base/status.def"
#undef RFT_STATUS
    }
    return "unknown status";
}
