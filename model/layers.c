/* SPDX-License-Identifier: Apache-2.0
 *
 * layers.c - builds the list of linear layers. See layers.h.
 *
 * The table of roles is the only place that knows the block of this family: its products, their order, what follows each.
 */
#include "layers.h"

#include "base/error.h"
#include "import.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

typedef struct role_row {
    const char *name;
    const char *epilogue, *biased; /* text of `tail`, and of bias + tail */
    uint32_t n_tail;
    rft_epi_kind tail[RFT_LAYER_MAX_EPI - 1];
} role_row;

static const role_row roles[RFT_N_ROLES] = {
    [RFT_ROLE_Q] = {"attn_q", "none", "bias", 0, {0}},
    [RFT_ROLE_K] = {"attn_k", "none", "bias", 0, {0}},
    [RFT_ROLE_V] = {"attn_v", "none", "bias", 0, {0}},
    [RFT_ROLE_OUTPUT] = {"attn_output", "add", "bias,add", 1, {RFT_EPI_ADD}},
    [RFT_ROLE_UP] = {"ffn_up", "none", "bias", 0, {0}},
    [RFT_ROLE_GATE] = {"ffn_gate", "silu,mul", "bias,silu,mul", 2, {RFT_EPI_SILU, RFT_EPI_MUL}},
    [RFT_ROLE_DOWN] = {"ffn_down", "add", "bias,add", 1, {RFT_EPI_ADD}},
    [RFT_ROLE_LM_HEAD] = {"lm_head", "none", "bias", 0, {0}},
};

/* Sizes of W[n][k]. */
static void role_shape(const rft__hparams *h, rft__role role, int64_t *n, int64_t *k) {
    const int64_t q = h->heads * h->head_dim, kv = h->kv_heads * h->head_dim;
    const int64_t shapes[RFT_N_ROLES][2] = {
        [RFT_ROLE_Q] = {q, h->hidden},         [RFT_ROLE_K] = {kv, h->hidden},
        [RFT_ROLE_V] = {kv, h->hidden},        [RFT_ROLE_OUTPUT] = {h->hidden, q},
        [RFT_ROLE_UP] = {h->ffn, h->hidden},   [RFT_ROLE_GATE] = {h->ffn, h->hidden},
        [RFT_ROLE_DOWN] = {h->hidden, h->ffn}, [RFT_ROLE_LM_HEAD] = {h->vocab, h->hidden},
    };
    *n = shapes[role][0];
    *k = shapes[role][1];
}

static rft_status make_room(const rft__allocator *a, int64_t rows, rft__layers *out, rft_error *err) {
    *out = (rft__layers){.room = rows};
    out->rows = rft__alloc(a, (size_t)rows * sizeof *out->rows, sizeof(void *));
    if (!out->rows) {
        RFT_FAIL(err, RFT_E_NOMEM, "no memory for %" PRId64 " layers", rows);
    }
    return RFT_OK;
}

void rft__layers_free(const rft__allocator *a, rft__layers *layers) {
    rft__release(a, layers->rows, (size_t)layers->room * sizeof *layers->rows);
    *layers = (rft__layers){0};
}

/* Counts a layer in the row that equals it, or in a new one. */
static void add_layer(rft__layers *layers, const rft__layer *layer) {
    for (int64_t i = layers->count - 1; i >= 0 && layers->rows[i].role == layer->role; i--) {
        rft__layer *row = &layers->rows[i];
        if (row->type == layer->type && row->n == layer->n && row->k == layer->k && row->bias == layer->bias &&
            strcmp(row->scheme, layer->scheme) == 0) {
            row->count += layer->count;
            return;
        }
    }
    layers->rows[layers->count++] = *layer;
}

/* ---- from tensors ---- */

const rft__naming rft__gguf_naming = {
    "blk.",
    "token_embd.weight",
    {"attn_q", "attn_k", "attn_v", "attn_output", "ffn_up", "ffn_gate", "ffn_down", "output"},
};

const rft__naming rft__hf_naming = {
    "model.layers.",
    "model.embed_tokens.weight",
    {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj", "mlp.up_proj", "mlp.gate_proj",
     "mlp.down_proj", "lm_head"},
};

void rft__layer_tensor_name(const rft__naming *naming, rft__role role, int64_t block, const char *part,
                            char name[RFT_LAYER_NAME]) {
    if (role == RFT_ROLE_LM_HEAD) {
        snprintf(name, RFT_LAYER_NAME, "%s.%s", naming->roles[role], part);
    } else {
        snprintf(name, RFT_LAYER_NAME, "%s%" PRId64 ".%s.%s", naming->blocks, block, naming->roles[role], part);
    }
}

typedef struct source { /* what the layers are made from */
    const rft__tensors *tensors;
    const rft__naming *naming;
    rft_error *err;
} source;

static rft_status check_shape(const rft__tensor *t, int64_t n, int64_t k, rft_error *err) {
    if (t->n_dims > 2 || t->dims[0] != k || t->dims[1] != n) {
        RFT_FAIL(err, RFT_E_ARG,
                 "tensor '%s' has %" PRIu32 " dimensions, K = %" PRId64 " and N = %" PRId64
                 "; the model's sizes demand K = %" PRId64 " and N = %" PRId64,
                 t->name, t->n_dims, t->dims[0], t->dims[1], k, n);
    }
    return RFT_OK;
}

