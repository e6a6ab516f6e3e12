/* SPDX-License-Identifier: Apache-2.0
 *
 * quantize_packed.c - see quantize_packed.h.
 *
 * Data of the file: shapes (I64), codes, scales, then what stays as it is. A weight's scales are known once its codes are
 * written, so all scales wait in memory until all codes are there; they are a hundredth of the file.
 */
#include "quantize_packed.h"

#include "base/error.h"
#include "base/json.h"
#include "base/type.h"
#include "json_read.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SHAPE_BYTES = 16 };

static bool has_shape(const rft__planned *p) { return p->packed && p->packing.code != RFT_E4M3; }

static int64_t scale_bytes_of(const rft__planned *p) { return p->source->rows * rft__packing_scale_bytes(&p->packing); }

/* ---- plan ---- */

static int64_t group_of(const rft_quantize_options *o, int64_t k) {
    return o->to == RFT_I4 ? (o->group_k ? o->group_k : 128) : k;
}

static void keep(rft__planned *p, const char *why) {
    p->to = p->source->import ? rft__format_find(RFT_BF16) : p->source->format;
    p->encoder = p->source->import ? rft__encoder_find(RFT_BF16) : NULL;
    snprintf(p->why, sizeof p->why, "%s", why);
}

/* Scales are of the type that the weights had, and bf16 where that was none of f32, f16 and bf16. */
static void pack(const rft__planner *w, rft__planned *p) {
    const rft_type from = p->source->format->type;
    const bool plain = !p->source->import && rft__type_is_float(from);
    p->packed = true;
    p->packing = (rft__packing){w->o->to, plain ? from : RFT_BF16, p->source->dims[0], group_of(w->o, p->source->dims[0])};
    p->to = rft__format_find(w->o->to);
}

static rft_status decide(const rft__planner *w, rft__planned *p) {
    const int64_t k = p->source->dims[0], group = group_of(w->o, k);
    if (!w->linear[p->index] || strcmp(p->name, "lm_head.weight") == 0) {
        keep(p, p->source->n_dims < 2 ? "a vector" : "not a layer of a block");
    } else if (rft__quantize_keeps(w->o, p->name)) {
        keep(p, "a pattern keeps it");
    } else if (k % group != 0) {
        char why[96];
        snprintf(why, sizeof why, "k = %" PRId64 " is not a multiple of %" PRId64, k, group);
        keep(p, why);
    } else {
        RFT_TRY(rft__quantize_check_source(w->o, p->source, w->err));
        pack(w, p);
    }
    p->bytes = p->packed           ? p->source->rows * rft__packing_code_bytes(&p->packing)
               : p->source->import ? p->source->rows * k * 2
                                   : p->source->bytes;
    return RFT_OK;
}

/* Packed tensors first, then the others by falling size of an element. */
static int64_t rank(const rft__planned *p) {
    return p->packed ? INT64_MAX : p->to->block_elements == 1 ? (int64_t)p->to->block_bytes : 0;
}

static int compare_ranks(const void *a, const void *b) {
    const rft__planned *x = a, *y = b;
    const int64_t p = rank(x), q = rank(y);
    return p != q ? (p < q) - (p > q) : (x->index > y->index) - (x->index < y->index);
}

/* Offsets behind the shapes; the room of all scales. */
static rft_status place(const rft__allocator *a, rft__quantize_plan *plan, rft_error *err) {
    int64_t at = 0, scales = 0;
    size_t packed = 0;
    for (size_t i = 0; i < plan->count; i++) {
        at += has_shape(&plan->list[i]) ? SHAPE_BYTES : 0;
        scales += plan->list[i].packed ? scale_bytes_of(&plan->list[i]) : 0;
        packed += plan->list[i].packed;
    }
    plan->scale_bytes = (size_t)scales;
    plan->scales = rft__alloc(a, plan->scale_bytes, 64);
    if (!plan->scales) {
        RFT_FAIL(err, RFT_E_NOMEM, "no memory for %" PRId64 " bytes of scales", scales);
    }
    unsigned char *next = plan->scales;
    for (size_t i = 0; i < plan->count; i++) {
        rft__planned *p = &plan->list[i];
        at += i == packed ? scales : 0;
        p->offset = (uint64_t)at;
        p->scales = p->packed ? next : NULL;
        next += p->packed ? scale_bytes_of(p) : 0;
        if (rft__add_overflows(at, p->bytes, &at)) {
            RFT_FAIL(err, RFT_E_ARG, "the tensors of the new file take more than 2^63 bytes");
        }
    }
    return RFT_OK;
}

