/* SPDX-License-Identifier: Apache-2.0
 *
 * test_hfconfig.c - config.json: the models of bench/models against their published parameter counts, defaults of absent
 * keys, and refusals.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "rooftile_model.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SIZES "\"hidden_size\":64,\"num_hidden_layers\":2,\"intermediate_size\":96,\"vocab_size\":128,\"num_attention_heads\":4"
#define MOE   "{\"model_type\":\"qwen3_moe\"," SIZES
#define LLAMA "{\"model_type\":\"llama\"," SIZES

static rft_status open_text(const char *text, rft_model **out, rft_error *err) {
    _Alignas(8) static char copy[4096];
    snprintf(copy, sizeof copy, "%s", text);
    *err = (rft_error){0};
    *out = NULL;
    return rft_model_open_memory(copy, strlen(copy), out, err);
}

static rft_model *open_good(const char *text) {
    rft_model *model;
    rft_error err;
    if (open_text(text, &model, &err) != RFT_OK) {
        fail_msg("%s", err.message);
    }
    return model;
}

static rft_model_info info_of(const rft_model *model) {
    rft_model_info info = rft_model_info_init();
    assert_int_equal(rft_model_get_info(model, &info, NULL), RFT_OK);
    return info;
}

static rft_layer layer_of(const rft_model *model, int64_t row) {
    const rft_phase phase = {RFT_PHASE_DECODE, 1, 1};
    rft_layer layer = rft_layer_init();
    assert_int_equal(rft_model_get_layer(model, row, &phase, &layer, NULL), RFT_OK);
    return layer;
}

/* ---- sound configs ---- */

static rft_model *open_file(const char *name) {
    char path[512];
    rft_model *model = NULL;
    rft_error err = {0};
    snprintf(path, sizeof path, "%s/../../bench/models/%s.json", RFT_TEST_DATA_DIR, name);
    if (rft_model_open(path, &model, &err) != RFT_OK) {
        fail_msg("%s: %s", name, err.message);
    }
    return model;
}

/* Parameters: those that the checkpoints' pages count, or the models' own code (DeepSeek-V3 without the module that predicts a
 * second token, gpt-oss as its card has it). Active ones, in units of 10^9: the models' cards, which round, and of which some
 * leave out the embedding. */
