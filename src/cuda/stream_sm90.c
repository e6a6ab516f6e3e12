/* SPDX-License-Identifier: Apache-2.0
 *
 * stream_sm90.c - host half of kernels/stream_sm90.cu: into how many parts k is cut, how the ring is built, how many clusters
 * share the tiles, what that costs. A config is a row with a split (blocks of a cluster), chunks of 128 bytes a stage (option 0)
 * and blocks that an SM shall hold (option 1): 2 leave room for the kernel behind, 1 has twice the ring.
 * Called through rft__cuda_stream_sm90. Bits depend on the row, the split and the chunks, not on the SMs or the stages.
 */
#include "cuda/gemm_common.h"
#include "cuda/kernels/stream_layout.h"

#include <math.h>
#include <stdio.h>

enum { CHUNKS, RESIDENT /* options */ };
enum { MAX_STAGES = 12, LEAST_STAGES = 3, BLOCK_RESERVED = 1024 /* bytes of an SM that the system takes a block */ };

/* Estimates, to be fitted to measurements. */
static const double LATENCY = 1.1e-6; /* seconds from a TMA load to its bytes, under load */
static const double SM_SHARE = 1.6;   /* of an even share of memory's bandwidth that one SM can take */
static const double FIXED = 2.2e-6;   /* first bytes, last stage, epilogue */
static const double MEET = 0.35e-6;   /* sums of a cluster */
static const double ALONE = 0.8e-6;   /* no successor on the SM: its ring fills when this kernel has ended */
static const double TILE = 0.1e-6;    /* what the ring does not hide of a tile's end */

static int64_t columns(const rft__cuda_row *r, const rft__problem *p) { return p->epi.glu_at < 0 ? r->bn : r->bn / 2; }
static int halves(const rft__problem *p) { return p->epi.glu_at >= 0 && p->w.glu == RFT__GLU_HALVES ? 2 : 1; }
static int64_t stage_k(const rft__cuda_config *c) { return (int64_t)c->row->bk * c->option[CHUNKS]; }

static int64_t tiles(const rft__problem *p, const rft__cuda_row *r) {
    return rft__ceil_div(p->epi.glu_at < 0 ? p->w.n : p->w.n / 2, columns(r, p)) * p->batch;
}

/* Each cluster gets the same number of tiles, but for some that get one less: no wave is nearly empty. */
static int64_t clusters(const rft__cuda_facts *f, const rft__problem *p, const rft__cuda_config *c) {
    const int64_t count = tiles(p, c->row), at_once = rft__max(f->sms / c->split, 1);
    return rft__ceil_div(count, rft__ceil_div(count, at_once));
}

