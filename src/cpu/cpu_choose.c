/* SPDX-License-Identifier: Apache-2.0
 *
 * cpu_choose.c - which kernel row serves each m: a list of candidates, each refused with a reason or given a cost, and the
 * least cost taken. The same list is what explain prints. Costs are cycles a k and panel on a core with one FMA a cycle:
 *
 *     sum over row tiles of (max(r p, r + p) + 1 + widen p) / p  +  (tiles - 1) (p - 1) / 2
 *     + 8 for every 96 rows where a strip is widened first, 12 where it is packed first
 *
 * for tiles of r rows and p panels: r p FMAs, r + p loads, one step of the loop, half a cycle to widen a bf16 vector in
 * registers and one for f16 (two operations on the FMA ports of Intel, none on those of Zen 4). Each further tile reads the
 * strip again, which wide strips feel more (f32, 2048 x 2048, one Zen 4 core, us: m = 9 9x48 710, 14x32 766, 6x64 982; m = 10
 * 1114, 811, 962; m = 19 1577, 1427, 1734).
 *   Only a lone tile streams W as memory brings it: several that share 16-bit panels cost 1.05 times as much. A strip is widened
 * again for every block of X that L2 holds. Figures: docs/decisions/2026-11-29-tall-tiles.md.
 *   Tile kernels: see tile_cost. For few rows their time is less than that in which memory brings W, so the level below keeps
 * those (TILE_LEAST_ROWS; 4096 x 4096 and 14336 x 4096, time of that level / of tiles, 16 threads: m = 4 0.99 0.80, m = 8 0.73
 * 1.00, m = 12 1.48 1.28, m = 16 1.88 0.96; one thread: m = 8 1.03 1.18, m = 12 1.11).
 *   Kernels of rows read 4 columns at a time, so their tiles are 4 wide. vdpbf16ps kernels divide by their measured rate. Memory
 * time is equal for all and left out, but that no product runs while a strip is packed (us at run time for f32, bf16, f16:
 * K-contiguous w at m = 1 packed 1280, 540, 870, in place 540, 275, 325; at m = 48 4560, 2280, 4180 and 3920, 2010, 3750;
 * MN-contiguous w at m = 16 2550, 1480, 2080 and 1640, 1430, 1420).
 */
#include "cpu/cpu_choice.h"
#include "cpu/cpuid.h"
#include "format/format.h"

#include <stdio.h>
#include <string.h>

typedef struct candidate {
    const rft__cpu_kernel *kernel;
    rft__w_source source;
    int panels;
    double cost;
    bool other_codes; /* refused as most kernels of codes are: explain counts them */
    char reason[120]; /* why refused; empty: allowed at `cost` */
} candidate;

/* Kernels of columns: most panels in a chunk, and k of a pass: 32 bytes of a column, or 8 k where few sums go in and out (bf16,
 * 2048 x 2048, one Zen 4 core, GB/s with 8 and 16 k: m = 1 25.8 25.3, m = 2 27.5 26.5, m = 4 18.1 21.9). */
enum { IN_PLACE_PANELS = 128, IN_PLACE_K_BYTES = 32, IN_PLACE_FEW_K = 8, IN_PLACE_FEW_ROWS = 2 };

enum { DECODE_ROWS = 96 };

static int panels_of(const rft__cpu_kernel *k) { return k->nr / RFT__PANEL; }

static bool reads_panels(const rft__cpu_kernel *k) { return k->form == RFT__FORM_PANELS || k->form == RFT__FORM_TILES; }

static bool reads_codes(const rft__cpu_kernel *k) { return k->form == RFT__FORM_CODES || k->form == RFT__FORM_BYTES; }

/* W as panels say, and the k of X under one scale: where x is given in 8 bits a part of its own groups. Scales that serve a whole
 * row are equal in all of its groups. */
static rft__packing packing_for(const rft__problem *p) {
    rft__packing packing = rft__packing_of(&p->w);
    const bool in_groups = p->x == RFT_I8 && p->x_group_k != 0 && p->x_group_k < p->w.k;
    while (in_groups && p->x_group_k % packing.x_group != 0) {
        packing.x_group /= 2;
    }
    const bool one_scale = p->x == RFT_I8 ? !in_groups : rft__problem_rounds_rows(p);
    packing.one_sum = one_scale && p->w.k > 0 && p->w.k <= RFT__MOST_ONE_SUM && p->w.group_k >= p->w.k;
    return packing;
}

