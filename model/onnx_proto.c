/* SPDX-License-Identifier: Apache-2.0
 *
 * onnx_proto.c - reads nodes, attributes and tensors of ONNX, and walks graphs. See onnx_proto.h.
 */
#include "onnx_proto.h"

#include "base/alloc.h"
#include "base/error.h"

#include <inttypes.h>
#include <string.h>

enum { MODEL_GRAPH = 7 };
enum { GRAPH_NODE = 1, GRAPH_NAME = 2, GRAPH_INITIALIZER = 5 };
enum { NODE_INPUT = 1, NODE_OUTPUT, NODE_NAME, NODE_OP, NODE_ATTRIBUTE, NODE_DOMAIN = 7 };
enum { ATTRIBUTE_NAME = 1, ATTRIBUTE_I = 3, ATTRIBUTE_T = 5, ATTRIBUTE_G, ATTRIBUTE_INTS = 8, ATTRIBUTE_GRAPHS = 11 };
enum {
    TENSOR_DIMS = 1,
    TENSOR_TYPE,
    TENSOR_FLOATS = 4,
    TENSOR_INTS,
    TENSOR_NAME = 8,
    TENSOR_RAW,
    TENSOR_DOUBLES,
    TENSOR_EXTERNAL = 13,
    TENSOR_PLACE
};
enum { ENTRY_KEY = 1, ENTRY_VALUE };
enum { PLACE_EXTERNAL = 1 };

/* ---- nodes ---- */

typedef struct attribute {
    rft__span name, tensor;
    int64_t i, ints[RFT_TENSOR_MAX_DIMS];
    size_t n_ints;
} attribute;

static void add_int(attribute *a, uint64_t value) {
    if (a->n_ints < RFT_TENSOR_MAX_DIMS) {
        a->ints[a->n_ints] = (int64_t)value;
    }
    a->n_ints++;
}

/* Repeated whole numbers, packed or one a field. */
static rft_status read_ints(const rft__wire *w, const rft__field *f, attribute *a) {
    if (f->kind != RFT_WIRE_BYTES) {
        add_int(a, f->value);
        return rft__wire_expect(w, f, RFT_WIRE_VARINT, "an attribute's number");
    }
    rft__wire packed = rft__wire_open(w, f->bytes);
    while (rft__wire_more(&packed)) {
        uint64_t value;
        RFT_TRY(rft__wire_varint(&packed, &value));
        add_int(a, value);
    }
    return RFT_OK;
}

static rft_status read_attribute(rft__wire w, attribute *a) {
    rft__field f;
    *a = (attribute){0};
    while (rft__wire_more(&w)) {
        RFT_TRY(rft__wire_next(&w, &f));
        if (f.number == ATTRIBUTE_NAME) {
            RFT_TRY(rft__wire_expect(&w, &f, RFT_WIRE_BYTES, "an attribute's name"));
            a->name = f.bytes;
        } else if (f.number == ATTRIBUTE_I) {
            RFT_TRY(rft__wire_expect(&w, &f, RFT_WIRE_VARINT, "an attribute's number"));
            a->i = (int64_t)f.value;
        } else if (f.number == ATTRIBUTE_T) {
            RFT_TRY(rft__wire_expect(&w, &f, RFT_WIRE_BYTES, "an attribute's tensor"));
            a->tensor = f.bytes;
        } else if (f.number == ATTRIBUTE_INTS) {
            RFT_TRY(read_ints(&w, &f, a));
        }
    }
    return RFT_OK;
}

static rft_status add_attribute(const rft__wire *w, rft__span message, rft__onnx_node *n) {
    attribute a;
    RFT_TRY(read_attribute(rft__wire_open(w, message), &a));
    const struct {
        const char *name;
        int64_t *into;
    } numbers[] = {{"transA", &n->trans_a}, {"transB", &n->trans_b}, {"axis", &n->axis}, {"block_size", &n->block_size},
                   {"bits", &n->bits},      {"N", &n->n},            {"K", &n->k}};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        if (rft__span_is(a.name, numbers[i].name)) {
            *numbers[i].into = a.i;
        }
    }
    if (rft__span_is(a.name, "perm")) {
        memcpy(n->perm, a.ints, sizeof n->perm);
        n->n_perm = a.n_ints;
    } else if (rft__span_is(a.name, "value")) {
        n->value = a.tensor;
    }
    return RFT_OK;
}

