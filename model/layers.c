/* SPDX-License-Identifier: Apache-2.0
 *
 * layers.c - builds the list of linear layers from the products of an architecture's row (archs.c). See layers.h.
 */
#include "layers.h"

#include "base/error.h"
#include "import.h"
#include "phase.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

rft_status rft__layers_reserve(const rft__allocator *a, int64_t rows, size_t name_bytes, rft__layers *out, rft_error *err) {
    *out = (rft__layers){.room = rows, .name_bytes = name_bytes};
    out->rows = rft__alloc(a, (size_t)rows * sizeof *out->rows, sizeof(void *));
    out->names = name_bytes ? rft__alloc(a, name_bytes, sizeof(void *)) : NULL;
    if (!out->rows || (name_bytes && !out->names)) {
        rft__layers_free(a, out);
        RFT_FAIL(err, RFT_E_NOMEM, "no memory for %" PRId64 " layers", rows);
    }
    return RFT_OK;
}

void rft__layers_free(const rft__allocator *a, rft__layers *layers) {
    rft__release(a, layers->rows, (size_t)layers->room * sizeof *layers->rows);
    rft__release(a, layers->names, layers->name_bytes);
    *layers = (rft__layers){0};
}

rft_status rft__layers_count(rft__layers *layers, const rft__layer *layer, rft_error *err) {
    int64_t more;
    if (rft__mul_overflows(layer->n, layer->k, &more) || rft__mul_overflows(more, layer->count, &more) ||
        rft__add_overflows(layers->parameters, more, &layers->parameters) || layers->parameters > RFT_MAX_PARAMETERS) {
        RFT_FAIL(err, RFT_E_ARG,
                 "%" PRId64 " products %.99s of n = %" PRId64 ", k = %" PRId64 ": the model has over 2^58 parameters",
                 layer->count, layer->name, layer->n, layer->k);
    }
    return RFT_OK;
}

/* Counts a layer in the row that equals it, or in a new one. */
static rft_status add_layer(rft__layers *layers, const rft__layer *layer, rft_error *err) {
    RFT_TRY(rft__layers_count(layers, layer, err));
    for (int64_t i = layers->count - 1; i >= 0 && layers->rows[i].product == layer->product; i--) {
        rft__layer *row = &layers->rows[i];
        if (row->type == layer->type && row->n == layer->n && row->k == layer->k && row->bias == layer->bias &&
            row->order == layer->order && strcmp(row->scheme, layer->scheme) == 0) {
            row->count += layer->count;
            return RFT_OK;
        }
    }
    layers->rows[layers->count++] = *layer;
    return RFT_OK;
}

static rft__layer begin_layer(const rft__hparams *h, const rft__product *p) {
    rft__layer layer = {.product = p, .name = p->name, .act = h->act, .count = 1, .tensor = -1, .bias_tensor = -1};
    layer.scheme = "";
    layer.n = rft__extent_of(h, p->n);
    layer.k = rft__extent_of(h, p->k);
    layer.order = p->in_out ? RFT_MN_CONTIGUOUS : RFT_K_CONTIGUOUS;
    layer.experts = p->routed ? h->experts : 0;
    layer.used = p->routed ? h->used : 0;
    layer.source = p->source ? h->source : 0;
    return layer;
}

/* ---- names ---- */

enum { NAME = 160 };

static void embedding_name(const rft__naming *naming, const rft__arch *arch, char name[NAME]) {
    snprintf(name, NAME, "%s%s.weight", naming->gguf ? "" : naming->prefix, naming->gguf ? "token_embd" : arch->embedding);
}

static int64_t find_embedding(const rft__tensors *tensors, const rft__naming *naming, const rft__arch *arch) {
    char name[NAME];
    embedding_name(naming, arch, name);
    return rft__tensors_find(tensors, name);
}

rft__naming rft__naming_find(const rft__tensors *tensors, const rft__arch *arch, bool gguf) {
    static const char *const prefixes[] = {"model.", "",      "transformer.",
                                           "bert.",  "language_model.model.", "model.language_model."};
    for (size_t i = 0; i < sizeof prefixes / sizeof prefixes[0] && !gguf; i++) {
        const rft__naming naming = {false, prefixes[i]};
        if (find_embedding(tensors, &naming, arch) >= 0) {
            return naming;
        }
    }
    return (rft__naming){gguf, prefixes[0]};
}