static rft_status find_weight(const source *s, const rft__hparams *h, rft__role role, int64_t block, int64_t *tensor) {
    char name[RFT_LAYER_NAME];
    rft__layer_tensor_name(s->naming, role, block, "weight", name);
    *tensor = rft__tensors_find(s->tensors, role == RFT_ROLE_LM_HEAD && h->tied ? s->naming->embedding : name);
    if (*tensor < 0) {
        RFT_FAIL(s->err, RFT_E_ARG, "tensor '%s' is missing", name);
    }
    return RFT_OK;
}

static rft_status find_bias(const source *s, rft__role role, int64_t block, rft__layer *layer) {
    char name[RFT_LAYER_NAME];
    rft__layer_tensor_name(s->naming, role, block, "bias", name);
    layer->bias_tensor = rft__tensors_find(s->tensors, name);
    layer->bias = layer->bias_tensor >= 0;
    return layer->bias ? check_shape(&s->tensors->list[layer->bias_tensor], 1, layer->n, s->err) : RFT_OK;
}

/* The ffn size of one block is what its ffn_up holds. */
static rft_status block_sizes(const source *s, int64_t block, rft__hparams *h) {
    int64_t up;
    RFT_TRY(find_weight(s, h, RFT_ROLE_UP, block, &up));
    h->ffn = s->tensors->list[up].dims[1];
    return rft__hparams_check(h, s->err);
}

static rft_status add_from_tensor(const source *s, const rft__hparams *model, rft__role role, int64_t block, rft__layers *out) {
    rft__layer layer = {.role = role, .count = 1};
    rft__hparams h = *model;
    if (role != RFT_ROLE_LM_HEAD) {
        RFT_TRY(block_sizes(s, block, &h));
    }
    role_shape(&h, role, &layer.n, &layer.k);
    RFT_TRY(find_weight(s, &h, role, block, &layer.tensor));
    const rft__tensor *t = &s->tensors->list[layer.tensor];
    RFT_TRY(check_shape(t, layer.n, layer.k, s->err));
    RFT_TRY(find_bias(s, role, block, &layer));
    layer.type = t->format->type;
    layer.bytes = t->bytes;
    layer.scheme = t->import ? t->import->text : "";
    add_layer(out, &layer);
    return RFT_OK;
}

static rft_status add_all_tensors(const source *s, const rft__hparams *h, rft__layers *out) {
    for (rft__role role = RFT_ROLE_Q; role < RFT_ROLE_LM_HEAD; role++) {
        for (int64_t block = 0; block < h->layers; block++) {
            RFT_TRY(add_from_tensor(s, h, role, block, out));
        }
    }
    return add_from_tensor(s, h, RFT_ROLE_LM_HEAD, 0, out);
}

rft_status rft__layers_from_tensors(const rft__allocator *a, const rft__tensors *tensors, const rft__naming *naming,
                                    const rft__hparams *h, rft__layers *out, rft_error *err) {
    const source s = {tensors, naming, err};
    if ((uint64_t)h->layers > tensors->count) {
        RFT_FAIL(err, RFT_E_ARG, "block_count = %" PRId64 ", but the file holds %zu tensors only", h->layers, tensors->count);
    }
    RFT_TRY(make_room(a, h->layers * RFT_ROLE_LM_HEAD + 1, out, err));
    const rft_status status = add_all_tensors(&s, h, out);
    if (status != RFT_OK) {
        rft__layers_free(a, out);
    }
    return status;
}

/* ---- from sizes ---- */

static bool has_bias(const rft__hparams *h, rft__role role) {
    switch (role) {
    case RFT_ROLE_Q:
    case RFT_ROLE_K:
    case RFT_ROLE_V:
        return h->qkv_bias;
    case RFT_ROLE_OUTPUT:
        return h->output_bias;
    case RFT_ROLE_LM_HEAD:
        return false;
    default:
        return h->mlp_bias;
    }
}

rft_status rft__layers_from_hparams(const rft__allocator *a, const rft__hparams *h, rft__layers *out, rft_error *err) {
    RFT_TRY(make_room(a, RFT_N_ROLES, out, err));
    for (rft__role role = RFT_ROLE_Q; role < RFT_N_ROLES; role++) {
        rft__layer layer = {.role = role, .type = h->type, .tensor = -1, .bias_tensor = -1, .scheme = ""};
        layer.count = role == RFT_ROLE_LM_HEAD ? 1 : h->layers;
        layer.bias = has_bias(h, role);
        role_shape(h, role, &layer.n, &layer.k);
        const rft_status status = rft__format_bytes(layer.type, layer.n, layer.k, &layer.bytes, err);
        if (status != RFT_OK) {
            rft__layers_free(a, out);
            return status;
        }
        add_layer(out, &layer);
    }
    return RFT_OK;
}

/* ---- public form ---- */

static void describe_epilogue(const rft__layer *row, rft_layer *out) {
    const role_row *role = &roles[row->role];
    out->epilogue = row->bias ? role->biased : role->epilogue;
    if (row->bias) {
        out->epi[out->n_epi++] = RFT_EPI_BIAS;
    }
    for (uint32_t i = 0; i < role->n_tail; i++) {
        out->epi[out->n_epi++] = role->tail[i];
    }
}

void rft__layer_describe(const rft__layer *row, const rft_phase *phase, rft_layer *out) {
    *out = rft_layer_init();
    out->type = row->type;
    out->name = roles[row->role].name;
    out->count = row->count;
    out->m = row->role == RFT_ROLE_LM_HEAD ? phase->batch : phase->batch * phase->tokens;
    out->n = row->n;
    out->k = row->k;
    out->weight_bytes = (uint64_t)row->bytes;
    out->tensor = row->tensor;
    out->bias_tensor = row->bias_tensor;
    out->scheme = row->scheme;
    describe_epilogue(row, out);
}
