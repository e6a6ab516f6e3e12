/* SPDX-License-Identifier: Apache-2.0
 *
 * run.c - runs one product or a list: every argument checked in O(1), defaults filled in, then the backend.
 * Invariant: nothing here allocates or locks, and no y is written before all checks of all calls have passed.
 */
#include "api/api.h"
#include "base/clock.h"
#include "base/sized.h"
#include "format/format.h"

#include <stdio.h>

/* ---- one operand ---- */

typedef struct extent { /* rows x row elements, batch of them */
    const char *name;
    int64_t rows, row, batch;
} extent;

/* Fills in a dense ld and batch stride, refuses a short ld and spans beyond 2^63 bytes. */
static rft_status check_extent(const extent *e, int64_t *ld, int64_t *batch_stride, rft_error *err) {
    if (*ld < 0 || (*ld != 0 && *ld < e->row)) {
        RFT_FAIL(err, RFT_E_ARG, "args.ld%s = %lld is less than the row length %lld", e->name, (long long)*ld, (long long)e->row);
    }
    if (*batch_stride < 0) {
        RFT_FAIL(err, RFT_E_ARG, "args.%s_batch_stride = %lld is negative", e->name, (long long)*batch_stride);
    }
    *ld = *ld != 0 ? *ld : rft__max(1, e->row);
    int64_t dense = 0, span = 0;
    bool overflows = rft__mul_overflows(e->rows, *ld, &dense);
    const int64_t stride = *batch_stride != 0 ? *batch_stride : dense;
    overflows = overflows || rft__mul_overflows(stride, e->batch, &span) || rft__add_overflows(span, dense, &span) ||
                rft__mul_overflows(span, 8, &span);
    if (overflows) {
        RFT_FAIL(err, RFT_E_ARG, "args.ld%s = %lld, args.%s_batch_stride = %lld: the matrix overflows 2^63 bytes", e->name,
                 (long long)*ld, e->name, (long long)*batch_stride);
    }
    *batch_stride = stride;
    return RFT_OK;
}

static rft_status check_pointer(const void *p, rft_type type, const char *name, rft_error *err) {
    if (p == NULL) {
        RFT_FAIL(err, RFT_E_ARG, "args.%s is NULL", name);
    }
    if ((uintptr_t)p % rft__type_size(type) != 0) {
        RFT_FAIL(err, RFT_E_ARG, "args.%s = %p is not aligned to the %zu bytes of %s", name, p, rft__type_size(type),
                 rft__type_name(type));
    }
    return RFT_OK;
}

/* ---- what a plan here does not take ---- */

static rft_status check_unused(const rft__problem *p, const rft_linear_args *a, rft_error *err) {
    const bool stray = a->x_scale != NULL && !rft__type_is_8bit(p->x);
    const char *const name = a->m_device != NULL       ? "m_device"
                             : a->group_offset != NULL ? "group_offset"
                             : a->row_index != NULL    ? "row_index"
                             : stray                   ? "x_scale"
                                                       : NULL;
    if (name != NULL) {
        RFT_FAIL(err, RFT_E_UNSUPPORTED, "args.%s is set, and the plan has no kernel that reads it; it must be NULL", name);
    }
    return RFT_OK;
}

/* ---- x and y ---- */

static rft_status fill_x(const rft__problem *p, rft_linear_args *a, rft_error *err) {
    const bool by_k = p->x_order == RFT_K_CONTIGUOUS;
    const extent e = {"x", by_k ? a->m : p->w.k, by_k ? p->w.k : a->m, p->batch};
    return check_extent(&e, &a->ldx, &a->x_batch_stride, err);
}