static void published_models(void **state) {
    (void)state;
    static const struct {
        const char *file;
        int64_t parameters, rows;
        double active; /* 0: all */
        bool embedded; /* the embedding is among them */
        rft_type type;
        int32_t tied;
    } rows[] = {
        {"smollm2-135m", 134515008, 8, 0, true, RFT_BF16, 1},
        {"llama-3.1-8b", 8030261248, 8, 0, true, RFT_BF16, 0},
        {"mistral-7b", 7241732096, 8, 0, true, RFT_BF16, 0},
        {"llama-2-7b", 6738415616, 8, 0, true, RFT_F16, 0},
        {"tinyllama-1.1b", 1100048384, 8, 0, true, RFT_BF16, 0},
        {"qwen2.5-7b", 7615616512, 8, 0, true, RFT_BF16, 0},
        {"qwen3-8b", 8190735360, 8, 0, true, RFT_BF16, 0},
        {"gemma-2-9b", 9241705984, 8, 0, true, RFT_BF16, 1},
        {"gemma-3-1b", 999885952, 8, 0, true, RFT_BF16, 1},
        {"phi-3-mini", 3821079552, 5, 0, true, RFT_BF16, 0},
        {"gpt2", 124439808, 5, 0, true, RFT_F32, 1},
        {"bert-base", 109482240, 7, 0, true, RFT_F32, 1},
        {"mixtral-8x7b", 46702792704, 9, 12.9, true, RFT_BF16, 0},
        {"qwen3-30b-a3b", 30532122624, 9, 3.3, true, RFT_BF16, 0},
        {"qwen1.5-moe-a2.7b", 14315784192, 13, 2.7, true, RFT_BF16, 0},
        {"deepseek-v2-lite", 15706484224, 15, 2.4, false, RFT_BF16, 0},
        {"deepseek-v3", 671026419200, 16, 37, false, RFT_BF16, 0},
        {"gpt-oss-20b", 20914757184, 8, 3.61, false, RFT_BF16, 0},
        {"whisper-large-v3", 1543490560, 17, 0, true, RFT_F16, 1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        rft_model *model = open_file(rows[i].file);
        const rft_model_info info = info_of(model);
        const int64_t layers = rft_model_layer_count(model);
        const rft_layer first = layer_of(model, 0);
        if (info.parameters != rows[i].parameters || layers != rows[i].rows || info.tied != rows[i].tied) {
            fail_msg("%s: %lld parameters, %lld rows, tied %d", rows[i].file, (long long)info.parameters, (long long)layers,
                     (int)info.tied);
        }
        const double active = 1e-9 * (double)(info.active_parameters - (rows[i].embedded ? 0 : info.vocab * info.hidden));
        if (rows[i].active > 0 ? active < rows[i].active * 0.975 || active > rows[i].active * 1.025
                               : info.active_parameters != info.parameters) {
            fail_msg("%s: %.3f * 10^9 active parameters", rows[i].file, active);
        }
        assert_true(info.n_tensors == 0 && first.type == rows[i].type && first.tensor == -1 && first.bias_tensor == -1);
        assert_true(first.weight_bytes == (rows[i].type == RFT_F32 ? 4 : 2) * (uint64_t)(first.n * first.k));
        rft_model_free(model);
    }
}

static void absent_keys_have_defaults(void **state) {
    (void)state;
    rft_model *model = open_good(" \n" LLAMA "}");
    const rft_model_info info = info_of(model);
    assert_true(info.kv_heads == 4 && info.head_dim == 16 && info.tied == 0 && info.context == 0);
    assert_string_equal(info.name, "");
    assert_int_equal(layer_of(model, 0).type, RFT_F32);
    rft_model_free(model);
    model = open_good("{\"model_type\":\"smollm3\"," SIZES ",\"head_dim\":null}");
    assert_true(info_of(model).tied == 1);
    rft_model_free(model);
}

static void head_dim_need_not_divide(void **state) {
    (void)state;
    rft_model *model = open_good("{\"model_type\":\"qwen3\"," SIZES ",\"head_dim\":32,\"num_key_value_heads\":1}");
    assert_true(layer_of(model, 0).n == 128 && layer_of(model, 1).n == 32 && layer_of(model, 3).k == 128);
    rft_model_free(model);
}

static void biases_are_epilogues(void **state) {
    (void)state;
    rft_model *model = open_good("{\"model_type\":\"qwen2\"," SIZES "}");
    assert_string_equal(layer_of(model, 0).epilogue, "bias");
    assert_string_equal(layer_of(model, 3).epilogue, "add");
    rft_model_free(model);
    model = open_good(LLAMA ",\"attention_bias\":true,\"mlp_bias\":true}");
    assert_string_equal(layer_of(model, 2).epilogue, "bias");
    assert_string_equal(layer_of(model, 3).epilogue, "bias,add");
    assert_string_equal(layer_of(model, 5).epilogue, "bias,silu,mul");
    assert_int_equal(layer_of(model, 5).n_epi, 3);
    assert_string_equal(layer_of(model, 7).epilogue, "none");
    rft_model_free(model);
}

static rft_layer row_named(const rft_model *model, const char *name, const rft_phase *phase) {
    for (int64_t i = 0; i < rft_model_layer_count(model); i++) {
        rft_layer layer = rft_layer_init();
        assert_int_equal(rft_model_get_layer(model, i, phase, &layer, NULL), RFT_OK);
        if (strcmp(layer.name, name) == 0) {
            return layer;
        }
    }
    fail_msg("no row %s", name);
    return rft_layer_init();
}

static void assert_shape(const rft_model *model, const char *name, int64_t count, int64_t n, int64_t k, const char *epilogue) {
    const rft_phase phase = {RFT_PHASE_DECODE, 1, 1};
    const rft_layer layer = row_named(model, name, &phase);
    if (layer.count != count || layer.n != n || layer.k != k || strcmp(layer.epilogue, epilogue) != 0) {
        fail_msg("%s: %lld of %lld x %lld, %s", name, (long long)layer.count, (long long)layer.n, (long long)layer.k,
                 layer.epilogue);
    }
}

static void shapes_of_architectures(void **state) {
    (void)state;
    static const struct {
        const char *file, *name, *epilogue;
        int64_t count, n, k;
    } rows[] = {
        {"deepseek-v3", "attn_q_a", "none", 61, 1536, 7168},
        {"deepseek-v3", "attn_q_b", "none", 61, 24576, 1536},
        {"deepseek-v3", "attn_kv_a", "none", 61, 576, 7168},
        {"deepseek-v3", "attn_kv_b", "none", 61, 32768, 512},
        {"deepseek-v3", "attn_output", "add", 61, 7168, 16384},
        {"deepseek-v3", "ffn_gate", "silu,mul", 3, 18432, 7168},
        {"deepseek-v3", "router", "none", 58, 256, 7168},
        {"deepseek-v3", "expert_down", "none", 58 * 256, 7168, 2048},
        {"deepseek-v3", "shared_up", "none", 58, 2048, 7168},
        {"deepseek-v2-lite", "attn_q", "none", 27, 3072, 2048},
        {"deepseek-v2-lite", "shared_down", "none", 26, 2048, 2816},
        {"gpt-oss-20b", "attn_q", "bias", 24, 4096, 2880},
        {"gpt-oss-20b", "expert_gate_up", "bias", 24 * 32, 5760, 2880},
        {"phi-3-mini", "attn_qkv", "none", 32, 9216, 3072},
        {"phi-3-mini", "ffn_gate_up", "none", 32, 16384, 3072},
        {"gpt2", "attn_qkv", "bias", 12, 2304, 768},
        {"gpt2", "ffn_up", "bias,gelu_tanh", 12, 3072, 768},
        {"gpt2", "lm_head", "none", 1, 50257, 768},
        {"bert-base", "ffn_up", "bias,gelu", 12, 3072, 768},
        {"bert-base", "pooler", "bias", 1, 768, 768},
        {"gemma-2-9b", "attn_q", "none", 42, 4096, 3584},
        {"gemma-2-9b", "ffn_gate", "gelu_tanh,mul", 42, 14336, 3584},
        {"qwen1.5-moe-a2.7b", "shared_router", "none", 24, 1, 2048},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        rft_model *model = open_file(rows[i].file);
        assert_shape(model, rows[i].name, rows[i].count, rows[i].n, rows[i].k, rows[i].epilogue);
        rft_model_free(model);
    }
}

static void layouts_and_parts(void **state) {
    (void)state;
    const rft_phase phase = {RFT_PHASE_DECODE, 1, 1};
    rft_model *model = open_file("gpt2");
    const rft_layer qkv = row_named(model, "attn_qkv", &phase), output = row_named(model, "lm_head", &phase);
    assert_true(qkv.order == RFT_MN_CONTIGUOUS && output.order == RFT_K_CONTIGUOUS && output.parts[0] == 0);
    assert_string_equal(qkv.parts, "q+k+v");
    rft_model_free(model);
}

/* One token meets its own experts; many meet all; 8 tokens that take 2 of 8 each meet 8 (1 - (3/4)^8) as expected. */
static void experts_are_routed(void **state) {
    (void)state;
    rft_model *model = open_file("mixtral-8x7b");
    const double w = 14336.0 * 4096;
    rft_layer one = row_named(model, "expert_up", &(rft_phase){RFT_PHASE_DECODE, 1, 1});
    assert_true(one.m == 1 && one.count == 256 && one.experts == 8 && one.experts_used == 2);
    assert_true(one.runs > 63.999 && one.runs < 64.001 && one.runs_min == 64 && one.runs_max == 64);
    assert_true(one.flops == 2 * w * 64);
    rft_layer some = row_named(model, "expert_up", &(rft_phase){RFT_PHASE_DECODE, 8, 1});
    const double met = 8 * (1 - 0.10011291503906250); /* 0.75^8 */
    assert_true(some.m == 3 && some.runs > 32 * met * 0.999999 && some.runs < 32 * met * 1.000001);
    assert_true(some.runs_min == 64 && some.runs_max == 256 && some.flops == 8 * one.flops);
    rft_layer all = row_named(model, "expert_up", &(rft_phase){RFT_PHASE_PREFILL, 1, 4096});
    assert_true(all.m == 1024 && all.runs == 256 && all.runs_min == 64 && all.runs_max == 256);
    rft_model_cost cost = rft_model_cost_init();
    assert_int_equal(rft_model_get_cost(model, &(rft_phase){RFT_PHASE_DECODE, 1, 1}, &cost, NULL), RFT_OK);
    assert_true(cost.read_bytes < 0.28 * (double)cost.weight_bytes && cost.read_bytes_min == cost.read_bytes_max);
    rft_model_free(model);
}

/* It takes one token of each text, however many have logits. */
static void pooler_takes_texts(void **state) {
    (void)state;
    rft_model *model = open_file("bert-base");
    assert_int_equal(row_named(model, "pooler", &(rft_phase){RFT_PHASE_OFFLINE, 3, 128}).m, 3);
    assert_int_equal(row_named(model, "attn_q", &(rft_phase){RFT_PHASE_OFFLINE, 3, 128}).m, 384);
    rft_model_free(model);
}

static rft_part part_at(const rft_model *model, int64_t index, const rft_phase *phase, int64_t context) {
    rft_part part = rft_part_init();
    assert_int_equal(rft_model_get_part(model, index, phase, context, &part, NULL), RFT_OK);
    return part;
}

/* What is kept of a token: keys and values of the heads that share them, or the latent ones and a rotary key, in 16 bits. */
static void cache_of_a_token(void **state) {
    (void)state;
    static const struct {
        const char *file;
        double bytes;
    } rows[] = {{"llama-3.1-8b", 131072}, {"deepseek-v3", 70272}, {"mixtral-8x7b", 131072}, {"gpt2", 12 * 2 * 768 * 2}};
    const rft_phase phase = {RFT_PHASE_DECODE, 2, 1};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        rft_model *model = open_file(rows[i].file);
        const rft_part cache = part_at(model, 2, &phase, 1000);
        if (cache.read_bytes != 2000 * rows[i].bytes || cache.write_bytes != 2 * rows[i].bytes) {
            fail_msg("%s: %.0f and %.0f", rows[i].file, cache.read_bytes, cache.write_bytes);
        }
        rft_model_free(model);
    }
}

