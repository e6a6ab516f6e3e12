/* SPDX-License-Identifier: Apache-2.0
 *
 * unfused.c - see unfused.h. A pass is split over the threads by rows, or by columns where there are few rows.
 */
#include "unfused.h"
#include "peers/peer.h"
#include "unfused_pass.h"

#include <string.h>

const char *unfused_refuses(const epilogue *epi) {
    for (uint32_t i = 0; i < epi->n_op; i++) {
        if (epi->op[i].kind == RFT_EPI_MASK || epi->op[i].kind == RFT_EPI_DROPOUT)
            return "mask and dropout have no separate pass here";
        if (epi->op[i].type == RFT_F16)
            return "an f16 operand has no separate pass here";
    }
    return NULL;
}

int unfused_make(unfused *u, const bench_case *fused, const weight_set *set, team *threads) {
    *u = (unfused){.fused = fused, .threads = threads, .stride = fused->n, .bare_options = *fused->o};
    u->bare_options.epi = (epilogue){.text = "none"};
    u->bare_options.y = RFT_F32;
    return case_make(&u->bare, &u->bare_options, fused->ctx, set, fused->m);
}

void unfused_free(unfused *u) { case_free(&u->bare); }

static size_t size_of(rft_type type) { return type == RFT_F32 ? 4 : 2; }

/* Where the operand of this op begins for row m, column c. */
static const void *operand_at(const unfused *u, const rft_epi_op *op, int64_t m, int64_t c) {
    const char *base = u->fused->operand[op->operand].ptr;
    bool matrix = op->kind == RFT_EPI_MUL || op->kind == RFT_EPI_ADD;
    int64_t index = op->kind == RFT_EPI_ROW_SCALE ? m : matrix ? m * u->columns + c : c;
    return base ? base + (size_t)index * size_of(op->type) : NULL;
}

static void pass_row(const unfused *u, int64_t m, int64_t begin, int64_t end) {
    const run_options *o = u->fused->o;
    float *row = (float *)u->bare.y.p + m * u->stride;
    row_pass p = {.count = end - begin, .y = row + begin, .up = row + u->columns + begin, .out_type = o->y};
    if (u->op < o->epi.n_op) {
        const rft_epi_op *op = &o->epi.op[u->op];
        p.kind = op->kind;
        p.operand_type = op->type;
        p.alpha = op->alpha;
        p.beta = op->beta;
        p.operand = operand_at(u, op, m, begin);
    } else {
        p.out = (char *)u->fused->y.p + (size_t)(m * u->columns + begin) * size_of(o->y);
    }
    run_row_pass(&p);
}

static int64_t split(int64_t total, int i, int n) { return total / n * i + (total % n * i) / n; }

static void pass_task(void *arg, int i) {
    const unfused *u = arg;
    int n = team_size(u->threads);
    int64_t m = u->fused->m;
    if (m < n) {
        for (int64_t r = 0; r < m; r++)
            pass_row(u, r, split(u->columns, i, n), split(u->columns, i + 1, n));
        return;
    }
    for (int64_t r = split(m, i, n); r < split(m, i + 1, n); r++)
        pass_row(u, r, 0, u->columns);
}

static void run_pass(unfused *u, uint32_t op) {
    const epilogue *epi = &u->fused->o->epi;
    u->op = op;
    if (op < epi->n_op && op_is_glu(&epi->op[op]))
        u->columns /= 2;
    team_for(u->threads, team_size(u->threads), pass_task, u);
}

rft_status unfused_run(void *self, int64_t i, void *stream, rft_error *err) {
    unfused *u = self;
    const run_options *o = u->fused->o;
    rft_status status = case_run(&u->bare, i, stream, err);
    if (status != RFT_OK)
        return status;
    u->columns = u->stride;
    for (uint32_t op = 0; op < o->epi.n_op; op++)
        run_pass(u, op);
    if (o->y != RFT_F32)
        run_pass(u, o->epi.n_op);
    return RFT_OK;
}

/* The last pass leaves f32 results where the bare product stood, others in the fused run's Y. */
double unfused_difference(const unfused *u, const void *ours) {
    rft_type type = u->fused->o->y;
    size_t row = (size_t)u->fused->columns * size_of(type), theirs = type == RFT_F32 ? (size_t)u->stride * 4 : row;
    const char *y = type == RFT_F32 ? u->bare.y.p : u->fused->y.p;
    double worst = 0;
    for (int64_t m = 0; m < u->fused->m; m++) {
        double d = peer_difference(type, (const char *)ours + (size_t)m * row, y + (size_t)m * theirs, u->fused->columns);
        worst = d > worst ? d : worst;
    }
    return worst;
}
