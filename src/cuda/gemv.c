/* SPDX-License-Identifier: Apache-2.0
 *
 * gemv.c - host half of kernels/gemv.cu: exact 1 to 8 rows of X on the FMA units, W streamed once. Called through rft__cuda_gemv.
 *
 * A config is a shape (rows of W a unit, lines a step, parts of k, steps of a warp's ring), a feed (how W reaches the lanes) and
 * whether x comes in vectors. split = parts of k; stages = steps of a ring; m = 0 compiles the plan's most rows and masks.
 * Bits: a lane's chunks in ascending k, lanes by a fixed butterfly, parts ascending. So a row's bits do not depend on m, on the
 * other rows, rows a unit, lines or stages; they do on parts and on the width of a chunk (FEED_ELEMENT's is one element).
 */
#include "cuda/gemm_common.h"

#include <limits.h>
#include <math.h>

enum { ROWS, LINES, FEED, X_VECTORS }; /* option[] */
enum { FEED_ELEMENT, FEED_ASYNC, FEED_BULK };
enum { MOST_M = 8, LANES = 32, CHUNK_BYTES = 16, MOST_STAGES = 8, MOST_LINES = 8, X_WORDS = 32 };
enum { BESIDE = 2560 }; /* most bytes of a block's barriers and partial sums */

/* ---- sizes ---- */

static int warps(const rft__cuda_config *c) { return c->row->warps; }
static int chunk_bytes(const rft__cuda_config *c) {
    return c->option[FEED] == FEED_ELEMENT ? rft__cuda_size(c->row->w) : CHUNK_BYTES;
}
static int chunk(const rft__cuda_config *c) { return chunk_bytes(c) / rft__cuda_size(c->row->w); }
static int rows_of_x(const rft__problem *p, const rft__cuda_config *c) {
    return c->m != 0 ? c->m : (int)rft__max(rft__min(p->m_max, MOST_M), 1);
}
static bool paired(const rft__problem *p) { return p->epi.n_out < p->w.n; }
static int columns(const rft__problem *p, const rft__cuda_config *c) { return c->option[ROWS] / (paired(p) ? 2 : 1); }
static int64_t lines_of_k(const rft__problem *p, const rft__cuda_config *c) { return rft__ceil_div(p->w.k / chunk(c), LANES); }

/* Sums that a warp makes of a unit, rows of x rounded up to a power of two. */
static int sums(const rft__problem *p, const rft__cuda_config *c) {
    const int m = rows_of_x(p, c);
    return c->option[ROWS] * (m <= 2 ? m : m <= 4 ? 4 : 8);
}

static int stage_bytes(const rft__cuda_config *c) { return c->option[ROWS] * c->option[LINES] * LANES * chunk_bytes(c); }

/* Of a block, for an MN-contiguous W: sums of each warp and lane. */
static int columns_shared(const rft__problem *p, const rft__cuda_config *c) {
    return warps(c) * (paired(p) ? 2 : 1) * rows_of_x(p, c) * LANES * 4;
}

/* Of a block: rings, their barriers, partial sums twice; in that order in gemv_rows.cuh. */
static int shared_bytes(const rft__problem *p, const rft__cuda_config *c) {
    const int ring = c->option[FEED] >= FEED_ASYNC ? stage_bytes(c) : 0, barrier = c->option[FEED] == FEED_BULK ? 8 : 0;
    const int partial = c->split > 1 ? warps(c) * 2 * sums(p, c) * 4 : 0;
    return warps(c) * c->stages * (ring + barrier) + partial;
}

/* ---- configs ---- */

typedef struct shape {
    int rows, parts, ring; /* of W a unit; of k; KB of a block */
    int least, most;       /* lines of k for which it is offered */
} shape;

enum { ANY = INT_MAX };

