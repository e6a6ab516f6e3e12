/* SPDX-License-Identifier: Apache-2.0
 *
 * test_checkpoint.c - checkpoints on disk: a folder, a single file, an index over several; the layers and values that they yield,
 * and what is refused.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "rooftile_model.h"
#include "safetensors_builder.h"
#include "test_files.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

static st_builder file;

static void write_tensors(const char *name) {
    st_end(&file);
    write_file(name, file.bytes, file.size);
}

static void write_whole_model(const char *name) {
    st_begin(&file);
    st_tiny_block(&file, 0);
    st_tiny_block(&file, 1);
    st_tiny_ends(&file);
    write_tensors(name);
}

static rft_model *open_good(const char *name) {
    rft_model *model = NULL;
    rft_error err = {0};
    if (rft_model_open(in_folder(name), &model, &err) != RFT_OK) {
        fail_msg("%s", err.message);
    }
    return model;
}

static void assert_refused(const char *name, rft_status want, const char *part) {
    rft_model *model = NULL;
    rft_error err = {0};
    const rft_status got = rft_model_open(in_folder(name), &model, &err);
    if (got != want || !strstr(err.message, part) || model) {
        fail_msg("%s: status %d, '%s'; expected %d and '%s'", name, got, err.message, want, part);
    }
}

static rft_layer layer_at(const rft_model *model, int64_t row) {
    const rft_phase phase = {RFT_PHASE_DECODE, 3, 1};
    rft_layer layer = rft_layer_init();
    assert_int_equal(rft_model_get_layer(model, row, &phase, &layer, NULL), RFT_OK);
    return layer;
}

static void assert_tiny(rft_model *model) {
    static const struct {
        const char *name;
        int64_t count, n, k;
    } rows[] = {{"attn_q", 2, 64, 64}, {"attn_k", 2, 32, 64},   {"attn_v", 2, 32, 64},   {"attn_output", 2, 64, 64},
                {"ffn_up", 2, 96, 64}, {"ffn_gate", 2, 96, 64}, {"ffn_down", 2, 64, 96}, {"lm_head", 1, 128, 64}};
    assert_int_equal(rft_model_layer_count(model), 8);
    for (int64_t i = 0; i < 8; i++) {
        const rft_layer layer = layer_at(model, i);
        assert_string_equal(layer.name, rows[i].name);
        assert_true(layer.count == rows[i].count && layer.n == rows[i].n && layer.k == rows[i].k && layer.type == RFT_F32);
        assert_true(layer.weight_bytes == 4 * (uint64_t)(layer.n * layer.k) && layer.tensor >= 0 && layer.bias_tensor == -1);
    }
}

static void folder_and_file_are_read(void **state) {
    (void)state;
    write_text("config.json", "{" ST_TINY_SIZES "}");
    write_whole_model("model.safetensors");
    for (int whole = 0; whole < 2; whole++) {
        rft_model *model = open_good(whole ? "." : "model.safetensors");
        rft_model_info info = rft_model_info_init();
        assert_tiny(model);
        assert_int_equal(rft_model_get_info(model, &info, NULL), RFT_OK);
        assert_true(info.format == RFT_MODEL_SAFETENSORS && info.n_tensors == 21 && info.file_bytes == file.size);
        assert_true(info.parameters == 2 * (64 * (64 + 32 + 32 + 64 + 3 * 96) + 128) + 2 * 128 * 64 + 64 && info.tied == 0);
        rft_model_free(model);
    }
}

static void values_are_the_files_own(void **state) {
    (void)state;
    rft_model *model = open_good("model.safetensors");
    const rft_layer layer = layer_at(model, 6);
    rft_tensor t = rft_tensor_init();
    float rows[2 * 96];
    assert_int_equal(rft_model_get_tensor(model, layer.tensor, &t, NULL), RFT_OK);
    assert_string_equal(t.name, "model.layers.0.mlp.down_proj.weight");
    assert_non_null(t.data);
    assert_int_equal(rft_model_decode(model, layer.tensor, 3, 2, RFT_F32, rows, 0, NULL), RFT_OK);
    assert_memory_equal(rows, (const float *)t.data + 3 * 96, sizeof rows);
    rft_model_free(model);
}

/* An unpadded header puts all data off their alignment: no pointer is given, decoding works. */
static void misaligned_data_are_decoded(void **state) {
    (void)state;
    st_begin(&file);
    st_tiny_block(&file, 0);
    st_tiny_block(&file, 1);
    st_tiny_ends(&file);
    if ((8 + file.header_size + 1) % 4 == 0) {
        file.header[file.header_size++] = ' ';
    }
    st_finish(&file, 0);
    write_file("model.safetensors", file.bytes, file.size);
    rft_model *model = open_good("model.safetensors");
    rft_tensor t = rft_tensor_init();
    const int64_t at = rft_model_find_tensor(model, "model.norm.weight");
    float row[64];
    assert_tiny(model);
    assert_int_equal(rft_model_get_tensor(model, at, &t, NULL), RFT_OK);
    assert_null(t.data);
    assert_int_equal(rft_model_decode(model, at, 0, 1, RFT_F32, row, 0, NULL), RFT_OK);
    assert_true(row[0] != 0 && row[63] != 0);
    rft_model_free(model);
}

