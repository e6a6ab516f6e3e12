/* SPDX-License-Identifier: Apache-2.0
 *
 * test_archs.c - small checkpoints of architectures whose tensors are joined, turned, stacked or many: their rows are those that
 * config.json alone yields.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "gguf_builder.h"
#include "rooftile_model.h"
#include "safetensors_builder.h"
#include "test_files.h"

#include <stdlib.h>
#include <string.h>

#define SIZES                                                                                                              \
    "\"hidden_size\":64,\"num_hidden_layers\":2,\"intermediate_size\":96,\"vocab_size\":128,\"num_attention_heads\":4,"    \
    "\"num_key_value_heads\":2,\"tie_word_embeddings\":false,\"num_experts_per_tok\":2,"

static st_builder file;

/* A tensor of a list: "blocks" that have it, and experts; sizes as they are stored. */
typedef struct part {
    const char *name; /* with %d for the block and, where `experts`, for the expert */
    int first, last;  /* blocks */
    int experts, stack, rows, columns;
} part;

static void add_tensor(const char *name, const part *p) {
    char shape[48];
    const size_t bytes = (size_t)(p->stack ? p->stack : 1) * (size_t)(p->rows ? p->rows : 1) * (size_t)p->columns * 2;
    if (p->stack) {
        snprintf(shape, sizeof shape, "[%d,%d,%d]", p->stack, p->rows, p->columns);
    } else {
        snprintf(shape, sizeof shape, p->rows ? "[%d,%d]" : "[%d]", p->rows ? p->rows : p->columns, p->columns);
    }
    st_add(&file, name, "BF16", shape, bytes);
}

static void add_part(const part *p) {
    char name[128], *star;
    for (int block = p->first; block <= p->last; block++) {
        for (int expert = 0; expert < (p->experts ? p->experts : 1); expert++) {
            snprintf(name, sizeof name, "%s", p->name);
            for (int i = 0; (star = strchr(name, '#')) != NULL; i++) {
                *star = (char)('0' + (i == 0 ? block : expert));
            }
            add_tensor(name, p);
        }
    }
}

static rft_model *open_path(const char *name) {
    rft_model *model = NULL;
    rft_error err = {0};
    if (rft_model_open(in_folder(name), &model, &err) != RFT_OK) {
        fail_msg("%s: %s", name, err.message);
    }
    return model;
}

static rft_layer row_of(const rft_model *model, int64_t row) {
    rft_layer layer = rft_layer_init();
    assert_int_equal(rft_model_get_layer(model, row, &(rft_phase){RFT_PHASE_PREFILL, 2, 3}, &layer, NULL), RFT_OK);
    return layer;
}

static void assert_same(const rft_model *tensors, const rft_model *sizes) {
    rft_model_info x = rft_model_info_init(), y = rft_model_info_init();
    assert_int_equal(rft_model_layer_count(tensors), rft_model_layer_count(sizes));
    for (int64_t i = 0; i < rft_model_layer_count(sizes); i++) {
        const rft_layer a = row_of(tensors, i), b = row_of(sizes, i);
        if (strcmp(a.name, b.name) != 0 || a.count != b.count || a.m != b.m || a.n != b.n || a.k != b.k || a.order != b.order ||
            a.weight_bytes != b.weight_bytes || a.runs != b.runs || strcmp(a.epilogue, b.epilogue) != 0) {
            fail_msg("%s: %lld of %lld x %lld, %s; %s: %lld of %lld x %lld, %s", a.name, (long long)a.count, (long long)a.n,
                     (long long)a.k, a.epilogue, b.name, (long long)b.count, (long long)b.n, (long long)b.k, b.epilogue);
        }
        assert_true(a.tensor >= 0);
    }
    assert_int_equal(rft_model_get_info(tensors, &x, NULL), RFT_OK);
    assert_int_equal(rft_model_get_info(sizes, &y, NULL), RFT_OK);
    if (x.parameters != y.parameters || x.active_parameters != y.active_parameters) {
        fail_msg("%s: %lld and %lld parameters", x.architecture, (long long)x.parameters, (long long)y.parameters);
    }
}