/* A tile register holds 16 rows; to load one takes 8 cycles, and a product is done after 52. A core has two FMA units, so that a
 * cycle of it is two of this model: a step of 32 k by 16. */
enum { TILE_ROWS = 16, TILE_LOAD = 8, TILE_LATENCY = 52, TILE_RATE = 16 };
enum { TILE_LEAST_ROWS = 10 };

/* Of two panels in bytes. It matters little: Zen 4, i8 and q4_0, m = 512, GOP/s at kc 256 318 279, 512 312 284, 1024 327 292. */
enum { BYTES_STRIP = 32 << 10 };
/* The same of panels in place that tile registers read in 8 bits. The last sum of a pass is scaled alone, so passes are long. */
enum { TILE8_STRIP = 64 << 10 };

/* In 8 bits: a vector of a sum is scaled by four operations on two ports. The level below keeps m at which it is as fast; 12 rows
 * are two turns of its GEMV (its time over that of panels in place and of strips, i8, 4096 x 4096, m = 4, 8, 12, 16: 16 threads
 * 0.88 0.44, 3.68 1.70, 1.55 0.79, 4.10 2.66; one thread 0.95 0.48, 0.98 0.51, 1.70 0.85, 2.01 0.99). */
enum { TILE8_STEP = 64, TILE8_SCALE = 2, TILE8_LEAST_ROWS = 8, TILE8_LEAST_STRIP_ROWS = 13 };
/* Rows of X that a strip is unpacked once for; what the scales of a sum in place cost each call. */
enum { TILE8_STRIP_ROWS = 512, TILE8_HEAD = 12 };

static double tile_cost(int64_t m, const rft__cpu_kernel *k, int panels) {
    const int64_t calls = rft__ceil_div(m, k->mr), rows = rft__ceil_div(m, calls);
    const int64_t loads = TILE_LOAD * (rft__ceil_div(rows, TILE_ROWS) + panels);
    const int64_t step = rft__max(rft__max(rows * panels, loads), TILE_LATENCY);
    return (double)(calls * step) / panels / TILE_RATE;
}

/* Products and scaling overlap; see amx/gemm_i8_amx.c. Panels in place have their scales read in each call, strips are unpacked
 * for each block of X (time of strips / in place, i8: m = 512 0.94, m = 2048 1.02, on one thread 1.03 and 1.12; a scale for 64 k,
 * m = 512 0.94). */
static double tile8_cost(const rft__packing *packing, const rft__cpu_kernel *k, int panels, int64_t m) {
    const int64_t calls = rft__ceil_div(m, k->mr), rows = rft__ceil_div(m, calls);
    const int64_t sum = rft__packing_sum(packing), step = rft__min(sum, TILE8_STEP);
    const int64_t loads = TILE_LOAD * (rft__ceil_div(rows, TILE_ROWS) + panels);
    const double products = (double)rft__max(rft__max(rows * panels, loads), TILE_LATENCY) / (double)(step * panels);
    const double scaling = (double)(TILE8_SCALE * rows) / (double)sum;
    const bool plain = packing->bits == 4 || packing->bits == 8;
    const double unpack = (plain ? 55.0 : 95.0) * (double)rft__ceil_div(m, TILE8_STRIP_ROWS) / RFT__BLOCK;
    const double heads = (double)(TILE8_HEAD * calls) / (double)sum + 25.0 / RFT__BLOCK;
    return 2.0 * (double)calls * (products > scaling ? products : scaling) + (k->form == RFT__FORM_BYTES ? unpack : heads);
}

/* What a tile of codes in f32 takes besides its FMAs. Those that sum before they scale do without a product, and beside several
 * panels share more (Zen 4, 4096 x 4096, us of sums in 6x64 and of the chain in 16x32, two threads: q4_0 m = 4 635 827, 8 1255
 * 1384, 12 1897 1958, 16 2509 2484; i8 m = 4 707 1054, 8 1383 1491, 12 2056 1967; q6_k, the chain in 8x32, m = 6 1149 1240, 8
 * 1597 1503, 10 2000 2121). Rows alone beside two panels of AVX2 gain less (q4_0, clocks a line: m = 1 30 36, m = 2 59 42). */
