/* SPDX-License-Identifier: Apache-2.0
 *
 * check_core.c - see check_core.h. One run: place, fill, plan, pack, run, compare, look at the gaps.
 * Plans are made and results compared by several threads at once; on a GPU one problem runs at a time, so that a fault or a
 * hang has a name. Invariant: everything that varies is drawn from the problem's seed in a fixed order.
 */
#define _GNU_SOURCE
#include "check_core.h"
#include "check_fault.h"
#include "check_block.h"
#include "check_guard.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CONTEXTS     32
#define HANG_SECONDS 30
#define MOST_GFLOP   0.5 /* of a reference where the device waits for it; larger products are sampled */
#define ALIGNED      16  /* bytes that a GPU's wide loads and tensor maps need */
#define GUARDS       (AT_OPERAND + RFT_MAX_OPERANDS)

enum { AT_X, AT_W, AT_Y, AT_PACKED, AT_WORKSPACE, AT_SCALE, AT_ZERO, AT_GLOBAL, AT_INDEX, AT_X_SCALE, AT_OPERAND };

typedef struct context_slot {
    char isa[32];
    uint32_t threads;
    rft_ctx *ctx;
} context_slot;

typedef struct shared { /* by the checkers of all threads */
    const char *device;
    bool copies;
    bool lost;
    pthread_mutex_t slots, turn; /* turn: held by the problem that is on the device */
    context_slot slot[CONTEXTS];
    int n_slot;
} shared;

struct checker {
    shared *shared;
    bool first; /* that frees it */
    guard guards[GUARDS];
};

typedef struct attempt {
    checker *c;
    const check_problem *p;
    check_result *result;
    uint64_t random, style; /* states */
    float alpha;
    bool blamed;  /* this one broke the device */
    bool aligned; /* pointers and rows, to ALIGNED bytes */
    rft_error err;
    rft_ctx *ctx;
    rft_linear_desc desc;
    rft_linear_args args;
    rft_plan *plan;
    rft_weight *weight;
    rft_operand operand[RFT_MAX_OPERANDS];
    block x, w, y;
    weight_scales scales;
    check_x_scales x_scales;
    int64_t columns; /* of y */
} attempt;

static checker *create(shared *s, bool first) {
    checker *c = cli_alloc(1, sizeof *c);
    c->shared = s;
    c->first = first;
    return c;
}

checker *checker_create(const char *device, bool copies) {
    shared *s = cli_alloc(1, sizeof *s);
    s->device = device;
    s->copies = copies || strncmp(device, "cpu", 3) != 0;
    pthread_mutex_init(&s->slots, NULL);
    pthread_mutex_init(&s->turn, NULL);
    return create(s, true);
}

checker *checker_beside(checker *first) { return create(first->shared, false); }

bool checker_lost(const checker *c) {
    pthread_mutex_lock(&c->shared->turn);
    bool lost = c->shared->lost;
    pthread_mutex_unlock(&c->shared->turn);
    return lost;
}

static void free_shared(shared *s) {
    for (int i = 0; i < s->n_slot; i++)
        rft_ctx_free(s->slot[i].ctx);
    pthread_mutex_destroy(&s->slots);
    pthread_mutex_destroy(&s->turn);
    free(s);
}

void checker_free(checker *c) {
    for (int i = 0; i < GUARDS; i++)
        guard_free(&c->guards[i]);
    if (c->first)
        free_shared(c->shared);
    free(c);
}

static uint64_t draw(attempt *a) { return check_random_next(&a->random); }
/* Style 0 is the plainest: alpha 1, no flags. */
static uint64_t draw_style(attempt *a) {
    uint64_t drawn = check_random_next(&a->style);
    return a->p->seed >> CHECK_STYLE ? drawn : 1;
}

static bool fail(attempt *a, check_verdict verdict, const char *what) {
    a->result->verdict = verdict;
    snprintf(a->result->message, sizeof a->result->message, "%s", what);
    return false;
}