/* Batches of y lie behind each other or side by side; anything between would write an element twice. */
static rft_status fill_y(const rft__problem *p, rft_linear_args *a, rft_error *err) {
    const int64_t width = p->epi.n_out;
    const extent e = {"y", a->m, width, p->batch};
    RFT_TRY(check_extent(&e, &a->ldy, &a->y_batch_stride, err));
    const bool behind = a->y_batch_stride >= (a->m - 1) * a->ldy + width;
    const bool beside = a->y_batch_stride >= width && a->ldy >= (p->batch - 1) * a->y_batch_stride + width;
    if (p->batch > 1 && a->m > 0 && !behind && !beside) {
        RFT_FAIL(err, RFT_E_ARG, "args.y_batch_stride = %lld with ldy = %lld makes the batches of y (%lld x %lld) overlap",
                 (long long)a->y_batch_stride, (long long)a->ldy, (long long)a->m, (long long)width);
    }
    return RFT_OK;
}

/* ---- W ---- */

static rft_status check_shape(const rft__matrix *w, const rft__matrix *want, rft_error *err) {
    if (w->n != want->n || w->k != want->k || w->batch != want->batch) {
        RFT_FAIL(err, RFT_E_LAYOUT, "args.weight has n = %lld, k = %lld, batch = %lld, the plan's w %lld, %lld, %lld",
                 (long long)w->n, (long long)w->k, (long long)w->batch, (long long)want->n, (long long)want->k,
                 (long long)want->batch);
    }
    if (w->elem != want->elem || w->glu != want->glu) {
        RFT_FAIL(err, RFT_E_LAYOUT, "args.weight has elem %s and GLU pairing %d, the plan's w %s and %d",
                 rft__format_name(w->elem), (int)w->glu, rft__format_name(want->elem), (int)want->glu);
    }
    if (w->scale != want->scale || w->zero != want->zero || w->group_n != want->group_n || w->group_k != want->group_k) {
        RFT_FAIL(err, RFT_E_LAYOUT, "args.weight has scales of %s for groups of %lld x %lld, the plan's w %s for %lld x %lld%s",
                 rft__type_name(w->scale), (long long)w->group_n, (long long)w->group_k, rft__type_name(want->scale),
                 (long long)want->group_n, (long long)want->group_k, w->zero != want->zero ? "; zero points differ" : "");
    }
    if (want->view && w->order != want->order) {
        RFT_FAIL(err, RFT_E_LAYOUT, "args.weight is a view of order %d, the plan's w has order %d", (int)w->order,
                 (int)want->order);
    }
    return RFT_OK;
}

static rft_status check_weight(const rft_plan *plan, const rft_weight *weight, rft_error *err) {
    if (weight->ctx->backend != plan->ctx->backend) {
        RFT_FAIL(err, RFT_E_LAYOUT, "args.weight was made for device \"%s\", the plan runs on \"%s\"", weight->ctx->backend->name,
                 plan->ctx->backend->name);
    }
    if (weight->memory != plan->ctx->backend->memory_read(plan->ctx->device)) {
        RFT_FAIL(err, RFT_E_LAYOUT, "args.weight lies at %p, %s, which the plan's device does not read", weight->data,
                 weight->memory == NULL ? "in host memory" : "in another device's memory");
    }
    RFT_TRY(check_shape(&weight->w, &plan->problem.w, err));
    if (weight->layout != plan->weight_layout) {
        RFT_FAIL(err, RFT_E_LAYOUT, "args.weight has layout 0x%llx, the plan reads 0x%llx (0: a view)",
                 (unsigned long long)weight->layout, (unsigned long long)plan->weight_layout);
    }
    return RFT_OK;
}

static rft_status fill_weight(const rft_plan *plan, rft_linear_args *a, bool read, rft_error *err) {
    if (a->w != NULL) {
        RFT_FAIL(err, RFT_E_ARG, "args.w is set, and the plan takes args.weight (desc.flags lacks RFT_W_DYNAMIC)");
    }
    if (a->weight == NULL) {
        return read ? rft__error_set(err, RFT_E_ARG, 0, "args.weight is NULL") : RFT_OK;
    }
    RFT_TRY(check_weight(plan, a->weight, err));
    if (plan->problem.w.view) {
        const rft__matrix *const w = &a->weight->w;
        a->w = a->weight->data;
        a->ldw = w->order == RFT_K_CONTIGUOUS ? w->n_stride : w->k_stride;
        a->w_batch_stride = w->batch_stride;
    }
    return RFT_OK;
}

