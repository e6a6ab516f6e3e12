/* SPDX-License-Identifier: Apache-2.0
 *
 * test_model_layers.c - phases, the layer list and its costs from a small GGUF file, and decoding of its tensors.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "gguf_builder.h"
#include "rooftile_model.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

static builder file;

static rft_model *open_tiny(const tiny_options *options) {
    rft_model *model = NULL;
    rft_error err = {0};
    tiny_model(&file, options);
    if (rft_model_open_memory(file.bytes, file.size, &model, &err) != RFT_OK) {
        fail_msg("%s", err.message);
    }
    return model;
}

static void assert_refused(rft_status want, const char *part) {
    rft_model *model = NULL;
    rft_error err = {0};
    const rft_status got = rft_model_open_memory(file.bytes, file.size, &model, &err);
    if (got != want || err.status != want || !strstr(err.message, part) || model) {
        fail_msg("status %d, message '%s'; expected status %d and '%s'", got, err.message, want, part);
    }
}

/* Overwrites the first occurrence of a text of the same length. */
static void replace(const char *from, const char *to) {
    const size_t n = strlen(from);
    for (size_t at = 0; at + n <= file.size; at++) {
        if (memcmp(file.bytes + at, from, n) == 0) {
            memcpy(file.bytes + at, to, n);
            return;
        }
    }
    fail_msg("'%s' is not in the file", from);
}

/* Overwrites the u32 value of a key. */
static void set_key(const char *name, uint32_t value) {
    const size_t n = strlen(name);
    for (size_t at = 0; at + n + 8 <= file.size; at++) {
        if (memcmp(file.bytes + at, name, n) == 0) {
            memcpy(file.bytes + at + n + 4, &value, sizeof value);
            return;
        }
    }
    fail_msg("key '%s' is not in the file", name);
}

static rft_layer layer_at(const rft_model *model, int64_t row, const char *phase_text) {
    rft_phase phase;
    rft_layer layer = rft_layer_init();
    assert_int_equal(rft_phase_parse(phase_text, &phase, NULL), RFT_OK);
    assert_int_equal(rft_model_get_layer(model, row, &phase, &layer, NULL), RFT_OK);
    return layer;
}

static void assert_row(const rft_model *model, int64_t row, const char *name, int64_t count, int64_t n, int64_t k,
                       const char *epilogue) {
    const rft_layer layer = layer_at(model, row, "decode:3");
    assert_string_equal(layer.name, name);
    assert_string_equal(layer.epilogue, epilogue);
    assert_true(layer.count == count && layer.m == 3 && layer.n == n && layer.k == k);
}

/* ---- phases ---- */

static void phases_are_parsed(void **state) {
    (void)state;
    rft_phase p;
    assert_int_equal(rft_phase_parse("decode:7", &p, NULL), RFT_OK);
    assert_true(p.kind == RFT_PHASE_DECODE && p.batch == 7 && p.tokens == 1);
    assert_int_equal(rft_phase_parse("prefill:2x512", &p, NULL), RFT_OK);
    assert_true(p.kind == RFT_PHASE_PREFILL && p.batch == 2 && p.tokens == 512);
    assert_int_equal(rft_phase_parse("verify:3x5", &p, NULL), RFT_OK);
    assert_true(p.kind == RFT_PHASE_VERIFY && p.batch == 3 && p.tokens == 5);
    assert_int_equal(rft_phase_parse("offline:4x6", &p, NULL), RFT_OK);
    assert_true(p.kind == RFT_PHASE_OFFLINE && p.batch == 4 && p.tokens == 6);
    assert_int_equal(rft_phase_parse("prefill:1x1073741824", &p, NULL), RFT_OK);
}

