/* SPDX-License-Identifier: Apache-2.0
 *
 * cuda_source.h - the texts that device code is compiled from. The embedded set is made at build time by cmake/embed.cmake:
 * files of src/cuda/kernels/ under their plain name ("gemv.cu", "cuda_args.h"), others under their path from src/
 * ("epilogue/epi_math.h", "format/decode/decode_q.h"). A text includes another by exactly that name.
 * Called by jit.c. Invariant: an include that names no text of the set stays to NVRTC, which reports it.
 */
#ifndef RFT_CUDA_SOURCE_H
#define RFT_CUDA_SOURCE_H

#include "rooftile.h"

#define RFT_CUDA_MAX_INCLUDES 64 /* texts that one source reaches */

typedef struct rft__cuda_text {
    const char *name, *text; /* text ends in '\0' */
    const char *digest;      /* of the text, for the cache's key; NULL: none was made ahead */
} rft__cuda_text;

typedef struct rft__cuda_source {
    const rft__cuda_text *texts;
    uint32_t count;
} rft__cuda_source;

extern const rft__cuda_source rft__cuda_embedded;

typedef struct rft__cuda_unit { /* one source with all that it includes, directly or not */
    const rft__cuda_text *source;
    const rft__cuda_text *includes[RFT_CUDA_MAX_INCLUDES]; /* in the order found, each once */
    uint32_t n_includes;
} rft__cuda_unit;

/* RFT_E_ARG: no text of that name, or more than RFT_CUDA_MAX_INCLUDES. */
rft_status rft__cuda_unit_find(const rft__cuda_source *set, const char *name, rft__cuda_unit *unit, rft_error *err);

#endif
