/* SPDX-License-Identifier: Apache-2.0
 *
 * gemm_sm90.c - host half of kernels/gemm_sm90.cu: how a tile is cut over warpgroups and boxes, which configs a row has, what
 * they cost. A config shares operands between two or four blocks of a cluster (option 0), gives each warpgroup a tile of its own
 * (option 1), shares the last tiles of a grid between two blocks (option 2), or cuts k of all over a cluster (split). Option 3 is
 * how many chunks of 16-bit y a warp stages; one of f32 takes the place of two.
 * Called through rft__cuda_gemm_sm90. An element is one chain of wgmma in ascending k, and parts are added in that order: with
 * neither split nor tail its bits depend on k alone.
 */
#include "cuda/gemm_common.h"
#include "cuda/kernels/gemm_sm90_layout.h"

#include <math.h>

enum { SHARE, PING_PONG, TAIL, STAGED /* options */ };
enum { SHARE_NOTHING, SHARE_W, SHARE_X, SHARE_BOTH };
enum {
    MAX_STAGES = 12,
    MAX_CHUNKS = 4, /* of y that a warp defers */
    MAX_GROUP = 32,
    MAX_UNITS = 1 << 30,
    MAX_CLUSTER = 8
};

/* A config's tile as the kernel sees it. */
typedef struct cut {
    int consumers;    /* warpgroups that multiply */
    int wm, wn;       /* rows and columns of one, as wgmma has them */
    int w_rows;       /* of W of one */
    int x_box, w_box; /* rows of X and W that a TMA box brings */
    int stage_bytes;
} cut;

static int element(const rft__cuda_row *r) { return rft__cuda_size(r->x); }
static int down_of(const rft__cuda_config *c) { return c->option[SHARE] & SHARE_W ? 2 : 1; } /* blocks that share W */
static int across_of(const rft__cuda_config *c) { return c->option[SHARE] & SHARE_X ? 2 : 1; }
static bool halves(const rft__problem *p) { return p->epi.glu_at >= 0 && p->w.glu == RFT__GLU_HALVES; }

/* ---- the epilogue ---- */

/* Instructions of a list for one column of the product, roughly. */
static int instructions_of(const rft__problem *p) {
    int instructions = 0;
    for (int i = 0; i < p->epi.n_op; i++) {
        const rft_epi_kind kind = p->epi.op[i].kind;
        const bool curve = kind == RFT_EPI_SILU || kind == RFT_EPI_GELU || kind == RFT_EPI_GELU_TANH;
        instructions += (curve ? 10 : rft__epi_is_glu(kind) ? 6 : 4) * (i < p->epi.glu_at ? 2 : 1);
    }
    return instructions;
}

static bool reads(const rft__problem *p, rft__epi_access access) {
    bool found = false;
    for (int i = 0; i < p->epi.n_op; i++) {
        found = found || rft__epi_access_of(p->epi.op[i].kind) == access;
    }
    return found;
}

/* The op whose matrix comes to shared memory as operands do, behind them: a list's only one, of 16 bits, at columns of y. NULL:
 * none does. Where warpgroups take turns products hide its reads without. */
static const rft_epi_op *residual_of(const rft__problem *p, const rft__cuda_config *c) {
    const rft_epi_op *found = NULL;
    int matrices = 0;
    for (int i = 0; i < p->epi.n_op; i++) {
        if (rft__epi_access_of(p->epi.op[i].kind) == RFT__EPI_MATRIX) {
            found = &p->epi.op[i];
            matrices++;
        }
    }
    const bool whole = c->row->bm > 64 || c->row->bn % (2 * RFT_CHUNK_COLUMNS) == 0; /* chunks of a warpgroup */
    return matrices == 1 && found->type != RFT_F32 && p->epi.glu_at < 0 && !c->option[PING_PONG] && whole ? found : NULL;
}

/* Whether the list is applied to pairs of columns in the registers that hold them, and 16-bit y stored by TMA: gate and up must
 * be in one thread's. Other matrices are then read 4 bytes at a time, which another warpgroup's products must hide. */
static bool packed(const rft__problem *p, const rft__cuda_config *c) {
    const bool gated = p->epi.glu_at >= 0, matrix = reads(p, RFT__EPI_MATRIX) && residual_of(p, c) == NULL;
    return p->y != RFT_F32 && c->split == 1 && (!gated || halves(p)) && p->epi.n_out % 2 == 0 && !reads(p, RFT__EPI_BITS) &&
           !reads(p, RFT__EPI_SEED) && (!matrix || c->option[PING_PONG]);
}