static void f16_is_copied_as_stored(void **state) {
    (void)state;
    write_whole_model("model.safetensors");
    st_begin(&file);
    st_tiny_block(&file, 0);
    st_tiny_block(&file, 1);
    st_tiny_ends(&file);
    uint16_t *data = st_add(&file, "half", "F16", "[2,4]", 16);
    data[5] = 0x3c00;
    write_tensors("model.safetensors");
    rft_model *model = open_good("model.safetensors");
    uint16_t rows[8] = {0};
    const int64_t at = rft_model_find_tensor(model, "half");
    assert_int_equal(rft_model_decode(model, at, 0, 2, RFT_F16, rows, 0, NULL), RFT_OK);
    assert_int_equal(rows[5], 0x3c00);
    assert_int_equal(rft_model_decode(model, at, 0, 2, RFT_BF16, rows, 0, NULL), RFT_OK);
    assert_int_equal(rows[5], 0x3f80);
    rft_model_free(model);
}

/* ---- several files ---- */

#define SHARD0 "model-00001-of-00002.safetensors"
#define SHARD1 "model-00002-of-00002.safetensors"

static void write_index(const char *last_file) {
    char text[8192];
    size_t n = (size_t)snprintf(text, sizeof text, "{\"metadata\":{\"total_size\":1},\"weight_map\":{");
    for (int block = 0; block < 2; block++) {
        for (int i = 0; i < ST_TINY_PARTS; i++) {
            n += (size_t)snprintf(text + n, sizeof text - n, "\"model.layers.%d.%s.weight\":\"%s\",", block,
                                  st_tiny_parts[i].name, block ? SHARD1 : SHARD0);
        }
    }
    snprintf(text + n, sizeof text - n,
             "\"model.embed_tokens.weight\":\"" SHARD1 "\",\"model.norm.weight\":\"" SHARD1 "\",\"lm_head.weight\":\"%s\"}}",
             last_file);
    write_text("model.safetensors.index.json", text);
}

static void index_joins_files(void **state) {
    (void)state;
    st_begin(&file);
    st_tiny_block(&file, 0);
    write_tensors(SHARD0);
    st_begin(&file);
    st_tiny_block(&file, 1);
    st_tiny_ends(&file);
    write_tensors(SHARD1);
    write_index(SHARD1);
    rft_model *model = open_good(".");
    assert_tiny(model);
    rft_model_free(model);
    model = open_good("model.safetensors.index.json");
    assert_tiny(model);
    rft_model_free(model);
    assert_refused(SHARD0, RFT_E_ARG, "tensor 'model.layers.1.self_attn.q_proj.weight' is missing");
}

