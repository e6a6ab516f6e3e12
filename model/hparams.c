/* SPDX-License-Identifier: Apache-2.0
 *
 * hparams.c - the rules that sizes obey, and what follows from them. See hparams.h.
 */
#include "hparams.h"

#include "base/error.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

_Static_assert(sizeof(((rft__hparams *)0)->keys) / sizeof(char *) >=
                   (offsetof(rft__hparams, keys) - offsetof(rft__hparams, hidden)) / sizeof(int64_t),
               "each size has a place for its key");

/* "'num_attention_heads': heads = 5 RULE", or without a key where none of the file holds the size. */
__attribute__((format(printf, 6, 7))) static rft_status refuse(rft__hparams *h, rft_status status, const char *what,
                                                               const int64_t *size, rft_error *err, const char *rule, ...) {
    const char *key = *rft__hparams_key(h, size);
    char text[120];
    va_list args;
    va_start(args, rule);
    vsnprintf(text, sizeof text, rule, args);
    va_end(args);
    RFT_FAIL(err, status, "%s%.60s%s%s = %" PRId64 " %s", key ? "'" : "", key ? key : "", key ? "': " : "", what, *size, text);
}

static rft_status check_range(rft__hparams *h, const char *what, const int64_t *size, int64_t min, int64_t max, rft_error *err) {
    return *size >= min && *size <= max
               ? RFT_OK
               : refuse(h, RFT_E_ARG, what, size, err, "is not in %" PRId64 "..%" PRId64, min, max);
}

static rft_status check_divides(rft__hparams *h, const char *what, const int64_t *size, const char *by, const int64_t *divisor,
                                rft_error *err) {
    const char *key = *rft__hparams_key(h, divisor);
    return *size % *divisor == 0 ? RFT_OK
                                 : refuse(h, RFT_E_ARG, what, size, err, "is not a multiple of %s = %" PRId64 "%s%.40s%s", by,
                                          *divisor, key ? " ('" : "", key ? key : "", key ? "')" : "");
}

/* A size that the file does not give is another's. */
static void take_size(rft__hparams *h, const int64_t *from, int64_t *to) {
    if (*to == 0) {
        *to = *from;
        *rft__hparams_key(h, to) = *rft__hparams_key(h, from);
    }
}

static rft_status check_heads(rft__hparams *h, rft_error *err) {
    RFT_TRY(check_range(h, "heads", &h->heads, 1, RFT_MAX_SIZE, err));
    take_size(h, &h->heads, &h->kv_heads);
    RFT_TRY(check_range(h, "kv heads", &h->kv_heads, 1, h->heads, err));
    RFT_TRY(check_divides(h, "heads", &h->heads, "kv heads", &h->kv_heads, err));
    if (h->arch->mla) {
        const int64_t cap = RFT_MAX_SIZE / h->heads / 2;
        RFT_TRY(check_range(h, "q_lora_rank", &h->q_rank, 0, RFT_MAX_SIZE, err));
        RFT_TRY(check_range(h, "kv_lora_rank", &h->kv_rank, 1, RFT_MAX_SIZE / 2, err));
        RFT_TRY(check_range(h, "head size without rotation", &h->nope, 1, cap, err));
        RFT_TRY(check_range(h, "rotary head size", &h->rope, 1, cap, err));
        RFT_TRY(check_range(h, "head size of values", &h->v_dim, 1, cap, err));
        h->head_dim = h->nope + h->rope;
    }
    if (h->head_dim == 0) {
        RFT_TRY(check_divides(h, "hidden size", &h->hidden, "heads", &h->heads, err));
        h->head_dim = h->hidden / h->heads;
    }
    return check_range(h, "head size", &h->head_dim, 1, RFT_MAX_SIZE / h->heads, err);
}

static rft_status check_window(rft__hparams *h, rft_error *err) {
    RFT_TRY(check_range(h, "window of attention", &h->window, 0, RFT_MAX_WINDOW, err));
    h->windowed = h->window > 0 ? h->windowed : 0;
    return check_range(h, "blocks with a window", &h->windowed, 0, h->layers, err);
}

