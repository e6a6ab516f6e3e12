/* SPDX-License-Identifier: Apache-2.0
 *
 * cuda_args.h - the argument of every kernel, as the C compiler and NVRTC both read it. Filled at each run by
 * cuda_run.c; what is fixed when a plan is made reaches the kernel as a macro of config.h instead.
 */
#ifndef RFT_CUDA_KERNELS_CUDA_ARGS_H
#define RFT_CUDA_KERNELS_CUDA_ARGS_H

#define RFT_CUDA_OPERANDS 16 /* RFT_MAX_OPERANDS */
#define RFT_CUDA_NUMBERS 6
#define RFT_CUDA_MAPS 5

typedef struct rft__cuda_operand {
    const void *ptr;
    long long ld, batch_stride; /* elements; ld is never 0 */
} rft__cuda_operand;

typedef struct rft__cuda_args {
    const void *x, *w;
    void *y, *workspace;
    long long ldx, ldw, ldy, x_batch_stride, w_batch_stride, y_batch_stride; /* elements */
    int m, n, k, batch;          /* n: rows of W, so twice the columns of y where a gated unit closes the product */
    int number[RFT_CUDA_NUMBERS]; /* what a family adds, such as tiles and parts of k */
    rft__cuda_operand operand[RFT_CUDA_OPERANDS];
} rft__cuda_args;

/* A CUtensorMap, opaque. Kernels with maps take the first of these behind the arguments, each __grid_constant__: of x, w and y,
 * and of x and w again with the boxes of the last tile. */
typedef struct rft__cuda_map {
    unsigned long long word[16];
} __attribute__((aligned(64))) rft__cuda_map;

#endif
