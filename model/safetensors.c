/* SPDX-License-Identifier: Apache-2.0
 *
 * safetensors.c - reads and checks safetensors headers. See safetensors.h; layout in docs/formats/safetensors.md.
 *
 * All headers are parsed first, so that the table gets the room that they need, then each entry is checked and placed.
 */
#include "safetensors.h"

#include "base/error.h"
#include "base/printable.h"
#include "cursor.h"
#include "json_read.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HEAD = 8, MAX_DIMS = 16 };

#define METADATA "__metadata__"

static const struct {
    const char *name;
    rft_type type;
} dtypes[] = {
    {"F32", RFT_F32},
    {"F16", RFT_F16},
    {"BF16", RFT_BF16},
    {"F8_E4M3", RFT_E4M3},
    {"F8_E5M2", RFT_E5M2},
    {"F8_E8M0", RFT_E8M0},
    {"I8", RFT_I8},
    {"U8", RFT_U8},
    {"I32", RFT_I32},
    {"I64", (rft_type)(256 + 27)},
    {"I16", (rft_type)(256 + 25)},
    {"F64", (rft_type)(256 + 28)},
    {"F4", RFT_E2M1},
    {"F6_E2M3", RFT_E2M3},
    {"F6_E3M2", RFT_E3M2},
    {"BOOL", RFT_BOOL},
    {"U16", RFT_U16},
    {"U32", RFT_U32},
    {"U64", RFT_U64},
    {"C64", RFT_C64},
    {"F8_E4M3FNUZ", RFT_E4M3FNUZ},
    {"F8_E5M2FNUZ", RFT_E5M2FNUZ},
};

typedef struct reader { /* of one entry */
    const rft__shard *shard;
    const char *tensor;
    rft_error *err;
} reader;