static void check(const char *config, const part *parts, size_t count) {
    st_begin(&file);
    for (size_t i = 0; i < count; i++) {
        add_part(&parts[i]);
    }
    st_end(&file);
    write_text("config.json", config);
    write_file("model.safetensors", file.bytes, file.size);
    rft_model *tensors = open_path("."), *sizes = open_path("config.json");
    assert_same(tensors, sizes);
    rft_model_free(tensors);
    rft_model_free(sizes);
}

#define CHECK(config, parts) check(config, parts, sizeof parts / sizeof parts[0])
#define BLOCK(name, rows, columns) {"model.layers.#." name, 0, 1, 0, 0, rows, columns}
#define ATTENTION                                                                                                          \
    BLOCK("self_attn.q_proj.weight", 64, 64), BLOCK("self_attn.k_proj.weight", 32, 64),                                    \
        BLOCK("self_attn.v_proj.weight", 32, 64), BLOCK("self_attn.o_proj.weight", 64, 64)
#define NORMS BLOCK("input_layernorm.weight", 0, 64), BLOCK("post_attention_layernorm.weight", 0, 64)
#define ENDS                                                                                                               \
    {"model.embed_tokens.weight", 0, 0, 0, 0, 128, 64}, {"model.norm.weight", 0, 0, 0, 0, 0, 64},                          \
        {"lm_head.weight", 0, 0, 0, 0, 128, 64}
#define EXPERT(name, first, rows, columns) {"model.layers.#." name, first, 1, 4, 0, rows, columns}

static void gpt2_is_turned(void **state) {
    (void)state;
    static const part parts[] = {
        {"h.#.attn.c_attn.weight", 0, 1, 0, 0, 64, 192},   {"h.#.attn.c_attn.bias", 0, 1, 0, 0, 0, 192},
        {"h.#.attn.c_proj.weight", 0, 1, 0, 0, 64, 64},    {"h.#.attn.c_proj.bias", 0, 1, 0, 0, 0, 64},
        {"h.#.mlp.c_fc.weight", 0, 1, 0, 0, 64, 256},      {"h.#.mlp.c_fc.bias", 0, 1, 0, 0, 0, 256},
        {"h.#.mlp.c_proj.weight", 0, 1, 0, 0, 256, 64},    {"h.#.mlp.c_proj.bias", 0, 1, 0, 0, 0, 64},
        {"h.#.ln_1.weight", 0, 1, 0, 0, 0, 64},            {"h.#.ln_1.bias", 0, 1, 0, 0, 0, 64},
        {"h.#.ln_2.weight", 0, 1, 0, 0, 0, 64},            {"h.#.ln_2.bias", 0, 1, 0, 0, 0, 64},
        {"ln_f.weight", 0, 0, 0, 0, 0, 64},                {"ln_f.bias", 0, 0, 0, 0, 0, 64},
        {"wte.weight", 0, 0, 0, 0, 101, 64},               {"wpe.weight", 0, 0, 0, 0, 32, 64},
    };
    CHECK("{\"model_type\":\"gpt2\",\"n_embd\":64,\"n_layer\":2,\"n_head\":4,\"n_inner\":null,\"vocab_size\":101,"
          "\"n_positions\":32,\"torch_dtype\":\"bfloat16\"}",
          parts);
}

static void phi3_is_joined(void **state) {
    (void)state;
    static const part parts[] = {BLOCK("self_attn.qkv_proj.weight", 128, 64), BLOCK("self_attn.o_proj.weight", 64, 64),
                                 BLOCK("mlp.gate_up_proj.weight", 192, 64),   BLOCK("mlp.down_proj.weight", 64, 96), NORMS, ENDS};
    CHECK("{\"model_type\":\"phi3\"," SIZES "\"torch_dtype\":\"bfloat16\"}", parts);
}

