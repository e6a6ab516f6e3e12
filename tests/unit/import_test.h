/* SPDX-License-Identifier: Apache-2.0
 *
 * import_test.h - a checkpoint in memory whose quantised weights are imported and decoded.
 *
 * Used by test_import_int.c and test_import_float.c, which include cmocka first.
 */
#ifndef RFT_TESTS_IMPORT_TEST_H
#define RFT_TESTS_IMPORT_TEST_H

#include "import.h"
#include "problem/stored.h"
#include "safetensors_builder.h"

#include <math.h>
#include <stdlib.h>

static st_builder file;
static rft_error err;
static rft__tensors stored;
static rft__imported imported;

static inline void begin(void) { st_begin(&file); }

static inline void *add(const char *name, const char *dtype, const char *shape, size_t bytes) {
    return st_add(&file, name, dtype, shape, bytes);
}

static inline void add_words(const char *name, const char *shape, const uint32_t *words, size_t count) {
    memcpy(add(name, "I32", shape, 4 * count), words, 4 * count);
}

static inline void add_bytes(const char *name, const char *dtype, const char *shape, const void *bytes, size_t count) {
    memcpy(add(name, dtype, shape, count), bytes, count);
}

static inline void add_floats(const char *name, const char *shape, const float *values, size_t count) {
    memcpy(add(name, "F32", shape, 4 * count), values, 4 * count);
}

/* Imports what was added, under a quantization_config; the result stays in `imported`. */
static inline rft_status import_as(const char *config_text) {
    const rft__allocator a = rft__allocator_default();
    rft__quant_config config;
    json_t *json = json_loads(config_text, 0, NULL);
    assert_non_null(json);
    memset(&err, 0, sizeof err);
    st_end(&file);
    const rft__shard shard = {"x", file.bytes, file.size};
    rft_status status = rft__safetensors_parse(&a, &shard, 1, &stored, &err);
    assert_int_equal(status, RFT_OK);
    status = rft__quant_config_read(json, &config, &err);
    json_decref(json);
    if (status == RFT_OK) {
        status = rft__import_all(&a, &stored, &config, &imported, &err);
    }
    if (status != RFT_OK) {
        rft__tensors_free(&a, &stored);
        assert_true(err.message[0] != 0 && err.status == status);
    }
    return status;
}

static inline void drop(void) {
    const rft__allocator a = rft__allocator_default();
    rft__import_free(&a, &imported);
    rft__tensors_free(&a, &stored);
}

static inline void import_good(const char *config_text) {
    if (import_as(config_text) != RFT_OK) {
        fail_msg("%s", err.message);
    }
}

static inline void assert_refused(const char *config_text, rft_status want, const char *part) {
    const rft_status got = import_as(config_text);
    if (got != want || !strstr(err.message, part)) {
        fail_msg("status %d, '%s'; expected %d and '%s'", got, err.message, want, part);
    }
}

static inline const rft__tensor *tensor_named(const char *name) {
    const int64_t at = rft__tensors_find(&imported.tensors, name);
    if (at < 0) {
        fail_msg("no tensor '%s'", name);
    }
    return &imported.tensors.list[at];
}

/* The low-bit form, where there is one, means the same numbers. Its element type, or 0. */
static inline rft_type assert_low_bit(const rft__tensor *t, const float *want) {
    const rft__allocator a = rft__allocator_default();
    rft_weight_desc d;
    rft__matrix w;
    if (rft__import_describe(&a, t, &d, &err) != RFT_OK) {
        assert_int_equal(err.status, RFT_E_UNSUPPORTED);
        return (rft_type)0;
    }
    assert_int_equal(rft__matrix_make(&w, &d, "d", &err), RFT_OK);
    assert_true(w.n * w.batch == t->rows && w.k == t->dims[0]);
    const size_t weights = (size_t)(t->rows * (w.k + 1)); /* enough for scales of f32 for each weight, too */
    rft_weight_parts p = rft_weight_parts_init();
    float *const row = malloc((size_t)w.k * sizeof *row), *const global = malloc((size_t)w.batch * sizeof *global);
    p.q = malloc(weights);
    p.scale = malloc(4 * weights);
    p.zero = malloc(weights);
    p.global_scale = global;
    p.g_idx = malloc((size_t)(w.batch * w.k) * sizeof *p.g_idx);
    rft__import_read(t->import, &d, &p);
    const rft__stored_w from = {p.q, p.scale, p.zero, global, p.g_idx};
    assert_int_equal(rft__stored_check_groups(&w, &from, &err), RFT_OK);
    for (int64_t i = 0; i < t->rows * w.k; i++) {
        if (i % w.k == 0) {
            rft__stored_row(&w, &from, i / w.k / w.n, i / w.k % w.n, false, row);
        }
        if (row[i % w.k] != want[i]) {
            fail_msg("%s in low-bit form: [%d][%d] is %.9g, not %.9g", t->name, (int)(i / w.k), (int)(i % w.k),
                     (double)row[i % w.k], (double)want[i]);
        }
    }
    free(p.q), free(p.scale), free(p.zero), free(p.g_idx), free(global), free(row);
    return d.elem;
}

/* The element type of the low-bit form that assert_weights met last, or 0. */
static rft_type low_bit;

/* want[n][k]; a row is also read in two pieces. */
static inline void assert_weights(const char *name, const char *scheme, int64_t n, int64_t k, const float *want) {
    const rft__tensor *t = tensor_named(name);
    float *row = malloc((size_t)k * sizeof *row);
    assert_non_null(row);
    assert_non_null(t->import);
    assert_string_equal(t->import->text, scheme);
    assert_true(t->rows == n && t->dims[0] == k && t->data == NULL);
    for (int64_t r = 0; r < n; r++) {
        t->import->decode(t->import, r, 0, k / 3, row);
        t->import->decode(t->import, r, k / 3, k - k / 3, row + k / 3);
        for (int64_t i = 0; i < k; i++) {
            if (row[i] != want[r * k + i]) {
                fail_msg("%s[%d][%d] is %.9g, not %.9g", name, (int)r, (int)i, (double)row[i], (double)want[r * k + i]);
            }
        }
    }
    free(row);
    low_bit = assert_low_bit(t, want);
}

#endif