static bool failed_call(attempt *a, const char *call) {
    bool refused = a->err.status == RFT_E_UNSUPPORTED;
    a->result->verdict = refused ? CHECK_REFUSED : CHECK_ERROR;
    snprintf(a->result->message, sizeof a->result->message, "%s: %s", call, a->err.message);
    return false;
}

static bool open_context(attempt *a, context_slot *slot) {
    rft_ctx_options options = rft_ctx_options_init();
    options.threads = a->p->threads;
    options.max_isa = a->p->isa;
    if (rft_ctx_create(a->c->shared->device, &options, &slot->ctx, &a->err) != RFT_OK)
        return failed_call(a, "rft_ctx_create");
    snprintf(slot->isa, sizeof slot->isa, "%s", a->p->isa ? a->p->isa : "");
    slot->threads = a->p->threads;
    return true;
}

static bool find_or_open(attempt *a) {
    shared *s = a->c->shared;
    const char *isa = a->p->isa ? a->p->isa : "";
    int i = 0;
    while (i < s->n_slot && !(s->slot[i].threads == a->p->threads && strcmp(s->slot[i].isa, isa) == 0))
        i++;
    if (i == CONTEXTS)
        return fail(a, CHECK_ERROR, "too many levels and thread counts in one run");
    if (i == s->n_slot && !open_context(a, &s->slot[i]))
        return false;
    s->n_slot += i == s->n_slot;
    a->ctx = s->slot[i].ctx;
    return true;
}

static bool find_context(attempt *a) {
    pthread_mutex_lock(&a->c->shared->slots);
    bool found = find_or_open(a);
    pthread_mutex_unlock(&a->c->shared->slots);
    return found;
}

/* With alpha = 0 x and w stay NaN: neither may be read. */
static void draw_scale(attempt *a) {
    static const float scales[8] = {1, 1, 1, 1, 1, 0.5F, -2, 0};
    a->alpha = scales[draw_style(a) % 8];
    a->aligned = (a->p->seed & CHECK_ALIGNED) != 0;
}

rft_status checker_open(checker *c, rft_error *err) {
    const check_problem p = {0};
    check_result result;
    attempt a = {.c = c, .p = &p, .result = &result};
    rft_status status = find_context(&a) ? RFT_OK : a.err.status;
    *err = a.err;
    return status;
}

static int64_t round_up(int64_t value, int64_t grain) { return (value + grain - 1) / grain * grain; }

static bool place(attempt *a, int at, block *b, rft_type type, int64_t rows, int64_t columns, int64_t batch) {
    static const int64_t gaps[8] = {0, 0, 0, 1, 3, 7, 13, 64};
    size_t bytes;
    int64_t unit = cli_block(type);
    if (!unit)
        return fail(a, CHECK_ERROR, "a type without storage");
    *b = (block){.rows = rows, .columns = round_up(columns, unit) / unit, .batch = batch, .unit = unit};
    b->size = rft_type_bytes(type, unit);
    bool low_bit = cli_low_bit(type), aligned = a->aligned && !low_bit;
    int64_t grain = aligned ? ALIGNED / (int64_t)b->size : 1;
    b->ld = round_up((b->columns ? b->columns : 1) + gaps[draw(a) % 8], grain);
    b->stride = rows * b->ld + round_up(gaps[draw(a) % 8], grain);
    if (!cli_bytes(type, block_span(b) * unit, &bytes))
        return fail(a, CHECK_TOO_LARGE, "a matrix of too many bytes");
    b->p = guard_place(&a->c->guards[at], bytes, aligned ? ALIGNED : low_bit ? 1 : b->size, (draw(a) ^ a->p->seed) % 2);
    return b->p || fail(a, CHECK_TOO_LARGE, "no memory");
}

