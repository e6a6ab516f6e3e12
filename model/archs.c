/* SPDX-License-Identifier: Apache-2.0
 *
 * archs.c - one row an architecture: which products its blocks are made of, what their tensors are called, what stands beside
 * them. Read through hparams.h; keys of config.json stand in config_keys.def.
 */
#include "hparams.h"

#include "base/error.h"

#include <stdio.h>
#include <string.h>

#define HID RFT_EXT_HIDDEN
#define GROUP(name) {name, sizeof name / sizeof name[0]}

/* ---- attention ---- */

#define ATTENTION(output_tail) \
    {.name = "attn_q", .hf = "self_attn.q_proj", .gguf = "attn_q", .n = RFT_EXT_Q, .k = HID, .bias = RFT_BIAS_QKV}, \
        {.name = "attn_k", .hf = "self_attn.k_proj", .gguf = "attn_k", .n = RFT_EXT_KV, .k = HID, .bias = RFT_BIAS_QKV}, \
        {.name = "attn_v", .hf = "self_attn.v_proj", .gguf = "attn_v", .n = RFT_EXT_KV, .k = HID, .bias = RFT_BIAS_QKV}, \
    { \
        .name = "attn_output", .hf = "self_attn.o_proj", .gguf = "attn_output", .n = HID, .k = RFT_EXT_Q, .tail = output_tail, \
        .bias = RFT_BIAS_OUTPUT \
    }

static const rft__product attention[] = {ATTENTION(RFT_TAIL_ADD)};
static const rft__product attention_normed[] = {ATTENTION(RFT_TAIL_NONE)}; /* a norm stands between it and the residual */

static const rft__product attention_joined[] = {
    {.name = "attn_qkv", .hf = "self_attn.qkv_proj", .gguf = "attn_qkv", .parts = "q+k+v", .n = RFT_EXT_QKV, .k = HID},
    {.name = "attn_output", .hf = "self_attn.o_proj", .gguf = "attn_output", .n = HID, .k = RFT_EXT_Q, .tail = RFT_TAIL_ADD},
};

static const rft__product attention_gpt2[] = {
    {.name = "attn_qkv", .hf = "attn.c_attn", .gguf = "attn_qkv", .parts = "q+k+v", .n = RFT_EXT_QKV, .k = HID,
     .bias = RFT_BIAS_ALWAYS, .in_out = true},
    {.name = "attn_output", .hf = "attn.c_proj", .gguf = "attn_output", .n = HID, .k = RFT_EXT_Q, .tail = RFT_TAIL_ADD,
     .bias = RFT_BIAS_ALWAYS, .in_out = true},
};

static const rft__product attention_bert[] = {
    {.name = "attn_q", .hf = "attention.self.query", .gguf = "attn_q", .n = RFT_EXT_Q, .k = HID, .bias = RFT_BIAS_ALWAYS},
    {.name = "attn_k", .hf = "attention.self.key", .gguf = "attn_k", .n = RFT_EXT_KV, .k = HID, .bias = RFT_BIAS_ALWAYS},
    {.name = "attn_v", .hf = "attention.self.value", .gguf = "attn_v", .n = RFT_EXT_KV, .k = HID, .bias = RFT_BIAS_ALWAYS},
    {.name = "attn_output", .hf = "attention.output.dense", .gguf = "attn_output", .n = HID, .k = RFT_EXT_Q,
     .tail = RFT_TAIL_ADD, .bias = RFT_BIAS_ALWAYS},
};

static const rft__product attention_latent[] = {
    {.name = "attn_q", .hf = "self_attn.q_proj", .gguf = "attn_q", .n = RFT_EXT_Q_DIRECT, .k = HID},
    {.name = "attn_q_a", .hf = "self_attn.q_a_proj", .gguf = "attn_q_a", .n = RFT_EXT_Q_RANK, .k = HID},
    {.name = "attn_q_b", .hf = "self_attn.q_b_proj", .gguf = "attn_q_b", .n = RFT_EXT_Q_LATENT, .k = RFT_EXT_Q_RANK},
    {.name = "attn_kv_a", .hf = "self_attn.kv_a_proj_with_mqa", .gguf = "attn_kv_a_mqa", .parts = "kv+rope",
     .n = RFT_EXT_KV_LATENT, .k = HID},
    {.name = "attn_kv_b", .hf = "self_attn.kv_b_proj", .gguf = "attn_kv_b", .parts = "k+v", .n = RFT_EXT_KV_HEADS,
     .k = RFT_EXT_KV_RANK, .unless = "attn_k_b"},
    /* The same apart, as the absorbed form multiplies by it: queries of each head to latent ones, latent results to values. */
    {.name = "attn_k_b", .gguf = "attn_k_b", .n = RFT_EXT_KV_RANK, .k = RFT_EXT_NOPE, .heads = true, .optional = true},
    {.name = "attn_v_b", .gguf = "attn_v_b", .n = RFT_EXT_V_HEAD, .k = RFT_EXT_KV_RANK, .heads = true, .optional = true},
    {.name = "attn_output", .hf = "self_attn.o_proj", .gguf = "attn_output", .n = HID, .k = RFT_EXT_V, .tail = RFT_TAIL_ADD},
};

