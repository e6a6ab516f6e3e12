/* SPDX-License-Identifier: Apache-2.0
 *
 * rooftile_cblas.h - librooftile_cblas: the matrix products of CBLAS in f32 and bf16, run by rooftile's plans on the CPU.
 *
 *     C = alpha * op(A) * op(B) + beta * C          y = alpha * op(A) * x + beta * y
 *
 * Names, arguments and their meaning are those of the reference CBLAS and, where it has none (bf16, batches), of OpenBLAS and
 * MKL, with integers of 32 bits. beta = 0 reads no C, alpha = 0 reads neither A nor B, and any NaN that is read comes out.
 * Leading dimensions and increments are elements, bf16 values the upper halves of f32 ones.
 *
 * All functions may be called from many threads at once. The first call makes one context for the process, with as many threads
 * as RFT_NUM_THREADS says, else OMP_NUM_THREADS, else all cores (affinity, cgroup). Up to 256 plans are kept for calls that are
 * equal in sizes, transposes, alpha and beta.
 *
 * Include it behind the cblas.h of another library, where both are used.
 */
#ifndef ROOFTILE_CBLAS_H
#define ROOFTILE_CBLAS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef RFT_API
#define RFT_API __attribute__((visibility("default")))
#endif

#ifndef CBLAS_H /* else another library's cblas.h has defined them */
typedef enum CBLAS_LAYOUT { CblasRowMajor = 101, CblasColMajor = 102 } CBLAS_LAYOUT;
typedef enum CBLAS_TRANSPOSE { CblasNoTrans = 111, CblasTrans = 112, CblasConjTrans = 113 } CBLAS_TRANSPOSE;
#endif

RFT_API void cblas_sgemm(CBLAS_LAYOUT layout, CBLAS_TRANSPOSE transa, CBLAS_TRANSPOSE transb, int m, int n, int k, float alpha,
                         const float *a, int lda, const float *b, int ldb, float beta, float *c, int ldc);
RFT_API void cblas_sgemv(CBLAS_LAYOUT layout, CBLAS_TRANSPOSE trans, int m, int n, float alpha, const float *a, int lda,
                         const float *x, int incx, float beta, float *y, int incy);

/* A and B in bf16, C in f32, sums in f32. */
RFT_API void cblas_sbgemm(CBLAS_LAYOUT layout, CBLAS_TRANSPOSE transa, CBLAS_TRANSPOSE transb, int m, int n, int k, float alpha,
                          const uint16_t *a, int lda, const uint16_t *b, int ldb, float beta, float *c, int ldc);

/* Groups of products: group g is group_size[g] products of one shape, whose pointers stand in a, b and c behind those of the
 * groups before it. All arguments are checked before the first product. Each C is written by one product alone. */
RFT_API void cblas_sgemm_batch(CBLAS_LAYOUT layout, const CBLAS_TRANSPOSE *transa, const CBLAS_TRANSPOSE *transb, const int *m,
                               const int *n, const int *k, const float *alpha, const float **a, const int *lda, const float **b,
                               const int *ldb, const float *beta, float **c, const int *ldc, int group_count,
                               const int *group_size);
RFT_API void cblas_sbgemm_batch(CBLAS_LAYOUT layout, const CBLAS_TRANSPOSE *transa, const CBLAS_TRANSPOSE *transb, const int *m,
                                const int *n, const int *k, const float *alpha, const uint16_t **a, const int *lda,
                                const uint16_t **b, const int *ldb, const float *beta, float **c, const int *ldc,
                                int group_count, const int *group_size);

/* One shape, matrices a stride apart; stridea and strideb may be 0, which all products then share. */
RFT_API void cblas_sgemm_batch_strided(CBLAS_LAYOUT layout, CBLAS_TRANSPOSE transa, CBLAS_TRANSPOSE transb, int m, int n, int k,
                                       float alpha, const float *a, int lda, int stridea, const float *b, int ldb, int strideb,
                                       float beta, float *c, int ldc, int stridec, int batch_size);
RFT_API void cblas_sbgemm_batch_strided(CBLAS_LAYOUT layout, CBLAS_TRANSPOSE transa, CBLAS_TRANSPOSE transb, int m, int n, int k,
                                        float alpha, const uint16_t *a, int lda, int stridea, const uint16_t *b, int ldb,
                                        int strideb, float beta, float *c, int ldc, int stridec, int batch_size);

/* Called where an argument is not allowed, with its position from 1 on in the call as it was written, or with 0 where a product
 * could not run, as memory or threads are missing; form and what follows say why, as for printf. The call then returns. Where an
 * argument was refused nothing has been written. This function writes a line to stderr; one that the program defines itself is
 * called instead. */
RFT_API void cblas_xerbla(int position, const char *routine, const char *form, ...) __attribute__((format(printf, 3, 4)));

#ifdef __cplusplus
}
#endif
#endif