static bool fill(attempt *a, const block *b, rft_type type) {
    for (int64_t i = 0; i < b->batch; i++)
        for (int64_t r = 0; r < b->rows; r++)
            if (rft_fill_random(type, b->p + (size_t)(i * b->stride + r * b->ld) * b->size, b->columns * b->unit, draw(a),
                                &a->err) !=
                RFT_OK)
                return failed_call(a, "rft_fill_random");
    return true;
}

static bool make_apart(attempt *a, int at, rft_type type, int64_t count) {
    size_t bytes;
    if (!type)
        return true;
    bool at_end = (draw(a) ^ a->p->seed) % 2;
    if (!cli_bytes(type, count, &bytes))
        return fail(a, CHECK_TOO_LARGE, "scales of too many bytes");
    void *to = guard_place(&a->c->guards[at], bytes, a->aligned ? ALIGNED : bytes / (size_t)count, at_end);
    if (!to)
        return fail(a, CHECK_TOO_LARGE, "no memory");
    return rft_fill_random(type, to, count, draw(a), &a->err) == RFT_OK || failed_call(a, "rft_fill_random");
}

static bool make_index(attempt *a) {
    int64_t k = a->p->k;
    if (!(a->scales.flags & RFT_WEIGHT_G_IDX))
        return true;
    int32_t *to = guard_place(&a->c->guards[AT_INDEX], (size_t)(a->p->batch * k) * sizeof *to, sizeof *to, draw(a) % 2);
    for (int64_t b = 0; to && b < a->p->batch; b++)
        scales_index(&a->scales, k, draw(a), to + b * k);
    return to || fail(a, CHECK_TOO_LARGE, "no memory");
}

/* What lies apart from the elements of W and of x. */
static bool make_scales(attempt *a) {
    rft_weight_desc d = {.n = a->p->n, .k = a->p->k, .batch = a->p->batch};
    scales_describe(&a->scales, &d);
    int64_t count = scales_count(&d);
    const bool global = scales_global(a->scales.flags);
    if (a->x_scales.count && !make_apart(a, AT_X_SCALE, RFT_F32, a->x_scales.count))
        return false;
    return count == 0 || (make_apart(a, AT_SCALE, a->scales.scale, count) && make_apart(a, AT_ZERO, a->scales.zero, count) &&
                          make_apart(a, AT_GLOBAL, global ? RFT_F32 : (rft_type)0, a->p->batch) && make_index(a));
}

static double matrix_bytes(rft_type type, int64_t rows, int64_t columns) {
    const int64_t unit = cli_block(type);
    return unit ? (double)rows * (double)columns / (double)unit * (double)rft_type_bytes(type, unit) : 0;
}

/* Asked before the first of them is filled. */
static bool matrices_fit(const check_problem *p) {
    const double bytes = matrix_bytes(p->x, p->m, p->k) + matrix_bytes(p->w, p->n, p->k) + matrix_bytes(p->y, p->m, p->n);
    return bytes * (double)p->batch < (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGE_SIZE);
}

static bool make_matrices(attempt *a) {
    const check_problem *p = a->p;
    if (!matrices_fit(p))
        return fail(a, CHECK_TOO_LARGE, "x, w and y take more than the memory of this machine");
    bool xk = p->x_order == RFT_K_CONTIGUOUS, wk = p->w_order == RFT_K_CONTIGUOUS, unread = a->alpha == 0;
    return place(a, AT_X, &a->x, p->x, xk ? p->m : p->k, xk ? p->k : p->m, p->batch) && (unread || fill(a, &a->x, p->x)) &&
           place(a, AT_W, &a->w, p->w, wk ? p->n : p->k, wk ? p->k : p->n, p->batch) && (unread || fill(a, &a->w, p->w)) &&
           make_scales(a) && place(a, AT_Y, &a->y, p->y, p->m, a->columns, p->batch);
}