static rft_status fill(const rft__planner *w, rft__quantize_plan *out) {
    for (size_t i = 0; i < w->model->tensors->count; i++) {
        rft__planned *p = &out->list[out->count++];
        *p = (rft__planned){.source = &w->model->tensors->list[i], .index = (int64_t)i};
        snprintf(p->name, sizeof p->name, "%s", p->source->name);
        RFT_TRY(decide(w, p));
    }
    qsort(out->list, out->count, sizeof *out->list, compare_ranks);
    return place(&w->model->allocator, out, w->err);
}

static rft_status check_options(const rft_model *m, const rft_quantize_options *o, rft_error *err) {
    const int64_t g = o->group_k;
    if (m->format != RFT_MODEL_SAFETENSORS) {
        RFT_FAIL(err, RFT_E_UNSUPPORTED, "%s is written from a checkpoint only, into a checkpoint: a GGUF file has no such type",
                 rft__format_name(o->to));
    }
    if (g != 0 && (o->to != RFT_I4 || (g != 32 && g != 64 && g != 128))) {
        RFT_FAIL(err, RFT_E_ARG, "options.group_k = %" PRId64 " with %s: groups of 32, 64 or 128 are for i4", g,
                 rft__format_name(o->to));
    }
    return RFT_OK;
}

rft_status rft__packed_plan_make(const rft_model *m, const rft_quantize_options *o, rft__quantize_plan *out, rft_error *err) {
    RFT_TRY(check_options(m, o, err));
    return rft__quantize_plan_build(m, o, fill, out, err);
}

/* ---- header ---- */

/* The name of a part: of "x.weight", "x.weight_scale". */
static void part_name(const rft__planned *p, const char *part, char out[RFT_SAFETENSORS_MAX_NAME + 16]) {
    snprintf(out, RFT_SAFETENSORS_MAX_NAME + 16, "%s%s", p->name, part);
}

/* Takes shape. False: no memory. */
static bool add_entry(json_t *header, const char *name, const char *dtype, json_t *shape, uint64_t begin, uint64_t bytes) {
    json_t *entry = json_pack("{s:s, s:o, s:[I, I]}", "dtype", dtype, "shape", shape, "data_offsets", (json_int_t)begin,
                              (json_int_t)(begin + bytes));
    return entry && json_object_set_new(header, name, entry) == 0;
}

static json_t *matrix(int64_t rows, int64_t columns) { return json_pack("[I, I]", (json_int_t)rows, (json_int_t)columns); }

static const char *float_dtype(rft_type type) { return type == RFT_F32 ? "F32" : type == RFT_F16 ? "F16" : "BF16"; }

typedef struct cursors { /* where the next shape and the next scales go */
    uint64_t shape, scale;
} cursors;

static bool add_packed(json_t *header, const rft__planned *p, cursors *at) {
    char name[RFT_SAFETENSORS_MAX_NAME + 16];
    const int64_t n = p->source->rows, k = p->packing.k, groups = rft__ceil_div(k, p->packing.group_k);
    bool whole;
    if (has_shape(p)) {
        part_name(p, "_shape", name);
        whole = add_entry(header, name, "I64", json_pack("[I]", (json_int_t)2), at->shape, SHAPE_BYTES);
        at->shape += SHAPE_BYTES;
        part_name(p, "_packed", name);
        whole = whole && add_entry(header, name, "I32", matrix(n, rft__packing_code_bytes(&p->packing) / 4), p->offset,
                                   (uint64_t)p->bytes);
    } else {
        whole = add_entry(header, p->name, "F8_E4M3", matrix(n, k), p->offset, (uint64_t)p->bytes);
    }
    part_name(p, "_scale", name);
    whole = whole &&
            add_entry(header, name, float_dtype(p->packing.scale), matrix(n, groups), at->scale, (uint64_t)scale_bytes_of(p));
    at->scale += (uint64_t)scale_bytes_of(p);
    return whole;
}

/* Row-major: the last dimension is dims[0]. */
static json_t *shape_of(const rft__tensor *t) {
    json_t *shape = json_array();
    for (uint32_t i = t->n_dims; shape && i > 0; i--) {
        json_array_append_new(shape, json_integer(t->dims[i - 1]));
    }
    return shape;
}

