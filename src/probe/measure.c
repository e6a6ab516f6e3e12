/* SPDX-License-Identifier: Apache-2.0
 *
 * measure.c - the roofs of this machine: read and copy bandwidth of each memory level and the peak of each kind of
 * arithmetic, at 1, 2, 4, ... threads. Called through rooftile_analysis.h.
 *
 * A roof is the best that any way of asking reaches: the number of streams and the prefetch distance that suit a machine are
 * not known beforehand, and a roof that a kernel can beat is none. Each way is taken at the lower quartile of its samples, and a
 * sample takes about a millisecond: other work on the machine only adds time, and seldom leaves all threads alone for longer.
 * Each thread has its own part of the memory and is the first to touch it; all threads run at the same time.
 */
#include "api/api.h"
#include "base/clock.h"
#include "base/sized.h"
#include "cpu/cpuid.h"
#include "cpu/peak.h"
#include "probe/measure_cuda.h"
#include "probe/probe_team.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define DEFAULT_SECONDS 10.0
#define MAX_SECONDS     3600.0
#define SAMPLE_SECONDS  1e-3 /* thousands of times the clock's grain and the barrier's skew */
#define LEAST_DRAM      ((uint64_t)256 << 20)
#define WINDOW          ((size_t)8 << 20)              /* of a thread and pass: larger memory is walked through in such steps */
#define PART            ((size_t)16 * RFT_STREAM_STEP) /* of a thread's memory: whole steps of 8 streams and of a copy's halves */
enum { MAX_SAMPLES = 255, PEAK_ITERATIONS = 4096, PEAK_ROWS = 7 };

typedef struct prober {
    rft_ctx *ctx;
    rft_device_info device;
    const rft__stream *stream;
    void (*progress)(void *user, const char *what);
    void *user;
    rft_machine *machine;
    rft__team team;
    uint32_t count; /* index of the thread count being measured */
    unsigned char *memory;
    size_t memory_bytes;
    double slot, deadline; /* seconds for one way of asking; the end of all measuring */
} prober;

/* ---- one roof ---- */

/* Work that every thread of a team repeats, and how much of it one pass of one thread is. */
typedef struct load {
    void (*pass)(const struct load *load, unsigned char *memory, int passes);
    const prober *p;
    size_t bytes;    /* of a thread in one pass */
    size_t span, at; /* of a thread's memory: what passes walk through, and where the next one begins */
    int streams;
    size_t ahead;
    bool bypass;
    const rft__peak *peak;
    int passes;
} load;

static unsigned char *window(const load *l, unsigned char *memory, int pass) {
    return memory + (l->at + (size_t)pass * l->bytes) % l->span;
}

static void read_pass(const load *l, unsigned char *memory, int passes) {
    uint64_t checksum = 0;
    for (int i = 0; i < passes; i++) {
        checksum ^= l->p->stream->read(window(l, memory, i), l->bytes, l->streams, l->ahead);
    }
    __asm__ volatile("" : : "r"(checksum));
}

static void copy_pass(const load *l, unsigned char *memory, int passes) {
    for (int i = 0; i < passes; i++) {
        unsigned char *const from = window(l, memory, i);
        l->p->stream->copy(from + l->bytes / 2, from, l->bytes / 2, l->bypass);
    }
}

static void peak_pass(const load *l, unsigned char *memory, int passes) {
    double flops = 0.0;
    (void)memory;
    l->peak->run((int64_t)passes * PEAK_ITERATIONS, &flops);
}

static size_t part_of(const prober *p) { return p->memory_bytes / (size_t)p->team.n / PART * PART; }

static void run_load(void *arg, int i) {
    const load *l = arg;
    l->pass(l, l->p->memory + (size_t)i * part_of(l->p), l->passes);
}

