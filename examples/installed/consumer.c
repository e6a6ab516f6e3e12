/* SPDX-License-Identifier: Apache-2.0
 *
 * consumer.c - a program against an installed rooftile: one product, compared with its definition, and one call of the library of
 * model files. With pkg-config:
 *     cc examples/installed/consumer*.c $(pkg-config --cflags --libs rooftile_model) -o consumer
 */
#include "consumer.h"

#include <rooftile_model.h>
#include <stdio.h>

enum { M = 3, N = 40, K = 64 };
static float x[M * K], w[N * K], y[M * N];

int main(void) {
    rft_error err = {RFT_OK, 0, ""};
    rft_phase phase;
    int wrong = 0;
    for (int i = 0; i < M * K; i++)
        x[i] = (float)(i % 7 - 3);
    for (int i = 0; i < N * K; i++)
        w[i] = (float)(i % 5 - 2);
    if (consumer_run(x, w, y, M, N, K, &err) != RFT_OK || rft_phase_parse("prefill:2x8", &phase, &err) != RFT_OK) {
        fprintf(stderr, "%s\n", err.message);
        return 1;
    }
    for (int i = 0; i < M * N; i++) { /* small whole numbers: each sum is exact */
        float sum = 0;
        for (int k = 0; k < K; k++)
            sum += x[i / N * K + k] * w[i % N * K + k];
        wrong += y[i] != sum;
    }
    printf("rooftile %d: %d of %d values differ; phase of %d tokens\n", rft_version(), wrong, M * N,
           (int)(phase.batch * phase.tokens));
    return wrong != 0;
}
