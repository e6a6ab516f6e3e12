/* SPDX-License-Identifier: Apache-2.0
 *
 * amx_plans.h - calls that must succeed, and which kernel a plan takes, for the tests of the level amx over its stand-in.
 * Included behind cmocka.h.
 */
#ifndef RFT_TESTS_AMX_PLANS_H
#define RFT_TESTS_AMX_PLANS_H

#include "rooftile_analysis.h"

#include <stdbool.h>
#include <string.h>

static rft_error err;

#define OK(call) rft_test_status(call, __LINE__)

static inline void rft_test_status(rft_status status, int line) {
    if (status != RFT_OK) {
        print_error("line %d: %s\n", line, err.message);
        fail();
    }
}

static inline const char *kernel_at(rft_ctx *ctx, const rft_linear_desc *d, int64_t m) {
    rft_plan_info info = rft_plan_info_init();
    rft_plan *plan = NULL;
    OK(rft_plan_create(ctx, d, &plan, &err));
    OK(rft_plan_get_info(plan, m, &info));
    rft_plan_free(plan);
    return info.kernel;
}

static inline bool is_amx(const char *kernel) { return strstr(kernel, "_amx") != NULL; }

#endif
