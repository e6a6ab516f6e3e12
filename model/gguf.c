/* SPDX-License-Identifier: Apache-2.0
 *
 * gguf.c - parses a GGUF v3 header. See gguf.h; layout in docs/formats/gguf.md.
 *
 * The header is walked twice, first to check it and find its end, then to fill tables of the size just proved, so that
 * memory follows what the file holds and never what it claims.
 */
#include "gguf.h"

#include "base/printable.h"
#include "cursor.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { DEFAULT_ALIGNMENT = 32, MIN_ALIGNMENT = 8 };

enum {
    TYPE_U8,
    TYPE_I8,
    TYPE_U16,
    TYPE_I16,
    TYPE_U32,
    TYPE_I32,
    TYPE_F32,
    TYPE_BOOL,
    TYPE_STRING,
    TYPE_ARRAY,
    TYPE_U64,
    TYPE_I64,
    TYPE_F64,
    N_TYPES
};

/* Bytes of a value; 0: its own length comes first. */
static const uint32_t value_bytes[N_TYPES] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};

/* ---- keys ---- */

static rft_status check_value_type(rft__cursor *c, uint32_t type) {
    if (type >= N_TYPES) {
        RFT_FAIL(c->err, RFT_E_ARG, "value type = %" PRIu32 " before offset %zu is not one of 0..12", type, c->at);
    }
    return RFT_OK;
}

static rft_status skip_strings(rft__cursor *c, uint64_t count) {
    for (uint64_t i = 0; i < count; i++) {
        const char *text;
        size_t length;
        RFT_TRY(rft__cursor_string(c, "a string in an array", &text, &length));
    }
    return RFT_OK;
}

static rft_status skip_array(rft__cursor *c, uint32_t type, uint64_t count) {
    if (type == TYPE_ARRAY) {
        RFT_FAIL(c->err, RFT_E_ARG, "the array before offset %zu holds arrays: one level is allowed", c->at);
    }
    const uint64_t least = type == TYPE_STRING ? 8 : value_bytes[type];
    if (count > (c->size - c->at) / least) {
        RFT_FAIL(c->err, RFT_E_ARG,
                 "an array claims %" PRIu64 " elements of %" PRIu64 " bytes or more at offset %zu, but the file ends at %zu",
                 count, least, c->at, c->size);
    }
    const unsigned char *p = NULL;
    return type == TYPE_STRING ? skip_strings(c, count) : rft__cursor_take(c, count * least, "an array", &p);
}

static rft_status read_array(rft__cursor *c, rft__gguf_key *key) {
    uint64_t count;
    RFT_TRY(rft__cursor_u32(c, "an array's type", &key->type));
    RFT_TRY(rft__cursor_u64(c, "an array's count", &count));
    RFT_TRY(check_value_type(c, key->type));
    key->is_array = true;
    key->value = c->bytes + c->at;
    return skip_array(c, key->type, count);
}

static rft_status read_value(rft__cursor *c, rft__gguf_key *key) {
    if (key->type == TYPE_ARRAY) {
        return read_array(c, key);
    }
    key->value = c->bytes + c->at;
    const unsigned char *p = NULL;
    const char *text;
    size_t length;
    return key->type == TYPE_STRING ? rft__cursor_string(c, "a string", &text, &length)
                                    : rft__cursor_take(c, value_bytes[key->type], "a value", &p);
}

static rft_status read_key(rft__cursor *c, rft__gguf_key *key) {
    const size_t begin = c->at;
    *key = (rft__gguf_key){0};
    RFT_TRY(rft__cursor_string(c, "a key", &key->name, &key->length));
    if (!rft__is_printable(key->name, key->length)) {
        RFT_FAIL(c->err, RFT_E_ARG, "the key of %zu bytes before offset %zu holds control characters", key->length, c->at);
    }
    RFT_TRY(rft__cursor_u32(c, "a value type", &key->type));
    RFT_TRY(check_value_type(c, key->type));
    RFT_TRY(read_value(c, key));
    key->record = c->at - begin;
    return RFT_OK;
}

static int compare_text(const char *a, size_t na, const char *b, size_t nb) {
    const int order = memcmp(a, b, na < nb ? na : nb);
    return order ? order : (na > nb) - (na < nb);
}

static int compare_keys(const void *a, const void *b) {
    const rft__gguf_key *x = a, *y = b;
    return compare_text(x->name, x->length, y->name, y->length);
}

