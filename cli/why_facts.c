/* SPDX-License-Identifier: Apache-2.0
 *
 * why_facts.c - collects what decides a layer's speed from the bounds and plans that `model` shows too, and what follows from it.
 */
#include "why_facts.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define MOST_M       ((int64_t)1 << 20)
#define WORTH_A_LOOK 0.05 /* of the linear layers' time */

static bool bound_at(const model_session *s, const run_options *o, const rft_layer *layer, int64_t m, rft_bound *b) {
    const rft_linear_desc desc = options_desc(o, layer->n, layer->k, m, m);
    *b = (rft_bound){.struct_size = sizeof *b};
    return s->m.job->has_machine &&
           rft_machine_bound(&s->m.job->machine, &desc, m, (uint32_t)s->m.job->context_threads, b, NULL) == RFT_OK;
}

static bool by_compute(const model_session *s, const model_row *row, int64_t m) {
    rft_bound b;
    return bound_at(s, &row->options, &row->layer, m, &b) && b.compute_seconds >= b.memory_seconds;
}

/* More rows only ever help arithmetic against the reading of W. */
static int64_t find_turn(const model_session *s, const model_row *row) {
    int64_t high = 1, low;
    while (high <= MOST_M && !by_compute(s, row, high))
        high *= 2;
    if (high > MOST_M)
        return 0;
    for (low = high / 2; high - low > 1;) {
        const int64_t middle = low + (high - low) / 2;
        *(by_compute(s, row, middle) ? &high : &low) = middle;
    }
    return high;
}

static void add_other(why_facts *f, rft_type x, const char *w) {
    run_options o = f->row->options;
    rft_bound b;
    char why[CLI_WHY];
    o.x = x;
    if (!parse_weight(w, &o.w, &o.w_scales, why) || f->row->layer.k % cli_block(o.w) != 0 || f->n_other == WHY_OTHERS ||
        !bound_at(f->s, &o, &f->row->layer, f->row->layer.m, &b))
        return;
    why_other *other = &f->other[f->n_other++];
    snprintf(other->type, sizeof other->type, "%s", w);
    other->bound_us = 1e6 * b.seconds;
}

/* Types with fewer bytes a weight than this W, which the device runs: a GPU decodes low-bit ones. */
static void add_others(why_facts *f) {
    const run_options *o = &f->row->options;
    const bool on_cpu = strncmp(o->device, "cpu", 3) == 0;
    const double bits = 8 * f->row->run_bytes / ((double)f->row->layer.n * (double)f->row->layer.k);
    if (bits > 16)
        add_other(f, RFT_BF16, "bf16");
    if (on_cpu && bits > 8.5)
        add_other(f, cli_8bit(o->x) ? RFT_F32 : o->x, "q8_0");
    if (on_cpu && bits > 4.5)
        add_other(f, cli_8bit(o->x) ? RFT_F32 : o->x, "q4_0");
}

/* Each op behind the product reads and writes Y once more where it stands alone. */
static double apart_bytes(const model_row *row) { return 2 * (double)row->layer.n_epi * row->y_bytes; }

static double time_of(const model_row *row) { return row->layer.runs * row->bench.bound_us; }

static void add_shares(why_facts *f) {
    const model_session *s = f->s;
    double all = 0, bytes = 0, flops = 0;
    f->rank = 1;
    for (int64_t i = 0; i < s->n; i++) {
        const model_row *row = &s->rows[i];
        all += time_of(row);
        bytes += row->layer.runs * row->bytes;
        flops += row->layer.flops;
        f->rank += time_of(row) > time_of(f->row);
    }
    f->share = all > 0 ? time_of(f->row) / all : 0;
    const double rest = s->rest.read_bytes + s->rest.write_bytes;
    const bool memory = strcmp(f->row->bench.bound, "memory") == 0;
    if (rest > 0)
        f->linear_share = memory ? bytes / (bytes + rest) : flops / (flops + s->rest.flops);
}

/* ---- what to do ---- */

__attribute__((format(printf, 2, 3))) static void advise(why_facts *f, const char *format, ...) {
    va_list args;
    if (f->n_advice == WHY_ADVICE)
        return;
    va_start(args, format);
    vsnprintf(f->advice[f->n_advice++], WHY_TEXT, format, args);
    va_end(args);
}

static void advise_on_bytes(why_facts *f) {
    const rft_layer *layer = &f->row->layer;
    const why_other *best = f->n_other ? &f->other[f->n_other - 1] : NULL;
    if (best && best->bound_us < 0.9 * f->row->bench.bound_us)
        advise(f, "fewer bytes: W as %s would bound it at %.4g us, %.2g times as fast", best->type, best->bound_us,
               f->row->bench.bound_us / best->bound_us);
    if (f->turn_m > 2 * layer->m)
        advise(f, "more rows: up to M = %lld they cost little beside the reading of W", (long long)f->turn_m);
}

static void advise_on_arithmetic(why_facts *f) {
    const run_options *o = &f->row->options;
    for (int i = 0; i < f->n_other; i++)
        if (f->other[i].bound_us < 0.9 * f->row->bench.bound_us)
            advise(f, "a narrower product: X and W as %s would bound it at %.4g us", f->other[i].type, f->other[i].bound_us);
    if (cli_low_bit(o->w) && o->compute != RFT_COMPUTE_I8 && !cli_8bit(o->x) && strncmp(o->device, "cpu", 3) == 0)
        advise(f, "--compute i8 rounds X to 8 bits and multiplies so, where W's codes are whole numbers");
}

static void advise_on_time(why_facts *f) {
    const bench_row *b = &f->row->bench;
    if (b->us <= 0)
        advise(f, "--run measures it on the model's own weights");
    else if (b->bound_us > 0 && b->pct_roof >= 85)
        advise(f, "its kernel is at %.0f %% of the bound: only another type, phase or machine makes it faster", b->pct_roof);
    else if (b->bound_us > 0)
        advise(f, "%.0f %% of the bound: `rooftile explain` lists the other kernels, `bench --vs` times other libraries",
               b->pct_roof);
}

/* A machine that is described can neither be measured nor run on. */
static void add_advice(why_facts *f) {
    const model_row *row = f->row;
    const bool described = f->s->m.run.machine != NULL;
    if (f->share > 0 && f->share < WORTH_A_LOOK)
        advise(f, "look at a larger one first: this one has %.1f %% of the linear layers' time", 100 * f->share);
    if (row->decoded)
        advise(f, "W is decoded when it is loaded: its run reads %.2g times the stored bytes",
               row->run_bytes / (double)row->layer.weight_bytes);
    if (f->has_bound && f->memory_us >= f->compute_us)
        advise_on_bytes(f);
    else if (f->has_bound)
        advise_on_arithmetic(f);
    else if (!described)
        advise(f, "`rooftile roofline` measures this machine, so that bounds are known");
    if (!described)
        advise_on_time(f);
}

void why_collect(const model_session *s, const model_row *row, why_facts *f) {
    rft_bound b;
    *f = (why_facts){.s = s, .row = row};
    f->has_bound = bound_at(s, &row->options, &row->layer, row->layer.m, &b);
    if (f->has_bound) {
        f->compute_us = 1e6 * b.compute_seconds;
        f->memory_us = 1e6 * b.memory_seconds;
        f->turn_m = find_turn(s, row);
        add_others(f);
    }
    f->apart_bytes = apart_bytes(row);
    add_shares(f);
    add_advice(f);
}
