/* SPDX-License-Identifier: Apache-2.0
 *
 * onnx.c - the tensors of an ONNX file, and the files beside it that hold their data. See onnx.h.
 *
 * The file is walked twice: first to prove and count, then to fill tables of just that size.
 */
#define _GNU_SOURCE 1
#include "onnx.h"

#include "base/error.h"
#include "base/printable.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

enum { COPY_ALIGNMENT = 64 };

bool rft__onnx_begins(const unsigned char *bytes, size_t size) {
    return size > 2 && bytes[0] == 0x08 && bytes[1] < 0x40; /* ir_version, which stands first */
}

static bool keeps(const rft__onnx_tensor *t) {
    return t->format && t->elements > 0 && (t->raw.bytes || t->external || t->values > 0);
}

static bool copies(const rft__onnx_tensor *t) { return !t->raw.bytes && !t->external; }

/* ---- names ---- */

static rft_status full_name(const rft__onnx_scope *scope, rft__span name, char out[RFT_ONNX_MAX_NAME], rft_error *err) {
    const bool plain = name.size > 0 && rft__is_printable((const char *)name.bytes, name.size);
    char place[16] = "";
    if (scope->id > 0) {
        snprintf(place, sizeof place, "#%" PRId32 "/", scope->id);
    }
    const size_t length = strlen(place) + name.size;
    if (!plain || length >= RFT_ONNX_MAX_NAME) {
        RFT_FAIL(err, RFT_E_ARG, "the tensor name of %zu bytes is empty, longer than %d or holds control characters", name.size,
                 RFT_ONNX_MAX_NAME - 1);
    }
    snprintf(out, RFT_ONNX_MAX_NAME, "%s%.*s", place, (int)name.size, (const char *)name.bytes);
    return RFT_OK;
}

int64_t rft__onnx_find(const rft__onnx *o, const rft__onnx_scope *scope, rft__span name) {
    char text[RFT_ONNX_MAX_NAME];
    for (; scope; scope = scope->outer) {
        if (full_name(scope, name, text, NULL) == RFT_OK) {
            const int64_t at = rft__tensors_find(&o->tensors, text);
            if (at >= 0) {
                return at;
            }
        }
    }
    return -1;
}

/* ---- files beside ---- */

/* Relative, and nowhere up: no file outside of the folder is opened. */
static bool is_inside(rft__span location) {
    bool good = location.size > 0 && location.size < sizeof((rft__onnx_file *)0)->name && location.bytes[0] != '/' &&
                rft__is_printable((const char *)location.bytes, location.size);
    for (size_t i = 0, from = 0; i <= location.size && good; i++) {
        if (i == location.size || location.bytes[i] == '/') {
            good = !(i - from == 2 && location.bytes[from] == '.' && location.bytes[from + 1] == '.');
            from = i + 1;
        }
    }
    return good;
}

static rft_status map_beside(const rft__onnx *o, rft__onnx_file *file, rft_error *err) {
    char path[PATH_MAX];
    RFT_TRY(rft__path_join(o->folder, file->name, path, err));
    return rft__map_file(path, &file->map, err);
}

