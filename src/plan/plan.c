/* SPDX-License-Identifier: Apache-2.0
 *
 * plan.c - makes a plan: an equal one's choice, or the backend's; says in the log what was chosen. Called by api.
 * Invariant: a plan that failed leaves nothing behind.
 */
#include "plan/plan.h"

#include "roofline/bound.h"
#include "roofline/work.h"

enum { TEXT_BYTES = 512 };

static void entry_free(rft_ctx *ctx, rft__plan_entry *entry) {
    if (entry->choice != NULL) {
        ctx->backend->choice_free(ctx->device, entry->choice);
    }
    rft__release(&ctx->allocator, entry, sizeof *entry);
}

static rft_status entry_make(rft_ctx *ctx, const rft__problem *p, uint64_t hash, const char *forced, rft__plan_entry **out,
                             rft_error *err) {
    rft__plan_entry *const entry = rft__alloc(&ctx->allocator, sizeof *entry, _Alignof(rft__plan_entry));
    if (entry == NULL) {
        RFT_FAIL(err, RFT_E_NOMEM, "no memory for a plan's choice (%zu bytes)", sizeof *entry);
    }
    *entry = (rft__plan_entry){.problem = *p, .hash = hash, .users = 1};
    const rft_status status = ctx->backend->choose(ctx->device, p, forced, &entry->choice, err);
    if (status != RFT_OK) {
        entry->choice = NULL;
        entry_free(ctx, entry);
        return status;
    }
    *out = entry;
    return RFT_OK;
}

/* Two threads may choose for equal problems at once; the slower one's choice is thrown away. */
static rft_status entry_get(rft_ctx *ctx, const rft__problem *p, const char *forced, rft__plan_entry **out, bool *cached,
                            rft_error *err) {
    const uint64_t hash = rft__problem_hash(p);
    *out = forced == NULL ? rft__plan_cache_find(&ctx->cache, p, hash) : NULL;
    *cached = *out != NULL;
    if (*cached) {
        return RFT_OK;
    }
    rft__plan_entry *entry = NULL;
    RFT_TRY(entry_make(ctx, p, hash, forced, &entry, err));
    *out = forced == NULL ? rft__plan_cache_add(&ctx->cache, entry) : entry;
    if (*out != entry) {
        entry_free(ctx, entry);
    }
    return RFT_OK;
}

static void log_choice(const rft_plan *plan, bool cached) {
    const rft__log *const log = &plan->ctx->log;
    if (!rft__log_enabled(log, RFT_LOG_DISPATCH)) {
        return;
    }
    char text[TEXT_BYTES];
    const rft__problem *const p = &plan->problem;
    rft__problem_text(p, text, sizeof text);
    rft_plan_info low, high;
    rft__plan_info(plan, p->m_min, &low);
    rft__plan_info(plan, p->m_max, &high);
    rft__log_event(log, RFT_LOG_DISPATCH, "plan", text, -1, "m=%lld %s; m=%lld %s; workspace %zu bytes%s", (long long)p->m_min,
                   low.kernel, (long long)p->m_max, high.kernel, plan->workspace,
                   cached ? "; shares an equal plan's choice" : "");
}

/* A kernel that the caller named is what the caller asked for, slow or not. */
static rft_status report_fallback(const rft_plan *plan, const char *forced, rft_error *err) {
    const rft__backend *const backend = plan->ctx->backend;
    const char *const why = forced == NULL && backend->choice_fallback != NULL ? backend->choice_fallback(plan->choice) : NULL;
    if (why == NULL) {
        return RFT_OK;
    }
    char text[TEXT_BYTES];
    rft__problem_text(&plan->problem, text, sizeof text);
    rft__log_event(&plan->ctx->log, RFT_LOG_HINT, "fallback", text, -1, "%s", why);
    if (plan->ctx->strict) {
        RFT_FAIL(err, RFT_E_UNSUPPORTED, "desc would run a fallback kernel, which RFT_CTX_STRICT forbids: %s", why);
    }
    return RFT_OK;
}

static void plan_fill(rft_plan *plan, rft_ctx *ctx, const rft__problem *p, rft__plan_entry *entry) {
    *plan = (rft_plan){.ctx = ctx, .problem = *p, .entry = entry, .choice = entry->choice};
    plan->weight_layout = p->w.view || p->w_dynamic ? 0 : ctx->backend->weight_layout(&p->w);
    rft_plan_info info = {0};
    ctx->backend->choice_info(plan->choice, p->m_max, &info);
    plan->workspace = info.workspace;
}

rft_status rft__plan_make(rft_ctx *ctx, const rft__problem *p, const char *forced, rft_plan **out, rft_error *err) {
    rft_plan *const plan = rft__alloc(&ctx->allocator, sizeof *plan, _Alignof(rft_plan));
    if (plan == NULL) {
        RFT_FAIL(err, RFT_E_NOMEM, "no memory for a plan (%zu bytes)", sizeof *plan);
    }
    rft__plan_entry *entry = NULL;
    bool cached = false;
    rft_status status = entry_get(ctx, p, forced, &entry, &cached, err);
    if (status != RFT_OK) {
        rft__release(&ctx->allocator, plan, sizeof *plan);
        return status;
    }
    plan_fill(plan, ctx, p, entry);
    log_choice(plan, cached);
    status = report_fallback(plan, forced, err);
    if (status != RFT_OK) {
        rft__plan_drop(plan);
        return status;
    }
    *out = plan;
    return RFT_OK;
}

void rft__plan_drop(rft_plan *plan) {
    rft_ctx *const ctx = plan->ctx;
    if (rft__plan_cache_drop(&ctx->cache, plan->entry)) {
        entry_free(ctx, plan->entry);
    }
    rft__release(&ctx->allocator, plan, sizeof *plan);
}

void rft__plan_info(const rft_plan *plan, int64_t m, rft_plan_info *info) {
    const rft_ctx *const ctx = plan->ctx;
    *info = (rft_plan_info){.workspace_align = 64, .bound = "unknown"};
    ctx->backend->choice_info(plan->choice, m, info);
    info->struct_size = (uint32_t)sizeof *info;
    info->weight_layout = plan->weight_layout;
    rft_work work = {.struct_size = sizeof work};
    rft__work(&plan->problem, m, &work);
    info->flops = work.flops;
    info->bytes = work.bytes;
    if (ctx->has_machine) {
        rft_bound bound = {.struct_size = sizeof bound};
        rft__bound(&ctx->machine, &plan->problem, m, ctx->threads, &bound);
        info->bound_seconds = bound.seconds;
        info->bound = bound.what;
    }
}
