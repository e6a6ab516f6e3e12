/* SPDX-License-Identifier: Apache-2.0
 *
 * measure_cuda.c - the roofs of a GPU by kernels/probe.cu: bytes read and copied in memory and in L2, multiply-adds of each
 * unit, the time of an empty kernel. Called by measure.c.
 *
 * As on the CPU, a roof is the best that any way of asking reaches, here loads in flight and blocks on an SM; each way counts by
 * the fastest of its replays, since a GPU that was throttled or shared in one of them is not slower for it.
 */
#include "probe/measure_cuda.h"

#include "base/clock.h"
#include "cuda/cuda_device.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PROBE_READ = 1, PROBE_COPY, PROBE_EMPTY, PROBE_FFMA, PROBE_MMA, PROBE_WGMMA }; /* of probe.cu */
enum { REPLAYS = 7, EMPTY_CALLS = 1000, TEXT_BYTES = 160, WAYS = 6 };
#define LEAST_SECONDS 3e-3 /* of one replay */
#define HBM_BYTES     ((size_t)2 << 30)

typedef struct unit { /* of arithmetic */
    const char *op;   /* as in the profile */
    rft_type type;
    int probe, compute; /* compute: RFT_COMPUTE_TYPE */
    int threads;        /* of a block */
    double flops;       /* of a block and one of its steps */
    int arch;           /* that has it; 0: all */
} unit;

/* probe.cu: a thread has 8 sums and 16 rounds of them; a warp 8 tiles of 16x8 and 4 rounds; a warpgroup 4 of 64x256. */
#define FFMA_FLOPS(threads)     (2.0 * 8 * 16 * (threads))
#define MMA_FLOPS(threads, k)   (2.0 * 16 * 8 * (k)*8 * 4 * ((threads) / 32))
#define WGMMA_FLOPS(threads, k) (2.0 * 64 * 256 * (k)*4 * ((threads) / 128))
static const unit units[] = {
    {"ffma_f32", RFT_F32, PROBE_FFMA, RFT_F32, 512, FFMA_FLOPS(512), 0},
    {"mma_bf16", RFT_BF16, PROBE_MMA, RFT_BF16, 256, MMA_FLOPS(256, 16), 0},
    {"mma_f16", RFT_F16, PROBE_MMA, RFT_F16, 256, MMA_FLOPS(256, 16), 0},
    {"mma_tf32", RFT_F32, PROBE_MMA, 4, 256, MMA_FLOPS(256, 8), 0},
    {"wgmma_bf16", RFT_BF16, PROBE_WGMMA, RFT_BF16, 256, WGMMA_FLOPS(256, 16), 90},
    {"wgmma_f16", RFT_F16, PROBE_WGMMA, RFT_F16, 256, WGMMA_FLOPS(256, 16), 90},
    {"wgmma_tf32", RFT_F32, PROBE_WGMMA, 4, 256, WGMMA_FLOPS(256, 8), 90},
};
enum { UNITS = sizeof units / sizeof *units };

typedef struct way {                            /* of asking */
    int probe, compute, threads, loads, blocks; /* blocks: on an SM */
} way;

/* Threads, loads in flight of each, blocks on an SM. */
static const int memory_ways[WAYS][3] = {{512, 4, 2}, {512, 8, 2}, {256, 8, 4}, {1024, 4, 2}, {512, 4, 4}, {256, 16, 2}};

typedef struct prober {
    rft_ctx *ctx;
    rft__cuda_device *d;
    void (*progress)(void *user, const char *what);
    void *user;
    double deadline;
    void *memory; /* of HBM_BYTES, or less on a small GPU */
    size_t bytes;
} prober;

/* ---- one kernel ---- */

typedef struct probe {
    const prober *p;
    way way;
    rft__cuda_kernel *kernel;
    unsigned grid;
    const void *from;
    void *to;
    long long count;
    int passes;
} probe;

static const rft__cuda_family family = {.name = "probe", .source = "probe.cu"};

static void config_text(const way *w, char *text, size_t cap) {
    snprintf(text, cap, "#define RFT_PROBE %d\n#define RFT_COMPUTE_TYPE %d\n#define RFT_THREADS %d\n#define RFT_LOADS %d\n",
             w->probe, w->compute, w->threads, w->loads);
}

static rft_status load(prober *p, const way *w, rft__cuda_kernel **kernel, rft_error *err) {
    char config[TEXT_BYTES];
    config_text(w, config, sizeof config);
    const rft__cuda_wanted wanted = {.family = &family, .config = config, .cluster = 1};
    return rft__cuda_kernels_get(p->d, &wanted, 1, kernel, err);
}

