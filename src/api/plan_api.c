/* SPDX-License-Identifier: Apache-2.0
 *
 * plan_api.c - the public calls on plans. The plan itself is made in plan/.
 */
#include "api/api.h"
#include "base/sized.h"

static rft_status plan_create(rft_ctx *ctx, const rft_linear_desc *desc, const char *forced, rft_plan **out, rft_error *err) {
    if (ctx == NULL || out == NULL) {
        RFT_FAIL(err, RFT_E_ARG, "%s is NULL", out == NULL ? "out" : "ctx");
    }
    *out = NULL;
    rft__problem p;
    RFT_TRY(rft__problem_read(&p, desc, err));
    return rft__plan_make(ctx, &p, forced, out, err);
}

rft_status rft_plan_create(rft_ctx *ctx, const rft_linear_desc *desc, rft_plan **out, rft_error *err) {
    return plan_create(ctx, desc, NULL, out, err);
}

rft_status rft_plan_create_forced(rft_ctx *ctx, const rft_linear_desc *desc, const char *kernel, rft_plan **out, rft_error *err) {
    if (kernel == NULL) {
        RFT_FAIL(err, RFT_E_ARG, "kernel is NULL");
    }
    return plan_create(ctx, desc, kernel, out, err);
}

void rft_plan_free(rft_plan *plan) {
    if (plan != NULL) {
        rft__plan_drop(plan);
    }
}

rft_status rft_plan_get_info(const rft_plan *plan, int64_t m, rft_plan_info *info) {
    if (plan == NULL || m < plan->problem.m_min || m > plan->problem.m_max) {
        return RFT_E_ARG;
    }
    RFT_TRY(rft__sized_check(info, "info", NULL));
    rft_plan_info own;
    rft__plan_info(plan, m, &own);
    rft__sized_write(info, &own, sizeof own);
    return RFT_OK;
}

size_t rft_plan_explain(const rft_plan *plan, int64_t m, char *buf, size_t cap) {
    rft__text text = {buf, buf != NULL ? cap : 0, 0};
    if (plan == NULL) {
        rft__text_add(&text, "plan is NULL\n");
    } else {
        rft__plan_explain(plan, m, &text);
    }
    return text.length;
}
