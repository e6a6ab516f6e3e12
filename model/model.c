/* SPDX-License-Identifier: Apache-2.0
 *
 * model.c - the public object: opens a file by its first bytes, owns what was read, answers from it.
 *
 * Everything is built in rft_model_open; nothing changes afterwards, so every question may be asked from any thread.
 */
#include "rooftile_model.h"

#include "model_object.h"

#include "base/error.h"
#include "base/printable.h"
#include "base/sized.h"
#include "matrices.h"
#include "phase.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

/* ---- open ---- */

/* Tensors of a file beside an ONNX file may lie in each other: their sum has no bound. */
static rft_status count_parameters(rft_model *m, rft_error *err) {
    for (size_t i = 0; i < m->tensors->count; i++) {
        const rft__tensor *t = &m->tensors->list[i];
        const bool weight = m->format != RFT_MODEL_ONNX || rft__matrix_can_be_weight(t);
        if (weight && rft__add_overflows(m->parameters, t->rows * t->dims[0], &m->parameters)) {
            RFT_FAIL(err, RFT_E_ARG, "the tensors have over 2^63 - 1 elements");
        }
    }
    return RFT_OK;
}

static rft_status list_layers(rft_model *m, bool gguf, rft_error *err) {
    return rft__hparams_unknown(&m->hparams) ? rft__layers_from_matrices(&m->allocator, m->tensors, &m->layers, err)
                         : rft__layers_from_tensors(&m->allocator, m->tensors, gguf, &m->hparams, &m->layers, err);
}

static rft_status read_gguf(rft_model *m, const void *bytes, size_t size, rft_error *err) {
    m->format = RFT_MODEL_GGUF;
    RFT_TRY(rft__gguf_parse(&m->allocator, bytes, size, &m->gguf, err));
    RFT_TRY(rft__hparams_from_gguf(&m->gguf, &m->hparams, err));
    RFT_TRY(list_layers(m, true, err));
    return count_parameters(m, err);
}

/* Codes whose scales nobody found would be read as numbers. */
static rft_status refuse_bare_codes(const rft_model *m, const rft__quant_config *quant, rft_error *err) {
    for (int64_t i = 0; i < m->layers.count; i++) {
        const rft__tensor *t = &m->tensors->list[m->layers.rows[i].tensor];
        const rft_type type = t->format->type;
        if (!t->import && type != RFT_F32 && type != RFT_F16 && type != RFT_BF16) {
            RFT_FAIL(err, RFT_E_UNSUPPORTED, "tensor '%.99s' is %s, and no known scheme of method '%s' gives it scales", t->name,
                     t->format->name, quant->method);
        }
    }
    return RFT_OK;
}

static rft_status read_checkpoint(rft_model *m, const char *path, rft_error *err) {
    rft__checkpoint *c = &m->checkpoint;
    m->format = RFT_MODEL_SAFETENSORS;
    RFT_TRY(rft__checkpoint_open(&m->allocator, path, c, err));
    m->tensors = &c->tensors;
    m->file_bytes = rft__checkpoint_bytes(c);
    rft__quant_config quant;
    RFT_TRY(rft__hparams_from_config(c->config.bytes, c->config.size, &m->hparams, &quant, err));
    if (!quant.method[0] && c->quantize.bytes) {
        RFT_TRY(rft__quant_config_file(c->quantize.bytes, c->quantize.size, &quant, err));
    }
    if (quant.method[0]) {
        RFT_TRY(rft__import_all(&m->allocator, &c->tensors, &quant, &m->imported, err));
        m->tensors = &m->imported.tensors;
    }
    RFT_TRY(list_layers(m, false, err));
    if (!rft__hparams_unknown(&m->hparams)) {
        RFT_TRY(refuse_bare_codes(m, &quant, err));
    }
    return count_parameters(m, err);
}

/* path NULL: bytes in memory, beside which no file lies. A graph says what it multiplies, not what for. */
static rft_status read_onnx(rft_model *m, const unsigned char *bytes, size_t size, const char *path, rft_error *err) {
    char folder[PATH_MAX];
    const char *name;
    rft__hparams *h = &m->hparams;
    m->format = RFT_MODEL_ONNX;
    if (path) {
        RFT_TRY(rft__path_split(path, folder, &name, err));
    }
    RFT_TRY(rft__onnx_open(&m->allocator, bytes, size, path ? folder : NULL, &m->onnx, err));
    m->tensors = &m->onnx.tensors;
    m->file_bytes = size + rft__onnx_beside_bytes(&m->onnx);
    h->arch = &rft__arch_unknown;
    snprintf(h->prefix, sizeof h->prefix, "onnx");
    rft__copy_printable(h->name, sizeof h->name, (const char *)m->onnx.name.bytes, m->onnx.name.size);
    RFT_TRY(rft__onnx_layers(&m->allocator, &m->onnx, &m->layers, err));
    return count_parameters(m, err);
}

