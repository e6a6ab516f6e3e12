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

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SIZES "\"hidden_size\":64,\"num_hidden_layers\":2,\"intermediate_size\":96,\"vocab_size\":128,\"num_attention_heads\":4"
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

static void published_models(void **state) {
    (void)state;
    static const struct {
        const char *file;
        int64_t parameters, kv_n;
        rft_type type;
        int32_t tied;
    } rows[] = {
        {"smollm2-135m", 134515008, 192, RFT_BF16, 1},    {"llama-3.1-8b", 8030261248, 1024, RFT_BF16, 0},
        {"mistral-7b", 7241732096, 1024, RFT_BF16, 0},    {"llama-2-7b", 6738415616, 4096, RFT_F16, 0},
        {"tinyllama-1.1b", 1100048384, 256, RFT_BF16, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char path[512];
        rft_model *model;
        snprintf(path, sizeof path, "%s/../../bench/models/%s.json", RFT_TEST_DATA_DIR, rows[i].file);
        assert_int_equal(rft_model_open(path, &model, NULL), RFT_OK);
        const rft_model_info info = info_of(model);
        assert_true(info.parameters == rows[i].parameters && info.tied == rows[i].tied && info.n_tensors == 0);
        assert_int_equal(rft_model_layer_count(model), 8);
        const rft_layer k = layer_of(model, 1);
        assert_string_equal(k.name, "attn_k");
        assert_true(k.n == rows[i].kv_n && k.k == info.hidden && k.count == info.layers && k.type == rows[i].type);
        assert_true(k.weight_bytes == 2 * (uint64_t)(k.n * k.k) && k.tensor == -1 && k.bias_tensor == -1);
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

/* ---- refusals ---- */

static void bad_configs_are_refused(void **state) {
    (void)state;
    static const struct {
        rft_status status;
        const char *text, *part;
    } rows[] = {
        {RFT_E_ARG, "{", "JSON line 1"},
        {RFT_E_ARG, LLAMA "} trailing", "JSON line 1"},
        {RFT_E_ARG, "{\"a\":1,\"a\":2}", "duplicate"},
        {RFT_E_ARG, "{\"weight_map\":{}}", "'model_type' is missing"},
        {RFT_E_ARG, "{\"model_type\":7}", "'model_type' is not a string"},
        {RFT_E_UNSUPPORTED, "{\"model_type\":\"mamba\"}", "'mamba' is not supported"},
        {RFT_E_ARG, "{\"model_type\":\"llama\"}", "'hidden_size' is missing"},
        {RFT_E_ARG, LLAMA ",\"head_dim\":\"64\"}", "'head_dim' is not a whole number"},
        {RFT_E_ARG, LLAMA ",\"head_dim\":16.5}", "'head_dim' is not a whole number"},
        {RFT_E_ARG, LLAMA ",\"head_dim\":-1}", "head_dim = -1 is negative"},
        {RFT_E_ARG, LLAMA ",\"head_dim\":9223372036854775807}", "head size = 9223372036854775807 is not in 1..1048576"},
        {RFT_E_ARG, LLAMA ",\"head_dim\":9223372036854775808}", "JSON"},
        {RFT_E_ARG, LLAMA ",\"num_key_value_heads\":3}", "not a multiple of kv heads = 3"},
        {RFT_E_ARG, LLAMA ",\"tie_word_embeddings\":1}", "'tie_word_embeddings' is neither true nor false"},
        {RFT_E_UNSUPPORTED, LLAMA ",\"torch_dtype\":\"int3\"}", "'int3' is none of"},
        {RFT_E_UNSUPPORTED, LLAMA ",\"hidden_act\":\"gelu\"}", "hidden_act = 'gelu'"},
        {RFT_E_ARG, LLAMA ",\"hidden_act\":5}", "'hidden_act' is not a string"},
        {RFT_E_UNSUPPORTED, LLAMA ",\"torch_dtype\":\"\\u001b[31m\"}", "'?[31m' is none of"},
        {RFT_E_UNSUPPORTED, LLAMA ",\"num_local_experts\":8}", "num_local_experts = 8: mixture-of-experts"},
        {RFT_E_UNSUPPORTED, LLAMA ",\"quantization_config\":{\"quant_method\":\"gptq\"}}", "method 'gptq'"},
        {RFT_E_UNSUPPORTED, LLAMA ",\"quantization_config\":[]}", "method 'unnamed'"},
        {RFT_E_UNSUPPORTED, "[1]", "neither GGUF nor a config.json"},
        {RFT_E_UNSUPPORTED, " ", "neither GGUF nor a config.json"},
        {RFT_E_ARG,
         "{\"model_type\":\"llama\",\"hidden_size\":64,\"num_hidden_layers\":4611686018427387904,\"intermediate_size\":1,"
         "\"vocab_size\":1,\"num_attention_heads\":1}",
         "layers = 4611686018427387904 is not in 1..4096"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        rft_model *model;
        rft_error err;
        const rft_status got = open_text(rows[i].text, &model, &err);
        if (got != rows[i].status || !strstr(err.message, rows[i].part) || model) {
            fail_msg("%s: status %d, '%s'; expected %d, '%s'", rows[i].text, got, err.message, rows[i].status, rows[i].part);
        }
    }
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
        cmocka_unit_test(tensors_are_absent),       cmocka_unit_test(bad_configs_are_refused),
        cmocka_unit_test(truncation_at_every_byte), cmocka_unit_test(deep_nesting_is_refused),
        cmocka_unit_test(oversize_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
