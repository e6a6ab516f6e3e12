/* SPDX-License-Identifier: Apache-2.0
 *
 * machine_json.c - machine profiles as JSON files. Called through rooftile_analysis.h and at context creation.
 *
 *     { "rooftile_profile": 1, "name": ..., "device": ..., "isa": ..., "date": ..., "source": "measured" or "spec",
 *       "threads": [1, 2], "levels": [{"name", "bytes", "read_gbps": [..], "copy_gbps": [..]}, ..],
 *       "peaks": [{"isa", "op", "type", "gflops": [..]}, ..] }
 *
 * A profile is hostile input: the reader checks shapes and types here, values through rft__machine_check. Keys that it
 * does not know are skipped; a change of meaning raises the version. Invariant: what was saved loads to the same bits.
 */
#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/sized.h"
#include "base/type.h"
#include "roofline/machine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PROFILE_VERSION 1
#define MAX_BYTES       ((size_t)1 << 20)

/* ---- read ---- */

typedef struct reader {
    const char *path;
    const json_t *object; /* whose members are read */
    char prefix[24];      /* "levels[2].", or empty */
    rft_error *err;
} reader;

static void describe(const json_t *value, char text[64]) {
    static const char *const names[] = {"an object", "an array", "a string", "an integer", "a number", "true", "false", "null"};
    if (json_is_string(value)) {
        snprintf(text, 64, "\"%.40s\"", json_string_value(value));
    } else if (json_is_number(value)) {
        snprintf(text, 64, "%.17g", json_number_value(value));
    } else {
        snprintf(text, 64, "%s", names[json_typeof(value)]);
    }
}

static rft_status bad_value(const reader *r, const char *key, const json_t *value, const char *rule) {
    if (value == NULL) {
        RFT_FAIL(r->err, RFT_E_IO, "%s%s is missing; %s is needed, in %s", r->prefix, key, rule, r->path);
    }
    char text[64];
    describe(value, text);
    RFT_FAIL(r->err, RFT_E_IO, "%s%s = %s: %s is needed, in %s", r->prefix, key, text, rule, r->path);
}

static rft_status read_text(const reader *r, const char *key, char *text, size_t cap) {
    const json_t *value = json_object_get(r->object, key);
    if (!json_is_string(value) || json_string_length(value) >= cap) {
        char rule[48];
        snprintf(rule, sizeof rule, "a string of at most %zu bytes", cap - 1);
        return bad_value(r, key, value, rule);
    }
    memcpy(text, json_string_value(value), json_string_length(value) + 1);
    return RFT_OK;
}

static rft_status to_whole(const reader *r, const char *key, const json_t *value, json_int_t max, json_int_t *out) {
    *out = json_integer_value(value);
    if (!json_is_integer(value) || *out < 0 || *out > max) {
        char rule[48];
        snprintf(rule, sizeof rule, "a whole number from 0 to %lld", (long long)max);
        return bad_value(r, key, value, rule);
    }
    return RFT_OK;
}

/* An array of min..max entries. */
static rft_status read_array(const reader *r, const char *key, size_t min, size_t max, const json_t **array) {
    *array = json_object_get(r->object, key);
    const size_t size = json_array_size(*array);
    if (!json_is_array(*array)) {
        return bad_value(r, key, *array, "an array");
    }
    if (size < min || size > max) {
        RFT_FAIL(r->err, RFT_E_IO, "%s%s: %zu entries, %zu to %zu are allowed, in %s", r->prefix, key, size, min, max, r->path);
    }
    return RFT_OK;
}

/* One roof for each thread count. */
static rft_status read_roofs(const reader *r, const char *key, uint32_t n, double *roofs) {
    const json_t *array;
    RFT_TRY(read_array(r, key, n, n, &array));
    for (uint32_t i = 0; i < n; i++) {
        const json_t *value = json_array_get(array, i);
        if (!json_is_number(value)) {
            return bad_value(r, key, value, "an array of numbers");
        }
        roofs[i] = json_number_value(value);
    }
    return RFT_OK;
}