/* Of a model without tensors. A tied lm_head is the embedding, which is counted already. */
static int64_t sized_parameters(const rft_model *m) {
    int64_t count = rft__hparams_others(&m->hparams) + m->layers.parameters;
    for (int64_t i = 0; i < m->layers.count; i++) {
        const rft__layer *r = &m->layers.rows[i];
        count += r->bias ? r->count * r->n : 0;
        count -= r->product->n == RFT_EXT_VOCAB && m->hparams.tied ? r->n * r->k : 0;
    }
    return count;
}

static rft_status read_config(rft_model *m, const void *bytes, size_t size, rft_error *err) {
    m->format = RFT_MODEL_CONFIG;
    RFT_TRY(rft__hparams_from_config(bytes, size, &m->hparams, NULL, err));
    RFT_TRY(rft__layers_from_hparams(&m->allocator, &m->hparams, &m->layers, err));
    m->parameters = sized_parameters(m);
    return RFT_OK;
}

static bool begins_json(const unsigned char *bytes, size_t size) {
    size_t i = 0;
    while (i < size && (bytes[i] == ' ' || bytes[i] == '\t' || bytes[i] == '\n' || bytes[i] == '\r')) {
        i++;
    }
    return i < size && bytes[i] == '{';
}

static rft_status read_bytes(rft_model *m, const unsigned char *bytes, size_t size, const char *path, rft_error *err) {
    m->file_bytes = size;
    if (size >= 4 && memcmp(bytes, "GGUF", 4) == 0) {
        return read_gguf(m, bytes, size, err);
    }
    if (begins_json(bytes, size)) {
        return read_config(m, bytes, size, err);
    }
    if (rft__safetensors_begins(bytes, size)) {
        RFT_FAIL(err, RFT_E_UNSUPPORTED, "safetensors in memory: give the path instead, since config.json is needed too");
    }
    if (rft__onnx_begins(bytes, size)) {
        return read_onnx(m, bytes, size, path, err);
    }
    RFT_FAIL(err, RFT_E_UNSUPPORTED, "%zu bytes that begin with 0x%02x are neither GGUF nor a config.json, safetensors or ONNX",
             size, size ? bytes[0] : 0);
}

static rft_status create(rft_model **out, rft_error *err) {
    const rft__allocator a = rft__allocator_default();
    rft_model *m = rft__alloc(&a, sizeof *m, sizeof(void *));
    if (!m) {
        RFT_FAIL(err, RFT_E_NOMEM, "no memory for a model of %zu bytes", sizeof *m);
    }
    m->allocator = a;
    m->gguf.allocator = a;
    m->tensors = &m->gguf.tensors;
    *out = m;
    return RFT_OK;
}

void rft_model_free(rft_model *m) {
    if (m) {
        const rft__allocator a = m->allocator;
        rft__layers_free(&a, &m->layers);
        rft__gguf_free(&m->gguf);
        rft__import_free(&a, &m->imported);
        rft__checkpoint_free(&a, &m->checkpoint);
        rft__onnx_free(&a, &m->onnx);
        rft__unmap_file(&m->mapping);
        rft__release(&a, m, sizeof *m);
    }
}

/* Hands the model over, or frees it. */
static rft_status finish(rft_model *m, rft_status status, rft_model **out) {
    if (status == RFT_OK) {
        *out = m;
    } else {
        rft_model_free(m);
    }
    return status;
}

rft_status rft_model_open_memory(const void *bytes, size_t size, rft_model **out, rft_error *err) {
    if (!bytes || !out) {
        RFT_FAIL(err, RFT_E_ARG, "%s is NULL", bytes ? "out" : "bytes");
    }
    if ((uintptr_t)bytes % 8 != 0) {
        RFT_FAIL(err, RFT_E_ARG, "bytes = %p is not aligned to 8", bytes);
    }
    rft_model *m = NULL;
    RFT_TRY(create(&m, err));
    return finish(m, read_bytes(m, bytes, size, NULL, err), out);
}

