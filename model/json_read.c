/* SPDX-License-Identifier: Apache-2.0
 *
 * json_read.c - values of JSON objects, checked. See json_read.h.
 */
#include "json_read.h"

#include "base/error.h"
#include "base/json.h"
#include "base/printable.h"

#include <string.h>

static rft_status report_json(const char *what, const json_error_t *json, rft_error *err) {
    char text[JSON_ERROR_TEXT_LENGTH];
    rft__copy_printable(text, sizeof text, json->text, strlen(json->text));
    RFT_FAIL(err, RFT_E_ARG, "%.60s%sJSON line %d, column %d: %.110s", what, *what ? ": " : "", json->line, json->column, text);
}

rft_status rft__json_load(const char *what, const void *text, size_t size, size_t cap, json_t **out, rft_error *err) {
    json_error_t json;
    if (size > cap) {
        RFT_FAIL(err, RFT_E_ARG, "%s of %zu bytes is over the limit of %zu", *what ? what : "a config.json", size, cap);
    }
    bool no_memory;
    json_t *root = rft__json_parse(text, size, &json, &no_memory);
    if (no_memory) {
        RFT_FAIL(err, RFT_E_NOMEM, "%s%sno memory to read the JSON", what, *what ? ": " : "");
    }
    if (!root) {
        return report_json(what, &json, err);
    }
    if (!json_is_object(root)) {
        json_decref(root);
        RFT_FAIL(err, RFT_E_ARG, "%s%sthe JSON is no object", what, *what ? ": " : "");
    }
    *out = root;
    return RFT_OK;
}

const json_t *rft__json_find(const json_t *root, const char *key) {
    const json_t *value = json_object_get(root, key);
    return json_is_null(value) ? NULL : value;
}

rft_status rft__json_size(const json_t *root, const char *key, bool required, int64_t *out, rft_error *err) {
    const json_t *value = rft__json_find(root, key);
    if (!value) {
        return required ? rft__error_set(err, RFT_E_ARG, 0, "the key '%s' is missing", key) : RFT_OK;
    }
    if (!json_is_integer(value)) {
        RFT_FAIL(err, RFT_E_ARG, "the value of '%s' is not a whole number", key);
    }
    const json_int_t number = json_integer_value(value);
    if (number < 0) {
        RFT_FAIL(err, RFT_E_ARG, "%s = %" JSON_INTEGER_FORMAT " is negative", key, number);
    }
    *out = number;
    return RFT_OK;
}

rft_status rft__json_number(const json_t *root, const char *key, double *out, rft_error *err) {
    const json_t *value = rft__json_find(root, key);
    if (value && !json_is_number(value)) {
        RFT_FAIL(err, RFT_E_ARG, "the value of '%s' is not a number", key);
    }
    *out = value ? json_number_value(value) : *out;
    return RFT_OK;
}

rft_status rft__json_bool(const json_t *root, const char *key, bool *out, rft_error *err) {
    const json_t *value = rft__json_find(root, key);
    if (value && !json_is_boolean(value)) {
        RFT_FAIL(err, RFT_E_ARG, "the value of '%s' is neither true nor false", key);
    }
    *out = value ? json_is_true(value) : *out;
    return RFT_OK;
}

rft_status rft__json_string(const json_t *root, const char *key, const char **out, rft_error *err) {
    const json_t *value = rft__json_find(root, key);
    if (value && !json_is_string(value)) {
        RFT_FAIL(err, RFT_E_ARG, "the value of '%s' is not a string", key);
    }
    *out = value ? json_string_value(value) : *out;
    return RFT_OK;
}
