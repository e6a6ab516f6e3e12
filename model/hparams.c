/* SPDX-License-Identifier: Apache-2.0
 *
 * hparams.c - the supported families and the rules that their sizes obey. See hparams.h.
 *
 * All share one block: attention with separate q, k, v and output, then silu(gate) * up and down.
 */
#include "hparams.h"

#include "base/error.h"

#include <inttypes.h>
#include <stddef.h>
#include <string.h>

static const rft__arch archs[] = {
    {"llama", false, false, false, "llama", true},    {"mistral", false, false, false, "llama", true},
    {"qwen2", true, false, false, "qwen2", false},    {"qwen3", false, true, false, "qwen3", false},
    {"smollm3", false, false, true, "smollm3", true},
};

rft_status rft__arch_find(const char *name, const rft__arch **out, rft_error *err) {
    for (size_t i = 0; i < sizeof archs / sizeof archs[0]; i++) {
        if (strcmp(archs[i].name, name) == 0) {
            *out = &archs[i];
            return RFT_OK;
        }
    }
    RFT_FAIL(err, RFT_E_UNSUPPORTED,
             "architecture '%.60s' is not supported; supported are llama, mistral, qwen2, qwen3 and smollm3", name);
}

static rft_status check_range(const char *what, int64_t value, int64_t max, rft_error *err) {
    if (value < 1 || value > max) {
        RFT_FAIL(err, RFT_E_ARG, "%s = %" PRId64 " is not in 1..%" PRId64, what, value, max);
    }
    return RFT_OK;
}

static rft_status check_divides(const char *what, int64_t value, const char *by, int64_t divisor, rft_error *err) {
    if (value % divisor != 0) {
        RFT_FAIL(err, RFT_E_ARG, "%s = %" PRId64 " is not a multiple of %s = %" PRId64, what, value, by, divisor);
    }
    return RFT_OK;
}

static rft_status check_heads(rft__hparams *h, rft_error *err) {
    RFT_TRY(check_range("heads", h->heads, RFT_MAX_SIZE, err));
    h->kv_heads = h->kv_heads ? h->kv_heads : h->heads;
    RFT_TRY(check_range("kv heads", h->kv_heads, h->heads, err));
    RFT_TRY(check_divides("heads", h->heads, "kv heads", h->kv_heads, err));
    if (h->head_dim == 0) {
        RFT_TRY(check_divides("hidden size", h->hidden, "heads", h->heads, err));
        h->head_dim = h->hidden / h->heads;
    }
    return check_range("head size", h->head_dim, RFT_MAX_SIZE / h->heads, err);
}

rft_status rft__hparams_check(rft__hparams *h, rft_error *err) {
    RFT_TRY(check_range("layers", h->layers, RFT_MAX_LAYERS, err));
    RFT_TRY(check_range("hidden size", h->hidden, RFT_MAX_SIZE, err));
    RFT_TRY(check_range("ffn size", h->ffn, RFT_MAX_SIZE, err));
    RFT_TRY(check_range("vocabulary", h->vocab, RFT_MAX_SIZE, err));
    return check_heads(h, err);
}

static int64_t block_parameters(const rft__hparams *h) {
    const int64_t q = h->heads * h->head_dim, kv = h->kv_heads * h->head_dim;
    int64_t count = h->hidden * (2 * q + 2 * kv + 3 * h->ffn) + 2 * h->hidden;
    count += h->arch->qk_norm ? 2 * h->head_dim : 0;
    count += h->qkv_bias ? q + 2 * kv : 0;
    count += h->output_bias ? h->hidden : 0;
    count += h->mlp_bias ? 2 * h->ffn + h->hidden : 0;
    return count;
}

int64_t rft__hparams_parameters(const rft__hparams *h) {
    const int64_t embedding = h->vocab * h->hidden;
    return h->layers * block_parameters(h) + (h->tied ? 1 : 2) * embedding + h->hidden;
}