static rft_status read_file(rft_model *m, const char *path, rft_error *err) {
    if (rft__checkpoint_is(path, &m->mapping)) {
        return read_checkpoint(m, path, err);
    }
    RFT_TRY(rft__map_file(path, &m->mapping, err));
    if (rft__checkpoint_is(path, &m->mapping)) {
        rft__unmap_file(&m->mapping);
        return read_checkpoint(m, path, err);
    }
    return read_bytes(m, m->mapping.bytes, m->mapping.size, path, err);
}

rft_status rft_model_open(const char *path, rft_model **out, rft_error *err) {
    if (!path || !out) {
        RFT_FAIL(err, RFT_E_ARG, "%s is NULL", path ? "out" : "path");
    }
    rft_model *m = NULL;
    RFT_TRY(create(&m, err));
    return finish(m, read_file(m, path, err), out);
}

/* ---- questions ---- */

/* The model and the struct that the answer goes to. */
static rft_status check_question(const rft_model *m, const void *out, const char *name, rft_error *err) {
    if (!m) {
        RFT_FAIL(err, RFT_E_ARG, "model is NULL");
    }
    return rft__sized_check(out, name, err);
}

static rft_status check_index(const char *name, int64_t index, int64_t count, rft_error *err) {
    if (index < 0 || index >= count) {
        RFT_FAIL(err, RFT_E_ARG, "%s = %" PRId64 " is not in 0..%" PRId64 " (the model has %" PRId64 ")", name, index, count - 1,
                 count);
    }
    return RFT_OK;
}

rft_status rft_model_get_info(const rft_model *m, rft_model_info *info, rft_error *err) {
    RFT_TRY(check_question(m, info, "info", err));
    const rft__hparams *h = &m->hparams;
    const rft_model_info result = {
        .format = m->format,
        .architecture = rft__hparams_unknown(h) ? h->prefix : h->arch->name,
        .name = h->name,
        .hidden = h->hidden,
        .layers = h->layers,
        .heads = h->heads,
        .kv_heads = h->kv_heads,
        .head_dim = h->head_dim,
        .ffn = h->ffn,
        .vocab = h->vocab,
        .context = h->context,
        .tied = h->tied,
        .n_tensors = (int64_t)m->tensors->count,
        .parameters = m->parameters,
        .file_bytes = m->file_bytes,
        .experts = h->experts,
        .experts_used = h->used,
        .active_parameters = m->parameters - rft__layers_idle(&m->layers),
        .unknown = rft__hparams_unknown(h),
        .source_layers = h->source_layers,
        .source_positions = h->source,
        .window = h->window,
        .windowed_layers = h->windowed,
    };
    rft__sized_write(info, &result, sizeof result);
    return RFT_OK;
}

/* The bytes in place, unless a machine could trip over where they lie: safetensors promises no alignment. */
static const void *usable_data(const rft__tensor *t) {
    const size_t align = t->format->block_elements == 1 ? t->format->block_bytes : 1;
    return (uintptr_t)t->data % align == 0 ? t->data : NULL;
}

rft_status rft_model_get_tensor(const rft_model *m, int64_t index, rft_tensor *tensor, rft_error *err) {
    RFT_TRY(check_question(m, tensor, "tensor", err));
    RFT_TRY(check_index("index", index, (int64_t)m->tensors->count, err));
    const rft__tensor *t = &m->tensors->list[index];
    rft_tensor result = {
        .type = t->format->type,
        .name = t->name,
        .n_dims = (int32_t)t->n_dims,
        .data = usable_data(t),
        .bytes = (uint64_t)t->bytes,
        .scheme = t->import ? t->import->text : "",
    };
    memcpy(result.dims, t->dims, sizeof result.dims);
    rft__sized_write(tensor, &result, sizeof result);
    return RFT_OK;
}

int64_t rft_model_find_tensor(const rft_model *m, const char *name) {
    return m && name ? rft__tensors_find(m->tensors, name) : -1;
}

int64_t rft_model_layer_count(const rft_model *m) { return m ? m->layers.count : 0; }

rft_status rft_model_get_pass(const rft_model *m, int64_t row, const rft_phase *phase, rft_pass pass, rft_layer *layer,
                              rft_error *err) {
    RFT_TRY(check_question(m, layer, "layer", err));
    RFT_TRY(rft__phase_check(phase, err));
    RFT_TRY(check_index("row", row, m->layers.count, err));
    if (pass < RFT_PASS_FORWARD || pass > RFT_PASS_WGRAD || (pass != RFT_PASS_FORWARD && phase->kind != RFT_PHASE_TRAIN)) {
        RFT_FAIL(err, RFT_E_ARG, "pass = %d is neither RFT_PASS_FORWARD nor, in RFT_PHASE_TRAIN, RFT_PASS_DGRAD or _WGRAD",
                 (int)pass);
    }
    rft_layer result;
    rft__layer_describe(&m->layers.rows[row], phase, &result);
    rft__layer_turn(&result, pass);
    rft__sized_write(layer, &result, sizeof result);
    return RFT_OK;
}