static void bad_indexes(void **state) {
    (void)state;
    static const struct {
        rft_status status;
        const char *text, *part;
    } rows[] = {
        {RFT_E_ARG, "{}", "'weight_map' is missing"},
        {RFT_E_ARG, "{\"weight_map\":[]}", "'weight_map' is missing, or no object"},
        {RFT_E_ARG, "{\"weight_map\":{}}", "0 files, not 1"},
        {RFT_E_ARG, "{\"weight_map\":{\"a\":7}}", "not a string"},
        {RFT_E_ARG, "{\"weight_map\":{\"a\":\"../x.safetensors\"}}", "'../x.safetensors' is no plain file name"},
        {RFT_E_ARG, "{\"weight_map\":{\"a\":\"/etc/passwd\"}}", "no plain file name"},
        {RFT_E_ARG, "{\"weight_map\":{\"a\":\"..\"}}", "no plain file name"},
        {RFT_E_ARG, "{\"weight_map\":{\"a\":\"\"}}", "no plain file name"},
        {RFT_E_IO, "{\"weight_map\":{\"a\":\"none.safetensors\"}}", "none.safetensors"},
        {RFT_E_ARG, "{\"weight_map\":{\"a\":\"" SHARD0 "\"}}", "tensor 'a' is not in '" SHARD0 "'"},
        {RFT_E_ARG, "{\"weight_map\":{\"model.norm.weight\":\"" SHARD0 "\",\"a\":\"" SHARD1 "\"}}",
         "'model.norm.weight' is not in"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        write_text("model.safetensors.index.json", rows[i].text);
        assert_refused(".", rows[i].status, rows[i].part);
    }
    write_index(SHARD0);
    assert_refused(".", RFT_E_ARG, "'lm_head.weight' is not in '" SHARD0 "'");
    unlink(in_folder("model.safetensors.index.json"));
}

/* ---- quantised ---- */

#define BLOCK1 "model.layers.1."

/* One weight of block 1 as GPTQ stores it, under either file that may say so. */
static void write_gptq(void) {
    st_begin(&file);
    st_tiny_block(&file, 0);
    for (int i = 0; i < ST_TINY_PARTS; i++) {
        char name[96];
        snprintf(name, sizeof name, BLOCK1 "%s.weight", st_tiny_parts[i].name);
        if (strcmp(st_tiny_parts[i].name, "self_attn.q_proj") != 0) {
            st_add_f32(&file, name, st_tiny_parts[i].n, st_tiny_parts[i].k);
        }
    }
    st_tiny_ends(&file);
    memset(st_add(&file, BLOCK1 "self_attn.q_proj.qweight", "I32", "[8,64]", 2048), 0x99, 2048);
    memset(st_add(&file, BLOCK1 "self_attn.q_proj.qzeros", "I32", "[2,8]", 64), 0x77, 64);
    uint16_t *scales = st_add(&file, BLOCK1 "self_attn.q_proj.scales", "F16", "[2,64]", 256);
    for (int i = 0; i < 128; i++) {
        scales[i] = 0x3800;
    }
    write_tensors("model.safetensors");
}

/* Symmetric codes as I4 without zero points, floats as they are; vectors and missing parts are refused by name. */
static void assert_low_bit_form(const rft_model *model, int64_t plain, int64_t quantised) {
    rft_weight_desc d = rft_weight_desc_init();
    rft_weight_parts p = rft_weight_parts_init();
    rft_error err = {0};
    static unsigned char codes[64 * 32];
    static uint16_t scales[64 * 2];
    static float wide[64 * 64];
    assert_int_equal(rft_model_describe_weight(model, quantised, &d, &err), RFT_OK);
    assert_true(d.elem == RFT_I4 && d.n == 64 && d.k == 64 && d.batch == 1 && d.scale == RFT_F16 && d.zero == 0);
    assert_true(d.group_n == 1 && d.group_k == 32 && d.flags == 0);
    p.q = codes;
    assert_int_equal(rft_model_read_weight(model, quantised, &p, &err), RFT_E_ARG);
    assert_non_null(strstr(err.message, "parts.scale is NULL"));
    p.scale = scales;
    assert_int_equal(rft_model_read_weight(model, quantised, &p, &err), RFT_OK);
    assert_true(codes[0] == 0x11 && codes[64 * 32 - 1] == 0x11 && scales[0] == 0x3800 && scales[127] == 0x3800);
    d = rft_weight_desc_init();
    assert_int_equal(rft_model_describe_weight(model, plain, &d, &err), RFT_OK);
    assert_true(d.elem == RFT_F32 && d.n == 64 && d.k == 64 && d.scale == 0 && d.group_k == 0);
    p = rft_weight_parts_init();
    assert_int_equal(rft_model_read_weight(model, plain, &p, &err), RFT_E_ARG);
    assert_non_null(strstr(err.message, "parts.q is NULL"));
    p.q = wide;
    assert_int_equal(rft_model_read_weight(model, plain, &p, &err), RFT_OK);
    rft_tensor t = rft_tensor_init();
    assert_int_equal(rft_model_get_tensor(model, plain, &t, &err), RFT_OK);
    assert_memory_equal(wide, t.data, sizeof wide);
    const int64_t norm = rft_model_find_tensor(model, "model.norm.weight");
    assert_int_equal(rft_model_describe_weight(model, norm, &d, &err), RFT_E_UNSUPPORTED);
    assert_non_null(strstr(err.message, "'model.norm.weight' is f32 of 1 dimensions"));
    assert_int_equal(rft_model_describe_weight(model, -1, &d, &err), RFT_E_ARG);
    assert_int_equal(rft_model_describe_weight(NULL, 0, &d, &err), RFT_E_ARG);
    assert_int_equal(rft_model_read_weight(model, 10000, &p, &err), RFT_E_ARG);
}

static void gptq_is_read_with_its_config(void **state) {
    (void)state;
    static const char config[] = "{\"bits\":4,\"group_size\":32,\"desc_act\":false,\"sym\":true}";
    write_gptq();
    write_text("config.json", "{" ST_TINY_SIZES "}");
    assert_refused(".", RFT_E_ARG, "tensor '" BLOCK1 "self_attn.q_proj.weight' is missing");
    write_text("quantize_config.json", config);
    for (int inside = 0; inside < 2; inside++) {
        rft_model *model = open_good(".");
        const rft_layer plain = layer_at(model, 0), quantised = layer_at(model, 1);
        assert_int_equal(rft_model_layer_count(model), 9);
        assert_string_equal(plain.scheme, "");
        assert_string_equal(quantised.scheme, "gptq 4-bit g32");
        assert_true(quantised.count == 1 && quantised.n == 64 && quantised.k == 64 && quantised.weight_bytes == 2048 + 64 + 256);
        float row[64];
        uint16_t half[64];
        assert_int_equal(rft_model_decode(model, quantised.tensor, 63, 1, RFT_F32, row, 0, NULL), RFT_OK);
        assert_int_equal(rft_model_decode(model, quantised.tensor, 63, 1, RFT_BF16, half, 0, NULL), RFT_OK);
        assert_true(row[0] == 0.5f && row[63] == 0.5f && half[0] == 0x3f00 && half[63] == 0x3f00);
        assert_low_bit_form(model, plain.tensor, quantised.tensor);
        rft_model_free(model);
        unlink(in_folder("quantize_config.json"));
        write_text("config.json",
                   "{" ST_TINY_SIZES ",\"quantization_config\":{\"quant_method\":\"gptq\",\"bits\":4,\"group_size\":32}}");
    }
    write_text("config.json", "{" ST_TINY_SIZES "}");
}

/* Four ranks cut 64 rows amid blocks of 32 under one scale, two do not. */
static void blocks_are_cut_whole(void **state) {
    (void)state;
    const rft_phase phase = {RFT_PHASE_DECODE, 1, 1};
    st_begin(&file);
    for (int block = 0; block < 2; block++) {
        for (int i = 1; i < ST_TINY_PARTS; i++) {
            char name[96];
            snprintf(name, sizeof name, "model.layers.%d.%s.weight", block, st_tiny_parts[i].name);
            st_add_f32(&file, name, st_tiny_parts[i].n, st_tiny_parts[i].k);
        }
    }
    st_tiny_ends(&file);
    st_add(&file, "model.layers.0.self_attn.q_proj.weight", "F8_E4M3", "[64,64]", 4096);
    st_add(&file, "model.layers.0.self_attn.q_proj.weight_scale_inv", "F32", "[2,2]", 16);
    st_add(&file, BLOCK1 "self_attn.q_proj.weight", "F8_E4M3", "[64,64]", 4096);
    st_add(&file, BLOCK1 "self_attn.q_proj.weight_scale_inv", "F32", "[2,2]", 16);
    write_tensors("model.safetensors");
    write_text("config.json", "{" ST_TINY_SIZES ",\"quantization_config\":{\"quant_method\":\"fp8\","
                              "\"weight_block_size\":[32,32]}}");
    rft_model *model = open_good(".");
    rft_shard shard = rft_shard_init();
    assert_int_equal(rft_model_get_shard(model, 0, &phase, &(rft_ranks){.tp = 2}, &shard, NULL), RFT_OK);
    assert_true(shard.divides && shard.n == 32 && shard.note[0] == 0 && shard.weight_bytes == (4096 + 16) / 2);
    assert_int_equal(rft_model_get_shard(model, 0, &phase, &(rft_ranks){.tp = 4}, &shard, NULL), RFT_OK);
    assert_true(!shard.divides && shard.n == 16);
    assert_string_equal(shard.note, "N = 16 is no multiple of blocks of 32");
    rft_model_free(model);
    write_text("config.json", "{" ST_TINY_SIZES "}");
}

/* Integers without scales are no weights. */
static void bare_codes_are_refused(void **state) {
    (void)state;
    st_begin(&file);
    st_tiny_block(&file, 0);
    for (int i = 1; i < ST_TINY_PARTS; i++) {
        char name[96];
        snprintf(name, sizeof name, BLOCK1 "%s.weight", st_tiny_parts[i].name);
        st_add_f32(&file, name, st_tiny_parts[i].n, st_tiny_parts[i].k);
    }
    st_tiny_ends(&file);
    st_add(&file, BLOCK1 "self_attn.q_proj.weight", "I8", "[64,64]", 4096);
    write_tensors("model.safetensors");
    assert_refused(".", RFT_E_UNSUPPORTED, "'" BLOCK1 "self_attn.q_proj.weight' is i8, and no known scheme of method ''");
    write_text("config.json", "{" ST_TINY_SIZES ",\"quantization_config\":{\"quant_method\":\"compressed-tensors\"}}");
    assert_refused(".", RFT_E_UNSUPPORTED, "is i8, and no known scheme of method 'compressed-tensors'");
    write_text("config.json", "{" ST_TINY_SIZES "}");
    write_whole_model("model.safetensors");
}

/* ---- refusals ---- */

static void config_is_needed(void **state) {
    (void)state;
    unlink(in_folder("config.json"));
    assert_refused("model.safetensors", RFT_E_IO, "a folder with config.json: cannot open");
    assert_refused(".", RFT_E_IO, "config.json");
    write_text("config.json", "{" ST_TINY_SIZES ",\"head_dim\":32}");
    assert_refused(".", RFT_E_ARG, "tensor 'model.layers.0.self_attn.q_proj.weight' has 2 dimensions, K = 64 and N = 64");
    write_text("config.json", "{" ST_TINY_SIZES "}");
    rft_model_free(open_good("."));
    unlink(in_folder("model.safetensors"));
    assert_refused(".", RFT_E_IO, "model.safetensors");
}

/* Matrices of what can be weights are listed, vectors, masks and what has more dimensions are not. */
static void unknown_architectures_are_listed(void **state) {
    (void)state;
    st_begin(&file);
    st_tiny_block(&file, 0);
    st_tiny_block(&file, 1);
    st_add(&file, "mixer.1.2.3x.w", "F8_E4M3", "[3,5]", 15);
    st_add(&file, "mixer.7.22.3x.w", "F8_E4M3", "[3,5]", 15);
    st_add(&file, "mask", "BOOL", "[4,4]", 16);
    st_add(&file, "positions", "I64", "[1,4]", 32);
    st_add(&file, "conv", "F32", "[2,2,2]", 32);
    st_add(&file, "none", "F32", "[0,8]", 0);
    st_end(&file);
    write_file("model.safetensors", file.bytes, file.size);
    write_text("config.json", "{\"model_type\":\"mam\\tba\"}");
    rft_model *model = open_good(".");
    rft_model_info info = rft_model_info_init();
    assert_int_equal(rft_model_get_info(model, &info, NULL), RFT_OK);
    assert_true(info.unknown == 1 && info.hidden == 0);
    assert_string_equal(info.architecture, "mam?ba");
    assert_int_equal(rft_model_layer_count(model), 8);
    assert_string_equal(layer_at(model, 0).name, "model.layers.*.self_attn.q_proj.weight");
    const rft_layer last = layer_at(model, 7);
    assert_string_equal(last.name, "mixer.*.*.3x.w");
    assert_true(last.unknown && last.count == 2 && last.n == 3 && last.k == 5 && last.m == 3 && last.weight_bytes == 15);
    rft_model_free(model);
    assert_refused("config.json", RFT_E_UNSUPPORTED, "config.json alone has no weights to list");
}

static void memory_is_refused_with_the_reason(void **state) {
    (void)state;
    rft_model *model;
    rft_error err = {0};
    st_raw(&file, "{}", 0);
    assert_int_equal(rft_model_open_memory(file.bytes, file.size, &model, &err), RFT_E_UNSUPPORTED);
    assert_non_null(strstr(err.message, "give the path"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(folder_and_file_are_read),
        cmocka_unit_test(values_are_the_files_own),
        cmocka_unit_test(misaligned_data_are_decoded),
        cmocka_unit_test(f16_is_copied_as_stored),
        cmocka_unit_test(index_joins_files),
        cmocka_unit_test(bad_indexes),
        cmocka_unit_test(gptq_is_read_with_its_config),
        cmocka_unit_test(blocks_are_cut_whole),
        cmocka_unit_test(bare_codes_are_refused),
        cmocka_unit_test(config_is_needed),
        cmocka_unit_test(memory_is_refused_with_the_reason),
        cmocka_unit_test(unknown_architectures_are_listed),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
