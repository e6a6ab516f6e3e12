/* SPDX-License-Identifier: Apache-2.0
 *
 * gemv.c - host half of kernels/gemv.cu: exact 1 to 8 rows of X on the FMA units, W streamed once. Called through rft__cuda_gemv.
 *
 * A config is a shape (rows of W a unit, lines a step, parts of k), a feed (how W reaches the lanes) and whether x comes in
 * vectors. split = parts of k; stages = steps of a warp's ring; m = 0 compiles 8 rows and masks, for a plan's any-operand config.
 * Bits: a lane's chunks in ascending k, lanes by a fixed butterfly, parts ascending. So a row's bits do not depend on m, on the
 * other rows, rows a unit, lines or stages; they do on parts and on the width of a chunk (FEED_ELEMENT's is one element).
 */
#include "cuda/gemm_common.h"

#include <stdio.h>
#include <string.h>

enum { ROWS, LINES, FEED, FLAGS }; /* option[] */
enum { FEED_ELEMENT, FEED_REGISTERS, FEED_ASYNC, FEED_BULK };
enum { FLAG_X16 = 1, FLAG_LATE = 2, FLAG_L2 = 4 };
enum { MOST_M = 8, LANES = 32, CHUNK_BYTES = 16, MOST_STAGES = 8, MOST_SHARED = 112 << 10, L2_BYTES = 4096 };

static const double LATENCY = 1.5e-6; /* seconds from a request to its bytes while memory is busy, and to the next request */

typedef struct shape {
    int rows, parts;
} shape;

/* The order breaks ties. */
static const shape shapes[] = {{4, 2}, {4, 1}, {4, 4}, {4, 8}, {2, 2}, {2, 1}, {2, 4}, {2, 8}, {1, 4}, {1, 8}};

/* ---- sizes ---- */

static int warps(const rft__cuda_config *c) { return c->row->warps; }
static int chunk_bytes(const rft__cuda_config *c) {
    return c->option[FEED] == FEED_ELEMENT ? rft__cuda_size(c->row->w) : CHUNK_BYTES;
}
static int chunk(const rft__cuda_config *c) { return chunk_bytes(c) / rft__cuda_size(c->row->w); }
static int rows_of_x(const rft__cuda_config *c) { return c->m != 0 ? c->m : MOST_M; }
static bool paired(const rft__problem *p) { return p->epi.n_out < p->w.n; }
static int columns(const rft__problem *p, const rft__cuda_config *c) { return c->option[ROWS] / (paired(p) ? 2 : 1); }
static int64_t lines_of_k(const rft__problem *p, const rft__cuda_config *c) { return rft__ceil_div(p->w.k / chunk(c), LANES); }
static bool has_flag(const rft__cuda_config *c, int flag) { return (c->option[FLAGS] & flag) != 0; }

/* Sums that a warp makes of a unit, rows of x rounded up to a power of two. */
static int sums(const rft__cuda_config *c) {
    const int m = rows_of_x(c);
    return c->option[ROWS] * (m <= 2 ? m : m <= 4 ? 4 : 8);
}

static int stage_bytes(const rft__cuda_config *c) { return c->option[ROWS] * c->option[LINES] * LANES * chunk_bytes(c); }

/* Of a block, for an MN-contiguous W: sums of each warp and lane. */
static int columns_shared(const rft__problem *p, const rft__cuda_config *c) {
    return warps(c) * (paired(p) ? 2 : 1) * rows_of_x(c) * LANES * 4;
}

/* Of a block: rings, their barriers, partial sums twice, a count; in that order in gemv_rows.cuh. */
static int shared_bytes(const rft__cuda_config *c, int stages) {
    const int ring = c->option[FEED] >= FEED_ASYNC ? stage_bytes(c) : 0, barrier = c->option[FEED] == FEED_BULK ? 8 : 0;
    const int partial = c->split > 1 ? warps(c) * 2 * sums(c) * 4 : 0;
    return warps(c) * stages * (ring + barrier) + partial + (has_flag(c, FLAG_LATE) ? 16 : 0);
}

