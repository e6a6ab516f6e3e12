/* SPDX-License-Identifier: Apache-2.0
 *
 * cblas.c - see cblas.h. Y[m][n] row-major = X (or its transpose) times W[n][k] transposed (or W[k][n]).
 */
#include "peers/cblas.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool cblas_open(peer *p, char why[CLI_WHY]) {
    cblas_state *s = cli_alloc(1, sizeof *s);
    void *wide = peer_symbol(p, "cblas_sgemm64_"), *plain = peer_symbol(p, "cblas_sgemm");
    p->state = s;
    *(void **)&s->sgemm64 = wide;
    if (!wide)
        *(void **)&s->sgemm = plain;
    *(void **)&s->bgemm64 = wide ? peer_symbol(p, "cblas_sbgemm64_") : NULL;
    if (!wide)
        *(void **)&s->bgemm = peer_symbol(p, "cblas_sbgemm");
    if (wide || plain)
        return true;
    snprintf(why, CLI_WHY, "it does not export cblas_sgemm");
    free(s);
    return false;
}

bool cblas_suits(cblas_state *s, const peer_product *product, char why[CLI_WHY]) {
    s->product = *product;
    bool xk = product->x_order == RFT_K_CONTIGUOUS, wk = product->w_order == RFT_K_CONTIGUOUS;
    s->ta = xk ? CBLAS_NO_TRANS : CBLAS_TRANS;
    s->tb = wk ? CBLAS_TRANS : CBLAS_NO_TRANS;
    s->lda = xk ? product->k : product->m;
    s->ldb = wk ? product->k : product->n;
    s->lda = s->lda ? s->lda : 1;
    s->ldb = s->ldb ? s->ldb : 1;
    if (product->epi->n_op)
        snprintf(why, CLI_WHY, "its interface has no epilogue");
    else if (product->y != RFT_F32)
        snprintf(why, CLI_WHY, "its result is f32, not %s", rft_type_name(product->y));
    else if (product->m > INT_MAX || product->n > INT_MAX || product->k > INT_MAX)
        snprintf(why, CLI_WHY, "a size exceeds 32 bits");
    else
        return true;
    return false;
}

bool cblas_prepare(peer *p, const peer_product *product, char why[CLI_WHY]) {
    cblas_state *s = p->state;
    if (!cblas_suits(s, product, why))
        return false;
    bool f32 = product->x == RFT_F32 && product->w == RFT_F32;
    bool bf16 = product->x == RFT_BF16 && product->w == RFT_BF16 && (s->bgemm || s->bgemm64);
    if (!f32 && !bf16)
        snprintf(why, CLI_WHY, "it has no product of %s and %s", rft_type_name(product->x), rft_type_name(product->w));
    else if (!weight_set_need_raw(product->weights))
        snprintf(why, CLI_WHY, "no memory for copies of the weights");
    else
        return true;
    return false;
}

bool cblas_run(peer *p, int64_t i, void *stream) {
    (void)stream;
    const cblas_state *s = p->state;
    const peer_product *q = &s->product;
    const void *w = weight_set_raw(q->weights, i);
    int64_t ldc = q->n ? q->n : 1;
    int m = (int)q->m, n = (int)q->n, k = (int)q->k, lda = (int)s->lda, ldb = (int)s->ldb;
    if (q->x == RFT_F32 && s->sgemm64)
        s->sgemm64(CBLAS_ROW_MAJOR, s->ta, s->tb, m, n, k, 1, q->x_data, lda, w, ldb, 0, q->y_data, ldc);
    else if (q->x == RFT_F32)
        s->sgemm(CBLAS_ROW_MAJOR, s->ta, s->tb, m, n, k, 1, q->x_data, lda, w, ldb, 0, q->y_data, n);
    else if (s->bgemm64)
        s->bgemm64(CBLAS_ROW_MAJOR, s->ta, s->tb, m, n, k, 1, q->x_data, lda, w, ldb, 0, q->y_data, ldc);
    else
        s->bgemm(CBLAS_ROW_MAJOR, s->ta, s->tb, m, n, k, 1, q->x_data, lda, w, ldb, 0, q->y_data, n);
    return true;
}

void cblas_finish(peer *p) { (void)p; }

void cblas_close(peer *p) {
    free(p->state);
    p->state = NULL;
}
