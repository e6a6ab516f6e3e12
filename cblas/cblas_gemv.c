/* SPDX-License-Identifier: Apache-2.0
 *
 * cblas_gemv.c - cblas_sgemv: a product of one row, x by the matrix as W. A vector with an increment goes through a dense copy,
 * which costs far less than the matrix. Checks stand in the order of the reference, see cblas_gemm.c.
 */
#include "door.h"

#include <stdlib.h>

/* Elements first, first + step, ...: by a negative increment from the end, as BLAS counts them. */
typedef struct vector {
    int64_t count, first, step;
} vector;

static vector vector_of(int count, int step) { return (vector){count, step < 0 ? (1 - (int64_t)count) * step : 0, step}; }

static void gather(vector v, const float *from, float *dense) {
    for (int64_t i = 0; i < v.count; i++) {
        dense[i] = from[v.first + i * v.step];
    }
}

/* y = sum + beta * y; no sum: that of nothing. */
static void scatter(vector v, const float *sum, float beta, float *y) {
    for (int64_t i = 0; i < v.count; i++) {
        float *const to = y + v.first + i * v.step;
        const float old = beta == 0.0f ? 0.0f : beta * *to;
        *to = sum == NULL ? old : sum[i] + old;
    }
}

/* `dense` holds the copies of those of x and y that need one. */
static void multiply(rft__blas_product *p, vector vx, const float *x, vector vy, float *y, float *dense) {
    const float beta = p->beta;
    p->x = x;
    p->y = y;
    if (vx.step != 1) {
        gather(vx, x, dense);
        p->x = dense;
        dense += vx.count;
    }
    if (vy.step != 1) {
        p->y = dense;
        p->beta = 0.0f;
    }
    if (rft__blas_run("cblas_sgemv", p, 1) && vy.step != 1) {
        scatter(vy, dense, beta, y);
    }
}

void cblas_sgemv(CBLAS_LAYOUT layout, CBLAS_TRANSPOSE trans, int m, int n, float alpha, const float *a, int lda, const float *x,
                 int incx, float beta, float *y, int incy) {
    static const char routine[] = "cblas_sgemv";
    if (!rft__blas_is_layout(routine, (int)layout) ||
        !rft__blas_is_transpose(routine, (rft__blas_argument){"trans", 2, (int)trans})) {
        return;
    }
    /* A row-major matrix is the transpose of a column-major one. */
    const bool by_rows = layout == CblasRowMajor, transposed = (trans != CblasNoTrans) != by_rows;
    const rft__blas_argument sizes[2] = {{"m", 3, m}, {"n", 4, n}}, rows = sizes[by_rows], columns = sizes[!by_rows];
    if (!rft__blas_at_least(routine, rows, 0) || !rft__blas_at_least(routine, columns, 0) ||
        !rft__blas_at_least(routine, (rft__blas_argument){"lda", 7, lda}, rows.value > 1 ? rows.value : 1)) {
        return;
    }
    if (incx == 0 || incy == 0) {
        cblas_xerbla(incx == 0 ? 9 : 12, routine, "%s = 0 is no increment\n", incx == 0 ? "incx" : "incy");
        return;
    }
    const vector vx = vector_of(transposed ? rows.value : columns.value, incx);
    const vector vy = vector_of(transposed ? columns.value : rows.value, incy);
    if (m == 0 || n == 0 || (alpha == 0.0f && beta == 1.0f)) {
        return;
    }
    if (alpha == 0.0f) {
        scatter(vy, NULL, beta, y);
        return;
    }
    rft__blas_product p = {.type = RFT_F32,
                           .w_order = transposed ? RFT_K_CONTIGUOUS : RFT_MN_CONTIGUOUS,
                           .m = 1,
                           .n = vy.count,
                           .k = vx.count,
                           .batch = 1,
                           .ldx = vx.count,
                           .ldw = lda,
                           .ldy = vy.count,
                           .alpha = alpha,
                           .beta = beta,
                           .w = a};
    const int64_t copied = (vx.step != 1 ? vx.count : 0) + (vy.step != 1 ? vy.count : 0);
    float *const dense = copied > 0 ? malloc((size_t)copied * sizeof *dense) : NULL;
    if (copied > 0 && dense == NULL) {
        cblas_xerbla(0, routine, "no memory for dense copies of x and y\n");
        return;
    }
    multiply(&p, vx, x, vy, y, dense);
    free(dense);
}
