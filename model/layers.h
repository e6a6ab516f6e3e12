/* SPDX-License-Identifier: Apache-2.0
 *
 * layers.h - the distinct linear layers of a model, from its tensors or from its sizes alone.
 *
 * Called by model.c. Invariant: rows are in the order of execution and no two are equal in role, type, shape and bias.
 */
#ifndef RFT_MODEL_LAYERS_H
#define RFT_MODEL_LAYERS_H

#include "hparams.h"

typedef enum rft__role {
    RFT_ROLE_Q,
    RFT_ROLE_K,
    RFT_ROLE_V,
    RFT_ROLE_OUTPUT,
    RFT_ROLE_UP,
    RFT_ROLE_GATE,
    RFT_ROLE_DOWN,
    RFT_ROLE_LM_HEAD,
    RFT_N_ROLES
} rft__role;

typedef struct rft__layer {
    rft__role role;
    rft_type type;
    int64_t count, n, k, bytes;
    int64_t tensor, bias_tensor; /* of the first such layer; -1: none */
    const char *scheme;          /* see rft_tensor */
    bool bias;
} rft__layer;

typedef struct rft__layers {
    rft__layer *rows;
    int64_t count, room;
} rft__layers;

#define RFT_LAYER_NAME 96 /* of a layer's tensor, with its terminator */

typedef struct rft__naming { /* how a kind of file calls the tensors of the products */
    const char *blocks;      /* before the number of a block */
    const char *embedding;
    const char *roles[RFT_N_ROLES];
} rft__naming;

extern const rft__naming rft__gguf_naming, rft__hf_naming;

/* part: "weight" or "bias"; block does not count for lm_head. */
void rft__layer_tensor_name(const rft__naming *naming, rft__role role, int64_t block, const char *part,
                            char name[RFT_LAYER_NAME]);

/* h is checked. Blocks may differ in type and in ffn size; every other shape must be the one that h demands. */
rft_status rft__layers_from_tensors(const rft__allocator *a, const rft__tensors *tensors, const rft__naming *naming,
                                    const rft__hparams *h, rft__layers *out, rft_error *err);
rft_status rft__layers_from_hparams(const rft__allocator *a, const rft__hparams *h, rft__layers *out, rft_error *err);
void rft__layers_free(const rft__allocator *a, rft__layers *layers);

/* The public form of a row, in a checked phase. */
void rft__layer_describe(const rft__layer *row, const rft_phase *phase, rft_layer *out);

#endif