static void bad_phases_are_refused(void **state) {
    (void)state;
    static const char *const bad[] = {
        "",
        "decode",
        "decode:",
        "decode:0",
        "decode:-1",
        "decode:1 ",
        " decode:1",
        "decode:1x2",
        "decode:1.5",
        "decode:+1",
        "decode:99999999999999999999",
        "prefill:1",
        "prefill:x",
        "prefill:1x",
        "prefill:x1",
        "prefill:0x1",
        "prefill:1x0",
        "prefill:1X2",
        "prefill:1x2x3",
        "prefill:32768x65536",
        "prefill:1073741825x1",
        "train:1",
        "offline:3",
        "offline:1x",
        "offline:32768x65536",
        "Decode:1",
    };
    rft_phase p;
    rft_error err;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        err = (rft_error){0};
        if (rft_phase_parse(bad[i], &p, &err) != RFT_E_ARG || !*err.message) {
            fail_msg("'%s' was accepted", bad[i]);
        }
    }
    assert_int_equal(rft_phase_parse("train:1", &p, &err), RFT_E_ARG);
    assert_non_null(strstr(err.message, "'train:1' is none of decode:B, prefill:BxT, verify:BxK, offline:BxT and train:BxT"));
    assert_int_equal(rft_phase_parse(NULL, &p, &err), RFT_E_ARG);
    assert_int_equal(rft_phase_parse("decode:1", NULL, &err), RFT_E_ARG);
}

/* ---- layers ---- */

static void tied_model_has_eight_rows(void **state) {
    (void)state;
    rft_model *model = open_tiny(&(tiny_options){0});
    assert_int_equal(rft_model_layer_count(model), 8);
    assert_row(model, 0, "attn_q", 2, 64, 64, "none");
    assert_row(model, 1, "attn_k", 2, 32, 64, "none");
    assert_row(model, 2, "attn_v", 2, 32, 64, "none");
    assert_row(model, 3, "attn_output", 2, 64, 64, "add");
    assert_row(model, 4, "ffn_up", 2, 96, 64, "none");
    assert_row(model, 5, "ffn_gate", 2, 96, 64, "silu,mul");
    assert_row(model, 6, "ffn_down", 2, 64, 96, "add");
    assert_row(model, 7, "lm_head", 1, 128, 64, "none");
    const rft_layer gate = layer_at(model, 5, "decode:1"), head = layer_at(model, 7, "decode:1");
    assert_true(gate.n_epi == 2 && gate.epi[0] == RFT_EPI_SILU && gate.epi[1] == RFT_EPI_MUL);
    assert_true(gate.weight_bytes == 64 * 96 * 4 && gate.type == RFT_F32 && gate.bias_tensor == -1);
    assert_int_equal(head.tensor, rft_model_find_tensor(model, "token_embd.weight"));
    assert_int_equal(gate.tensor, rft_model_find_tensor(model, "blk.0.ffn_gate.weight"));
    rft_model_free(model);
}

static void prefill_counts_rows(void **state) {
    (void)state;
    rft_model *model = open_tiny(&(tiny_options){0});
    assert_int_equal(layer_at(model, 0, "prefill:3x10").m, 30);
    assert_int_equal(layer_at(model, 7, "prefill:3x10").m, 3); /* logits of the last token of each sequence */
    assert_int_equal(layer_at(model, 7, "verify:3x10").m, 30); /* of all tokens */
    assert_int_equal(layer_at(model, 7, "offline:3x10").m, 30);
    assert_int_equal(layer_at(model, 0, "offline:3x10").m, 30);
    rft_model_free(model);
}

static void differing_blocks_are_separate_rows(void **state) {
    (void)state;
    rft_model *model = open_tiny(&(tiny_options){.second_type = 30, .untied = true});
    assert_int_equal(rft_model_layer_count(model), 9);
    assert_row(model, 6, "ffn_down", 1, 64, 96, "add");
    assert_row(model, 7, "ffn_down", 1, 64, 96, "add");
    assert_int_equal(layer_at(model, 6, "decode:1").type, RFT_F32);
    assert_int_equal(layer_at(model, 7, "decode:1").type, RFT_BF16);
    assert_int_equal(layer_at(model, 7, "decode:1").weight_bytes, 64 * 96 * 2);
    assert_int_equal(layer_at(model, 7, "decode:1").tensor, rft_model_find_tensor(model, "blk.1.ffn_down.weight"));
    assert_int_equal(layer_at(model, 8, "decode:1").tensor, rft_model_find_tensor(model, "output.weight"));
    rft_model_free(model);
    model = open_tiny(&(tiny_options){.second_ffn = 160});
    assert_int_equal(rft_model_layer_count(model), 11);
    assert_row(model, 4, "ffn_up", 1, 96, 64, "none");
    assert_row(model, 5, "ffn_up", 1, 160, 64, "none");
    assert_row(model, 9, "ffn_down", 1, 64, 160, "add");
    rft_model_free(model);
}

