/* SPDX-License-Identifier: Apache-2.0
 *
 * cpu_quantise.c - see cpu_quantise.h. A group is read twice, for its largest |x| and for its codes. One of a 16-bit type is
 * widened on the stack: once where that has room for it, else a piece at a time for each.
 */
#include "cpu/cpu_quantise.h"

#include <string.h>

enum { PIECE = 512 };

/* n of one row of x. */
typedef struct span {
    const rft__isa_ops *ops;
    rft_type type;
    const char *x;
    int64_t n;
} span;

/* `count` of them from `at` on as f32: where they are, or in `wide`. */
static const float *widened(const span *s, int64_t at, int64_t count, float wide[PIECE]) {
    const char *from = s->x + at * (int64_t)rft__type_size(s->type);
    if (s->type == RFT_F32) {
        return (const float *)(const void *)from;
    }
    s->ops->to_f32[s->type](from, count, 1, 1, 1, count, wide);
    return wide;
}

/* How many to widen at once: all where there is nothing to do. */
static int64_t piece_of(const span *s) { return s->type == RFT_F32 ? s->n : PIECE; }

static uint32_t largest_of(const span *s) {
    const int64_t piece = piece_of(s);
    float wide[PIECE];
    uint32_t most = 0;
    for (int64_t at = 0; at < s->n; at += piece) {
        const int64_t count = rft__min(piece, s->n - at);
        const uint32_t one = s->ops->x8->largest(widened(s, at, count, wide), count);
        most = one > most ? one : most;
    }
    return most;
}

static void narrow(const span *s, rft__narrow8_fn *to, float by, char *q) {
    const int64_t piece = piece_of(s);
    float wide[PIECE];
    for (int64_t at = 0; at < s->n; at += piece) {
        const int64_t count = rft__min(piece, s->n - at);
        to(widened(s, at, count, wide), by, count, q + at);
    }
}

/* Its scale; the codes go to q. */
static float quantise_group(const span *group, rft_type to, char *q) {
    const float top = to == RFT_I8 ? 127.0f : 448.0f;
    float wide[PIECE], largest;
    span s = *group;
    if (s.type != RFT_F32 && s.n <= PIECE) {
        s.x = (const char *)widened(group, 0, s.n, wide);
        s.type = RFT_F32;
    }
    const uint32_t bits = largest_of(&s);
    memcpy(&largest, &bits, sizeof largest);
    const float scale = rft__x8_scale(largest, top);
    if (scale > 0.0f) {
        narrow(&s, s.ops->x8->multiply[rft__x8_index(to)], top / largest, q);
    }
    for (int64_t i = 0; !(scale > 0.0f) && i < s.n; i++) {
        q[i] = 0;
    }
    return scale;
}

/* Whole groups of 32. */
static void quantise_blocks(const span *s, rft_type to, float *scale, char *q) {
    const int64_t piece = piece_of(s);
    float wide[PIECE];
    for (int64_t at = 0; at < s->n; at += piece) {
        const int64_t count = rft__min(piece, s->n - at);
        s->ops->x8->groups[rft__x8_index(to)](widened(s, at, count, wide), count / RFT__BLOCK, scale + at / RFT__BLOCK, q + at);
    }
}

/* Groups first to last of one row. */
static void quantise_row(const rft__quantise_rows *j, int64_t b, int64_t row, int64_t first, int64_t last) {
    const int64_t size = (int64_t)rft__type_size(j->from);
    const char *x = (const char *)j->x + (b * j->x_batch + row * j->x_row) * size;
    char *q = (char *)j->q + b * j->q_batch + row * j->q_row;
    float *scale = j->given != NULL ? NULL : j->scale + b * j->scale_batch + row * j->scale_row;
    if (scale != NULL && j->group == RFT__BLOCK) {
        const int64_t whole = rft__max(rft__min(last, j->k / RFT__BLOCK), first), k = first * RFT__BLOCK;
        const span s = {j->ops, j->from, x + k * size, (whole - first) * RFT__BLOCK};
        quantise_blocks(&s, j->to, scale + first, q + k);
        first = whole;
    }
    for (int64_t g = first, k = first * j->group; g < last; g++, k += j->group) {
        const span s = {j->ops, j->from, x + k * size, rft__min(j->group, j->k - k)};
        if (scale == NULL) {
            narrow(&s, j->ops->x8->divide[rft__x8_index(j->to)], *j->given, q + k);
        } else {
            scale[g] = quantise_group(&s, j->to, q + k);
        }
    }
}