static json_t *make_header(const rft__quantize_plan *plan) {
    json_t *header = json_pack("{s:{s:s}}", "__metadata__", "format", "pt");
    cursors at = {0, 0};
    bool whole = header != NULL;
    for (size_t i = 0; i < plan->count && plan->list[i].packed; i++) {
        at.scale = plan->list[i].offset + (uint64_t)plan->list[i].bytes;
    }
    for (size_t i = 0; i < plan->count && whole; i++) {
        const rft__planned *p = &plan->list[i];
        whole = p->packed ? add_packed(header, p, &at)
                          : add_entry(header, p->name, rft__safetensors_dtype(p->to->type), shape_of(p->source), p->offset,
                                      (uint64_t)p->bytes);
    }
    if (!whole) {
        json_decref(header);
        return NULL;
    }
    return header;
}

static void put_shapes(const rft__quantize_plan *plan, rft__gguf_out *out) {
    for (size_t i = 0; i < plan->count; i++) {
        if (has_shape(&plan->list[i])) {
            rft__out_u64(out, (uint64_t)plan->list[i].source->rows);
            rft__out_u64(out, (uint64_t)plan->list[i].packing.k);
        }
    }
}

rft_status rft__packed_put_head(const rft__quantize_plan *plan, rft__gguf_out *out, rft_error *err) {
    bool no_memory;
    rft__json_begin();
    char *text = rft__json_end(make_header(plan), JSON_COMPACT, &no_memory);
    if (!text) {
        RFT_FAIL(err, RFT_E_NOMEM, "no memory for the header of %zu tensors", plan->count);
    }
    const uint64_t length = strlen(text), padded = (length + 7) / 8 * 8;
    rft__out_u64(out, padded);
    rft__out_bytes(out, text, length);
    for (uint64_t i = length; i < padded; i++) {
        rft__out_bytes(out, " ", 1);
    }
    free(text);
    put_shapes(plan, out);
    return RFT_OK;
}

void rft__packed_put_scales(const rft__quantize_plan *plan, rft__gguf_out *out) {
    rft__out_bytes(out, plan->scales, plan->scale_bytes);
}

/* ---- config.json ---- */

/* Modules that stay: a weight's name without its end. */
static json_t *ignored(const rft_model *m, const rft__quantize_plan *plan) {
    json_t *list = json_array();
    for (size_t i = 0; list && i < plan->count; i++) {
        const rft__planned *p = &plan->list[i];
        const size_t length = strlen(p->name);
        const bool weight = length > 7 && strcmp(p->name + length - 7, ".weight") == 0;
        if (!p->packed && p->source->n_dims == 2 && weight && strcmp(p->name, "model.embed_tokens.weight") != 0) {
            json_array_append_new(list, json_stringn(p->name, length - 7));
        }
    }
    if (m->hparams.tied) {
        json_array_append_new(list, json_string("lm_head"));
    }
    return list;
}

static json_t *weights_of(const rft_quantize_options *o) {
    const bool fp8 = o->to == RFT_E4M3, four = o->to == RFT_I4;
    json_t *w = json_pack("{s:i, s:s, s:b, s:s, s:b}", "num_bits", four ? 4 : 8, "type", fp8 ? "float" : "int", "symmetric", 1,
                          "strategy", four ? "group" : "channel", "dynamic", 0);
    if (four) {
        json_object_set_new(w, "group_size", json_integer(o->group_k ? o->group_k : 128));
    }
    return w;
}

static json_t *quantization_of(const rft_model *m, const rft_quantize_options *o, const rft__quantize_plan *plan) {
    return json_pack("{s:s, s:s, s:s, s:o, s:{s:{s:[s], s:o}}}", "quant_method", "compressed-tensors", "format",
                     o->to == RFT_E4M3 ? "float-quantized" : "pack-quantized", "quantization_status", "compressed", "ignore",
                     ignored(m, plan), "config_groups", "group_0", "targets", "Linear", "weights", weights_of(o));
}

rft_status rft__packed_config(const rft_model *m, const rft_quantize_options *o, const rft__quantize_plan *plan, char **out,
                              rft_error *err) {
    json_t *root;
    bool no_memory;
    RFT_TRY(rft__json_load("config.json", m->checkpoint.config.bytes, m->checkpoint.config.size, (size_t)16 << 20, &root, err));
    rft__json_begin();
    if (json_object_set_new(root, "quantization_config", quantization_of(m, o, plan)) != 0) {
        json_decref(root);
        root = NULL;
    }
    *out = rft__json_end(root, JSON_INDENT(2), &no_memory);
    return *out ? RFT_OK : rft__error_set(err, RFT_E_NOMEM, 0, "no memory for config.json");
}
