/* SPDX-License-Identifier: Apache-2.0
 *
 * jit.h - kernels compiled when they are first needed: embedded text + the text of config.h -> NVRTC -> cubin, kept in a cache
 * folder. Needs no GPU. Called by the CUDA backend when it makes plans, and by tests that compile every kernel row.
 * Invariant: the same request gives the same code, from the cache or not; a cache that fails costs time, never the result.
 */
#ifndef RFT_CUDA_JIT_H
#define RFT_CUDA_JIT_H

#include "base/alloc.h"
#include "base/log.h"
#include "cuda/cuda_source.h"

#define RFT_JIT_MAX 256 /* requests of one call */

typedef struct rft__jit rft__jit;

typedef struct rft__jit_options {
    rft__allocator allocator;
    rft__log log;
    const char *cache_dir;          /* cubins go into its folder cubin/; NULL: no cache */
    const rft__cuda_source *source; /* NULL: rft__cuda_embedded */
    uint32_t threads;               /* that compile at once; 0: as many as this process may use */
    bool debug;                     /* kernels with line numbers and RFT_KERNEL_DEBUG (debug.cuh) */
    int dump;                       /* their RFT_KERNEL_DUMP */
} rft__jit_options;

typedef struct rft__jit_request {
    const char *source; /* text's name, such as "gemv.cu" */
    const char *entry;  /* the extern "C" kernel */
    const char *config; /* text of the header "config.h", one macro a line */
    int arch;           /* compute capability: 80, 89, 90 (compiled as sm_90a), 100, ... */
} rft__jit_request;

typedef struct rft__cubin {
    void *data; /* for cuModuleLoadData */
    size_t size;
    int registers;                  /* a thread */
    int shared_bytes;               /* static, a block */
    int spill_bytes, stack_bytes;   /* a thread; spill_bytes: stores plus loads */
    bool serialized;                /* ptxas gave up on overlapping wgmma, or ignored setmaxnreg */
    bool cached;                    /* not compiled now */
    double milliseconds;            /* that this call took for it */
} rft__cubin;

rft_status rft__jit_create(const rft__jit_options *options, rft__jit **out, rft_error *err);
void rft__jit_free(rft__jit *jit); /* NULL is allowed */

/* Fills out[0..count-1]: from the cache, else compiled, several at once. From any thread. On failure out holds nothing to
 * release, and err speaks of the first request that failed: RFT_E_JIT with the first error line of the compiler, whose whole
 * log goes to the library's log; or with why there is no compiler. */
rft_status rft__jit_get(rft__jit *jit, const rft__jit_request *requests, uint32_t count, rft__cubin *out, rft_error *err);
void rft__cubin_release(const rft__jit *jit, rft__cubin *cubin);

#endif