/* kv heads that a rank's heads read. */
static void cache_of_a_rank(void **state) {
    (void)state;
    static const struct {
        const char *file;
        int64_t ranks;
        double share;
    } rows[] = {{"llama-3.1-8b", 1, 1},     {"llama-3.1-8b", 8, 0.125}, {"llama-3.1-8b", 16, 0.125}, {"qwen2.5-7b", 8, 0.5},
                {"gemma-3-1b", 4, 1},       {"deepseek-v3", 8, 1},      {"gpt2", 8, 2.0 / 12}};
    const rft_phase phase = {RFT_PHASE_DECODE, 2, 1};
    double share;
    rft_error err;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        rft_model *model = open_file(rows[i].file);
        assert_int_equal(rft_model_cache_share(model, &phase, &(rft_ranks){.tp = rows[i].ranks}, &share, NULL), RFT_OK);
        if (share != rows[i].share) {
            fail_msg("%s: %g of the cache on one of %lld ranks", rows[i].file, share, (long long)rows[i].ranks);
        }
        assert_int_equal(rft_model_cache_share(model, &phase, &(rft_ranks){.tp = 0}, &share, &err), RFT_E_ARG);
        assert_int_equal(rft_model_cache_share(model, &phase, &(rft_ranks){.tp = 2}, NULL, &err), RFT_E_ARG);
        rft_model_free(model);
    }
}

