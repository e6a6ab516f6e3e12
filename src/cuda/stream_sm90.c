/* SPDX-License-Identifier: Apache-2.0
 *
 * stream_sm90.c - host half of kernels/stream_sm90.cu: into how many parts k is cut, how the ring is built, how many clusters
 * share the tiles, what that costs. A config is a row with a split, the blocks of a cluster; all else follows from them: chunks
 * of 128 bytes a stage, tokens of which sums meet at a time, and whether they may meet where the ring was.
 * Called through rft__cuda_stream_sm90. Bits depend on the row and the split, not on the SMs.
 */
#include "cuda/gemm_common.h"
#include "cuda/kernels/stream_layout.h"

#include <math.h>

enum { CHUNKS, SLAB, ONCE /* options */ };
enum { MAX_STAGES = 12, LEAST_STAGES = 3, MAX_SPLIT = 8 };
enum { STAGE_BYTES = 16 << 10, PARCELS_BYTES = 28 << 10, SLAB_TILE = 128 * 128 };

/* A cluster does not leave its GPC, so that some SMs find no place in one. Of the 132 of an H200 clusters of 1, 2, ... 8 take
 * 132, 132, 117, 120, 110, 102, 105, 120 at a time; another chip lacks other SMs: a little less. */
enum { PLACES_SMS = 132 };
static const int PLACES[MAX_SPLIT] = {132, 132, 114, 116, 105, 96, 98, 112};

/* Measured on an H200, 2026-11-29: fitted to 700 runs, graph launches back to back with W from memory. */
static const double START = 0.87e-6; /* seconds: a launch, first bytes, last stage */
static const double SM_BPS = 127e9;  /* bytes a second into one SM, 64 a clock */
static const double BURST = 1.3;     /* times its share of the sustained rate that an SM multiplies while others wait */
static const double OVERLAP = 3.4;   /* norm in which memory, loads and products add up: 1 none hides another, infinite all */
static const double SAME_K = 0.032;  /* of memory's time, lost where SMs are spare and all blocks are at one or two places of k */
static const double MEET = 0.42e-6;  /* a cluster's wait for each other */
static const double SEND_BPS = 19e9; /* bytes a second from SM to SM */
static const double OUTPUT = 0.048e-9;   /* to finish an output of a block */
static const double LATER_SLAB = 0.3e-6; /* of a tile that is not the last: the ring hides the first slab */

static int64_t columns(const rft__cuda_row *r, const rft__problem *p) { return p->epi.glu_at < 0 ? r->bn : r->bn / 2; }
static int halves(const rft__problem *p) { return p->epi.glu_at >= 0 && p->w.glu == RFT__GLU_HALVES ? 2 : 1; }
static int64_t stage_k(const rft__cuda_config *c) { return (int64_t)c->row->bk * c->option[CHUNKS]; }

static int64_t tiles(const rft__problem *p, const rft__cuda_row *r) {
    return rft__ceil_div(p->epi.glu_at < 0 ? p->w.n : p->w.n / 2, columns(r, p)) * p->batch;
}

/* Clusters that run side by side. */
static int64_t at_once(const rft__cuda_facts *f, int split) {
    return rft__max(PLACES[split - 1] * (int64_t)f->sms / (PLACES_SMS * split), 1);
}

/* Each cluster gets the same number of tiles, but for some that get one less: no wave is nearly empty. */
static int64_t clusters(const rft__cuda_facts *f, const rft__problem *p, const rft__cuda_config *c) {
    const int64_t count = tiles(p, c->row);
    return rft__ceil_div(count, rft__ceil_div(count, at_once(f, c->split)));
}

/* ---- the ring ---- */

/* A stage is no smaller than STAGE_BYTES, or its barriers cost more than its bytes. */
static int chunks(const rft__cuda_row *r) { return rft__stream_chunk_bytes(r->bm, r->bn) < STAGE_BYTES ? 2 : 1; }

/* Of all parcels of sums of so many tokens. */
static int parcels_bytes(const rft__problem *p, const rft__cuda_row *r, int split, int tokens) {
    const rft__stream_share share = rft__stream_share_of(r->bn / 8, halves(p), split);
    return rft__stream_parcels(split) * rft__stream_parcel_bytes(tokens, halves(p) * share.most);
}

/* The largest equal part of a tile's tokens whose parcels take no more than PARCELS_BYTES, or 8 tokens. */
static int slab(const rft__problem *p, const rft__cuda_row *r, int split) {
    int n = r->bm;
    for (int parts = 2; n > 8 && parcels_bytes(p, r, split, n) > PARCELS_BYTES; parts++) {
        n = r->bm % (8 * parts) == 0 ? r->bm / parts : n;
    }
    return n;
}

static int sums_bytes(const rft__problem *p, const rft__cuda_config *c) {
    return parcels_bytes(p, c->row, c->split, c->option[SLAB]);
}

static int stage_bytes(const rft__cuda_config *c) { return c->option[CHUNKS] * rft__stream_chunk_bytes(c->row->bm, c->row->bn); }

static int stages(const rft__cuda_facts *f, const rft__problem *p, const rft__cuda_config *c) {
    const int without = RFT_STREAM_BARRIERS + (c->option[ONCE] ? 0 : sums_bytes(p, c));
    const int fit = (f->shared_block - without) / stage_bytes(c);
    return fit < MAX_STAGES ? fit : MAX_STAGES;
}

static int shared_bytes(const rft__problem *p, const rft__cuda_config *c) {
    return rft__stream_data_bytes(c->stages * stage_bytes(c), sums_bytes(p, c), c->option[ONCE]) + RFT_STREAM_BARRIERS;
}