rft_status rft_model_get_layer(const rft_model *m, int64_t row, const rft_phase *phase, rft_layer *layer, rft_error *err) {
    return rft_model_get_pass(m, row, phase, RFT_PASS_FORWARD, layer, err);
}

rft_status rft_model_get_cost(const rft_model *m, const rft_phase *phase, rft_model_cost *cost, rft_error *err) {
    RFT_TRY(check_question(m, cost, "cost", err));
    RFT_TRY(rft__phase_check(phase, err));
    rft_model_cost result = {.tokens = phase->batch * phase->tokens};
    const bool train = phase->kind == RFT_PHASE_TRAIN;
    const double passes = train ? 3 : 1, reads = train ? 2 : 1; /* of W: wgrad reads none */
    for (int64_t i = 0; i < m->layers.count; i++) {
        rft_layer layer;
        rft__layer_describe(&m->layers.rows[i], phase, &layer);
        const double bytes = reads * (double)layer.weight_bytes;
        result.linear_parameters += layer.count * layer.n * layer.k;
        result.flops += passes * layer.flops;
        result.weight_bytes += (uint64_t)layer.count * layer.weight_bytes;
        result.read_bytes += layer.runs * bytes;
        result.read_bytes_min += layer.runs_min * bytes;
        result.read_bytes_max += layer.runs_max * bytes;
    }
    result.flops_per_token = result.flops / (double)result.tokens;
    rft__sized_write(cost, &result, sizeof result);
    return RFT_OK;
}

/* ---- weights as they are stored ---- */

/* Rows of whole blocks that have a decoder. */
static bool is_decodable(const rft__tensor *t) {
    return t->format->decode_blocks && t->dims[0] % t->format->block_elements == 0;
}

static rft_status describe_plain(const rft__tensor *t, rft_weight_desc *desc, rft_error *err) {
    if (t->n_dims < 2 || !is_decodable(t)) {
        RFT_FAIL(err, RFT_E_UNSUPPORTED, "tensor '%.99s' is %s of %" PRIu32 " dimensions: no weight that can be packed", t->name,
                 t->format->name, t->n_dims);
    }
    *desc = rft_weight_desc_init();
    desc->elem = t->format->type;
    desc->n = t->dims[1];
    desc->k = t->dims[0];
    desc->batch = t->dims[2] * t->dims[3];
    return RFT_OK;
}

static rft_status describe(const rft_model *m, const rft__tensor *t, rft_weight_desc *desc, rft_error *err) {
    return t->import ? rft__import_describe(&m->allocator, t, desc, err) : describe_plain(t, desc, err);
}

rft_status rft_model_describe_weight(const rft_model *m, int64_t tensor, rft_weight_desc *desc, rft_error *err) {
    RFT_TRY(check_question(m, desc, "desc", err));
    RFT_TRY(check_index("tensor", tensor, (int64_t)m->tensors->count, err));
    rft_weight_desc result;
    RFT_TRY(describe(m, &m->tensors->list[tensor], &result, err));
    rft__sized_write(desc, &result, sizeof result);
    return RFT_OK;
}

static rft_status check_parts(const rft_weight_desc *d, const rft_weight_parts *p, rft_error *err) {
    const bool global = d->flags & (RFT_WEIGHT_GLOBAL_TIMES | RFT_WEIGHT_GLOBAL_OVER);
    const char *missing = !p->q                                            ? "q"
                          : d->scale != 0 && !p->scale                     ? "scale"
                          : d->zero != 0 && !p->zero                       ? "zero"
                          : global && !p->global_scale                     ? "global_scale"
                          : d->flags & RFT_WEIGHT_G_IDX && !p->g_idx       ? "g_idx"
                                                                           : NULL;
    if (missing) {
        RFT_FAIL(err, RFT_E_ARG, "parts.%s is NULL, and rft_model_describe_weight tells of it", missing);
    }
    return RFT_OK;
}