/* 0 says dense as well. */
static int64_t said(attempt *a, int64_t stride, int64_t dense) { return stride == dense && draw(a) % 2 ? 0 : stride; }

static bool make_bytes(attempt *a, int at, rft_operand *operand, int64_t bytes) {
    operand->ptr = guard_place(&a->c->guards[at], (size_t)bytes, 1, false);
    return operand->ptr
               ? rft_fill_random(RFT_U8, operand->ptr, bytes, draw(a), &a->err) == RFT_OK || failed_call(a, "rft_fill_random")
               : fail(a, CHECK_TOO_LARGE, "no memory");
}

static bool make_operand(attempt *a, const rft_epi_op *op, int64_t columns) {
    int at = AT_OPERAND + (int)op->operand;
    rft_operand *operand = &a->operand[op->operand];
    block b;
    switch (op->kind) {
    case RFT_EPI_MASK:
        return make_bytes(a, at, operand, (a->p->m * columns + 7) / 8);
    case RFT_EPI_DROPOUT:
        return make_bytes(a, at, operand, 16);
    case RFT_EPI_BIAS:
    case RFT_EPI_COL_SCALE:
        if (!place(a, at, &b, op->type, 1, columns, 1))
            return false;
        break;
    case RFT_EPI_QUANTIZE:
        if (!place(a, at, &b, RFT_F32, 1, 1, 1))
            return false;
        break;
    case RFT_EPI_QUANTIZE_ROWS: /* written */
        if (!place(a, at, &b, RFT_F32, a->p->m, check_row_scales(op, columns), a->p->batch))
            return false;
        *operand = (rft_operand){b.p, b.ld, b.stride};
        return true;
    case RFT_EPI_ROW_SCALE:
        if (!place(a, at, &b, op->type, 1, a->p->m, 1))
            return false;
        break;
    case RFT_EPI_MUL:
    case RFT_EPI_ADD:
        if (!place(a, at, &b, op->type, a->p->m, columns, a->p->batch))
            return false;
        operand->ld = said(a, b.ld, columns);
        operand->batch_stride = draw(a) % 2 ? b.stride : 0;
        break;
    default:
        return true;
    }
    operand->ptr = b.p;
    bool unread = op->kind == RFT_EPI_ADD && op->beta == 0;
    return unread || fill(a, &b, op->type ? op->type : RFT_F32);
}

static bool make_operands(attempt *a) {
    int64_t columns = a->p->n;
    for (uint32_t i = 0; i < a->p->epi.n_op; i++) {
        const rft_epi_op *op = &a->p->epi.op[i];
        if (!make_operand(a, op, columns))
            return false;
        if (op_is_glu(op))
            columns /= 2;
    }
    return true;
}

/* A plan that chooses freely is of more rows than the run's now and then. */
static void describe_rows(attempt *a) {
    const uint64_t drawn = a->p->kernel ? 0 : draw(a);
    a->desc.m_min = drawn % 4 == 1 ? a->p->m / 2 : a->p->m;
    a->desc.m_max = drawn / 4 % 4 == 1 ? a->p->m + (int64_t)(drawn / 16 % 64) : a->p->m;
}