static rft_status launch(void *user, uint32_t i, void *stream, rft_error *err) {
    probe *b = user;
    void *parameters[] = {&b->from, &b->to, &b->count, &b->passes};
    const rft__cuda_launch l = {.grid = {b->grid, 1, 1}, .block = (unsigned)b->way.threads, .cluster = 1};
    (void)i;
    return rft__cuda_enqueue(b->p->d, b->kernel, &l, false, parameters, stream, "launching a probe", err);
}

static rft_status time_calls(probe *b, uint32_t calls, rft_timing *t, rft_error *err) {
    *t = (rft_timing){.struct_size = sizeof *t};
    return rft_measure_calls(b->p->ctx, launch, b, calls, t, err);
}

/* Seconds of one call. */
static rft_status fastest(probe *b, double *seconds, rft_error *err) {
    rft_timing t;
    RFT_TRY(time_calls(b, 1, &t, err));
    const double calls = fmin(ceil(LEAST_SECONDS / fmax(t.device_seconds, 1e-6)), EMPTY_CALLS);
    *seconds = INFINITY;
    for (int i = 0; i < REPLAYS && (i == 0 || rft__now() < b->p->deadline); i++) {
        RFT_TRY(time_calls(b, (uint32_t)calls, &t, err));
        *seconds = fmin(*seconds, t.device_seconds / calls);
    }
    return RFT_OK;
}

/* b's kernel in one way; amount: of what one call does, by which its speed counts. */
static rft_status try_way(prober *p, probe *b, double (*amount)(probe *b), double *best, rft_error *err) {
    double seconds = 0.0;
    RFT_TRY(load(p, &b->way, &b->kernel, err));
    b->grid = (unsigned)(p->d->facts.sms * b->way.blocks);
    const double work = amount(b);
    const rft_status status = fastest(b, &seconds, err);
    rft__cuda_kernel_drop(p->d, b->kernel);
    *best = status == RFT_OK ? fmax(*best, work / seconds * 1e-9) : *best;
    return status;
}

/* A roof is known to three or four digits. */
static double rounded(double value) {
    char text[32];
    snprintf(text, sizeof text, "%.4g", value);
    return strtod(text, NULL);
}

static void say(const prober *p, const char *where, const char *what) {
    char text[64];
    if (p->progress != NULL) {
        snprintf(text, sizeof text, "%s %s", where, what);
        p->progress(p->user, text);
    }
}

/* ---- memory ---- */

/* Pieces of 16 bytes, as many as the blocks take without a rest. */
static double bytes_moved(probe *b) {
    const long long chunk = (long long)b->way.threads * b->way.loads;
    b->count = b->count / chunk * chunk;
    return 16.0 * (double)b->count * b->passes * (b->way.probe == PROBE_COPY ? 2.0 : 1.0);
}

/* span: what a call walks through, for a copy both halves together. */
static rft_status memory_roof(prober *p, int kind, size_t span, int passes, double *gbps, rft_error *err) {
    double best = 0.0;
    for (int i = 0; i < WAYS && (i == 0 || rft__now() < p->deadline); i++) {
        const int *const w = memory_ways[i];
        probe b = {.p = p, .way = {kind, RFT_F32, w[0], w[1], w[2]}, .from = p->memory, .to = p->memory, .passes = passes};
        b.count = (long long)(span / 16);
        if (kind == PROBE_COPY) {
            b.count /= 2;
            b.to = (char *)p->memory + span / 2;
        }
        RFT_TRY(try_way(p, &b, bytes_moved, &best, err));
    }
    *gbps = rounded(best);
    return RFT_OK;
}

static rft_status measure_level(prober *p, const char *name, size_t span, int passes, rft_machine_level *level, rft_error *err) {
    snprintf(level->name, sizeof level->name, "%s", name);
    level->bytes = span;
    say(p, name, "read");
    RFT_TRY(memory_roof(p, PROBE_READ, span, passes, &level->read_gbps[0], err));
    say(p, name, "copy");
    return memory_roof(p, PROBE_COPY, span, passes, &level->copy_gbps[0], err);
}

/* What is in L2 is walked through often enough that the first pass, from memory, does not count. */
static rft_status measure_levels(prober *p, rft_machine *m, rft_error *err) {
    m->n_levels = 2;
    RFT_TRY(measure_level(p, "L2", (size_t)p->d->facts.l2 / 2, 64, &m->levels[0], err));
    return measure_level(p, "HBM", p->bytes, 1, &m->levels[1], err);
}