static rft_status read_optional(const reader *r, const char *key, double *number) {
    const json_t *value = json_object_get(r->object, key);
    *number = value != NULL ? json_number_value(value) : 0.0;
    return value == NULL || json_is_number(value) ? RFT_OK : bad_value(r, key, value, "a number");
}

static rft_status read_counts(const reader *r, rft_machine *mach) {
    const json_t *array;
    RFT_TRY(read_array(r, "threads", 1, RFT_MACHINE_COUNTS, &array));
    mach->n_counts = (uint32_t)json_array_size(array);
    for (uint32_t i = 0; i < mach->n_counts; i++) {
        json_int_t count;
        RFT_TRY(to_whole(r, "threads", json_array_get(array, i), INT32_MAX, &count));
        mach->counts[i] = (uint32_t)count;
    }
    return RFT_OK;
}

static rft_status read_level(const reader *r, rft_machine *mach, uint32_t i) {
    rft_machine_level *level = &mach->levels[i];
    json_int_t bytes;
    RFT_TRY(read_text(r, "name", level->name, sizeof level->name));
    RFT_TRY(to_whole(r, "bytes", json_object_get(r->object, "bytes"), INT64_MAX, &bytes));
    level->bytes = (uint64_t)bytes;
    RFT_TRY(read_roofs(r, "read_gbps", mach->n_counts, level->read_gbps));
    return read_roofs(r, "copy_gbps", mach->n_counts, level->copy_gbps);
}

static rft_status read_type(const reader *r, const char *key, rft_type *type) {
    const json_t *value = json_object_get(r->object, key);
    for (int i = RFT_F32; i <= RFT_I32 && json_is_string(value); i++) {
        if (strcmp(rft__type_name((rft_type)i), json_string_value(value)) == 0) {
            *type = (rft_type)i;
            return RFT_OK;
        }
    }
    return bad_value(r, key, value, "the name of an element type");
}

static rft_status read_peak(const reader *r, rft_machine *mach, uint32_t i) {
    rft_machine_peak *peak = &mach->peaks[i];
    RFT_TRY(read_text(r, "isa", peak->isa, sizeof peak->isa));
    RFT_TRY(read_text(r, "op", peak->op, sizeof peak->op));
    RFT_TRY(read_type(r, "type", &peak->type));
    return read_roofs(r, "gflops", mach->n_counts, peak->gflops);
}

/* Each entry of a list of objects. */
static rft_status read_list(const reader *r, const char *key, uint32_t max, rft_machine *mach, uint32_t *count,
                            rft_status (*read_entry)(const reader *, rft_machine *, uint32_t)) {
    const json_t *array;
    RFT_TRY(read_array(r, key, 1, max, &array));
    *count = (uint32_t)json_array_size(array);
    for (uint32_t i = 0; i < *count; i++) {
        reader entry = {.path = r->path, .object = json_array_get(array, i), .err = r->err};
        snprintf(entry.prefix, sizeof entry.prefix, "%s[%u].", key, i);
        if (!json_is_object(entry.object)) {
            return bad_value(r, key, entry.object, "an array of objects");
        }
        RFT_TRY(read_entry(&entry, mach, i));
    }
    return RFT_OK;
}

static rft_status read_version(const reader *r) {
    const json_t *value = json_object_get(r->object, "rooftile_profile");
    if (!json_is_integer(value) || json_integer_value(value) != PROFILE_VERSION) {
        return bad_value(r, "rooftile_profile", value, "version 1");
    }
    return RFT_OK;
}