/* The op whose matrix comes so, as the kernel's text and its maps both have it. */
static const rft_epi_op *streamed(const rft__problem *p, const rft__cuda_config *c) {
    return packed(p, c) ? residual_of(p, c) : NULL;
}

/* Whether rows of W are those of wgmma, and tokens its columns: a tall tile then reads less of shared memory. */
static bool turned(const rft__problem *p, const rft__cuda_config *c) {
    return packed(p, c) && p->epi.glu_at < 0 && !reads(p, RFT__EPI_MATRIX) && c->row->bm >= 4 * c->row->bn;
}

/* ---- a tile ---- */

static cut cut_of(const rft__problem *p, const rft__cuda_config *c) {
    const rft__cuda_row *const r = c->row;
    const int consumers = r->warps / 4 - 1, groups = c->option[PING_PONG] ? 1 : consumers;
    const int rows = turned(p, c) ? r->bn : r->bm, columns = turned(p, c) ? r->bm : r->bn;
    const int down = rows / groups >= 64 ? groups : 1, wm = rows / down, wn = columns * down / groups;
    const int w_box = halves(p) ? wn / 2 : r->bn / down_of(c);
    return (cut){.consumers = consumers,
                 .wm = wm,
                 .wn = wn,
                 .w_rows = turned(p, c) ? wm : wn,
                 .x_box = rft__cuda_x_mn(p) ? 64 : r->bm / across_of(c),
                 .w_box = rft__cuda_w_mn(p) ? 64 : w_box,
                 .stage_bytes = (r->bm + r->bn) * r->bk * element(r)};
}

/* Beside the ring: what is staged, which takes the ring's place where k is split, and barriers. */
static int fixed_bytes(const cut *t, const rft__cuda_config *c) {
    return (c->split > 1 ? 0 : t->consumers * 4 * c->option[STAGED] * RFT_CHUNK_BYTES / 2) + 16 * MAX_STAGES;
}

static int stages(const rft__cuda_facts *f, const rft__problem *p, const rft__cuda_config *c) {
    const cut t = cut_of(p, c);
    const int fit = (f->shared_block - fixed_bytes(&t, c)) / t.stage_bytes;
    return fit < MAX_STAGES ? fit : MAX_STAGES;
}

/* ---- units: what a cluster works on at a time ---- */

static rft__tiles units(const rft__problem *p, const rft__cuda_config *c, int64_t m) {
    const rft__tiles t = rft__cuda_tiles(p, c->row, m);
    const int64_t um = rft__ceil_div(t.m, down_of(c)), un = rft__ceil_div(t.n, across_of(c));
    return (rft__tiles){um, un, um * un * p->batch};
}

/* Clusters that run at the same time, a block an SM. One does not leave its GPC: on the 132 SMs of an H200, measured. */
static int64_t slots(const rft__cuda_facts *f, const rft__cuda_config *c) {
    static const int of_132[MAX_CLUSTER + 1] = {132, 132, 66, 39, 30, 22, 17, 15, 15};
    const int64_t n = (int64_t)f->sms * of_132[c->cluster] / 132;
    return n > 0 ? n : 1;
}

/* Clusters of a launch. */
static int64_t clusters(const rft__cuda_facts *f, const rft__cuda_config *c, int64_t count) {
    return c->split > 1 ? count : rft__min(count, slots(f, c));
}

/* Waves of tiles; a tail is half of one. */
static double waves(const rft__cuda_facts *f, const rft__cuda_config *c, int64_t count) {
    const int64_t wave = slots(f, c), rest = count % wave;
    const double last = rest == 0 ? 0.0 : c->option[TAIL] && 2 * rest <= wave ? 0.5 : 1.0;
    return (double)(count / wave) + last;
}

/* Rows of units that a wave walks down before it goes right: such that the wave reads the fewest rows of X and W. */
static int64_t raster_group(const rft__cuda_facts *f, const rft__cuda_config *c, rft__tiles u) {
    const int64_t wave = slots(f, c), bm = c->row->bm * down_of(c), bn = c->row->bn * across_of(c);
    int64_t best = 1, least = INT64_MAX;
    for (int64_t g = 1; g <= rft__min(u.m, MAX_GROUP); g++) {
        const int64_t rows = g * bm + rft__ceil_div(wave, g) * bn;
        best = rows < least ? g : best;
        least = rft__min(rows, least);
    }
    return best;
}