static rft_status fill_dynamic(const rft__problem *p, rft_linear_args *a, bool read, rft_error *err) {
    if (a->weight != NULL) {
        RFT_FAIL(err, RFT_E_ARG, "args.weight is set, and the plan takes args.w (RFT_W_DYNAMIC in desc.flags)");
    }
    const bool by_k = p->w.order == RFT_K_CONTIGUOUS;
    const extent e = {"w", by_k ? p->w.n : p->w.k, by_k ? p->w.k : p->w.n, p->w.batch};
    a->ldw = a->ldw != 0 ? a->ldw : by_k ? p->w.n_stride : p->w.k_stride;
    a->w_batch_stride = a->w_batch_stride != 0 ? a->w_batch_stride : p->w.batch_stride;
    RFT_TRY(check_extent(&e, &a->ldw, &a->w_batch_stride, err));
    return read ? check_pointer(a->w, p->w.elem, "w", err) : RFT_OK;
}

static rft_status fill_w(const rft_plan *plan, rft_linear_args *a, bool read, rft_error *err) {
    const rft__problem *const p = &plan->problem;
    RFT_TRY(p->w_dynamic ? fill_dynamic(p, a, read, err) : fill_weight(plan, a, read, err));
    if (p->w.batch < p->batch) {
        a->w_batch_stride = 0;
    }
    return RFT_OK;
}

/* ---- one call ---- */

rft_status rft__workspace_check(const void *workspace, size_t bytes, size_t needed, const char *whose, rft_error *err) {
    if (bytes < needed) {
        RFT_FAIL(err, RFT_E_ARG, "args.workspace_bytes = %zu is less than the %s's %zu", bytes, whose, needed);
    }
    if (needed > 0 && (workspace == NULL || (uintptr_t)workspace % RFT__STORAGE_ALIGN != 0)) {
        RFT_FAIL(err, RFT_E_ARG, "args.workspace = %p is NULL or not aligned to %d bytes", workspace, RFT__STORAGE_ALIGN);
    }
    return RFT_OK;
}

static rft_status check_data(const rft_plan *plan, const rft_linear_args *a, bool read, rft_error *err) {
    const rft__problem *const p = &plan->problem;
    RFT_TRY(check_pointer(a->y, p->y, "y", err));
    if (read) {
        RFT_TRY(check_pointer(a->x, p->x, "x", err));
    }
    if (read && rft__type_is_8bit(p->x)) {
        RFT_TRY(check_pointer(a->x_scale, RFT_F32, "x_scale", err));
    }
    RFT_TRY(rft__workspace_check(a->workspace, a->workspace_bytes, plan->workspace, "plan", err));
    return rft__epi_check_operands(&p->epi, a->operand, a->n_operand, a->m, p->batch, err);
}

rft_status rft__call_make(rft__call *call, const rft_plan *plan, const rft_linear_args *args, rft_error *err) {
    rft_linear_args *const a = &call->args;
    if (plan == NULL) {
        RFT_FAIL(err, RFT_E_ARG, "plan is NULL");
    }
    RFT_TRY(rft__sized_read(a, sizeof *a, args, "args", err));
    const rft__problem *const p = &plan->problem;
    if (a->m < p->m_min || a->m > p->m_max) {
        RFT_FAIL(err, RFT_E_ARG, "args.m = %lld lies outside the plan's m_min..m_max = %lld..%lld", (long long)a->m,
                 (long long)p->m_min, (long long)p->m_max);
    }
    RFT_TRY(check_unused(p, a, err));
    RFT_TRY(fill_x(p, a, err));
    RFT_TRY(fill_y(p, a, err));
    const bool read = p->alpha != 0.0f && p->w.k != 0;
    call->nothing = a->m == 0 || p->epi.n_out == 0 || p->batch == 0;
    call->run = (rft__run){.choice = plan->choice, .args = a};
    RFT_TRY(fill_w(plan, a, read && !call->nothing, err));
    return call->nothing ? RFT_OK : check_data(plan, a, read, err);
}

/* ---- run ---- */