static void biases_are_epilogues(void **state) {
    (void)state;
    rft_model *model = open_tiny(&(tiny_options){.arch = "qwen2", .biases = true});
    assert_row(model, 0, "attn_q", 2, 64, 64, "bias");
    assert_row(model, 1, "attn_k", 2, 32, 64, "none");
    assert_row(model, 3, "attn_output", 2, 64, 64, "bias,add");
    const rft_layer output = layer_at(model, 3, "decode:1");
    assert_true(output.n_epi == 2 && output.epi[0] == RFT_EPI_BIAS && output.epi[1] == RFT_EPI_ADD);
    assert_int_equal(output.bias_tensor, rft_model_find_tensor(model, "blk.0.attn_output.bias"));
    rft_model_free(model);
}

static void info_and_cost(void **state) {
    (void)state;
    rft_model *model = open_tiny(&(tiny_options){0});
    rft_model_info info = rft_model_info_init();
    assert_int_equal(rft_model_get_info(model, &info, NULL), RFT_OK);
    assert_string_equal(info.architecture, "llama");
    assert_string_equal(info.name, "tiny?model");
    assert_true(info.hidden == 64 && info.layers == 2 && info.heads == 4 && info.kv_heads == 2 && info.head_dim == 16 &&
                info.ffn == 96);
    assert_true(info.vocab == 128 && info.context == 256 && info.tied == 1 && info.n_tensors == 15 &&
                info.file_bytes == file.size);
    const int64_t blocks = 2 * (2 * 64 * 64 + 2 * 32 * 64 + 3 * 64 * 96), head = 128 * 64;
    assert_int_equal(info.parameters, blocks + head);
    rft_phase phase;
    rft_model_cost cost = rft_model_cost_init();
    assert_int_equal(rft_phase_parse("prefill:2x5", &phase, NULL), RFT_OK);
    assert_int_equal(rft_model_get_cost(model, &phase, &cost, NULL), RFT_OK);
    assert_true(cost.tokens == 10 && cost.linear_parameters == blocks + head &&
                cost.weight_bytes == 4 * (uint64_t)(blocks + head));
    assert_true(cost.flops == 2.0 * (10.0 * (double)blocks + 2.0 * (double)head) && cost.flops_per_token == cost.flops / 10);
    rft_model_free(model);
}

/* ---- beside the linear layers ---- */

static void assert_part(const rft_model *model, int64_t index, const char *phase_text, int64_t context, const rft_part *want) {
    rft_phase phase;
    rft_part got = rft_part_init();
    assert_int_equal(rft_phase_parse(phase_text, &phase, NULL), RFT_OK);
    assert_int_equal(rft_model_get_part(model, index, &phase, context, &got, NULL), RFT_OK);
    if (strcmp(got.name, want->name) != 0 || got.flops != want->flops || got.read_bytes != want->read_bytes ||
        got.write_bytes != want->write_bytes) {
        fail_msg("%s of %s: %.0f FLOP, %.0f read, %.0f written", got.name, phase_text, got.flops, got.read_bytes,
                 got.write_bytes);
    }
}

/* Two blocks, 4 heads of 16 for queries and 2 for keys; 15 tokens of 3 sequences see 10 positions before and each other. */
static void parts_of_a_step(void **state) {
    (void)state;
    rft_model *model = open_tiny(&(tiny_options){0});
    const rft_part want[] = {
        {0, "attn_scores", 2.0 * 3 * (5 * 10 + 15) * 64 * 2, 15 * (64 + 32) * 2 * 2, 0},
        {0, "attn_values", 2.0 * 3 * (5 * 10 + 15) * 64 * 2, 15 * 32 * 2 * 2, 15 * 64 * 2 * 2},
        {0, "kv_cache", 0, 3 * 10 * 64 * 2 * 2, 15 * 64 * 2 * 2},
        {0, "norms", 0, (15 + 1) * 5 * 64 * 2, 15 * 5 * 64 * 2},
        {0, "embedding", 0, 15 * 64 * 4, 15 * 64 * 2},
    };
    assert_int_equal(rft_model_part_count(model), 5);
    for (int64_t i = 0; i < 5; i++) {
        assert_part(model, i, "verify:3x5", 10, &want[i]);
    }
    assert_part(model, 0, "decode:7", 99, &(rft_part){0, "attn_scores", 2.0 * 7 * 100 * 64 * 2, 7 * 96 * 4, 0});
    assert_part(model, 2, "decode:7", 99, &(rft_part){0, "kv_cache", 0, 7 * 99 * 64 * 4, 7 * 64 * 4});
    assert_part(model, 2, "offline:3x5", 0, &(rft_part){0, "kv_cache", 0, 0, 0});
    rft_model_free(model);
}