/* ---- arithmetic and launches ---- */

static const unit *unit_of(const probe *b) {
    int i = 0;
    while (units[i].probe != b->way.probe || units[i].compute != b->way.compute) {
        i++;
    }
    return &units[i];
}

static double flops_done(probe *b) { return unit_of(b)->flops * (double)b->count * b->grid; }

static rft_status measure_peak(prober *p, const unit *u, rft_machine_peak *peak, rft_error *err) {
    double best = 0.0;
    snprintf(peak->isa, sizeof peak->isa, "sm_%d", p->d->facts.arch);
    snprintf(peak->op, sizeof peak->op, "%s", u->op);
    peak->type = u->type;
    say(p, peak->isa, u->op);
    for (int blocks = 1; blocks <= (u->probe == PROBE_WGMMA ? 1 : 4); blocks *= 2) {
        probe b = {.p = p, .way = {u->probe, u->compute, u->threads, 1, blocks}, .to = p->memory, .count = 2048};
        RFT_TRY(try_way(p, &b, flops_done, &best, err));
    }
    peak->gflops[0] = rounded(best);
    return RFT_OK;
}

static rft_status measure_peaks(prober *p, rft_machine *m, rft_error *err) {
    m->n_peaks = 0;
    for (int i = 0; i < UNITS; i++) {
        if (units[i].arch == 0 || units[i].arch == p->d->facts.arch) {
            RFT_TRY(measure_peak(p, &units[i], &m->peaks[m->n_peaks], err));
            m->n_peaks++;
        }
    }
    return RFT_OK;
}

static rft_status measure_launch(prober *p, rft_machine *m, rft_error *err) {
    rft_timing t;
    probe b = {.p = p, .way = {PROBE_EMPTY, RFT_F32, 32, 1, 1}, .grid = 1};
    say(p, "launch", "of an empty kernel");
    RFT_TRY(load(p, &b.way, &b.kernel, err));
    const rft_status status = time_calls(&b, EMPTY_CALLS, &t, err);
    rft__cuda_kernel_drop(p->d, b.kernel);
    m->launch_us = rounded(t.device_seconds / EMPTY_CALLS * 1e6);
    m->enqueue_us = rounded(t.host_seconds / EMPTY_CALLS * 1e6);
    return status;
}

/* ---- all of it ---- */

bool rft__measure_cuda_config(int i, int arch, char *text, size_t cap) {
    way w = {PROBE_EMPTY, RFT_F32, 32, 1, 1};
    if (i >= 1 && i <= 2 * WAYS) {
        const int *const memory = memory_ways[(i - 1) / 2];
        w = (way){i % 2 ? PROBE_READ : PROBE_COPY, RFT_F32, memory[0], memory[1], memory[2]};
    }
    for (int u = 0, at = 2 * WAYS; i > 2 * WAYS; u++) {
        if (u == UNITS) {
            return false;
        }
        at += units[u].arch == 0 || units[u].arch == arch;
        if (at == i) {
            w = (way){units[u].probe, units[u].compute, units[u].threads, 1, 1};
            break;
        }
    }
    config_text(&w, text, cap);
    return true;
}

static rft_status measure(prober *p, rft_machine *m, rft_error *err) {
    RFT_TRY(measure_launch(p, m, err));
    RFT_TRY(measure_levels(p, m, err));
    return measure_peaks(p, m, err);
}

rft_status rft__measure_cuda(rft_ctx *ctx, double seconds, void (*progress)(void *user, const char *what), void *user,
                             rft_machine *machine, rft_error *err) {
    prober p = {.ctx = ctx, .d = rft__cuda_of(ctx->device), .progress = progress, .user = user};
    rft__cuda_scope scope;
    p.deadline = rft__now() + seconds;
    p.bytes = p.d->memory / 8 < HBM_BYTES ? (size_t)p.d->memory / 8 : HBM_BYTES;
    machine->n_counts = 1;
    machine->counts[0] = (uint32_t)p.d->facts.sms;
    RFT_TRY(rft_memory_alloc(ctx, p.bytes, &p.memory, err));
    rft_status status = rft_memory_fill(ctx, p.memory, 0x5a, p.bytes, err);
    if (status == RFT_OK) {
        status = rft__cuda_enter(p.d, &scope, err);
    }
    if (status == RFT_OK) {
        status = measure(&p, machine, err);
        rft__cuda_leave(&scope);
    }
    rft_memory_free(ctx, p.memory, p.bytes);
    return status;
}
