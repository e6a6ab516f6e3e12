/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_gguf.c - any bytes as a GGUF file: opened, asked everything, every tensor's first and last row decoded.
 */
#include "rooftile_model.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void decode_rows(const rft_model *model, int64_t index) {
    rft_tensor t = rft_tensor_init();
    if (rft_model_get_tensor(model, index, &t, NULL) != RFT_OK) {
        abort();
    }
    const int64_t rows = t.dims[1] * t.dims[2] * t.dims[3];
    float *row = malloc((size_t)t.dims[0] * sizeof *row);
    if (row) {
        rft_model_decode(model, index, 0, 1, RFT_F32, row, 0, NULL);
        rft_model_decode(model, index, rows - 1, 1, RFT_BF16, row, 0, NULL);
    }
    free(row);
}

static void ask_everything(const rft_model *model) {
    const rft_phase phase = {RFT_PHASE_PREFILL, 2, 512};
    rft_model_info info = rft_model_info_init();
    rft_model_cost cost = rft_model_cost_init();
    if (rft_model_get_info(model, &info, NULL) != RFT_OK || rft_model_get_cost(model, &phase, &cost, NULL) != RFT_OK) {
        abort();
    }
    for (int64_t i = 0; i < rft_model_layer_count(model); i++) {
        rft_layer layer = rft_layer_init();
        if (rft_model_get_layer(model, i, &phase, &layer, NULL) != RFT_OK || layer.n < 1 || layer.k < 1) {
            abort();
        }
        rft_shard shard = rft_shard_init();
        if (!layer.unknown && (rft_model_get_shard(model, i, &phase, 7, &shard, NULL) != RFT_OK || shard.n < 1 || shard.k < 1)) {
            abort();
        }
    }
    for (int64_t i = 0; i < rft_model_part_count(model); i++) {
        rft_part part = rft_part_init();
        if (rft_model_get_part(model, i, &phase, 0, &part, NULL) != RFT_OK || part.read_bytes < 0) {
            abort();
        }
    }
    for (int64_t i = 0; i < info.n_tensors; i++) {
        decode_rows(model, i);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    uint8_t *bytes = malloc(size ? size : 1); /* aligned, and not a byte more that a reader could touch unseen */
    rft_model *model;
    rft_error err = {0};
    if (!bytes) {
        return 0;
    }
    memcpy(bytes, data, size);
    if (rft_model_open_memory(bytes, size, &model, &err) == RFT_OK) {
        ask_everything(model);
        rft_model_free(model);
    } else if (!err.message[0] || memchr(err.message, 0, sizeof err.message) == NULL) {
        abort();
    }
    free(bytes);
    return 0;
}