static void parts_of_architectures(void **state) {
    (void)state;
    const rft_phase decode = {RFT_PHASE_DECODE, 1, 1}, offline = {RFT_PHASE_OFFLINE, 2, 100};
    rft_part part = rft_part_init();
    rft_model *model = open_file("deepseek-v3"); /* absorbed: 128 heads by 512 + 64 latent keys, then by 512 latent values */
    assert_true(part_at(model, 0, &decode, 999).flops == 2.0 * 1000 * 128 * 576 * 61);
    assert_true(part_at(model, 1, &decode, 999).flops == 2.0 * 1000 * 128 * 512 * 61);
    rft_model_free(model);
    model = open_file("bert-base"); /* each token sees all 100; 25 norms with biases; three tables */
    assert_true(part_at(model, 0, &offline, 0).flops == 2.0 * 2 * 100 * 100 * 768 * 12);
    assert_true(part_at(model, 3, &offline, 0).write_bytes == 200.0 * 25 * 768 * 2);
    assert_true(part_at(model, 3, &offline, 0).read_bytes == (200.0 * 25 + 50) * 768 * 2);
    assert_true(part_at(model, 4, &offline, 0).read_bytes == 200.0 * 3 * 768 * 4);
    assert_true(part_at(model, 2, &decode, 0).write_bytes == 0);
    rft_error err;
    assert_int_equal(rft_model_get_part(model, 2, &decode, 1, &part, &err), RFT_E_ARG);
    assert_non_null(strstr(err.message, "an encoder has no cache"));
    rft_model_free(model);
    model = open_file("qwen3-8b"); /* a norm of each head of queries and keys */
    assert_true(part_at(model, 3, &decode, 0).write_bytes == (36.0 * (2 * 4096 + 40 * 128) + 4096) * 2);
    assert_true(part_at(model, 3, &decode, 0).read_bytes == (36.0 * (4 * 4096 + 42 * 128) + 2 * 4096) * 2);
    rft_model_free(model);
}