static int chunks_of(const cut *t, int columns) { return t->wm / 64 * (int)rft__ceil_div(columns, RFT_CHUNK_COLUMNS); }

/* Whether a list leaves registers for y to wait in: with an activation (which counts 10), a matrix or three ops ptxas has so many
 * columns under way at a time that it spills 8 to 2000 bytes. */
static bool is_light(const rft__problem *p) { return !reads(p, RFT__EPI_MATRIX) && instructions_of(p) <= 8; }

/* Whether a list should not be there once a register: it is long, or products hide it, and registers are few. */
static bool is_rolled(const rft__problem *p, const rft__cuda_config *c) {
    return instructions_of(p) > 40 || (c->option[PING_PONG] && !is_light(p));
}

/* Whether packed y waits in registers, in half as many as the sums have, and is stored while the next tile is multiplied: a chunk
 * a step must do. */
static bool deferred(const rft__problem *p, const rft__cuda_config *c) {
    const cut t = cut_of(p, c);
    return packed(p, c) && !turned(p, c) && !c->option[PING_PONG] && is_light(p) &&
           rft__ceil_div(p->w.k, c->row->bk) >= chunks_of(&t, p->epi.glu_at >= 0 ? t.wn / 2 : t.wn);
}

/* ---- configs ---- */

/* A box begins at a multiple of so many bytes along the contiguous side: elsewhere the copy is an illegal instruction to an H200,
 * which no manual says. */
enum { MAP_COLUMN = 16 };

static const char *refuse(const rft__problem *p, int64_t m, const rft__cuda_row *r) {
    if (r->compute == RFT__CUDA_TF32 && (rft__cuda_x_mn(p) || rft__cuda_w_mn(p))) {
        return "multiplies tf32 from K-contiguous x and w only";
    }
    if (rft__cuda_w_mn(p) && halves(p) && p->w.n / 2 * rft__cuda_size(r->w) % MAP_COLUMN != 0) {
        return "copies an MN-contiguous w from multiples of 16 bytes on; its up half begins elsewhere";
    }
    if (m > INT32_MAX - 1024 || p->w.n > INT32_MAX - 1024 || units(p, &(rft__cuda_config){.row = r}, m).count > MAX_UNITS) {
        return "counts at most 2^30 tiles";
    }
    return NULL;
}

/* Whether boxes of 8 rows (a swizzle's atom), two blocks and gated halves divide the tile, and gate and up meet in a chunk if
 * they must. */
static bool divides(const rft__problem *p, const rft__cuda_config *c) {
    const rft__cuda_row *const r = c->row;
    const cut t = cut_of(p, c);
    const int part = halves(p) ? t.wn / 2 : t.w_rows;
    const bool x = r->bm % (t.x_box * across_of(c)) == 0, w = part % t.w_box == 0 && r->bn % (t.w_box * down_of(c)) == 0;
    const bool meet = p->epi.glu_at < 0 || t.wn % RFT_CHUNK_COLUMNS == 0 || packed(p, c);
    return x && (w || (!halves(p) && !rft__cuda_w_mn(p))) && t.w_box % 8 == 0 && meet;
}

/* Whether the f32 sums of a tile may take the place of the ring. */
static bool sums_fit(const rft__problem *p, const rft__cuda_config *c) {
    const cut t = cut_of(p, c);
    return t.consumers * 4 * chunks_of(&t, t.wn) * RFT_CHUNK_BYTES <= c->stages * t.stage_bytes;
}