int64_t rft__layers_embedding(const rft__tensors *tensors, bool gguf, const rft__arch *arch) {
    const rft__naming naming = rft__naming_find(tensors, arch, gguf);
    return find_embedding(tensors, &naming, arch);
}

/* The name of a product's tensor without what it is; `*` becomes the number of the expert. */
static void stem_of(const rft__naming *naming, const rft__arch *arch, const rft__product *p, int64_t block, int64_t expert,
                    char stem[NAME]) {
    const char *part = naming->gguf ? p->gguf : p->hf;
    const char *star = strchr(part, '*');
    char place[64] = "";
    if (p->where != RFT_ONCE && naming->gguf) {
        snprintf(place, sizeof place, "blk.%" PRId64 ".", block);
    } else if (p->where != RFT_ONCE) {
        snprintf(place, sizeof place, "%s%s%" PRId64 ".", naming->prefix, p->where == RFT_IN_SOURCE ? arch->source : arch->blocks,
                 block);
    }
    if (star) {
        snprintf(stem, NAME, "%s%.*s%" PRId64 "%s", place, (int)(star - part), part, expert, star + 1);
    } else {
        snprintf(stem, NAME, "%s%s", place, part);
    }
}

/* What stands outside of the blocks may have the prefix or a part of it. */
static int64_t find_in(const rft__tensors *tensors, const rft__naming *naming, const char *stem, const char *end, bool once) {
    static const char *const outer[] = {"", NULL, "language_model."};
    for (size_t i = 0; i < (once && !naming->gguf ? sizeof outer / sizeof outer[0] : 1); i++) {
        char name[2 * NAME];
        snprintf(name, sizeof name, "%s%s%s", outer[i] ? outer[i] : naming->prefix, stem, end);
        const int64_t at = rft__tensors_find(tensors, name);
        if (at >= 0) {
            return at;
        }
    }
    return -1;
}

int64_t rft__layer_find(const rft__tensors *tensors, const rft__naming *naming, const rft__hparams *h, const rft__product *p,
                        int64_t block, int64_t expert, bool bias) {
    char stem[NAME];
    stem_of(naming, h->arch, p, block, expert, stem);
    const int64_t at = find_in(tensors, naming, stem, bias ? ".bias" : ".weight", p->where == RFT_ONCE);
    return at >= 0 || !p->routed ? at : find_in(tensors, naming, stem, bias ? "_bias" : "", false);
}

/* ---- from tensors ---- */

typedef struct source { /* what the layers are made from */
    const rft__tensors *tensors;
    rft__naming naming;
    rft_error *err;
} source;

/* Of a product's tensor; NULL: files of that kind lack it. */
static const char *name_of(const source *s, const rft__product *p) { return s->naming.gguf ? p->gguf : p->hf; }

/* stack: how many W the tensor holds. */
static rft_status check_shape(const rft__tensor *t, int64_t n, int64_t k, int64_t stack, rft_error *err) {
    if (t->n_dims > (stack > 1 ? 3 : 2) || t->dims[0] != k || t->dims[1] != n || t->dims[2] != stack) {
        RFT_FAIL(err, RFT_E_ARG,
                 "tensor '%s' has %" PRIu32 " dimensions, K = %" PRId64 " and N = %" PRId64
                 "; the model's sizes demand K = %" PRId64 " and N = %" PRId64,
                 t->name, t->n_dims, t->dims[0], t->dims[1], k, n);
    }
    return RFT_OK;
}

static rft_status find_weight(const source *s, const rft__hparams *h, const rft__product *p, int64_t block, int64_t expert,
                              int64_t *tensor) {
    char name[NAME];
    if (p->n == RFT_EXT_VOCAB && h->tied) {
        embedding_name(&s->naming, h->arch, name);
        *tensor = rft__tensors_find(s->tensors, name);
    } else {
        stem_of(&s->naming, h->arch, p, block, expert, name);
        *tensor = rft__layer_find(s->tensors, &s->naming, h, p, block, expert, false);
    }
    if (*tensor < 0) {
        RFT_FAIL(s->err, RFT_E_ARG, "tensor '%s%s' is missing", name, strstr(name, ".weight") ? "" : ".weight");
    }
    return RFT_OK;
}