/* Steps of 4 KB a warp make the fewest turns, and rings of 64 KB let blocks of three kernels in a row stay on an SM of Hopper.
 * All warps at one unit want short parts and a ring that holds them. Fewer rows where n is small, one part where k is short.
 * The order breaks ties. */
static const shape shapes[] = {{8, 8, 96, 8, 32},  {8, 2, 64, 2, ANY}, {8, 4, 64, 4, ANY}, {4, 2, 64, 2, ANY},
                               {4, 8, 64, 8, ANY}, {2, 8, 64, 8, ANY}, {8, 1, 64, 0, 4},   {4, 1, 64, 0, 4}};

typedef struct list {
    const rft__cuda_facts *facts;
    const rft__problem *p;
    const rft__cuda_row *row;
    rft__cuda_config *out;
    int n;
} list;

static rft__cuda_config make(const list *l, int m, int rows, int parts, int feed, bool x_vectors) {
    return (rft__cuda_config){.row = l->row, .m = m, .split = parts, .cluster = 1, .option = {rows, 1, feed, x_vectors}};
}

/* Lines of a step: x of all fits into registers beside the sums, since two blocks on an SM leave 128 a thread. */
static int lines_of(const rft__problem *p, const rft__cuda_config *c) {
    const int64_t part = rft__ceil_div(lines_of_k(p, c), c->split);
    const int x_words = rows_of_x(p, c) * chunk(c) * rft__cuda_size(c->row->x) / 4;
    int lines = MOST_LINES / c->option[ROWS];
    while (lines > 1 && (lines * x_words > X_WORDS || lines / 2 >= part)) {
        lines /= 2;
    }
    return lines;
}

static void add_ring(list *l, int m, shape s, bool x_vectors) {
    const int most = l->facts->shared_block - BESIDE, ring = (int)rft__min(s.ring << 10, most);
    rft__cuda_config c = make(l, m, s.rows, s.parts, l->facts->arch >= 90 ? FEED_BULK : FEED_ASYNC, x_vectors);
    const int64_t lines = lines_of_k(l->p, &c);
    if (sums(l->p, &c) > LANES || lines < s.least || lines > s.most) {
        return;
    }
    c.option[LINES] = lines_of(l->p, &c);
    c.stages = (int)rft__min(ring / (warps(&c) * stage_bytes(&c)), MOST_STAGES);
    l->out[l->n++] = c;
}

/* x in single elements: any pointer, stride and order of it. */
static void add_scalar_x(list *l, int m) {
    const rft__cuda_config c = make(l, m, 8, 2, FEED_ASYNC, false);
    add_ring(l, m, (shape){rows_of_x(l->p, &c) > 4 ? 4 : 8, lines_of_k(l->p, &c) < 2 ? 1 : 2, 64, 0, ANY}, false);
}

/* Any pointer and stride of either: single elements, eight steps in flight. */
static void add_elements(list *l, int m) {
    rft__cuda_config c = make(l, m, 4, 4, FEED_ELEMENT, false);
    c.option[ROWS] = rows_of_x(l->p, &c) > 4 ? 2 : 4;
    c.split = lines_of_k(l->p, &c) < c.split ? 1 : c.split;
    c.stages = MOST_STAGES;
    l->out[l->n++] = c;
}

static void add_columns(list *l, int m) { l->out[l->n++] = make(l, m, 1, l->row->warps, FEED_ELEMENT, false); }

static void add_any_x(list *l, int m) {
    if (rft__cuda_w_mn(l->p)) {
        add_columns(l, m);
    } else {
        add_scalar_x(l, m);
        add_elements(l, m);
    }
}

static int configs(const rft__cuda_facts *f, const rft__problem *p, int64_t m, const rft__cuda_row *row, rft__cuda_config *out,
                   char *reason) {
    if (m > MOST_M) {
        return rft__cuda_refuse(reason, "takes at most %d rows of x; m = %lld", MOST_M, (long long)m);
    }
    list l = {f, p, row, out, 0};
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0] && !rft__cuda_x_mn(p) && !rft__cuda_w_mn(p); i++) {
        add_ring(&l, (int)m, shapes[i], true);
    }
    if (p->m_max <= MOST_M) { /* what a plan keeps for any operand serves all of its m */
        add_any_x(&l, 0);
    }
    add_any_x(&l, (int)m);
    return l.n;
}

