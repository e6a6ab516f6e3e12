/* SPDX-License-Identifier: Apache-2.0
 *
 * info.c - what this build is and which kernels it has; plans for a machine that is not here.
 */
#include "api/api.h"
#include "base/sized.h"
#include "base/type.h"
#include "format/format.h"
#include "plan/registry.h"
#include "rft_build_info.h"
#include "roofline/machine.h"

#define STRING(x)                   #x
#define DOTTED(major, minor, patch) STRING(major) "." STRING(minor) "." STRING(patch)

int rft_version(void) { return RFT_VERSION; }

const char *rft_type_name(rft_type t) { return rft__format_name(t); }

rft_status rft_get_build_info(rft_build_info *info) {
    RFT_TRY(rft__sized_check(info, "info", NULL));
    const rft_build_info own = {.struct_size = sizeof own,
                                .version = DOTTED(RFT_VERSION_MAJOR, RFT_VERSION_MINOR, RFT_VERSION_PATCH),
                                .commit = RFT_BUILD_COMMIT,
                                .compiler = RFT_BUILD_COMPILER,
                                .build_type = RFT_BUILD_TYPE,
                                .isa_built = rft__registry_isa_built(),
                                .isa_here = rft__registry_isa_here()};
    rft__sized_write(info, &own, sizeof own);
    return RFT_OK;
}

uint32_t rft_kernel_count(void) { return rft__registry_kernel_count(); }

rft_status rft_kernel_get(uint32_t i, rft_kernel_info *info) {
    if (i >= rft__registry_kernel_count()) {
        return RFT_E_ARG;
    }
    RFT_TRY(rft__sized_check(info, "info", NULL));
    rft_kernel_info own = {.struct_size = sizeof own};
    RFT_TRY(rft__registry_kernel(i, &own));
    rft__sized_write(info, &own, sizeof own);
    return RFT_OK;
}

static rft_status explain_as(const rft_machine *machine, const rft__problem *p, int64_t m, uint32_t threads, rft__text *text,
                             rft_error *err) {
    rft_ctx *ctx = NULL;
    RFT_TRY(rft__ctx_open(machine->device, NULL, machine, threads, &ctx, err));
    rft_plan *plan = NULL;
    const rft_status status = rft__plan_make(ctx, p, NULL, &plan, err);
    if (status == RFT_OK) {
        rft__plan_explain(plan, m, text);
        rft__plan_drop(plan);
    }
    rft_ctx_free(ctx);
    return status;
}

rft_status rft_explain_machine(const rft_machine *machine, const rft_linear_desc *desc, int64_t m, uint32_t threads, char *buf,
                               size_t cap, size_t *length, rft_error *err) {
    rft_machine own;
    RFT_TRY(rft__sized_read(&own, sizeof own, machine, "machine", err));
    RFT_TRY(rft__machine_check(&own, "machine", RFT_E_ARG, err));
    rft__problem p;
    RFT_TRY(rft__problem_read(&p, desc, err));
    if (m < p.m_min || m > p.m_max) {
        RFT_FAIL(err, RFT_E_ARG, "m = %lld lies outside desc.m_min..m_max = %lld..%lld", (long long)m, (long long)p.m_min,
                 (long long)p.m_max);
    }
    rft__text text = {buf, buf != NULL ? cap : 0, 0};
    RFT_TRY(explain_as(&own, &p, m, threads != 0 ? threads : own.counts[own.n_counts - 1], &text, err));
    if (length != NULL) {
        *length = text.length;
    }
    return RFT_OK;
}