static bool useful(const rft__cuda_facts *f, const rft__problem *p, int64_t m, const rft__cuda_config *c) {
    const rft__tiles t = rft__cuda_tiles(p, c->row, m);
    const int64_t steps = rft__ceil_div(p->w.k, c->row->bk);
    if (c->split > 1) {
        /* Tall tiles that are not turned want all that shared memory gives. Flat ones above each other read W twice and lost
         * (us on an H200, m = 128: 2112 x 7168 64x64 by 2 14.7, 128x64 by 3 13.3; 4096 x 4096 64x128 by 2 14.4, 128x64 12.7). */
        const bool shape = c->row->bm < 4 * c->row->bn && (c->row->bm > 64 || t.m == 1);
        return shape && !p->batch_invariant && t.count <= slots(f, c) && steps >= 4 * c->split && sums_fit(p, c);
    }
    if (c->option[PING_PONG]) {
        /* One warpgroup must have registers for the tile: 128 x 192 leave it too few to be fast (28672 x 4096, m = 1024: 379 us,
         * 128 x 176 341). Within a wave one works alone, which reads no more of shared memory than two that cut 64 x 128. */
        const int most = t.count <= f->sms ? 64 * 128 : packed(p, c) ? 128 * 176 : 128 * 128;
        return c->row->bm * c->row->bn <= most && (c->row->bm == 64) == (t.count <= f->sms);
    }
    /* Clusters of four leave SMs idle: measured to pay within a wave. */
    const bool four = c->option[SHARE] != SHARE_BOTH || units(p, c, m).count <= slots(f, c);
    return t.m >= down_of(c) && t.n >= across_of(c) && four;
}

/* Whether the last tiles are shared: their f32 sums take the place of the ring, and half of k must do for y that is deferred.
 * Within a wave nothing is shared, or all, which split does faster; and the loop that can share costs a short tile (4096 x 4096,
 * m = 256, 128x64 in clusters of two, on an H200: 16.8 us with it, 16.1 without). */
static bool shares_tail(const rft__cuda_facts *f, const rft__problem *p, int64_t m, const rft__cuda_config *c) {
    const rft__cuda_row *const r = c->row;
    const cut t = cut_of(p, c);
    const bool chunks = p->epi.glu_at < 0 || t.wn % RFT_CHUNK_COLUMNS == 0;
    return c->cluster == 2 && c->split == 1 && !turned(p, c) && !c->option[PING_PONG] && !p->batch_invariant && chunks &&
           rft__ceil_div(p->w.k, r->bk) >= 2 * MAX_CHUNKS && sums_fit(p, c) && units(p, c, m).count > slots(f, c);
}

/* A second chunk of y is staged where it costs no stage. */
static void fill_shared(const rft__cuda_facts *f, const rft__problem *p, rft__cuda_config *c) {
    c->option[STAGED] = 1;
    const int most = stages(f, p, c);
    c->option[STAGED] = 2;
    c->stages = stages(f, p, c);
    if (packed(p, c) && most > c->stages) {
        c->option[STAGED] = 1, c->stages = most;
    }
}

static void add(const rft__cuda_facts *f, const rft__problem *p, int64_t m, rft__cuda_config c, rft__cuda_config *out, int *n) {
    fill_shared(f, p, &c);
    c.option[TAIL] = shares_tail(f, p, m, &c);
    if (*n < RFT__CUDA_CONFIGS && c.stages >= 2 && divides(p, &c) && useful(f, p, m, &c)) {
        out[(*n)++] = c;
    }
}

static int configs(const rft__cuda_facts *f, const rft__problem *p, int64_t m, const rft__cuda_row *row, rft__cuda_config *out,
                   char *reason) {
    static const int splits[] = {2, 3, 4, 6, 8};
    const char *const why = refuse(p, m, row);
    int n = 0;
    if (why != NULL) {
        return rft__cuda_refuse(reason, "%s", why);
    }
    for (int share = SHARE_NOTHING; share <= SHARE_BOTH; share++) {
        for (int turns = 0; turns < 2 - (share == SHARE_BOTH); turns++) {
            rft__cuda_config c = {.row = row, .split = 1, .option = {share, turns}};
            c.cluster = down_of(&c) * across_of(&c);
            add(f, p, m, c, out, &n);
        }
    }
    for (size_t i = 0; i < sizeof splits / sizeof splits[0]; i++) {
        add(f, p, m, (rft__cuda_config){.row = row, .split = splits[i], .cluster = splits[i]}, out, &n);
    }
    return n > 0 ? n : rft__cuda_refuse(reason, "boxes of 64 rows and halves of a gated unit do not divide its tile");
}

/* ---- cost: fitted to 409 configs at 48 products on an H200 such that the config it names is fast: first by the time of that
 * config over the best one's, then by the error. Graph launches back to back with weights from memory, a peer between them ----
 * From some ten GFLOP on the chip is at its power limit, so a call's time is its energy: that of products. Below, whichever of
 * products, loads from L2 and memory is slowest hides most of the others. */