static double f32_tile_cost(const rft__cpu_kernel *k, int bits) {
    const double chain = bits == 4 ? 6.0 : 8.0;
    return !k->sums ? chain : k->mr == 1 ? chain - 1.0 : bits == 4 ? 2.5 : bits == 8 ? 3.9 : 4.1;
}

/* Kernels of codes unpack a panel for each row tile: in f32 four bits take three operations a k and others five, and the tile
 * some cycles as every one does (Zen 4, 2048 x 4096, us: m = 32 q8_0 in 24x32 5245, its f32 panels in 14x32 5261; m = 64 q4_0
 * 10250, q8_0 in f32 10065). In 8 bits 32 k take a row some 12 cycles; 4 and 8 bits take a tile 12, and a strip in bytes takes
 * 55 once; others take some more, and a strip 95. Tiles of one panel hide most of it among products (one core, us of 1024 x 4096,
 * in them and in strips: q4_0 m = 16 410 478, 64 1638 1671, 256 6818 6715; q4_k 64 1865 1855; q6_k 16 516 578, 32 1029 1043, 256
 * 8799 7916; q5_0 16 426 487, 64 1685 1684). */
static double codes_cost(const rft__problem *p, const candidate *c, int64_t m) {
    const rft__cpu_kernel *k = c->kernel;
    const rft__packing packing = packing_for(p);
    const int bits = packing.bits;
    if (k->tiles != NULL) {
        return tile8_cost(&packing, k, c->panels, rft__max(m, 1));
    }
    const double rows = (double)rft__max(m, 1), tiles = (double)rft__ceil_div(rft__max(m, 1), k->mr);
    const bool plain = bits == 4 || bits == 8;
    if (k->x != RFT_I8) {
        return rows + tiles * f32_tile_cost(k, bits);
    }
    if (k->form == RFT__FORM_BYTES) {
        return (12.0 * rows + (plain ? 55.0 : 95.0)) / 32.0;
    }
    const bool hides = k->codes8->tile[1][0] == NULL; /* levels with tiles of one panel have none of two; ref has neither */
    return hides   ? (12.0 * rows + (plain ? 3.0 * tiles : 10.0 * tiles + 25.0)) / 32.0
           : plain ? (11.3 * rows + 12.0 * tiles + 25.0) / 32.0
                   : (14.0 * rows + 37.0 * tiles + 25.0) / 32.0;
}

static double cost_at(const rft__device *d, const rft__problem *p, const candidate *c, int64_t m) {
    if (reads_codes(c->kernel)) {
        return codes_cost(p, c, m);
    }
    const rft__cpu_kernel *k = c->kernel;
    const int64_t tiles = rft__ceil_div(rft__max(m, 1), k->mr), tall = rft__max(m, 1) % tiles, rows = rft__max(m, 1) / tiles;
    const bool dot = k->x == RFT_BF16, in_registers = c->source == RFT__W_PANELS || c->source == RFT__W_IN_PLACE;
    const int panels = k->form == RFT__FORM_ROWS ? 4 : c->panels;
    const double widen = !dot && in_registers && p->w.elem != RFT_F32 ? (p->w.elem == RFT_F16 ? 1.0 : 0.5) * panels : 0.0;
    const bool packed = c->source == RFT__W_PANELS || c->source == RFT__W_DECODE;
    const double blocks = (double)rft__ceil_div(rft__max(m, 1), DECODE_ROWS);
    const double first = c->source == RFT__W_DECODE ? 8.0 * blocks : c->source == RFT__W_PACK ? 12.0 : 0.0;
    if (k->form == RFT__FORM_TILES) {
        return first + tile_cost(rft__max(m, 1), k, c->panels);
    }
    double cycles = 0.0;
    for (int tall_one = 0; tall_one < 2; tall_one++) {
        const double r = (double)(rows + tall_one), n = panels, count = (double)(tall_one ? tall : tiles - tall);
        cycles += count * ((r * n > r + n ? r * n : r + n) + 1.0 + widen);
    }
    cycles = cycles / panels + 0.5 * (double)(tiles - 1) * (c->panels - 1);
    cycles *= tiles > 1 && packed && p->w.elem != RFT_F32 ? 1.05 : 1.0;
    return first + (dot ? cycles / d->dot_rate : cycles);
}