static rft_shard shard_of(const char *file, const char *name, int64_t ranks) {
    const rft_phase phase = {RFT_PHASE_DECODE, 8, 1};
    rft_model *model = open_file(file);
    rft_shard shard = rft_shard_init();
    rft_layer layer = rft_layer_init();
    int64_t row = -1;
    do {
        assert_int_equal(rft_model_get_layer(model, ++row, &phase, &layer, NULL), RFT_OK);
    } while (strcmp(layer.name, name) != 0);
    assert_int_equal(rft_model_get_shard(model, row, &phase, &(rft_ranks){.tp = ranks}, &shard, NULL), RFT_OK);
    rft_model_free(model);
    return shard;
}

/* Joined tensors by their parts, latent ones whole; what experts and those beside them give is summed once a block. */
static void architectures_are_cut(void **state) {
    (void)state;
    rft_shard s = shard_of("phi-3-mini", "attn_qkv", 8);
    assert_true(s.divides && s.n == 3 * 3072 / 8 && s.k == 3072);
    s = shard_of("phi-3-mini", "ffn_gate_up", 8);
    assert_true(s.divides && s.n == 2 * 8192 / 8);
    s = shard_of("gpt2", "attn_qkv", 8);
    assert_true(!s.divides && s.n == 3 * 2 * 64);
    assert_string_equal(s.note, "12 heads do not divide by 8; 12 kv heads do not divide by 8");
    s = shard_of("qwen2.5-7b", "attn_k", 8); /* heads 4 to 7 of 28 read two of the four */
    assert_true(!s.divides && s.n == 2 * 128);
    s = shard_of("qwen2.5-7b", "attn_k", 14);
    assert_true(!s.divides && s.n == 2 * 128);
    s = shard_of("qwen2.5-7b", "attn_k", 28);
    assert_true(s.divides && s.n == 128);
    s = shard_of("deepseek-v3", "attn_kv_a", 8);
    assert_true(s.divides && s.split[0] == 0 && s.n == 576 && s.k == 7168);
    s = shard_of("deepseek-v3", "attn_output", 8);
    assert_true(s.split[0] == 'K' && s.k == 128 / 8 * 128 && s.collective_bytes == 8.0 * 7168 * 61 * 2);
    s = shard_of("deepseek-v3", "expert_down", 8);
    assert_true(s.k == 256 && s.collective_bytes == 8.0 * 7168 * 58 * 2 && s.sent_bytes == 8.0 * 7168 * 58 * 2 * 1.75);
    s = shard_of("deepseek-v3", "shared_down", 8);
    assert_true(s.divides && s.k == 256 && s.sent_bytes == 0);
    assert_string_equal(s.note, "summed with the experts");
}

/* Names reach terminals, which act on U+0080 to U+009F as on others below U+0020. */
static void names_are_printable(void **state) {
    (void)state;
    rft_model *model = open_good(LLAMA ",\"_name_or_path\":\"a\\u009b31m\\u001bb\\u0085\\u00a0\"}");
    assert_string_equal(info_of(model).name, "a?31m?b?\xc2\xa0");
    rft_model_free(model);
}

static void sizes_may_be_nested(void **state) {
    (void)state;
    rft_model *model = open_good("{\"model_type\":\"gemma3\",\"text_config\":{\"hidden_size\":2560,\"num_hidden_layers\":34,"
                                 "\"intermediate_size\":10240}}");
    assert_true(info_of(model).parameters == 3880263168); /* gemma-3-4b without its picture encoder: 3.88 * 10^9 */
    rft_model_free(model);
}

