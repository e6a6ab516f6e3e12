/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_safetensors.c - any bytes as a safetensors file: its table, the layers of a small model in it, its weights imported by
 * every method, every tensor's first and last row decoded; and as the index of a checkpoint.
 */
#include "checkpoint.h"
#include "import.h"
#include "layers.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char config[] = "{\"model_type\":\"llama\",\"hidden_size\":4,\"num_hidden_layers\":1,\"intermediate_size\":8,"
                             "\"vocab_size\":4,\"num_attention_heads\":2}";

static const char *const methods[] = {
    "{\"quant_method\":\"gptq\",\"bits\":4,\"group_size\":8}",
    "{\"quant_method\":\"gptq\",\"bits\":3,\"group_size\":-1,\"sym\":false}",
    "{\"quant_method\":\"awq\",\"group_size\":8}",
    "{\"quant_method\":\"compressed-tensors\",\"config_groups\":{\"a\":{\"weights\":{\"num_bits\":4,\"group_size\":8}},"
    "\"b\":{\"weights\":{\"num_bits\":3}}}}",
    "{\"quant_method\":\"fp8\",\"weight_block_size\":[2,4]}",
    "{\"quant_method\":\"bitsandbytes\"}",
    "{\"quant_method\":\"mxfp4\"}",
    "{\"quant_method\":\"modelopt\"}",
};

enum { MOST = 4096 }; /* elements of a row that are decoded */

static void decode_ends(const rft__tensor *t) {
    const rft__format *f = t->format;
    const int64_t row_bytes = t->rows ? t->bytes / t->rows : 0;
    float *row = malloc((size_t)t->dims[0] % (64 << 20) * sizeof *row + MOST * sizeof *row);
    if (row && t->import) {
        const int64_t n = t->dims[0] < MOST ? t->dims[0] : MOST;
        t->import->decode(t->import, 0, 0, n, row);
        t->import->decode(t->import, t->rows - 1, t->dims[0] - n, n, row);
    } else if (row && f->decode_blocks && t->rows > 0 && t->dims[0] < 64 << 20) {
        f->decode_blocks(t->data, t->dims[0] / f->block_elements, row);
        f->decode_blocks(t->data + (t->rows - 1) * row_bytes, t->dims[0] / f->block_elements, row);
    }
    free(row);
}

/* The low-bit form, into not a byte more than its description takes. */
static void read_low_bit(const rft__allocator *a, const rft__tensor *t) {
    rft_weight_desc d;
    if (!t->import || t->rows * t->dims[0] > 1 << 20 || rft__import_describe(a, t, &d, NULL) != RFT_OK) {
        return;
    }
    const int64_t block = rft__format_find(d.elem)->block_elements, rows = d.batch * d.n;
    const size_t scales = (size_t)(d.batch * rft__ceil_div(d.n, d.group_n) * rft__ceil_div(d.k, d.group_k));
    rft_weight_parts p = rft_weight_parts_init();
    p.q = malloc((size_t)(rows * rft__ceil_div(d.k, block)));
    p.scale = malloc(scales * rft__format_find(d.scale)->block_bytes);
    p.zero = d.zero != 0 ? malloc(scales) : NULL;
    p.global_scale = malloc((size_t)d.batch * sizeof *p.global_scale);
    p.g_idx = d.flags & RFT_WEIGHT_G_IDX ? malloc((size_t)d.k * sizeof *p.g_idx) : NULL;
    if (p.q && p.scale && (p.zero || d.zero == 0) && p.global_scale && (p.g_idx || !(d.flags & RFT_WEIGHT_G_IDX))) {
        rft__import_read(t->import, &d, &p);
    }
    free(p.q), free(p.scale), free(p.zero), free(p.global_scale), free(p.g_idx);
}

static void use(const rft__allocator *a, const rft__tensors *t) {
    rft__hparams h;
    rft__layers layers;
    if (rft__hparams_from_config(config, sizeof config - 1, &h, NULL, NULL) != RFT_OK) {
        abort();
    }
    if (rft__layers_from_tensors(a, t, false, &h, &layers, NULL) == RFT_OK) {
        rft__layers_free(a, &layers);
    }
    for (size_t i = 0; i < t->count; i++) {
        decode_ends(&t->list[i]);
    }
}

static void import_as(const rft__allocator *a, const rft__tensors *t, const char *text) {
    rft__quant_config quant;
    rft__imported imported;
    json_t *json = json_loads(text, 0, NULL);
    if (!json || rft__quant_config_read(json, &quant, NULL) != RFT_OK) {
        abort();
    }
    json_decref(json);
    if (rft__import_all(a, t, &quant, &imported, NULL) == RFT_OK) {
        for (size_t i = 0; i < imported.tensors.count; i++) {
            decode_ends(&imported.tensors.list[i]);
            read_low_bit(a, &imported.tensors.list[i]);
        }
        rft__import_free(a, &imported);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const rft__allocator a = rft__allocator_default();
    uint8_t *bytes = malloc(size ? size : 1); /* not a byte more that a reader could touch unseen */
    rft__tensors t = {0};
    rft_error err = {0};
    if (!bytes) {
        return 0;
    }
    memcpy(bytes, data, size);
    const rft__shard shard = {"fuzz", bytes, size};
    if (rft__safetensors_parse(&a, &shard, 1, &t, &err) == RFT_OK) {
        use(&a, &t);
        for (size_t i = 0; i < sizeof methods / sizeof methods[0]; i++) {
            import_as(&a, &t, methods[i]);
        }
    } else if (!err.message[0] || memchr(err.message, 0, sizeof err.message) == NULL) {
        abort();
    }
    rft__checkpoint_check_index(bytes, size, &shard, 1, &t, &err);
    rft__tensors_free(&a, &t);
    free(bytes);
    return 0;
}