static int compare_doubles(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double sample_seconds(prober *p, load *l) {
    const double seconds = rft__team_time(&p->team, run_load, l);
    l->at = l->span != 0 ? (l->at + (size_t)l->passes * l->bytes) % l->span : 0;
    return seconds / l->passes;
}

/* Seconds of one pass. The first sample warms up and says how many passes a sample needs. */
static double pass_seconds(prober *p, load *l) {
    double samples[MAX_SAMPLES];
    int n = 0;
    l->passes = 1;
    const double start = rft__now(), first = sample_seconds(p, l);
    const double passes = ceil(SAMPLE_SECONDS / fmax(first, 1e-9));
    l->passes = passes > 1.0 ? (int)passes : 1;
    const double end = fmin(start + p->slot, p->deadline);
    do {
        samples[n++] = sample_seconds(p, l);
    } while (n < MAX_SAMPLES && rft__now() < end);
    qsort(samples, (size_t)n, sizeof *samples, compare_doubles);
    return samples[n / 4];
}

/* A roof is known to three or four digits; more would only be noise in the file. */
static double rounded(double value) {
    char text[32];
    snprintf(text, sizeof text, "%.4g", value);
    return strtod(text, NULL);
}

static double best_of(prober *p, const load *ways, int n_ways, double work) {
    double best = 0.0;
    for (int i = 0; i < n_ways && (i == 0 || rft__now() < p->deadline); i++) {
        load l = ways[i];
        l.p = p;
        best = fmax(best, work * p->team.n / pass_seconds(p, &l));
    }
    return rounded(best * 1e-9);
}

static void say(const prober *p, const char *where, const char *what) {
    char text[96];
    if (p->progress != NULL) {
        snprintf(text, sizeof text, "%d thread%s: %s %s", p->team.n, p->team.n == 1 ? "" : "s", where, what);
        p->progress(p->user, text);
    }
}

/* ---- memory ---- */

static const struct {
    int streams;
    size_t ahead;
} read_ways[] = {{4, 0}, {1, 0}, {1, 1024}, {1, 4096}, {2, 2048}, {4, 1024}, {4, 4096}, {8, 0}, {8, 2048}};
enum { READ_WAYS = sizeof read_ways / sizeof *read_ways, COPY_WAYS = 2 };

static load walk(size_t span) {
    const size_t bytes = span < WINDOW ? span : WINDOW;
    return (load){.bytes = bytes, .span = span / bytes * bytes};
}

static double read_gbps(prober *p, size_t span) {
    load ways[READ_WAYS];
    for (int i = 0; i < READ_WAYS; i++) {
        ways[i] = walk(span);
        ways[i].pass = read_pass;
        ways[i].streams = read_ways[i].streams;
        ways[i].ahead = read_ways[i].ahead;
    }
    return best_of(p, ways, READ_WAYS, (double)ways[0].bytes);
}

static double copy_gbps(prober *p, size_t span) {
    load ways[COPY_WAYS];
    for (int i = 0; i < COPY_WAYS; i++) {
        ways[i] = walk(span);
        ways[i].pass = copy_pass;
        ways[i].bypass = i == 1;
    }
    return best_of(p, ways, COPY_WAYS, (double)ways[0].bytes);
}

/* What all threads together take of DRAM: four times the last cache, but no more than a quarter of the memory. */
static uint64_t dram_bytes(const rft_device_info *d) {
    const uint64_t last = d->l3 != 0 ? d->l3 : d->l2 * (uint64_t)d->threads,
                   wanted = last > LEAST_DRAM / 4 ? last * 4 : LEAST_DRAM;
    return d->memory != 0 && wanted > d->memory / 4 ? d->memory / 4 : wanted;
}

/* One thread's bytes at a level when n are at work: half of the cache, or of its share. 0: there is no such level.
 * Where the share of L3 is small, it is still more than L2 holds. */
static uint64_t level_bytes(const rft_device_info *d, const char *name, int n) {
    if (strcmp(name, "L1") == 0) {
        return d->l1d / 2;
    }
    if (strcmp(name, "L2") == 0) {
        return d->l2 / 2;
    }
    if (strcmp(name, "L3") == 0) {
        const uint64_t share = d->l3 / 2 / (uint64_t)n;
        return d->l3 != 0 && share < 2 * d->l2 ? 2 * d->l2 : share;
    }
    return dram_bytes(d) / (uint64_t)n;
}

/* More threads can leave some idle, so their roof is not below that of fewer: where it seems to be, they waited for each other
 * because other work held their cores. */
static double not_below_fewer(const prober *p, const double *roofs, double measured) {
    return p->count > 0 ? fmax(measured, roofs[p->count - 1]) : measured;
}

static void measure_level(prober *p, const char *name, rft_machine_level *level) {
    const size_t bytes = (size_t)fmin((double)level_bytes(&p->device, name, p->team.n), (double)part_of(p)) / PART * PART;
    snprintf(level->name, sizeof level->name, "%s", name);
    level->bytes = (uint64_t)bytes * (uint64_t)p->team.n;
    say(p, name, "read");
    level->read_gbps[p->count] = not_below_fewer(p, level->read_gbps, read_gbps(p, bytes));
    say(p, name, "copy");
    level->copy_gbps[p->count] = not_below_fewer(p, level->copy_gbps, copy_gbps(p, bytes));
}

static void touch(void *arg, int i) {
    const prober *p = arg;
    memset(p->memory + (size_t)i * part_of(p), i + 1, part_of(p));
}

static const char *const level_names[] = {"L1", "L2", "L3", "DRAM"};
enum { LEVELS = sizeof level_names / sizeof *level_names };

static void measure_levels(prober *p) {
    uint32_t n = 0;
    for (int i = 0; i < LEVELS; i++) {
        if (level_bytes(&p->device, level_names[i], p->team.n) >= PART) {
            measure_level(p, level_names[i], &p->machine->levels[n++]);
        }
    }
    p->machine->n_levels = n;
}

/* ---- arithmetic ---- */

/* A level above the context's is left alone, even if the machine has it. */
static bool in_use(const prober *p, const char *isa) {
    return rft__isa_available(isa) && rft__isa_find(isa) <= rft__isa_find(p->device.isa);
}

static void measure_peaks(prober *p) {
    uint32_t n = 0;
    const rft__peak *row;
    for (int i = 0; (row = rft__peak_row(i)) != NULL; i++) {
        if (!in_use(p, row->isa)) {
            continue;
        }
        double flops = 0.0;
        row->run(PEAK_ITERATIONS, &flops);
        rft_machine_peak *peak = &p->machine->peaks[n++];
        snprintf(peak->isa, sizeof peak->isa, "%s", row->isa);
        snprintf(peak->op, sizeof peak->op, "%s", row->op);
        peak->type = row->type;
        say(p, row->isa, row->op);
        const double gflops = best_of(p, &(const load){.pass = peak_pass, .peak = row}, 1, flops);
        peak->gflops[p->count] = not_below_fewer(p, peak->gflops, gflops);
    }
    p->machine->n_peaks = n;
}

/* ---- all of it ---- */

static void list_counts(rft_machine *m, uint32_t threads) {
    for (uint32_t n = 1; n < threads && m->n_counts + 1 < RFT_MACHINE_COUNTS; n *= 2) {
        m->counts[m->n_counts++] = n;
    }
    m->counts[m->n_counts++] = threads;
}

static void fill_head(const prober *p, rft_machine *m) {
    const time_t now = time(NULL);
    struct tm utc;
    snprintf(m->name, sizeof m->name, "%s", p->device.name[0] != '\0' ? p->device.name : "unknown");
    snprintf(m->device, sizeof m->device, "%s", p->ctx->backend->name);
    snprintf(m->isa, sizeof m->isa, "%s", p->device.isa);
    strftime(m->date, sizeof m->date, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
    snprintf(m->source, sizeof m->source, "measured");
}

static void choose_stream(prober *p) {
    const rft__stream *row;
    for (int i = 0; (row = rft__stream_row(i)) != NULL; i++) {
        p->stream = in_use(p, row->isa) ? row : p->stream;
    }
}

/* The memory is new for each thread count, since the threads that touch it first decide where it lies. */
static rft_status measure_count(prober *p, rft_error *err) {
    rft__allocator huge = p->ctx->allocator;
    huge.huge_pages = true;
    p->memory_bytes = (size_t)dram_bytes(&p->device);
    p->memory = rft__alloc(&huge, p->memory_bytes, 4096);
    if (p->memory == NULL) {
        RFT_FAIL(err, RFT_E_NOMEM, "no memory to measure DRAM with (%zu bytes)", p->memory_bytes);
    }
    rft__pool_run(p->team.pool, p->team.n, touch, p);
    measure_levels(p);
    measure_peaks(p);
    rft__release(&huge, p->memory, p->memory_bytes);
    return RFT_OK;
}

static rft_status measure_all(prober *p, double seconds, rft_error *err) {
    rft_machine *m = p->machine;
    const double ways = m->n_counts * (LEVELS * (READ_WAYS + COPY_WAYS) + PEAK_ROWS);
    p->deadline = rft__now() + seconds;
    p->slot = seconds / ways;
    RFT_TRY(rft__pool_create(&p->ctx->allocator, p->device.threads, NULL, NULL, &p->team.pool, err));
    rft_status status = RFT_OK;
    for (p->count = 0; p->count < m->n_counts && status == RFT_OK; p->count++) {
        p->team.n = (int)m->counts[p->count];
        status = measure_count(p, err);
    }
    rft__pool_free(p->team.pool);
    return status;
}

static rft_status measure_cpu(prober *p, double seconds, rft_error *err) {
    list_counts(p->machine, (uint32_t)p->device.threads);
    choose_stream(p);
    return measure_all(p, seconds, err);
}

rft_status rft_machine_measure(rft_ctx *ctx, double seconds, void (*progress)(void *user, const char *what), void *user,
                               rft_machine *machine, rft_error *err) {
    prober p = {.ctx = ctx, .device = {.struct_size = sizeof p.device}, .progress = progress, .user = user};
    if (ctx == NULL) {
        RFT_FAIL(err, RFT_E_ARG, "ctx is NULL");
    }
    if (!(seconds >= 0.0 && seconds <= MAX_SECONDS)) {
        RFT_FAIL(err, RFT_E_ARG, "seconds = %g: 0 (for %g) to %g is needed", seconds, DEFAULT_SECONDS, MAX_SECONDS);
    }
    RFT_TRY(rft__sized_check(machine, "machine", err));
    ctx->backend->describe(ctx->device, &p.device);
    rft_machine own = {.struct_size = sizeof own};
    p.machine = &own;
    seconds = seconds > 0.0 ? seconds : DEFAULT_SECONDS;
    fill_head(&p, &own);
    if (strcmp(ctx->backend->name, "cuda") == 0) {
        RFT_TRY(rft__measure_cuda(ctx, seconds, progress, user, &own, err));
    } else {
        RFT_TRY(measure_cpu(&p, seconds, err));
    }
    rft__sized_write(machine, &own, sizeof own);
    return RFT_OK;
}
