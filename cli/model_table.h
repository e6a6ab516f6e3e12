/* SPDX-License-Identifier: Apache-2.0
 *
 * model_table.h - what `rooftile model` has found out, and its two forms.
 */
#ifndef MODEL_TABLE_H
#define MODEL_TABLE_H

#include "bench_row.h"
#include "options.h"
#include "rooftile_model.h"

typedef struct model_row {
    rft_layer layer;
    const char *pass;    /* "forward", "dgrad", "wgrad" */
    char name[160];      /* as shown: "attn_q", "attn_q dgrad" */
    run_options options; /* of its run */
    bool decoded;        /* when it is loaded, as the device does not take the stored form */
    double run_bytes;    /* of W as run, each part once */
    double bytes, y_bytes; /* with X, Y and what the epilogue reads; of Y */
    char type[48];       /* stored, and as run where that differs: "q4_1→bf16" */
    size_t packed;       /* bytes of W in memory; 0: it is given at each run */
    rft_shard shard;     /* where `ranks` > 0 */
    bench_row bench;     /* us is 0 where it was not run */
} model_row;

typedef struct model_report {
    const char *file, *phase;
    rft_phase kind;
    rft_model_info info;
    rft_model_cost cost;
    model_row *rows;
    int64_t n;
    rft_part *parts; /* beside the linear layers */
    int64_t n_parts, context;
    int64_t ranks; /* 0: not asked for */
    double cache_share; /* of a rank */
    const char *device;
    const rft_machine *machine; /* whose bounds are shown, or NULL */
    int threads;                /* of a GPU its multiprocessors */
    bool measured, described;   /* described: the machine is not here */
} model_report;

typedef struct model_totals { /* of one pass through the model; times in us */
    double run_bytes;         /* of W as run */
    double packed, weights;   /* bytes in memory (0: not known), and how many weights they are */
    double bound_us, us;
    bool bounded, timed; /* every layer has one */
} model_totals;

/* A row's product. */
rft_linear_desc model_row_desc(const model_row *row);
model_totals model_sum_up(const model_report *r);
/* The linear layers, each with its X, Y and operands as its own bound has it; and all parts of the step together. */
rft_part model_linear_part(const model_report *r);
rft_part model_step_total(const model_report *r);
void model_add_part(rft_part *sum, const rft_part *part);

void model_text(const model_report *r);
void model_json(const model_report *r);

#endif