static rft_status add_text(const rft__wire *w, const rft__field *f, rft__onnx_node *n) {
    RFT_TRY(rft__wire_expect(w, f, RFT_WIRE_BYTES, "a node's text"));
    if (f->number == NODE_NAME) {
        n->name = f->bytes;
    } else if (f->number == NODE_OP) {
        n->op = f->bytes;
    } else if (f->number == NODE_DOMAIN) {
        n->domain = f->bytes;
    } else if (f->number == NODE_OUTPUT && !n->output.bytes) {
        n->output = f->bytes;
    } else if (f->number == NODE_INPUT && n->n_inputs < RFT_ONNX_INPUTS) {
        n->inputs[n->n_inputs++] = f->bytes;
    }
    return RFT_OK;
}

rft_status rft__onnx_read_node(const rft__wire *file, rft__span message, rft__onnx_node *node) {
    rft__wire w = rft__wire_open(file, message);
    rft__field f;
    *node = (rft__onnx_node){.axis = 1};
    while (rft__wire_more(&w)) {
        RFT_TRY(rft__wire_next(&w, &f));
        if (f.number == NODE_ATTRIBUTE) {
            RFT_TRY(rft__wire_expect(&w, &f, RFT_WIRE_BYTES, "a node's attribute"));
            RFT_TRY(add_attribute(&w, f.bytes, node));
        } else if (f.number <= NODE_OP || f.number == NODE_DOMAIN) {
            RFT_TRY(add_text(&w, &f, node));
        }
    }
    return RFT_OK;
}

/* ---- tensors ---- */

/* By number of TensorProto.DataType. */
static const rft__format *format_of(uint64_t type) {
    static const rft_type types[] = {(rft_type)0, RFT_F32,     RFT_U8,  RFT_I8,  RFT_U16,      (rft_type)(256 + 25),
                                     RFT_I32,     (rft_type)(256 + 27), (rft_type)0, RFT_BOOL, RFT_F16, (rft_type)(256 + 28),
                                     RFT_U32,     RFT_U64,     RFT_C64, (rft_type)0, RFT_BF16, RFT_E4M3, RFT_E4M3FNUZ,
                                     RFT_E5M2,    RFT_E5M2FNUZ, RFT_U4, RFT_I4,  RFT_E2M1,     RFT_E8M0};
    return type < sizeof types / sizeof types[0] && types[type] ? rft__format_find(types[type]) : NULL;
}

typedef struct tensor_reader {
    rft__onnx_tensor *t;
    uint64_t type;
    size_t chunks; /* of typed fields */
    rft__span one; /* the last of them, where it is packed numbers of one width */
    bool floats, doubles;
} tensor_reader;

static rft_status add_dim(const rft__wire *w, uint64_t dim, tensor_reader *r) {
    rft__onnx_tensor *t = r->t;
    const uint32_t most = RFT_TENSOR_MAX_DIMS;
    if (dim > INT64_MAX || rft__mul_overflows(t->elements, (int64_t)dim, &t->elements)) {
        RFT_FAIL(w->err, RFT_E_ARG, "a tensor has the dimension %" PRIu64 ": negative, or the product is over 2^63 - 1", dim);
    }
    if (t->n_dims == most) { /* the outermost two become one */
        if (rft__mul_overflows(t->dims[0], t->dims[1], &t->dims[0])) {
            RFT_FAIL(w->err, RFT_E_ARG, "a tensor has dimensions whose product is over 2^63 - 1");
        }
        memmove(t->dims + 1, t->dims + 2, (most - 2) * sizeof *t->dims);
        t->n_dims--;
    }
    t->dims[t->n_dims++] = (int64_t)dim; /* outermost first, until all are known */
    return RFT_OK;
}

static rft_status read_dims(const rft__wire *w, const rft__field *f, tensor_reader *r) {
    if (f->kind != RFT_WIRE_BYTES) {
        RFT_TRY(rft__wire_expect(w, f, RFT_WIRE_VARINT, "a tensor's dimension"));
        return add_dim(w, f->value, r);
    }
    rft__wire packed = rft__wire_open(w, f->bytes);
    while (rft__wire_more(&packed)) {
        uint64_t dim;
        RFT_TRY(rft__wire_varint(&packed, &dim));
        RFT_TRY(add_dim(w, dim, r));
    }
    return RFT_OK;
}

/* Bytes of a number in a typed field; 0: varints. */
static size_t width_of(uint32_t number) { return number == TENSOR_FLOATS ? 4 : number == TENSOR_DOUBLES ? 8 : 0; }