static void mixtral_has_a_tensor_an_expert(void **state) {
    (void)state;
    static const part parts[] = {ATTENTION, NORMS, ENDS, BLOCK("block_sparse_moe.gate.weight", 4, 64),
                                 EXPERT("block_sparse_moe.experts.#.w1.weight", 0, 96, 64),
                                 EXPERT("block_sparse_moe.experts.#.w3.weight", 0, 96, 64),
                                 EXPERT("block_sparse_moe.experts.#.w2.weight", 0, 64, 96)};
    CHECK("{\"model_type\":\"mixtral\"," SIZES "\"num_local_experts\":4,\"torch_dtype\":\"bfloat16\"}", parts);
}

static void gpt_oss_is_stacked(void **state) {
    (void)state;
    static const part parts[] = {ATTENTION, NORMS, ENDS,
                                 BLOCK("self_attn.q_proj.bias", 0, 64), BLOCK("self_attn.k_proj.bias", 0, 32),
                                 BLOCK("self_attn.v_proj.bias", 0, 32), BLOCK("self_attn.o_proj.bias", 0, 64),
                                 BLOCK("self_attn.sinks", 0, 4), BLOCK("mlp.router.weight", 4, 64),
                                 BLOCK("mlp.router.bias", 0, 4),
                                 {"model.layers.#.mlp.experts.gate_up_proj", 0, 1, 0, 4, 64, 192},
                                 BLOCK("mlp.experts.gate_up_proj_bias", 4, 192),
                                 {"model.layers.#.mlp.experts.down_proj", 0, 1, 0, 4, 96, 64},
                                 BLOCK("mlp.experts.down_proj_bias", 4, 64)};
    CHECK("{\"model_type\":\"gpt_oss\"," SIZES "\"num_local_experts\":4,\"attention_bias\":true,"
          "\"torch_dtype\":\"bfloat16\"}",
          parts);
}

static void deepseek_begins_dense(void **state) {
    (void)state;
    static const part parts[] = {BLOCK("self_attn.q_a_proj.weight", 24, 64), BLOCK("self_attn.q_a_layernorm.weight", 0, 24),
                                 BLOCK("self_attn.q_b_proj.weight", 96, 24), BLOCK("self_attn.kv_a_proj_with_mqa.weight", 40, 64),
                                 BLOCK("self_attn.kv_a_layernorm.weight", 0, 32), BLOCK("self_attn.kv_b_proj.weight", 128, 32),
                                 BLOCK("self_attn.o_proj.weight", 64, 64), NORMS, ENDS,
                                 {"model.layers.#.mlp.up_proj.weight", 0, 0, 0, 0, 96, 64},
                                 {"model.layers.#.mlp.gate_proj.weight", 0, 0, 0, 0, 96, 64},
                                 {"model.layers.#.mlp.down_proj.weight", 0, 0, 0, 0, 64, 96},
                                 {"model.layers.#.mlp.gate.weight", 1, 1, 0, 0, 4, 64},
                                 {"model.layers.#.mlp.gate.e_score_correction_bias", 1, 1, 0, 0, 0, 4},
                                 EXPERT("mlp.experts.#.up_proj.weight", 1, 48, 64),
                                 EXPERT("mlp.experts.#.gate_proj.weight", 1, 48, 64),
                                 EXPERT("mlp.experts.#.down_proj.weight", 1, 64, 48),
                                 {"model.layers.#.mlp.shared_experts.up_proj.weight", 1, 1, 0, 0, 96, 64},
                                 {"model.layers.#.mlp.shared_experts.gate_proj.weight", 1, 1, 0, 0, 96, 64},
                                 {"model.layers.#.mlp.shared_experts.down_proj.weight", 1, 1, 0, 0, 64, 96}};
    CHECK("{\"model_type\":\"deepseek_v3\"," SIZES "\"n_routed_experts\":4,\"n_shared_experts\":2,\"moe_intermediate_size\":48,"
          "\"first_k_dense_replace\":1,\"q_lora_rank\":24,\"kv_lora_rank\":32,\"qk_nope_head_dim\":16,\"qk_rope_head_dim\":8,"
          "\"v_head_dim\":16,\"torch_dtype\":\"bfloat16\"}",
          parts);
}

/* ---- encoder and decoder ---- */

