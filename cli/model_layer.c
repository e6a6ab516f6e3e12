/* SPDX-License-Identifier: Apache-2.0
 *
 * model_layer.c - see model_layer.h.
 */
#include "model_layer.h"

#include <string.h>

static bool maps_data(const rft_model *model, int64_t index) {
    rft_tensor tensor = rft_tensor_init();
    return rft_model_get_tensor(model, index, &tensor, NULL) == RFT_OK && tensor.data;
}

/* Whether W runs as it is stored: floats, and on the CPU what it packs in low-bit form; others are decoded to bf16, as is all in
 * low-bit form that is not packed. */
static bool runs_as_stored(const run_options *base, const rft_model *model, const rft_layer *layer, rft_weight_desc *w) {
    rft_linear_desc d = rft_linear_desc_init();
    rft_work work = {.struct_size = sizeof work};
    d.x = d.y = RFT_F32;
    d.m_max = 1;
    d.w.elem = layer->type;
    d.w.n = layer->n;
    d.w.k = layer->k;
    if (layer->tensor >= 0 && rft_model_describe_weight(model, layer->tensor, &d.w, NULL) != RFT_OK)
        return false;
    if (d.w.batch > 1 && !maps_data(model, layer->tensor))
        return false;
    d.w.n = layer->n; /* of a stack the first W; of an [in, out] tensor the rows run along n */
    d.w.k = layer->k;
    d.w.batch = 1;
    d.w.order = layer->order;
    *w = d.w;
    bool packs = strncmp(base->device, "cpu", 3) == 0 && !base->dynamic;
    return (packs || !cli_low_bit(w->elem)) && rft_work_of(&d, 1, &work, NULL) == RFT_OK;
}

static void make_epilogue(const rft_layer *layer, epilogue *e) {
    *e = (epilogue){.n_op = layer->n_epi};
    for (uint32_t i = 0; i < layer->n_epi; i++) {
        rft_epi_kind kind = layer->epi[i];
        bool operand = kind == RFT_EPI_BIAS || kind == RFT_EPI_MUL || kind == RFT_EPI_ADD;
        e->op[i] = (rft_epi_op){.kind = kind, .operand = i, .type = operand ? RFT_F32 : (rft_type)0, .beta = 1};
    }
    epilogue_text(e);
}

/* Both operands of a weight's gradient are activations of the type of X, and it sums up in f32. */
static void take_activations(run_options *o) {
    o->w = o->x;
    o->y = RFT_F32;
}

run_options model_layer_options(const run_options *base, bool x_given, const rft_model *model, const rft_layer *layer,
                                bool *decoded) {
    run_options o = *base;
    rft_weight_desc w = rft_weight_desc_init();
    *decoded = !runs_as_stored(base, model, layer, &w);
    o.w = *decoded ? RFT_BF16 : w.elem;
    o.w_order = layer->order;
    o.x_order = layer->x_order;
    o.layout[0] = layer->x_order == RFT_MN_CONTIGUOUS ? 't' : 'n';
    o.layout[1] = layer->order == RFT_MN_CONTIGUOUS ? 'n' : 't';
    o.w_scales = *decoded ? (weight_scales){0} : (weight_scales){w.scale, w.zero, w.group_n, w.group_k, w.flags};
    if (!x_given)
        o.x = cli_low_bit(o.w) ? RFT_F32 : o.w;
    if (o.compute == RFT_COMPUTE_I8 && !cli_low_bit(o.w))
        o.compute = RFT_COMPUTE_AUTO;
    make_epilogue(layer, &o.epi);
    if (layer->pass == RFT_PASS_WGRAD)
        take_activations(&o);
    return o;
}

/* ---- the weights themselves ---- */

typedef struct part_sizes {
    size_t q, scale, zero, global, index;
} part_sizes;

static size_t aligned(size_t bytes) { return (bytes + 63) / 64 * 64; }

static bool size_parts(const rft_layer *layer, const run_options *o, part_sizes *out) {
    const weight_scales *s = &o->w_scales;
    rft_weight_desc d = {.n = layer->n, .k = layer->k, .batch = 1};
    int64_t count;
    size_t row = rft_type_bytes(o->w, layer->k);
    bool good = row > 0 && cli_product((int64_t)row, layer->n, 1, &count);
    *out = (part_sizes){.q = good ? (size_t)count : 0};
    scales_describe(s, &d);
    if (good && s->scale) {
        count = scales_count(&d);
        good = cli_bytes(s->scale, count, &out->scale) && (!s->zero || cli_bytes(s->zero, count, &out->zero));
    }
    out->global = scales_global(s->flags) ? sizeof(float) : 0;
    out->index = s->flags & RFT_WEIGHT_G_IDX ? (size_t)layer->k * sizeof(int32_t) : 0;
    return good;
}

static void *carve(char **at, size_t bytes) {
    void *part = bytes ? *at : NULL;
    *at += aligned(bytes);
    return part;
}

static rft_status read_parts(const rft_model *model, const rft_layer *layer, const part_sizes *size, layer_weights *out,
                             rft_error *err) {
    rft_weight_parts parts = rft_weight_parts_init();
    char *at = out->memory;
    out->src.q = parts.q = carve(&at, size->q);
    out->src.scale = parts.scale = carve(&at, size->scale);
    out->src.zero = parts.zero = carve(&at, size->zero);
    out->src.global_scale = parts.global_scale = carve(&at, size->global);
    out->src.g_idx = parts.g_idx = carve(&at, size->index);
    return rft_model_read_weight(model, layer->tensor, &parts, err);
}

int model_layer_load(const rft_model *model, const rft_layer *layer, const run_options *o, bool decoded, layer_weights *out) {
    rft_tensor tensor = rft_tensor_init();
    rft_error err = {0};
    part_sizes size;
    *out = (layer_weights){.src = rft_weight_src_init()};
    if (rft_model_get_tensor(model, layer->tensor, &tensor, &err) != RFT_OK)
        return cli_failed(&err, layer->name);
    out->src.q = tensor.data;
    if (!decoded && tensor.data)
        return CLI_OK;
    if (size_parts(layer, o, &size)) {
        out->bytes = aligned(size.q) + aligned(size.scale) + aligned(size.zero) + aligned(size.global) + size.index;
        out->memory = cli_map(out->bytes);
    }
    if (!out->memory) {
        cli_message("%s: no memory to load %s", layer->name, tensor.name);
        return CLI_LIBRARY;
    }
    cli_progress("%s: %s %s", layer->name, decoded ? "decoding" : "reading", rft_type_name(layer->type));
    int64_t stored_rows = layer->order == RFT_MN_CONTIGUOUS ? layer->k : layer->n;
    rft_status status = decoded ? rft_model_decode(model, layer->tensor, 0, stored_rows, o->w, out->memory, 0, &err)
                                : read_parts(model, layer, &size, out, &err);
    if (status != RFT_OK)
        return cli_failed(&err, tensor.name);
    out->src.q = out->memory;
    return CLI_OK;
}

void model_layer_unload(layer_weights *weights) {
    cli_unmap(weights->memory, weights->bytes);
    weights->memory = NULL;
}