static rft_status fill_keys(rft__gguf *g, rft__cursor *c) {
    g->keys = rft__alloc(&g->allocator, g->n_keys * sizeof *g->keys, sizeof(void *));
    if (!g->keys) {
        RFT_FAIL(c->err, RFT_E_NOMEM, "no memory for %zu keys", g->n_keys);
    }
    for (size_t i = 0; i < g->n_keys; i++) {
        RFT_TRY(read_key(c, &g->keys[i]));
    }
    qsort(g->keys, g->n_keys, sizeof *g->keys, compare_keys);
    for (size_t i = 1; i < g->n_keys; i++) {
        if (compare_keys(&g->keys[i - 1], &g->keys[i]) == 0) {
            RFT_FAIL(c->err, RFT_E_ARG, "the key '%.*s' occurs twice", (int)rft__min((int64_t)g->keys[i].length, 99),
                     g->keys[i].name);
        }
    }
    return RFT_OK;
}

/* ---- tensors ---- */

/* The name, terminated in `copy` until the table keeps it. */
static rft_status read_tensor_name(rft__cursor *c, char copy[RFT_GGUF_MAX_NAME], rft__tensor *t) {
    const char *name;
    size_t length;
    RFT_TRY(rft__cursor_string(c, "a tensor name", &name, &length));
    if (length == 0 || length >= RFT_GGUF_MAX_NAME || !rft__is_printable(name, length)) {
        RFT_FAIL(c->err, RFT_E_ARG,
                 "the tensor name of %zu bytes before offset %zu is empty, longer than %d or holds control characters", length,
                 c->at, RFT_GGUF_MAX_NAME - 1);
    }
    memcpy(copy, name, length);
    copy[length] = 0;
    t->name = copy;
    return RFT_OK;
}

/* What a read of the tensor's entry came to, and of a failure whose it is. */
static rft_status of_tensor(const rft__cursor *c, const rft__tensor *t, rft_status status) {
    return status == RFT_OK || !c->err ? status : rft__error_set(c->err, status, 0, "tensor '%s': %s", t->name, c->err->message);
}

static rft_status read_dims(rft__cursor *c, rft__tensor *t) {
    RFT_TRY(of_tensor(c, t, rft__cursor_u32(c, "a dimension count", &t->n_dims)));
    if (t->n_dims > RFT_TENSOR_MAX_DIMS) {
        RFT_FAIL(c->err, RFT_E_ARG, "tensor '%s' has %" PRIu32 " dimensions, more than %d", t->name, t->n_dims,
                 RFT_TENSOR_MAX_DIMS);
    }
    t->rows = 1;
    for (uint32_t i = 0; i < RFT_TENSOR_MAX_DIMS; i++) {
        uint64_t dim = 1;
        if (i < t->n_dims) {
            RFT_TRY(of_tensor(c, t, rft__cursor_u64(c, "a dimension", &dim)));
        }
        t->dims[i] = (int64_t)(dim & INT64_MAX);
        if (dim == 0 || dim > INT64_MAX || (i > 0 && rft__mul_overflows(t->rows, t->dims[i], &t->rows))) {
            RFT_FAIL(c->err, RFT_E_ARG, "dimension %" PRIu32 " of tensor '%s' is %" PRIu64 ": 0 or too large", i, t->name, dim);
        }
    }
    return RFT_OK;
}

static rft_status read_tensor(rft__cursor *c, char name[RFT_GGUF_MAX_NAME], rft__tensor *t) {
    uint32_t type;
    *t = (rft__tensor){0};
    RFT_TRY(read_tensor_name(c, name, t));
    RFT_TRY(read_dims(c, t));
    RFT_TRY(of_tensor(c, t, rft__cursor_u32(c, "a type", &type)));
    RFT_TRY(of_tensor(c, t, rft__cursor_u64(c, "an offset", &t->offset)));
    t->format = rft__format_find_gguf(type);
    if (!t->format) {
        RFT_FAIL(c->err, RFT_E_UNSUPPORTED, "tensor '%s' has type %" PRIu32 ", which is not known", t->name, type);
    }
    if (t->dims[0] % t->format->block_elements != 0) {
        RFT_FAIL(c->err, RFT_E_ARG, "tensor '%s' has rows of %" PRId64 ", not a multiple of %" PRIu32 ", the block of %s",
                 t->name, t->dims[0], t->format->block_elements, t->format->name);
    }
    if (rft__format_bytes(t->format->type, t->rows, t->dims[0], &t->bytes, NULL) != RFT_OK) {
        RFT_FAIL(c->err, RFT_E_ARG, "tensor '%s' of %" PRId64 " rows of %" PRId64 " %s is too large", t->name, t->rows,
                 t->dims[0], t->format->name);
    }
    return RFT_OK;
}

