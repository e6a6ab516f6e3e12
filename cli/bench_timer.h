/* SPDX-License-Identifier: Apache-2.0
 *
 * bench_timer.h - times contenders side by side: they take turns round by round, so that drift of the machine meets all alike.
 * A contender is a function of a call number; what it calls, and which copy of the weights it reads, is its own affair.
 */
#ifndef BENCH_TIMER_H
#define BENCH_TIMER_H

#include "foreign.h"

typedef struct contender {
    rft_status (*call)(void *self, int64_t i, void *stream, rft_error *err);
    void *self;
    int64_t spread_over; /* calls that meet every copy of the weights once: on a GPU, the least in one sample */
    const foreign_kernel *between; /* runs behind each call; NULL: nothing does */
    bool failed;
    rft_error err;             /* of the call that failed; the contender is then dropped */
    double us, us_min, spread; /* median, least, (p90 - p10) / median over all samples */
    double call_us;            /* median that one call kept this thread */
    double ratio;              /* median over rounds of its time / the first contender's in that round */
    int64_t calls;             /* so far, the i of the next call */
    int64_t batch;             /* calls in one sample */
    double *sample, *round;    /* seconds a call; medians of rounds */
    double *host;              /* seconds that a call kept this thread */
    int64_t n_sample, turn;    /* turn: most samples in one round */
} contender;

double now_seconds(void);
double median_of(double *v, int64_t n); /* sorts v */
/* Times n contenders in `rounds` rounds for about `seconds` each. On a GPU a sample is one replay of a graph of calls.
 * idle: the contender whose time is taken off the others'; -1: none is. */
void measure(rft_ctx *ctx, contender *c, int n, int idle, int64_t rounds, double seconds);

#endif
