/* SPDX-License-Identifier: Apache-2.0
 *
 * safetensors.h - the headers of safetensors files as one table of tensors, their data in place.
 *
 * Called by checkpoint.c, which owns the bytes. Invariant after rft__safetensors_parse: each tensor's bytes are exactly what its
 * dtype and shape take, and the tensors of a file cover its data without hole or overlap.
 */
#ifndef RFT_MODEL_SAFETENSORS_H
#define RFT_MODEL_SAFETENSORS_H

#include "tensors.h"

#define RFT_SAFETENSORS_MAX_HEADER ((size_t)100 << 20) /* bytes; the limit of the format's own library */
#define RFT_SAFETENSORS_MAX_NAME   256                 /* of a tensor, with its terminator */

typedef struct rft__shard { /* one file of a checkpoint */
    const char *name;       /* for messages */
    const unsigned char *bytes;
    size_t size;
} rft__shard;

/* The name of a type in a header; NULL: it has none. */
const char *rft__safetensors_dtype(rft_type type);

/* Do the bytes begin as such a file does? */
bool rft__safetensors_begins(const unsigned char *bytes, size_t size);

/* Shapes are row-major, so dims come in the opposite order; dimensions past the fourth are folded into dims[3]. On failure
 * everything is released. */
rft_status rft__safetensors_parse(const rft__allocator *a, const rft__shard *shards, size_t count, rft__tensors *out,
                                  rft_error *err);

#endif