static rft_status fill_tensors(rft__gguf *g, rft__cursor *c, size_t count, size_t name_bytes) {
    char name[RFT_GGUF_MAX_NAME];
    RFT_TRY(rft__tensors_reserve(&g->allocator, count, name_bytes, &g->tensors, c->err));
    for (size_t i = 0; i < count; i++) {
        rft__tensor *t = &g->tensors.list[i];
        RFT_TRY(read_tensor(c, name, t));
        t->name = rft__tensors_keep_name(&g->tensors, name, strlen(name));
    }
    return rft__tensors_sort(&g->tensors, c->err);
}

/* ---- data ---- */

static rft_status read_alignment(const rft__gguf *g, int64_t *alignment, rft_error *err) {
    *alignment = DEFAULT_ALIGNMENT;
    RFT_TRY(rft__gguf_integer(g, "general.alignment", false, 0, UINT32_MAX, alignment, err));
    if (*alignment < MIN_ALIGNMENT || (*alignment & (*alignment - 1)) != 0) {
        RFT_FAIL(err, RFT_E_ARG, "general.alignment = %" PRId64 " is not a power of two >= %d", *alignment, MIN_ALIGNMENT);
    }
    return RFT_OK;
}

static rft_status place_tensor(rft__tensor *t, const rft__cursor *c, size_t alignment, uint64_t *end) {
    const uint64_t room = c->size - c->at;
    if (t->offset % alignment != 0) {
        RFT_FAIL(c->err, RFT_E_ARG, "tensor '%s' has offset %" PRIu64 ", not a multiple of the alignment %zu", t->name, t->offset,
                 alignment);
    }
    if (t->offset < *end) {
        RFT_FAIL(c->err, RFT_E_ARG, "tensor '%s' at offset %" PRIu64 " starts before the end %" PRIu64 " of the one before it",
                 t->name, t->offset, *end);
    }
    if (t->offset > room || (uint64_t)t->bytes > room - t->offset) {
        RFT_FAIL(c->err, RFT_E_ARG,
                 "tensor '%s' of %" PRId64 " bytes at offset %" PRIu64 " ends past the %" PRIu64 " bytes of data", t->name,
                 t->bytes, t->offset, room);
    }
    t->data = c->bytes + c->at + t->offset;
    *end = t->offset + (uint64_t)t->bytes;
    return RFT_OK;
}

static rft_status place_tensors(rft__gguf *g, rft__cursor *c) {
    int64_t alignment;
    uint64_t end = 0;
    const unsigned char *p = NULL;
    RFT_TRY(read_alignment(g, &alignment, c->err));
    const size_t past = c->at % (size_t)alignment;
    if (past != 0 && g->tensors.count > 0) {
        RFT_TRY(rft__cursor_take(c, (uint64_t)alignment - past, "padding before the data", &p));
    }
    for (size_t i = 0; i < g->tensors.count; i++) {
        RFT_TRY(place_tensor(&g->tensors.list[i], c, (size_t)alignment, &end));
    }
    return RFT_OK;
}

/* ---- the whole ---- */

static rft_status read_head(rft__cursor *c, uint64_t *n_tensors, uint64_t *n_keys) {
    const unsigned char *magic;
    uint32_t version;
    RFT_TRY(rft__cursor_take(c, 4, "the magic", &magic));
    if (memcmp(magic, "GGUF", 4) != 0) {
        RFT_FAIL(c->err, RFT_E_ARG, "the file does not begin with GGUF");
    }
    RFT_TRY(rft__cursor_u32(c, "the version", &version));
    if (version != 3) {
        RFT_FAIL(c->err, RFT_E_UNSUPPORTED, "GGUF version = %" PRIu32 "%s: only 3, little-endian, is supported", version,
                 version == 0x03000000u ? " (a big-endian file)" : "");
    }
    RFT_TRY(rft__cursor_u64(c, "the tensor count", n_tensors));
    return rft__cursor_u64(c, "the key count", n_keys);
}