void rft__quantise_part(const rft__quantise_rows *j, int i, int parts) {
    const int64_t groups = rft__ceil_div(j->k, j->group), all = j->batch * j->m * groups, each = all / parts, more = all % parts;
    const int64_t start = i * each + rft__min(i, more), end = start + each + (i < more);
    for (int64_t g = start; g < end;) {
        const int64_t row = g / groups, first = g % groups, last = rft__min(groups, first + end - g);
        quantise_row(j, row / j->m, row % j->m, first, last);
        g += last - first;
    }
}

/* ---- rows of y ---- */

rft__y_rows rft__y_rows_of(const rft__choice *c, const rft_linear_args *args, void *workspace) {
    const int64_t columns = c->p.epi.n_out;
    return c->p.epi.quantize.kind == RFT_EPI_QUANTIZE_ROWS
               ? (rft__y_rows){workspace, RFT_F32, columns, args->m * columns, true}
               : (rft__y_rows){args->y, c->p.y, args->ldy, args->y_batch_stride, false};
}

void rft__y_rows_quantise(const rft__choice *c, const rft_linear_args *args, const rft__y_rows *y, int i, int parts) {
    const rft__epi *epi = &c->p.epi;
    const rft_operand *scales = args->operand + epi->quantize.operand;
    const rft__quantise_rows rows = {.ops = &c->device->ops,
                                     .from = RFT_F32,
                                     .to = c->p.y,
                                     .batch = c->p.batch,
                                     .m = args->m,
                                     .k = epi->n_out,
                                     .group = epi->quantize.group,
                                     .x = y->p,
                                     .x_row = y->row,
                                     .x_batch = y->batch,
                                     .q = args->y,
                                     .q_row = args->ldy,
                                     .q_batch = args->y_batch_stride,
                                     .scale = scales->ptr,
                                     .scale_row = rft__epi_row_scales_ld(epi, args->operand),
                                     .scale_batch = scales->batch_stride};
    rft__quantise_part(&rows, i, parts);
}

/* ---- rft_quantize ---- */

typedef struct task {
    rft__quantise_rows rows;
    int parts;
} task;

static void run_part(void *arg, int i) {
    const task *t = arg;
    rft__quantise_part(&t->rows, i, t->parts);
}

rft_status rft__cpu_quantize(rft__device *device, const rft_quantize_args *args, rft_error *err) {
    enum { WORTH_A_THREAD = 32 << 10 }; /* elements: some microseconds, as long as a hand-off takes */
    (void)err;
    task t = {.rows = {.ops = &device->ops,
                       .from = args->from,
                       .to = args->to,
                       .batch = 1,
                       .m = args->m,
                       .k = args->k,
                       .group = args->group_k != 0 ? args->group_k : args->k,
                       .x = args->x,
                       .x_row = args->ldx,
                       .q = args->q,
                       .q_row = args->ldq,
                       .scale = args->scale,
                       .given = args->static_scale}};
    t.rows.scale_row = rft__ceil_div(args->k, t.rows.group);
    t.parts = (int)rft__min(device->threads, rft__max(1, args->m * args->k / WORTH_A_THREAD));
    rft__pool_run(device->pool, t.parts, run_part, &t);
    return RFT_OK;
}
