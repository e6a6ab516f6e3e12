/* SPDX-License-Identifier: Apache-2.0
 *
 * consumer_layer.c - plans and runs the layer of consumer.h. Valid C and valid C++.
 */
#include "consumer.h"

#include <stdlib.h>

static rft_status run(const rft_plan *plan, rft_linear_args *args, rft_error *err) {
    rft_plan_info info = rft_plan_info_init();
    rft_status status = rft_plan_get_info(plan, args->m, &info);
    void *workspace = NULL;
    if (status == RFT_OK && info.workspace && posix_memalign(&workspace, info.workspace_align, info.workspace) != 0)
        return RFT_E_NOMEM;
    args->workspace = workspace, args->workspace_bytes = info.workspace;
    if (status == RFT_OK)
        status = rft_linear_run(plan, args, err);
    free(workspace);
    return status;
}

rft_status consumer_run(const float *x, const float *w, float *y, int64_t m, int64_t n, int64_t k, rft_error *err) {
    rft_linear_desc layer = rft_linear_desc_init();
    rft_linear_args args = rft_linear_args_init();
    rft_ctx *ctx = NULL;
    rft_plan *plan = NULL;
    layer.x = layer.y = layer.w.elem = RFT_F32;
    layer.w.n = n, layer.w.k = k, layer.m_min = layer.m_max = m, layer.flags = RFT_W_DYNAMIC;
    args.m = m, args.x = x, args.w = w, args.y = y;
    rft_status status = rft_ctx_create("cpu", NULL, &ctx, err);
    if (status == RFT_OK)
        status = rft_plan_create(ctx, &layer, &plan, err);
    if (status == RFT_OK)
        status = run(plan, &args, err);
    rft_plan_free(plan);
    rft_ctx_free(ctx);
    return status;
}
