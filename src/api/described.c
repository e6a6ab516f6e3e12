/* SPDX-License-Identifier: Apache-2.0
 *
 * described.c - plans for a machine that is not here, from its profile: explained, or compiled into the kernel cache.
 * Invariant: neither runs a kernel or touches a device.
 */
#include "api/api.h"
#include "base/sized.h"
#include "roofline/machine.h"

static rft_status read_machine(rft_machine *own, const rft_machine *machine, rft_error *err) {
    RFT_TRY(rft__sized_read(own, sizeof *own, machine, "machine", err));
    return rft__machine_check(own, "machine", RFT_E_ARG, err);
}

/* m < 0: the plan is made, and nothing explained. */
static rft_status plan_as(const rft__described *as, const rft_ctx_options *options, const rft__problem *p, int64_t m,
                          rft__text *text, rft_error *err) {
    rft_ctx *ctx = NULL;
    RFT_TRY(rft__ctx_open(as->machine->device, options, as, &ctx, err));
    rft_plan *plan = NULL;
    const rft_status status = rft__plan_make(ctx, p, NULL, &plan, err);
    if (status == RFT_OK) {
        if (m >= 0) {
            rft__plan_explain(plan, m, text);
        }
        rft__plan_drop(plan);
    }
    rft_ctx_free(ctx);
    return status;
}

rft_status rft_explain_machine(const rft_machine *machine, const rft_linear_desc *desc, int64_t m, uint32_t threads, char *buf,
                               size_t cap, size_t *length, rft_error *err) {
    rft_machine own;
    rft__problem p;
    RFT_TRY(read_machine(&own, machine, err));
    RFT_TRY(rft__problem_read(&p, desc, err));
    if (m < p.m_min || m > p.m_max) {
        RFT_FAIL(err, RFT_E_ARG, "m = %lld lies outside desc.m_min..m_max = %lld..%lld", (long long)m, (long long)p.m_min,
                 (long long)p.m_max);
    }
    const rft__described as = {&own, threads != 0 ? threads : own.counts[own.n_counts - 1], false};
    rft__text text = {buf, buf != NULL ? cap : 0, 0};
    RFT_TRY(plan_as(&as, NULL, &p, m, &text, err));
    if (length != NULL) {
        *length = text.length;
    }
    return RFT_OK;
}

rft_status rft_prebuild(const rft_machine *machine, const rft_ctx_options *options, const rft_linear_desc *desc, rft_error *err) {
    rft_machine own;
    rft__problem p;
    RFT_TRY(read_machine(&own, machine, err));
    RFT_TRY(rft__problem_read(&p, desc, err));
    const rft__described as = {&own, own.counts[own.n_counts - 1], true};
    return plan_as(&as, options, &p, -1, NULL, err);
}
