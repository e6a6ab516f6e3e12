/* SPDX-License-Identifier: Apache-2.0
 *
 * cuda_args.h - the argument of every kernel, as the C compiler and NVRTC both read it. Filled at each run by
 * cuda_run.c; what is fixed when a plan is made reaches the kernel as a macro of config.h instead.
 */
#ifndef RFT_CUDA_KERNELS_CUDA_ARGS_H
#define RFT_CUDA_KERNELS_CUDA_ARGS_H

#define RFT_CUDA_OPERANDS 16 /* RFT_MAX_OPERANDS */
#define RFT_CUDA_NUMBERS 6
#define RFT_CUDA_MAPS 6

typedef struct rft__cuda_operand {
    const void *ptr;
    long long ld, batch_stride; /* elements; ld is never 0 */
} rft__cuda_operand;

/* ---- of a debug build (debug.cuh) ---- */

enum { RFT_AT_X, RFT_AT_W, RFT_AT_Y, RFT_AT_OPERAND /* + its index */ };
enum { RFT_FAULT_COMPLETE = 2, RFT_DUMP_ACC = 1, RFT_DUMP_PARTS = 8 };
#define RFT_DUMP_PART(i) (RFT_DUMP_ACC + 1 + (i))

typedef struct rft__cuda_fault { /* the first access outside of what the arguments describe; in memory of the host */
    unsigned state;              /* 0: none */
    int kernel, what, count, block, thread;
    int batch, batches; /* where, as stored, and of how many */
    long long row, rows, column, columns;
} rft__cuda_fault;

typedef struct rft__cuda_debug {
    rft__cuda_fault *fault;
    float *dump;
    int kernel; /* row of kernels_cuda.def, for the fault */
} rft__cuda_debug;

typedef struct rft__cuda_args {
    const void *x, *w;
    void *y, *workspace;
    long long ldx, ldw, ldy, x_batch_stride, w_batch_stride, y_batch_stride; /* elements */
    int m, n, k, batch;          /* n: rows of W, so twice the columns of y where a gated unit closes the product */
    int number[RFT_CUDA_NUMBERS]; /* what a family adds, such as tiles and parts of k */
    rft__cuda_operand operand[RFT_CUDA_OPERANDS];
#if defined(RFT_KERNEL_DEBUG) || !defined(__CUDACC_RTC__)
    rft__cuda_debug debug; /* last: other builds of a kernel take no more than what is in front of it */
#endif
} rft__cuda_args;

/* A CUtensorMap, opaque. Kernels with maps take the first of these behind the arguments, each __grid_constant__: of x, w and y,
 * of x and w again with the boxes of the last tile, and of a matrix that the epilogue reads. */
typedef struct rft__cuda_map {
    unsigned long long word[16];
} __attribute__((aligned(64))) rft__cuda_map;

#endif