static void bad_parts_are_refused(void **state) {
    (void)state;
    rft_model *model = open_tiny(&(tiny_options){0});
    const rft_phase decode = {RFT_PHASE_DECODE, 1, 1}, offline = {RFT_PHASE_OFFLINE, 1, 4};
    const rft_phase largest = {RFT_PHASE_PREFILL, 1, (int64_t)1 << 30};
    rft_part part = rft_part_init();
    rft_error err;
    assert_int_equal(rft_model_part_count(NULL), 0);
    assert_int_equal(rft_model_get_part(NULL, 0, &decode, 0, &part, &err), RFT_E_ARG);
    assert_int_equal(rft_model_get_part(model, 0, &decode, 0, NULL, &err), RFT_E_ARG);
    assert_int_equal(rft_model_get_part(model, 0, NULL, 0, &part, &err), RFT_E_ARG);
    assert_int_equal(rft_model_get_part(model, 5, &decode, 0, &part, &err), RFT_E_ARG);
    assert_non_null(strstr(err.message, "index = 5: the model has 5 parts"));
    assert_int_equal(rft_model_get_part(model, -1, &decode, 0, &part, &err), RFT_E_ARG);
    assert_int_equal(rft_model_get_part(model, 0, &decode, -1, &part, &err), RFT_E_ARG);
    assert_int_equal(rft_model_get_part(model, 0, &decode, ((int64_t)1 << 30) + 1, &part, &err), RFT_E_ARG);
    assert_non_null(strstr(err.message, "context = 1073741825 is not in 0..1073741824"));
    assert_int_equal(rft_model_get_part(model, 0, &offline, 1, &part, &err), RFT_E_ARG);
    assert_non_null(strstr(err.message, "phase offline has no cache"));
    assert_int_equal(rft_model_get_part(model, 0, &largest, (int64_t)1 << 30, &part, &err), RFT_OK);
    assert_true(part.flops > 2e20 && part.flops < 1e22);
    part.struct_size = 0;
    assert_int_equal(rft_model_get_part(model, 0, &decode, 0, &part, &err), RFT_E_ARG);
    rft_model_free(model);
}

/* ---- cut over ranks ---- */

typedef struct wanted_shard {
    const char *phase;
    int64_t ranks, row;
    const char *split;
    int64_t n, k;
    double weight_bytes;
    const char *collective;
    double bytes, sent;
    int divides;
    const char *note;
} wanted_shard;

static void assert_shard(const rft_model *model, const wanted_shard *w) {
    rft_phase phase;
    rft_shard s = rft_shard_init();
    assert_int_equal(rft_phase_parse(w->phase, &phase, NULL), RFT_OK);
    assert_int_equal(rft_model_get_shard(model, w->row, &phase, &(rft_ranks){.tp = w->ranks}, &s, NULL), RFT_OK);
    if (strcmp(s.split, w->split) != 0 || s.n != w->n || s.k != w->k || s.weight_bytes != w->weight_bytes ||
        strcmp(s.collective, w->collective) != 0 || s.collective_bytes != w->bytes || s.sent_bytes != w->sent ||
        s.divides != w->divides || strcmp(s.note, w->note) != 0) {
        fail_msg("row %lld of %lld ranks: '%s' %lld x %lld, %.0f bytes, '%s' %.0f, %.0f sent, %d '%s'", (long long)w->row,
                 (long long)w->ranks, s.split, (long long)s.n, (long long)s.k, s.weight_bytes, s.collective, s.collective_bytes,
                 s.sent_bytes, s.divides, s.note);
    }
}

