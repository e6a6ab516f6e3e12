/* SPDX-License-Identifier: Apache-2.0
 *
 * hf_gguf.c - see hf_gguf.h.
 */
#include "hf_gguf.h"

#include "base/error.h"
#include "json_read.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define MAX_CONFIG ((size_t)16 << 20)

/* Parts of a block. */
static const struct {
    const char *hf, *gguf;
} parts[] = {
    {"self_attn.q_proj", "attn_q"},
    {"self_attn.k_proj", "attn_k"},
    {"self_attn.v_proj", "attn_v"},
    {"self_attn.o_proj", "attn_output"},
    {"self_attn.q_norm", "attn_q_norm"},
    {"self_attn.k_norm", "attn_k_norm"},
    {"mlp.gate_proj", "ffn_gate"},
    {"mlp.up_proj", "ffn_up"},
    {"mlp.down_proj", "ffn_down"},
    {"input_layernorm", "attn_norm"},
    {"post_attention_layernorm", "ffn_norm"},
};

static const struct {
    const char *hf, *gguf;
} wholes[] = {
    {"model.embed_tokens.weight", "token_embd.weight"},
    {"model.norm.weight", "output_norm.weight"},
    {"lm_head.weight", "output.weight"},
    {"lm_head.bias", "output.bias"},
};

/* "weight" or "bias" behind `part` and a dot. */
static bool part_tail(const char *name, const char *part, const char **tail) {
    const size_t n = strlen(part);
    *tail = name + n + 1;
    return strncmp(name, part, n) == 0 && name[n] == '.' && (strcmp(*tail, "weight") == 0 || strcmp(*tail, "bias") == 0);
}

/* "model.layers.7." and nothing that only reads as such. */
static bool block_prefix(const char *name, int64_t *block, int *length) {
    char again[48];
    if (sscanf(name, "model.layers.%4" SCNd64 ".%n", block, length) != 1 || *length == 0 || *block < 0) {
        return false;
    }
    snprintf(again, sizeof again, "model.layers.%" PRId64 ".", *block);
    return strncmp(name, again, (size_t)*length) == 0 && strlen(again) == (size_t)*length;
}

bool rft__hf_gguf_name(const char *name, char out[RFT_GGUF_MAX_NAME]) {
    int64_t block;
    int length = 0;
    const char *tail;
    for (size_t i = 0; i < sizeof wholes / sizeof wholes[0]; i++) {
        if (strcmp(name, wholes[i].hf) == 0) {
            snprintf(out, RFT_GGUF_MAX_NAME, "%s", wholes[i].gguf);
            return true;
        }
    }
    if (!block_prefix(name, &block, &length)) {
        return false;
    }
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        if (part_tail(name + length, parts[i].hf, &tail)) {
            snprintf(out, RFT_GGUF_MAX_NAME, "blk.%" PRId64 ".%s.%s", block, parts[i].gguf, tail);
            return true;
        }
    }
    return false;
}

int64_t rft__hf_gguf_heads(const rft__hparams *h, const char *name) {
    const bool q = strstr(name, ".attn_q.") != NULL, k = strstr(name, ".attn_k.") != NULL;
    return !h->arch->permuted ? 0 : q ? h->heads : k ? h->kv_heads : 0;
}

int64_t rft__hf_gguf_row(int64_t at, int64_t rows, int64_t heads) {
    if (heads == 0 || rows % (2 * heads) != 0) {
        return at;
    }
    const int64_t head = rows / heads, inside = at % head;
    return at - inside + inside % 2 * (head / 2) + inside / 2;
}

/* ---- keys ---- */

static void key_of(const rft_model *m, const char *suffix, char out[128]) {
    snprintf(out, 128, "%s.%s", m->hparams.arch->gguf, suffix);
}

static void put_size(const rft_model *m, rft__gguf_out *out, const char *suffix, int64_t value) {
    char key[128];
    key_of(m, suffix, key);
    if (value > 0 && value <= UINT32_MAX) {
        rft__out_key_u32(out, key, (uint32_t)value);
    }
}

static void put_number(const rft_model *m, rft__gguf_out *out, const char *suffix, double value) {
    char key[128];
    key_of(m, suffix, key);
    rft__out_key_f32(out, key, (float)value);
}

static void put_text(const rft_model *m, rft__gguf_out *out, const char *suffix, const char *text) {
    char key[128];
    key_of(m, suffix, key);
    rft__out_key_text(out, key, text);
}

static void put_sizes(const rft_model *m, rft__gguf_out *out) {
    const rft__hparams *h = &m->hparams;
    put_size(m, out, "block_count", h->layers);
    put_size(m, out, "context_length", h->context);
    put_size(m, out, "embedding_length", h->hidden);
    put_size(m, out, "feed_forward_length", h->ffn);
    put_size(m, out, "attention.head_count", h->heads);
    put_size(m, out, "attention.head_count_kv", h->kv_heads);
    put_size(m, out, "attention.key_length", h->head_dim);
    put_size(m, out, "attention.value_length", h->head_dim);
    put_size(m, out, "rope.dimension_count", h->head_dim);
    put_size(m, out, "vocab_size", h->vocab);
}

/* rope_scaling, or NULL; *type is its kind. */
static rft_status find_scaling(const json_t *root, const json_t **scaling, const char **type, rft_error *err) {
    *scaling = rft__json_find(root, "rope_scaling");
    *type = "";
    if (!*scaling) {
        return RFT_OK;
    }
    RFT_TRY(rft__json_string(*scaling, "type", type, err));
    return rft__json_string(*scaling, "rope_type", type, err);
}