/* ---- feed-forward ---- */

/* ffn_gate comes after ffn_up because its epilogue needs it. */
#define GATED(down_tail) \
    {.name = "ffn_up", .hf = "mlp.up_proj", .gguf = "ffn_up", .n = RFT_EXT_FFN, .k = HID, .bias = RFT_BIAS_MLP, \
     .where = RFT_IN_DENSE}, \
        {.name = "ffn_gate", .hf = "mlp.gate_proj", .gguf = "ffn_gate", .n = RFT_EXT_FFN, .k = HID, .tail = RFT_TAIL_ACT_MUL, \
         .bias = RFT_BIAS_MLP, .where = RFT_IN_DENSE}, \
    { \
        .name = "ffn_down", .hf = "mlp.down_proj", .gguf = "ffn_down", .n = HID, .k = RFT_EXT_FFN, .tail = down_tail, \
        .bias = RFT_BIAS_MLP, .where = RFT_IN_DENSE \
    }

static const rft__product gated[] = {GATED(RFT_TAIL_ADD)};
static const rft__product gated_normed[] = {GATED(RFT_TAIL_NONE)};

static const rft__product gated_joined[] = {
    {.name = "ffn_gate_up", .hf = "mlp.gate_up_proj", .gguf = "ffn_up", .parts = "gate+up", .n = RFT_EXT_FFN_PAIR, .k = HID},
    {.name = "ffn_down", .hf = "mlp.down_proj", .gguf = "ffn_down", .n = HID, .k = RFT_EXT_FFN, .tail = RFT_TAIL_ADD},
};

static const rft__product plain_gpt2[] = {
    {.name = "ffn_up", .hf = "mlp.c_fc", .gguf = "ffn_up", .n = RFT_EXT_FFN, .k = HID, .tail = RFT_TAIL_ACT,
     .bias = RFT_BIAS_ALWAYS, .in_out = true},
    {.name = "ffn_down", .hf = "mlp.c_proj", .gguf = "ffn_down", .n = HID, .k = RFT_EXT_FFN, .tail = RFT_TAIL_ADD,
     .bias = RFT_BIAS_ALWAYS, .in_out = true},
};

static const rft__product plain_bert[] = {
    {.name = "ffn_up", .hf = "intermediate.dense", .gguf = "ffn_up", .n = RFT_EXT_FFN, .k = HID, .tail = RFT_TAIL_ACT,
     .bias = RFT_BIAS_ALWAYS},
    {.name = "ffn_down", .hf = "output.dense", .gguf = "ffn_down", .n = HID, .k = RFT_EXT_FFN, .tail = RFT_TAIL_ADD,
     .bias = RFT_BIAS_ALWAYS},
};

/* ---- experts: what they give is weighted and summed behind the product ---- */

#define EXPERTS(prefix, router_name, up, gate, down) \
    {.name = "router", .hf = prefix router_name, .gguf = "ffn_gate_inp", .n = RFT_EXT_EXPERTS, .k = HID, \
     .where = RFT_IN_SPARSE}, \
        {.name = "expert_up", .hf = prefix "experts.*." up, .gguf = "ffn_up_exps", .n = RFT_EXT_EXPERT_FFN, .k = HID, \
         .where = RFT_IN_SPARSE, .routed = true}, \
        {.name = "expert_gate", .hf = prefix "experts.*." gate, .gguf = "ffn_gate_exps", .n = RFT_EXT_EXPERT_FFN, .k = HID, \
         .tail = RFT_TAIL_ACT_MUL, .where = RFT_IN_SPARSE, .routed = true}, \
    { \
        .name = "expert_down", .hf = prefix "experts.*." down, .gguf = "ffn_down_exps", .n = HID, .k = RFT_EXT_EXPERT_FFN, \
        .where = RFT_IN_SPARSE, .routed = true \
    }

