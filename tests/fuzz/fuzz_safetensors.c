/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_safetensors.c - any bytes as a safetensors file: its table, the layers of a small model in it, every tensor's first and
 * last row decoded; and as the index of a checkpoint.
 */
#include "checkpoint.h"
#include "layers.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char config[] = "{\"model_type\":\"llama\",\"hidden_size\":4,\"num_hidden_layers\":1,\"intermediate_size\":8,"
                             "\"vocab_size\":4,\"num_attention_heads\":2}";

static void decode_ends(const rft__tensor *t) {
    const rft__format *f = t->format;
    const int64_t row_bytes = t->rows ? t->bytes / t->rows : 0;
    float *row = malloc((size_t)t->dims[0] * sizeof *row + 1);
    if (row && f->decode_blocks && t->rows > 0) {
        f->decode_blocks(t->data, t->dims[0] / f->block_elements, row);
        f->decode_blocks(t->data + (t->rows - 1) * row_bytes, t->dims[0] / f->block_elements, row);
    }
    free(row);
}

static void use(const rft__allocator *a, const rft__tensors *t) {
    rft__hparams h;
    rft__layers layers;
    if (rft__hparams_from_config(config, sizeof config - 1, &h, NULL) != RFT_OK) {
        abort();
    }
    if (rft__layers_from_tensors(a, t, &rft__hf_naming, &h, &layers, NULL) == RFT_OK) {
        rft__layers_free(a, &layers);
    }
    for (size_t i = 0; i < t->count; i++) {
        decode_ends(&t->list[i]);
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
    } else if (!err.message[0] || memchr(err.message, 0, sizeof err.message) == NULL) {
        abort();
    }
    rft__checkpoint_check_index(bytes, size, &shard, 1, &t, &err);
    rft__tensors_free(&a, &t);
    free(bytes);
    return 0;
}