static rft_status read_machine(const reader *r, rft_machine *mach) {
    if (!json_is_object(r->object)) {
        RFT_FAIL(r->err, RFT_E_IO, "%s: a profile is a JSON object", r->path);
    }
    RFT_TRY(read_version(r));
    RFT_TRY(read_text(r, "name", mach->name, sizeof mach->name));
    RFT_TRY(read_text(r, "device", mach->device, sizeof mach->device));
    RFT_TRY(read_text(r, "isa", mach->isa, sizeof mach->isa));
    RFT_TRY(read_text(r, "date", mach->date, sizeof mach->date));
    RFT_TRY(read_text(r, "source", mach->source, sizeof mach->source));
    RFT_TRY(read_counts(r, mach));
    RFT_TRY(read_list(r, "levels", RFT_MACHINE_LEVELS, mach, &mach->n_levels, read_level));
    RFT_TRY(read_list(r, "peaks", RFT_MACHINE_PEAKS, mach, &mach->n_peaks, read_peak));
    RFT_TRY(read_optional(r, "launch_us", &mach->launch_us));
    RFT_TRY(read_optional(r, "enqueue_us", &mach->enqueue_us));
    return rft__machine_check(mach, r->path, RFT_E_IO, r->err);
}

rft_status rft__machine_parse(const char *text, size_t size, const char *where, rft_machine *mach, rft_error *err) {
    *mach = (rft_machine){.struct_size = (uint32_t)sizeof *mach};
    json_error_t at;
    bool no_memory;
    json_t *root = rft__json_parse(text, size, &at, &no_memory);
    if (no_memory) {
        RFT_FAIL(err, RFT_E_NOMEM, "no memory to read %s", where);
    }
    if (root == NULL) {
        RFT_FAIL(err, RFT_E_IO, "line %d, column %d: %.100s, in %s", at.line, at.column, at.text, where);
    }
    const rft_status status = read_machine(&(reader){.path = where, .object = root, .err = err}, mach);
    json_decref(root);
    return status;
}

static rft_status load(const char *path, rft_machine *mach, rft_error *err) {
    const rft__allocator heap = rft__allocator_default();
    char *text;
    size_t size;
    RFT_TRY(rft__file_read(&heap, path, MAX_BYTES, &text, &size, err));
    const rft_status status = rft__machine_parse(text, size, path, mach, err);
    rft__release(&heap, text, size + 1);
    return status;
}

/* ---- write ---- */

static json_t *roofs_json(const double *roofs, uint32_t n) {
    json_t *array = json_array();
    for (uint32_t i = 0; i < n; i++) {
        json_array_append_new(array, json_real(roofs[i]));
    }
    return array;
}

static json_t *levels_json(const rft_machine *mach) {
    json_t *array = json_array();
    for (uint32_t i = 0; i < mach->n_levels; i++) {
        const rft_machine_level *level = &mach->levels[i];
        json_array_append_new(array, json_pack("{s:s, s:I, s:o, s:o}", "name", level->name, "bytes", (json_int_t)level->bytes,
                                               "read_gbps", roofs_json(level->read_gbps, mach->n_counts), "copy_gbps",
                                               roofs_json(level->copy_gbps, mach->n_counts)));
    }
    return array;
}

static json_t *peaks_json(const rft_machine *mach) {
    json_t *array = json_array();
    for (uint32_t i = 0; i < mach->n_peaks; i++) {
        const rft_machine_peak *peak = &mach->peaks[i];
        json_array_append_new(array, json_pack("{s:s, s:s, s:s, s:o}", "isa", peak->isa, "op", peak->op, "type",
                                               rft__type_name(peak->type), "gflops", roofs_json(peak->gflops, mach->n_counts)));
    }
    return array;
}

static json_t *counts_json(const rft_machine *mach) {
    json_t *array = json_array();
    for (uint32_t i = 0; i < mach->n_counts; i++) {
        json_array_append_new(array, json_integer(mach->counts[i]));
    }
    return array;
}

