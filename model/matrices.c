/* SPDX-License-Identifier: Apache-2.0
 *
 * matrices.c - lists matrices by sorting them: by name without numbers, then by what else tells rows apart. See matrices.h.
 */
#include "matrices.h"

#include "base/error.h"
#include "import.h"

#include <stdlib.h>
#include <string.h>

/* All of these rows are this product: whatever the phase, every token meets them. */
static const rft__product unknown = {.name = "unknown", .where = RFT_IN_BLOCKS};

typedef struct matrix {
    const char *name; /* without numbers */
    const rft__tensor *tensor;
} matrix;

/* Masks and positions are stored as whole numbers too wide for codes. */
static bool can_be_weight(const rft__tensor *t) {
    static const char *const never[] = {"bool", "u16", "u32", "u64", "i16", "i32", "i64"};
    bool good = t->n_dims == 2 && t->rows > 0 && t->dims[0] > 0;
    for (size_t i = 0; i < sizeof never / sizeof never[0] && !t->import; i++) {
        good = good && strcmp(t->format->name, never[i]) != 0;
    }
    return good;
}

/* Copies a name with `*` for each part between dots that is a number; returns what is behind its terminator. */
static char *write_pattern(const char *name, char *out) {
    for (const char *part = name;; part++) {
        const size_t length = strcspn(part, "."), digits = strspn(part, "0123456789");
        if (length > 0 && digits == length) {
            *out++ = '*';
        } else {
            memcpy(out, part, length);
            out += length;
        }
        part += length;
        *out++ = *part;
        if (*part == 0) {
            return out;
        }
    }
}

static const char *scheme_of(const rft__tensor *t) { return t->import ? t->import->text : ""; }

/* 0: they are one row. */
static int compare_kinds(const matrix *a, const matrix *b) {
    const rft__tensor *x = a->tensor, *y = b->tensor;
    const int names = strcmp(a->name, b->name);
    int order = names ? names : strcmp(scheme_of(x), scheme_of(y));
    const int64_t xs[] = {(int64_t)x->format->type, x->dims[1], x->dims[0], x->bytes};
    const int64_t ys[] = {(int64_t)y->format->type, y->dims[1], y->dims[0], y->bytes};
    for (size_t i = 0; i < sizeof xs / sizeof xs[0] && order == 0; i++) {
        order = (xs[i] > ys[i]) - (xs[i] < ys[i]);
    }
    return order;
}

static int compare_matrices(const void *a, const void *b) {
    const matrix *x = a, *y = b;
    const int kinds = compare_kinds(x, y);
    return kinds ? kinds : (x->tensor > y->tensor) - (x->tensor < y->tensor);
}

static int compare_places(const void *a, const void *b) {
    const rft__layer *x = a, *y = b;
    return (x->tensor > y->tensor) - (x->tensor < y->tensor);
}

static size_t list_matrices(const rft__tensors *tensors, char *names, matrix *list) {
    size_t count = 0;
    for (size_t i = 0; i < tensors->count; i++) {
        if (can_be_weight(&tensors->list[i])) {
            list[count++] = (matrix){names, &tensors->list[i]};
            names = write_pattern(tensors->list[i].name, names);
        }
    }
    return count;
}

static rft__layer layer_of(const rft__tensors *tensors, const matrix *first, int64_t count) {
    const rft__tensor *t = first->tensor;
    return (rft__layer){.product = &unknown, .name = first->name, .type = t->format->type, .order = RFT_K_CONTIGUOUS,
                        .count = count, .n = t->dims[1], .k = t->dims[0], .bytes = t->bytes,
                        .tensor = t - tensors->list, .bias_tensor = -1, .scheme = scheme_of(t), .unknown = true};
}

/* list: sorted. */
static rft_status add_rows(const rft__tensors *tensors, const matrix *list, size_t count, rft__layers *out, rft_error *err) {
    for (size_t i = 0, next; i < count; i = next) {
        for (next = i + 1; next < count && compare_kinds(&list[i], &list[next]) == 0;) {
            next++;
        }
        const rft__layer layer = layer_of(tensors, &list[i], (int64_t)(next - i));
        RFT_TRY(rft__layers_count(out, &layer, err));
        out->rows[out->count++] = layer;
    }
    qsort(out->rows, (size_t)out->count, sizeof *out->rows, compare_places);
    return RFT_OK;
}

rft_status rft__layers_from_matrices(const rft__allocator *a, const rft__tensors *tensors, rft__layers *out, rft_error *err) {
    const size_t bytes = tensors->count * sizeof(matrix);
    RFT_TRY(rft__layers_reserve(a, (int64_t)tensors->count, tensors->names_used, out, err));
    matrix *list = rft__alloc(a, bytes, sizeof(void *));
    if (!list) {
        rft__layers_free(a, out);
        RFT_FAIL(err, RFT_E_NOMEM, "no memory for %zu matrices", tensors->count);
    }
    const size_t count = list_matrices(tensors, out->names, list);
    rft_status status = RFT_OK;
    if (count == 0) {
        status = rft__error_set(err, RFT_E_UNSUPPORTED, 0, "the architecture is not known, and no tensor is a matrix of weights");
    } else {
        qsort(list, count, sizeof *list, compare_matrices);
        status = add_rows(tensors, list, count, out, err);
    }
    rft__release(a, list, bytes);
    if (status != RFT_OK) {
        rft__layers_free(a, out);
    }
    return status;
}
