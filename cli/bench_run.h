/* SPDX-License-Identifier: Apache-2.0
 *
 * bench_run.h - from one shape to its rows: prove, time beside the peers, compare with the roof. Called by bench and model.
 */
#ifndef BENCH_RUN_H
#define BENCH_RUN_H

#include "bench_row.h"
#include "options.h"
#include "peers/peer.h"
#include "team.h"

typedef struct bench_job {
    const run_options *o;
    rft_ctx *ctx; /* NULL: the machine is described */
    const char *phase;  /* "", "decode:1" */
    const char *w_name; /* as shown; NULL: the type's name */
    peer_list peers;
    team *threads; /* of the separate passes, or NULL */
    bool has_machine;
    rft_machine machine;
    int context_threads;
    void (*emit)(void *user, const bench_row *row);
    void *user;
} bench_job;

/* Opens what the options ask for: context, profile, peers. An exit code; close it in any case. */
int bench_open(bench_job *job, const run_options *o);
/* Instead of it for a machine that is not here: rows can be planned, and have their bounds. */
void bench_describe(bench_job *job, const run_options *o, const rft_machine *machine);
void bench_close(bench_job *job);
/* Measures one product on the weights of a set and emits its rows. An exit code; CLI_FAILED: wrong, or above its roof. */
int bench_one(bench_job *job, weight_set *set, int64_t m);
/* The row of a product that is planned but not run: us is 0. An exit code. */
int bench_plan(const bench_job *job, int64_t n, int64_t k, int64_t m, bench_row *row);
/* The weights of a shape: random, or those of `source` (as stored). An exit code. */
int bench_weights(const bench_job *job, int64_t n, int64_t k, const rft_weight_src *source, weight_set *set);

#endif
