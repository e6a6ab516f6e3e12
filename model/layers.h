/* SPDX-License-Identifier: Apache-2.0
 *
 * layers.h - the distinct linear layers of a model, from its tensors or from its sizes alone.
 *
 * Called by model.c. Invariant: rows are in the order of execution and no two are equal in product, type, shape and bias; the
 * products of count, n and k of all rows sum up to at most RFT_MAX_PARAMETERS.
 */
#ifndef RFT_MODEL_LAYERS_H
#define RFT_MODEL_LAYERS_H

#include "hparams.h"

#define RFT_MAX_PARAMETERS ((int64_t)1 << 58) /* eight bytes of each stay below 2^63 */

typedef struct rft__layer {
    const rft__product *product;
    const char *name; /* public */
    rft_type type;
    rft_epi_kind act;
    rft_order order;
    int64_t count, n, k, bytes;
    int64_t tensor, bias_tensor; /* of the first such layer; -1: none */
    int64_t experts, used;       /* 0: not routed */
    int64_t source;              /* rows of each text, in the phases that begin one; 0: its tokens are the rows */
    const char *scheme;          /* see rft_tensor */
    bool bias;
    bool unknown; /* a matrix whose role nobody knows */
    rft_order x_order;
    int64_t place; /* among the rows of a file, for rft__layers_merge */
} rft__layer;

typedef struct rft__layers {
    rft__layer *rows;
    int64_t count, room;
    int64_t parameters; /* of all rows */
    char *names;        /* of unknown rows */
    size_t name_bytes;
} rft__layers;

typedef struct rft__naming { /* how a file calls its tensors */
    bool gguf;
    const char *prefix; /* of a checkpoint's, before blocks and embedding */
} rft__naming;

/* The prefix is found by the embedding. */
rft__naming rft__naming_find(const rft__tensors *tensors, const rft__arch *arch, bool gguf);
/* The tensor of the token embedding; -1: there is none. */
int64_t rft__layers_embedding(const rft__tensors *tensors, bool gguf, const rft__arch *arch);
/* The tensor of a product, or with bias of its bias; -1: there is none. expert counts only where each has a tensor of its own. */
int64_t rft__layer_find(const rft__tensors *tensors, const rft__naming *naming, const rft__hparams *h,
                        const rft__product *product, int64_t block, int64_t expert, bool bias);

/* h is checked. Blocks may differ in type and in ffn size; every other shape must be the one that h demands. */
rft_status rft__layers_from_tensors(const rft__allocator *a, const rft__tensors *tensors, bool gguf, const rft__hparams *h,
                                    rft__layers *out, rft_error *err);
rft_status rft__layers_from_hparams(const rft__allocator *a, const rft__hparams *h, rft__layers *out, rft_error *err);
/* For those who add rows: room for them and for their names, and the parameters of one. */
rft_status rft__layers_reserve(const rft__allocator *a, int64_t rows, size_t name_bytes, rft__layers *out, rft_error *err);
rft_status rft__layers_count(rft__layers *layers, const rft__layer *layer, rft_error *err);
void rft__layers_free(const rft__allocator *a, rft__layers *layers);

/* Parameters of experts that a token does not meet. */
int64_t rft__layers_idle(const rft__layers *layers);

/* The public form of a row, in a checked phase. */
void rft__layer_describe(const rft__layer *row, const rft_phase *phase, rft_layer *out);
/* Of a routed row: what `held` of its experts are met by, in all blocks, where `tokens` are routed. */
void rft__layer_route(const rft__layer *row, int64_t tokens, int64_t held, rft_layer *out);
/* From the forward product to that of another pass. */
void rft__layer_turn(rft_layer *layer, rft_pass pass);

#endif