/* ---- the launch ---- */

static int64_t units_of(const rft__problem *p, const rft__cuda_config *c) {
    return rft__ceil_div(p->epi.n_out, rft__cuda_w_mn(p) ? LANES : columns(p, c));
}

/* Blocks on an SM: one with a ring, whose successor takes the other half; else as many as keep memory busy. */
static int resident(const rft__cuda_facts *f, const rft__problem *p, const rft__cuda_config *c) {
    return f->limited ? 1 : rft__cuda_w_mn(p) ? 8 : c->option[FEED] >= FEED_ASYNC ? 1 : 2;
}

static int64_t blocks_of(const rft__cuda_facts *f, const rft__problem *p, const rft__cuda_config *c) {
    return rft__min((int64_t)f->sms * resident(f, p, c), units_of(p, c) * p->batch);
}

static void launch(const rft__cuda_facts *f, const rft__problem *p, const rft__cuda_config *c, int64_t m, rft__cuda_launch *l) {
    (void)m;
    *l = (rft__cuda_launch){.grid = {(unsigned)blocks_of(f, p, c), 1, 1},
                            .block = (unsigned)(LANES * warps(c)),
                            .cluster = 1,
                            .shared = (unsigned)(rft__cuda_w_mn(p) ? columns_shared(p, c) : shared_bytes(p, c)),
                            .number = {(int)units_of(p, c)}};
}

/* ---- the cost: of one of many launches in a row, as a graph of dependent kernels has them ---- */

/* Fitted to 300 measurements on one H200: f32, f16, bf16, m = 1 to 8, weights of 2 to 470 MB. */
static const double START = 1.2e-6;    /* from the end of the kernel before to x in the lanes, and from the last sum to y */
static const double ALONE = 1e-6;      /* more, where no kernel starts before the one ahead has ended */
static const double STREAM = 1.04;     /* of the bandwidth of a lone kernel: between launches in a row requests never cease */
static const double LATENCY = 0.95e-6; /* from a request to its bytes while memory is busy, and to the next request */
static const double ISSUE = 0.75;      /* of an SM's issue slots that warps fill */
enum { TURN = 150, SUM = 6 };          /* instructions of a step beside its products, and of a sum at a unit's end */
enum { L1_LEFT = 28 << 10 };           /* bytes beside the shared memory of an SM, on every architecture from 8.0 to 9.0 */

static double units_in_all(const rft__problem *p, const rft__cuda_config *c) { return (double)units_of(p, c) * (double)p->batch; }

/* Steps of one part of a unit. */
static double steps_of(const rft__problem *p, const rft__cuda_config *c) {
    const double part = (double)rft__ceil_div(lines_of_k(p, c), c->split);
    return rft__cuda_w_mn(p) ? (double)p->w.k / (8.0 * c->split) : ceil(part / c->option[LINES]);
}

/* Of the warps that have the most units: each of their rings comes once a latency; loads of single elements are few at a time. */
static double chain_seconds(const rft__cuda_facts *f, const rft__problem *p, const rft__cuda_config *c) {
    const double groups = rft__cuda_w_mn(p) ? 1.0 : warps(c) / c->split;
    const double turns = ceil(units_in_all(p, c) / ((double)blocks_of(f, p, c) * groups)) * steps_of(p, c);
    const double at_once = rft__cuda_w_mn(p) ? 1.0 : c->option[FEED] == FEED_ELEMENT ? 2.0 : c->stages;
    return turns * LATENCY / at_once;
}

