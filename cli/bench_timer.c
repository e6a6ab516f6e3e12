/* SPDX-License-Identifier: Apache-2.0
 *
 * bench_timer.c - the measurement loop. Called by bench and model.
 * A sample is one call, or a batch of calls where one takes under 100 us, so that reading the clock stays below 0.1 %. On a GPU
 * it is a graph of calls that takes at least 2 ms, so that launching the graph itself stays below 0.5 %.
 */
#define _GNU_SOURCE
#include "bench_timer.h"
#include "buffer.h"

#include <stdlib.h>
#include <time.h>

#define SAMPLE_SECONDS  100e-6
#define WARM_UP_SECONDS 0.05
#define SETTLE_SECONDS  0.1
#define SLICE_NS        500000L
#define MOST_SAMPLES    1000 /* in one turn */
#define REPLAY_SECONDS  2e-3
#define MOST_REPLAYED   4096 /* calls */
#define MOST_OVERRUN    4    /* times its share of time, where other work slows calls far below the fastest one */

static double clock_seconds(clockid_t id) {
    struct timespec t;
    clock_gettime(id, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

double now_seconds(void) { return clock_seconds(CLOCK_MONOTONIC); }

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double median_of(double *v, int64_t n) {
    if (n == 0)
        return 0;
    qsort(v, (size_t)n, sizeof *v, compare);
    return n % 2 ? v[n / 2] : 0.5 * (v[n / 2 - 1] + v[n / 2]);
}

/* Threads of the contender before may still spin for work: wait until this process is idle, 0.1 s at most. */
static void settle(void) {
    double end = now_seconds() + SETTLE_SECONDS;
    while (now_seconds() < end) {
        double cpu = clock_seconds(CLOCK_PROCESS_CPUTIME_ID), wall = now_seconds();
        nanosleep(&(struct timespec){0, SLICE_NS}, NULL);
        if (clock_seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu < 0.2 * (now_seconds() - wall))
            return;
    }
}

/* ---- one sample ---- */

static void call(contender *c) {
    if (!c->failed && c->call(c->self, c->calls++, NULL, &c->err) != RFT_OK)
        c->failed = true;
}

static double run_batch(contender *c) {
    double start = now_seconds();
    for (int64_t i = 0; i < c->batch; i++)
        call(c);
    return (now_seconds() - start) / (double)c->batch;
}

static rft_status replayed_call(void *user, uint32_t i, void *stream, rft_error *err) {
    contender *c = user;
    rft_status status = c->call(c->self, c->calls + i, stream, err);
    return status == RFT_OK && c->between ? foreign_run(c->between, stream, err) : status;
}

static double replay_batch(rft_ctx *ctx, contender *c, double *host) {
    rft_timing t = {.struct_size = sizeof t};
    if (!c->failed && rft_measure_calls(ctx, replayed_call, c, (uint32_t)c->batch, &t, &c->err) != RFT_OK)
        c->failed = true;
    c->calls += c->batch;
    *host = t.host_seconds / (double)c->batch;
    return t.device_seconds / (double)c->batch;
}

/* Seconds of one call; ctx NULL: of the CPU. */
static double time_sample(rft_ctx *ctx, contender *c, double *host) {
    return ctx ? replay_batch(ctx, c, host) : (*host = run_batch(c));
}

/* ---- rounds ---- */

/* Warms up, then fixes the calls in a sample and the samples in a turn by the fastest call seen. */
static void calibrate_cpu(contender *c, double turn_seconds) {
    settle();
    double start = now_seconds(), end = start, least = 0;
    do {
        double before = end;
        call(c);
        end = now_seconds();
        least = least == 0 || end - before < least ? end - before : least;
    } while (!c->failed && end - start < WARM_UP_SECONDS);
    c->batch = least > 0 && least < SAMPLE_SECONDS ? (int64_t)(SAMPLE_SECONDS / least) + 1 : 1;
    double samples = least > 0 ? turn_seconds / (least * (double)c->batch) : MOST_SAMPLES;
    c->turn = samples < 1 ? 1 : samples > MOST_SAMPLES ? MOST_SAMPLES : (int64_t)samples;
}

static int64_t clamp(double value, int64_t least, int64_t most) {
    return value < (double)least ? least : value > (double)most ? most : (int64_t)value;
}

/* A graph is made anew for each sample, so a turn counts all the time that one takes. */
static void calibrate_gpu(rft_ctx *ctx, contender *c, double turn_seconds) {
    double host;
    c->batch = 8;
    double least = time_sample(ctx, c, &host);
    int64_t all = clamp((double)c->spread_over, 1, MOST_REPLAYED);
    c->batch = clamp(least > 0 ? REPLAY_SECONDS / least + 1 : 1, all, MOST_REPLAYED);
    double start = now_seconds();
    time_sample(ctx, c, &host);
    c->turn = clamp(turn_seconds / (now_seconds() - start), 1, MOST_SAMPLES);
}

static double keep_sample(rft_ctx *ctx, contender *c) {
    double host, seconds = time_sample(ctx, c, &host);
    c->host[c->n_sample] = host;
    return c->sample[c->n_sample++] = seconds;
}

/* On the CPU, calls before the first sample of a turn wake the threads and refill what the contender before has displaced; a
 * graph's first replay does so anyway. */
static void take_turn(rft_ctx *ctx, contender *c, int64_t round, double seconds) {
    if (!ctx) {
        settle();
        run_batch(c);
    }
    const double end = now_seconds() + MOST_OVERRUN * seconds;
    double *mine = cli_alloc((size_t)c->turn, sizeof *mine);
    int64_t n = 0;
    for (; n < c->turn && (n == 0 || now_seconds() < end); n++)
        mine[n] = keep_sample(ctx, c);
    c->round[round] = median_of(mine, n);
    free(mine);
}

static void summarise(contender *c, const contender *first, int64_t rounds) {
    double *ratio = cli_alloc((size_t)rounds, sizeof *ratio);
    for (int64_t i = 0; i < rounds; i++)
        ratio[i] = c->round[i] / first->round[i];
    c->ratio = median_of(ratio, rounds);
    c->us = 1e6 * median_of(c->sample, c->n_sample);
    c->us_min = 1e6 * c->sample[0];
    c->spread = 1e6 * (c->sample[c->n_sample * 9 / 10] - c->sample[c->n_sample / 10]) / c->us;
    c->call_us = 1e6 * median_of(c->host, c->n_sample);
    free(ratio);
}

static void prepare(rft_ctx *ctx, contender *c, int64_t rounds, double turn_seconds) {
    if (ctx)
        calibrate_gpu(ctx, c, turn_seconds);
    else
        calibrate_cpu(c, turn_seconds);
    c->sample = cli_alloc((size_t)(c->turn * rounds), sizeof(double));
    c->host = cli_alloc((size_t)(c->turn * rounds), sizeof(double));
    c->round = cli_alloc((size_t)rounds, sizeof(double));
}

static void take_off(contender *c, const contender *idle, double idle_seconds, double idle_host, int64_t rounds) {
    for (int64_t i = 0; i < rounds; i++)
        c->round[i] -= idle->round[i];
    for (int64_t i = 0; i < c->n_sample; i++)
        c->sample[i] -= idle_seconds;
    for (int64_t i = 0; i < c->n_sample; i++)
        c->host[i] -= idle_host;
}

void measure(rft_ctx *ctx, contender *c, int n, int idle, int64_t rounds, double seconds) {
    rft_ctx *gpu = on_host(ctx) ? NULL : ctx;
    double turn_seconds = seconds / (double)rounds;
    for (int j = 0; j < n; j++)
        prepare(gpu, &c[j], rounds, turn_seconds);
    for (int64_t round = 0; round < rounds; round++)
        for (int j = 0; j < n; j++)
            take_turn(gpu, &c[j], round, turn_seconds);
    double idle_seconds = idle >= 0 ? median_of(c[idle].sample, c[idle].n_sample) : 0;
    double idle_host = idle >= 0 ? median_of(c[idle].host, c[idle].n_sample) : 0;
    for (int j = 0; j < n && idle >= 0; j++)
        if (j != idle)
            take_off(&c[j], &c[idle], idle_seconds, idle_host, rounds);
    for (int j = 0; j < n; j++)
        summarise(&c[j], &c[0], rounds);
    for (int j = 0; j < n; j++) {
        free(c[j].sample);
        free(c[j].host);
        free(c[j].round);
    }
}