static rft_status check_source(rft__hparams *h, rft_error *err) {
    if (!h->arch->source) {
        return RFT_OK;
    }
    RFT_TRY(check_range(h, "encoder layers", &h->source_layers, 1, RFT_MAX_LAYERS, err));
    RFT_TRY(check_range(h, "ffn size of the encoder", &h->source_ffn, 1, RFT_MAX_SIZE, err));
    RFT_TRY(check_range(h, "positions of the encoder", &h->source, 1, RFT_MAX_SIZE, err));
    RFT_TRY(check_range(h, "mel bins", &h->bands, 1, RFT_MAX_SIZE, err));
    return h->source_heads == h->heads ? RFT_OK
                                       : refuse(h, RFT_E_UNSUPPORTED, "encoder heads", &h->source_heads, err,
                                                "differ from decoder heads = %" PRId64, h->heads);
}

static bool has_dense(const rft__arch *arch) {
    const rft__product *p;
    for (size_t i = 0; (p = rft__arch_product(arch, i)) != NULL; i++) {
        if (p->where == RFT_IN_DENSE) {
            return true;
        }
    }
    return false;
}

static rft_status check_experts(rft__hparams *h, rft_error *err) {
    if (!h->arch->moe) {
        return h->experts == 0 ? RFT_OK
                               : refuse(h, RFT_E_UNSUPPORTED, "experts", &h->experts, err,
                                        "are not supported in %s: it has no mixtures", h->arch->name);
    }
    take_size(h, &h->ffn, &h->expert_ffn);
    RFT_TRY(check_range(h, "experts", &h->experts, 1, RFT_MAX_EXPERTS, err));
    RFT_TRY(check_range(h, "experts of a token", &h->used, 1, h->experts, err));
    RFT_TRY(check_range(h, "ffn size of an expert", &h->expert_ffn, 1, RFT_MAX_SIZE, err));
    RFT_TRY(check_range(h, "dense blocks", &h->dense_first, 0, h->layers, err));
    if (h->dense_first > 0 && !has_dense(h->arch)) {
        return refuse(h, RFT_E_ARG, "dense blocks", &h->dense_first, err, "are not known of %s", h->arch->name);
    }
    RFT_TRY(check_range(h, "shared experts", &h->shared, 0, RFT_MAX_EXPERTS, err));
    if (h->shared > 0) {
        h->shared_ffn = h->shared * h->expert_ffn;
        *rft__hparams_key(h, &h->shared_ffn) = *rft__hparams_key(h, &h->shared);
    }
    RFT_TRY(check_range(h, "ffn size of the shared experts", &h->shared_ffn, 0, RFT_MAX_SIZE, err));
    return h->sparse_step <= 1 ? RFT_OK
                               : refuse(h, RFT_E_UNSUPPORTED, "step from mixture to mixture", &h->sparse_step, err,
                                        "is not supported: only 1 is");
}

rft_status rft__hparams_check(rft__hparams *h, rft_error *err) {
    RFT_TRY(check_range(h, "layers", &h->layers, 1, RFT_MAX_LAYERS, err));
    RFT_TRY(check_range(h, "hidden size", &h->hidden, 1, RFT_MAX_SIZE, err));
    RFT_TRY(check_range(h, "ffn size", &h->ffn, 1, RFT_MAX_SIZE, err));
    RFT_TRY(check_range(h, "vocabulary", &h->vocab, 1, RFT_MAX_SIZE, err));
    RFT_TRY(check_range(h, "token types", &h->types, 0, RFT_MAX_SIZE, err));
    RFT_TRY(check_range(h, "context", &h->context, 0, h->arch->positions ? RFT_MAX_SIZE : INT64_MAX, err));
    RFT_TRY(check_experts(h, err));
    RFT_TRY(check_heads(h, err));
    RFT_TRY(check_window(h, err));
    return check_source(h, err);
}