static void describe(attempt *a) {
    const check_problem *p = a->p;
    rft_linear_desc *d = &a->desc;
    *d = rft_linear_desc_init();
    d->x = p->x;
    d->y = p->y;
    d->x_order = p->x_order;
    d->compute = p->compute;
    describe_rows(a);
    d->batch = p->batch;
    d->w.batch = draw_style(a) % 4 ? p->batch : 1;
    d->w.elem = p->w;
    d->w.order = p->w_order;
    d->w.n = p->n;
    d->w.k = p->k;
    d->w.ld = said(a, a->w.ld, a->w.columns) * a->w.unit;
    d->w.batch_stride = said(a, a->w.stride, a->w.rows * a->w.ld) * a->w.unit;
    d->w.flags = (p->view ? RFT_WEIGHT_VIEW : 0) |
                 (epilogue_is_glu(&p->epi) ? draw_style(a) % 2 ? RFT_WEIGHT_GLU_HALVES : RFT_WEIGHT_GLU_INTERLEAVED : 0);
    scales_describe(&a->scales, &d->w);
    d->x_group_k = a->x_scales.group > 0 ? a->x_scales.group : p->x_groups.given && !cli_8bit(p->x) ? p->k : 0;
    d->flags = (p->dynamic ? RFT_W_DYNAMIC : 0) | (draw_style(a) % 8 ? 0 : RFT_BATCH_INVARIANT) | RFT_ALPHA;
    if (cli_8bit(p->x))
        d->flags |= RFT_X_SCALED | (a->x_scales.group < 0 ? RFT_X_STATIC : 0);
    d->alpha = a->alpha;
    d->epi = p->epi.n_op ? p->epi.op : NULL;
    d->n_epi = p->epi.n_op;
}

static bool make_plan(attempt *a) {
    rft_plan_info info = rft_plan_info_init();
    describe(a);
    rft_status s = a->p->kernel ? rft_plan_create_forced(a->ctx, &a->desc, a->p->kernel, &a->plan, &a->err)
                                : rft_plan_create(a->ctx, &a->desc, &a->plan, &a->err);
    if (s == RFT_E_ARG)
        return fail(a, CHECK_ILLEGAL, a->err.message);
    if (s != RFT_OK)
        return failed_call(a, "rft_plan_create");
    if (rft_plan_get_info(a->plan, a->p->m, &info) != RFT_OK)
        return fail(a, CHECK_ERROR, "rft_plan_get_info failed");
    snprintf(a->result->kernel, sizeof a->result->kernel, "%s", info.kernel);
    a->args.workspace_bytes = info.workspace;
    return guard_place(&a->c->guards[AT_WORKSPACE], info.workspace, info.workspace_align ? info.workspace_align : 1, true) ||
           fail(a, CHECK_TOO_LARGE, "no memory");
}

/* What the library is told: the piece itself, or its copy. */
static void *where(const attempt *a, int at) {
    const guard *g = &a->c->guards[at];
    return a->c->shared->copies ? guard_device(g) : g->placed;
}

static bool place_weight(attempt *a) {
    size_t bytes;
    if (a->p->dynamic)
        return true;
    if (rft_weight_bytes(a->ctx, &a->desc.w, &bytes, &a->err) != RFT_OK)
        return failed_call(a, "rft_weight_bytes");
    return guard_place(&a->c->guards[AT_PACKED], bytes, 64, true) || fail(a, CHECK_TOO_LARGE, "no memory");
}

static rft_weight_src make_source(const attempt *a) {
    rft_weight_src src = rft_weight_src_init();
    src.q = where(a, AT_W);
    src.scale = a->c->guards[AT_SCALE].placed ? where(a, AT_SCALE) : NULL;
    src.zero = a->c->guards[AT_ZERO].placed ? where(a, AT_ZERO) : NULL;
    src.global_scale = a->c->guards[AT_GLOBAL].placed ? where(a, AT_GLOBAL) : NULL;
    src.g_idx = a->c->guards[AT_INDEX].placed ? where(a, AT_INDEX) : NULL;
    return src;
}

static bool make_weight(attempt *a) {
    rft_weight_src src;
    if (a->p->dynamic) {
        a->args.w = where(a, AT_W);
        a->args.ldw = a->w.ld;
        a->args.w_batch_stride = a->w.stride;
        return true;
    }
    src = make_source(a);
    if (rft_weight_pack(a->ctx, &a->desc.w, &src, where(a, AT_PACKED), NULL, &a->weight, &a->err) != RFT_OK)
        return failed_call(a, "rft_weight_pack");
    a->args.weight = a->weight;
    return true;
}