static rft_status count_values(const rft__wire *w, const rft__field *f, tensor_reader *r) {
    const size_t width = width_of(f->number);
    r->chunks++;
    r->floats = r->floats || width == 4;
    r->doubles = r->doubles || width == 8;
    if (f->kind != RFT_WIRE_BYTES) {
        r->t->values++;
        return rft__wire_expect(w, f, width == 8 ? RFT_WIRE_FIXED64 : width == 4 ? RFT_WIRE_FIXED32 : RFT_WIRE_VARINT,
                                "a tensor's number");
    }
    r->one = width > 0 ? f->bytes : (rft__span){0};
    if (width > 0) {
        r->t->values += (int64_t)(f->bytes.size / width);
        return f->bytes.size % width == 0
                   ? RFT_OK
                   : rft__error_set(w->err, RFT_E_ARG, 0, "%zu bytes of packed numbers of %zu", f->bytes.size, width);
    }
    for (size_t i = 0; i < f->bytes.size; i++) {
        r->t->values += f->bytes.bytes[i] < 0x80;
    }
    return RFT_OK;
}

static rft_status read_number(const rft__wire *w, const char *key, rft__span text, uint64_t *out) {
    uint64_t value = 0;
    bool good = text.size > 0;
    for (size_t i = 0; i < text.size && good; i++) {
        const unsigned digit = text.bytes[i] - (unsigned)'0';
        good = digit <= 9 && value <= (UINT64_MAX - 9) / 10;
        value = value * 10 + digit;
    }
    *out = value;
    return good ? RFT_OK : rft__error_set(w->err, RFT_E_ARG, 0, "the %s of a tensor in another file is no whole number", key);
}

static rft_status read_entry(rft__wire w, rft__onnx_tensor *t) {
    rft__span key = {0}, value = {0};
    rft__field f;
    while (rft__wire_more(&w)) {
        RFT_TRY(rft__wire_next(&w, &f));
        if (f.number == ENTRY_KEY || f.number == ENTRY_VALUE) {
            RFT_TRY(rft__wire_expect(&w, &f, RFT_WIRE_BYTES, "an entry's text"));
            *(f.number == ENTRY_KEY ? &key : &value) = f.bytes;
        }
    }
    if (rft__span_is(key, "location")) {
        t->location = value;
    } else if (rft__span_is(key, "offset")) {
        return read_number(&w, "offset", value, &t->offset);
    } else if (rft__span_is(key, "length")) {
        t->has_length = true;
        return read_number(&w, "length", value, &t->length);
    }
    return RFT_OK;
}

static rft_status read_field(const rft__wire *w, const rft__field *f, tensor_reader *r) {
    switch (f->number) {
    case TENSOR_DIMS:
        return read_dims(w, f, r);
    case TENSOR_TYPE:
        r->type = f->value;
        return rft__wire_expect(w, f, RFT_WIRE_VARINT, "a tensor's type");
    case TENSOR_FLOATS:
    case TENSOR_INTS:
    case TENSOR_DOUBLES:
        return count_values(w, f, r);
    case TENSOR_NAME:
        r->t->name = f->bytes;
        return rft__wire_expect(w, f, RFT_WIRE_BYTES, "a tensor's name");
    case TENSOR_RAW:
        r->t->raw = f->bytes;
        return rft__wire_expect(w, f, RFT_WIRE_BYTES, "a tensor's data");
    case TENSOR_EXTERNAL:
        RFT_TRY(rft__wire_expect(w, f, RFT_WIRE_BYTES, "an entry about another file"));
        return read_entry(rft__wire_open(w, f->bytes), r->t);
    case TENSOR_PLACE:
        r->t->external = f->value == PLACE_EXTERNAL;
        return rft__wire_expect(w, f, RFT_WIRE_VARINT, "a tensor's place");
    default:
        return RFT_OK;
    }
}

static void turn_dims(rft__onnx_tensor *t) {
    for (uint32_t i = 0; i < t->n_dims / 2; i++) {
        const int64_t dim = t->dims[i];
        t->dims[i] = t->dims[t->n_dims - 1 - i];
        t->dims[t->n_dims - 1 - i] = dim;
    }
    for (uint32_t i = t->n_dims; i < RFT_TENSOR_MAX_DIMS; i++) {
        t->dims[i] = 1;
    }
}

static int name_length(rft__span name) { return (int)rft__min((int64_t)name.size, 99); }

