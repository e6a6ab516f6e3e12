/* SPDX-License-Identifier: Apache-2.0
 *
 * linear.c - the smallest useful program: pack a weight, plan a layer, run it, check one element.
 *     cc -I include examples/linear.c -L build -lrooftile -lm -o linear && LD_LIBRARY_PATH=build ./linear
 */
#define _POSIX_C_SOURCE 200112L
#include "rooftile.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { M = 4, N = 1000, K = 512, ALIGN = 64 };
static float x[M * K], w[N * K], bias[N], y[M * N];

static void check(rft_status status, const rft_error *err) {
    if (status != RFT_OK) {
        fprintf(stderr, "%s: %s\n", rft_status_name(status), err->message);
        exit(1);
    }
}

/* Packed weights and workspace are the caller's memory, aligned to 64 bytes. */
static void *buffer(size_t bytes) {
    void *p = NULL;
    return posix_memalign(&p, ALIGN, bytes) == 0 ? p : NULL;
}

static void fill(float *v, int count) {
    while (count-- > 0)
        v[count] = (float)(rand() % 2001 - 1000) * 1e-3f;
}

/* y[m][n] by the definition: silu(sum of x * w + bias). */
static double expected(int m, int n) {
    double sum = bias[n];
    for (int k = 0; k < K; k++)
        sum += (double)x[m * K + k] * w[n * K + k];
    return sum / (1 + exp(-sum));
}

int main(void) {
    rft_error err = {0};
    rft_ctx *ctx;
    rft_plan *plan;
    rft_weight *weight;
    const rft_epi_op tail[] = {{RFT_EPI_BIAS, RFT_F32, 0, 0, 0}, {RFT_EPI_SILU, 0, 0, 0, 0}};
    rft_operand operand = {bias, 0, 0};
    rft_linear_desc layer = rft_linear_desc_init();
    rft_weight_src source = rft_weight_src_init();
    rft_linear_args args = rft_linear_args_init();
    rft_plan_info info = rft_plan_info_init();
    size_t bytes;
    void *packed;

    fill(x, M * K), fill(w, N * K), fill(bias, N);
    check(rft_ctx_create("cpu", NULL, &ctx, &err), &err);

    layer.x = layer.y = layer.w.elem = RFT_F32;
    layer.w.n = N, layer.w.k = K, layer.m_min = 1, layer.m_max = M;
    layer.epi = tail, layer.n_epi = 2;
    check(rft_plan_create(ctx, &layer, &plan, &err), &err);
    check(rft_plan_get_info(plan, M, &info), &err);

    check(rft_weight_bytes(ctx, &layer.w, &bytes, &err), &err);
    packed = buffer(bytes), source.q = w;
    check(rft_weight_pack(ctx, &layer.w, &source, packed, NULL, &weight, &err), &err);

    args.m = M, args.x = x, args.y = y, args.weight = weight;
    args.operand = &operand, args.n_operand = 1;
    args.workspace = buffer(info.workspace), args.workspace_bytes = info.workspace;
    check(rft_linear_run(plan, &args, &err), &err);

    const double want = expected(M - 1, N - 1);
    printf("%s: y[%d][%d] = %.6f, expected %.6f\n", info.kernel, M - 1, N - 1, (double)y[M * N - 1], want);
    rft_plan_free(plan), rft_weight_free(weight), rft_ctx_free(ctx);
    free(packed), free(args.workspace);
    return fabs((double)y[M * N - 1] - want) < 1e-4 ? 0 : 1;
}
