/* SPDX-License-Identifier: Apache-2.0
 *
 * error.h - how a failure becomes an rft_error. Called by every layer.
 * Invariant: a function that returns a status other than RFT_OK has filled err, or err was NULL.
 */
#ifndef RFT_BASE_ERROR_H
#define RFT_BASE_ERROR_H

#include "rooftile.h"

/* Fills err (NULL is allowed) and returns status, so that a failing check is one line. */
rft_status rft__error_set(rft_error *err, rft_status status, int32_t native, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

#define RFT_FAIL(err, status, ...) return rft__error_set((err), (status), 0, __VA_ARGS__)
#define RFT_TRY(call)                                \
    do {                                             \
        const rft_status rft_try_status = (call);    \
        if (rft_try_status != RFT_OK) {              \
            return rft_try_status;                   \
        }                                            \
    } while (0)

#endif