static bool same_kind(const rft__cpu_kernel *a, const rft__cpu_kernel *b) {
    return a->x == b->x && a->w == b->w && a->form == b->form && (a->tiles != NULL) == (b->tiles != NULL);
}

/* The highest level in use that has a kernel for that pair of types and form of W, on registers of that kind: lower ones only
 * repeat it more slowly. */
static int best_level(const rft__device *d, const rft__cpu_kernel *k) {
    for (int level = d->level; level >= 0; level--) {
        const rft__isa *isa = rft__isa_at(level);
        for (int i = 0; i < isa->n_kernels && rft__device_uses(d, level); i++) {
            if (same_kind(isa->kernels + i, k)) {
                return level;
            }
        }
    }
    return -1;
}

/* Kernels that read W where it lies. */
static void refuse_place(const rft__problem *p, candidate *c) {
    const rft__cpu_kernel *k = c->kernel;
    const rft_order order = k->form == RFT__FORM_ROWS ? RFT_K_CONTIGUOUS : RFT_MN_CONTIGUOUS;
    const int64_t width = p->w.glu == RFT__GLU_HALVES ? p->w.n / 2 : p->w.n;
    const int64_t least = p->w.glu == RFT__GLU_INTERLEAVED ? 2 * RFT__PANEL : RFT__PANEL;
    if (!p->w_dynamic && !p->w.view) {
        snprintf(c->reason, sizeof c->reason, "reads w where it lies; w is packed");
    } else if (k->w != p->w.elem) {
        snprintf(c->reason, sizeof c->reason, "reads w of %s; w is %s", rft__type_name(k->w), rft__format_name(p->w.elem));
    } else if (p->w.order != order) {
        snprintf(c->reason, sizeof c->reason, "reads %s-contiguous w", order == RFT_K_CONTIGUOUS ? "a K" : "an MN");
    } else if (k->form == RFT__FORM_ROWS && p->batch_invariant) {
        snprintf(c->reason, sizeof c->reason,
                 "sums k in many lanes; RFT_BATCH_INVARIANT asks for one order of summation at every m");
    } else if (k->form == RFT__FORM_COLUMNS && width < least) {
        snprintf(c->reason, sizeof c->reason, "reads %lld columns at once; w has %lld", (long long)least, (long long)width);
    }
}

/* Kernels of codes, and the others where W is of codes. */
static void refuse_codes(const rft__problem *p, candidate *c) {
    const rft__cpu_kernel *k = c->kernel;
    if (!rft__matrix_is_low_bit(&p->w)) {
        c->other_codes = true;
        snprintf(c->reason, sizeof c->reason, "reads panels of codes; w is %s", rft__format_name(p->w.elem));
        return;
    }
    const rft__packing packing = packing_for(p);
    const bool whole_numbers = packing.i8_exact || k->x != RFT_I8 || (k->form == RFT__FORM_CODES && k->kind.bits != packing.bits);
    if (reads_codes(k) && k->kind.offset == RFT__OFFSET_NONE && !whole_numbers) {
        snprintf(c->reason, sizeof c->reason, "multiplies whole numbers of 8 bits; values of %s are none, so f32 multiplies them",
                 rft__format_name(p->w.elem));
    } else if (!reads_codes(k) && (k->form != RFT__FORM_PANELS || k->x != RFT_F32 || k->w != RFT_F32)) {
        snprintf(c->reason, sizeof c->reason, "w of %s is packed as codes", rft__format_name(p->w.elem));
    } else if (k->form == RFT__FORM_CODES && (k->kind.bits != packing.bits || k->kind.offset != packing.offset)) {
        c->other_codes = true;
        snprintf(c->reason, sizeof c->reason, "reads codes of another kind than those of %s", rft__format_name(p->w.elem));
    } else if (k->sums && p->batch_invariant) {
        snprintf(c->reason, sizeof c->reason, "sums groups of k; RFT_BATCH_INVARIANT asks for one order of summation at every m");
    } else if (k->x == RFT_I8 && !rft__problem_takes_i8(p)) {
        snprintf(c->reason, sizeof c->reason, p->x == RFT_I8 ? "multiplies in 8 bits; RFT_COMPUTE_F32 and others ask for floats"
                                                             : "rounds x to 8 bits, which RFT_COMPUTE_I8 alone allows");
    } else if (k->x == RFT_I8 && p->x == RFT_I8 && p->w.sorted) {
        snprintf(c->reason, sizeof c->reason, "takes k by the groups of w, which part those of x's scales; f32 multiplies them");
    } else if (k->x == RFT_I8 && packing.step < RFT__BLOCK / 2) {
        snprintf(c->reason, sizeof c->reason, "needs scales of 16 k or a multiple; group_k = %lld", (long long)p->w.group_k);
    } else if (k->form == RFT__FORM_BYTES && k->tiles == NULL && packing.x_group > RFT__BLOCK) {
        snprintf(c->reason, sizeof c->reason, "sums 32 k at most; scales allow %d", packing.x_group);
    }
}