static void log_run(const rft_plan *plan, const rft__call *call, uint32_t count, double us) {
    char text[512];
    rft__problem_text(&plan->problem, text, sizeof text);
    rft_plan_info info = {0};
    plan->ctx->backend->choice_info(plan->choice, call->args.m, &info);
    rft__log_event(&plan->ctx->log, RFT_LOG_EXEC, "run", text, us, "m=%lld %s; %d threads; %u in the list",
                   (long long)call->args.m, info.kernel, info.threads, count);
}

rft_status rft__call_run(const rft_plan *const *plans, const rft__call *calls, uint32_t count, rft_error *err) {
    rft__run runs[RFT_MAX_LIST];
    uint32_t n = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (!calls[i].nothing) {
            runs[n++] = calls[i].run;
        }
    }
    if (n == 0) {
        return RFT_OK;
    }
    const rft_ctx *const ctx = plans[0]->ctx;
    if (!rft__log_enabled(&ctx->log, RFT_LOG_EXEC)) {
        return ctx->backend->run(ctx->device, runs, n, err);
    }
    const double start = rft__now();
    RFT_TRY(ctx->backend->run(ctx->device, runs, n, err));
    log_run(plans[0], &calls[0], count, (rft__now() - start) * 1e6);
    return RFT_OK;
}

rft_status rft_linear_run(const rft_plan *plan, const rft_linear_args *args, rft_error *err) {
    rft__call call;
    RFT_TRY(rft__call_make(&call, plan, args, err));
    return rft__call_run(&plan, &call, 1, err);
}

rft_status rft__status_in(const char *where, rft_status status, rft_error *err) {
    return status == RFT_OK || err == NULL ? status : rft__error_set(err, status, err->native, "%s: %s", where, err->message);
}

static rft_status check_list(const rft_plan *const *plans, const rft_linear_args *args, uint32_t count, rft_error *err) {
    if (plans == NULL || args == NULL) {
        RFT_FAIL(err, RFT_E_ARG, "%s is NULL and count = %u", plans == NULL ? "plans" : "args", count);
    }
    if (count > RFT_MAX_LIST) {
        RFT_FAIL(err, RFT_E_ARG, "count = %u is more than the %d plans of one list", count, RFT_MAX_LIST);
    }
    for (uint32_t i = 0; i < count; i++) {
        if (plans[i] == NULL) {
            RFT_FAIL(err, RFT_E_ARG, "plans[%u] is NULL", i);
        }
        if (plans[i]->ctx != plans[0]->ctx) {
            RFT_FAIL(err, RFT_E_ARG, "plans[%u] belongs to another context than plans[0]", i);
        }
    }
    return RFT_OK;
}

/* The caller's array is strided by the caller's own struct size, which all entries must share. */
static rft_status args_at(const rft_linear_args *args, uint32_t i, const rft_linear_args **out, rft_error *err) {
    const size_t size = args->struct_size;
    *out = (const rft_linear_args *)(const void *)((const unsigned char *)args + i * size);
    if ((*out)->struct_size != size) {
        RFT_FAIL(err, RFT_E_ARG, "args[%u].struct_size = %u differs from args[0]'s %zu", i, (*out)->struct_size, size);
    }
    return RFT_OK;
}

rft_status rft_run_list(const rft_plan *const *plans, const rft_linear_args *args, uint32_t count, rft_error *err) {
    if (count == 0) {
        return RFT_OK;
    }
    RFT_TRY(check_list(plans, args, count, err));
    RFT_TRY(rft__sized_check(args, "args[0]", err));
    rft__call calls[RFT_MAX_LIST];
    for (uint32_t i = 0; i < count; i++) {
        const rft_linear_args *one = NULL;
        RFT_TRY(args_at(args, i, &one, err));
        const rft_status status = rft__call_make(&calls[i], plans[i], one, err);
        if (status != RFT_OK) {
            char where[32];
            snprintf(where, sizeof where, "entry %u of the list", i);
            return rft__status_in(where, status, err);
        }
    }
    return rft__call_run(plans, calls, count, err);
}