/* An entry with a text that is not UTF-8 is missing from its array. */
static bool complete(const json_t *root, const rft_machine *mach) {
    return json_array_size(json_object_get(root, "threads")) == mach->n_counts &&
           json_array_size(json_object_get(root, "levels")) == mach->n_levels &&
           json_array_size(json_object_get(root, "peaks")) == mach->n_peaks;
}

/* The fewest digits at which every roof reads back as it is: 17 always do, but 32.6 is nicer than 32.600000000000001. */
static int digits_for(const double *roofs, uint32_t n, int digits) {
    char text[40];
    for (uint32_t i = 0; i < n; i++) {
        while (digits < 17 && (snprintf(text, sizeof text, "%.*g", digits, roofs[i]), strtod(text, NULL) != roofs[i])) {
            digits++;
        }
    }
    return digits;
}

static int digits_of(const rft_machine *mach) {
    int digits = 4;
    for (uint32_t i = 0; i < mach->n_levels; i++) {
        digits = digits_for(mach->levels[i].read_gbps, mach->n_counts, digits);
        digits = digits_for(mach->levels[i].copy_gbps, mach->n_counts, digits);
    }
    for (uint32_t i = 0; i < mach->n_peaks; i++) {
        digits = digits_for(mach->peaks[i].gflops, mach->n_counts, digits);
    }
    digits = digits_for(&mach->launch_us, 1, digits);
    return digits_for(&mach->enqueue_us, 1, digits);
}

static void add_optional(json_t *root, const char *key, double value) {
    if (value > 0.0) {
        json_object_set_new(root, key, json_real(value));
    }
}

/* NULL: a text is not UTF-8, or there is no memory. */
static json_t *machine_tree(const rft_machine *mach) {
    json_t *root = json_pack("{s:i, s:s, s:s, s:s, s:s, s:s, s:o, s:o, s:o}", "rooftile_profile", PROFILE_VERSION, "name",
                             mach->name, "device", mach->device, "isa", mach->isa, "date", mach->date, "source", mach->source,
                             "threads", counts_json(mach), "levels", levels_json(mach), "peaks", peaks_json(mach));
    if (!complete(root, mach)) {
        json_decref(root);
        return NULL;
    }
    add_optional(root, "launch_us", mach->launch_us);
    add_optional(root, "enqueue_us", mach->enqueue_us);
    return root;
}

static rft_status save(const rft_machine *mach, const char *path, rft_error *err) {
    const size_t flags = JSON_INDENT(2) | JSON_REAL_PRECISION((size_t)digits_of(mach));
    bool no_memory;
    rft__json_begin();
    char *text = rft__json_end(machine_tree(mach), flags, &no_memory);
    if (no_memory) {
        RFT_FAIL(err, RFT_E_NOMEM, "no memory to write %s", path);
    }
    if (text == NULL) {
        RFT_FAIL(err, RFT_E_ARG, "machine: a text in it is not UTF-8, so it cannot be written to %s", path);
    }
    const size_t length = strlen(text);
    text[length] = '\n'; /* in place of the terminator, which the file does not need */
    const rft_status status = rft__file_replace(path, text, length + 1, err);
    free(text);
    return status;
}

rft_status rft_machine_load(const char *path, rft_machine *machine, rft_error *err) {
    if (path == NULL) {
        RFT_FAIL(err, RFT_E_ARG, "path is NULL");
    }
    RFT_TRY(rft__sized_check(machine, "machine", err));
    rft_machine own;
    RFT_TRY(load(path, &own, err));
    rft__sized_write(machine, &own, sizeof own);
    return RFT_OK;
}

rft_status rft_machine_save(const rft_machine *machine, const char *path, rft_error *err) {
    if (path == NULL) {
        RFT_FAIL(err, RFT_E_ARG, "path is NULL");
    }
    rft_machine own;
    RFT_TRY(rft__sized_read(&own, sizeof own, machine, "machine", err));
    RFT_TRY(rft__machine_check(&own, "machine", RFT_E_ARG, err));
    return save(&own, path, err);
}