static void rows_are_cut(void **state) {
    (void)state;
    static const wanted_shard want[] = {
        {"decode:3", 1, 3, "", 64, 64, 16384, "", 0, 0, 1, ""},
        {"decode:3", 2, 0, "N", 32, 64, 8192, "", 0, 0, 1, ""},
        {"decode:3", 4, 1, "N", 16, 64, 4096, "", 0, 0, 1, "2 kv heads: each on 2 ranks"},
        {"decode:3", 2, 3, "K", 64, 32, 8192, "all-reduce", 3 * 64 * 2 * 2, 3 * 64 * 2 * 2, 1, ""},
        {"prefill:3x5", 4, 6, "K", 64, 24, 6144, "all-reduce", 15 * 64 * 2 * 2, 15 * 64 * 2 * 2 * 1.5, 1, ""},
        {"prefill:3x5", 4, 7, "N", 32, 64, 8192, "all-gather", 3 * 128 * 2, 3 * 128 * 1.5, 1, ""},
        {"offline:3x5", 4, 7, "N", 32, 64, 8192, "all-gather", 15 * 128 * 2, 15 * 128 * 1.5, 1, ""},
        {"decode:1", 3, 0, "N", 32, 64, 8192, "", 0, 0, 0, "4 heads do not divide by 3"},
        {"decode:1", 3, 1, "N", 16, 64, 4096, "", 0, 0, 0, "2 kv heads do not divide by 3"},
        {"decode:1", 64, 4, "N", 2, 64, 512, "", 0, 0, 0, "96 hidden neurons do not divide by 64"},
    };
    rft_model *model = open_tiny(&(tiny_options){0});
    for (size_t i = 0; i < sizeof want / sizeof want[0]; i++) {
        assert_shard(model, &want[i]);
    }
    rft_shard shard = rft_shard_init();
    const rft_phase phase = {RFT_PHASE_DECODE, 1, 1};
    rft_error err;
    assert_int_equal(rft_model_get_shard(model, 0, &phase, &(rft_ranks){.tp = 0}, &shard, &err), RFT_E_ARG);
    assert_non_null(strstr(err.message, "ranks.tp = 0 is not in 1..1024"));
    assert_int_equal(rft_model_get_shard(model, 0, &phase, &(rft_ranks){.tp = INT64_MAX}, &shard, &err), RFT_E_ARG);
    assert_int_equal(rft_model_get_shard(model, 8, &phase, &(rft_ranks){.tp = 2}, &shard, &err), RFT_E_ARG);
    assert_int_equal(rft_model_get_shard(model, 0, NULL, &(rft_ranks){.tp = 2}, &shard, &err), RFT_E_ARG);
    assert_int_equal(rft_model_get_shard(NULL, 0, &phase, &(rft_ranks){.tp = 2}, &shard, &err), RFT_E_ARG);
    assert_int_equal(rft_model_get_shard(model, 0, &phase, &(rft_ranks){.tp = 2}, NULL, &err), RFT_E_ARG);
    rft_model_free(model);
}

/* ---- refused models ---- */

/* Blocks share rows unless they differ in type; the file's order is kept. */
static void assert_matrices(const rft_model *model) {
    static const struct {
        const char *name;
        int64_t count, n, k;
    } rows[] = {{"token_embd.weight", 1, 128, 64},        {"blk.*.attn_q.weight", 2, 64, 64},  {"blk.*.attn_k.weight", 2, 32, 64},
                {"blk.*.attn_v.weight", 2, 32, 64},       {"blk.*.attn_output.weight", 2, 64, 64},
                {"blk.*.ffn_gate.weight", 2, 96, 64},     {"blk.*.ffn_up.weight", 2, 96, 64},
                {"blk.*.ffn_down.weight", 1, 64, 96},
                {"blk.*.ffn_down.weight", 1, 64, 96}};
    assert_int_equal(rft_model_layer_count(model), sizeof rows / sizeof rows[0]);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const rft_layer layer = layer_at(model, (int64_t)i, "prefill:2x3");
        assert_row(model, (int64_t)i, rows[i].name, rows[i].count, rows[i].n, rows[i].k, "none");
        assert_true(layer.unknown && layer.m == 6 && layer.tensor >= 0 && layer.bias_tensor == -1);
        assert_true(layer.type == (i == 8 ? RFT_BF16 : RFT_F32));
        assert_true(layer.weight_bytes == (uint64_t)(layer.n * layer.k * (i == 8 ? 2 : 4)));
    }
}