static const rft__product experts_mixtral[] = {EXPERTS("block_sparse_moe.", "gate", "w3", "w1", "w2")};
static const rft__product experts[] = {EXPERTS("mlp.", "gate", "up_proj", "gate_proj", "down_proj")};

static const rft__product experts_gpt_oss[] = {
    {.name = "router", .hf = "mlp.router", .gguf = "ffn_gate_inp", .n = RFT_EXT_EXPERTS, .k = HID, .bias = RFT_BIAS_ALWAYS,
     .where = RFT_IN_SPARSE},
    {.name = "expert_up", .gguf = "ffn_up_exps", .n = RFT_EXT_EXPERT_FFN, .k = HID, .bias = RFT_BIAS_ALWAYS,
     .where = RFT_IN_SPARSE, .routed = true},
    {.name = "expert_gate", .gguf = "ffn_gate_exps", .n = RFT_EXT_EXPERT_FFN, .k = HID, .bias = RFT_BIAS_ALWAYS,
     .where = RFT_IN_SPARSE, .routed = true},
    {.name = "expert_gate_up", .hf = "mlp.experts.gate_up_proj", .parts = "gate+up interleaved", .n = RFT_EXT_EXPERT_PAIR,
     .k = HID, .bias = RFT_BIAS_ALWAYS, .where = RFT_IN_SPARSE, .in_out = true, .routed = true},
    {.name = "expert_down", .hf = "mlp.experts.down_proj", .gguf = "ffn_down_exps", .n = HID, .k = RFT_EXT_EXPERT_FFN,
     .bias = RFT_BIAS_ALWAYS, .where = RFT_IN_SPARSE, .in_out = true, .routed = true},
};

#define SHARED(prefix) \
    {.name = "shared_up", .hf = prefix "up_proj", .gguf = "ffn_up_shexp", .n = RFT_EXT_SHARED_FFN, .k = HID, \
     .where = RFT_IN_SPARSE}, \
        {.name = "shared_gate", .hf = prefix "gate_proj", .gguf = "ffn_gate_shexp", .n = RFT_EXT_SHARED_FFN, .k = HID, \
         .tail = RFT_TAIL_ACT_MUL, .where = RFT_IN_SPARSE}, \
    { \
        .name = "shared_down", .hf = prefix "down_proj", .gguf = "ffn_down_shexp", .n = HID, .k = RFT_EXT_SHARED_FFN, \
        .where = RFT_IN_SPARSE \
    }

static const rft__product shared_expert[] = {
    SHARED("mlp.shared_expert."),
    {.name = "shared_router", .hf = "mlp.shared_expert_gate", .gguf = "ffn_gate_inp_shexp", .n = RFT_EXT_SHARED_ONE, .k = HID,
     .where = RFT_IN_SPARSE},
};
static const rft__product shared_experts[] = {SHARED("mlp.shared_experts.")};

/* ---- encoder and decoder: the keys and values of what is heard are made once, by each block of the decoder ---- */

#define WHISPER_ATTENTION(prefix, module, place, rows) \
    {.name = prefix "attn_q", .hf = module ".q_proj", .n = RFT_EXT_Q, .k = HID, .bias = RFT_BIAS_ALWAYS, .where = place, \
     .source = place == RFT_IN_SOURCE}, \
        {.name = prefix "attn_k", .hf = module ".k_proj", .n = RFT_EXT_KV, .k = HID, .where = place, .source = rows}, \
        {.name = prefix "attn_v", .hf = module ".v_proj", .n = RFT_EXT_KV, .k = HID, .bias = RFT_BIAS_ALWAYS, .where = place, \
         .source = rows}, \
    { \
        .name = prefix "attn_output", .hf = module ".out_proj", .n = HID, .k = RFT_EXT_Q, .tail = RFT_TAIL_ADD, \
        .bias = RFT_BIAS_ALWAYS, .where = place, .source = place == RFT_IN_SOURCE \
    }
#define WHISPER_FFN(prefix, ffn, place) \
    {.name = prefix "ffn_up", .hf = "fc1", .n = ffn, .k = HID, .tail = RFT_TAIL_ACT, .bias = RFT_BIAS_ALWAYS, .where = place, \
     .source = place == RFT_IN_SOURCE}, \
    { \
        .name = prefix "ffn_down", .hf = "fc2", .n = HID, .k = ffn, .tail = RFT_TAIL_ADD, .bias = RFT_BIAS_ALWAYS, \
        .where = place, .source = place == RFT_IN_SOURCE \
    }

