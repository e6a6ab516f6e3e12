/* SPDX-License-Identifier: Apache-2.0
 *
 * jit_cache.h - cubins on disk: <cache_dir>/cubin/<key>.cubin, a header and the code. The key is a hash of all that the code
 * depends on. Called by jit.c, from several threads and processes at once.
 * Invariant: a file is whole or it is not used. What cannot be read, or holds anything unexpected, is a miss; what cannot be
 * written is not kept.
 */
#ifndef RFT_CUDA_JIT_CACHE_H
#define RFT_CUDA_JIT_CACHE_H

#include "cuda/jit.h"

typedef struct rft__jit_key {
    uint64_t word[2];
} rft__jit_key;

/* A key grows part by part; parts are told apart by their lengths. */
rft__jit_key rft__jit_key_start(void);
void rft__jit_key_add(rft__jit_key *key, const void *bytes, size_t size);
void rft__jit_key_add_text(rft__jit_key *key, const char *text);

/* True: cubin holds the code (data from a) and the figures stored with it. */
bool rft__jit_cache_read(const rft__allocator *a, const char *cache_dir, const rft__jit_key *key, rft__cubin *cubin);
rft_status rft__jit_cache_write(const rft__allocator *a, const char *cache_dir, const rft__jit_key *key, const rft__cubin *cubin,
                                rft_error *err);

#endif