static rft_status put_scaling(const rft_model *m, const json_t *root, rft__gguf_out *out, rft_error *err) {
    const json_t *scaling;
    const char *type;
    double factor = 1;
    int64_t original = 0;
    RFT_TRY(find_scaling(root, &scaling, &type, err));
    if (!scaling || strcmp(type, "default") == 0 || strcmp(type, "llama3") == 0) { /* llama3 is a tensor */
        return RFT_OK;
    }
    if (strcmp(type, "linear") != 0 && strcmp(type, "yarn") != 0) {
        RFT_FAIL(err, RFT_E_UNSUPPORTED, "rope_scaling of type '%.40s' is none of linear, yarn and llama3", type);
    }
    RFT_TRY(rft__json_number(scaling, "factor", &factor, err));
    RFT_TRY(rft__json_size(scaling, "original_max_position_embeddings", false, &original, err));
    put_text(m, out, "rope.scaling.type", type);
    put_number(m, out, "rope.scaling.factor", factor);
    put_size(m, out, "rope.scaling.original_context_length", original);
    return RFT_OK;
}

static rft_status put_keys(const rft_model *m, const json_t *root, uint32_t file_type, rft__gguf_out *out, rft_error *err) {
    double epsilon = 1e-6, base = 10000;
    RFT_TRY(rft__json_number(root, "rms_norm_eps", &epsilon, err));
    RFT_TRY(rft__json_number(root, "rope_theta", &base, err));
    rft__out_key_text(out, "general.architecture", m->hparams.arch->gguf);
    rft__out_key_text(out, "general.type", "model");
    if (m->hparams.name[0]) {
        rft__out_key_text(out, "general.name", m->hparams.name);
    }
    put_sizes(m, out);
    put_number(m, out, "attention.layer_norm_rms_epsilon", epsilon);
    put_number(m, out, "rope.freq_base", base);
    RFT_TRY(put_scaling(m, root, out, err));
    rft__out_key_u32(out, "general.file_type", file_type);
    rft__out_key_u32(out, "general.quantization_version", 2);
    return RFT_OK;
}

static rft_status load_config(const rft_model *m, json_t **root, rft_error *err) {
    return rft__json_load("config.json", m->checkpoint.config.bytes, m->checkpoint.config.size, MAX_CONFIG, root, err);
}

rft_status rft__hf_gguf_keys(const rft_model *m, uint32_t file_type, rft__gguf_out *out, rft_error *err) {
    json_t *root;
    RFT_TRY(load_config(m, &root, err));
    const rft_status status = put_keys(m, root, file_type, out, err);
    json_decref(root);
    return status;
}

/* ---- rotary frequencies ---- */

typedef struct llama3_scaling {
    double base, factor, low, high;
    int64_t original;
} llama3_scaling;

/* Long waves are slowed by `factor`, short ones not, those between in part. */
static double divisor(const llama3_scaling *s, double frequency) {
    const double wave = 2 * 3.14159265358979323846 / frequency;
    const double short_wave = (double)s->original / s->high, long_wave = (double)s->original / s->low;
    if (wave < short_wave) {
        return 1;
    }
    if (wave > long_wave) {
        return s->factor;
    }
    const double smooth = ((double)s->original / wave - s->low) / (s->high - s->low);
    return 1 / ((1 - smooth) / s->factor + smooth);
}

static rft_status read_llama3(const json_t *root, const json_t *scaling, llama3_scaling *s, rft_error *err) {
    *s = (llama3_scaling){10000, 8, 1, 4, 8192};
    RFT_TRY(rft__json_number(root, "rope_theta", &s->base, err));
    RFT_TRY(rft__json_number(scaling, "factor", &s->factor, err));
    RFT_TRY(rft__json_number(scaling, "low_freq_factor", &s->low, err));
    RFT_TRY(rft__json_number(scaling, "high_freq_factor", &s->high, err));
    RFT_TRY(rft__json_size(scaling, "original_max_position_embeddings", false, &s->original, err));
    if (!(s->base > 0 && s->factor > 0 && s->low > 0 && s->high > s->low && s->original > 0)) {
        RFT_FAIL(err, RFT_E_ARG, "rope_scaling: base %g, factor %g, low_freq_factor %g, high_freq_factor %g make no sense",
                 s->base, s->factor, s->low, s->high);
    }
    return RFT_OK;
}

static rft_status make_freqs(const rft_model *m, const json_t *root, float *freqs, int64_t *count, rft_error *err) {
    const json_t *scaling;
    const char *type;
    llama3_scaling s;
    RFT_TRY(find_scaling(root, &scaling, &type, err));
    if (strcmp(type, "llama3") != 0) {
        return RFT_OK;
    }
    RFT_TRY(read_llama3(root, scaling, &s, err));
    const int64_t half = m->hparams.head_dim / 2;
    if (half < 1 || half > RFT_MAX_ROPE_FREQS) {
        RFT_FAIL(err, RFT_E_UNSUPPORTED, "head size = %" PRId64 " has more than %d rotary frequencies", m->hparams.head_dim,
                 RFT_MAX_ROPE_FREQS);
    }
    for (int64_t i = 0; i < half; i++) {
        freqs[i] = (float)divisor(&s, pow(s.base, -2.0 * (double)i / (double)m->hparams.head_dim));
    }
    *count = half;
    return RFT_OK;
}

rft_status rft__hf_rope_freqs(const rft_model *m, float freqs[RFT_MAX_ROPE_FREQS], int64_t *count, rft_error *err) {
    json_t *root;
    *count = 0;
    RFT_TRY(load_config(m, &root, err));
    const rft_status status = make_freqs(m, root, freqs, count, err);
    json_decref(root);
    return status;
}