static void unknown_models_are_listed(void **state) {
    (void)state;
    tiny_model(&file, &(tiny_options){.arch = "gemma9", .biases = true, .second_type = 30});
    rft_model *model = NULL;
    assert_int_equal(rft_model_open_memory(file.bytes, file.size, &model, NULL), RFT_OK);
    rft_model_info info = rft_model_info_init();
    assert_int_equal(rft_model_get_info(model, &info, NULL), RFT_OK);
    assert_string_equal(info.architecture, "gemma9");
    assert_true(info.unknown && info.layers == 0 && info.parameters > 0);
    assert_int_equal(rft_model_part_count(model), 0);
    rft_shard shard = rft_shard_init();
    assert_int_equal(rft_model_get_shard(model, 0, &(rft_phase){RFT_PHASE_DECODE, 1, 1}, &(rft_ranks){.tp = 2}, &shard, NULL),
                     RFT_E_UNSUPPORTED);
    assert_matrices(model);
    rft_quantize_options o = rft_quantize_options_init();
    rft_error err = {0};
    o.to = rft_quantize_type(0);
    assert_int_equal(rft_model_quantize(model, "/nonexistent/x.gguf", &o, &err), RFT_E_UNSUPPORTED);
    assert_non_null(strstr(err.message, "'gemma9' is not known, nor which of its matrices"));
    rft_model_free(model);
    tiny_model(&file, &(tiny_options){.arch = "qwen2", .experts = 8});
    assert_int_equal(rft_model_open_memory(file.bytes, file.size, &model, NULL), RFT_OK);
    assert_int_equal(rft_model_layer_count(model), 8);
    rft_model_free(model);
}

static void files_without_models_are_refused(void **state) {
    (void)state;
    begin_file(&file, 0, 1);
    put_string_key(&file, "general.architecture", "gemma9");
    end_file(&file);
    assert_refused(RFT_E_UNSUPPORTED, "no tensor is a matrix");
    begin_file(&file, 0, 0);
    assert_refused(RFT_E_ARG, "'general.architecture' is missing");
    memcpy(file.bytes, "PK\003\004", 4);
    assert_refused(RFT_E_UNSUPPORTED, "begin with 0x50 are neither GGUF nor a config.json");
}