/* Where a file stands among the sorted ones, or belongs. */
static size_t place_of(const rft__onnx *o, const char *name, bool *found) {
    size_t low = 0, high = o->n_files;
    *found = false;
    while (low < high && !*found) {
        const size_t middle = low + (high - low) / 2;
        const int order = strcmp(name, o->files[middle].name);
        *found = order == 0;
        if (order > 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return *found ? high : low;
}

static rft_status find_beside(rft__onnx *o, rft__span location, rft__mapping *out, rft_error *err) {
    rft__onnx_file file = {0};
    bool found;
    memcpy(file.name, location.bytes, location.size);
    const size_t at = place_of(o, file.name, &found);
    if (!found) {
        if (o->n_files == o->files_room) {
            RFT_FAIL(err, RFT_E_UNSUPPORTED, "the tensors lie in more than %zu files", o->files_room);
        }
        RFT_TRY(map_beside(o, &file, err));
        memmove(o->files + at + 1, o->files + at, (o->n_files - at) * sizeof *o->files);
        o->files[at] = file;
        o->n_files++;
    }
    *out = o->files[at].map;
    return RFT_OK;
}

static rft_status place_external(rft__onnx *o, const rft__onnx_tensor *from, rft__tensor *t, rft_error *err) {
    rft__mapping map = {0};
    if (!o->folder) {
        RFT_FAIL(err, RFT_E_UNSUPPORTED, "tensor '%.99s' lies in another file: open the model by its path", t->name);
    }
    if (!is_inside(from->location)) {
        char text[80];
        rft__copy_printable(text, sizeof text, (const char *)from->location.bytes, from->location.size);
        RFT_FAIL(err, RFT_E_ARG, "tensor '%.80s' lies in '%s', which is no path of 1 to 255 bytes inside of the model's folder",
                 t->name, text);
    }
    RFT_TRY(find_beside(o, from->location, &map, err));
    if (from->offset > map.size || (uint64_t)from->bytes > map.size - from->offset) {
        RFT_FAIL(err, RFT_E_ARG, "tensor '%.80s' of %" PRId64 " bytes at offset %" PRIu64 " ends past the %zu bytes of '%.*s'",
                 t->name, from->bytes, from->offset, map.size, (int)from->location.size, (const char *)from->location.bytes);
    }
    t->data = (const unsigned char *)map.bytes + from->offset;
    return RFT_OK;
}

/* ---- tensors ---- */

typedef struct filling {
    rft__onnx *onnx;
    size_t count, name_bytes, externals, copied; /* counted first; then how many are filled and copied */
} filling;

static rft_status ignore_node(void *user, const rft__onnx_scope *scope, const rft__wire *file, const rft__onnx_node *node,
                              rft__span message) {
    (void)user, (void)scope, (void)file, (void)node, (void)message;
    return RFT_OK;
}

static rft_status count_tensor(void *user, const rft__onnx_scope *scope, const rft__wire *file, rft__span message,
                               rft__span name) {
    filling *f = user;
    rft__onnx_tensor t;
    char text[RFT_ONNX_MAX_NAME];
    RFT_TRY(rft__onnx_read_tensor(file, message, &t));
    if (keeps(&t)) {
        RFT_TRY(full_name(scope, name.bytes ? name : t.name, text, file->err));
        f->count++;
        f->name_bytes += strlen(text) + 1;
        f->externals += t.external;
        f->copied += copies(&t) ? (size_t)rft__round_up(t.bytes, COPY_ALIGNMENT) : 0; /* a few times the file at most */
    }
    return RFT_OK;
}

static rft_status place_tensor(filling *f, const rft__wire *file, rft__span message, const rft__onnx_tensor *from,
                               rft__tensor *t) {
    if (from->external) {
        return place_external(f->onnx, from, t, file->err);
    }
    t->data = from->raw.bytes;
    if (copies(from)) {
        unsigned char *own = f->onnx->copied + f->copied;
        RFT_TRY(rft__onnx_copy_values(file, message, from, own));
        f->copied += (size_t)rft__round_up(from->bytes, COPY_ALIGNMENT);
        t->data = own;
    }
    return RFT_OK;
}

static rft_status fill_tensor(void *user, const rft__onnx_scope *scope, const rft__wire *file, rft__span message,
                              rft__span name) {
    filling *f = user;
    rft__onnx_tensor from;
    char text[RFT_ONNX_MAX_NAME];
    RFT_TRY(rft__onnx_read_tensor(file, message, &from));
    if (!keeps(&from)) {
        return RFT_OK;
    }
    rft__tensor *t = &f->onnx->tensors.list[f->count++];
    RFT_TRY(full_name(scope, name.bytes ? name : from.name, text, file->err));
    *t = (rft__tensor){.format = from.format, .n_dims = from.n_dims, .bytes = from.bytes, .rows = from.elements / from.dims[0]};
    memcpy(t->dims, from.dims, sizeof t->dims);
    t->name = rft__tensors_keep_name(&f->onnx->tensors, text, strlen(text));
    return place_tensor(f, file, message, &from, t);
}

static rft_status reserve(const rft__allocator *a, const filling *counted, rft__onnx *o, rft_error *err) {
    o->files_room = (size_t)rft__min((int64_t)counted->externals, RFT_ONNX_MAX_FILES);
    o->copied_bytes = counted->copied;
    o->files = rft__alloc(a, o->files_room * sizeof *o->files, sizeof(void *));
    o->copied = rft__alloc(a, o->copied_bytes, COPY_ALIGNMENT);
    if (!o->files || !o->copied) {
        RFT_FAIL(err, RFT_E_NOMEM, "no memory for %zu files and %zu bytes of numbers", o->files_room, o->copied_bytes);
    }
    return rft__tensors_reserve(a, counted->count, counted->name_bytes, &o->tensors, err);
}

static rft_status read_tensors(const rft__allocator *a, rft__onnx *o, rft_error *err) {
    filling f = {.onnx = o};
    RFT_TRY(rft__onnx_graph(&o->file, &o->graph, &o->name));
    RFT_TRY(rft__onnx_walk(&o->file, o->graph, &(rft__onnx_visitor){&f, count_tensor, ignore_node}));
    RFT_TRY(reserve(a, &f, o, err));
    f.count = f.copied = 0;
    RFT_TRY(rft__onnx_walk(&o->file, o->graph, &(rft__onnx_visitor){&f, fill_tensor, ignore_node}));
    return rft__tensors_sort(&o->tensors, err);
}

rft_status rft__onnx_open(const rft__allocator *a, const unsigned char *bytes, size_t size, const char *folder, rft__onnx *out,
                          rft_error *err) {
    *out = (rft__onnx){.folder = folder};
    out->file = (rft__wire){.bytes = bytes, .size = size, .file = bytes, .err = err};
    const rft_status status = read_tensors(a, out, err);
    out->file.err = NULL; /* the caller's, and of this call alone */
    if (status != RFT_OK) {
        rft__onnx_free(a, out);
    }
    return status;
}

void rft__onnx_free(const rft__allocator *a, rft__onnx *o) {
    for (size_t i = 0; i < o->n_files; i++) {
        rft__unmap_file(&o->files[i].map);
    }
    rft__tensors_free(a, &o->tensors);
    rft__release(a, o->files, o->files_room * sizeof *o->files);
    rft__release(a, o->copied, o->copied_bytes);
    rft__release(a, o->weights, o->weights_room * sizeof *o->weights);
    *o = (rft__onnx){0};
}

uint64_t rft__onnx_beside_bytes(const rft__onnx *o) {
    uint64_t bytes = 0;
    for (size_t i = 0; i < o->n_files; i++) {
        bytes += o->files[i].map.size;
    }
    return bytes;
}