static void refuse_types(const rft__problem *p, candidate *c) {
    const rft__cpu_kernel *k = c->kernel;
    if (reads_codes(k) || rft__matrix_is_low_bit(&p->w)) {
        refuse_codes(p, c);
        if (c->reason[0] != '\0') {
            return;
        }
    }
    const bool unpacked = p->w_dynamic || p->w.view;
    if (k->x == RFT_BF16 && (p->x != RFT_BF16 || p->w.elem != RFT_BF16)) {
        snprintf(c->reason, sizeof c->reason, "multiplies bf16 by bf16; x is %s, w is %s", rft__type_name(p->x),
                 rft__format_name(p->w.elem));
    } else if (k->x == RFT_BF16 && p->compute == RFT_COMPUTE_F32) {
        snprintf(c->reason, sizeof c->reason, "RFT_COMPUTE_F32 asks for f32 multiplication");
    } else if (k->form == RFT__FORM_ROWS || k->form == RFT__FORM_COLUMNS) {
        refuse_place(p, c);
    } else if (k->form == RFT__FORM_PANELS && k->x == RFT_F32 && k->w != RFT_F32 && unpacked) {
        snprintf(c->reason, sizeof c->reason, "reads packed panels; w is not packed and is widened to f32 panels at each run");
    } else if (k->form == RFT__FORM_PANELS && k->x == RFT_F32 && k->w != RFT_F32 && k->w != p->w.elem) {
        snprintf(c->reason, sizeof c->reason, "reads %s panels; w is %s", rft__type_name(k->w), rft__format_name(p->w.elem));
    } else if (p->w.glu != RFT__GLU_NONE && c->panels % 2 != 0) {
        snprintf(c->reason, sizeof c->reason, "nr = %d holds no whole pairs of gate and up panels", k->nr);
    }
}

/* Rows from which on tile registers serve, 0 for other kernels. A batch-invariant plan has no choice in bf16, as the tiles' order
 * of summation is one of their own; sums in 8 bits are the same on all registers. */
static int64_t least_rows(const rft__problem *p, const rft__cpu_kernel *k) {
    return k->tiles == NULL             ? 0
           : k->form == RFT__FORM_BYTES ? TILE8_LEAST_STRIP_ROWS
           : k->x == RFT_I8             ? TILE8_LEAST_ROWS
           : p->batch_invariant         ? 0
                                        : TILE_LEAST_ROWS;
}

static candidate judge(const rft__device *d, const rft__problem *p, const rft__cpu_kernel *k, int level, bool forced, int64_t m) {
    const bool unpacked = p->w_dynamic || p->w.view;
    candidate c = {.kernel = k, .panels = panels_of(k)};
    c.source = k->form == RFT__FORM_CODES   ? RFT__W_PANELS
               : k->form == RFT__FORM_BYTES ? RFT__W_UNPACK
               : !reads_panels(k)           ? RFT__W_IN_PLACE
               : unpacked                   ? RFT__W_PACK
               : k->w == p->w.elem          ? RFT__W_PANELS
                                            : RFT__W_DECODE;
    refuse_types(p, &c);
    if (c.reason[0] == '\0' && !rft__device_uses(d, level)) {
        snprintf(c.reason, sizeof c.reason, "needs level %s; %s is in use", k->isa, rft__isa_at(d->level)->name);
    } else if (c.reason[0] == '\0' && !forced && level < best_level(d, k)) {
        snprintf(c.reason, sizeof c.reason, "level %s serves the same types faster", rft__isa_at(best_level(d, k))->name);
    } else if (c.reason[0] == '\0' && !forced && m < least_rows(p, k)) {
        snprintf(c.reason, sizeof c.reason, "multiplies whole tiles, which pays from m = %d on", (int)least_rows(p, k));
    }
    c.cost = c.reason[0] == '\0' ? cost_at(d, p, &c, m) : 0.0;
    return c;
}