static int stages(const rft__cuda_facts *f, const rft__cuda_config *c) {
    const int room = c->option[RESIDENT] > 1 ? f->shared_sm / c->option[RESIDENT] - BLOCK_RESERVED : f->shared_block;
    const int without = rft__stream_shared_bytes(c->row->bm, c->row->bn, c->option[CHUNKS], 0);
    const int fit = (room - without) / (c->option[CHUNKS] * rft__stream_chunk_bytes(c->row->bm, c->row->bn));
    return fit < MAX_STAGES ? fit : MAX_STAGES;
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

/* More registers than two blocks of 9 warps can have: many sums, two 64-row blocks a warpgroup or many tokens. */
static bool fits_twice(const rft__cuda_row *r) { return r->bm * r->bn <= 64 * 128; }

static bool useful(const rft__problem *p, const rft__cuda_config *c) {
    const int groups = c->row->bn / 8;
    return c->stages >= LEAST_STAGES && groups % (halves(p) * c->split) == 0 &&
           (c->split == 1 || rft__ceil_div(p->w.k, stage_k(c)) >= 2 * c->split) &&
           (c->option[RESIDENT] == 1 || fits_twice(c->row)) && (c->option[CHUNKS] == 1 || p->w.k > c->row->bk);
}

static int configs(const rft__cuda_facts *f, const rft__problem *p, int64_t m, const rft__cuda_row *row, rft__cuda_config *out,
                   char reason[RFT__CUDA_REASON]) {
    const char *const why = refuse(p, m, row);
    int n = 0;
    if (why != NULL) {
        snprintf(reason, RFT__CUDA_REASON, "%s", why);
        return 0;
    }
    for (int resident = 2; resident >= 1; resident--) {
        for (int chunks = 2; chunks >= 1; chunks--) {
            for (int split = 1; split <= 8; split *= 2) {
                rft__cuda_config c = {.row = row, .split = split, .cluster = split, .option = {chunks, resident}};
                c.stages = stages(f, &c);
                if (useful(p, &c) && n < RFT__CUDA_CONFIGS) {
                    out[n++] = c;
                }
            }
        }
    }
    return n;
}

/* ---- cost ---- */

/* Bytes a second of W that one block can draw: by the loads that its ring keeps under way, and by its SM. */
static double block_bps(const rft__cuda_facts *f, const rft__cuda_config *c) {
    const double ring = (double)(c->stages - 1) * c->option[CHUNKS] * c->row->bn * RFT_SWIZZLE_ROW;
    return fmin(ring / LATENCY, SM_SHARE * f->read_bps / f->sms);
}

/* What all of them draw together: memory's bandwidth, but for a little where SMs stand idle. */
static double all_bps(const rft__cuda_facts *f, const rft__cuda_config *c, double blocks) {
    const double idle = fmax(0.0, 1.0 - blocks / f->sms);
    return fmin(f->read_bps * (1.0 - idle * idle), block_bps(f, c) * blocks);
}

static double seconds(const rft__cuda_facts *f, const rft__problem *p, int64_t m, const rft__cuda_config *c) {
    const rft__cuda_row *const r = c->row;
    const int64_t count = tiles(p, r), groups = clusters(f, p, c), each = rft__ceil_div(count, groups);
    const double size = rft__cuda_size(r->w), row_k = (double)p->w.k * size;
    const double part = (double)rft__min(rft__ceil_div(rft__ceil_div(p->w.k, stage_k(c)), c->split) * stage_k(c), p->w.k) * size;
    const double longest = (double)each * r->bn * part / block_bps(f, c);
    const double memory = rft__cuda_traffic(p, m) / all_bps(f, c, (double)(groups * c->split));
    const double l2 = (double)count * (r->bn + (double)m) * row_k / f->l2_bps;
    const double flops = r->compute == RFT__CUDA_TF32 ? f->flops_tf32 : f->flops_16;
    const double multiply = 2.0 * (double)count * r->bn * r->bm * (double)p->w.k / flops;
    const double end = TILE * (double)(each - 1) + (c->split > 1 ? MEET * r->bm / rft__stream_slab(r->bm) : 0.0) +
                       (c->option[RESIDENT] == 1 ? ALONE : 0.0);
    return FIXED + fmax(fmax(memory, longest), fmax(l2, multiply)) + end + 1e-9 * r->bm +
           2e-9 * c->stages; /* the last two: ties */
}

/* ---- launch, maps ---- */

static void launch(const rft__cuda_facts *f, const rft__problem *p, const rft__cuda_config *c, int64_t m, rft__cuda_launch *l) {
    const rft__cuda_row *const r = c->row;
    const int64_t count = tiles(p, r), groups = clusters(f, p, c);
    (void)m;
    *l = (rft__cuda_launch){.grid = {(unsigned)(groups * c->split), 1, 1},
                            .block = 32 * (unsigned)r->warps,
                            .cluster = (unsigned)c->split,
                            .shared = (unsigned)rft__stream_shared_bytes(r->bm, r->bn, c->option[CHUNKS], c->stages),
                            .number = {(int)(count / groups), (int)(count % groups)}};
}

/* rows x k elements of each of `batch` matrices (0: no third dimension), in boxes of box_rows x 128 bytes. */
static rft__cuda_map_spec map_of(const void *address, rft_type t, int64_t rows, int64_t k, int64_t batch, int64_t ld,
                                 int64_t batch_stride, int box_rows) {
    const uint64_t size = (uint64_t)rft__cuda_size(t);
    rft__cuda_map_spec s = {.address = address, .elem = t, .rank = batch > 0 ? 3 : 2, .swizzle = RFT_SWIZZLE_ROW};
    s.dim[0] = (uint64_t)k, s.dim[1] = (uint64_t)rows, s.dim[2] = batch_stride != 0 ? (uint64_t)batch : 1;
    s.stride[1] = (uint64_t)ld * size;
    s.stride[2] = (batch_stride != 0 ? (uint64_t)batch_stride : (uint64_t)ld) * size;
    s.box[0] = (uint32_t)(RFT_SWIZZLE_ROW / size), s.box[1] = (uint32_t)box_rows, s.box[2] = 1;
    return s;
}

static void maps(const rft__problem *p, const rft__cuda_config *c, const rft__cuda_args *a, rft__cuda_map_spec map[3]) {
    const int64_t batch = p->batch > 1 ? p->batch : 0;
    map[0] = map_of(a->x, p->x, a->m, a->k, batch, a->ldx, a->x_batch_stride, c->row->bm);
    map[1] = map_of(a->w, p->w.elem, a->n, a->k, batch, a->ldw, a->w_batch_stride, c->row->bn / halves(p));
    map[2] = (rft__cuda_map_spec){.rank = 0};
}

static const char *unsuited(const rft__problem *p, const rft__cuda_config *c, const rft__cuda_args *a) {
    (void)c;
    if (!rft__cuda_runs_aligned(a->x, a->ldx, p->batch > 1 ? a->x_batch_stride : 0, p->x, 16)) {
        return "x, ldx and its batch stride must be multiples of 16 bytes";
    }
    if (!rft__cuda_runs_aligned(a->w, a->ldw, p->batch > 1 ? a->w_batch_stride : 0, p->w.elem, 16)) {
        return "w, ldw and its batch stride must be multiples of 16 bytes";
    }
    return NULL;
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