static const double START = 2.1e-6;       /* seconds: a launch, first bytes, last store */
static const double SUSTAINED = 5.3e12;   /* FLOP/s of an SM for long: power allows no more */
static const double BURST = 1.07;         /* times that where others wait */
static const double L2_POWER = 0.02;      /* of the time that L2 takes: its energy */
static const double TURNS_POWER = 1.01;   /* times the energy of products, where warpgroups take turns */
static const double HIDDEN = 0.1;         /* of an epilogue's time, where products hide it: its energy */
static const double TAKES = 92.0;         /* bytes a clock into an SM */
static const double SHARED_READS = 128.0; /* bytes a clock that wgmma reads of shared memory */
static const double IN_STEP = 44.0;       /* clocks of a stage, where blocks that share an operand wait for each other */
static const double TOGETHER = 1.95;      /* times L2's rate, where W passes it once: blocks side by side ask for the same */
static const double NARROW = 2.8;         /* the same in a wave that memory does not pace */
static const double PACED = 0.6;          /* of the time of products: memory that takes less does not pace them */
static const double OVERLAP = 4.2;        /* norm in which products, L2 and memory add up */
static const double EPILOGUE = 11.0;      /* outputs of a tile a clock, where they are deferred */
static const double SUM_FIRST = 1.0e-6;   /* seconds: parts of k meet */
static const double SUM_TILE = 2.1e-6;    /* to send the sums of 128 x 128 to another block */

/* Clocks of a stage, of which TMA brings all from L2 or another block. Each wgmma of 64 x wn reads 64 + wn rows. Where
 * warpgroups take turns the ring runs ahead while they change places, and nobody waits for another block, unless all have one
 * tile (narrow; 1024 x 4096 at m = 512, 64x64 by turns on an H200: 12.3 us shared, 10.8 not). */
static double stage_clocks(const rft__problem *p, const rft__cuda_config *c, bool narrow) {
    const rft__cuda_row *const r = c->row;
    const double bytes = (double)r->bk * element(r), wn = cut_of(p, c).wn, multiply = r->bm * r->bn * bytes / 4096.0;
    const double reads = r->bm * r->bn / (64.0 * wn) * (64.0 + wn) * bytes / SHARED_READS;
    const double wait = c->option[SHARE] && (!c->option[PING_PONG] || narrow) ? IN_STEP : 0.0;
    return fmax(fmax(multiply, reads), (r->bm + r->bn) * bytes / TAKES) + wait;
}

/* Clocks of a tile's epilogue as far as it cannot wait: rounding in registers; that and the list; or f32 through shared memory
 * twice. */
static double epilogue_clocks(const rft__problem *p, const rft__cuda_config *c) {
    const double tile = (double)c->row->bm * c->row->bn, list = tile * instructions_of(p) / 128.0;
    if (deferred(p, c)) {
        return tile / EPILOGUE * (1.0 + 0.5 * p->epi.n_op);
    }
    return packed(p, c) ? tile / EPILOGUE + list : 500.0 + tile / 16.0 + list;
}

/* Clocks that one warpgroup waits beyond that in a rolled list: for each slice, and for a matrix that it reads itself. Products
 * of the other hide it, but for the last (4096 x 4096 at m = 2048, 128x176 by turns on an H200: 93.7 us bare, 99.8 with
 * gelu_tanh, 110.8 with a residual). */
static double waiting_clocks(const rft__problem *p, const rft__cuda_config *c) {
    const double tile = (double)c->row->bm * c->row->bn;
    const bool turns = packed(p, c) && c->option[PING_PONG], matrix = reads(p, RFT__EPI_MATRIX);
    return turns && is_rolled(p, c) ? tile * (instructions_of(p) / 32.0 + matrix) : 0.0;
}

/* Seconds of `n` waves' products and of what makes them wait: each epilogue, or, where warpgroups take turns, the last. A tile's
 * turn is over when the other's epilogue is. */
static double busy_seconds(const rft__problem *p, const rft__cuda_config *c, double n, double products, double epilogue) {
    if (c->option[PING_PONG]) {
        return fmax(n * products, 0.5 * n * (products + epilogue)) + epilogue;
    }
    return n * products + (deferred(p, c) ? 1.0 + 0.05 * n : n) * epilogue;
}

/* Bytes that L2 gives for one k of a block: what two blocks share once, and X once where all read the same. */
static double bytes_a_k(const rft__cuda_config *c, rft__tiles u) {
    const rft__cuda_row *const r = c->row;
    const double x = u.m == 1 && down_of(c) == 1 ? 0.0 : r->bm;
    return (c->split > 1 ? x + r->bn : x / across_of(c) + (double)r->bn / down_of(c)) * element(r);
}