static void set_args(attempt *a) {
    rft_linear_args *r = &a->args;
    r->m = a->p->m;
    r->x = where(a, AT_X);
    r->x_scale = a->x_scales.count ? where(a, AT_X_SCALE) : NULL;
    r->ldx = said(a, a->x.ld, a->x.columns);
    r->x_batch_stride = said(a, a->x.stride, a->x.rows * a->x.ld);
    r->y = where(a, AT_Y);
    r->ldy = said(a, a->y.ld, a->y.columns);
    r->y_batch_stride = said(a, a->y.stride, a->y.rows * a->y.ld);
    r->workspace = where(a, AT_WORKSPACE);
    for (uint32_t i = 0; i < a->p->epi.n_op; i++)
        if (a->operand[i].ptr)
            a->operand[i].ptr = where(a, AT_OPERAND + (int)i);
    r->operand = a->operand;
    r->n_operand = a->p->epi.n_op;
}

static bool run_once(attempt *a) {
    return (rft_linear_run(a->plan, &a->args, &a->err) == RFT_OK && rft_ctx_sync(a->ctx, NULL, &a->err) == RFT_OK) ||
           failed_call(a, "rft_linear_run");
}

static bool compare(attempt *a) {
    rft_verify_result v = {.struct_size = sizeof v};
    char text[256];
    rft_weight_src src = make_source(a);
    double most = a->c->shared->copies ? MOST_GFLOP : 0;
    if (rft_verify_source(a->plan, &a->args, &src, most, a->p->seed, &v, &a->err) != RFT_OK)
        return failed_call(a, "rft_verify_source");
    a->result->worst = v.worst;
    if (v.worst <= 1)
        return true;
    snprintf(text, sizeof text, "y[%lld][%lld][%lld] = %.9g, reference %.9g, |error| is %.3g of its bound", (long long)v.worst_b,
             (long long)v.worst_m, (long long)v.worst_n, v.worst_y, v.worst_ref, v.worst);
    return fail(a, CHECK_WRONG, text);
}

static bool written(attempt *a, int at, const char *what) {
    static const char *const names[] = {"x", "w", "y", "the packed weight", "the workspace", "the scales",
                                        "the zero points", "the global scale", "the index of groups", "the scales of x"};
    char text[192];
    snprintf(text, sizeof text, "bytes %s %s were written", what, at < AT_OPERAND ? names[at] : "an epilogue operand");
    return fail(a, CHECK_WRONG, text);
}

static bool strayed(attempt *a, int at, int64_t stray) {
    char text[96];
    snprintf(text, sizeof text, "beside (byte %lld of %zu)", (long long)stray, a->c->guards[at].bytes);
    return stray == GUARD_INTACT || written(a, at, text);
}

static bool look_around(attempt *a) {
    if (block_span(&a->y) && !block_gaps_intact(&a->y))
        return fail(a, CHECK_WRONG, "elements of y between its rows were written");
    for (int i = 0; i < AT_OPERAND; i++)
        if (a->c->guards[i].placed && !guard_intact(&a->c->guards[i]))
            return written(a, i, "beside");
    return true;
}

/* ---- copies on the device ---- */

static bool send_all(attempt *a) {
    for (int i = 0; i < GUARDS; i++)
        if (a->c->guards[i].placed && guard_send(&a->c->guards[i], a->ctx, &a->err) != RFT_OK)
            return failed_call(a, "copy to the device");
    return true;
}

/* y into its piece here. */
static bool receive_y(attempt *a) {
    guard *g = &a->c->guards[AT_Y];
    int64_t stray;
    if (guard_receive(g, &stray, &a->err) != RFT_OK)
        return failed_call(a, "copy from the device");
    memcpy(g->placed, guard_received(g), g->bytes);
    return strayed(a, AT_Y, stray);
}