/* Instructions of a lane for one step: widen, multiply, load, and the loop around it. */
static double step_instructions(const rft__problem *p, const rft__cuda_config *c) {
    const double m = rows_of_x(p, c), rows = c->option[ROWS], lines = rft__cuda_w_mn(p) ? 8.0 : c->option[LINES];
    const double widen = (c->row->w == RFT_F32 ? 0.0 : rows) + (c->row->x == RFT_F32 ? 0.0 : m);
    const double loads = c->option[FEED] == FEED_ELEMENT ? 12.0 * (rows + m) : c->option[X_VECTORS] ? 0.0 : 2.0 * m;
    return lines * (chunk(c) * (rows * m + widen + loads) + rows + m) + (c->option[FEED] == FEED_ELEMENT ? 0.0 : TURN);
}

/* Of the SM that has the most units. */
static double issue_seconds(const rft__cuda_facts *f, const rft__problem *p, const rft__cuda_config *c) {
    const double units = ceil(units_in_all(p, c) / f->sms);
    const double unit = c->split * (steps_of(p, c) * step_instructions(p, c) + SUM * sums(p, c));
    return units * unit * LANES * f->sms / (f->flops_f32 / 2.0) / ISSUE;
}

/* x comes from L2 once an SM where L1 holds it, else once a unit. */
static double x_seconds(const rft__cuda_facts *f, const rft__problem *p, const rft__cuda_config *c) {
    const double x = (double)rows_of_x(p, c) * (double)p->w.k * rft__cuda_size(c->row->x);
    return x * (x <= L1_LEFT ? (double)blocks_of(f, p, c) : units_in_all(p, c)) / f->l2_bps;
}

static double sixth(double a) { return a * a * a * a * a * a; }

/* Four queues at once: the time of the longest, and more where another is nearly as long. */
static double seconds(const rft__cuda_facts *f, const rft__problem *p, int64_t m, const rft__cuda_config *c) {
    const double memory = sixth(rft__matrix_bytes(&p->w) / (STREAM * f->read_bps));
    const double other = rft__cuda_traffic(p, m) - rft__matrix_bytes(&p->w);
    const double queues = memory + sixth(chain_seconds(f, p, c)) + sixth(issue_seconds(f, p, c)) + sixth(x_seconds(f, p, c));
    const bool dependent = f->arch >= 90 && c->option[FEED] == FEED_BULK;
    return START + (dependent ? 0.0 : ALONE) + other / f->read_bps + cbrt(sqrt(queues));
}

/* ---- the text, and what a config needs ---- */

static void text(const rft__problem *p, const rft__cuda_config *c, rft__text *t) {
    rft__text_add(t, "#define RFT_GEMV_M %d\n#define RFT_GEMV_ROWS %d\n#define RFT_GEMV_LINES %d\n", rows_of_x(p, c),
                  c->option[ROWS], c->option[LINES]);
    rft__text_add(t, "#define RFT_GEMV_FEED %d\n#define RFT_GEMV_X_VECTORS %d\n", c->option[FEED], c->option[X_VECTORS]);
}

/* A packed W is aligned by its contract. */
static const char *unsuited(const rft__problem *p, const rft__cuda_config *c, const rft__cuda_args *a) {
    const bool batched = p->batch > 1, packed = !p->w.view && !p->w_dynamic;
    const int64_t ldw = a->n > 1 ? a->ldw : 0, w_batch_stride = batched ? a->w_batch_stride : 0;
    if (rft__cuda_w_mn(p) || c->option[FEED] == FEED_ELEMENT) {
        return NULL;
    }
    if (!packed && !rft__cuda_runs_aligned(a->w, ldw, w_batch_stride, p->w.elem, CHUNK_BYTES)) {
        return "w, ldw and its batch stride must be multiples of 16 bytes";
    }
    const int bytes = (int)rft__min(CHUNK_BYTES, chunk(c) * rft__cuda_size(p->x));
    if (c->option[X_VECTORS] &&
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
