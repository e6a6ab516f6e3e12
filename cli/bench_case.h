/* SPDX-License-Identifier: Apache-2.0
 *
 * bench_case.h - one product ready to run: plan, activations, epilogue operands, workspace and proof of the result.
 * The weights belong to a weight_set that outlives the case, since every m of a shape reads the same ones.
 */
#ifndef BENCH_CASE_H
#define BENCH_CASE_H

#include "bench_weights.h"
#include "options.h"

typedef struct bench_case {
    const run_options *o;
    rft_ctx *ctx;
    const weight_set *set;
    rft_linear_desc desc;
    int64_t m, n, k, columns; /* columns of y */
    rft_plan *plan;
    rft_plan_info info;
    buffer x, x_scale, y, workspace, operand_data[RFT_MAX_OPERANDS];
    rft_operand operand[RFT_MAX_OPERANDS];
    rft_verify_result proof;
    double w_bytes; /* stored; of the least traffic */
    rft_error err;  /* of the last failed call */
} bench_case;

/* An exit code; frees itself when it fails. */
int case_make(bench_case *c, const run_options *o, rft_ctx *ctx, const weight_set *set, int64_t m);
void case_free(bench_case *c);
/* Runs once on copy i of the weights; on a GPU it is enqueued on the stream. */
rft_status case_run(bench_case *c, int64_t i, void *stream, rft_error *err);
/* Runs once and compares with the f64 reference. CLI_FAILED: a wrong result. */
int case_verify(bench_case *c);

#endif
