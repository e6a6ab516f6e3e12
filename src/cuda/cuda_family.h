/* SPDX-License-Identifier: Apache-2.0
 *
 * cuda_family.h - what a kernel family tells plan: which of its rows can serve a problem and how, what that would cost,
 * the macros of its text, and the launch at one m. All of it is arithmetic on facts of a device, so it works and is tested
 * where no GPU is. Implemented by one <family>.c for each kernels/<family>.cu; called by cuda_choose.c and cuda_run.c.
 */
#ifndef RFT_CUDA_CUDA_FAMILY_H
#define RFT_CUDA_CUDA_FAMILY_H

#include "cuda/kernels/cuda_args.h"
#include "problem/backend.h"

typedef struct rft__cuda_facts { /* of a device, present or described by a profile */
    int arch;                     /* compute capability times ten: 80, 86, 89, 90 */
    int sms;                      /* that may be used */
    bool limited;                 /* the device has more: one block on each, as it spreads blocks before it stacks them */
    int shared_block, shared_sm;  /* bytes of shared memory that one block may ask for, and that an SM has */
    int64_t l2;                   /* bytes */
    double read_bps, l2_bps;      /* memory read and L2 bandwidth, bytes a second, all SMs */
    double flops_16, flops_tf32, flops_f32; /* a second, all SMs, sustained */
} rft__cuda_facts;

typedef enum rft__cuda_compute { RFT__CUDA_F32, RFT__CUDA_TF32, RFT__CUDA_F16, RFT__CUDA_BF16 } rft__cuda_compute;

typedef struct rft__cuda_family rft__cuda_family;

typedef struct rft__cuda_row { /* of kernels_cuda.def */
    const char *name;
    const rft__cuda_family *family;
    rft_type x, w;
    rft__cuda_compute compute;
    int bm, bn, bk, warps, arch;
    double gamma, eta;
} rft__cuda_row;

/* One way to run a problem: a row and its free parameters. Equal configs compile to equal text. */
typedef struct rft__cuda_config {
    const rft__cuda_row *row;
    int m;         /* rows compiled in; 0: any */
    int split;     /* parts of k, summed in ascending order; 1: none */
    int cluster;   /* blocks in a cluster; 1: none */
    int stages;    /* of the ring in shared memory; 0: no ring */
    int option[4]; /* the family's own, such as the raster or rows a warp */
} rft__cuda_config;

typedef struct rft__cuda_launch {
    unsigned grid[3], block, cluster; /* cluster along grid[0]; 1: none */
    unsigned shared;                  /* bytes of dynamic shared memory */
    size_t workspace;                 /* bytes */
    int number[RFT_CUDA_NUMBERS];     /* for the arguments */
} rft__cuda_launch;

typedef struct rft__cuda_map_spec { /* arguments of cuTensorMapEncodeTiled; rank 0: this kernel has no such map */
    const void *address;
    rft_type elem;
    int rank;
    uint64_t dim[5], stride[5]; /* elements, fastest first; bytes, stride[0] unused */
    uint32_t box[5];
    int swizzle; /* bytes: 0, 32, 64, 128 */
} rft__cuda_map_spec;

enum { RFT__CUDA_CONFIGS = 16, RFT__CUDA_REASON = 120 };

/* Writes why a row does not serve into reason, of RFT__CUDA_REASON bytes; NULL: nobody asks. Returns 0, so many configs. */
__attribute__((format(printf, 2, 3))) int rft__cuda_refuse(char *reason, const char *format, ...);

struct rft__cuda_family {
    const char *name;   /* entry point of the text as well */
    const char *source; /* "gemv.cu" */
    /* The configs with which row may serve p at m, at most RFT__CUDA_CONFIGS; 0: none, and why, where reason is not NULL.
     * Types, architecture, compute and alpha = 0 were checked by the caller. */
    int (*configs)(const rft__cuda_facts *f, const rft__problem *p, int64_t m, const rft__cuda_row *row, rft__cuda_config *out,
                   char *reason);
    /* Estimated seconds of one run with cold weights, launch left out. */
    double (*seconds)(const rft__cuda_facts *f, const rft__problem *p, int64_t m, const rft__cuda_config *c);
    /* Adds the family's own macros to config.h, a #define a line; NULL: it has none. */
    void (*text)(const rft__problem *p, const rft__cuda_config *c, rft__text *t);
    void (*launch)(const rft__cuda_facts *f, const rft__problem *p, const rft__cuda_config *c, int64_t m, rft__cuda_launch *l);
    /* The maps of one run in the order of rft__cuda_map, rank 0 for those that are not read; NULL: the kernel has none. Called
     * with the arguments filled in. */
    void (*maps)(const rft__problem *p, const rft__cuda_config *c, const rft__cuda_args *a,
                 rft__cuda_map_spec map[RFT_CUDA_MAPS]);
    /* Whether this run's pointers and strides suit the config: NULL when they do, else the rule broken; a plan keeps a
     * config without such needs beside it. NULL function: any operand suits. */
    const char *(*unsuited)(const rft__problem *p, const rft__cuda_config *c, const rft__cuda_args *a);
    bool any_m; /* a config without compiled rows serves every m, and a row's bits do not depend on m */
};

extern const rft__cuda_family rft__cuda_gemv, rft__cuda_stream_sm90, rft__cuda_gemm_sm90, rft__cuda_gemm_sm80,
    rft__cuda_gemm_simt;

#endif
