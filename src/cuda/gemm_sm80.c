/* SPDX-License-Identifier: Apache-2.0
 *
 * gemm_sm80.c - host half of kernels/gemm_sm80.cu: mma.sync tiles from sm_80 on. Three configs a row: runs of x and w that lie on
 * 16 bytes, on 4, or anywhere; a plan keeps the last beside the faster ones. Called through rft__cuda_gemm_sm80.
 * Bits do not depend on m: with one config each element adds the same blocks of k in the same order.
 */
#include "cuda/gemm_common.h"

/* options: of runs of x and w; how many times bk a stage holds; blocks take tiles in turn; runs are whole or not there */
enum { ALIGNMENT, DEPTH, TURNS, WHOLE };
enum {
    RUN = 16,
    MOST_STAGES = 8,
    FEW_STAGES = 3,
    FEW_WARPS = 4, /* one for each scheduler of an SM */
    PART_ROWS = 16,
    PART_PAD = 8,
    SYSTEM_SHARED = 1024,
    LINE = 128,
    BIG_WARP = 64 * 64,
    LARGE = 128 * 128
};

static const double LATENCY = 1.0e-6; /* seconds from a stage's copies to its barrier, with cold weights */
static const double FILL = 4.0e-6;    /* until memory delivers at its rate, and after the last byte */
static const double PAUSE = 0.08e-6;  /* at the end of a stage, of schedulers that have no other warp */

static int stage_bytes(const rft__cuda_row *r, int depth) { return (r->bm + r->bn) * r->bk * depth * rft__cuda_size(r->x); }

/* A warp's rows and columns, as the kernel has them. */
static int warp_m(const rft__cuda_row *r) { return r->bm >= 128 ? 64 : r->bm >= 32 ? 32 : 16; }
static int warp_n(const rft__cuda_row *r) { return r->bm <= 32 ? 32 : r->bn / (r->warps / (r->bm / warp_m(r))); }

/* What the sums leave through: a part a warp. */
static int out_bytes(const rft__cuda_row *r) { return r->warps * PART_ROWS * (warp_n(r) + PART_PAD) * (int)sizeof(float); }

/* Blocks that an SM holds, by registers. */
static int resident(const rft__cuda_facts *f, const rft__cuda_row *r) {
    const int sums = warp_m(r) * warp_n(r) / 32, registers = sums >= 128 ? 256 : sums >= 64 ? 216 : 168;
    return f->limited ? 1 : 65536 / (registers * 32 * r->warps);
}

/* Those that a grid gives it. */
static int beside(const rft__cuda_facts *f, const rft__cuda_row *r, int64_t tiles) {
    return (int)rft__min(resident(f, r), rft__max(1, rft__ceil_div(tiles, f->sms)));
}

/* Bytes of shared memory for each of `blocks` on an SM. */
static int room(const rft__cuda_facts *f, int blocks) {
    return (int)rft__min(f->shared_sm / blocks - SYSTEM_SHARED, f->shared_block);
}

/* Depth and stages of a ring in so many bytes: rows of whole lines of k where enough of such stages fit. */
static rft__cuda_config ring_in(const rft__cuda_row *r, int bytes) {
    const int deep = bytes / stage_bytes(r, 2), lines = r->bk * rft__cuda_size(r->x) < LINE && deep >= FEW_STAGES;
    const int stages = lines ? deep : bytes / stage_bytes(r, 1);
    return (rft__cuda_config){.row = r,
                              .split = 1,
                              .cluster = 1,
                              .stages = (int)rft__min(stages, MOST_STAGES),
                              .option[DEPTH] = lines ? 2 : 1};
}

/* No more stages than k fills but for one. */
static rft__cuda_config cut_to(rft__cuda_config c, int64_t k) {
    c.stages = (int)rft__min(c.stages, rft__max(2, rft__ceil_div(k, c.row->bk * c.option[DEPTH]) + 1));
    return c;
}

/* Blocks of large tiles take them in turn: the ring runs on from one to the next, whose loads hide the way out of the last. That
 * needs room for the sums beside three stages. A ring that fills an SM also keeps blocks of the next kernel from joining those of
 * a small grid in pairs, which would take twice the time. Where SMs are limited, blocks of all tiles take turns, or there would
 * be too many. */
static rft__cuda_config ring_of(const rft__cuda_facts *f, const rft__problem *p, int64_t m, const rft__cuda_row *r) {
    const int bytes = room(f, beside(f, r, rft__cuda_tiles(p, r, m).count));
    rft__cuda_config c = ring_in(r, bytes - out_bytes(r));
    c.option[TURNS] = 1;
    if (!f->limited && (r->bm * r->bn < LARGE || c.stages < FEW_STAGES)) {
        c = ring_in(r, bytes);
        c = c.stages >= FEW_STAGES ? c : ring_in(r, f->shared_block);
    }
    return cut_to(c, p->w.k);
}

static int64_t shared_of(const rft__cuda_config *c) {
    const int64_t ring = (int64_t)stage_bytes(c->row, c->option[DEPTH]) * c->stages;
    return c->option[TURNS] ? ring + out_bytes(c->row) : rft__max(ring, out_bytes(c->row));
}

/* Blocks of a config that an SM holds. */
static int blocks_of(const rft__cuda_facts *f, const rft__cuda_config *c) {
    return (int)rft__max(1, rft__min(resident(f, c->row), f->shared_sm / (shared_of(c) + SYSTEM_SHARED)));
}

