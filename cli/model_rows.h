/* SPDX-License-Identifier: Apache-2.0
 *
 * model_rows.h - a model file and the device that its layers run on, or that a data sheet describes: each layer and pass, or
 * what a rank has of it, planned as a row, and measured on its own weights. Called by model, why and regret, in the order of the
 * functions here.
 */
#ifndef MODEL_ROWS_H
#define MODEL_ROWS_H

#include "bench_run.h"
#include "model_table.h"

#define MODEL_MOST_CONTEXT ((int64_t)1 << 30) /* the most tokens that --context takes */

typedef struct model_run {
    run_options run; /* of all layers, but what the file says */
    const char *file;
    int64_t context; /* tokens in the cache; -1: not given */
    bool measure, x_given;
    rft_ranks ranks; /* tp 0: none are asked for; made sound by model_run_flags and model_run_open */
    rft_type dispatch; /* 0: not given */
    x_groups dispatch_groups;
    rft_model *model;
    rft_model_info info;
    bench_job *job;
} model_run;

/* What no flag of a command line has changed yet. */
model_run model_run_make(void);

/* Each returns an exit code; close the run in any case. */
int model_run_flags(model_run *m); /* completes the flags, and refuses those that the file answers */
int model_run_phase(const char *text, rft_phase *out);
int model_run_open(model_run *m);
/* What a step has beside its linear layers, and the context that it is meant in; free *parts in any case. */
int model_run_parts(const model_run *m, const rft_phase *phase, int64_t *context, rft_part **parts, int64_t *n);
int model_run_device(model_run *m);
void model_run_close(model_run *m);

/* The row of a layer in one pass, all but its shard; the job's phase is that of the rows. They point to their own options, so
 * they stay where they are. */
int model_row_plan(const model_run *m, const rft_phase *phase, int64_t index, rft_pass pass, model_row *row);
/* The same of what one rank of m->ranks has of it. It may be amiss. */
int model_shard_plan(const model_run *m, const rft_phase *phase, int64_t index, rft_pass pass, model_row *row);
/* Proves and times it on its own weights, of a config.json and of W that are cut on random ones. */
int model_row_measure(const model_run *m, model_row *row);

#endif
