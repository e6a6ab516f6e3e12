/* SPDX-License-Identifier: Apache-2.0
 *
 * cblas_gemm.c - cblas_sgemm and cblas_sbgemm, and the checks of arguments that the batches share.
 * Invariant: of several arguments that are not allowed the one is told that the reference tells, which takes a row-major C as
 * the column-major transpose of itself, B and A changing places, and then checks in the order of columns.
 */
#include "door.h"

bool rft__blas_at_least(const char *routine, rft__blas_argument a, int least) {
    if (a.value < least) {
        cblas_xerbla(a.position, routine, "%s = %d is less than %d\n", a.name, a.value, least);
    }
    return a.value >= least;
}

bool rft__blas_is_layout(const char *routine, int value) {
    const bool known = value == CblasRowMajor || value == CblasColMajor;
    if (!known) {
        cblas_xerbla(1, routine, "layout = %d is not CblasRowMajor or CblasColMajor\n", value);
    }
    return known;
}

bool rft__blas_is_transpose(const char *routine, rft__blas_argument a) {
    const bool known = a.value == CblasNoTrans || a.value == CblasTrans || a.value == CblasConjTrans;
    if (!known) {
        cblas_xerbla(a.position, routine, "%s = %d is not CblasNoTrans, CblasTrans or CblasConjTrans\n", a.name, a.value);
    }
    return known;
}

static int max(int a, int b) { return a > b ? a : b; }

/* One operand of the column-major product: its pointer, whether it is transposed, its leading dimension. */
typedef struct operand {
    const void *p;
    bool transposed;
    rft__blas_argument ld;
} operand;

bool rft__blas_product_of(const rft__blas_gemm *g, rft__blas_product *out) {
    const char *const routine = g->routine;
    if (!rft__blas_is_layout(routine, (int)g->layout) ||
        !rft__blas_is_transpose(routine, (rft__blas_argument){"transa", 2, (int)g->transa}) ||
        !rft__blas_is_transpose(routine, (rft__blas_argument){"transb", 3, (int)g->transb})) {
        return false;
    }
    const bool by_rows = g->layout == CblasRowMajor;
    const rft__blas_argument sizes[2] = {{"m", 4, g->m}, {"n", 5, g->n}};
    const operand operands[2] = {{g->a, g->transa != CblasNoTrans, {"lda", 9, g->lda}},
                                 {g->b, g->transb != CblasNoTrans, {"ldb", g->strided ? 12 : 11, g->ldb}}};
    const rft__blas_argument m = sizes[by_rows], n = sizes[!by_rows];
    const rft__blas_argument k = {"k", 6, g->k}, ldc = {"ldc", g->strided ? 16 : 14, g->ldc};
    const operand *const a = operands + by_rows, *const b = operands + !by_rows;
    if (!rft__blas_at_least(routine, m, 0) || !rft__blas_at_least(routine, n, 0) || !rft__blas_at_least(routine, k, 0) ||
        !rft__blas_at_least(routine, a->ld, max(1, a->transposed ? k.value : m.value)) ||
        !rft__blas_at_least(routine, b->ld, max(1, b->transposed ? n.value : k.value)) ||
        !rft__blas_at_least(routine, ldc, max(1, m.value))) {
        return false;
    }
    *out = (rft__blas_product){.type = g->type,
                               .x_order = b->transposed ? RFT_MN_CONTIGUOUS : RFT_K_CONTIGUOUS,
                               .w_order = a->transposed ? RFT_K_CONTIGUOUS : RFT_MN_CONTIGUOUS,
                               .m = n.value,
                               .n = m.value,
                               .k = k.value,
                               .batch = 1,
                               .ldx = b->ld.value,
                               .ldw = a->ld.value,
                               .ldy = ldc.value,
                               .alpha = g->alpha,
                               .beta = g->beta,
                               .x = b->p,
                               .w = a->p,
                               .y = g->c};
    return true;
}

static void gemm(const rft__blas_gemm *g) {
    rft__blas_product p;
    if (rft__blas_product_of(g, &p)) {
        rft__blas_run(g->routine, &p, 1);
    }
}

void cblas_sgemm(CBLAS_LAYOUT layout, CBLAS_TRANSPOSE transa, CBLAS_TRANSPOSE transb, int m, int n, int k, float alpha,
                 const float *a, int lda, const float *b, int ldb, float beta, float *c, int ldc) {
    gemm(&(rft__blas_gemm){"cblas_sgemm", RFT_F32, layout, transa, transb, m, n, k, alpha, beta, a, b, c, lda, ldb, ldc, false});
}

void cblas_sbgemm(CBLAS_LAYOUT layout, CBLAS_TRANSPOSE transa, CBLAS_TRANSPOSE transb, int m, int n, int k, float alpha,
                  const uint16_t *a, int lda, const uint16_t *b, int ldb, float beta, float *c, int ldc) {
    gemm(
        &(rft__blas_gemm){"cblas_sbgemm", RFT_BF16, layout, transa, transb, m, n, k, alpha, beta, a, b, c, lda, ldb, ldc, false});
}
