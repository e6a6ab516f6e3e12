/* SPDX-License-Identifier: Apache-2.0
 *
 * quant_config.c - see quant_config.h. Keys that are absent take the defaults of the libraries that write them.
 */
#include "quant_config.h"

#include "base/error.h"
#include "base/printable.h"

#include <inttypes.h>
#include <string.h>

static rft_status read_text(const json_t *object, const char *key, char *out, size_t cap, rft_error *err) {
    const char *text = out;
    RFT_TRY(rft__json_string(object, key, &text, err));
    if (text != out) {
        rft__copy_printable(out, cap, text, strlen(text));
    }
    return RFT_OK;
}

/* Group sizes: -1 and null stand for the whole row, here 0. */
static rft_status read_group(const json_t *object, const char *key, int64_t *out, rft_error *err) {
    const json_t *value = rft__json_find(object, key);
    const json_int_t number = json_integer_value(value);
    if (value && (!json_is_integer(value) || number < -1 || number > INT32_MAX)) {
        RFT_FAIL(err, RFT_E_ARG, "quantization_config: %s is no whole number from -1 to 2^31 - 1", key);
    }
    *out = value ? (number < 0 ? 0 : number) : *out;
    return RFT_OK;
}

static rft_status read_bits(const json_t *object, const char *key, int64_t *out, rft_error *err) {
    RFT_TRY(rft__json_size(object, key, false, out, err));
    if (*out < 1 || *out > 16) {
        RFT_FAIL(err, RFT_E_ARG, "quantization_config: %s = %" PRId64 " is not in 1..16", key, *out);
    }
    return RFT_OK;
}

/* Two sizes, rows first. */
static rft_status read_block(const json_t *object, const char *key, int64_t *n, int64_t *k, rft_error *err) {
    const json_t *value = rft__json_find(object, key);
    if (!value) {
        return RFT_OK;
    }
    *n = json_integer_value(json_array_get(value, 0));
    *k = json_integer_value(json_array_get(value, 1));
    if (json_array_size(value) != 2 || *n < 1 || *k < 1 || *n > INT32_MAX || *k > INT32_MAX) {
        RFT_FAIL(err, RFT_E_ARG, "quantization_config: %s is no pair of sizes from 1 to 2^31 - 1", key);
    }
    return RFT_OK;
}

static rft_status add_group(const json_t *weights, rft__quant_config *out, rft_error *err) {
    rft__quant_group *g = &out->groups[out->n_groups];
    if (out->n_groups == RFT_MAX_QUANT_GROUPS) {
        RFT_FAIL(err, RFT_E_UNSUPPORTED, "quantization_config has more than %d config_groups", RFT_MAX_QUANT_GROUPS);
    }
    *g = (rft__quant_group){.bits = 8};
    RFT_TRY(read_bits(weights, "num_bits", &g->bits, err));
    RFT_TRY(read_group(weights, "group_size", &g->group_k, err));
    RFT_TRY(read_block(weights, "block_structure", &g->block_n, &g->block_k, err));
    out->n_groups++;
    return RFT_OK;
}

static rft_status read_groups(const json_t *config, rft__quant_config *out, rft_error *err) {
    json_t *groups = json_object_get(config, "config_groups"), *group;
    const char *name;
    json_object_foreach(groups, name, group) {
        const json_t *weights = rft__json_find(group, "weights");
        if (weights) {
            RFT_TRY(add_group(weights, out, err));
        }
    }
    return RFT_OK;
}

static rft_status check_method(const rft__quant_config *c, rft_error *err) {
    static const char *const known[] = {"gptq", "awq", "compressed-tensors", "fp8", "bitsandbytes", "mxfp4", "modelopt"};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (strcmp(c->method, known[i]) == 0) {
            return RFT_OK;
        }
    }
    RFT_FAIL(err, RFT_E_UNSUPPORTED,
             "quantization_config of method '%s': gptq, awq, compressed-tensors, fp8, bitsandbytes, mxfp4 and modelopt are read",
             c->method[0] ? c->method : "unnamed");
}

static rft_status read(const json_t *config, rft__quant_config *out, rft_error *err) {
    RFT_TRY(read_text(config, "quant_method", out->method, sizeof out->method, err));
    RFT_TRY(check_method(out, err));
    RFT_TRY(read_text(config, "version", out->version, sizeof out->version, err));
    RFT_TRY(read_text(config, "checkpoint_format", out->version, sizeof out->version, err));
    RFT_TRY(read_text(config, "format", out->version, sizeof out->version, err));
    if (rft__json_find(config, "bits")) {
        RFT_TRY(read_bits(config, "bits", &out->bits, err));
    }
    RFT_TRY(read_group(config, "group_size", &out->group_k, err));
    RFT_TRY(rft__json_bool(config, "sym", &out->symmetric, err));
    RFT_TRY(read_block(config, "weight_block_size", &out->block_n, &out->block_k, err));
    return read_groups(config, out, err);
}

static const rft__quant_config defaults = {.bits = 4, .group_k = 128, .symmetric = true, .block_n = 128, .block_k = 128};

rft_status rft__quant_config_read(const json_t *config, rft__quant_config *out, rft_error *err) {
    *out = defaults;
    return read(config, out, err);
}

rft_status rft__quant_config_file(const void *text, size_t size, rft__quant_config *out, rft_error *err) {
    json_t *root;
    RFT_TRY(rft__json_load("quantize_config.json", text, size, (size_t)1 << 20, &root, err));
    *out = defaults;
    memcpy(out->method, "gptq", sizeof "gptq");
    const rft_status status = read(root, out, err);
    json_decref(root);
    return status;
}