static rft_status find_bias(const source *s, const rft__hparams *h, int64_t block, int64_t expert, int64_t stack,
                            rft__layer *layer) {
    layer->bias_tensor = rft__layer_find(s->tensors, &s->naming, h, layer->product, block, expert, true);
    layer->bias = layer->bias_tensor >= 0;
    return layer->bias ? check_shape(&s->tensors->list[layer->bias_tensor], stack, layer->n, 1, s->err) : RFT_OK;
}

/* The ffn size of one block is what its product with that many columns holds. */
static rft_status block_sizes(const source *s, const rft__product *p, int64_t block, rft__hparams *h) {
    int64_t up;
    if (p->n != RFT_EXT_FFN && p->k != RFT_EXT_FFN) {
        return RFT_OK;
    }
    const rft__product *first = rft__arch_up(h->arch);
    RFT_TRY(find_weight(s, h, first, block, 0, &up));
    h->ffn = s->tensors->list[up].dims[first->in_out && !s->naming.gguf ? 0 : 1];
    h->ffn /= first->n == RFT_EXT_FFN_PAIR ? 2 : 1;
    *rft__hparams_key(h, &h->ffn) = s->tensors->list[up].name;
    return rft__hparams_check(h, s->err);
}

static rft_status add_from_tensor(const source *s, const rft__hparams *model, const rft__product *p, int64_t block,
                                  int64_t expert, rft__layers *out) {
    rft__hparams h = *model;
    RFT_TRY(block_sizes(s, p, block, &h));
    rft__layer layer = begin_layer(&h, p);
    RFT_TRY(find_weight(s, &h, p, block, expert, &layer.tensor));
    const rft__tensor *t = &s->tensors->list[layer.tensor];
    const bool each = strchr(name_of(s, p), '*') != NULL;
    layer.count = p->heads ? h.heads : p->routed && !each ? h.experts : 1;
    if (t->import || s->naming.gguf) { /* [in, out] is a way of plain checkpoints */
        layer.order = RFT_K_CONTIGUOUS;
    }
    const bool turned = layer.order == RFT_MN_CONTIGUOUS;
    RFT_TRY(check_shape(t, turned ? layer.k : layer.n, turned ? layer.n : layer.k, layer.count, s->err));
    RFT_TRY(find_bias(s, &h, block, expert, layer.count, &layer));
    layer.type = t->format->type;
    layer.bytes = t->bytes / layer.count;
    layer.scheme = t->import ? t->import->text : "";
    return add_layer(out, &layer, s->err);
}

/* Files of one architecture may hold a product in one form or another. */
static bool has_form(const source *s, const rft__hparams *h, const rft__product *p, int64_t block) {
    const rft__product other = {.gguf = p->unless, .where = RFT_IN_BLOCKS};
    if (p->unless && s->naming.gguf) {
        return rft__layer_find(s->tensors, &s->naming, h, &other, block, 0, false) < 0;
    }
    return !p->optional || rft__layer_find(s->tensors, &s->naming, h, p, block, 0, false) >= 0;
}

static rft_status add_product(const source *s, const rft__hparams *h, const rft__product *p, rft__layers *out) {
    const char *name = name_of(s, p);
    if (!name || rft__product_blocks(h, p) == 0) {
        return RFT_OK;
    }
    for (int64_t block = 0; block < rft__hparams_blocks(h); block++) {
        const bool here = rft__product_in(h, p, block) && has_form(s, h, p, block);
        const int64_t times = !here ? 0 : strchr(name, '*') ? h->experts : 1;
        for (int64_t expert = 0; expert < times; expert++) {
            RFT_TRY(add_from_tensor(s, h, p, block, expert, out));
        }
    }
    return RFT_OK;
}

static rft_status add_all(const source *s, const rft__hparams *h, rft__layers *out) {
    const rft__product *p;
    for (size_t i = 0; (p = rft__arch_product(h->arch, i)) != NULL; i++) {
        RFT_TRY(add_product(s, h, p, out));
    }
    return RFT_OK;
}