/* All rows of all levels, best level first. forced: a kernel's name, or NULL. */
static int list_candidates(const rft__device *d, const rft__problem *p, const char *forced, int64_t m, candidate *list) {
    int n = 0;
    for (int level = rft__isa_count() - 1; level >= 0; level--) {
        const rft__isa *isa = rft__isa_at(level);
        for (int i = 0; i < isa->n_kernels && n < RFT__MAX_CANDIDATES; i++) {
            if (forced == NULL || strcmp(forced, isa->kernels[i].name) == 0) {
                list[n++] = judge(d, p, isa->kernels + i, level, forced != NULL, m);
            }
        }
    }
    return n;
}

/* Kernels of one order of summation: f32, pairs of bf16, tiles of them, groups in 8 bits. */
typedef enum order { ANY_ORDER, FMA_ORDER, PAIR_ORDER, TILE_ORDER, INTEGER_ORDER } order;

static order order_of(const rft__cpu_kernel *k) {
    return k->form == RFT__FORM_TILES ? TILE_ORDER
           : k->x == RFT_BF16         ? PAIR_ORDER
           : k->x == RFT_I8           ? INTEGER_ORDER
                                      : FMA_ORDER;
}

/* The cheapest allowed one of that order, or NULL. */
static const candidate *cheapest(const candidate *list, int n, order only) {
    const candidate *best = NULL;
    for (int i = 0; i < n; i++) {
        const bool allowed = list[i].reason[0] == '\0' && (only == ANY_ORDER || order_of(list[i].kernel) == only);
        if (allowed && (best == NULL || list[i].cost < best->cost)) {
            best = list + i;
        }
    }
    return best;
}

/* A batch-invariant plan must sum alike at every m: it settles at one m which order that is. */
static order invariant_order(const rft__device *d, const rft__problem *p, const char *forced) {
    candidate list[RFT__MAX_CANDIDATES];
    const candidate *best = cheapest(list, list_candidates(d, p, forced, 16, list), ANY_ORDER);
    return best != NULL ? order_of(best->kernel) : ANY_ORDER;
}

static int64_t l2_of(const rft__device *d) { return d->topology.l2 != 0 ? (int64_t)d->topology.l2 : 524288; }

/* Blocking of a kernel that reads W in place. Rows: a strip and the one that is fetched meanwhile take half of L2. Columns: a few
 * k at a time, as dot_body.h and axpy_body.h say; the chunk's sums stay in 64 KiB. */
static void block_in_place(const rft__device *d, const rft__problem *p, int64_t m, rft__cpu_pick *pick) {
    const int64_t whole = rft__max(p->w.k, 1), size = (int64_t)rft__type_size(p->w.elem);
    if (pick->kernel->form == RFT__FORM_ROWS) {
        const int64_t passes = rft__ceil_div(whole * pick->kernel->nr * size, l2_of(d) / 4);
        pick->kc = rft__round_up(rft__ceil_div(whole, passes), 64);
    } else {
        pick->kc = m <= IN_PLACE_FEW_ROWS ? IN_PLACE_FEW_K : IN_PLACE_K_BYTES / size;
        pick->nc = rft__min(IN_PLACE_PANELS, (64 << 10) / (rft__min(pick->mc, rft__max(m, 1)) * RFT__PANEL * 4));
        pick->nc = rft__max(1, pick->nc / pick->panels) * pick->panels;
    }
}

/* Blocking. A strip over kc takes 96 KiB of L2: tiles read it from there at a few bytes a cycle, and a long k spares traffic of
 * partial sums (Zen 4, bf16, m = 16..512: kc 256 201..204 GFLOP/s, kc 768 213..222), but longer strips push X out of L2 (Emerald
 * Rapids, f16, m = 256: kc 512 142 GFLOP/s, kc 1024 119, kc 2048 112); so do tall tiles (Zen 4, f32, m = 40, 28x16: kc 1366 79,
 * kc 683 108). The held rows of X over kc take a quarter of L2, the partial sums of a chunk half of it. Beside tile registers
 * X in 8 bits takes 3/8, since a strip is unpacked again for each block of rows, which takes as long as 25 to 50 rows. */