/* Bytes of one number of typed fields as it is stored. */
static int64_t unit_of(const rft__onnx_tensor *t) { return t->format->block_bytes; }

/* Where the data is, and that it is as much as the sizes say. */
static rft_status place_data(const rft__wire *w, tensor_reader *r) {
    rft__onnx_tensor *t = r->t;
    if ((r->floats && unit_of(t) != 4) || (r->doubles && unit_of(t) != 8)) {
        RFT_FAIL(w->err, RFT_E_ARG, "tensor '%.*s' is %s, but its numbers are of another width", name_length(t->name),
                 (const char *)t->name.bytes, t->format->name);
    }
    if (r->chunks == 1 && r->one.bytes && t->format->block_elements == 1 && !t->raw.bytes) {
        t->raw = r->one; /* packed floats lie as they are stored */
        t->values = 0;
    }
    const int64_t given = t->raw.bytes ? (int64_t)t->raw.size : t->values * unit_of(t);
    if (!t->external && t->elements > 0 && given > 0 && given != t->bytes) {
        RFT_FAIL(w->err, RFT_E_ARG, "tensor '%.*s' of %" PRId64 " %s has %" PRId64 " bytes of data, not %" PRId64,
                 name_length(t->name), (const char *)t->name.bytes, t->elements, t->format->name, given, t->bytes);
    }
    if (t->external && t->has_length && t->length != (uint64_t)t->bytes) {
        RFT_FAIL(w->err, RFT_E_ARG, "tensor '%.*s' of %" PRId64 " %s takes %" PRId64 " bytes, but its length is %" PRIu64,
                 name_length(t->name), (const char *)t->name.bytes, t->elements, t->format->name, t->bytes, t->length);
    }
    return RFT_OK;
}

rft_status rft__onnx_read_tensor(const rft__wire *file, rft__span message, rft__onnx_tensor *tensor) {
    rft__wire w = rft__wire_open(file, message);
    tensor_reader r = {.t = tensor};
    rft__field f;
    *tensor = (rft__onnx_tensor){.elements = 1};
    while (rft__wire_more(&w)) {
        RFT_TRY(rft__wire_next(&w, &f));
        RFT_TRY(read_field(&w, &f, &r));
    }
    turn_dims(tensor);
    tensor->format = format_of(r.type);
    if (!tensor->format) {
        return RFT_OK;
    }
    const int64_t blocks = rft__ceil_div(tensor->elements, tensor->format->block_elements);
    if (rft__mul_overflows(blocks, tensor->format->block_bytes, &tensor->bytes)) {
        RFT_FAIL(w.err, RFT_E_ARG, "a tensor of %" PRId64 " %s is too large", tensor->elements, tensor->format->name);
    }
    return place_data(&w, &r);
}

static unsigned char *put_number(unsigned char *dst, uint64_t value, size_t bytes) {
    for (size_t i = 0; i < bytes; i++) {
        dst[i] = (unsigned char)(value >> 8 * i);
    }
    return dst + bytes;
}

static rft_status copy_field(const rft__wire *w, const rft__field *f, size_t unit, unsigned char **dst) {
    if (f->kind != RFT_WIRE_BYTES) {
        *dst = put_number(*dst, f->value, unit);
        return RFT_OK;
    }
    if (width_of(f->number) > 0) { /* proven to be whole numbers; unit is their width where it is used */
        memcpy(*dst, f->bytes.bytes, f->bytes.size);
        *dst += f->bytes.size;
        return RFT_OK;
    }
    rft__wire packed = rft__wire_open(w, f->bytes);
    while (rft__wire_more(&packed)) {
        uint64_t value;
        RFT_TRY(rft__wire_varint(&packed, &value));
        *dst = put_number(*dst, value, unit);
    }
    return RFT_OK;
}

rft_status rft__onnx_copy_values(const rft__wire *file, rft__span message, const rft__onnx_tensor *t, unsigned char *dst) {
    rft__wire w = rft__wire_open(file, message);
    rft__field f;
    while (rft__wire_more(&w)) {
        RFT_TRY(rft__wire_next(&w, &f));
        if (f.number == TENSOR_FLOATS || f.number == TENSOR_INTS || f.number == TENSOR_DOUBLES) {
            RFT_TRY(copy_field(&w, &f, (size_t)unit_of(t), &dst));
        }
    }
    return RFT_OK;
}

/* ---- graphs ---- */

