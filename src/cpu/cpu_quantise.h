/* SPDX-License-Identifier: Apache-2.0
 *
 * cpu_quantise.h - rows of f32, f16 or bf16 to codes of 8 bits with scales, as rooftile.h says of rft_quantize. Called by
 * cpu_backend for that function, and by cpu_gemm.c for an epilogue that ends in quantize_rows, whose scales wait for whole rows.
 */
#ifndef RFT_CPU_CPU_QUANTISE_H
#define RFT_CPU_CPU_QUANTISE_H

#include "cpu/cpu_choice.h"

typedef struct rft__quantise_rows {
    const rft__isa_ops *ops;
    rft_type from, to;
    int64_t batch, m, k;
    int64_t group;                         /* k of a scale, at least 1 */
    const void *x;                         /* strides of all three: elements */
    int64_t x_row, x_batch;
    void *q;
    int64_t q_row, q_batch;
    float *scale;
    int64_t scale_row, scale_batch;
    const float *given;                    /* NULL, or the one scale that serves all; none is written then */
} rft__quantise_rows;

/* Part i of `parts`: whole groups, which no two parts share. */
void rft__quantise_part(const rft__quantise_rows *job, int i, int parts);
/* What a product stores: y, or rows in the workspace that are quantised when all are complete. Strides in elements. */
typedef struct rft__y_rows {
    void *p;
    rft_type type;
    int64_t row, batch;
    bool quantise;
} rft__y_rows;

/* workspace: rft__y_rows_bytes of it. */
rft__y_rows rft__y_rows_of(const rft__choice *c, const rft_linear_args *args, void *workspace);
void rft__y_rows_quantise(const rft__choice *c, const rft_linear_args *args, const rft__y_rows *y, int i, int parts);

rft_status rft__cpu_quantize(rft__device *device, const rft_quantize_args *args, rft_error *err);

#endif