static void tensors_are_absent(void **state) {
    (void)state;
    rft_model *model = open_good(LLAMA "}");
    rft_tensor tensor = rft_tensor_init();
    rft_error err;
    float value;
    assert_int_equal(rft_model_get_tensor(model, 0, &tensor, &err), RFT_E_ARG);
    assert_int_equal(rft_model_decode(model, -1, 0, 1, RFT_F32, &value, 0, &err), RFT_E_ARG);
    assert_int_equal(rft_model_find_tensor(model, "token_embd.weight"), -1);
    rft_model_free(model);
}

/* Some mixtures size experts by a key of their own; where others have it too, it does not count. */
static void experts_have_their_own_ffn_size(void **state) {
    (void)state;
    static const struct {
        const char *type;
        int64_t ffn; /* of an expert */
    } rows[] = {{"qwen3_moe", 48}, {"qwen2_moe", 48}, {"mixtral", 96}, {"gpt_oss", 96}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char text[400];
        snprintf(text, sizeof text, "{\"model_type\":\"%s\"," SIZES ",\"moe_intermediate_size\":48,\"num_experts\":4,"
                 "\"num_experts_per_tok\":2}", rows[i].type);
        rft_model *model = open_good(text);
        const rft_layer layer = layer_of(model, 5);
        if (strncmp(layer.name, "expert_", 7) != 0 || layer.n != (i == 3 ? 2 : 1) * rows[i].ffn) {
            fail_msg("%s: %s has %lld columns", rows[i].type, layer.name, (long long)layer.n);
        }
        rft_model_free(model);
    }
    rft_model *model = open_good(LLAMA ",\"moe_intermediate_size\":48}");
    assert_true(layer_of(model, 4).n == 96);
    rft_model_free(model);
}

/* ---- refusals ---- */

typedef struct refusal {
    rft_status status;
    const char *text, *part;
} refusal;

static void assert_refused(const refusal *rows, size_t count) {
    for (size_t i = 0; i < count; i++) {
        rft_model *model;
        rft_error err;
        const rft_status got = open_text(rows[i].text, &model, &err);
        if (got != rows[i].status || !strstr(err.message, rows[i].part) || model) {
            fail_msg("%s: status %d, '%s'; expected %d, '%s'", rows[i].text, got, err.message, rows[i].status, rows[i].part);
        }
    }
}

static void bad_experts_are_refused(void **state) {
    (void)state;
    static const refusal rows[] = {
        {RFT_E_ARG, MOE ",\"num_experts\":8}", "the key 'num_experts_per_tok' is missing"},
        {RFT_E_ARG, MOE ",\"num_experts_per_tok\":2}", "the key 'num_experts' is missing"},
        {RFT_E_ARG, MOE ",\"num_experts\":8,\"num_experts_per_tok\":0}", "'num_experts_per_tok': experts of a token = 0"},
        {RFT_E_ARG, MOE ",\"num_experts\":8,\"num_experts_per_tok\":9}", "experts of a token = 9 is not in 1..8"},
        {RFT_E_ARG, MOE ",\"num_local_experts\":9999,\"num_experts_per_tok\":2}", "'num_local_experts': experts = 9999"},
    };
    assert_refused(rows, sizeof rows / sizeof rows[0]);
}

