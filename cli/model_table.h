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
    rft_shard shard;     /* of a rank's row, whose layer is what it has of it */
    bool amiss;          /* it is cut amid blocks, so that nothing runs it: `bench` is zeroed */
    bench_row bench;     /* us is 0 where it was not run */
} model_row;

#define MODEL_EXCHANGES 2

typedef struct model_ranks { /* that share a phase */
    rft_ranks sizes;         /* tp 0: not asked for, and nothing else is set */
    double cache_share;      /* of a rank */
    rft_exchange exchange[MODEL_EXCHANGES];
    int n_exchanges; /* 0: experts are not dealt out */
} model_ranks;

typedef struct model_report {
    const char *file, *phase;
    rft_phase kind;
    rft_model_info info;
    rft_model_cost cost;
    model_row *rows;
    int64_t n;
    model_ranks ranks;
    model_row *shards; /* of one rank, a row for each of `rows`; NULL: not asked for */
    rft_part *parts; /* beside the linear layers */
    int64_t n_parts, context;
    const char *device;
    const rft_machine *machine; /* whose bounds are shown, or NULL */
    int threads;                /* of a GPU its multiprocessors */
    bool measured, ranks_measured; /* the rows were run, or the shards */
    bool described;                /* the machine is not here */
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

/* Tables of n rows: what they multiply and what bounds each; their kernels, and where they were run their times; beside them
 * those of other libraries. */
void model_text_layers(const model_row *rows, int64_t n);
void model_text_runs(const model_row *rows, int64_t n, bool measured);
void model_text_peers(const model_row *rows, int64_t n);

void model_text(const model_report *r);
void model_json(const model_report *r);

#endif