static rft__cpu_pick blocked(const rft__device *d, const rft__problem *p, const candidate *c, int64_t m) {
    const rft__cpu_kernel *k = c->kernel;
    const int64_t l2 = l2_of(d);
    const bool tiles8 = k->tiles != NULL && k->x == RFT_I8;
    const int64_t x_size = k->x == RFT_F32 ? 4 : tiles8 ? 1 : 2, granule = rft__max(2 * k->kr, rft__panel_granule(&p->w)),
                  w_size = reads_codes(k) ? 1 : k->w == RFT_F32 ? 4 : 2,
                  whole = rft__round_up(rft__max(p->w.k, 1), k->kr);
    rft__cpu_pick pick = {.kernel = k, .source = c->source, .panels = c->panels, .kc = whole};
    const bool one_tile = m <= k->mr;
    if (!one_tile || c->source != RFT__W_PANELS) {
        const int64_t bytes = k->form == RFT__FORM_BYTES ? BYTES_STRIP : tiles8 ? TILE8_STRIP : 96 << 10;
        const int64_t strip = rft__min(l2 / 8, bytes) / (k->nr * w_size), tile = rft__min(l2 / 8, 84 << 10) / (k->mr * x_size);
        const int64_t most = rft__max(128, rft__min(strip, tile));
        const int64_t passes = rft__ceil_div(whole, most);
        pick.kc = rft__round_up(rft__ceil_div(whole, passes), granule);
    }
    const int64_t in_l2 = l2 / 4 / (rft__min(pick.kc, whole) * x_size), in_memory = (8 << 20) / (whole * x_size);
    pick.mc = rft__max(k->mr, rft__min(in_l2, in_memory) / k->mr * k->mr);
    const int64_t sums = rft__min(pick.mc, rft__max(m, 1)) * RFT__PANEL * 4;
    pick.nc = rft__max(1, l2 / 2 / sums / pick.panels) * pick.panels;
    if (c->source == RFT__W_IN_PLACE) {
        block_in_place(d, p, m, &pick);
    }
    return pick;
}

static bool same_pick(const rft__cpu_pick *a, const rft__cpu_pick *b) {
    return a->kernel == b->kernel && a->source == b->source && a->kc == b->kc && a->mc == b->mc && a->nc == b->nc;
}

static rft_status fill_ranges(rft__choice *c, const char *forced, rft_error *err) {
    const order only = c->p.batch_invariant ? invariant_order(c->device, &c->p, forced) : ANY_ORDER;
    candidate list[RFT__MAX_CANDIDATES];
    int64_t m = c->p.m_min;
    while (m <= c->p.m_max) {
        const int64_t end = m > RFT__TABLE_M ? c->p.m_max : m; /* beyond the table one pick, judged at its end */
        const int n = list_candidates(c->device, &c->p, forced, end, list);
        const candidate *best = cheapest(list, n, only);
        if (best == NULL) {
            RFT_FAIL(err, n == 0 ? RFT_E_ARG : RFT_E_UNSUPPORTED, "kernel %s %s", forced != NULL ? forced : "(any)",
                     n == 0 ? "is no row of any level" : list[0].reason);
        }
        const rft__cpu_pick pick = blocked(c->device, &c->p, best, end);
        if (c->n_range > 0 && same_pick(&c->range[c->n_range - 1].pick, &pick)) {
            c->n_range--;
        }
        c->range[c->n_range++] = (rft__cpu_range){end, pick};
        m = end + 1;
    }
    return RFT_OK;
}

