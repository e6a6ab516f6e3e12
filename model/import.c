/* SPDX-License-Identifier: Apache-2.0
 *
 * import.c - finds the heads of quantised weights, binds them, and makes the table of whole weights. See import.h.
 */
#include "import.h"

#include "base/error.h"

#include "format/decode/decode_scalar.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

const rft_type rft__import_floats[] = {RFT_F16, RFT_BF16, RFT_F32, (rft_type)0};
const rft_type rft__import_words[] = {RFT_I32, (rft_type)0};
const rft_type rft__import_bytes[] = {RFT_U8, (rft_type)0};

typedef struct scheme_row {
    const char *method, *head, *companion;
    rft_type type;
    const char *tail;
    rft__bind *bind;
} scheme_row;

#define RFT_IMPORT(method, head, companion, type, tail, scheme) {method, head, companion, type, tail, rft__bind_##scheme},
static const scheme_row rows[] = {
#include "imports.def"
};
#undef RFT_IMPORT

/* ---- parts ---- */

static const rft__tensor *find_part(const rft__binder *b, const char *suffix) {
    char name[RFT_SAFETENSORS_MAX_NAME + 64];
    snprintf(name, sizeof name, "%s%s", b->prefix, suffix);
    const int64_t at = rft__tensors_find(b->stored, name);
    return at < 0 ? NULL : &b->stored->list[at];
}

const rft__tensor *rft__bind_optional(const rft__binder *b, const char *suffix) {
    const rft__tensor *t = find_part(b, suffix);
    if (t) {
        b->taken[t - b->stored->list] = true;
    }
    return t;
}

rft_status rft__bind_check(const rft__binder *b, const rft__tensor *t, const rft_type *types, int64_t rows_wanted,
                           int64_t columns) {
    bool known = false;
    for (; *types; types++) {
        known = known || t->format->type == *types;
    }
    if (!known) {
        RFT_FAIL(b->err, RFT_E_UNSUPPORTED, "tensor '%.120s' is %s, which its scheme does not store", t->name, t->format->name);
    }
    if (t->rows != rows_wanted || t->dims[0] != columns) {
        RFT_FAIL(b->err, RFT_E_ARG,
                 "tensor '%.120s' has %" PRId64 " rows of %" PRId64 "; its weight demands %" PRId64 " rows of %" PRId64, t->name,
                 t->rows, t->dims[0], rows_wanted, columns);
    }
    return RFT_OK;
}

rft_status rft__bind_matrix(const rft__binder *b, const char *suffix, const rft_type *types, int64_t rows_wanted, int64_t columns,
                            const rft__tensor **out) {
    *out = rft__bind_optional(b, suffix);
    if (!*out) {
        RFT_FAIL(b->err, RFT_E_ARG, "tensor '%.120s%s' is missing", b->prefix, suffix);
    }
    return rft__bind_check(b, *out, types, rows_wanted, columns);
}

rft_status rft__bind_index(const rft__binder *b, const char *suffix, const rft__import *im, const rft__tensor **out) {
    const rft__tensor *t = rft__bind_optional(b, suffix);
    int64_t unset = 0, in_place = 0;
    *out = NULL;
    if (!t) {
        return RFT_OK;
    }
    RFT_TRY(rft__bind_check(b, t, rft__import_words, 1, im->k));
    for (int64_t i = 0; i < im->k; i++) {
        const int32_t group = (int32_t)rft__import_word(t, i);
        unset += group == -1;
        in_place += group == i / im->group_k;
        if (group < -1 || group >= im->groups) {
            RFT_FAIL(b->err, RFT_E_ARG, "tensor '%.120s' has group %" PRId32 " at k = %" PRId64 ", of %" PRId64 " groups",
                     t->name, group, i, im->groups);
        }
    }
    if (unset > 0 && unset < im->k) {
        RFT_FAIL(b->err, RFT_E_ARG, "tensor '%.120s' gives no group to %" PRId64 " of %" PRId64 " elements", t->name, unset,
                 im->k);
    }
    *out = unset == 0 && in_place < im->k ? t : NULL;
    return RFT_OK;
}

void rft__bind_shape(rft__tensor *out, rft_type type, int64_t n, int64_t k) {
    out->format = rft__format_find(type);
    out->n_dims = 2;
    out->dims[0] = k;
    out->dims[1] = n;
    out->dims[2] = out->dims[3] = 1;
    out->rows = n;
}

/* ---- values ---- */

float rft__import_value(const rft__tensor *t, int64_t i) {
    float value;
    t->format->decode_blocks(t->data + i * t->format->block_bytes, 1, &value);
    return value;
}

uint32_t rft__import_word(const rft__tensor *t, int64_t i) { return rft__load_u32(t->data + 4 * i); }