/* ---- configs ---- */

static const char *refuse(const rft__problem *p, int64_t m, const rft__cuda_row *r) {
    if (m > r->bm) {
        return "takes fewer tokens";
    }
    if (rft__cuda_x_mn(p) || rft__cuda_w_mn(p)) {
        return "streams K-contiguous x and w only";
    }
    if (p->w.n > INT32_MAX - 1024 || p->w.k > INT32_MAX - 1024 || tiles(p, r) > INT32_MAX / 2) {
        return "counts to 2^31";
    }
    return NULL;
}

static rft__cuda_config config_of(const rft__cuda_facts *f, const rft__problem *p, const rft__cuda_row *r, int split) {
    const bool once = tiles(p, r) <= at_once(f, split);
    rft__cuda_config c = {
        .row = r, .split = split, .cluster = split, .option = {chunks(r), once ? r->bm : slab(p, r, split), once}};
    c.stages = stages(f, p, &c);
    return c;
}

/* Each block has some steps of k and the last word on some rows. Where sums stay in registers beside those that are finished, a
 * thread has room for those of SLAB_TILE. */
static bool useful(const rft__cuda_facts *f, const rft__problem *p, const rft__cuda_config *c) {
    const rft__stream_share share = rft__stream_share_of(c->row->bn / 8, halves(p), c->split);
    return c->stages >= LEAST_STAGES && shared_bytes(p, c) <= f->shared_block && share.least > 0 &&
           (c->option[ONCE] || c->row->bm * c->row->bn <= SLAB_TILE) &&
           (c->split == 1 || rft__ceil_div(p->w.k, stage_k(c)) >= 2 * c->split);
}

static int configs(const rft__cuda_facts *f, const rft__problem *p, int64_t m, const rft__cuda_row *row, rft__cuda_config *out,
                   char *reason) {
    const char *const why = refuse(p, m, row);
    int n = 0;
    if (why != NULL) {
        return rft__cuda_refuse(reason, "%s", why);
    }
    for (int split = 1; split <= MAX_SPLIT; split++) {
        const rft__cuda_config c = config_of(f, p, row, split);
        if (useful(f, p, &c)) {
            out[n++] = c;
        }
    }
    return n > 0 ? n : rft__cuda_refuse(reason, "has too few registers or too little shared memory for so many tiles");
}

/* ---- cost ---- */

static double norm(double a, double b, double c) {
    return pow(pow(a, OVERLAP) + pow(b, OVERLAP) + pow(c, OVERLAP), 1.0 / OVERLAP);
}

/* What is left of the last tile when its last bytes are here, and of the others what the ring does not hide. */
static double end_seconds(const rft__cuda_config *c, double each) {
    const double sums = (double)c->row->bm * c->row->bn, sent = 4.0 * sums * (c->split - 1) / c->split;
    const double meet = c->split > 1 ? MEET + sent / SEND_BPS : 0.0;
    return meet + OUTPUT * sums / c->split + LATER_SLAB * (each - 1.0) * (c->row->bm / c->option[SLAB] - 1);
}

static double seconds(const rft__cuda_facts *f, const rft__problem *p, int64_t m, const rft__cuda_config *c) {
    const rft__cuda_row *const r = c->row;
    const int64_t count = tiles(p, r), groups = clusters(f, p, c), each = rft__ceil_div(count, groups);
    const int64_t part = rft__ceil_div(rft__ceil_div(p->w.k, stage_k(c)), c->split) * stage_k(c);
    const double spare = c->split < 3 && groups * c->split < f->sms * 31 / 32 ? SAME_K : 0.0;
    const double flops = BURST * (r->compute == RFT__CUDA_TF32 ? f->flops_tf32 : f->flops_16) / f->sms;
    const double memory = (1.0 + spare) * rft__cuda_traffic(p, m) / f->read_bps;
    const double load = (double)(each * part) * (r->bn + r->bm) * rft__cuda_size(r->w) / SM_BPS;
    const double multiply = 2.0 * (double)(each * part) * r->bn * r->bm / flops;
    return START + norm(memory, load, multiply) + end_seconds(c, (double)each);
}

/* ---- launch, maps ---- */

static void launch(const rft__cuda_facts *f, const rft__problem *p, const rft__cuda_config *c, int64_t m, rft__cuda_launch *l) {
    const rft__cuda_row *const r = c->row;
    const int64_t count = tiles(p, r), groups = clusters(f, p, c);
    (void)m;
    *l = (rft__cuda_launch){.grid = {(unsigned)(groups * c->split), 1, 1},
                            .block = 32 * (unsigned)r->warps,
                            .cluster = (unsigned)c->split,
                            .shared = (unsigned)shared_bytes(p, c),
                            .number = {(int)(count / groups), (int)(count % groups)}};
}

static void maps(const rft__problem *p, const rft__cuda_config *c, const rft__cuda_args *a,
                 rft__cuda_map_spec map[RFT_CUDA_MAPS]) {
    map[0] = rft__cuda_x_map(p, a, c->row->bm);
    map[1] = rft__cuda_w_map(p, a, c->row->bn / halves(p));
}

static const char *unsuited(const rft__problem *p, const rft__cuda_config *c, const rft__cuda_args *a) {
    (void)c;
    return rft__cuda_unaligned(p, a, 16, 16);
}

const rft__cuda_family rft__cuda_stream_sm90 = {
    .name = "stream_sm90",
    .source = "stream_sm90.cu",
    .configs = configs,
    .seconds = seconds,
    .launch = launch,
    .maps = maps,
    .unsuited = unsuited,
};
