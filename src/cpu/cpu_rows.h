/* SPDX-License-Identifier: Apache-2.0
 *
 * cpu_rows.h - rows of X as tile kernels read them: where they lie, or from one copy that all threads make and share, since a
 * copy of its own would cost each thread as much as some hundred columns of product. Rows in 8 bits are shared likewise where
 * there are enough of them. Called by cpu_gemm.c.
 */
#ifndef RFT_CPU_CPU_ROWS_H
#define RFT_CPU_CPU_ROWS_H

#include "cpu/cpu_partition.h"
#include "cpu/cpu_x.h"

/* Row i of batch b is at x + b * batch + i * stride, k contiguous; bytes. In 8 bits x is rft__x8 [batch][chunks][m]. x NULL: each
 * thread copies or rounds the rows that it holds. */
typedef struct rft__x_rows {
    char *copy; /* x, if it is a copy that has to be made first; else NULL */
    const char *x;
    int64_t stride, batch;
} rft__x_rows;

/* From row to row where rows are copied: a line more than k, so that rows do not meet in one set of L1. */
int64_t rft__x_rows_stride(rft_type type, int64_t k);
/* Bytes of the copy, which a plan sets aside: for that m and all below. 0 where none is ever made. */
int64_t rft__x_rows_bytes(const rft__choice *c, const rft__cpu_pick *pick, int64_t m);
/* X must be turned, and m rows are too many for a copy of all. */
bool rft__x_rows_own(const rft__choice *c, int64_t m);
rft__x_rows rft__x_rows_of(const rft__choice *c, const rft__cpu_pick *pick, const rft_linear_args *args, char *copy);
/* One thread's part of the copy, `i` of `parts`. */
void rft__x_rows_copy(const rft__choice *c, const rft__cpu_pick *pick, const rft__x_source *x, int64_t m, const rft__x_rows *rows,
                      int i, int parts);

/* Rows in 8 bits over a part of k, side by side. */
typedef struct rft__x8_rows {
    const rft__x8 *x;      /* of the first chunk */
    const rft__x8 *before; /* of the chunk in front of it, NULL if there is none */
    int64_t stride;        /* records from chunk to chunk */
} rft__x8_rows;

/* Those of a batch, over k0 .. k1 - 1: out of what all threads share, of m rows, or made in `own`. */
rft__x8_rows rft__x8_rows_of(const rft__x_rows *shared, const rft__x_source *x, int64_t m, int64_t b, int64_t row0, int64_t rows,
                             int64_t k0, int64_t k1, char *own);

/* Rows that a thread has packed or copied for itself, in its part of k. */
typedef struct rft__x_held {
    char *rows;
    int64_t b, row0, count;
} rft__x_held;

/* The rows of tiles t from row0 on, as the kernel reads them, unless they are held already. whole_k: K. */
void rft__x_hold(rft__x_held *held, const rft__x_source *x, const rft__cpu_kernel *kernel, int64_t whole_k, int64_t b,
                 int64_t row0, const rft__tiling *t, int64_t k0, int64_t k);

#endif
