/* SPDX-License-Identifier: Apache-2.0
 *
 * quantize_plan.h - what each tensor of a new GGUF file is made from, and becomes.
 *
 * Called by quantize.c. Invariant: offsets ascend in steps of the alignment, and names are those of GGUF.
 */
#ifndef RFT_MODEL_QUANTIZE_PLAN_H
#define RFT_MODEL_QUANTIZE_PLAN_H

#include "format/encode.h"
#include "hf_gguf.h"

typedef struct rft__planned {
    const rft__tensor *source; /* NULL: the model's rotary frequencies */
    int64_t index;             /* of source */
    char name[RFT_GGUF_MAX_NAME];
    const rft__format *to;
    const rft__encoder *encoder; /* NULL: the bytes are copied */
    int64_t heads;               /* see rft__hf_gguf_row */
    int64_t bytes;
    uint64_t offset;
    char why[96]; /* see rft_quantized */
} rft__planned;

typedef struct rft__quantize_plan {
    rft__planned *list;
    size_t count, room;
    uint64_t alignment;
    float freqs[RFT_MAX_ROPE_FREQS];
    int64_t n_freqs;
} rft__quantize_plan;

rft_status rft__quantize_plan_make(const rft_model *model, const rft_quantize_options *o, rft__quantize_plan *out,
                                   rft_error *err);
void rft__quantize_plan_free(const rft__allocator *a, rft__quantize_plan *plan);

#endif
