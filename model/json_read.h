/* SPDX-License-Identifier: Apache-2.0
 *
 * json_read.h - JSON of a model folder as values of C, with the key in every complaint.
 *
 * Called by the readers of config.json, of safetensors headers and of their index; jansson parses. A key that is absent or null
 * leaves *out alone.
 */
#ifndef RFT_MODEL_JSON_READ_H
#define RFT_MODEL_JSON_READ_H

#include "rooftile.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* An object without duplicate keys, which the caller drops; more than `cap` bytes are refused. what: the file, for messages. */
rft_status rft__json_load(const char *what, const void *text, size_t size, size_t cap, json_t **out, rft_error *err);

const json_t *rft__json_find(const json_t *root, const char *key); /* NULL: absent or null */
/* A whole number >= 0. */
rft_status rft__json_size(const json_t *root, const char *key, bool required, int64_t *out, rft_error *err);
rft_status rft__json_number(const json_t *root, const char *key, double *out, rft_error *err);
rft_status rft__json_bool(const json_t *root, const char *key, bool *out, rft_error *err);
/* The text lives as long as root. */
rft_status rft__json_string(const json_t *root, const char *key, const char **out, rft_error *err);

#endif