/* As many as fit; on Hopper into half an SM, so that the next kernel's blocks fit beside. */
static int stages_that_fit(const rft__cuda_facts *f, const rft__cuda_config *c) {
    const int reserved = 1024, sm = (f->arch >= 90 ? f->shared_sm / 2 : f->shared_sm) - reserved;
    const int room = (int)rft__min(rft__min(sm, f->shared_block), MOST_SHARED);
    int stages = MOST_STAGES;
    while (stages > 0 && shared_bytes(c, stages) > room) {
        stages--;
    }
    return stages;
}

/* ---- configs ---- */

typedef struct list {
    const rft__cuda_facts *facts;
    const rft__problem *p;
    rft__cuda_config *out;
    int n;
} list;

static bool fits(const rft__problem *p, const rft__cuda_config *c) {
    const int least_rows = paired(p) ? 2 : 1;
    return sums(c) <= LANES && c->option[ROWS] >= least_rows && (c->split == 1 || lines_of_k(p, c) >= c->split);
}

/* Lines of a step: two where x of both fits into registers beside the sums, since two blocks on an SM leave 128 a thread. */
static int lines_that_fit(const rft__cuda_config *c) {
    const int m = rows_of_x(c);
    return m <= 4 && m * chunk(c) * rft__cuda_size(c->row->x) / 4 <= 16 ? 2 : 1;
}

static void add(list *l, rft__cuda_config c) {
    if (l->n < RFT__CUDA_CONFIGS && c.stages >= 2 && fits(l->p, &c)) {
        l->out[l->n++] = c;
    }
}

static rft__cuda_config make(const rft__cuda_row *row, int m, shape s, int feed, int flags) {
    return (rft__cuda_config){.row = row, .m = m, .split = s.parts, .cluster = 1, .option = {s.rows, 1, feed, flags}};
}

static void add_ring(list *l, rft__cuda_config c) {
    c.option[LINES] = lines_that_fit(&c);
    c.stages = stages_that_fit(l->facts, &c);
    add(l, c);
}

/* Two blocks on an SM, each lane with 8 loads in flight: for GPUs whose shared memory holds no deep ring. */
static void add_registers(list *l, const rft__cuda_row *row, int m) {
    rft__cuda_config c = make(row, m, shapes[0], FEED_REGISTERS, FLAG_X16);
    c.stages = 2;
    if (m <= 4 && !rft__cuda_x_mn(l->p)) {
        add(l, c);
    }
}

/* Any pointer and stride: single elements, eight steps in flight. */
static void add_elements(list *l, const rft__cuda_row *row, int m) {
    rft__cuda_config c = make(row, m, (shape){m == 0 || m > 4 ? 2 : 4, 4}, FEED_ELEMENT, 0);
    c.stages = 8;
    c.split = lines_of_k(l->p, &c) < c.split ? 1 : c.split;
    add(l, c);
}

static void add_rows(list *l, const rft__cuda_row *row, int m) {
    const int feed = l->facts->arch >= 90 ? FEED_BULK : FEED_ASYNC, late = l->facts->arch >= 90 ? FLAG_LATE : 0;
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0] && !rft__cuda_x_mn(l->p); i++) {
        add_ring(l, make(row, m, shapes[i], feed, FLAG_X16 | late));
    }
    for (int parts = 2; parts > 0; parts--) {
        add_ring(l, make(row, m, (shape){m > 4 ? 2 : 4, parts}, feed, late));
    }
}

static void add_columns(list *l, const rft__cuda_row *row, int m) {
    rft__cuda_config c = make(row, m, (shape){1, 1}, FEED_ELEMENT, 0);
    c.split = row->warps;
    l->out[l->n++] = c;
}