rft_status rft__layers_from_tensors(const rft__allocator *a, const rft__tensors *tensors, bool gguf, const rft__hparams *h,
                                    rft__layers *out, rft_error *err) {
    const source s = {tensors, rft__naming_find(tensors, h->arch, gguf), err};
    const int64_t blocks = rft__hparams_blocks(h);
    if ((uint64_t)blocks > tensors->count) {
        RFT_FAIL(err, RFT_E_ARG, "block_count = %" PRId64 ", but the file holds %zu tensors only", blocks, tensors->count);
    }
    /* Each row takes a tensor, or the tied embedding once more. */
    RFT_TRY(rft__layers_reserve(a, (int64_t)tensors->count + 1, 0, out, err));
    const rft_status status = add_all(&s, h, out);
    if (status != RFT_OK) {
        rft__layers_free(a, out);
    }
    return status;
}

/* ---- from sizes ---- */

static bool has_bias(const rft__hparams *h, const rft__product *p) {
    return p->bias == RFT_BIAS_ALWAYS || (p->bias == RFT_BIAS_QKV && h->qkv_bias) ||
           (p->bias == RFT_BIAS_OUTPUT && h->output_bias) || (p->bias == RFT_BIAS_MLP && h->mlp_bias);
}

static rft_status add_from_sizes(const rft__hparams *h, const rft__product *p, rft__layers *out, rft_error *err) {
    const int64_t blocks = rft__product_blocks(h, p);
    if (blocks == 0 || !p->hf) {
        return RFT_OK;
    }
    rft__layer layer = begin_layer(h, p);
    layer.type = h->type;
    layer.count = blocks * (p->routed ? h->experts : 1);
    layer.bias = has_bias(h, p);
    RFT_TRY(rft__format_bytes(layer.type, layer.n, layer.k, &layer.bytes, err));
    return add_layer(out, &layer, err);
}

rft_status rft__layers_from_hparams(const rft__allocator *a, const rft__hparams *h, rft__layers *out, rft_error *err) {
    size_t room = 0;
    while (rft__arch_product(h->arch, room) != NULL) {
        room++;
    }
    RFT_TRY(rft__layers_reserve(a, (int64_t)room, 0, out, err));
    for (size_t i = 0; i < room; i++) {
        const rft_status status = add_from_sizes(h, rft__arch_product(h->arch, i), out, err);
        if (status != RFT_OK) {
            rft__layers_free(a, out);
            return status;
        }
    }
    return RFT_OK;
}

int64_t rft__layers_idle(const rft__layers *layers) {
    int64_t idle = 0;
    for (int64_t i = 0; i < layers->count; i++) {
        const rft__layer *r = &layers->rows[i];
        if (r->experts > 0) {
            idle += r->count / r->experts * (r->experts - r->used) * (r->n * r->k + (r->bias ? r->n : 0));
        }
    }
    return idle;
}

/* ---- public form ---- */

static const char *tail_text(rft__tail tail, rft_epi_kind act, bool bias) {
    static const struct {
        rft_epi_kind act;
        const char *text[2][2]; /* [multiplied][biased] */
    } acts[] = {
        {RFT_EPI_SILU, {{"silu", "bias,silu"}, {"silu,mul", "bias,silu,mul"}}},
        {RFT_EPI_GELU, {{"gelu", "bias,gelu"}, {"gelu,mul", "bias,gelu,mul"}}},
        {RFT_EPI_GELU_TANH, {{"gelu_tanh", "bias,gelu_tanh"}, {"gelu_tanh,mul", "bias,gelu_tanh,mul"}}},
        {RFT_EPI_RELU, {{"relu", "bias,relu"}, {"relu,mul", "bias,relu,mul"}}},
    };
    for (size_t i = 0; i < sizeof acts / sizeof acts[0] && tail >= RFT_TAIL_ACT; i++) {
        if (acts[i].act == act) {
            return acts[i].text[tail == RFT_TAIL_ACT_MUL][bias];
        }
    }
    return tail == RFT_TAIL_ADD ? (bias ? "bias,add" : "add") : bias ? "bias" : "none";
}

