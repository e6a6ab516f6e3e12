/* SPDX-License-Identifier: Apache-2.0
 *
 * bench_rows.c - see bench_rows.h. One thread, four tiles of rows, a W of half of L2; the median of many runs.
 */
#define _GNU_SOURCE
#include "bench_rows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { DEPTH = 512, TILES = 4, RUNS = 101, ALIGN = 64 };

typedef struct bench {
    rft_ctx *ctx;
    rft_plan *plan;
    rft_weight *weight;
    void *x, *w, *y, *packed, *workspace;
    rft_linear_desc desc;
    rft_linear_args args;
    rft_error err;
} bench;

static int64_t row_bytes(rft_type type) { return (int64_t)rft_type_bytes(type, DEPTH); }

static void *allocate(int64_t bytes) { return aligned_alloc(ALIGN, ((size_t)bytes / ALIGN + 1) * ALIGN); }

static bool open_context(bench *b, const rft_kernel_info *row, int64_t *l2) {
    rft_ctx_options options = rft_ctx_options_init();
    rft_device_info device = {.struct_size = sizeof device};
    options.threads = 1;
    options.max_isa = row->isa;
    if (rft_ctx_create("cpu", &options, &b->ctx, &b->err) != RFT_OK || rft_ctx_get_device(b->ctx, &device) != RFT_OK) {
        return false;
    }
    *l2 = device.l2 != 0 ? (int64_t)device.l2 : 512 << 10;
    return true;
}

static void describe(bench *b, const rft_kernel_info *row, int64_t l2) {
    b->desc = rft_linear_desc_init();
    b->desc.x = row->x == RFT_I8 ? RFT_F32 : row->x;
    b->desc.compute = row->x == RFT_I8 ? RFT_COMPUTE_I8 : RFT_COMPUTE_AUTO;
    b->desc.y = RFT_F32;
    /* Strips of bytes serve all codes; those of sums of 32 k at every level. */
    b->desc.w.elem = strstr(row->name, "_bytes_") != NULL ? RFT_GGUF_Q4_0 : row->w;
    b->desc.w.k = DEPTH;
    b->desc.w.n = (l2 / 2 / row_bytes(b->desc.w.elem) + row->nr - 1) / row->nr * row->nr;
    if (b->desc.w.elem == RFT_U4 || b->desc.w.elem == RFT_U8) { /* rows of codes with zero points */
        b->desc.w.scale = RFT_F32;
        b->desc.w.zero = RFT_U8;
    }
    b->desc.m_min = b->desc.m_max = (int64_t)TILES * row->mr;
}

static bool make_operands(bench *b, uint64_t seed) {
    const int64_t m = b->desc.m_max, n = b->desc.w.n;
    b->x = allocate(m * row_bytes(b->desc.x));
    b->w = allocate(n * row_bytes(b->desc.w.elem));
    b->y = allocate(m * n * 4);
    return b->x != NULL && b->w != NULL && b->y != NULL && rft_fill_random(b->desc.x, b->x, m * DEPTH, seed, &b->err) == RFT_OK &&
           rft_fill_random(b->desc.w.elem, b->w, n * DEPTH, seed + 1, &b->err) == RFT_OK;
}

static bool make_plan(bench *b, const char *kernel) {
    rft_plan_info info = rft_plan_info_init();
    rft_weight_src src = rft_weight_src_init();
    size_t bytes = 0;
    static const float one_scale = 0.5f;
    static const unsigned char one_zero = 8;
    src.q = b->w;
    src.scale = b->desc.w.scale != 0 ? &one_scale : NULL;
    src.zero = b->desc.w.zero != 0 ? &one_zero : NULL;
    if (rft_plan_create_forced(b->ctx, &b->desc, kernel, &b->plan, &b->err) != RFT_OK ||
        rft_plan_get_info(b->plan, b->desc.m_max, &info) != RFT_OK ||
        rft_weight_bytes(b->ctx, &b->desc.w, &bytes, &b->err) != RFT_OK) {
        return false;
    }
    b->packed = allocate((int64_t)bytes);
    b->workspace = allocate((int64_t)info.workspace);
    if (b->packed == NULL || b->workspace == NULL ||
        rft_weight_pack(b->ctx, &b->desc.w, &src, b->packed, NULL, &b->weight, &b->err) != RFT_OK) {
        return false;
    }
    b->args = rft_linear_args_init();
    b->args.m = b->desc.m_max;
    b->args.x = b->x;
    b->args.y = b->y;
    b->args.weight = b->weight;
    b->args.workspace = b->workspace;
    b->args.workspace_bytes = info.workspace;
    return true;
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int by_value(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static bool time_runs(bench *b, double *median) {
    double seconds[RUNS];
    for (int i = 0; i < RUNS; i++) {
        const double start = now();
        if (rft_linear_run(b->plan, &b->args, &b->err) != RFT_OK) {
            return false;
        }
        seconds[i] = now() - start;
    }
    qsort(seconds, RUNS, sizeof *seconds, by_value);
    *median = seconds[RUNS / 2];
    return true;
}

static bool measure(bench *b, const rft_kernel_info *row, uint64_t seed) {
    int64_t l2 = 0;
    double seconds = 0.0;
    if (!open_context(b, row, &l2)) {
        return false;
    }
    describe(b, row, l2);
    if (!make_operands(b, seed) || !make_plan(b, row->name) || !time_runs(b, &seconds)) {
        return false;
    }
    const double flops = 2.0 * (double)b->desc.m_max * (double)b->desc.w.n * DEPTH;
    printf("%-42s %6lld x %5lld x %4d %10.1f us %8.1f GFLOP/s\n", row->name, (long long)b->desc.m_max, (long long)b->desc.w.n,
           DEPTH, seconds * 1e6, flops / seconds * 1e-9);
    return true;
}

bool bench_row(const rft_kernel_info *row, uint64_t seed) {
    bench b = {0};
    const bool ok = measure(&b, row, seed);
    if (!ok) {
        fprintf(stderr, "%s: %s\n", row->name, b.err.message[0] != '\0' ? b.err.message : "out of memory");
    }
    rft_weight_free(b.weight);
    rft_plan_free(b.plan);
    rft_ctx_free(b.ctx);
    free(b.x);
    free(b.w);
    free(b.y);
    free(b.packed);
    free(b.workspace);
    return ok;
}
