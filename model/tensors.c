/* SPDX-License-Identifier: Apache-2.0
 *
 * tensors.c - the table of a model's tensors. See tensors.h.
 */
#include "tensors.h"

#include "base/error.h"

#include <stdlib.h>
#include <string.h>

rft_status rft__tensors_reserve(const rft__allocator *a, size_t count, size_t name_bytes, rft__tensors *out, rft_error *err) {
    *out = (rft__tensors){.count = count, .name_bytes = name_bytes};
    out->list = rft__alloc(a, count * sizeof *out->list, sizeof(void *));
    out->by_name = rft__alloc(a, count * sizeof *out->by_name, sizeof(void *));
    out->names = rft__alloc(a, name_bytes, sizeof(void *));
    if (!out->list || !out->by_name || !out->names) {
        rft__tensors_free(a, out);
        RFT_FAIL(err, RFT_E_NOMEM, "no memory for %zu tensors", count);
    }
    return RFT_OK;
}

void rft__tensors_free(const rft__allocator *a, rft__tensors *t) {
    rft__release(a, t->list, t->count * sizeof *t->list);
    rft__release(a, t->by_name, t->count * sizeof *t->by_name);
    rft__release(a, t->names, t->name_bytes);
    *t = (rft__tensors){0};
}

const char *rft__tensors_keep_name(rft__tensors *t, const char *name, size_t length) {
    char *copy = t->names + t->names_used;
    memcpy(copy, name, length);
    copy[length] = 0;
    t->names_used += length + 1;
    return copy;
}

static int compare_tensors(const void *a, const void *b) {
    const rft__tensor *const *x = a, *const *y = b;
    return strcmp((*x)->name, (*y)->name);
}

rft_status rft__tensors_sort(rft__tensors *t, rft_error *err) {
    for (size_t i = 0; i < t->count; i++) {
        t->by_name[i] = &t->list[i];
    }
    if (t->count > 0) {
        qsort(t->by_name, t->count, sizeof *t->by_name, compare_tensors);
    }
    for (size_t i = 1; i < t->count; i++) {
        if (strcmp(t->by_name[i - 1]->name, t->by_name[i]->name) == 0) {
            RFT_FAIL(err, RFT_E_ARG, "the tensor '%.99s' occurs twice", t->by_name[i]->name);
        }
    }
    return RFT_OK;
}

int64_t rft__tensors_find(const rft__tensors *t, const char *name) {
    size_t low = 0, high = t->count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        const int order = strcmp(name, t->by_name[middle]->name);
        if (order == 0) {
            return t->by_name[middle] - t->list;
        }
        *(order < 0 ? &high : &low) = order < 0 ? middle : middle + 1;
    }
    return -1;
}
