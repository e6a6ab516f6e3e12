/* SPDX-License-Identifier: Apache-2.0
 *
 * unfused.h - an epilogue as a framework without fusion runs it: the bare product to f32, then one pass over Y for each op,
 * then one that converts. What `--unfused` shows beside the fused run.
 */
#ifndef UNFUSED_H
#define UNFUSED_H

#include "bench_case.h"
#include "team.h"

typedef struct unfused {
    bench_case bare; /* the product alone, y in f32 */
    run_options bare_options;
    const bench_case *fused; /* whose operands and Y the passes use */
    team *threads;
    int64_t stride;  /* columns of the bare product */
    int64_t columns; /* of the pass that runs now */
    uint32_t op;     /* number of the pass that runs now; n_op: the conversion */
} unfused;

/* set: weights without a gated pairing. An exit code. */
int unfused_make(unfused *u, const bench_case *fused, const weight_set *set, team *threads);
void unfused_free(unfused *u);
rft_status unfused_run(void *self, int64_t i, void *stream, rft_error *err);
/* After a run: the largest relative root-mean-square difference of a row from `ours`. */
double unfused_difference(const unfused *u, const void *ours);
/* NULL, or the reason why an op has no pass of its own here. */
const char *unfused_refuses(const epilogue *epi);

#endif
