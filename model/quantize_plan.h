/* SPDX-License-Identifier: Apache-2.0
 *
 * quantize_plan.h - what each tensor of a new file is made from, and becomes.
 *
 * Made by quantize_plan.c for GGUF files and by quantize_packed.c for checkpoints, carried out by quantize.c. Invariant: offsets
 * ascend (in GGUF in steps of the alignment), and names are those of the new file.
 */
#ifndef RFT_MODEL_QUANTIZE_PLAN_H
#define RFT_MODEL_QUANTIZE_PLAN_H

#include "format/encode.h"
#include "format/pack_rows.h"
#include "hf_gguf.h"

typedef struct rft__planned {
    const rft__tensor *source; /* NULL: the model's rotary frequencies */
    int64_t index;             /* of source */
    char name[RFT_SAFETENSORS_MAX_NAME];
    const rft__format *to;
    const rft__encoder *encoder; /* NULL, and not packed: the bytes are copied */
    bool packed;                 /* codes here, scales beside them until they are written */
    rft__packing packing;
    unsigned char *scales;
    int64_t heads; /* see rft__hf_gguf_row */
    int64_t bytes;
    uint64_t offset;
    char why[96]; /* see rft_quantized */
} rft__planned;

typedef struct rft__quantize_plan {
    rft__planned *list;
    size_t count, room;
    unsigned char *scales; /* of all packed tensors */
    size_t scale_bytes;
    uint64_t alignment;
    float freqs[RFT_MAX_ROPE_FREQS];
    int64_t n_freqs;
} rft__quantize_plan;

/* What a plan is made from. */
typedef struct rft__planner {
    const rft_model *model;
    const rft_quantize_options *o;
    bool *linear; /* of each tensor: is it the weight of a product? */
    rft_error *err;
} rft__planner;

/* Makes room, marks what is linear, and lets fill_plan do the rest. out is empty where it fails. */
rft_status rft__quantize_plan_build(const rft_model *model, const rft_quantize_options *o,
                                    rft_status (*fill_plan)(const rft__planner *p, rft__quantize_plan *out),
                                    rft__quantize_plan *out, rft_error *err);
bool rft__quantize_keeps(const rft_quantize_options *o, const char *name);
/* Can this weight be quantised, or quantised again? */
rft_status rft__quantize_check_source(const rft_quantize_options *o, const rft__tensor *t, rft_error *err);

rft_status rft__quantize_plan_make(const rft_model *model, const rft_quantize_options *o, rft__quantize_plan *out,
                                   rft_error *err);
void rft__quantize_plan_free(const rft__allocator *a, rft__quantize_plan *plan);

#endif