rft_status rft__onnx_graph(const rft__wire *file, rft__span *graph, rft__span *name) {
    rft__wire w = *file;
    rft__field f;
    *graph = *name = (rft__span){0};
    while (rft__wire_more(&w)) {
        RFT_TRY(rft__wire_next(&w, &f));
        if (f.number == MODEL_GRAPH) {
            RFT_TRY(rft__wire_expect(&w, &f, RFT_WIRE_BYTES, "the graph"));
            *graph = f.bytes;
        }
    }
    if (!graph->bytes) {
        RFT_FAIL(w.err, RFT_E_ARG, "no field %d, the graph, in %zu bytes: this is no ONNX model", MODEL_GRAPH, w.size);
    }
    w = rft__wire_open(file, *graph);
    while (rft__wire_more(&w)) {
        RFT_TRY(rft__wire_next(&w, &f));
        if (f.number == GRAPH_NAME && f.kind == RFT_WIRE_BYTES) {
            *name = f.bytes;
        }
    }
    return RFT_OK;
}

typedef struct walk {
    const rft__wire *file;
    const rft__onnx_visitor *visitor;
    int32_t graphs; /* so far */
} walk;

static rft_status walk_graph(walk *k, rft__span graph, const rft__onnx_scope *scope, int depth);

static rft_status walk_attribute(walk *k, rft__wire w, const rft__onnx_scope *scope, int depth) {
    rft__field f;
    while (rft__wire_more(&w)) {
        RFT_TRY(rft__wire_next(&w, &f));
        if (f.number == ATTRIBUTE_G || f.number == ATTRIBUTE_GRAPHS) {
            const rft__onnx_scope inner = {scope, ++k->graphs};
            RFT_TRY(rft__wire_expect(&w, &f, RFT_WIRE_BYTES, "an attribute's graph"));
            RFT_TRY(walk_graph(k, f.bytes, &inner, depth + 1));
        }
    }
    return RFT_OK;
}

static rft_status walk_inner(walk *k, rft__span message, const rft__onnx_scope *scope, int depth) {
    rft__wire w = rft__wire_open(k->file, message);
    rft__field f;
    while (rft__wire_more(&w)) {
        RFT_TRY(rft__wire_next(&w, &f));
        if (f.number == NODE_ATTRIBUTE) {
            RFT_TRY(walk_attribute(k, rft__wire_open(&w, f.bytes), scope, depth));
        }
    }
    return RFT_OK;
}

static rft_status walk_node(walk *k, rft__span message, const rft__onnx_scope *scope, int depth) {
    const rft__onnx_visitor *v = k->visitor;
    rft__onnx_node node;
    RFT_TRY(rft__onnx_read_node(k->file, message, &node));
    if (rft__span_is(node.op, "Constant")) {
        return node.value.bytes ? v->tensor(v->user, scope, k->file, node.value, node.output) : RFT_OK;
    }
    RFT_TRY(v->node(v->user, scope, k->file, &node, message));
    return walk_inner(k, message, scope, depth);
}

/* The fields of one number in a graph. */
static rft_status walk_fields(walk *k, rft__span graph, uint32_t number, const rft__onnx_scope *scope, int depth) {
    const rft__onnx_visitor *v = k->visitor;
    rft__wire w = rft__wire_open(k->file, graph);
    rft__field f;
    while (rft__wire_more(&w)) {
        RFT_TRY(rft__wire_next(&w, &f));
        if (f.number == number) {
            RFT_TRY(rft__wire_expect(&w, &f, RFT_WIRE_BYTES, "a node or an initializer"));
            RFT_TRY(number == GRAPH_NODE ? walk_node(k, f.bytes, scope, depth)
                                         : v->tensor(v->user, scope, k->file, f.bytes, (rft__span){0}));
        }
    }
    return RFT_OK;
}

static rft_status walk_graph(walk *k, rft__span graph, const rft__onnx_scope *scope, int depth) {
    if (depth > RFT_ONNX_GRAPHS_DEEP) {
        RFT_FAIL(k->file->err, RFT_E_ARG, "graphs lie over %d deep in each other", RFT_ONNX_GRAPHS_DEEP);
    }
    RFT_TRY(walk_fields(k, graph, GRAPH_INITIALIZER, scope, depth));
    return walk_fields(k, graph, GRAPH_NODE, scope, depth);
}

rft_status rft__onnx_walk(const rft__wire *file, rft__span graph, const rft__onnx_visitor *visitor) {
    walk k = {.file = file, .visitor = visitor};
    const rft__onnx_scope scope = {0};
    return walk_graph(&k, graph, &scope, 0);
}