/* Rows along k end with a run, so that a copy is one instruction without a count of bytes. */
static bool whole(const rft__problem *p, int align) {
    return align == RUN && !rft__cuda_x_mn(p) && !rft__cuda_w_mn(p) && p->w.k % (RUN / rft__cuda_size(p->x)) == 0;
}

static int configs(const rft__cuda_facts *f, const rft__problem *p, int64_t m, const rft__cuda_row *row, rft__cuda_config *out,
                   char *reason) {
    const rft__cuda_config ring = ring_of(f, p, m, row);
    const int size = rft__cuda_size(p->x);
    int n = 0;
    if (ring.stages < 2) {
        return rft__cuda_refuse(reason, "two stages%s take %d bytes of shared memory; a block has %d",
                                f->limited ? " and its sums" : "",
                                2 * stage_bytes(row, 1) + (f->limited ? out_bytes(row) : 0), f->shared_block);
    }
    if (p->x == RFT_F32 && warp_m(row) * warp_n(row) >= BIG_WARP && (rft__cuda_x_mn(p) || rft__cuda_w_mn(p))) {
        return rft__cuda_refuse(reason, "its warps of 64 x 64 have no registers for f32 along M or N");
    }
    for (int align = RUN; align >= size; align = align == RUN ? 4 : align - 2) {
        if (align == size || rft__cuda_halves_aligned(p, align)) {
            out[n] = ring;
            out[n].option[ALIGNMENT] = align;
            out[n++].option[WHOLE] = whole(p, align);
        }
    }
    return n;
}

/* Of the rate of mma.sync, where blocks fill an SM: the fewer sums a warp has, the more of its time goes to ldmatrix. */
static double share(const rft__cuda_row *r) {
    const int sums = warp_m(r) * warp_n(r);
    return sums >= BIG_WARP ? (r->warps > FEW_WARPS ? 0.8 : 0.72) : sums >= 64 * 32 ? 0.6 : sums >= 32 * 32 ? 0.5 : 0.36;
}

/* mma.sync has about 0.75 of the sustained rate of wgmma on Hopper. Mixed 16-bit pairs take tf32 instructions; f32 is rounded. */
static double rate_of(const rft__cuda_facts *f, const rft__cuda_row *r) {
    const double peak = r->compute == RFT__CUDA_TF32 ? f->flops_tf32 : f->flops_16;
    return peak * (f->arch == 90 ? 0.75 : 1.0) * share(r) * (r->x == RFT_F32 ? 0.85 : 1.0) / f->sms;
}

/* Seconds that loads of less than 16 bytes take an SM for each chunk of 16. */
static double chunk_seconds(int align) { return align == 16 ? 0.0 : align == 4 ? 0.4e-9 : 1.8e-9; }

/* A stage takes the time of its products; for a block of few warps that is alone on an SM also a pause, in which they meet and
 * read; and it cannot come sooner than its copies, STAGES - 1 of which are under way. */
static double seconds(const rft__cuda_facts *f, const rft__problem *p, int64_t m, const rft__cuda_config *c) {
    const rft__cuda_row *r = c->row;
    const int depth = c->option[DEPTH], bytes = stage_bytes(r, depth);
    const double product = 2.0 * r->bm * r->bn * r->bk * depth / rate_of(f, r) + bytes / 16 * chunk_seconds(c->option[ALIGNMENT]);
    const double copy = bytes / (f->l2_bps / f->sms), work = product > copy ? product : copy;
    const double alone = product + (r->warps > FEW_WARPS ? 0.0 : PAUSE), waits = LATENCY / (c->stages - 1);
    const double steps = (double)rft__ceil_div(p->w.k, r->bk * depth) + (c->option[TURNS] ? 1.0 : c->stages);
    const double busy = rft__cuda_waves(rft__cuda_tiles(p, r, m).count, f->sms, blocks_of(f, c), steps, work,
                                        alone > waits ? alone : waits);
    const double memory = rft__cuda_traffic(p, m) / f->read_bps + FILL;
    return 2e-6 + (busy > memory ? busy : memory);
}

static void launch(const rft__cuda_facts *f, const rft__problem *p, const rft__cuda_config *c, int64_t m, rft__cuda_launch *l) {
    const rft__cuda_row *r = c->row;
    const rft__tiles t = rft__cuda_tiles(p, r, m);
    const int64_t tiles = t.m * t.n;
    const int64_t blocks = c->option[TURNS] ? rft__min(tiles, (int64_t)f->sms * blocks_of(f, c)) : tiles;
    *l = rft__cuda_tile_launch(f, p, r, t, blocks, (int64_t)f->sms * resident(f, r));
    l->shared = (unsigned)shared_of(c);
}

static const char *unsuited(const rft__problem *p, const rft__cuda_config *c, const rft__cuda_args *a) {
    const int align = c->option[ALIGNMENT];
    return a->k == 0 || align <= rft__cuda_size(p->x) ? NULL : rft__cuda_unaligned(p, a, align, align);
}

const rft__cuda_family rft__cuda_gemm_sm80 = {
    .name = "gemm_sm80",
    .source = "gemm_sm80.cu",
    .configs = configs,
    .seconds = seconds,
    .launch = launch,
    .unsuited = unsuited,
    .any_m = true,
};
