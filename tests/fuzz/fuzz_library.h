/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_library.h - what the targets that call the library share: one context for all inputs, and that what is refused says why.
 */
#ifndef RFT_FUZZ_LIBRARY_H
#define RFT_FUZZ_LIBRARY_H

#include "fuzz_input.h"

#include "rooftile_analysis.h"

/* More threads than a small layer fills. */
static inline rft_ctx *context(void) {
    static rft_ctx *ctx;
    rft_ctx_options o = rft_ctx_options_init();
    o.threads = 3;
    require(ctx != NULL || rft_ctx_create("cpu", &o, &ctx, NULL) == RFT_OK);
    return ctx;
}

static inline rft_status judge(rft_status status, const rft_error *err) {
    require(status == RFT_OK || (err->status == status && err->message[0] != '\0'));
    return status;
}

#endif
