/* SPDX-License-Identifier: Apache-2.0
 *
 * checkpoint.h - a Hugging Face checkpoint on disk: config.json and the safetensors files beside it, mapped.
 *
 * Called by model.c, which keeps it as long as the model lives. Invariant: every file name of an index is plain, so that nothing
 * outside the folder is opened.
 */
#ifndef RFT_MODEL_CHECKPOINT_H
#define RFT_MODEL_CHECKPOINT_H

#include "mapping.h"
#include "safetensors.h"

#define RFT_MAX_SHARDS 4096

typedef struct rft__checkpoint {
    rft__mapping config;
    rft__mapping quantize; /* quantize_config.json, where older GPTQ checkpoints say how; else none */
    rft__mapping index;    /* none for a single file */
    rft__mapping *files;
    rft__shard *shards; /* the same files */
    char *names;        /* theirs, RFT_SHARD_NAME bytes each */
    size_t count;
    rft__tensors tensors; /* of all files */
} rft__checkpoint;

#define RFT_SHARD_NAME 128 /* of a file, with its terminator */

/* path: a folder, a .safetensors file, or an index (.index.json). */
bool rft__checkpoint_is(const char *path, const rft__mapping *file);
rft_status rft__checkpoint_open(const rft__allocator *a, const char *path, rft__checkpoint *out, rft_error *err);
void rft__checkpoint_free(const rft__allocator *a, rft__checkpoint *checkpoint);
uint64_t rft__checkpoint_bytes(const rft__checkpoint *checkpoint);

/* Does each name of an index stand in the file that it says? Called by open, and by tests over bytes. */
rft_status rft__checkpoint_check_index(const void *text, size_t size, const rft__shard *shards, size_t count,
                                       const rft__tensors *tensors, rft_error *err);

#endif