rft_status rft_model_read_weight(const rft_model *m, int64_t tensor, const rft_weight_parts *parts, rft_error *err) {
    RFT_TRY(check_question(m, parts, "parts", err));
    RFT_TRY(check_index("tensor", tensor, (int64_t)m->tensors->count, err));
    const rft__tensor *t = &m->tensors->list[tensor];
    rft_weight_parts own;
    rft_weight_desc desc;
    RFT_TRY(rft__sized_read(&own, sizeof own, parts, "parts", err));
    RFT_TRY(describe(m, t, &desc, err));
    RFT_TRY(check_parts(&desc, &own, err));
    if (t->import) {
        rft__import_read(t->import, &desc, &own);
    } else {
        memcpy(own.q, t->data, (size_t)t->bytes);
    }
    return RFT_OK;
}

/* ---- decode ---- */

enum { CHUNK = 1024 }; /* elements; a multiple of every block */

/* Elements at .. at+n-1 of a row: whole blocks, or the row's last. */
static void decode_elements(const rft__tensor *t, int64_t row, int64_t at, int64_t n, float *dst) {
    const rft__format *f = t->format;
    if (t->import) {
        t->import->decode(t->import, row, at, n, dst);
    } else {
        const unsigned char *src = t->data + row * (t->bytes / t->rows);
        f->decode_blocks(src + at / f->block_elements * f->block_bytes, n / f->block_elements, dst);
    }
}

static void decode_row_bf16(const rft__tensor *t, int64_t row, uint16_t *dst) {
    float chunk[CHUNK];
    for (int64_t at = 0; at < t->dims[0]; at += CHUNK) {
        const int64_t n = rft__min(CHUNK, t->dims[0] - at);
        decode_elements(t, row, at, n, chunk);
        for (int64_t i = 0; i < n; i++) {
            dst[at + i] = rft__bf16_from_f32(chunk[i]);
        }
    }
}

static void decode_row(const rft__tensor *t, int64_t row, rft_type to, unsigned char *dst) {
    if (to == t->format->type) {
        const int64_t bytes = t->bytes / t->rows;
        memcpy(dst, t->data + row * bytes, (size_t)bytes);
    } else if (to == RFT_F32) {
        decode_elements(t, row, 0, t->dims[0], (float *)(void *)dst);
    } else {
        decode_row_bf16(t, row, (uint16_t *)(void *)dst);
    }
}

static rft_status check_decode(const rft__tensor *t, int64_t row0, int64_t rows, rft_type to, int64_t ld, rft_error *err) {
    if (to != RFT_F32 && to != RFT_BF16 && !(to == RFT_F16 && t->format->type == RFT_F16)) {
        RFT_FAIL(err, RFT_E_ARG, "to = %d (%s) is neither RFT_F32 nor RFT_BF16, nor RFT_F16 that is stored so", (int)to,
                 rft__format_name(to));
    }
    if (row0 < 0 || rows < 0 || row0 > t->rows || rows > t->rows - row0) {
        RFT_FAIL(err, RFT_E_ARG, "row0 = %" PRId64 " and rows = %" PRId64 " leave the %" PRId64 " rows of tensor '%.99s'", row0,
                 rows, t->rows, t->name);
    }
    int64_t extent;
    if (ld < t->dims[0] || rft__mul_overflows(rows, ld, &extent) || rft__mul_overflows(extent, 4, &extent)) {
        RFT_FAIL(err, RFT_E_ARG, "ld = %" PRId64 " is less than a row of %" PRId64 " or too large", ld, t->dims[0]);
    }
    if (!t->import && !is_decodable(t)) {
        RFT_FAIL(err, RFT_E_UNSUPPORTED, "tensor '%.99s' is %s%s: it has no decoder", t->name, t->format->name,
                 t->format->decode_blocks ? " whose rows do not begin at bytes" : ", which is known by name and size only");
    }
    return RFT_OK;
}

rft_status rft_model_decode(const rft_model *m, int64_t tensor, int64_t row0, int64_t rows, rft_type to, void *dst, int64_t ld,
                            rft_error *err) {
    if (!m || !dst) {
        RFT_FAIL(err, RFT_E_ARG, "%s is NULL", m ? "dst" : "model");
    }
    RFT_TRY(check_index("tensor", tensor, (int64_t)m->tensors->count, err));
    const rft__tensor *t = &m->tensors->list[tensor];
    ld = ld ? ld : t->dims[0];
    RFT_TRY(check_decode(t, row0, rows, to, ld, err));
    const int64_t step = ld * (to == RFT_F32 ? 4 : 2);
    for (int64_t i = 0; i < rows; i++) {
        decode_row(t, row0 + i, to, (unsigned char *)dst + i * step);
    }
    return RFT_OK;
}
