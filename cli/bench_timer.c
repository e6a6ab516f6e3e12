/* SPDX-License-Identifier: Apache-2.0
 *
 * bench_timer.c - the measurement loop. Called by bench and model.
 * A sample is one call, or a batch of calls where one takes under 100 us, so that reading the clock stays below 0.1 %.
 */
#define _GNU_SOURCE
#include "bench_timer.h"

#include <stdlib.h>
#include <time.h>

#define SAMPLE_SECONDS  100e-6
#define WARM_UP_SECONDS 0.05
#define SETTLE_SECONDS  0.1
#define SLICE_NS        500000L
#define MOST_SAMPLES    1000 /* in one turn */
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

static void call(contender *c) {
    if (!c->failed && !c->call(c->self, c->calls++))
        c->failed = true;
}

static double time_sample(contender *c) {
    double start = now_seconds();
    for (int64_t i = 0; i < c->batch; i++)
        call(c);
    return (now_seconds() - start) / (double)c->batch;
}

/* Warms up, then fixes the calls in a sample and the samples in a turn by the fastest call seen. */
static void calibrate(contender *c, double turn_seconds) {
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

/* Calls before the first sample of a turn wake the threads and refill what the contender before has displaced. */
static void take_turn(contender *c, int64_t round, double seconds) {
    settle();
    time_sample(c);
    const double *first = c->sample + c->n_sample;
    const double end = now_seconds() + MOST_OVERRUN * seconds;
    int64_t n = 0;
    for (; n < c->turn && (n == 0 || now_seconds() < end); n++)
        c->sample[c->n_sample++] = time_sample(c);
    double *copy = cli_alloc((size_t)n, sizeof *copy);
    for (int64_t i = 0; i < n; i++)
        copy[i] = first[i];
    c->round[round] = median_of(copy, n);
    free(copy);
}

static void summarise(contender *c, const contender *first, int64_t rounds) {
    double *ratio = cli_alloc((size_t)rounds, sizeof *ratio);
    for (int64_t i = 0; i < rounds; i++)
        ratio[i] = c->round[i] / first->round[i];
    c->ratio = median_of(ratio, rounds);
    c->us = 1e6 * median_of(c->sample, c->n_sample);
    c->us_min = 1e6 * c->sample[0];
    c->spread = 1e6 * (c->sample[c->n_sample * 9 / 10] - c->sample[c->n_sample / 10]) / c->us;
    free(ratio);
}

void measure(contender *c, int n, int64_t rounds, double seconds) {
    for (int j = 0; j < n; j++) {
        calibrate(&c[j], seconds / (double)rounds);
        c[j].sample = cli_alloc((size_t)(c[j].turn * rounds), sizeof(double));
        c[j].round = cli_alloc((size_t)rounds, sizeof(double));
    }
    for (int64_t round = 0; round < rounds; round++)
        for (int j = 0; j < n; j++)
            take_turn(&c[j], round, seconds / (double)rounds);
    for (int j = 0; j < n; j++)
        summarise(&c[j], &c[0], rounds);
    for (int j = 0; j < n; j++) {
        free(c[j].sample);
        free(c[j].round);
    }
}
