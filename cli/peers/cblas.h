/* SPDX-License-Identifier: Apache-2.0
 *
 * cblas.h - the part of the CBLAS interface that the peers use, as its specification declares it, for 32 and 64-bit integers.
 */
#ifndef PEERS_CBLAS_H
#define PEERS_CBLAS_H

#include "peers/peer.h"

enum { CBLAS_ROW_MAJOR = 101, CBLAS_NO_TRANS = 111, CBLAS_TRANS = 112 };

typedef void cblas_sgemm_32(int order, int ta, int tb, int m, int n, int k, float alpha, const float *a, int lda, const float *b,
                            int ldb, float beta, float *c, int ldc);
typedef void cblas_sgemm_64(int order, int ta, int tb, int64_t m, int64_t n, int64_t k, float alpha, const float *a, int64_t lda,
                            const float *b, int64_t ldb, float beta, float *c, int64_t ldc);
/* OpenBLAS cblas_sbgemm: bf16 operands, f32 result. */
typedef void cblas_sbgemm_32(int order, int ta, int tb, int m, int n, int k, float alpha, const uint16_t *a, int lda,
                             const uint16_t *b, int ldb, float beta, float *c, int ldc);
typedef void cblas_sbgemm_64(int order, int ta, int tb, int64_t m, int64_t n, int64_t k, float alpha, const uint16_t *a,
                             int64_t lda, const uint16_t *b, int64_t ldb, float beta, float *c, int64_t ldc);

typedef struct cblas_state {
    cblas_sgemm_32 *sgemm; /* each pair: the one that the library has, else NULL */
    cblas_sgemm_64 *sgemm64;
    cblas_sbgemm_32 *bgemm;
    cblas_sbgemm_64 *bgemm64;
    peer_product product;
    int ta, tb;
    int64_t lda, ldb;
} cblas_state;

/* What all three BLAS libraries share: every call packs W, as the interface demands. */
bool cblas_open(peer *p, char why[CLI_WHY]);
bool cblas_prepare(peer *p, const peer_product *product, char why[CLI_WHY]);
bool cblas_run(peer *p, int64_t i, void *stream);
void cblas_finish(peer *p);
void cblas_close(peer *p);
/* Types, epilogue and leading dimensions that CBLAS can say. */
bool cblas_suits(cblas_state *s, const peer_product *product, char why[CLI_WHY]);

#endif
