/* SPDX-License-Identifier: Apache-2.0
 *
 * hparams_gguf.c - the sizes of a model from the keys and tensors of its GGUF file. See hparams.h.
 */
#include "hparams.h"

#include "base/error.h"

#include <inttypes.h>
#include <stdio.h>

enum { KEY_CAP = 128 };

/* Reads "<architecture>.<suffix>". */
static rft_status read_number(const rft__gguf *g, const rft__hparams *h, const char *suffix, bool required, int64_t *out,
                              rft_error *err) {
    char key[KEY_CAP];
    snprintf(key, sizeof key, "%s.%s", h->prefix, suffix);
    return rft__gguf_integer(g, key, required, 0, INT64_MAX, out, err);
}

/* The same into a size of h, which remembers the key where it is there. */
static rft_status read_size(const rft__gguf *g, rft__hparams *h, const char *suffix, bool required, int64_t *size,
                            rft_error *err) {
    int64_t value = -1;
    RFT_TRY(read_number(g, h, suffix, required, &value, err));
    if (value >= 0) {
        *size = value;
        *rft__hparams_key(h, size) = suffix;
    }
    return RFT_OK;
}

static rft_status read_experts(const rft__gguf *g, rft__hparams *h, rft_error *err) {
    RFT_TRY(read_size(g, h, "expert_count", false, &h->experts, err));
    RFT_TRY(read_size(g, h, "expert_used_count", h->arch->moe, &h->used, err));
    RFT_TRY(read_size(g, h, "expert_feed_forward_length", false, &h->expert_ffn, err));
    RFT_TRY(read_size(g, h, "expert_shared_feed_forward_length", false, &h->shared_ffn, err));
    RFT_TRY(read_size(g, h, "expert_shared_count", false, &h->shared, err));
    return read_size(g, h, "leading_dense_block_count", false, &h->dense_first, err);
}

static rft_status read_latent(const rft__gguf *g, rft__hparams *h, rft_error *err) {
    int64_t key_length = 0;
    RFT_TRY(read_size(g, h, "attention.q_lora_rank", false, &h->q_rank, err));
    RFT_TRY(read_size(g, h, "attention.kv_lora_rank", true, &h->kv_rank, err));
    RFT_TRY(read_size(g, h, "rope.dimension_count", true, &h->rope, err));
    RFT_TRY(read_number(g, h, "attention.key_length", true, &key_length, err));
    RFT_TRY(read_size(g, h, "attention.value_length", true, &h->v_dim, err));
    /* Newer files have the latent sizes there, and those of a head here. */
    RFT_TRY(read_number(g, h, "attention.key_length_mla", false, &key_length, err));
    RFT_TRY(read_size(g, h, "attention.value_length_mla", false, &h->v_dim, err));
    h->nope = key_length - h->rope;
    *rft__hparams_key(h, &h->nope) = "attention.key_length";
    return RFT_OK;
}

static rft_status read_head_sizes(const rft__gguf *g, rft__hparams *h, rft_error *err) {
    int64_t value_length = 0;
    RFT_TRY(read_size(g, h, "attention.head_count", true, &h->heads, err));
    RFT_TRY(read_size(g, h, "attention.head_count_kv", false, &h->kv_heads, err));
    if (h->arch->mla) {
        return read_latent(g, h, err);
    }
    RFT_TRY(read_size(g, h, "attention.key_length", false, &h->head_dim, err));
    value_length = h->head_dim;
    RFT_TRY(read_number(g, h, "attention.value_length", false, &value_length, err));
    if (value_length != h->head_dim) {
        RFT_FAIL(err, RFT_E_UNSUPPORTED,
                 "%s.attention.value_length = %" PRId64 " differs from key_length = %" PRId64
                 " (0: not given): heads of two sizes are not supported",
                 h->prefix, value_length, h->head_dim);
    }
    return RFT_OK;
}

/* Such a file says nothing of a switch. */
static rft_status read_window(const rft__gguf *g, rft__hparams *h, rft_error *err) {
    if (h->arch->windows == RFT_WINDOWS_ALL || h->arch->windows == RFT_WINDOWS_BETWEEN) {
        RFT_TRY(read_size(g, h, "attention.sliding_window", false, &h->window, err));
        h->windowed = rft__windowed_blocks(h, h->arch->full_every, 0);
    }
    return RFT_OK;
}

/* A size that no key holds; the tensor stands for it. */
static rft_status rows_of(const rft__gguf *g, const char *name, rft__hparams *h, int64_t *rows, rft_error *err) {
    const int64_t tensor = rft__tensors_find(&g->tensors, name);
    if (tensor < 0) {
        RFT_FAIL(err, RFT_E_ARG, "tensor '%s' is missing", name);
    }
    *rows = g->tensors.list[tensor].rows;
    *rft__hparams_key(h, rows) = g->tensors.list[tensor].name;
    return RFT_OK;
}

/* Of a model whose first block is dense, what that block holds. */
static rft_status read_ffn(const rft__gguf *g, rft__hparams *h, rft_error *err) {
    if (h->arch->moe) {
        return read_size(g, h, "feed_forward_length", h->expert_ffn == 0, &h->ffn, err);
    }
    RFT_TRY(rows_of(g, "blk.0.ffn_up.weight", h, &h->ffn, err));
    h->ffn /= rft__arch_up(h->arch)->n == RFT_EXT_FFN_PAIR ? 2 : 1;
    return RFT_OK;
}

static rft_status read_arch(const rft__gguf *g, rft__hparams *h, rft_error *err) {
    char name[64];
    RFT_TRY(rft__gguf_string(g, "general.architecture", name, sizeof name, err));
    if (!*name) {
        RFT_FAIL(err, RFT_E_ARG, "the key 'general.architecture' is missing or empty");
    }
    char key[KEY_CAP];
    int64_t experts = 0;
    snprintf(key, sizeof key, "%s.expert_count", name);
    RFT_TRY(rft__gguf_integer(g, key, false, 0, INT64_MAX, &experts, err));
    const rft__arch *known = rft__arch_find(name, true, experts > 0);
    h->arch = known ? known : &rft__arch_unknown;
    snprintf(h->prefix, sizeof h->prefix, "%s", name);
    h->act = h->arch->act;
    return rft__gguf_string(g, "general.name", h->name, sizeof h->name, err);
}

rft_status rft__hparams_from_gguf(const rft__gguf *g, rft__hparams *h, rft_error *err) {
    *h = (rft__hparams){0};
    RFT_TRY(read_arch(g, h, err));
    if (rft__hparams_unknown(h)) {
        return RFT_OK;
    }
    RFT_TRY(read_size(g, h, "block_count", true, &h->layers, err));
    RFT_TRY(read_size(g, h, "embedding_length", true, &h->hidden, err));
    RFT_TRY(read_size(g, h, "context_length", false, &h->context, err));
    RFT_TRY(read_head_sizes(g, h, err));
    RFT_TRY(rows_of(g, "token_embd.weight", h, &h->vocab, err));
    RFT_TRY(read_experts(g, h, err));
    RFT_TRY(read_ffn(g, h, err));
    RFT_TRY(read_window(g, h, err));
    h->ffn = h->ffn ? h->ffn : h->expert_ffn;
    h->tied = rft__tensors_find(&g->tensors, "output.weight") < 0;
    return rft__hparams_check(h, err);
}
