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
static rft_status read_size(const rft__gguf *g, const rft__hparams *h, const char *suffix, bool required, int64_t *out,
                            rft_error *err) {
    char key[KEY_CAP];
    snprintf(key, sizeof key, "%s.%s", h->arch->name, suffix);
    return rft__gguf_integer(g, key, required, 0, INT64_MAX, out, err);
}

static rft_status refuse_experts(const rft__gguf *g, const rft__hparams *h, rft_error *err) {
    int64_t experts = 0;
    RFT_TRY(read_size(g, h, "expert_count", false, &experts, err));
    if (experts > 0) {
        RFT_FAIL(err, RFT_E_UNSUPPORTED, "%s.expert_count = %" PRId64 ": mixture-of-experts layers are not supported",
                 h->arch->name, experts);
    }
    return RFT_OK;
}

static rft_status read_head_sizes(const rft__gguf *g, rft__hparams *h, rft_error *err) {
    int64_t value_length = 0;
    RFT_TRY(read_size(g, h, "attention.head_count", true, &h->heads, err));
    RFT_TRY(read_size(g, h, "attention.head_count_kv", false, &h->kv_heads, err));
    RFT_TRY(read_size(g, h, "attention.key_length", false, &h->head_dim, err));
    value_length = h->head_dim;
    RFT_TRY(read_size(g, h, "attention.value_length", false, &value_length, err));
    if (value_length != h->head_dim) {
        RFT_FAIL(err, RFT_E_UNSUPPORTED,
                 "%s.attention.value_length = %" PRId64 " differs from key_length = %" PRId64
                 " (0: not given): heads of two sizes are not supported",
                 h->arch->name, value_length, h->head_dim);
    }
    return RFT_OK;
}

static rft_status rows_of(const rft__gguf *g, const char *name, int64_t *rows, rft_error *err) {
    const int64_t tensor = rft__tensors_find(&g->tensors, name);
    if (tensor < 0) {
        RFT_FAIL(err, RFT_E_ARG, "tensor '%s' is missing", name);
    }
    *rows = g->tensors.list[tensor].rows;
    return RFT_OK;
}

static rft_status read_arch(const rft__gguf *g, rft__hparams *h, rft_error *err) {
    char name[64];
    RFT_TRY(rft__gguf_string(g, "general.architecture", name, sizeof name, err));
    if (!*name) {
        RFT_FAIL(err, RFT_E_ARG, "the key 'general.architecture' is missing or empty");
    }
    RFT_TRY(rft__arch_find(name, &h->arch, err));
    return rft__gguf_string(g, "general.name", h->name, sizeof h->name, err);
}

rft_status rft__hparams_from_gguf(const rft__gguf *g, rft__hparams *h, rft_error *err) {
    *h = (rft__hparams){0};
    RFT_TRY(read_arch(g, h, err));
    RFT_TRY(refuse_experts(g, h, err));
    RFT_TRY(read_size(g, h, "block_count", true, &h->layers, err));
    RFT_TRY(read_size(g, h, "embedding_length", true, &h->hidden, err));
    RFT_TRY(read_size(g, h, "context_length", false, &h->context, err));
    RFT_TRY(read_head_sizes(g, h, err));
    RFT_TRY(rows_of(g, "token_embd.weight", &h->vocab, err));
    RFT_TRY(rows_of(g, "blk.0.ffn_up.weight", &h->ffn, err));
    h->tied = rft__tensors_find(&g->tensors, "output.weight") < 0;
    return rft__hparams_check(h, err);
}
