/* SPDX-License-Identifier: Apache-2.0
 *
 * consumer_cblas.c - a program against the CBLAS functions of an installed rooftile: two products, compared with their
 * definition. Valid C and valid C++. With pkg-config:
 *     cc examples/installed/consumer_cblas.c $(pkg-config --cflags --libs rooftile_cblas) -o consumer_cblas
 */
#include <rooftile_cblas.h>
#include <stdio.h>

enum { M = 5, N = 40, K = 64 };
static float a[M * K], b[N * K], c[M * N], y[N];

int main(void) {
    int wrong = 0;
    for (int i = 0; i < M * K; i++)
        a[i] = (float)(i % 7 - 3);
    for (int i = 0; i < N * K; i++)
        b[i] = (float)(i % 5 - 2);
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, M, N, K, 1, a, K, b, K, 0, c, N);
    cblas_sgemv(CblasRowMajor, CblasNoTrans, N, K, 1, b, K, a, 1, 0, y, 1); /* the first row of C */
    for (int i = 0; i < M * N; i++) {                                       /* small whole numbers: each sum is exact */
        float sum = 0;
        for (int k = 0; k < K; k++)
            sum += a[i / N * K + k] * b[i % N * K + k];
        wrong += c[i] != sum || (i < N && y[i] != sum);
    }
    printf("cblas: %d of %d values differ\n", wrong, M * N);
    return wrong != 0;
}