static int configs(const rft__cuda_facts *f, const rft__problem *p, int64_t m, const rft__cuda_row *row, rft__cuda_config *out,
                   char reason[RFT__CUDA_REASON]) {
    if (m > MOST_M) {
        snprintf(reason, RFT__CUDA_REASON, "takes at most %d rows of x; m = %lld", MOST_M, (long long)m);
        return 0;
    }
    list l = {f, p, out, 0};
    if (rft__cuda_w_mn(p)) {
        add_columns(&l, row, (int)m);
    } else {
        add_rows(&l, row, (int)m);
        add_registers(&l, row, (int)m);
        add_elements(&l, row, (int)m);
    }
    if (p->m_max <= MOST_M && rft__cuda_w_mn(p)) {
        add_columns(&l, row, 0);
    } else if (p->m_max <= MOST_M) {
        add_elements(&l, row, 0);
    }
    return l.n;
}

/* ---- the launch ---- */

static int64_t units_of(const rft__problem *p, const rft__cuda_config *c) {
    return rft__ceil_div(p->epi.n_out, rft__cuda_w_mn(p) ? LANES : columns(p, c));
}

/* Blocks on an SM: one with a ring, whose successor takes the other half; else as many as keep memory busy. */
static int resident(const rft__problem *p, const rft__cuda_config *c) {
    return rft__cuda_w_mn(p) ? 8 : c->option[FEED] >= FEED_ASYNC ? 1 : 2;
}

static int64_t blocks_of(const rft__cuda_facts *f, const rft__problem *p, const rft__cuda_config *c) {
    return rft__min((int64_t)f->sms * resident(p, c), units_of(p, c) * p->batch);
}

static void launch(const rft__cuda_facts *f, const rft__problem *p, const rft__cuda_config *c, int64_t m, rft__cuda_launch *l) {
    (void)m;
    *l = (rft__cuda_launch){.grid = {(unsigned)blocks_of(f, p, c), 1, 1},
                            .block = (unsigned)(LANES * warps(c)),
                            .cluster = 1,
                            .shared = (unsigned)(rft__cuda_w_mn(p) ? columns_shared(p, c) : shared_bytes(c, c->stages)),
                            .number = {(int)units_of(p, c)}};
}

/* ---- the cost ---- */

/* Bytes that one group of warps keeps asked for. */
static double in_flight(const rft__problem *p, const rft__cuda_config *c) {
    const int size = rft__cuda_size(c->row->w);
    return rft__cuda_w_mn(p) ? 8.0 * LANES * size * warps(c) : (double)c->split * c->stages * stage_bytes(c);
}

/* Seconds that memory takes: all groups stream unit after unit; in the last round those that have one more are alone, each no
 * faster than its bytes in flight, and cut where k does not divide evenly into lines of parts. */
static double memory_seconds(const rft__cuda_facts *f, const rft__problem *p, const rft__cuda_config *c) {
    const double batch = (double)p->batch, units = (double)units_of(p, c) * batch;
    const double bytes = batch * (double)p->w.n * (double)p->w.k * rft__cuda_size(p->w.elem);
    const int64_t lines = rft__cuda_w_mn(p) ? 1 : rft__max(lines_of_k(p, c), 1);
    const int parts = rft__cuda_w_mn(p) ? 1 : c->split;
    const double groups = (double)blocks_of(f, p, c) * (rft__cuda_w_mn(p) ? 1 : warps(c) / c->split);
    const double uneven = (double)(rft__ceil_div(lines, parts) * parts) / (double)lines;
    const double rate = in_flight(p, c) / LATENCY / uneven, all = groups * rate < f->read_bps ? groups * rate : f->read_bps;
    const double rounds = (double)rft__ceil_div((int64_t)units, (int64_t)groups), last = units - (rounds - 1.0) * groups;
    const double unit = bytes / units, together = last * unit / f->read_bps, alone = unit / rate;
    return (rounds - 1.0) * groups * unit / all + (together > alone ? together : alone);
}

