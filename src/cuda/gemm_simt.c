/* SPDX-License-Identifier: Apache-2.0
 *
 * gemm_simt.c - host half of kernels/gemm_simt.cu: the tiles on the FMA units that serve every problem. Two configs a row: with
 * quads of elements that are one load (option 0 = 1), and with any pointer and stride, which a plan keeps beside it. Where
 * multiprocessors are limited, blocks take tiles in turn (option 1 = 1). Called through rft__cuda_gemm_simt.
 * An element is one chain of FMAs in ascending k for each team of its row's tile, added up in order: its bits depend on neither m
 * nor the config.
 */
#include "cuda/gemm_common.h"

enum { QUAD = 4 };
enum { ALIGNED, TURNS /* options */ };

static const double UNALIGNED = 0.6; /* of that rate, with a load an element */
static const double LATENCY = 1.0e-6; /* seconds of a step at least: its loads come, are stored, and warps meet */

/* Sums of a thread, as the kernel has them; where a tile leaves threads over, teams share the k of a step. */
static int each(const rft__cuda_row *r) {
    const int area = r->bm * r->bn, of_all = area / (32 * r->warps), least = area >= 64 * 64 ? 64 : 32;
    return of_all > least ? of_all : least;
}

/* Blocks that an SM holds, by registers: sums, operands and loads of a thread. */
static int resident(const rft__cuda_facts *f, const rft__cuda_row *r) {
    const int registers = each(r) >= 128 ? 256 : each(r) >= 64 || r->bm < 32 ? 176 : 128;
    return f->limited ? 1 : 65536 / (registers * 32 * r->warps);
}

static const double ALONE = 0.7; /* of that rate: one warp a scheduler on a limited SM waits for each barrier; estimated */

/* Share of the sustained FMA rate: the fewer sums a thread has, the more instructions load operands and add up teams. */
static double share(const rft__cuda_facts *f, const rft__cuda_row *r) {
    const double large = r->bm > 128 ? 0.97 : 0.93; /* 256x128 shares W among twice the rows */
    const double usual = each(r) >= 128 ? large : each(r) >= 64 ? 0.69 : r->bm >= 32 ? 0.58 : 0.35;
    return f->limited && r->warps < 8 ? ALONE * usual : usual;
}

static int configs(const rft__cuda_facts *f, const rft__problem *p, int64_t m, const rft__cuda_row *row, rft__cuda_config *out,
                   char *reason) {
    (void)m, (void)reason;
    const rft__cuda_config any = {.row = row, .split = 1, .cluster = 1, .option[TURNS] = f->limited};
    int n = 0;
    if (rft__cuda_halves_aligned(p, QUAD * rft__cuda_size(p->w.elem))) {
        out[n] = any;
        out[n++].option[ALIGNED] = 1;
    }
    out[n++] = any;
    return n;
}

/* Blocks of the next kernel wait where there is room, so that those of a small grid come in pairs, from a quarter of a wave
 * on. */
static int64_t paired(const rft__cuda_facts *f, const rft__cuda_row *r, int64_t count) {
    return rft__max(count, rft__min(4 * count, (int64_t)f->sms * resident(f, r)));
}

static double seconds(const rft__cuda_facts *f, const rft__problem *p, int64_t m, const rft__cuda_config *c) {
    const rft__cuda_row *r = c->row;
    const int64_t count = paired(f, r, rft__cuda_tiles(p, r, m).count);
    const double rate = f->flops_f32 / f->sms * share(f, r) * (c->option[ALIGNED] ? 1.0 : UNALIGNED);
    const double work = 2.0 * r->bm * r->bn * r->bk / rate, steps = (double)rft__ceil_div(p->w.k, r->bk);
    const double busy = rft__cuda_waves(count, f->sms, resident(f, r), steps, work, LATENCY);
    const double memory = rft__cuda_traffic(p, m) / f->read_bps;
    return 2e-6 + (busy > memory ? busy : memory);
}

static void launch(const rft__cuda_facts *f, const rft__problem *p, const rft__cuda_config *c, int64_t m, rft__cuda_launch *l) {
    const rft__tiles t = rft__cuda_tiles(p, c->row, m);
    const int64_t tiles = t.m * t.n, wave = (int64_t)f->sms * resident(f, c->row);
    *l = rft__cuda_tile_launch(f, p, c->row, t, c->option[TURNS] ? rft__min(tiles, wave) : tiles, wave);
}

static const char *unsuited(const rft__problem *p, const rft__cuda_config *c, const rft__cuda_args *a) {
    const bool any = !c->option[ALIGNED] || a->k == 0;
    return any ? NULL : rft__cuda_unaligned(p, a, QUAD * rft__cuda_size(p->x), QUAD * rft__cuda_size(p->w.elem));
}

const rft__cuda_family rft__cuda_gemm_simt = {
    .name = "gemm_simt",
    .source = "gemm_simt.cu",
    .configs = configs,
    .seconds = seconds,
    .launch = launch,
    .unsuited = unsuited,
    .any_m = true,
};
