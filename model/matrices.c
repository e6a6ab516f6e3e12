/* SPDX-License-Identifier: Apache-2.0
 *
 * matrices.c - lists matrices, and makes one row of those alike. See matrices.h.
 */
#include "matrices.h"

#include "base/error.h"
#include "import.h"

#include <stdlib.h>
#include <string.h>

/* All of these rows are this product: whatever the phase, every token meets them. */
static const rft__product unknown = {.name = "unknown", .where = RFT_IN_BLOCKS};

/* Masks and positions are stored as whole numbers too wide for codes. */
bool rft__matrix_can_be_weight(const rft__tensor *t) {
    static const char *const never[] = {"bool", "u16", "u32", "u64", "i16", "i32", "i64", "c64"};
    bool good = t->rows > 0 && t->dims[0] > 0;
    for (size_t i = 0; i < sizeof never / sizeof never[0] && !t->import; i++) {
        good = good && strcmp(t->format->name, never[i]) != 0;
    }
    return good;
}

char *rft__write_pattern(const char *name, size_t length, const char *separators, char *out) {
    for (size_t at = 0; at <= length; at++) {
        size_t end = at, digits = 0;
        for (; end < length && !strchr(separators, name[end]); end++) {
            digits += name[end] >= '0' && name[end] <= '9';
        }
        if (end > at && digits == end - at) {
            *out++ = '*';
        } else {
            memcpy(out, name + at, end - at);
            out += end - at;
        }
        *out++ = end < length ? name[end] : 0;
        at = end;
    }
    return out;
}

/* 0: they are one row. */
static int compare_kinds(const rft__layer *x, const rft__layer *y) {
    const int names = strcmp(x->name, y->name);
    int order = names ? names : strcmp(x->scheme, y->scheme);
    const int64_t xs[] = {(int64_t)x->type, x->n, x->k, x->bytes, x->order, x->x_order, x->bias, x->product->tail};
    const int64_t ys[] = {(int64_t)y->type, y->n, y->k, y->bytes, y->order, y->x_order, y->bias, y->product->tail};
    for (size_t i = 0; i < sizeof xs / sizeof xs[0] && order == 0; i++) {
        order = (xs[i] > ys[i]) - (xs[i] < ys[i]);
    }
    return order;
}

static int compare_places(const void *a, const void *b) {
    const rft__layer *x = a, *y = b;
    return (x->place > y->place) - (x->place < y->place);
}

static int compare_rows(const void *a, const void *b) {
    const int kinds = compare_kinds(a, b);
    return kinds ? kinds : compare_places(a, b);
}

void rft__layers_merge(rft__layers *layers) {
    rft__layer *rows = layers->rows;
    int64_t kept = 0;
    for (int64_t i = 0; i < layers->count; i++) {
        rows[i].place = i;
    }
    qsort(rows, (size_t)layers->count, sizeof *rows, compare_rows);
    for (int64_t i = 0; i < layers->count; i++) {
        if (kept > 0 && compare_kinds(&rows[kept - 1], &rows[i]) == 0) {
            rows[kept - 1].count += rows[i].count;
        } else {
            rows[kept++] = rows[i];
        }
    }
    layers->count = kept;
    qsort(rows, (size_t)kept, sizeof *rows, compare_places);
}

/* Of three dimensions the outermost counts matrices; where the others are small it is a convolution, whose innermost ones are. */
static bool is_matrix(const rft__tensor *t) {
    enum { LEAST = 32 };
    const bool stack = t->n_dims == 3 && t->dims[0] >= LEAST && t->dims[1] >= LEAST && t->dims[2] <= RFT_MAX_EXPERTS;
    return (t->n_dims == 2 || stack) && rft__matrix_can_be_weight(t);
}

static rft__layer layer_of(const rft__tensors *tensors, const rft__tensor *t, const char *name) {
    return (rft__layer){.product = &unknown, .name = name, .type = t->format->type, .order = RFT_K_CONTIGUOUS,
                        .count = t->dims[2],
                        .n = t->dims[1], .k = t->dims[0], .bytes = t->bytes / t->dims[2], .tensor = t - tensors->list,
                        .bias_tensor = -1, .scheme = t->import ? t->import->text : "", .unknown = true};
}

static rft_status list_matrices(const rft__tensors *tensors, rft__layers *out, rft_error *err) {
    char *name = out->names;
    for (size_t i = 0; i < tensors->count; i++) {
        const rft__tensor *t = &tensors->list[i];
        if (is_matrix(t)) {
            const rft__layer layer = layer_of(tensors, t, name);
            name = rft__write_pattern(t->name, strlen(t->name), ".", name);
            RFT_TRY(rft__layers_count(out, &layer, err));
            out->rows[out->count++] = layer;
        }
    }
    if (out->count == 0) {
        RFT_FAIL(err, RFT_E_UNSUPPORTED, "the architecture is not known, and no tensor is a matrix of weights");
    }
    rft__layers_merge(out);
    return RFT_OK;
}

rft_status rft__layers_from_matrices(const rft__allocator *a, const rft__tensors *tensors, rft__layers *out, rft_error *err) {
    RFT_TRY(rft__layers_reserve(a, (int64_t)tensors->count, tensors->names_used, out, err));
    const rft_status status = list_matrices(tensors, out, err);
    if (status != RFT_OK) {
        rft__layers_free(a, out);
    }
    return status;
}