#define WHISPER                                                                                                            \
    "{\"model_type\":\"whisper\",\"d_model\":64,\"encoder_layers\":3,\"encoder_attention_heads\":%d,\"encoder_ffn_dim\":96," \
    "\"decoder_layers\":2,\"decoder_attention_heads\":4,\"decoder_ffn_dim\":128,\"num_hidden_layers\":3,"                \
    "\"num_mel_bins\":8,\"max_source_positions\":30,\"max_target_positions\":20,\"vocab_size\":101,"                     \
    "\"activation_function\":\"gelu\",\"torch_dtype\":\"bfloat16\"}"
#define SIDE(name, last, rows, columns) {"model." name, 0, last, 0, 0, rows, columns}
#define HEARS(side, module, last)                                                                                          \
    SIDE(side ".layers.#." module ".q_proj.weight", last, 64, 64), SIDE(side ".layers.#." module ".q_proj.bias", last, 0, 64), \
        SIDE(side ".layers.#." module ".k_proj.weight", last, 64, 64),                                                     \
        SIDE(side ".layers.#." module ".v_proj.weight", last, 64, 64),                                                     \
        SIDE(side ".layers.#." module ".v_proj.bias", last, 0, 64),                                                        \
        SIDE(side ".layers.#." module ".out_proj.weight", last, 64, 64),                                                   \
        SIDE(side ".layers.#." module ".out_proj.bias", last, 0, 64),                                                      \
        SIDE(side ".layers.#." module "_layer_norm.weight", last, 0, 64),                                                  \
        SIDE(side ".layers.#." module "_layer_norm.bias", last, 0, 64)
#define WIDENS(side, last, ffn)                                                                                            \
    SIDE(side ".layers.#.fc1.weight", last, ffn, 64), SIDE(side ".layers.#.fc1.bias", last, 0, ffn),                       \
        SIDE(side ".layers.#.fc2.weight", last, 64, ffn), SIDE(side ".layers.#.fc2.bias", last, 0, 64),                    \
        SIDE(side ".layers.#.final_layer_norm.weight", last, 0, 64), SIDE(side ".layers.#.final_layer_norm.bias", last, 0, 64)

static rft_model *open_whisper(int heads) {
    char text[600];
    rft_model *model = NULL;
    snprintf(text, sizeof text, WHISPER, heads);
    write_text("config.json", text);
    return rft_model_open(in_folder("config.json"), &model, NULL) == RFT_OK ? model : NULL;
}

static void whisper_has_two_stacks(void **state) {
    (void)state;
    static const part parts[] = {
        {"model.encoder.conv1.weight", 0, 0, 0, 64, 8, 3},  SIDE("encoder.conv1.bias", 0, 0, 64),
        {"model.encoder.conv2.weight", 0, 0, 0, 64, 64, 3}, SIDE("encoder.conv2.bias", 0, 0, 64),
        SIDE("encoder.embed_positions.weight", 0, 30, 64),  HEARS("encoder", "self_attn", 2),
        WIDENS("encoder", 2, 96),                           SIDE("encoder.layer_norm.weight", 0, 0, 64),
        SIDE("encoder.layer_norm.bias", 0, 0, 64),          SIDE("decoder.embed_tokens.weight", 0, 101, 64),
        SIDE("decoder.embed_positions.weight", 0, 20, 64),  HEARS("decoder", "self_attn", 1),
        HEARS("decoder", "encoder_attn", 1),                WIDENS("decoder", 1, 128),
        SIDE("decoder.layer_norm.weight", 0, 0, 64),        SIDE("decoder.layer_norm.bias", 0, 0, 64)};
    char text[600];
    snprintf(text, sizeof text, WHISPER, 4);
    CHECK(text, parts);
    assert_null(open_whisper(2)); /* heads of two kinds */
}

static rft_part part_of(const rft_model *model, int64_t index, rft_phase_kind kind, int64_t tokens, int64_t context) {
    rft_part p = rft_part_init();
    assert_int_equal(rft_model_get_part(model, index, &(rft_phase){kind, 2, tokens}, context, &p, NULL), RFT_OK);
    return p;
}

