/* SPDX-License-Identifier: Apache-2.0
 *
 * cblas_times.c - cblas_sgemm and cblas_sgemv of librooftile_cblas, timed in turn with those of another library:
 *     cblas_times [LIBRARY [cpu]]        such as libopenblas.so.0; cpu: time of the calling thread instead of time that passed
 * Results are compared before they are timed. Threads come from the environment: RFT_NUM_THREADS here, there as it has it.
 */
#define _GNU_SOURCE
#include "rooftile_cblas.h"

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef void gemm(CBLAS_LAYOUT layout, CBLAS_TRANSPOSE transa, CBLAS_TRANSPOSE transb, int m, int n, int k, float alpha,
                  const float *a, int lda, const float *b, int ldb, float beta, float *c, int ldc);
typedef void gemv(CBLAS_LAYOUT layout, CBLAS_TRANSPOSE trans, int m, int n, float alpha, const float *a, int lda, const float *x,
                  int incx, float beta, float *y, int incy);

typedef struct library {
    gemm *sgemm;
    gemv *sgemv;
} library;

/* C = op(A) op(B), row-major, n or t for each; n = 0 is y = op(A) x. */
typedef struct shape {
    int m, n, k;
    char op[3];
} shape;

enum { MOST = 2048 * 2048, BATCH_FLOP = 500000 };

static const shape shapes[] = {
    {1, 1, 1, "nn"},          {4, 4, 4, "nn"},          {8, 8, 8, "nn"},          {16, 16, 16, "nn"},
    {32, 32, 32, "nn"},       {64, 64, 64, "nn"},       {128, 128, 128, "nn"},    {256, 256, 256, "nn"},
    {512, 512, 512, "nn"},    {1024, 1024, 1024, "nn"}, {2048, 2048, 2048, "nn"}, {512, 512, 512, "nt"},
    {1024, 1024, 1024, "nt"}, {1024, 1024, 1024, "tn"}, {1, 2048, 2048, "nt"},    {4, 2048, 2048, "nt"},
    {16, 2048, 2048, "nt"},   {64, 2048, 2048, "nt"},   {64, 2048, 2048, "nn"},   {2048, 1, 2048, "nn"},
    {2048, 16, 2048, "nn"},   {2000, 2000, 32, "nn"},   {64, 0, 64, "n-"},        {256, 0, 256, "n-"},
    {1024, 0, 1024, "n-"},    {1024, 0, 1024, "t-"},    {2048, 0, 2048, "n-"},    {2048, 0, 2048, "t-"},
};

static float *a, *b, *c;
static clockid_t measured_clock = CLOCK_MONOTONIC;

static double now(void) {
    struct timespec t;
    clock_gettime(measured_clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static CBLAS_TRANSPOSE transpose(char op) { return op == 't' ? CblasTrans : CblasNoTrans; }

static void call(const library *l, const shape *s) {
    const CBLAS_TRANSPOSE ta = transpose(s->op[0]), tb = transpose(s->op[1]);
    if (s->n == 0) {
        l->sgemv(CblasRowMajor, ta, s->m, s->k, 1, a, s->k, b, 1, 0, c, 1);
    } else {
        l->sgemm(CblasRowMajor, ta, tb, s->m, s->n, s->k, 1, a, ta == CblasTrans ? s->m : s->k, b, tb == CblasTrans ? s->k : s->n,
                 0, c, s->n);
    }
}

static double work(const shape *s) { return 2.0 * s->m * (s->n > 0 ? s->n : 1) * s->k; }

static double seconds_of(const library *l, const shape *s, int calls) {
    const double start = now();
    for (int i = 0; i < calls; i++) {
        call(l, s);
    }
    return (now() - start) / calls;
}

/* The least of many rounds, in each of which the libraries take turns. */
static void measure(const library *libraries, int count, const shape *s, double best[2]) {
    const int calls = work(s) < BATCH_FLOP ? (int)(BATCH_FLOP / (work(s) + 2000)) + 1 : 1;
    const int rounds = work(s) > 1e9 ? 7 : work(s) > 1e7 ? 40 : 200;
    for (int i = 0; i < rounds; i++) {
        for (int l = 0; l < count; l++) {
            const double seconds = seconds_of(libraries + l, s, calls);
            best[l] = i == 0 || seconds < best[l] ? seconds : best[l];
        }
    }
}

/* The largest difference between both results, in parts of the largest value. */
static double difference(const library *libraries, const shape *s) {
    const int count = s->n > 0 ? s->m * s->n : s->op[0] == 't' ? s->k : s->m;
    static float first[MOST];
    double largest = 0, off = 0;
    call(libraries, s);
    memcpy(first, c, (size_t)count * sizeof *c);
    call(libraries + 1, s);
    for (int i = 0; i < count; i++) {
        largest = fmax(largest, fabs((double)c[i]));
        off = fmax(off, fabs((double)c[i] - first[i]));
    }
    return off / largest;
}

static int open_other(const char *path, library *other) {
    void *const handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (handle != NULL) {
        *(void **)&other->sgemm = dlsym(handle, "cblas_sgemm");
        *(void **)&other->sgemv = dlsym(handle, "cblas_sgemv");
    }
    return other->sgemm != NULL && other->sgemv != NULL;
}

int main(int argc, char **argv) {
    library libraries[2] = {{cblas_sgemm, cblas_sgemv}, {NULL, NULL}};
    const int count = argc > 1 ? 2 : 1;
    if (argc > 1 && !open_other(argv[1], libraries + 1)) {
        fprintf(stderr, "%s: %s\n", argv[1], dlerror());
        return 1;
    }
    if (argc > 2 && strcmp(argv[2], "cpu") == 0) {
        measured_clock = CLOCK_THREAD_CPUTIME_ID;
    }
    a = malloc(3 * MOST * sizeof *a), b = a + MOST, c = b + MOST;
    for (int i = 0; i < 2 * MOST; i++) {
        a[i] = (float)((i * 37LL) % 101 - 50) / 64;
    }
    printf("%6s %6s %6s  op  %12s %9s %12s  %s\n", "m", "n", "k", "us", "GFLOP/s", "other us", "other / this");
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        const shape *const s = shapes + i;
        double best[2] = {0, 0};
        if (count > 1 && difference(libraries, s) > 1e-4) {
            fprintf(stderr, "%d x %d x %d: the results differ\n", s->m, s->n, s->k);
            return 1;
        }
        measure(libraries, count, s, best);
        printf("%6d %6d %6d  %s  %12.3f %9.1f", s->m, s->n, s->k, s->op, best[0] * 1e6, work(s) / best[0] * 1e-9);
        if (count > 1) {
            printf(" %12.3f  %.2f", best[1] * 1e6, best[1] / best[0]);
        }
        printf("\n");
    }
    free(a);
    return 0;
}
