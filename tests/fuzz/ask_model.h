/* SPDX-License-Identifier: Apache-2.0
 *
 * ask_model.h - any bytes as a model file: opened, asked everything, every tensor's first and last row decoded and its low-bit
 * form read. Called by the fuzz targets of files that hold tensors.
 */
#ifndef RFT_TESTS_ASK_MODEL_H
#define RFT_TESTS_ASK_MODEL_H

#include "ask_ranks.h"
#include "fuzz_input.h"

#include "rooftile_analysis.h"
#include "rooftile_model.h"

static inline void decode_rows(const rft_model *model, int64_t index) {
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

/* Its parts, each of just the size that the description asks for. */
static inline void read_weight(const rft_model *model, int64_t index) {
    rft_weight_desc d = rft_weight_desc_init();
    rft_weight_parts parts = rft_weight_parts_init();
    if (rft_model_describe_weight(model, index, &d, NULL) != RFT_OK) {
        return;
    }
    const int64_t group_n = d.group_n ? d.group_n : d.n, group_k = d.group_k ? d.group_k : d.k;
    const size_t batch = (size_t)d.batch, n = (size_t)d.n;
    const size_t scales = batch * (size_t)((d.n + group_n - 1) / group_n) * (size_t)((d.k + group_k - 1) / group_k);
    parts.q = malloc(batch * n * rft_type_bytes(d.elem, d.k) + 1);
    parts.scale = d.scale ? malloc(scales * rft_type_bytes(d.scale, 1)) : NULL;
    parts.zero = d.zero ? malloc(scales) : NULL;
    parts.global_scale = malloc(batch * sizeof(float));
    parts.g_idx = d.flags & RFT_WEIGHT_G_IDX ? malloc(batch * (size_t)d.k * sizeof(int32_t)) : NULL;
    if (rft_model_read_weight(model, index, &parts, NULL) != RFT_OK) {
        abort();
    }
    free(parts.q);
    free(parts.scale);
    free(parts.zero);
    free(parts.global_scale);
    free(parts.g_idx);
}

static inline void ask_everything(const rft_model *model) {
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
        const rft_phase train = {RFT_PHASE_TRAIN, 2, 512};
        for (int pass = RFT_PASS_FORWARD; pass <= RFT_PASS_WGRAD; pass++) {
            if (rft_model_get_pass(model, i, &train, (rft_pass)pass, &layer, NULL) != RFT_OK || layer.m < 1 || layer.k < 1) {
                abort();
            }
        }
    }
    ask_ranks(model, &phase);
    for (int64_t i = 0; i < rft_model_part_count(model); i++) {
        rft_part part = rft_part_init();
        if (rft_model_get_part(model, i, &phase, 0, &part, NULL) != RFT_OK || part.read_bytes < 0) {
            abort();
        }
    }
    for (int64_t i = 0; i < info.n_tensors; i++) {
        decode_rows(model, i);
        read_weight(model, i);
    }
}

static inline void open_and_ask(const uint8_t *data, size_t size) {
    uint8_t *bytes = malloc(size ? size : 1); /* aligned, and not a byte more that a reader could touch unseen */
    rft_model *model;
    rft_error err = {0};
    if (!bytes) {
        return;
    }
    memcpy(bytes, data, size);
    if (rft_model_open_memory(bytes, size, &model, &err) == RFT_OK) {
        ask_everything(model);
        rft_model_free(model);
    } else if (!err.message[0] || memchr(err.message, 0, sizeof err.message) == NULL) {
        abort();
    }
    free(bytes);
}

#endif