/* Two texts of 30 positions of sound. */
static void whisper_hears_once(void **state) {
    (void)state;
    enum { UP = 4, CROSS_Q = 10, CROSS_K = 11 };
    rft_model *model = open_whisper(4);
    rft_layer later = rft_layer_init();
    rft_shard shard = rft_shard_init();
    const rft_phase decode = {RFT_PHASE_DECODE, 2, 1};
    const rft_layer up = row_of(model, UP), q = row_of(model, CROSS_Q), k = row_of(model, CROSS_K);
    assert_true(up.m == 60 && up.n == 96 && up.count == 3 && up.runs == 3 && strcmp(up.name, "enc_ffn_up") == 0);
    assert_true(q.m == 6 && k.m == 60 && k.count == 2 && strcmp(k.name, "cross_attn_k") == 0);
    assert_int_equal(rft_model_get_layer(model, CROSS_K, &decode, &later, NULL), RFT_OK);
    assert_true(later.runs == 0 && later.flops == 0 && later.count == 2 && later.m == 60);
    assert_int_equal(rft_model_get_shard(model, 3, &decode, &(rft_ranks){.tp = 2}, &shard, NULL), RFT_OK);
    assert_true(shard.k == 32 && shard.collective_bytes == 0); /* the encoder's: nothing to sum in this step */
    assert_int_equal(rft_model_get_layer(model, CROSS_Q, &decode, &later, NULL), RFT_OK);
    assert_true(later.runs == 2 && later.m == 2);
    /* Three tokens: the encoder's pairs, those of tokens among themselves, and of tokens with positions. */
    const double pairs = 3 * 2 * 30 * 30 + 2 * 2 * 6 + 2 * 2 * 3 * 30, value = 64 * 2;
    assert_true(part_of(model, 0, RFT_PHASE_PREFILL, 3, 0).flops == 2 * pairs * 64);
    assert_true(part_of(model, 2, RFT_PHASE_PREFILL, 3, 0).write_bytes == 2 * 2 * (3 + 30) * 2 * value);
    assert_true(part_of(model, 2, RFT_PHASE_DECODE, 1, 5).read_bytes == 2 * 2 * (5 + 30) * 2 * value);
    assert_true(part_of(model, 0, RFT_PHASE_DECODE, 1, 5).flops == 2 * (2 * 2 * 6 + 2 * 2 * 30) * 64.0);
    assert_true(part_of(model, 3, RFT_PHASE_DECODE, 1, 5).write_bytes == 2 * (2 * 3 + 1) * value);
    assert_true(part_of(model, 3, RFT_PHASE_PREFILL, 1, 0).write_bytes == (2 * (2 * 3 + 1) + 60 * (3 * 2 + 1)) * value);
    rft_model_free(model);
}

/* ---- GGUF ---- */

static builder gguf;

static void put_stack(const char *what, unsigned block, uint64_t k, uint64_t n, uint64_t e) {
    char name[64];
    snprintf(name, sizeof name, "blk.%u.%s.weight", block, what);
    put_string(&gguf, name);
    put(&gguf, 3, 4);
    put(&gguf, k, 8);
    put(&gguf, n, 8);
    put(&gguf, e, 8);
    put(&gguf, 30, 4);
    put(&gguf, gguf.data_bytes, 8);
    gguf.data_bytes += (k * n * e * 2 + 31) / 32 * 32;
}

