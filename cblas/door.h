/* SPDX-License-Identifier: Apache-2.0
 *
 * door.h - what stands behind the functions of rooftile_cblas.h: products in the form of rft_linear_run, and the one context, its
 * plans and workspaces, that run them. Built on rooftile.h alone.
 */
#ifndef ROOFTILE_CBLAS_DOOR_H
#define ROOFTILE_CBLAS_DOOR_H

#include "rooftile.h"
#include "rooftile_cblas.h"

#include <stdbool.h>

/* Y[b][m][n] = alpha * sum over k of X[b][m][k] * W[b][n][k] + beta * Y[b][m][n]; Y in f32, its n contiguous. A column-major C
 * is such a Y, with B as X and A as W. */
typedef struct rft__blas_product {
    rft_type type; /* of X and W */
    rft_order x_order, w_order;
    int64_t m, n, k, ldx, ldw, ldy;
    int64_t batch, x_stride, w_stride, y_stride; /* w_stride 0: one W for all */
    float alpha, beta;
    const void *x, *w;
    float *y;
} rft__blas_product;

/* Bytes of an element of X and W. */
static inline int64_t rft__blas_bytes(rft_type type) { return type == RFT_F32 ? 4 : 2; }

/* Whether W is packed first, for all rows at once, which many rows repay; a single product runs so, alone. */
bool rft__blas_packs(const rft__blas_product *p);

/* Runs `count` products, at most RFT_MAX_LIST, none of which writes what another reads or writes; false: something failed, and
 * cblas_xerbla knows. */
bool rft__blas_run(const char *routine, const rft__blas_product *products, uint32_t count);

/* ---- a gemm as CBLAS names it ---- */

typedef struct rft__blas_gemm {
    const char *routine;
    rft_type type;
    CBLAS_LAYOUT layout;
    CBLAS_TRANSPOSE transa, transb;
    int m, n, k;
    float alpha, beta;
    const void *a, *b;
    float *c;
    int lda, ldb, ldc;
    bool strided; /* with a stride behind each leading dimension, which moves positions */
} rft__blas_gemm;

/* The product of g; false: an argument is not allowed, and cblas_xerbla knows. */
bool rft__blas_product_of(const rft__blas_gemm *g, rft__blas_product *out);

typedef struct rft__blas_argument {
    const char *name;
    int position, value;
} rft__blas_argument;

bool rft__blas_is_layout(const char *routine, int value);
bool rft__blas_is_transpose(const char *routine, rft__blas_argument a);
bool rft__blas_at_least(const char *routine, rft__blas_argument a, int least);

/* ---- what products run with ---- */

typedef struct rft__blas_plan rft__blas_plan;
typedef struct rft__blas_buffer {
    void *p;
    size_t bytes;
} rft__blas_buffer;
typedef struct rft__blas_loan {
    rft_ctx *ctx;
    uint32_t count;
    rft__blas_plan *entry[RFT_MAX_LIST];
    const rft_plan *plan[RFT_MAX_LIST];
    size_t workspace_bytes[RFT_MAX_LIST]; /* they lie behind each other in buffer, */
    rft__blas_buffer buffer;              /* and the packed W of a single product behind them */
} rft__blas_loan;

/* Lends what `count` products run with, at most RFT_MAX_LIST. A loan that fails holds nothing. */
rft_status rft__blas_lend(const rft__blas_product *products, uint32_t count, rft__blas_loan *loan, rft_error *err);
void rft__blas_return(rft__blas_loan *loan);

/* W as a plan and as its packing describe it. */
rft_weight_desc rft__blas_weight(const rft__blas_product *p);

#endif