/* A second run, with what the first left in the workspace, makes the same bits. */
static bool run_again(attempt *a) {
    guard *g = &a->c->guards[AT_Y];
    char *first = cli_alloc(g->bytes, 1);
    memcpy(first, g->placed, g->bytes);
    memset(g->placed, 0xff, g->bytes);
    bool good = (guard_send(g, a->ctx, &a->err) == RFT_OK || failed_call(a, "copy to the device")) && run_once(a) && receive_y(a);
    if (good && memcmp(first, g->placed, g->bytes) != 0)
        good = fail(a, CHECK_WRONG, "a second run made other bits");
    free(first);
    return good;
}

static bool is_read(const attempt *a, int at) {
    return at != AT_PACKED && at != AT_WORKSPACE && at != AT_OPERAND + check_found_scales(a->p);
}

/* What is only read, and everything beside. */
static bool look_at_copies(attempt *a) {
    for (int i = 0; i < GUARDS; i++) {
        guard *g = &a->c->guards[i];
        int64_t stray;
        if (!g->placed || i == AT_Y)
            continue;
        if (guard_receive(g, &stray, &a->err) != RFT_OK)
            return failed_call(a, "copy from the device");
        if (!strayed(a, i, stray))
            return false;
        if (is_read(a, i) && memcmp(g->placed, guard_received(g), g->bytes) != 0)
            return written(a, i, "of");
    }
    return true;
}

static bool run_copies(attempt *a) {
    if (!send_all(a) || !make_weight(a))
        return false;
    set_args(a);
    return run_once(a) && receive_y(a) && run_again(a) && look_at_copies(a);
}

static bool is_lost(const attempt *a) { return a->result->verdict == CHECK_ERROR && a->err.status == RFT_E_DEVICE; }

/* One problem at a time; the first that breaks the device is the one to blame. */
static bool take_turn(attempt *a) {
    shared *s = a->c->shared;
    bool good = false;
    pthread_mutex_lock(&s->turn);
    if (!s->lost) {
        snprintf(check_on_device, sizeof check_on_device, "%s", check_current);
        alarm(HANG_SECONDS);
        good = run_copies(a);
        alarm(0);
        s->lost = a->blamed = is_lost(a) && rft_ctx_sync(a->ctx, NULL, NULL) != RFT_OK;
    } else {
        fail(a, CHECK_SKIPPED, "the device is lost");
    }
    pthread_mutex_unlock(&s->turn);
    return good;
}

static bool run_here(attempt *a) {
    if (!make_weight(a))
        return false;
    set_args(a);
    return run_once(a);
}

static bool run(attempt *a) { return a->c->shared->copies ? take_turn(a) : run_here(a); }

/* A device that another problem broke fails every call, before and behind the turn. */
static void excuse(attempt *a) {
    if (is_lost(a) && !a->blamed && checker_lost(a->c))
        fail(a, CHECK_SKIPPED, "the device is lost");
}

void check_run(checker *c, const check_problem *p, check_result *result) {
    attempt a = {.c = c,
                 .p = p,
                 .result = result,
                 .random = p->seed / 2,
                 .style = p->seed >> CHECK_STYLE,
                 .args = rft_linear_args_init(),
                 .scales = check_scales_of(p),
                 .x_scales = check_x_scales_of(p),
                 .columns = epilogue_is_glu(&p->epi) ? p->n / 2 : p->n};
    *result = (check_result){.verdict = CHECK_RIGHT};
    check_repro(p, strncmp(c->shared->device, "cpu", 3) ? c->shared->device : NULL, check_current, sizeof check_current);
    for (int i = 0; i < GUARDS; i++)
        guard_forget(&c->guards[i]);
    draw_scale(&a);
    bool ran = find_context(&a) && make_matrices(&a) && make_operands(&a) && make_plan(&a) && place_weight(&a) && run(&a);
    if (ran && compare(&a))
        look_around(&a);
    excuse(&a);
    rft_weight_free(a.weight);
    rft_plan_free(a.plan);
}