unsigned rft__import_bits(const rft__tensor *t, int64_t first, int64_t stride, int64_t index, int64_t bits) {
    const int64_t at = index * bits, word = at / 32, shift = at % 32;
    uint64_t value = rft__import_word(t, first + word * stride);
    if (shift + bits > 32) { /* only widths that do not divide 32 cross into the next word */
        value |= (uint64_t)rft__import_word(t, first + (word + 1) * stride) << 32;
    }
    return (unsigned)(value >> shift) & ((1u << bits) - 1);
}

int64_t rft__import_group(const rft__import *im, const rft__tensor *index, int64_t k) {
    return index ? (int64_t)rft__import_word(index, k) : k / im->group_k;
}

/* ---- one weight ---- */

static bool ends_with(const char *text, const char *end) {
    const size_t n = strlen(text), m = strlen(end);
    return n > m && strcmp(text + n - m, end) == 0;
}

static const scheme_row *find_row(rft__binder *b, char prefix[RFT_SAFETENSORS_MAX_NAME]) {
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const scheme_row *r = &rows[i];
        if (strcmp(r->method, b->config->method) == 0 && b->head->format->type == r->type && ends_with(b->head->name, r->head)) {
            snprintf(prefix, RFT_SAFETENSORS_MAX_NAME, "%.*s", (int)(strlen(b->head->name) - strlen(r->head)), b->head->name);
            b->prefix = prefix;
            if (find_part(b, r->companion)) {
                return r;
            }
        }
    }
    return NULL;
}

static const char *keep_name(rft__tensors *out, const char *prefix, const char *tail) {
    char name[RFT_SAFETENSORS_MAX_NAME + 16];
    snprintf(name, sizeof name, "%s%s", prefix, tail);
    return rft__tensors_keep_name(out, name, strlen(name));
}

/* The exact storage: that of all parts. */
static int64_t bytes_of(const rft__import *im) {
    int64_t bytes = 0;
    for (int i = 0; i < RFT_IMPORT_PARTS; i++) {
        bytes += im->part[i] ? im->part[i]->bytes : 0;
    }
    return bytes;
}

static rft_status import_head(rft__binder *b, const scheme_row *row, rft__import *im, rft__imported *out) {
    rft__tensor *t = &out->tensors.list[out->tensors.count];
    *t = (rft__tensor){.import = im};
    if (b->head->rows == 0 || b->head->dims[0] == 0) {
        RFT_FAIL(b->err, RFT_E_ARG, "tensor '%.120s' is empty", b->head->name);
    }
    RFT_TRY(row->bind(b, im, t));
    t->bytes = bytes_of(im);
    t->name = keep_name(&out->tensors, b->prefix, row->tail);
    out->tensors.count++;
    return RFT_OK;
}

/* ---- all ---- */

static rft_status import_heads(rft__binder *b, rft__imported *out) {
    char prefix[RFT_SAFETENSORS_MAX_NAME];
    size_t used = 0;
    for (size_t i = 0; i < b->stored->count; i++) {
        b->head = &b->stored->list[i];
        const scheme_row *row = find_row(b, prefix);
        if (row) {
            b->taken[i] = true;
            RFT_TRY(import_head(b, row, &out->imports[used++], out));
        }
    }
    return RFT_OK;
}

static void copy_plain(const rft__binder *b, rft__imported *out) {
    for (size_t i = 0; i < b->stored->count; i++) {
        if (!b->taken[i]) {
            rft__tensor *t = &out->tensors.list[out->tensors.count++];
            *t = b->stored->list[i];
            t->name = keep_name(&out->tensors, t->name, "");
        }
    }
}

static rft_status import_into(rft__binder *b, rft__imported *out) {
    out->tensors.count = 0;
    RFT_TRY(import_heads(b, out));
    copy_plain(b, out);
    return rft__tensors_sort(&out->tensors, b->err);
}

rft_status rft__import_all(const rft__allocator *a, const rft__tensors *stored, const rft__quant_config *config,
                           rft__imported *out, rft_error *err) {
    *out = (rft__imported){.room = stored->count};
    rft__binder b = {.stored = stored, .config = config, .err = err, .taken = rft__alloc(a, stored->count, sizeof(void *))};
    out->imports = rft__alloc(a, out->room * sizeof *out->imports, sizeof(void *));
    rft_status status = b.taken && out->imports ? RFT_OK : rft__error_set(err, RFT_E_NOMEM, 0, "no memory to import tensors");
    if (status == RFT_OK) {
        status = rft__tensors_reserve(a, stored->count, stored->name_bytes, &out->tensors, err);
    }
    if (status == RFT_OK) {
        status = import_into(&b, out);
    }
    rft__release(a, b.taken, stored->count);
    if (status != RFT_OK) {
        rft__import_free(a, out);
    }
    return status;
}

void rft__import_free(const rft__allocator *a, rft__imported *imported) {
    rft__release(a, imported->imports, imported->room * sizeof *imported->imports);
    if (imported->tensors.list) {
        imported->tensors.count = imported->room; /* as it was reserved */
    }
    rft__tensors_free(a, &imported->tensors);
    *imported = (rft__imported){0};
}