/* First walk: counts are true when it succeeds, since every key and tensor takes bytes of the file. */
static rft_status check_header(rft__cursor c, uint64_t n_keys, uint64_t n_tensors, size_t *name_bytes) {
    for (uint64_t i = 0; i < n_keys; i++) {
        rft__gguf_key key;
        RFT_TRY(read_key(&c, &key));
    }
    for (uint64_t i = 0; i < n_tensors; i++) {
        rft__tensor tensor;
        char name[RFT_GGUF_MAX_NAME];
        RFT_TRY(read_tensor(&c, name, &tensor));
        *name_bytes += strlen(name) + 1;
    }
    return RFT_OK;
}

static rft_status parse(rft__gguf *g, rft__cursor *c) {
    uint64_t n_tensors, n_keys;
    size_t name_bytes = 0;
    RFT_TRY(read_head(c, &n_tensors, &n_keys));
    RFT_TRY(check_header(*c, n_keys, n_tensors, &name_bytes));
    g->n_keys = (size_t)n_keys;
    RFT_TRY(fill_keys(g, c));
    RFT_TRY(fill_tensors(g, c, (size_t)n_tensors, name_bytes));
    return place_tensors(g, c);
}

rft_status rft__gguf_parse(const rft__allocator *a, const unsigned char *bytes, size_t size, rft__gguf *out, rft_error *err) {
    rft__cursor cursor = {.bytes = bytes, .size = size, .err = err};
    *out = (rft__gguf){.allocator = *a};
    const rft_status status = parse(out, &cursor);
    if (status != RFT_OK) {
        rft__gguf_free(out);
    }
    return status;
}

void rft__gguf_free(rft__gguf *g) {
    rft__release(&g->allocator, g->keys, g->n_keys * sizeof *g->keys);
    rft__tensors_free(&g->allocator, &g->tensors);
    *g = (rft__gguf){.allocator = g->allocator};
}

static const rft__gguf_key *find_key(const rft__gguf *g, const char *name) {
    const rft__gguf_key wanted = {.name = name, .length = strlen(name)};
    return g->n_keys ? bsearch(&wanted, g->keys, g->n_keys, sizeof *g->keys, compare_keys) : NULL;
}

static bool is_integer(uint32_t type) { return type <= TYPE_I32 || type == TYPE_U64 || type == TYPE_I64; }

static bool is_signed(uint32_t type) { return type == TYPE_I8 || type == TYPE_I16 || type == TYPE_I32 || type == TYPE_I64; }

rft_status rft__gguf_integer(const rft__gguf *g, const char *name, bool required, int64_t min, int64_t max, int64_t *out,
                             rft_error *err) {
    const rft__gguf_key *key = find_key(g, name);
    if (!key) {
        return required ? rft__error_set(err, RFT_E_ARG, 0, "the key '%s' is missing", name) : RFT_OK;
    }
    if (key->is_array || !is_integer(key->type)) {
        RFT_FAIL(err, RFT_E_UNSUPPORTED, "the key '%s' is %s type %" PRIu32 ": one integer is expected", name,
                 key->is_array ? "an array of" : "of", key->type);
    }
    const uint32_t bits = 8 * value_bytes[key->type];
    const uint64_t raw = rft__little_endian(key->value, bits / 8);
    const bool negative = is_signed(key->type) && raw >> (bits - 1) != 0;
    if (negative || raw > INT64_MAX || (int64_t)raw < min || (int64_t)raw > max) {
        RFT_FAIL(err, RFT_E_ARG, "%s = 0x%" PRIx64 " (type %" PRIu32 ") is not in %" PRId64 "..%" PRId64, name, raw, key->type,
                 min, max);
    }
    *out = (int64_t)raw;
    return RFT_OK;
}

rft_status rft__gguf_string(const rft__gguf *g, const char *name, char *out, size_t cap, rft_error *err) {
    const rft__gguf_key *key = find_key(g, name);
    *out = 0;
    if (!key) {
        return RFT_OK;
    }
    if (key->is_array || key->type != TYPE_STRING) {
        RFT_FAIL(err, RFT_E_ARG, "the key '%s' is not a string", name);
    }
    const uint64_t length = rft__little_endian(key->value, 8);
    rft__copy_printable(out, cap, (const char *)key->value + 8, (size_t)length);
    return RFT_OK;
}
