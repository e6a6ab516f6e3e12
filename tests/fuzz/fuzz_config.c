/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_config.c - any bytes behind a brace as a config.json, and the text behind a slash as a phase.
 */
#include "ask_ranks.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void parse_phase(const char *text) {
    rft_phase phase;
    if (rft_phase_parse(text, &phase, NULL) == RFT_OK && (phase.batch < 1 || phase.tokens < 1)) {
        abort();
    }
}

static void ask(const rft_model *model) {
    const rft_phase phase = {RFT_PHASE_DECODE, 1, 1};
    rft_model_info info = rft_model_info_init();
    rft_model_cost cost = rft_model_cost_init();
    rft_model_get_info(model, &info, NULL);
    rft_model_get_cost(model, &phase, &cost, NULL);
    if (info.parameters < cost.linear_parameters || info.active_parameters > info.parameters || cost.weight_bytes == 0 ||
        !(cost.read_bytes_min <= cost.read_bytes_max)) {
        abort();
    }
    for (int64_t i = 0; i < rft_model_layer_count(model); i++) {
        rft_layer layer = rft_layer_init();
        if (rft_model_get_layer(model, i, &phase, &layer, NULL) != RFT_OK || layer.n < 1 || layer.k < 1 || layer.m < 1 ||
            !(layer.runs >= layer.runs_min * 0.999) || !(layer.runs <= layer.runs_max * 1.001)) {
            abort();
        }
    }
    ask_ranks(model, &phase);
    for (int64_t i = 0; i < rft_model_part_count(model); i++) {
        rft_part part = rft_part_init();
        if (rft_model_get_part(model, i, &phase, 0, &part, NULL) != RFT_OK || part.read_bytes < 0) {
            abort();
        }
    }
}

static void open_config(const char *text, size_t size) {
    rft_model *model;
    rft_error err = {0};
    if (rft_model_open_memory(text, size, &model, &err) == RFT_OK) {
        ask(model);
        rft_model_free(model);
    } else if (!err.message[0]) {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *text = malloc(size + 1);
    if (!text) {
        return 0;
    }
    memcpy(text, data, size);
    text[size] = 0;
    if (size > 0 && text[0] == '/') {
        parse_phase(text + 1);
    } else {
        open_config(text, size);
    }
    free(text);
    return 0;
}