static void gguf_experts_are_stacked(void **state) {
    (void)state;
    rft_model *model = NULL;
    rft_error err = {0};
    begin_file(&gguf, 1 + 2 * 8, 8);
    put_string_key(&gguf, "general.architecture", "llama");
    put_tiny_size(&gguf, "llama", "block_count", 2);
    put_tiny_size(&gguf, "llama", "embedding_length", 64);
    put_tiny_size(&gguf, "llama", "feed_forward_length", 96);
    put_tiny_size(&gguf, "llama", "attention.head_count", 4);
    put_tiny_size(&gguf, "llama", "attention.head_count_kv", 2);
    put_tiny_size(&gguf, "llama", "expert_count", 4);
    put_tiny_size(&gguf, "llama", "expert_used_count", 2);
    put_tensor(&gguf, "token_embd.weight", 30, 64, 128, 64 * 128 * 2);
    for (unsigned block = 0; block < 2; block++) {
        put_tiny_matrix(&gguf, block, "attn_q", 30, 64, 64);
        put_tiny_matrix(&gguf, block, "attn_k", 30, 64, 32);
        put_tiny_matrix(&gguf, block, "attn_v", 30, 64, 32);
        put_tiny_matrix(&gguf, block, "attn_output", 30, 64, 64);
        put_tiny_matrix(&gguf, block, "ffn_gate_inp", 30, 64, 4);
        put_stack("ffn_up_exps", block, 64, 96, 4);
        put_stack("ffn_gate_exps", block, 64, 96, 4);
        put_stack("ffn_down_exps", block, 96, 64, 4);
    }
    end_file(&gguf);
    if (rft_model_open_memory(gguf.bytes, gguf.size, &model, &err) != RFT_OK) {
        fail_msg("%s", err.message);
    }
    const rft_layer down = row_of(model, 7);
    assert_string_equal(down.name, "expert_down");
    assert_true(down.count == 8 && down.n == 64 && down.k == 96 && down.weight_bytes == 64 * 96 * 2 && down.experts_used == 2);
    assert_int_equal(rft_model_layer_count(model), 9);
    rft_shard shard = rft_shard_init();
    const rft_phase one = {RFT_PHASE_DECODE, 1, 1};
    assert_int_equal(rft_model_get_shard(model, 7, &one, &(rft_ranks){.tp = 1, .ep = 2}, &shard, NULL), RFT_OK);
    assert_true(shard.divides && shard.count == 4 && shard.runs == 2 && shard.runs_max == 4 && shard.weight_bytes == 64 * 96 * 2);
    rft_model_free(model);
}

static rft_model *open_gguf(void) {
    rft_model *model = NULL;
    rft_error err = {0};
    end_file(&gguf);
    if (rft_model_open_memory(gguf.bytes, gguf.size, &model, &err) != RFT_OK) {
        fail_msg("%s", err.message);
    }
    return model;
}

static void begin_gguf(const char *arch, int tensors, int keys) {
    begin_file(&gguf, tensors, keys + 5);
    put_string_key(&gguf, "general.architecture", arch);
    put_tiny_size(&gguf, arch, "block_count", 1);
    put_tiny_size(&gguf, arch, "embedding_length", 64);
    put_tiny_size(&gguf, arch, "feed_forward_length", 96);
    put_tiny_size(&gguf, arch, "attention.head_count", 4);
}

static void put_bias(const char *name, uint64_t k, uint64_t n) { put_tensor(&gguf, name, 0, k, n, k * (n ? n : 1) * 4); }

static void assert_gguf_row(const rft_model *model, int64_t row, const char *name, int64_t count, int64_t n, int64_t k,
                            const char *epilogue) {
    const rft_layer l = row_of(model, row);
    if (strcmp(l.name, name) != 0 || l.count != count || l.n != n || l.k != k || strcmp(l.epilogue, epilogue) != 0 ||
        l.weight_bytes != (uint64_t)(n * k * 2) || l.order != RFT_K_CONTIGUOUS) {
        fail_msg("%s: %lld of %lld x %lld, %s", l.name, (long long)l.count, (long long)l.n, (long long)l.k, l.epilogue);
    }
}