int64_t rft__extent_of(const rft__hparams *h, rft__extent extent) {
    const int64_t q = h->heads * h->head_dim, kv = h->kv_heads * h->head_dim;
    const int64_t sizes[] = {
        [RFT_EXT_HIDDEN] = h->hidden,
        [RFT_EXT_Q] = q,
        [RFT_EXT_KV] = kv,
        [RFT_EXT_QKV] = q + 2 * kv,
        [RFT_EXT_FFN] = h->ffn,
        [RFT_EXT_FFN_PAIR] = 2 * h->ffn,
        [RFT_EXT_VOCAB] = h->vocab,
        [RFT_EXT_EXPERTS] = h->experts,
        [RFT_EXT_EXPERT_FFN] = h->expert_ffn,
        [RFT_EXT_EXPERT_PAIR] = 2 * h->expert_ffn,
        [RFT_EXT_SHARED_FFN] = h->shared_ffn,
        [RFT_EXT_SHARED_ONE] = h->shared_ffn > 0,
        [RFT_EXT_Q_RANK] = h->q_rank,
        [RFT_EXT_Q_LATENT] = q,
        [RFT_EXT_Q_DIRECT] = h->q_rank > 0 ? 0 : q,
        [RFT_EXT_KV_LATENT] = h->kv_rank + h->rope,
        [RFT_EXT_KV_RANK] = h->kv_rank,
        [RFT_EXT_KV_HEADS] = h->heads * (h->nope + h->v_dim),
        [RFT_EXT_NOPE] = h->nope,
        [RFT_EXT_V_HEAD] = h->v_dim,
        [RFT_EXT_V] = h->heads * h->v_dim,
        [RFT_EXT_SOURCE_FFN] = h->source_ffn,
    };
    return sizes[extent];
}

int64_t rft__product_blocks(const rft__hparams *h, const rft__product *p) {
    const int64_t dense = h->arch->moe ? h->dense_first : h->layers;
    if (rft__extent_of(h, p->n) == 0 || rft__extent_of(h, p->k) == 0) {
        return 0;
    }
    switch (p->where) {
    case RFT_ONCE:
        return 1;
    case RFT_IN_DENSE:
        return dense;
    case RFT_IN_SPARSE:
        return h->layers - dense;
    case RFT_IN_SOURCE:
        return h->source_layers;
    default:
        return h->layers;
    }
}

bool rft__product_in(const rft__hparams *h, const rft__product *p, int64_t block) {
    const bool dense = !h->arch->moe || block < h->dense_first;
    switch (p->where) {
    case RFT_ONCE:
        return block == 0;
    case RFT_IN_SOURCE:
        return block < h->source_layers;
    case RFT_IN_DENSE:
        return dense && block < h->layers;
    case RFT_IN_SPARSE:
        return !dense && block < h->layers;
    default:
        return block < h->layers;
    }
}

int64_t rft__windowed_blocks(const rft__hparams *h, int64_t full_every, int64_t first) {
    switch (h->arch->windows) {
    case RFT_WINDOWS_ALL:
        return h->layers;
    case RFT_WINDOWS_BETWEEN:
        return full_every > 0 ? h->layers - h->layers / full_every : h->layers;
    case RFT_WINDOWS_LATE:
        return h->layers > first ? h->layers - first : 0;
    default:
        return 0;
    }
}

int64_t rft__hparams_blocks(const rft__hparams *h) { return h->layers > h->source_layers ? h->layers : h->source_layers; }

/* Two convolutions of three positions lead from sound to the encoder, with biases; its positions are stored. */
static int64_t source_others(const rft__hparams *h) {
    const rft__arch *a = h->arch;
    const int64_t convolutions = 3 * (h->bands + h->hidden) + 2;
    return a->source ? (h->source_layers * a->source_norms + a->source_end_norms + convolutions + h->source) * h->hidden : 0;
}

int64_t rft__hparams_others(const rft__hparams *h) {
    const rft__arch *a = h->arch;
    const int64_t sparse = a->moe ? h->layers - h->dense_first : 0;
    int64_t block = a->norms * h->hidden;
    block += a->qk_norm ? 2 * h->head_dim : 0;
    block += a->mla ? h->q_rank + h->kv_rank : 0;
    block += a->sinks ? h->heads : 0;
    int64_t count = h->layers * block + sparse * (a->router_bias ? h->experts : 0);
    count += (h->vocab + (a->positions ? h->context + h->types : 0)) * h->hidden;
    return count + a->end_norms * h->hidden + source_others(h);
}
