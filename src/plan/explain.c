/* SPDX-License-Identifier: Apache-2.0
 *
 * explain.c - a plan in words: the problem, why each candidate was taken or refused, the work and what bounds it.
 * Called by api. The backend writes its own candidates.
 */
#include "plan/plan.h"
#include "roofline/bound.h"
#include "roofline/work.h"

/* 12.3 M, 456, 7.89 G: three digits and a decimal prefix. */
static void add_scaled(rft__text *t, const char *label, double value, const char *unit) {
    static const char *const prefix[] = {"", "k", "M", "G", "T", "P", "E"};
    int i = 0;
    for (; value >= 1000 && i < 6; i++) {
        value /= 1000;
    }
    rft__text_add(t, "%s%.*f %s%s", label, i == 0 || value >= 100 ? 0 : value >= 10 ? 1 : 2, value, prefix[i], unit);
}

static void add_work(rft__text *t, const rft__problem *p, int64_t m) {
    rft_work work = {.struct_size = sizeof work};
    rft__work(p, m, &work);
    add_scaled(t, "work: ", work.flops, "FLOP");
    add_scaled(t, ", ", work.bytes, "B");
    add_scaled(t, " (x ", work.x_bytes, "B");
    add_scaled(t, ", w ", work.w_bytes, "B");
    add_scaled(t, ", y ", work.y_bytes, "B");
    add_scaled(t, ", operands ", work.operand_bytes, "B");
    rft__text_add(t, "), %.3g FLOP/B\n", work.intensity);
}

static void add_bound(rft__text *t, const rft_plan *plan, int64_t m) {
    const rft_ctx *const ctx = plan->ctx;
    if (!ctx->has_machine) {
        rft__text_add(t, "bound: unknown, there is no machine profile (`rooftile roofline` measures one)\n");
        return;
    }
    rft_bound bound = {.struct_size = sizeof bound};
    rft__bound(&ctx->machine, &plan->problem, m, ctx->threads, &bound);
    rft__text_add(t, "bound: %.3g us by %s on %u threads (compute %.3g us, memory %.3g us), %s profile of %s, %s\n",
                  bound.seconds * 1e6, bound.what, ctx->threads, bound.compute_seconds * 1e6, bound.memory_seconds * 1e6,
                  ctx->machine.source, ctx->machine.name, ctx->machine.date);
}

void rft__plan_explain(const rft_plan *plan, int64_t m, rft__text *t) {
    const rft__problem *const p = &plan->problem;
    char text[512];
    rft__problem_text(p, text, sizeof text);
    rft__text_add(t, "%s\n", text);
    if (m < p->m_min || m > p->m_max) {
        rft__text_add(t, "m = %lld lies outside the plan's m_min..m_max = %lld..%lld\n", (long long)m, (long long)p->m_min,
                      (long long)p->m_max);
        return;
    }
    plan->ctx->backend->choice_explain(plan->choice, m, t);
    add_work(t, p, m);
    add_bound(t, plan, m);
}