static double meeting(const rft__cuda_row *r, int parts) {
    const double tiles = (double)r->bm * r->bn / (128.0 * 128.0);
    return parts == 1 ? 0.0 : SUM_FIRST + SUM_TILE * tiles * 2.0 * (parts - 1) / parts;
}

static double seconds(const rft__cuda_facts *f, const rft__problem *p, int64_t m, const rft__cuda_config *c) {
    const rft__cuda_row *const r = c->row;
    const double flops = fmin(r->compute == RFT__CUDA_TF32 ? f->flops_tf32 * 2.0 : f->flops_16, SUSTAINED * f->sms);
    const rft__tiles u = units(p, c, m);
    const double k = (double)rft__round_up(rft__ceil_div(p->w.k, c->split), r->bk), blocks = (double)u.count * c->cluster;
    const double n = waves(f, c, u.count), hertz = BURST * flops / f->sms / 4096.0;
    const double epilogue = epilogue_clocks(p, c) / hertz, waiting = waiting_clocks(p, c) / hertz;
    const double memory = rft__cuda_traffic(p, m) / f->read_bps, stages = k / r->bk / hertz;
    const bool narrow = n <= 1.0 && memory < PACED * stages * stage_clocks(p, c, false);
    const double busy = busy_seconds(p, c, n, stages * stage_clocks(p, c, narrow), epilogue + waiting);
    const bool once = u.m <= raster_group(f, c, u) && (u.m == 1 || across_of(c) == 1);
    const double l2 = blocks * k * bytes_a_k(c, u) / (f->l2_bps * (!once ? 1.0 : narrow ? NARROW : TOGETHER));
    const double together = pow(pow(busy, OVERLAP) + pow(l2, OVERLAP) + pow(memory, OVERLAP), 1.0 / OVERLAP);
    const double lists = (c->option[PING_PONG] ? HIDDEN : 1.0) * n * epilogue;
    const double products = blocks * r->bm * r->bn * k * element(r) / flops * (c->option[PING_PONG] ? TURNS_POWER : 1.0);
    const double power = products + L2_POWER * l2 + lists + waiting;
    return START + fmax(together + meeting(r, c->split), power);
}

/* ---- text, launch, maps ---- */

/* Spans of 8 columns whose operands are fetched together: 1, 2 or 4, by the registers that hold them. */
static int spans_ahead(const rft__problem *p) {
    int words = 0;
    for (int i = 0; i < p->epi.n_op; i++) {
        const rft_epi_op *const op = &p->epi.op[i];
        const rft__epi_access access = rft__epi_access_of(op->kind);
        const bool wide = access == RFT__EPI_MATRIX || access == RFT__EPI_COLUMN, seed = access == RFT__EPI_SEED;
        words += (wide ? 2 * rft__cuda_size(op->type) : seed ? 4 : access == RFT__EPI_ROW) * (i < p->epi.glu_at ? 2 : 1);
    }
    return words <= 4 ? 4 : words <= 8 ? 2 : 1;
}

/* Where k is split, no more than a warp has to finish: a chunk is four rounds; and gate and up of two would spill. */
static int ahead(const rft__problem *p, const rft__cuda_config *c) {
    const cut t = cut_of(p, c);
    const int most = c->split > 1 ? 4 * chunks_of(&t, t.wn) / c->split : 4, fit = spans_ahead(p);
    return c->split > 1 && p->epi.glu_at >= 0 ? 1 : most >= fit ? fit : most >= 2 ? 2 : 1;
}

static void text(const rft__problem *p, const rft__cuda_config *c, rft__text *t) {
    const cut of = cut_of(p, c);
    const rft_epi_op *const residual = streamed(p, c);
    rft__text_add(t, "#define RFT_PACKED %d\n#define RFT_DEFERRED %d\n#define RFT_TURNED %d\n#define RFT_ROLLED %d\n",
                  packed(p, c), deferred(p, c), turned(p, c), is_rolled(p, c));
    rft__text_add(t, "#define RFT_RESIDUAL %d\n#define RFT_RESIDUAL_OPERAND %u\n#define RFT_RESIDUAL_TYPE %d\n", residual != NULL,
                  residual != NULL ? residual->operand : 0, residual != NULL ? (int)residual->type : 0);
    rft__text_add(t, "#define RFT_AHEAD %d\n", ahead(p, c));
    rft__text_add(t, "#define RFT_WM %d\n#define RFT_WN %d\n#define RFT_X_BOX %d\n#define RFT_W_BOX %d\n", of.wm, of.wn, of.x_box,
                  of.w_box);
}