/* gate and up lie apart there, and each row has a bias. */
static void gguf_gpt_oss_is_apart(void **state) {
    (void)state;
    begin_gguf("gpt-oss", 15, 5);
    put_tiny_size(&gguf, "gpt-oss", "attention.head_count_kv", 2);
    put_tiny_size(&gguf, "gpt-oss", "expert_count", 4);
    put_tiny_size(&gguf, "gpt-oss", "expert_used_count", 2);
    put_tiny_size(&gguf, "gpt-oss", "expert_feed_forward_length", 48);
    put_tiny_size(&gguf, "gpt-oss", "attention.sliding_window", 16);
    put_tensor(&gguf, "token_embd.weight", 30, 64, 128, 64 * 128 * 2);
    put_tensor(&gguf, "output.weight", 30, 64, 128, 64 * 128 * 2);
    put_tiny_matrix(&gguf, 0, "attn_q", 30, 64, 64), put_bias("blk.0.attn_q.bias", 64, 0);
    put_tiny_matrix(&gguf, 0, "attn_k", 30, 64, 32);
    put_tiny_matrix(&gguf, 0, "attn_v", 30, 64, 32);
    put_tiny_matrix(&gguf, 0, "attn_output", 30, 64, 64);
    put_bias("blk.0.attn_sinks.weight", 4, 0);
    put_tiny_matrix(&gguf, 0, "ffn_gate_inp", 30, 64, 4), put_bias("blk.0.ffn_gate_inp.bias", 4, 0);
    put_stack("ffn_gate_exps", 0, 64, 48, 4), put_bias("blk.0.ffn_gate_exps.bias", 48, 4);
    put_stack("ffn_up_exps", 0, 64, 48, 4), put_bias("blk.0.ffn_up_exps.bias", 48, 4);
    put_stack("ffn_down_exps", 0, 48, 64, 4);
    rft_model *model = open_gguf();
    rft_model_info info = rft_model_info_init();
    assert_int_equal(rft_model_layer_count(model), 9);
    assert_gguf_row(model, 0, "attn_q", 1, 64, 64, "bias");
    assert_gguf_row(model, 4, "router", 1, 4, 64, "bias");
    assert_gguf_row(model, 5, "expert_up", 4, 48, 64, "bias");
    assert_gguf_row(model, 6, "expert_gate", 4, 48, 64, "bias");
    assert_gguf_row(model, 7, "expert_down", 4, 64, 48, "none");
    assert_int_equal(rft_model_get_info(model, &info, NULL), RFT_OK);
    assert_string_equal(info.architecture, "gpt_oss");
    assert_true(info.window == 16 && info.windowed_layers == 1 && info.experts_used == 2);
    rft_model_free(model);
}

/* kv_b: the joined projection of older files; k_b and v_b: one W a head. Files may have all three. */
static rft_model *open_deepseek(bool joined, bool apart) {
    const int extra = (joined ? 1 : 0) + (apart ? 2 : 0);
    begin_gguf("deepseek2", 9 + extra, apart ? 9 : 7);
    put_tiny_size(&gguf, "deepseek2", "expert_count", 4);
    put_tiny_size(&gguf, "deepseek2", "expert_used_count", 2);
    put_tiny_size(&gguf, "deepseek2", "expert_feed_forward_length", 48);
    put_tiny_size(&gguf, "deepseek2", "attention.kv_lora_rank", 32);
    put_tiny_size(&gguf, "deepseek2", "rope.dimension_count", 8);
    put_tiny_size(&gguf, "deepseek2", "attention.key_length", apart ? 32 + 8 : 16 + 8);
    put_tiny_size(&gguf, "deepseek2", "attention.value_length", apart ? 32 : 12);
    if (apart) {
        put_tiny_size(&gguf, "deepseek2", "attention.key_length_mla", 16 + 8);
        put_tiny_size(&gguf, "deepseek2", "attention.value_length_mla", 12);
    }
    put_tensor(&gguf, "token_embd.weight", 30, 64, 128, 64 * 128 * 2);
    put_tiny_matrix(&gguf, 0, "attn_q", 30, 64, 96);
    put_tiny_matrix(&gguf, 0, "attn_kv_a_mqa", 30, 64, 40);
    if (joined) {
        put_tiny_matrix(&gguf, 0, "attn_kv_b", 30, 32, 4 * (16 + 12));
    }
    if (apart) {
        put_stack("attn_k_b", 0, 16, 32, 4);
        put_stack("attn_v_b", 0, 32, 12, 4);
    }
    put_tiny_matrix(&gguf, 0, "attn_output", 30, 48, 64);
    put_tiny_matrix(&gguf, 0, "ffn_gate_inp", 30, 64, 4);
    put_bias("blk.0.exp_probs_b.bias", 4, 0);
    put_stack("ffn_up_exps", 0, 64, 48, 4);
    put_stack("ffn_gate_exps", 0, 64, 48, 4);
    put_stack("ffn_down_exps", 0, 48, 64, 4);
    return open_gguf();
}

