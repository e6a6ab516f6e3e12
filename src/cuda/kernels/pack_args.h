/* SPDX-License-Identifier: Apache-2.0
 *
 * pack_args.h - the argument of the packing kernel, as the C compiler and NVRTC both read it. Filled by cuda_pack.c.
 */
#ifndef RFT_CUDA_KERNELS_PACK_ARGS_H
#define RFT_CUDA_KERNELS_PACK_ARGS_H

#define RFT_PACK_THREADS 256 /* of a block */
#define RFT_PACK_TILE    64  /* rows and columns that a block transposes at a time */
#define RFT_PACK_GRANULE 16  /* bytes; rows of packed data begin at multiples of it */

typedef struct rft__pack_args {
    const void *source;
    void *data;
    long long n, k, batch;
    long long ld, batch_stride; /* of source, in elements: rows are K- or N-contiguous */
    long long pitch;            /* of data, in bytes */
} rft__pack_args;

#endif