/* TMA takes several clocks over each row that is not there, so boxes of the last tile have no more rows than needed: rows of one
 * of `boxes` that bring what `count` rows leave for it. 0: there is no such tile, nor one beyond all in a unit of `tiles`. */
static int last_rows(int64_t count, int tile, int boxes, int tiles) {
    const int64_t rest = count % tile;
    const bool absent = rft__ceil_div(count, tile) % tiles != 0;
    return rest == 0 ? absent * 8 : (int)rft__round_up(rft__ceil_div(rest, boxes), 8);
}

static int last_x_rows(const rft__problem *p, const rft__cuda_config *c, int64_t m) {
    return rft__cuda_x_mn(p) ? 0 : last_rows(m, c->row->bm, across_of(c), down_of(c));
}

/* Gate and up rows end at different places of a tile. */
static int last_w_rows(const rft__problem *p, const rft__cuda_config *c) {
    return rft__cuda_w_mn(p) || halves(p) ? 0 : last_rows(p->w.n, c->row->bn, down_of(c), across_of(c));
}

static void launch(const rft__cuda_facts *f, const rft__problem *p, const rft__cuda_config *c, int64_t m, rft__cuda_launch *l) {
    const rft__tiles u = units(p, c, m);
    const cut t = cut_of(p, c);
    *l = (rft__cuda_launch){.grid = {(unsigned)(clusters(f, c, u.count) * c->cluster), 1, 1},
                            .block = 32 * (unsigned)c->row->warps,
                            .cluster = (unsigned)c->cluster,
                            .shared = (unsigned)(fixed_bytes(&t, c) + c->stages * t.stage_bytes),
                            .number = {(int)u.m, (int)u.n, (int)raster_group(f, c, u), (int)u.count, last_x_rows(p, c, m),
                                        last_w_rows(p, c)}};
}

static void maps(const rft__problem *p, const rft__cuda_config *c, const rft__cuda_args *a,
                 rft__cuda_map_spec map[RFT_CUDA_MAPS]) {
    const cut t = cut_of(p, c);
    const int x_last = last_x_rows(p, c, a->m), w_last = last_w_rows(p, c);
    map[0] = rft__cuda_x_map(p, a, rft__cuda_x_mn(p) ? c->row->bk : t.x_box);
    map[1] = rft__cuda_w_map(p, a, rft__cuda_w_mn(p) ? c->row->bk : t.w_box);
    if (packed(p, c) && rft__y_fits_map((uintptr_t)a->y, p->epi.n_out, a->ldy, p->batch > 1 ? a->y_batch_stride : 0)) {
        map[2] = rft__cuda_map_of(a->y, p->y, p->epi.n_out, a->m, p->batch, a->ldy, a->y_batch_stride,
                                  turned(p, c) ? RFT_CHUNK_COLUMNS : RFT_CHUNK_ROWS);
    }
    const rft_epi_op *const residual = streamed(p, c);
    const rft__cuda_operand *const o = residual != NULL ? &a->operand[residual->operand] : NULL;
    if (o != NULL && rft__fits_map((uintptr_t)o->ptr, o->ld, p->batch > 1 ? o->batch_stride : 0)) {
        map[5] = rft__cuda_map_of(o->ptr, residual->type, p->epi.n_out, a->m, p->batch, o->ld, o->batch_stride, c->row->bm);
    }
    if (x_last > 0) {
        map[3] = rft__cuda_x_map(p, a, x_last);
    }
    if (w_last > 0) {
        map[4] = rft__cuda_w_map(p, a, w_last);
    }
}

static const char *unsuited(const rft__problem *p, const rft__cuda_config *c, const rft__cuda_args *a) {
    (void)c;
    return rft__cuda_unaligned(p, a, 16, 16);
}

const rft__cuda_family rft__cuda_gemm_sm90 = {
    .name = "gemm_sm90",
    .source = "gemm_sm90.cu",
    .configs = configs,
    .seconds = seconds,
    .text = text,
    .launch = launch,
    .maps = maps,
    .unsuited = unsuited,
    .any_m = true,
};