static void inconsistent_sizes_are_refused(void **state) {
    (void)state;
    static const struct {
        const char *key;
        uint32_t value;
        const char *part;
    } rows[] = {
        {"llama.embedding_length", 32,
         "'blk.0.attn_q.weight' has 2 dimensions, K = 64 and N = 64; the model's sizes demand K = 32"},
        {"llama.embedding_length", 0, "'embedding_length': hidden size = 0 is not in 1..4194304"},
        {"llama.block_count", 3, "'blk.2.attn_q.weight' is missing"},
        {"llama.block_count", 4000, "block_count = 4000, but the file holds 15 tensors"},
        {"llama.block_count", 4294967295u, "'block_count': layers = 4294967295 is not in 1..4096"},
        {"llama.block_count", 0, "layers = 0"},
        {"llama.attention.head_count_kv", 3, "heads = 4 is not a multiple of kv heads = 3 ('attention.head_count_kv')"},
        {"llama.attention.head_count_kv", 4, "'blk.0.attn_k.weight'"},
        {"llama.attention.head_count", 6, "hidden size = 64 is not a multiple of heads = 6"},
        {"llama.attention.head_count", 0, "heads = 0 is not in"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        tiny_model(&file, &(tiny_options){0});
        set_key(rows[i].key, rows[i].value);
        assert_refused(RFT_E_ARG, rows[i].part);
    }
}

static void missing_tensors_are_refused(void **state) {
    (void)state;
    static const char *const names[] = {"token_embd", "blk.0.attn_q", "blk.1.ffn_down", "blk.0.ffn_up", "blk.1.attn_output"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char other[32];
        strcpy(other, names[i]);
        other[0] = 'x';
        tiny_model(&file, &(tiny_options){0});
        replace(names[i], other);
        assert_refused(RFT_E_ARG, "is missing");
    }
    tiny_model(&file, &(tiny_options){0});
    replace("llama.block_count", "llama.block_c0unt");
    assert_refused(RFT_E_ARG, "'llama.block_count' is missing");
}

/* ---- decode ---- */

static void tensors_are_decoded(void **state) {
    (void)state;
    rft_model *model = open_tiny(&(tiny_options){.second_type = 30});
    const int64_t index = rft_model_find_tensor(model, "blk.1.ffn_down.weight");
    rft_tensor t = rft_tensor_init();
    assert_int_equal(rft_model_get_tensor(model, index, &t, NULL), RFT_OK);
    assert_true(t.type == RFT_BF16 && t.dims[0] == 96 && t.dims[1] == 64 && t.dims[2] == 1 && t.n_dims == 2 &&
                t.bytes == 64 * 96 * 2);
    const uint16_t one_and_half = 0x3fc0;
    unsigned char *data = file.bytes + ((const unsigned char *)t.data - file.bytes);
    memcpy(data + 2 * (5 * 96 + 95), &one_and_half, 2); /* row 5, last column */
    float f32[2 * 100];
    uint16_t bf16[96];
    f32[96] = -1;
    assert_int_equal(rft_model_decode(model, index, 4, 2, RFT_F32, f32, 100, NULL), RFT_OK);
    assert_true(f32[0] == 0 && f32[96] == -1 && f32[100 + 95] == 1.5f && f32[100 + 94] == 0);
    assert_int_equal(rft_model_decode(model, index, 5, 1, RFT_BF16, bf16, 0, NULL), RFT_OK);
    assert_int_equal(bf16[95], one_and_half);
    rft_model_free(model);
}

static void bad_decodes_are_refused(void **state) {
    (void)state;
    rft_model *model = open_tiny(&(tiny_options){0});
    float dst[64];
    rft_error err;
    assert_int_equal(rft_model_decode(NULL, 0, 0, 1, RFT_F32, dst, 0, &err), RFT_E_ARG);
    assert_int_equal(rft_model_decode(model, 0, 0, 1, RFT_F32, NULL, 0, &err), RFT_E_ARG);
    assert_int_equal(rft_model_decode(model, 15, 0, 1, RFT_F32, dst, 0, &err), RFT_E_ARG);
    assert_non_null(strstr(err.message, "tensor = 15 is not in 0..14"));
    assert_int_equal(rft_model_decode(model, -1, 0, 1, RFT_F32, dst, 0, &err), RFT_E_ARG);
    assert_int_equal(rft_model_decode(model, 0, 0, 1, RFT_F16, dst, 0, &err), RFT_E_ARG);
    assert_int_equal(rft_model_decode(model, 0, 128, 1, RFT_F32, dst, 0, &err), RFT_E_ARG);
    assert_int_equal(rft_model_decode(model, 0, -1, 1, RFT_F32, dst, 0, &err), RFT_E_ARG);
    assert_int_equal(rft_model_decode(model, 0, 1, INT64_MAX, RFT_F32, dst, 0, &err), RFT_E_ARG);
    assert_int_equal(rft_model_decode(model, 0, 0, 1, RFT_F32, dst, 63, &err), RFT_E_ARG);
    assert_int_equal(rft_model_decode(model, 0, 0, 2, RFT_F32, dst, INT64_MAX, &err), RFT_E_ARG);
    assert_int_equal(rft_model_decode(model, 0, 128, 0, RFT_F32, dst, 0, &err), RFT_OK);
    rft_model_free(model);
}

/* ---- arguments and structs ---- */

static void bad_arguments_are_refused(void **state) {
    (void)state;
    rft_model *model = open_tiny(&(tiny_options){0}), *other;
    rft_error err;
    rft_layer layer = rft_layer_init();
    rft_phase phase = {RFT_PHASE_DECODE, 1, 1};
    assert_int_equal(rft_model_get_layer(model, 8, &phase, &layer, &err), RFT_E_ARG);
    assert_non_null(strstr(err.message, "row = 8 is not in 0..7"));
    assert_int_equal(rft_model_get_layer(model, -1, &phase, &layer, &err), RFT_E_ARG);
    assert_int_equal(rft_model_get_layer(model, 0, NULL, &layer, &err), RFT_E_ARG);
    assert_int_equal(rft_model_get_layer(model, 0, &phase, NULL, &err), RFT_E_ARG);
    phase.tokens = 2;
    assert_int_equal(rft_model_get_layer(model, 0, &phase, &layer, &err), RFT_E_ARG);
    phase = (rft_phase){(rft_phase_kind)9, 1, 1};
    assert_int_equal(rft_model_get_layer(model, 0, &phase, &layer, &err), RFT_E_ARG);
    phase = (rft_phase){RFT_PHASE_PREFILL, INT64_MAX, INT64_MAX};
    assert_int_equal(rft_model_get_layer(model, 0, &phase, &layer, &err), RFT_E_ARG);
    assert_int_equal(rft_model_open_memory(file.bytes + 1, 64, &other, &err), RFT_E_ARG);
    assert_int_equal(rft_model_open_memory(NULL, 64, &other, &err), RFT_E_ARG);
    assert_int_equal(rft_model_open(NULL, &other, &err), RFT_E_ARG);
    assert_int_equal(rft_model_find_tensor(model, "nothing"), -1);
    assert_int_equal(rft_model_layer_count(NULL), 0);
    rft_model_free(NULL);
    rft_model_free(model);
}

static void struct_size_bounds_the_answer(void **state) {
    (void)state;
    rft_model *model = open_tiny(&(tiny_options){0});
    rft_error err;
    rft_model_info info = {0};
    assert_int_equal(rft_model_get_info(model, &info, &err), RFT_E_ARG);
    assert_non_null(strstr(err.message, "info.struct_size = 0"));
    info = rft_model_info_init();
    info.struct_size = offsetof(rft_model_info, layers);
    info.layers = -5;
    assert_int_equal(rft_model_get_info(model, &info, &err), RFT_OK);
    assert_true(info.hidden == 64 && info.layers == -5 && info.struct_size == offsetof(rft_model_info, layers));
    rft_model_free(model);
}

/* ---- files ---- */

static void files_are_mapped(void **state) {
    (void)state;
    char path[] = "/tmp/rooftile_model_XXXXXX";
    rft_model *model = NULL;
    rft_error err;
    const int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(rft_model_open(path, &model, &err), RFT_E_IO);
    assert_non_null(strstr(err.message, "is empty"));
    tiny_model(&file, &(tiny_options){0});
    assert_int_equal(write(fd, file.bytes, file.size), (ssize_t)file.size);
    close(fd);
    assert_int_equal(rft_model_open(path, &model, &err), RFT_OK);
    assert_int_equal(rft_model_layer_count(model), 8);
    rft_model_free(model);
    unlink(path);
    assert_int_equal(rft_model_open(path, &model, &err), RFT_E_IO);
    assert_int_equal(err.native, ENOENT);
    assert_int_equal(rft_model_open("/tmp", &model, &err), RFT_E_IO);
    assert_non_null(strstr(err.message, "a folder"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(phases_are_parsed),
        cmocka_unit_test(bad_phases_are_refused),
        cmocka_unit_test(tied_model_has_eight_rows),
        cmocka_unit_test(prefill_counts_rows),
        cmocka_unit_test(differing_blocks_are_separate_rows),
        cmocka_unit_test(biases_are_epilogues),
        cmocka_unit_test(info_and_cost),
        cmocka_unit_test(parts_of_a_step),
        cmocka_unit_test(bad_parts_are_refused),
        cmocka_unit_test(rows_are_cut),
        cmocka_unit_test(unknown_models_are_listed),
        cmocka_unit_test(files_without_models_are_refused),
        cmocka_unit_test(inconsistent_sizes_are_refused),
        cmocka_unit_test(missing_tensors_are_refused),
        cmocka_unit_test(tensors_are_decoded),
        cmocka_unit_test(bad_decodes_are_refused),
        cmocka_unit_test(bad_arguments_are_refused),
        cmocka_unit_test(struct_size_bounds_the_answer),
        cmocka_unit_test(files_are_mapped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