/* Instructions of a lane for one chunk of each row of a unit: widen, multiply, and the loop around it. */
static double step_instructions(const rft__cuda_config *c) {
    const int m = rows_of_x(c), r = c->option[ROWS];
    return chunk(c) * (double)(r * m + r + m) + (chunk(c) == 1 ? 12.0 * (r + m) : 90.0 / c->option[LINES]) + 2.0 * (m + r);
}

static double issue_seconds(const rft__cuda_facts *f, const rft__problem *p, const rft__cuda_config *c) {
    const double units = (double)units_of(p, c) * (double)p->batch, lanes = (double)LANES;
    const double steps = rft__cuda_w_mn(p) ? (double)p->w.k * 0.125 : (double)(lines_of_k(p, c) + 1);
    const double ends = (80.0 + 4.0 * sums(c)) * c->split, share = 0.7;
    return units * lanes * (steps * step_instructions(c) + ends) / (f->flops_f32 / 2.0) / share;
}

/* Seconds that the meetings of parts take at least: a unit's last warp waits for operands of the epilogue before it goes on. */
static double meeting_seconds(const rft__cuda_facts *f, const rft__problem *p, const rft__cuda_config *c) {
    const int64_t groups = blocks_of(f, p, c) * (warps(c) / c->split);
    return c->split == 1 || rft__cuda_w_mn(p) ? 0.0 : 0.8e-6 * (double)rft__ceil_div(units_of(p, c) * p->batch, groups);
}

static double larger(double a, double b) { return a > b ? a : b; }

static double seconds(const rft__cuda_facts *f, const rft__problem *p, int64_t m, const rft__cuda_config *c) {
    const double start = 1.5e-6 + 0.02e-6 * c->split + (c->option[FEED] >= FEED_ASYNC ? 0.0 : 0.5e-6) +
                         (has_flag(c, FLAG_X16) ? 0.0 : 0.3e-6);
    const double busy = larger(memory_seconds(f, p, c), larger(issue_seconds(f, p, c), meeting_seconds(f, p, c)));
    const double other = rft__cuda_traffic(p, m) - rft__matrix_bytes(&p->w);
    return start + other / f->read_bps + busy;
}

/* ---- the text, and what a config needs ---- */

static void text(const rft__problem *p, const rft__cuda_config *c, rft__text *t) {
    (void)p;
    rft__text_add(t, "#define RFT_GEMV_ROWS %d\n#define RFT_GEMV_LINES %d\n#define RFT_GEMV_FEED %d\n", c->option[ROWS],
                  c->option[LINES], c->option[FEED]);
    rft__text_add(t, "#define RFT_GEMV_X16 %d\n#define RFT_GEMV_LATE %d\n#define RFT_GEMV_L2 %d\n", has_flag(c, FLAG_X16),
                  has_flag(c, FLAG_LATE), has_flag(c, FLAG_L2) ? L2_BYTES : 0);
}

static const char *unsuited(const rft__problem *p, const rft__cuda_config *c, const rft__cuda_args *a) {
    const bool batched = p->batch > 1;
    if (rft__cuda_w_mn(p) || c->option[FEED] == FEED_ELEMENT) {
        return NULL;
    }
    if (!rft__cuda_runs_aligned(a->w, a->n > 1 ? a->ldw : 0, batched ? a->w_batch_stride : 0, p->w.elem, CHUNK_BYTES)) {
        return "w, ldw and its batch stride must be multiples of 16 bytes";
    }
    const int bytes = (int)rft__min(CHUNK_BYTES, chunk(c) * rft__cuda_size(p->x));
    if (has_flag(c, FLAG_X16) &&
        !rft__cuda_runs_aligned(a->x, a->m > 1 ? a->ldx : 0, batched ? a->x_batch_stride : 0, p->x, bytes)) {
        return "x, ldx and its batch stride must be multiples of 16 bytes (8 where w is f32 and x is not)";
    }
    return NULL;
}

const rft__cuda_family rft__cuda_gemv = {
    .name = "gemv",
    .source = "gemv.cu",
    .configs = configs,
    .seconds = seconds,
    .text = text,
    .launch = launch,
    .unsuited = unsuited,
};