static void gguf_deepseek_has_forms(void **state) {
    (void)state;
    rft_model *model = open_deepseek(true, false);
    assert_int_equal(rft_model_layer_count(model), 9);
    assert_gguf_row(model, 2, "attn_kv_b", 1, 4 * (16 + 12), 32, "none");
    rft_model_free(model);
    for (int joined = 0; joined < 2; joined++) {
        rft_shard shard = rft_shard_init();
        const rft_phase phase = {RFT_PHASE_DECODE, 1, 1};
        model = open_deepseek(joined, true);
        assert_int_equal(rft_model_layer_count(model), 10);
        assert_gguf_row(model, 2, "attn_k_b", 4, 32, 16, "none");
        assert_gguf_row(model, 3, "attn_v_b", 4, 12, 32, "none");
        assert_gguf_row(model, 4, "attn_output", 1, 64, 48, "add");
        assert_int_equal(rft_model_get_shard(model, 2, &phase, &(rft_ranks){.tp = 2}, &shard, NULL), RFT_OK);
        assert_true(shard.divides && shard.n == 32 && shard.k == 16 && shard.weight_bytes == 32 * 16 * 2 && shard.count == 2);
        assert_string_equal(shard.split, "heads");
        rft_model_free(model);
    }
}

/* The vocabulary is what the embedding has rows: more of a byte each than a model may have. */
static void tensors_stand_for_sizes(void **state) {
    (void)state;
    enum { ROWS = (1 << 22) + 1 };
    begin_file(&gguf, 2, 4);
    put_string_key(&gguf, "general.architecture", "llama");
    put_tiny_size(&gguf, "llama", "block_count", 1);
    put_tiny_size(&gguf, "llama", "embedding_length", 64);
    put_tiny_size(&gguf, "llama", "attention.head_count", 4);
    put_tensor(&gguf, "blk.0.ffn_up.weight", 24, 1, 32, 32);
    put_tensor(&gguf, "token_embd.weight", 24, 1, ROWS, ROWS);
    const size_t header = (gguf.size + 31) / 32 * 32;
    unsigned char *bytes = calloc(1, header + gguf.data_bytes);
    assert_non_null(bytes);
    memcpy(bytes, gguf.bytes, gguf.size);
    rft_model *model = NULL;
    rft_error err = {0};
    assert_int_equal(rft_model_open_memory(bytes, header + gguf.data_bytes, &model, &err), RFT_E_ARG);
    free(bytes);
    if (!strstr(err.message, "'token_embd.weight': vocabulary = 4194305 is not in 1..4194304")) {
        fail_msg("%s", err.message);
    }
}

/* Experts are a stack, a convolution is none. */
static void unknown_stacks_are_listed(void **state) {
    (void)state;
    begin_gguf("gemma9", 2, 0);
    put_stack("experts", 0, 32, 48, 4);
    put_stack("conv", 0, 3, 64, 64);
    rft_model *model = open_gguf();
    assert_int_equal(rft_model_layer_count(model), 1);
    assert_gguf_row(model, 0, "blk.*.experts.weight", 4, 48, 32, "none");
    assert_true(row_of(model, 0).unknown && row_of(model, 0).experts == 0);
    rft_model_free(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gpt2_is_turned),        cmocka_unit_test(phi3_is_joined),
        cmocka_unit_test(mixtral_has_a_tensor_an_expert), cmocka_unit_test(gpt_oss_is_stacked),
        cmocka_unit_test(deepseek_begins_dense), cmocka_unit_test(whisper_has_two_stacks),
        cmocka_unit_test(whisper_hears_once),    cmocka_unit_test(gguf_experts_are_stacked),
        cmocka_unit_test(gguf_gpt_oss_is_apart), cmocka_unit_test(gguf_deepseek_has_forms),
        cmocka_unit_test(unknown_stacks_are_listed), cmocka_unit_test(tensors_stand_for_sizes),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