/* Each names its key, and that of what it must fit. */
static void bad_sizes_are_refused(void **state) {
    (void)state;
    static const refusal rows[] = {
        {RFT_E_ARG, LLAMA ",\"head_dim\":9223372036854775807}",
         "'head_dim': head size = 9223372036854775807 is not in 1..1048576"},
        {RFT_E_ARG, LLAMA ",\"num_key_value_heads\":3}",
         "'num_attention_heads': heads = 4 is not a multiple of kv heads = 3 ('num_key_value_heads')"},
        {RFT_E_ARG,
         "{\"model_type\":\"llama\",\"hidden_size\":66,\"num_hidden_layers\":2,\"intermediate_size\":96,\"vocab_size\":128,"
         "\"num_attention_heads\":4}",
         "'hidden_size': hidden size = 66 is not a multiple of heads = 4 ('num_attention_heads')"},
        {RFT_E_ARG,
         "{\"model_type\":\"deepseek_v3\"," SIZES ",\"n_routed_experts\":8,\"num_experts_per_tok\":2,\"kv_lora_rank\":8,"
         "\"qk_nope_head_dim\":8,\"qk_rope_head_dim\":8,\"v_head_dim\":8,\"n_shared_experts\":4096,"
         "\"moe_intermediate_size\":4096}",
         "'n_shared_experts': ffn size of the shared experts = 16777216 is not in 0..4194304"},
        {RFT_E_UNSUPPORTED,
         "{\"model_type\":\"whisper\",\"d_model\":64,\"encoder_layers\":3,\"encoder_attention_heads\":2,"
         "\"encoder_ffn_dim\":96,\"decoder_layers\":2,\"decoder_attention_heads\":4,\"decoder_ffn_dim\":96,"
         "\"num_mel_bins\":8,\"max_source_positions\":30,\"max_target_positions\":20,\"vocab_size\":101}",
         "'encoder_attention_heads': encoder heads = 2 differ from decoder heads = 4"},
        {RFT_E_ARG, LLAMA ",\"num_key_value_heads\":5}", "'num_key_value_heads': kv heads = 5 is not in 1..4"},
    };
    assert_refused(rows, sizeof rows / sizeof rows[0]);
}

static void bad_configs_are_refused(void **state) {
    (void)state;
    static const refusal rows[] = {
        {RFT_E_ARG, "{", "JSON line 1"},
        {RFT_E_ARG, LLAMA "} trailing", "JSON line 1"},
        {RFT_E_ARG, "{\"a\":1,\"a\":2}", "duplicate"},
        {RFT_E_ARG, "{\"weight_map\":{}}", "'model_type' is missing"},
        {RFT_E_ARG, "{\"model_type\":7}", "'model_type' is not a string"},
        {RFT_E_UNSUPPORTED, "{\"model_type\":\"mamba\"}", "'mamba' is not known, and config.json alone has no weights"},
        {RFT_E_ARG, "{\"model_type\":\"llama\"}", "'hidden_size' is missing"},
        {RFT_E_ARG, LLAMA ",\"head_dim\":\"64\"}", "'head_dim' is not a whole number"},
        {RFT_E_ARG, LLAMA ",\"head_dim\":16.5}", "'head_dim' is not a whole number"},
        {RFT_E_ARG, LLAMA ",\"head_dim\":-1}", "head_dim = -1 is negative"},
        {RFT_E_ARG, LLAMA ",\"head_dim\":9223372036854775808}", "JSON"},
        {RFT_E_ARG, LLAMA ",\"tie_word_embeddings\":1}", "'tie_word_embeddings' is neither true nor false"},
        {RFT_E_UNSUPPORTED, LLAMA ",\"torch_dtype\":\"int3\"}", "'int3' is none of"},
        {RFT_E_UNSUPPORTED, LLAMA ",\"hidden_act\":\"tan\\u001b\"}", "hidden_act = 'tan?'"},
        {RFT_E_ARG, LLAMA ",\"hidden_act\":5}", "'hidden_act' is not a string"},
        {RFT_E_UNSUPPORTED, LLAMA ",\"torch_dtype\":\"\\u001b[31m\"}", "'?[31m' is none of"},
        {RFT_E_UNSUPPORTED, LLAMA ",\"num_local_experts\":8}", "'num_local_experts': experts = 8 are not supported in llama"},
        {RFT_E_UNSUPPORTED, LLAMA ",\"quantization_config\":{\"quant_method\":\"gptq\"}}", "method 'gptq'"},
        {RFT_E_ARG, MOE ",\"num_experts\":4611686018427387904,\"num_experts_per_tok\":2}",
         "experts = 4611686018427387904 is not in 1..4096"},
        {RFT_E_UNSUPPORTED, MOE ",\"num_experts\":8,\"num_experts_per_tok\":2,\"mlp_only_layers\":[1]}", "mlp_only_layers"},
        {RFT_E_UNSUPPORTED, MOE ",\"num_experts\":8,\"num_experts_per_tok\":2,\"decoder_sparse_step\":2}",
         "'decoder_sparse_step': step from mixture to mixture = 2 is not supported"},
        {RFT_E_ARG, MOE ",\"num_experts\":8,\"num_experts_per_tok\":2,\"first_k_dense_replace\":1}",
         "'first_k_dense_replace': dense blocks = 1 are not known of qwen3_moe"},
        {RFT_E_ARG, "{\"model_type\":\"gemma3\"}", "'text_config' is missing"},
        {RFT_E_ARG, "{\"model_type\":\"gpt2\"}", "'n_embd' is missing"},
        {RFT_E_ARG, "{\"model_type\":\"gpt2\",\"n_embd\":9223372036854775807}",
         "'n_embd': hidden size = 9223372036854775807 is over"},
        {RFT_E_ARG, "{\"model_type\":\"deepseek_v3\"," SIZES ",\"n_routed_experts\":8,\"num_experts_per_tok\":2}",
         "the key 'kv_lora_rank' is missing"},
        {RFT_E_ARG,
         "{\"model_type\":\"mixtral\",\"hidden_size\":4194304,\"num_hidden_layers\":4096,\"intermediate_size\":4194304,"
         "\"vocab_size\":1,\"num_attention_heads\":1,\"num_local_experts\":4096,\"num_experts_per_tok\":1}",
         "over 2^58 parameters"},
        {RFT_E_UNSUPPORTED, LLAMA ",\"quantization_config\":[]}", "method 'unnamed'"},
        {RFT_E_UNSUPPORTED, "[1]", "neither GGUF nor a config.json"},
        {RFT_E_UNSUPPORTED, " ", "neither GGUF nor a config.json"},
        {RFT_E_ARG,
         "{\"model_type\":\"llama\",\"hidden_size\":64,\"num_hidden_layers\":4611686018427387904,\"intermediate_size\":1,"
         "\"vocab_size\":1,\"num_attention_heads\":1}",
         "'num_hidden_layers': layers = 4611686018427387904 is not in 1..4096"},
    };
    assert_refused(rows, sizeof rows / sizeof rows[0]);
}

