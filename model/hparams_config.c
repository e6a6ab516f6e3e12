/* SPDX-License-Identifier: Apache-2.0
 *
 * hparams_config.c - the sizes of a model from a Hugging Face config.json. See hparams.h.
 *
 * Keys that are absent take the defaults of the transformers library's own config classes.
 */
#include "hparams.h"

#include "base/error.h"
#include "cursor.h"
#include "json_read.h"

#include <inttypes.h>
#include <string.h>

#define MAX_CONFIG_BYTES ((size_t)16 << 20) /* hundreds of times a real one; bounds the parser's memory */

static rft_status read_arch(const json_t *root, rft__hparams *h, rft_error *err) {
    const char *type = NULL, *name = "";
    RFT_TRY(rft__json_string(root, "model_type", &type, err));
    if (!type) {
        RFT_FAIL(err, RFT_E_ARG, "the key 'model_type' is missing: this is not a model's config.json");
    }
    RFT_TRY(rft__arch_find(type, &h->arch, err));
    RFT_TRY(rft__json_string(root, "_name_or_path", &name, err));
    rft__copy_printable(h->name, sizeof h->name, name, strlen(name));
    return RFT_OK;
}

static rft_status read_type(const json_t *root, rft__hparams *h, rft_error *err) {
    static const struct {
        const char *name;
        rft_type type;
    } types[] = {{"float32", RFT_F32}, {"float16", RFT_F16}, {"bfloat16", RFT_BF16}};
    const char *name = "float32";
    RFT_TRY(rft__json_string(root, "torch_dtype", &name, err));
    RFT_TRY(rft__json_string(root, "dtype", &name, err));
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        if (strcmp(name, types[i].name) == 0) {
            h->type = types[i].type;
            return RFT_OK;
        }
    }
    RFT_FAIL(err, RFT_E_UNSUPPORTED, "torch_dtype = '%.40s' is none of float32, float16 and bfloat16", name);
}

static rft_status refuse_experts(const json_t *root, rft_error *err) {
    static const char *const keys[] = {"num_local_experts", "num_experts", "n_routed_experts"};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        int64_t experts = 0;
        RFT_TRY(rft__json_size(root, keys[i], false, &experts, err));
        if (experts > 0) {
            RFT_FAIL(err, RFT_E_UNSUPPORTED, "%s = %" PRId64 ": mixture-of-experts layers are not supported", keys[i], experts);
        }
    }
    return RFT_OK;
}

static rft_status read_quantised(const json_t *root, rft__quant_config *quant, rft_error *err) {
    const json_t *newer = rft__json_find(root, "quantization_config");
    const json_t *config = newer ? newer : rft__json_find(root, "compression_config");
    const char *method = "unnamed";
    if (!config) {
        return RFT_OK;
    }
    if (quant) {
        return rft__quant_config_read(config, quant, err);
    }
    RFT_TRY(rft__json_string(config, "quant_method", &method, err));
    RFT_FAIL(err, RFT_E_UNSUPPORTED,
             "quantization_config of method '%.40s': only the tensors say how that is stored, so open the checkpoint's folder",
             method);
}

static rft_status read_sizes(const json_t *root, rft__hparams *h, rft_error *err) {
    RFT_TRY(rft__json_size(root, "hidden_size", true, &h->hidden, err));
    RFT_TRY(rft__json_size(root, "num_hidden_layers", true, &h->layers, err));
    RFT_TRY(rft__json_size(root, "intermediate_size", true, &h->ffn, err));
    RFT_TRY(rft__json_size(root, "vocab_size", true, &h->vocab, err));
    RFT_TRY(rft__json_size(root, "num_attention_heads", true, &h->heads, err));
    RFT_TRY(rft__json_size(root, "num_key_value_heads", false, &h->kv_heads, err));
    RFT_TRY(rft__json_size(root, "head_dim", false, &h->head_dim, err));
    return rft__json_size(root, "max_position_embeddings", false, &h->context, err);
}

/* The epilogue of ffn_gate is silu, which all the families here have; a config that says otherwise is another model. */
static rft_status check_activation(const json_t *root, rft_error *err) {
    const char *name = "silu";
    RFT_TRY(rft__json_string(root, "hidden_act", &name, err));
    if (strcmp(name, "silu") != 0 && strcmp(name, "swish") != 0) {
        RFT_FAIL(err, RFT_E_UNSUPPORTED, "hidden_act = '%.40s': only silu is supported", name);
    }
    return RFT_OK;
}

static rft_status read_switches(const json_t *root, rft__hparams *h, rft_error *err) {
    h->tied = h->arch->tied;
    RFT_TRY(rft__json_bool(root, "tie_word_embeddings", &h->tied, err));
    RFT_TRY(rft__json_bool(root, "attention_bias", &h->output_bias, err));
    h->qkv_bias = h->arch->qkv_bias || h->output_bias;
    return rft__json_bool(root, "mlp_bias", &h->mlp_bias, err);
}

static rft_status read_root(const json_t *root, rft__hparams *h, rft__quant_config *quant, rft_error *err) {
    RFT_TRY(read_arch(root, h, err));
    RFT_TRY(refuse_experts(root, err));
    RFT_TRY(read_quantised(root, quant, err));
    RFT_TRY(check_activation(root, err));
    RFT_TRY(read_type(root, h, err));
    RFT_TRY(read_sizes(root, h, err));
    RFT_TRY(read_switches(root, h, err));
    return rft__hparams_check(h, err);
}

rft_status rft__hparams_from_config(const void *text, size_t size, rft__hparams *h, rft__quant_config *quant, rft_error *err) {
    *h = (rft__hparams){0};
    if (quant) {
        *quant = (rft__quant_config){0};
    }
    json_t *root = NULL;
    RFT_TRY(rft__json_load("", text, size, MAX_CONFIG_BYTES, &root, err));
    const rft_status status = read_root(root, h, quant, err);
    json_decref(root);
    return status;
}
