/* SPDX-License-Identifier: Apache-2.0
 *
 * hparams_config.c - the sizes of a model from a Hugging Face config.json. See hparams.h.
 *
 * Which key is which size stands in config_keys.def; absent ones take the defaults of the transformers library's config classes.
 */
#include "hparams.h"

#include "base/error.h"
#include "base/printable.h"
#include "json_read.h"

#include <inttypes.h>
#include <stddef.h>
#include <string.h>

#define MAX_CONFIG_BYTES ((size_t)16 << 20) /* hundreds of times a real one; bounds the parser's memory */

/* alone: without tensors, which could be listed even so. */
static rft_status read_arch(const json_t *root, bool alone, rft__hparams *h, rft_error *err) {
    const char *type = NULL, *name = "";
    RFT_TRY(rft__json_string(root, "model_type", &type, err));
    if (!type) {
        RFT_FAIL(err, RFT_E_ARG, "the key 'model_type' is missing: this is not a model's config.json");
    }
    h->arch = rft__arch_find(type, false, false);
    if (!h->arch) {
        rft__copy_printable(h->prefix, sizeof h->prefix, type, strlen(type));
        h->arch = &rft__arch_unknown;
        if (alone) {
            return rft__arch_refuse(h->prefix, "and config.json alone has no weights to list: open the checkpoint", err);
        }
    }
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

/* Blocks without experts among those with them, by number: no model that was looked at has any. */
static rft_status refuse_exceptions(const json_t *root, rft_error *err) {
    const size_t count = json_array_size(rft__json_find(root, "mlp_only_layers"));
    if (count > 0) {
        RFT_FAIL(err, RFT_E_UNSUPPORTED, "mlp_only_layers names %zu blocks: not supported", count);
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

typedef struct key_row {
    const char *arch, *key;
    size_t field; /* in rft__hparams */
    bool needed;
} key_row;

#define RFT_KEY(arch, key, field, needed) {arch, key, offsetof(rft__hparams, field), needed},
static const key_row keys[] = {
#include "config_keys.def"
};
#undef RFT_KEY

enum { N_KEYS = sizeof keys / sizeof keys[0] };

static int64_t *field_of(rft__hparams *h, const key_row *row) { return (int64_t *)(void *)((char *)h + row->field); }

static bool applies(const rft__hparams *h, const key_row *row) {
    return row->arch[0] == 0 || strcmp(row->arch, h->arch->name) == 0 || (h->arch->moe && strcmp(row->arch, "moe") == 0) ||
           (h->arch->mla && strcmp(row->arch, "latent") == 0);
}

static rft_status check_needed(rft__hparams *h, const key_row *needed, rft_error *err) {
    const char *name = needed->key;
    const int64_t *field = field_of(h, needed);
    for (size_t i = 0; i < N_KEYS; i++) {
        if (keys[i].field == needed->field && applies(h, &keys[i])) {
            name = keys[i].key;
        }
    }
    return *field != 0 || *rft__hparams_key(h, field) ? RFT_OK
                                                      : rft__error_set(err, RFT_E_ARG, 0, "the key '%s' is missing", name);
}

static rft_status read_sizes(const json_t *root, rft__hparams *h, rft_error *err) {
    const rft__arch *a = h->arch;
    h->heads = a->heads;
    h->kv_heads = a->kv_heads;
    h->head_dim = a->head_dim;
    h->vocab = a->vocab;
    for (size_t i = 0; i < N_KEYS; i++) {
        if (applies(h, &keys[i]) && rft__json_find(root, keys[i].key)) {
            RFT_TRY(rft__json_size(root, keys[i].key, true, field_of(h, &keys[i]), err));
            *rft__hparams_key(h, field_of(h, &keys[i])) = keys[i].key;
        }
    }
    if (h->ffn == 0 && a->ffn_times > 0 && rft__mul_overflows(a->ffn_times, h->hidden, &h->ffn)) {
        RFT_FAIL(err, RFT_E_ARG, "'%s': hidden size = %" PRId64 " is over %" PRId64, *rft__hparams_key(h, &h->hidden), h->hidden,
                 RFT_MAX_SIZE);
    }
    for (size_t i = 0; i < N_KEYS; i++) {
        if (keys[i].needed && applies(h, &keys[i])) {
            RFT_TRY(check_needed(h, &keys[i], err));
        }
    }
    return RFT_OK;
}

/* The activation of the feed-forward part, under the names that transformers has for it. */
static rft_status read_activation(const json_t *root, rft__hparams *h, rft_error *err) {
    static const struct {
        const char *name;
        rft_epi_kind kind;
    } known[] = {{"silu", RFT_EPI_SILU},          {"swish", RFT_EPI_SILU},
                 {"gelu", RFT_EPI_GELU},          {"gelu_new", RFT_EPI_GELU_TANH},
                 {"gelu_fast", RFT_EPI_GELU_TANH}, {"gelu_pytorch_tanh", RFT_EPI_GELU_TANH},
                 {"relu", RFT_EPI_RELU}};
    const char *name = NULL;
    h->act = h->arch->act;
    RFT_TRY(rft__json_string(root, "hidden_act", &name, err));
    RFT_TRY(rft__json_string(root, "activation_function", &name, err));
    RFT_TRY(rft__json_string(root, "hidden_activation", &name, err));
    for (size_t i = 0; name && i < sizeof known / sizeof known[0]; i++) {
        if (strcmp(name, known[i].name) == 0) {
            h->act = known[i].kind;
            return RFT_OK;
        }
    }
    if (name) {
        char text[48];
        rft__copy_printable(text, sizeof text, name, strlen(name));
        RFT_FAIL(err, RFT_E_UNSUPPORTED, "hidden_act = '%s': silu, gelu, its tanh form and relu are supported", text);
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

/* Newer files list the kind of each block. */
static rft_status count_windows(const json_t *types, rft__hparams *h, rft_error *err) {
    const size_t count = json_array_size(types);
    if (!json_is_array(types) || count != (uint64_t)h->layers) {
        RFT_FAIL(err, RFT_E_ARG, "layer_types names %zu blocks, not num_hidden_layers = %" PRId64, count, h->layers);
    }
    h->windowed = 0;
    for (size_t i = 0; i < count; i++) {
        const char *type = json_string_value(json_array_get(types, i));
        if (!type || (strcmp(type, "full_attention") != 0 && strcmp(type, "sliding_attention") != 0)) {
            RFT_FAIL(err, RFT_E_UNSUPPORTED, "layer_types[%zu] is neither 'full_attention' nor 'sliding_attention'", i);
        }
        h->windowed += strcmp(type, "sliding_attention") == 0;
    }
    return RFT_OK;
}

/* A window that is null is none; one that is absent is that of the architecture. */
static rft_status read_window(const json_t *root, rft__hparams *h, rft_error *err) {
    const rft__arch *a = h->arch;
    const json_t *types = rft__json_find(root, "layer_types");
    bool on = a->windows != RFT_WINDOWS_LATE;
    int64_t every = a->full_every, first = h->layers;
    RFT_TRY(rft__json_bool(root, "use_sliding_window", &on, err));
    if (a->windows == RFT_WINDOWS_NONE || !on || json_is_null(json_object_get(root, "sliding_window"))) {
        return RFT_OK;
    }
    h->window = a->window;
    RFT_TRY(rft__json_size(root, "sliding_window", false, &h->window, err));
    RFT_TRY(rft__json_size(root, "sliding_window_pattern", false, &every, err));
    RFT_TRY(rft__json_size(root, "max_window_layers", false, &first, err));
    *rft__hparams_key(h, &h->window) = "sliding_window";
    h->windowed = rft__windowed_blocks(h, every, first);
    return types ? count_windows(types, h, err) : RFT_OK;
}

static rft_status read_root(const json_t *root, rft__hparams *h, rft__quant_config *quant, rft_error *err) {
    RFT_TRY(read_arch(root, !quant, h, err));
    RFT_TRY(read_quantised(root, quant, err));
    if (rft__hparams_unknown(h)) {
        return RFT_OK;
    }
    RFT_TRY(read_type(root, h, err));
    if (h->arch->nested) {
        root = rft__json_find(root, h->arch->nested);
        if (!json_is_object(root)) {
            RFT_FAIL(err, RFT_E_ARG, "the key '%s' is missing, or no object", h->arch->nested);
        }
    }
    RFT_TRY(refuse_exceptions(root, err));
    RFT_TRY(read_activation(root, h, err));
    RFT_TRY(read_sizes(root, h, err));
    RFT_TRY(read_switches(root, h, err));
    RFT_TRY(read_window(root, h, err));
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