static void truncation_at_every_byte(void **state) {
    (void)state;
    char text[] = LLAMA "}";
    for (size_t n = strlen(text); n > 0; n--) {
        rft_model *model;
        rft_error err;
        text[n - 1] = 0;
        assert_int_not_equal(open_text(text, &model, &err), RFT_OK);
    }
}

static void deep_nesting_is_refused(void **state) {
    (void)state;
    enum { SIZE = 1 << 20 };
    char *text = malloc(SIZE);
    assert_non_null(text);
    memset(text, '[', SIZE);
    memcpy(text, "{\"a\":", 5);
    rft_model *model = NULL;
    rft_error err;
    assert_int_equal(rft_model_open_memory(text, SIZE, &model, &err), RFT_E_ARG);
    assert_non_null(strstr(err.message, "depth"));
    free(text);
}

static void oversize_is_refused(void **state) {
    (void)state;
    const size_t size = (16u << 20) + 8;
    char *text = malloc(size);
    assert_non_null(text);
    memset(text, ' ', size);
    memcpy(text, LLAMA "}", strlen(LLAMA "}"));
    rft_model *model = NULL;
    rft_error err;
    assert_int_equal(rft_model_open_memory(text, size, &model, &err), RFT_E_ARG);
    assert_non_null(strstr(err.message, "16777224 bytes is over the limit of 16777216"));
    free(text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(published_models),         cmocka_unit_test(absent_keys_have_defaults),
        cmocka_unit_test(head_dim_need_not_divide), cmocka_unit_test(biases_are_epilogues),
        cmocka_unit_test(shapes_of_architectures),  cmocka_unit_test(layouts_and_parts),
        cmocka_unit_test(experts_are_routed),
        cmocka_unit_test(pooler_takes_texts),
        cmocka_unit_test(cache_of_a_token),
        cmocka_unit_test(cache_of_a_rank),
        cmocka_unit_test(architectures_are_cut),
        cmocka_unit_test(parts_of_architectures),       cmocka_unit_test(sizes_may_be_nested),
        cmocka_unit_test(experts_have_their_own_ffn_size), cmocka_unit_test(names_are_printable),
        cmocka_unit_test(tensors_are_absent),       cmocka_unit_test(bad_configs_are_refused),
        cmocka_unit_test(bad_experts_are_refused),    cmocka_unit_test(bad_sizes_are_refused),
        cmocka_unit_test(truncation_at_every_byte), cmocka_unit_test(deep_nesting_is_refused),
        cmocka_unit_test(oversize_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