rft_status rft__cpu_choose(rft__device *device, const rft__problem *p, const char *forced, rft__choice **out, rft_error *err) {
    rft__choice *c = rft__alloc(&device->allocator, sizeof *c, _Alignof(rft__choice));
    if (c == NULL) {
        RFT_FAIL(err, RFT_E_NOMEM, "no memory for a plan (%zu bytes)", sizeof *c);
    }
    c->device = device;
    c->p = *p;
    c->low_bit = rft__matrix_is_low_bit(&p->w);
    c->packing = c->low_bit ? packing_for(p) : (rft__packing){.bits = 0};
    c->panel_stride = rft__cpu_panel_stride(&p->w);
    c->granule = rft__panel_granule(&p->w);
    c->forced = forced != NULL;
    const rft_status s = fill_ranges(c, forced, err);
    if (s != RFT_OK) {
        rft__cpu_choice_free(device, c);
        return s;
    }
    if (!c->forced && device->level > 0 && strcmp(c->range[0].pick.kernel->isa, "ref") == 0) {
        snprintf(c->fallback, sizeof c->fallback, "no kernel of level %s takes x %s, w %s; the portable %s runs",
                 rft__isa_at(device->level)->name, rft__type_name(p->x), rft__format_name(p->w.elem),
                 c->range[0].pick.kernel->name);
    }
    *out = c;
    return RFT_OK;
}

void rft__cpu_choice_free(rft__device *device, rft__choice *choice) { rft__release(&device->allocator, choice, sizeof *choice); }

static const char *source_text(rft__w_source s) {
    static const char *const text[] = {[RFT__W_PANELS] = "reads packed panels",
                                       [RFT__W_DECODE] = "widens a strip of packed w at a time",
                                       [RFT__W_UNPACK] = "unpacks a strip of packed w to bytes at a time",
                                       [RFT__W_PACK] = "packs a strip of w at a time",
                                       [RFT__W_IN_PLACE] = "reads w where it lies"};
    return text[s];
}

/* What 8-bit activations add to a run. */
static void explain_8bit(const rft__problem *p, const rft__cpu_kernel *kernel, rft__text *text) {
    if (rft__type_is_8bit(p->x)) {
        rft__text_add(text, "; x of %s %s", rft__type_name(p->x),
                      kernel->x != RFT_I8 ? "is widened to f32" : p->x == RFT_I8 ? "as given" : "is rounded again");
    } else if (kernel->x == RFT_I8 && rft__problem_rounds_rows(p)) {
        rft__text_add(text, "; x is rounded by one scale a row");
    }
    rft__text_add(text, "%s", kernel->x == RFT_I8 && packing_for(p).one_sum ? ", one sum over all k" : "");
    if (p->epi.quantize.kind == RFT_EPI_QUANTIZE_ROWS) {
        rft__text_add(text, "; y waits as f32 for the scales of its rows");
    }
}

void rft__cpu_explain(const rft__choice *choice, int64_t m, rft__text *text) {
    const rft__cpu_pick *pick = rft__cpu_pick_at(choice, m);
    const rft__grid g = rft__cpu_grid(choice, pick, m);
    candidate list[RFT__MAX_CANDIDATES];
    const int n = list_candidates(choice->device, &choice->p, choice->forced ? pick->kernel->name : NULL, m, list);
    rft__text_add(text, "taken    %-42s %s; kc %lld, mc %lld, nc %lld; threads %d x %d x %d (m x n x k)", pick->kernel->name,
                  source_text(pick->source), (long long)pick->kc, (long long)pick->mc, (long long)pick->nc * RFT__PANEL, g.m, g.n,
                  g.kk);
    explain_8bit(&choice->p, pick->kernel, text);
    rft__text_add(text, "\n");
    for (int i = 0; i < n; i++) {
        if (list[i].kernel == pick->kernel) {
            rft__text_add(text, "         cost %.2f cycles a k and 16 columns\n", list[i].cost);
        }
    }
    int others = 0;
    for (int i = 0; i < n; i++) {
        others += list[i].other_codes;
        if (list[i].other_codes) {
            continue;
        }
        if (list[i].reason[0] != '\0') {
            rft__text_add(text, "refused  %-42s %s\n", list[i].kernel->name, list[i].reason);
        } else if (list[i].kernel != pick->kernel) {
            rft__text_add(text, "slower   %-42s %s; cost %.2f\n", list[i].kernel->name, source_text(list[i].source),
                          list[i].cost);
        }
    }
    if (others > 0) {
        char what[48];
        snprintf(what, sizeof what, "%d kernels of codes", others);
        rft__text_add(text, "refused  %-42s read codes that w has not; w is %s\n", what, rft__format_name(choice->p.w.elem));
    }
}
