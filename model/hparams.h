/* SPDX-License-Identifier: Apache-2.0
 *
 * hparams.h - the model families whose linear layers are known, and the sizes that fix those layers.
 *
 * Filled by hparams_gguf.c and hparams_config.c, used by layers.c. Invariant after rft__hparams_check: every size is in
 * 1..RFT_MAX_SIZE (layers 1..RFT_MAX_LAYERS), so no product of two sizes and the layer count leaves int64_t.
 */
#ifndef RFT_MODEL_HPARAMS_H
#define RFT_MODEL_HPARAMS_H

#include "gguf.h"
#include "quant_config.h"

#define RFT_MAX_SIZE   ((int64_t)1 << 22)
#define RFT_MAX_LAYERS 4096

typedef struct rft__arch {
    const char *name; /* general.architecture in GGUF, model_type in config.json */
    bool qkv_bias;    /* always has biases behind q, k and v */
    bool qk_norm;     /* a norm of head_dim behind q and behind k: parameters, no product */
    bool tied;        /* where config.json does not say */
    const char *gguf; /* general.architecture of a GGUF file made from a checkpoint */
    bool permuted;    /* such a file has the halves of each q and k head interleaved, row by row */
} rft__arch;

typedef struct rft__hparams {
    const rft__arch *arch;
    char name[128];
    int64_t hidden, layers, heads, kv_heads, head_dim, ffn, vocab, context;
    bool tied, qkv_bias, output_bias, mlp_bias;
    rft_type type; /* of the weights; config.json only */
} rft__hparams;

rft_status rft__arch_find(const char *name, const rft__arch **out, rft_error *err);

rft_status rft__hparams_from_gguf(const rft__gguf *gguf, rft__hparams *h, rft_error *err);
/* text: config.json. quant: how weights are quantised, NULL: such a model is refused. */
rft_status rft__hparams_from_config(const void *text, size_t size, rft__hparams *h, rft__quant_config *quant, rft_error *err);

/* Parameters of the whole model that the sizes imply: products, embedding, norms, biases. */
int64_t rft__hparams_parameters(const rft__hparams *h);

/* Defaults that follow from other sizes (kv_heads, head_dim; 0 where the file is silent), then every rule. */
rft_status rft__hparams_check(rft__hparams *h, rft_error *err);

#endif