static rft_status refuse(const reader *r, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* "FILE: tensor 'NAME' ..." */
static rft_status refuse(const reader *r, const char *format, ...) {
    char text[sizeof r->err->message], name[80];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    rft__copy_printable(name, sizeof name, r->tensor, strlen(r->tensor));
    return rft__error_set(r->err, RFT_E_ARG, 0, "%.60s: tensor '%s' %s", r->shard->name, name, text);
}

const char *rft__safetensors_dtype(rft_type type) {
    for (size_t i = 0; i < sizeof dtypes / sizeof dtypes[0]; i++) {
        if (dtypes[i].type == type) {
            return dtypes[i].name;
        }
    }
    return NULL;
}

/* ---- headers ---- */

bool rft__safetensors_begins(const unsigned char *bytes, size_t size) {
    return size > HEAD && bytes[HEAD] == '{' && rft__little_endian(bytes, HEAD) <= RFT_SAFETENSORS_MAX_HEADER;
}

static rft_status load_header(const rft__shard *s, json_t **out, rft_error *err) {
    if (s->size < HEAD) {
        RFT_FAIL(err, RFT_E_ARG, "%.80s: %zu bytes are less than the %d of a safetensors header's length", s->name, s->size,
                 HEAD);
    }
    const uint64_t length = rft__little_endian(s->bytes, HEAD);
    if (length > RFT_SAFETENSORS_MAX_HEADER || length > s->size - HEAD) {
        RFT_FAIL(err, RFT_E_ARG, "%.80s: a header of %" PRIu64 " bytes is over the limit of %zu or the file's end at %zu",
                 s->name, length, RFT_SAFETENSORS_MAX_HEADER, s->size);
    }
    return rft__json_load(s->name, s->bytes + HEAD, (size_t)length, RFT_SAFETENSORS_MAX_HEADER, out, err);
}

static const unsigned char *data_of(const rft__shard *s) { return s->bytes + HEAD + rft__little_endian(s->bytes, HEAD); }

static uint64_t data_bytes(const rft__shard *s) { return s->size - HEAD - rft__little_endian(s->bytes, HEAD); }

/* Adds what a header holds to the counts. */
static rft_status measure_header(const rft__shard *s, json_t *root, size_t *count, size_t *name_bytes, rft_error *err) {
    const char *name;
    json_t *entry;
    json_object_foreach(root, name, entry) {
        const reader r = {s, name, err};
        const size_t length = strlen(name);
        if (strcmp(name, METADATA) == 0) {
            continue;
        }
        if (!rft__is_printable(name, length)) {
            return refuse(&r, "has a control character in its name");
        }
        if (length == 0 || length >= RFT_SAFETENSORS_MAX_NAME) {
            return refuse(&r, "has a name of %zu bytes, not 1 to %d", length, RFT_SAFETENSORS_MAX_NAME - 1);
        }
        *count += 1;
        *name_bytes += length + 1;
    }
    return RFT_OK;
}

static rft_status check_metadata(const rft__shard *s, json_t *root, rft_error *err) {
    json_t *metadata = json_object_get(root, METADATA), *value;
    const char *key;
    if (metadata && !json_is_object(metadata)) {
        RFT_FAIL(err, RFT_E_ARG, "%.80s: " METADATA " is no object", s->name);
    }
    json_object_foreach(metadata, key, value) {
        if (!json_is_string(value)) {
            RFT_FAIL(err, RFT_E_ARG, "%.80s: a value of " METADATA " is not a string", s->name);
        }
    }
    return RFT_OK;
}

/* ---- one entry ---- */

static rft_status read_dtype(const reader *r, const json_t *entry, rft__tensor *t) {
    const char *name = json_string_value(json_object_get(entry, "dtype"));
    if (!name) {
        return refuse(r, "has no dtype, or one that is not a string");
    }
    for (size_t i = 0; i < sizeof dtypes / sizeof dtypes[0]; i++) {
        if (strcmp(dtypes[i].name, name) == 0) {
            t->format = rft__format_find(dtypes[i].type);
            return RFT_OK;
        }
    }
    char text[32];
    rft__copy_printable(text, sizeof text, name, strlen(name));
    return refuse(r, "has dtype '%s', which is not known", text);
}

/* A whole number >= 0 in an array. */
static bool element(const json_t *array, size_t index, int64_t *out) {
    const json_t *value = json_array_get(array, index);
    *out = json_integer_value(value);
    return json_is_integer(value) && *out >= 0;
}

static rft_status read_shape(const reader *r, const json_t *entry, rft__tensor *t) {
    const json_t *shape = json_object_get(entry, "shape");
    const size_t n = json_array_size(shape);
    if (!json_is_array(shape) || n > MAX_DIMS) {
        return refuse(r, "has no shape, or one of %zu dimensions (at most %d)", n, MAX_DIMS);
    }
    t->n_dims = (uint32_t)rft__min((int64_t)n, RFT_TENSOR_MAX_DIMS);
    for (size_t i = 0; i < RFT_TENSOR_MAX_DIMS; i++) {
        t->dims[i] = 1;
    }
    for (size_t i = 0; i < n; i++) {
        int64_t dim, *into = &t->dims[i < RFT_TENSOR_MAX_DIMS ? i : RFT_TENSOR_MAX_DIMS - 1];
        if (!element(shape, n - 1 - i, &dim) || rft__mul_overflows(*into, dim, into)) {
            return refuse(r, "has dimension %zu = %" PRId64 ": not a whole number >= 0, or too large", n - 1 - i, dim);
        }
    }
    if (rft__mul_overflows(t->dims[1], t->dims[2], &t->rows) || rft__mul_overflows(t->rows, t->dims[3], &t->rows)) {
        return refuse(r, "has a shape whose product is over 2^63 - 1");
    }
    return RFT_OK;
}

static rft_status read_offsets(const reader *r, const json_t *entry, rft__tensor *t) {
    const json_t *offsets = json_object_get(entry, "data_offsets");
    const uint64_t room = data_bytes(r->shard);
    int64_t begin = 0, end = 0, row = 0;
    if (json_array_size(offsets) != 2 || !element(offsets, 0, &begin) || !element(offsets, 1, &end)) {
        return refuse(r, "has no data_offsets of two whole numbers >= 0");
    }
    if (end < begin || (uint64_t)end > room) {
        return refuse(r, "has data_offsets [%" PRId64 ", %" PRId64 "], not ascending within the %" PRIu64 " bytes of data", begin,
                      end, room);
    }
    const int64_t block = t->format->block_elements;
    if (t->dims[0] % block != 0 || rft__mul_overflows(t->dims[0] / block, t->format->block_bytes, &row) ||
        rft__mul_overflows(row, t->rows, &t->bytes) || t->bytes != end - begin) {
        return refuse(r,
                      "has %" PRId64 " bytes at data_offsets [%" PRId64 ", %" PRId64 "]; its %" PRId64 " rows of %" PRId64
                      " %s take %" PRId64 " a row",
                      end - begin, begin, end, t->rows, t->dims[0], t->format->name, row);
    }
    t->offset = (uint64_t)begin;
    t->data = data_of(r->shard) + begin;
    return RFT_OK;
}

static rft_status read_entry(const reader *r, const json_t *entry, rft__tensor *t) {
    if (!json_is_object(entry)) {
        return refuse(r, "is described by no object");
    }
    RFT_TRY(read_dtype(r, entry, t));
    RFT_TRY(read_shape(r, entry, t));
    return read_offsets(r, entry, t);
}

/* ---- one file ---- */

static int compare_places(const void *a, const void *b) {
    const rft__tensor *const *x = a, *const *y = b;
    const uint64_t x0 = (*x)->offset, y0 = (*y)->offset;
    return x0 != y0 ? (x0 > y0) - (x0 < y0) : ((*x)->bytes > (*y)->bytes) - ((*x)->bytes < (*y)->bytes);
}

/* Tensors first .. last-1 lie end to end over all the data. `order` is room for as many pointers. */
static rft_status check_cover(const rft__shard *s, const rft__tensor *first, size_t count, const rft__tensor **order,
                              rft_error *err) {
    uint64_t end = 0;
    for (size_t i = 0; i < count; i++) {
        order[i] = first + i;
    }
    if (count > 0) {
        qsort(order, count, sizeof *order, compare_places);
    }
    for (size_t i = 0; i < count; i++) {
        const reader r = {s, order[i]->name, err};
        if (order[i]->offset != end) {
            return refuse(&r, "begins at offset %" PRIu64 ", but the one before it ends at %" PRIu64 ": %s", order[i]->offset,
                          end, order[i]->offset < end ? "they overlap" : "a hole");
        }
        end += (uint64_t)order[i]->bytes;
    }
    if (end != data_bytes(s)) {
        RFT_FAIL(err, RFT_E_ARG, "%.80s: the tensors end at %" PRIu64 ", the file holds %" PRIu64 " bytes of data", s->name, end,
                 data_bytes(s));
    }
    return RFT_OK;
}

static rft_status fill_from(const rft__shard *s, json_t *root, rft__tensors *out, size_t *at, rft_error *err) {
    const size_t first = *at;
    const char *name;
    json_t *entry;
    RFT_TRY(check_metadata(s, root, err));
    json_object_foreach(root, name, entry) {
        if (strcmp(name, METADATA) != 0) {
            rft__tensor *t = &out->list[(*at)++];
            const reader r = {s, name, err};
            RFT_TRY(read_entry(&r, entry, t));
            t->name = rft__tensors_keep_name(out, name, strlen(name));
        }
    }
    return check_cover(s, out->list + first, *at - first, out->by_name + first, err);
}

/* ---- all files ---- */

static rft_status fill(const rft__allocator *a, const rft__shard *shards, size_t count, json_t **roots, rft__tensors *out,
                       rft_error *err) {
    size_t tensors = 0, name_bytes = 0, at = 0;
    for (size_t i = 0; i < count; i++) {
        RFT_TRY(load_header(&shards[i], &roots[i], err));
        RFT_TRY(measure_header(&shards[i], roots[i], &tensors, &name_bytes, err));
    }
    RFT_TRY(rft__tensors_reserve(a, tensors, name_bytes, out, err));
    for (size_t i = 0; i < count; i++) {
        RFT_TRY(fill_from(&shards[i], roots[i], out, &at, err));
    }
    return rft__tensors_sort(out, err);
}

rft_status rft__safetensors_parse(const rft__allocator *a, const rft__shard *shards, size_t count, rft__tensors *out,
                                  rft_error *err) {
    *out = (rft__tensors){0};
    json_t **roots = rft__alloc(a, count * sizeof *roots, sizeof(void *));
    if (!roots) {
        RFT_FAIL(err, RFT_E_NOMEM, "no memory for the headers of %zu files", count);
    }
    const rft_status status = fill(a, shards, count, roots, out, err);
    for (size_t i = 0; i < count; i++) {
        json_decref(roots[i]);
    }
    rft__release(a, roots, count * sizeof *roots);
    if (status != RFT_OK) {
        rft__tensors_free(a, out);
    }
    return status;
}