static void describe_epilogue(const rft__layer *row, rft_layer *out) {
    const rft__tail tail = row->product->tail;
    out->epilogue = tail_text(tail, row->act, row->bias);
    if (row->bias) {
        out->epi[out->n_epi++] = RFT_EPI_BIAS;
    }
    if (tail == RFT_TAIL_ADD) {
        out->epi[out->n_epi++] = RFT_EPI_ADD;
    } else if (tail != RFT_TAIL_NONE) {
        out->epi[out->n_epi++] = row->act;
    }
    if (tail == RFT_TAIL_ACT_MUL) {
        out->epi[out->n_epi++] = RFT_EPI_MUL;
    }
}

/* Of `held` among e experts of which each of t tokens takes u: those that any token takes, at least, at most, and as it is
 * expected where every choice is as likely. */
void rft__layer_route(const rft__layer *row, int64_t tokens, int64_t held, rft_layer *out) {
    const double e = (double)row->experts, u = (double)row->used, t = (double)tokens, h = (double)held;
    const double blocks = (double)row->count / e, met = -expm1(t * log1p(-u / e)); /* u = e: log1p gives -inf, and all are met */
    out->runs_min = blocks * fmax(0, u - (e - h));
    out->runs = blocks * (h * met);
    out->runs_max = blocks * fmin(h, t * u);
    out->m = (int64_t)ceil(t * u / (e * met) - 1e-9);
    out->flops = 2 * t * u * (h / e) * (double)row->n * (double)row->k * blocks;
}

void rft__layer_describe(const rft__layer *row, const rft_phase *phase, rft_layer *out) {
    const bool scores = phase->kind >= RFT_PHASE_VERIFY; /* logits of every token */
    const bool last = row->product->where == RFT_ONCE && !(scores && row->product->n == RFT_EXT_VOCAB);
    *out = rft_layer_init();
    out->type = row->type;
    out->name = row->name;
    out->unknown = row->unknown;
    out->count = row->count;
    out->m = last ? phase->batch : phase->batch * phase->tokens;
    out->n = row->n;
    out->k = row->k;
    out->weight_bytes = (uint64_t)row->bytes;
    out->tensor = row->tensor;
    out->bias_tensor = row->bias_tensor;
    out->scheme = row->scheme;
    out->order = row->order;
    out->x_order = row->x_order;
    out->parts = row->product->parts ? row->product->parts : "";
    out->experts = row->experts;
    out->experts_used = row->used;
    if (row->source > 0) {
        out->m = phase->batch * row->source;
    }
    const bool runs = row->source == 0 || rft__phase_begins(phase);
    out->runs = out->runs_min = out->runs_max = runs ? (double)row->count : 0;
    out->flops = 2.0 * (double)out->m * (double)(row->n * row->k) * out->runs;
    if (row->experts > 0) {
        rft__layer_route(row, out->m, row->experts, out);
    }
    describe_epilogue(row, out);
    out->pass = RFT_PASS_FORWARD;
}

static rft_order other(rft_order order) { return order == RFT_K_CONTIGUOUS ? RFT_MN_CONTIGUOUS : RFT_K_CONTIGUOUS; }

static void turn_dgrad(rft_layer *l) {
    const int64_t n = l->n;
    l->n = l->k;
    l->k = n;
    l->order = other(l->order);
}

/* dW lies as W does, so its rows are those of the stored W. */
static void turn_wgrad(rft_layer *l) {
    const bool turned = l->order == RFT_MN_CONTIGUOUS;
    const int64_t tokens = l->m, n = l->n, k = l->k;
    l->m = turned ? k : n;
    l->n = turned ? n : k;
    l->k = tokens;
    l->order = l->x_order = RFT_MN_CONTIGUOUS;
    l->tensor = -1;
    l->weight_bytes = 0;
    l->epilogue = "add";
    l->epi[l->n_epi++] = RFT_EPI_ADD;
}

void rft__layer_turn(rft_layer *layer, rft_pass pass) {
    if (pass != RFT_PASS_FORWARD) {
        layer->pass = pass;
        layer->bias_tensor = -1;
        layer->n_epi = 0;
        layer->epilogue = "none";
        (pass == RFT_PASS_DGRAD ? turn_dgrad : turn_wgrad)(layer);
    }
}
