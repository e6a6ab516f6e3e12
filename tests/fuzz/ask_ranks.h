/* SPDX-License-Identifier: Apache-2.0
 *
 * ask_ranks.h - a model on ranks that share its layers, and its experts where it has any. Called by the fuzz targets of models.
 */
#ifndef RFT_TESTS_ASK_RANKS_H
#define RFT_TESTS_ASK_RANKS_H

#include "rooftile_model.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static inline bool between(double least, double value, double most) {
    return least >= 0 && least <= 1.001 * value && value <= 1.001 * most;
}

static inline void ask_exchange(const rft_model *model, const rft_phase *phase, const rft_ranks *ranks) {
    for (int kind = RFT_EXCHANGE_DISPATCH; kind <= RFT_EXCHANGE_COMBINE; kind++) {
        rft_exchange e = rft_exchange_init();
        if (rft_model_get_exchange(model, (rft_exchange_kind)kind, phase, ranks, &e, NULL) != RFT_OK ||
            !between(e.sent_bytes_min, e.sent_bytes, e.sent_bytes_max)) {
            abort();
        }
    }
}

static inline void ask_shards(const rft_model *model, const rft_phase *phase, const rft_ranks *ranks) {
    double share;
    for (int64_t i = 0; i < rft_model_layer_count(model); i++) {
        rft_shard s = rft_shard_init();
        if (rft_model_get_shard(model, i, phase, ranks, &s, NULL) != RFT_OK || s.n < 1 || s.k < 1 || s.m < 1 || s.count < 1 ||
            !between(s.runs_min, s.runs, s.runs_max) || strlen(s.note) + 1 >= sizeof s.note) {
            abort();
        }
    }
    const rft_phase train = {RFT_PHASE_TRAIN, phase->batch, phase->tokens};
    for (int64_t i = 0; i < rft_model_layer_count(model); i++) {
        rft_shard s = rft_shard_init();
        if (rft_model_get_pass_shard(model, i, &train, RFT_PASS_DGRAD, ranks, &s, NULL) != RFT_OK || s.n < 1 || s.k < 1 ||
            strlen(s.note) + 1 >= sizeof s.note) {
            abort();
        }
    }
    if (rft_model_cache_share(model, phase, ranks, &share, NULL) != RFT_OK || !(share > 0 && share <= 1)) {
        abort();
    }
}

static inline void ask_ranks(const rft_model *model, const rft_phase *phase) {
    const rft_ranks cut = {.tp = 7}, dealt = {.tp = 3, .ep = 21, .dispatch_bytes = 1.03125};
    rft_model_info info = rft_model_info_init();
    if (rft_model_get_info(model, &info, NULL) != RFT_OK) {
        abort();
    }
    if (info.unknown) {
        return;
    }
    ask_shards(model, phase, &cut);
    if (info.experts > 0) {
        ask_shards(model, phase, &dealt);
        ask_exchange(model, phase, &dealt);
    }
}

#endif