static const rft__product encoder_whisper[] = {WHISPER_ATTENTION("enc_", "self_attn", RFT_IN_SOURCE, true),
                                               WHISPER_FFN("enc_", RFT_EXT_SOURCE_FFN, RFT_IN_SOURCE)};
static const rft__product attention_whisper[] = {WHISPER_ATTENTION("", "self_attn", RFT_IN_BLOCKS, false),
                                                 WHISPER_ATTENTION("cross_", "encoder_attn", RFT_IN_BLOCKS, true)};
static const rft__product plain_whisper[] = {WHISPER_FFN("", RFT_EXT_FFN, RFT_IN_BLOCKS)};

/* ---- outside of the blocks ---- */

static const rft__product head[] = {
    {.name = "lm_head", .hf = "lm_head", .gguf = "output", .n = RFT_EXT_VOCAB, .k = HID, .where = RFT_ONCE},
};
static const rft__product head_whisper[] = {
    {.name = "lm_head", .hf = "proj_out", .n = RFT_EXT_VOCAB, .k = HID, .where = RFT_ONCE},
};
static const rft__product pooler[] = {
    {.name = "pooler", .hf = "pooler.dense", .n = HID, .k = HID, .bias = RFT_BIAS_ALWAYS, .where = RFT_ONCE},
};

#define BETWEEN(positions, every) .windows = RFT_WINDOWS_BETWEEN, .window = positions, .full_every = every
#define LATE .windows = RFT_WINDOWS_LATE, .window = 4096
#define LLAMA_BLOCK .groups = {GROUP(attention), GROUP(gated), GROUP(head)}, .act = RFT_EPI_SILU, .norms = 2, .end_norms = 1
#define GEMMA_BLOCK \
    .groups = {GROUP(attention_normed), GROUP(gated_normed), GROUP(head)}, .act = RFT_EPI_GELU_TANH, .norms = 4, .end_norms = 1, \
    .tied = true
#define LATENT_BLOCK \
    .gguf = "deepseek2", \
    .groups = {GROUP(attention_latent), GROUP(gated), GROUP(experts), GROUP(shared_experts), GROUP(head)}, .act = RFT_EPI_SILU, \
    .norms = 2, .end_norms = 1, .moe = true, .mla = true
#define LAYERS "layers.", .embedding = "embed_tokens"

