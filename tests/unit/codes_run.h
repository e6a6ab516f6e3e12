/* SPDX-License-Identifier: Apache-2.0
 *
 * codes_run.h - a context of a level, and one product with a W that is packed for it, for unit tests of low-bit weights. The
 * includer has cmocka.
 */
#ifndef RFT_TESTS_CODES_RUN_H
#define RFT_TESTS_CODES_RUN_H

#include "rooftile_analysis.h"

#include <stdlib.h>
#include <string.h>

/* Stops at that level; NULL where it does not run here. */
static inline rft_ctx *run_context(const char *level, int threads) {
    rft_ctx_options o = rft_ctx_options_init();
    rft_device_info info = {.struct_size = sizeof info};
    rft_ctx *ctx = NULL;
    o.threads = threads;
    o.max_isa = level;
    if (rft_ctx_create("cpu", &o, &ctx, NULL) != RFT_OK) { /* not of this architecture */
        return NULL;
    }
    if (rft_ctx_get_device(ctx, &info) != RFT_OK || strcmp(info.isa, level) != 0) {
        rft_ctx_free(ctx);
        ctx = NULL;
    }
    return ctx;
}

static void codes_run(rft_ctx *c, const rft_linear_desc *d, const rft_weight_src *src, int64_t m, const float *x, float *y) {
    rft_error err;
    rft_plan_info info = rft_plan_info_init();
    rft_plan *plan = NULL;
    rft_weight *weight = NULL;
    size_t bytes = 0;
    assert_int_equal(rft_plan_create(c, d, &plan, &err), RFT_OK);
    assert_int_equal(rft_plan_get_info(plan, m, &info), RFT_OK);
    assert_int_equal(rft_weight_bytes(c, &d->w, &bytes, &err), RFT_OK);
    void *const storage = aligned_alloc(64, (bytes + 63) / 64 * 64);
    rft_linear_args a = rft_linear_args_init();
    a.workspace = aligned_alloc(64, (info.workspace + 63) / 64 * 64 + 64);
    a.workspace_bytes = info.workspace;
    assert_int_equal(rft_weight_pack(c, &d->w, src, storage, NULL, &weight, &err), RFT_OK);
    a.m = m;
    a.x = x;
    a.y = y;
    a.weight = weight;
    assert_int_equal(rft_linear_run(plan, &a, &err), RFT_OK);
    rft_weight_free(weight);
    rft_plan_free(plan);
    free(storage);
    free(a.workspace);
}

#endif