static const rft__arch archs[] = {
    {.name = "llama", .gguf = "llama", .blocks = LAYERS, LLAMA_BLOCK, .permuted = true, .convertible = true},
    {.name = "mistral", .gguf = "llama", .blocks = LAYERS, LLAMA_BLOCK, .permuted = true, .convertible = true,
     .windows = RFT_WINDOWS_ALL},
    {.name = "qwen2", .gguf = "qwen2", .blocks = LAYERS, LLAMA_BLOCK, .qkv_bias = true, .convertible = true, LATE},
    {.name = "qwen3", .gguf = "qwen3", .blocks = LAYERS, LLAMA_BLOCK, .qk_norm = true, .convertible = true, LATE},
    {.name = "smollm3", .gguf = "smollm3", .blocks = LAYERS, LLAMA_BLOCK, .tied = true, .permuted = true, .convertible = true},
    {.name = "gemma2", .gguf = "gemma2", .blocks = LAYERS, GEMMA_BLOCK, BETWEEN(4096, 2)},
    {.name = "gemma3_text", .gguf = "gemma3", .blocks = LAYERS, GEMMA_BLOCK, .qk_norm = true, BETWEEN(4096, 6)},
    {.name = "gemma3", .blocks = LAYERS, GEMMA_BLOCK, .qk_norm = true, .nested = "text_config", .heads = 8,
     .kv_heads = 4, .head_dim = 256, .vocab = 262208, BETWEEN(4096, 6)},
    {.name = "phi3", .gguf = "phi3", .blocks = LAYERS, .groups = {GROUP(attention_joined), GROUP(gated_joined), GROUP(head)},
     .act = RFT_EPI_SILU, .norms = 2, .end_norms = 1, .windows = RFT_WINDOWS_ALL},
    {.name = "gpt2", .gguf = "gpt2", .blocks = "h.", .embedding = "wte",
     .groups = {GROUP(attention_gpt2), GROUP(plain_gpt2), GROUP(head)}, .act = RFT_EPI_GELU_TANH, .norms = 4, .end_norms = 2,
     .tied = true, .positions = true, .norm_bias = true, .ffn_times = 4},
    {.name = "bert", .gguf = "bert", .blocks = "encoder.layer.", .embedding = "embeddings.word_embeddings",
     .groups = {GROUP(attention_bert), GROUP(plain_bert), GROUP(pooler)}, .act = RFT_EPI_GELU, .norms = 4, .end_norms = 2,
     .tied = true, .positions = true, .norm_bias = true, .encoder = true},
    {.name = "whisper", .blocks = "decoder.layers.", .embedding = "decoder.embed_tokens", .source = "encoder.layers.",
     .groups = {GROUP(encoder_whisper), GROUP(attention_whisper), GROUP(plain_whisper), GROUP(head_whisper)}, .act = RFT_EPI_GELU,
     .norms = 6, .end_norms = 2, .source_norms = 4, .source_end_norms = 2, .tied = true, .positions = true, .norm_bias = true},
    {.name = "mixtral", .gguf = "llama", .blocks = LAYERS, .groups = {GROUP(attention), GROUP(experts_mixtral), GROUP(head)},
     .act = RFT_EPI_SILU, .norms = 2, .end_norms = 1, .moe = true, .permuted = true, .windows = RFT_WINDOWS_ALL},
    {.name = "qwen2_moe", .gguf = "qwen2moe", .blocks = LAYERS,
     .groups = {GROUP(attention), GROUP(experts), GROUP(shared_expert), GROUP(head)}, .act = RFT_EPI_SILU, .norms = 2,
     .end_norms = 1, .moe = true, .qkv_bias = true, LATE},
    {.name = "qwen3_moe", .gguf = "qwen3moe", .blocks = LAYERS, .groups = {GROUP(attention), GROUP(experts), GROUP(head)},
     .act = RFT_EPI_SILU, .norms = 2, .end_norms = 1, .moe = true, .qk_norm = true, LATE},
    {.name = "deepseek_v2", .blocks = LAYERS, LATENT_BLOCK},
    {.name = "deepseek_v3", .blocks = LAYERS, LATENT_BLOCK, .router_bias = true},
    {.name = "gpt_oss", .gguf = "gpt-oss", .blocks = LAYERS, .groups = {GROUP(attention), GROUP(experts_gpt_oss), GROUP(head)},
     .act = RFT_EPI_SILU, .norms = 2, .end_norms = 1, .moe = true, .sinks = true, BETWEEN(128, 2)},
};

enum { N_ARCHS = sizeof archs / sizeof archs[0] };

static bool is_row(const rft__arch *a, const char *name, bool gguf, bool moe) {
    if (!gguf) {
        return strcmp(a->name, name) == 0;
    }
    return a->gguf && a->moe == moe && (strcmp(a->gguf, name) == 0 || strcmp(a->name, name) == 0);
}

const rft__arch rft__arch_unknown = {.name = "unknown"};

const rft__arch *rft__arch_find(const char *name, bool gguf, bool moe) {
    for (size_t i = 0; i < N_ARCHS; i++) {
        if (is_row(&archs[i], name, gguf, moe)) {
            return &archs[i];
        }
    }
    return NULL;
}

const rft__product *rft__arch_product(const rft__arch *arch, size_t i) {
    for (int g = 0; g < RFT_ARCH_GROUPS; i -= arch->groups[g++].count) {
        if (i < arch->groups[g].count) {
            return &arch->groups[g].list[i];
        }
    }
    return NULL;
}

const rft__product *rft__arch_up(const rft__arch *arch) {
    const rft__product *p;
    for (size_t i = 0; (p = rft__arch_product(arch, i)) != NULL; i++) {
        if (p->n == RFT_EXT_FFN || p->n == RFT_EXT_FFN_PAIR) {
            break;
        }
    }
    return p;
}

rft_status rft__arch_refuse(const char *name, const char *why, rft_error *err) {
    char list[320] = "";
    for (size_t i = 0; i < N_ARCHS; i++) {
        const size_t used = strlen(list);
        snprintf(list + used, sizeof list - used, "%s%s", i ? ", " : "", archs[i].name);
    }
    RFT_FAIL(err, RFT_E_UNSUPPORTED, "architecture '%.60s' is not known, %s; known are %s", name, why, list);
}
