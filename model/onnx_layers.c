/* SPDX-License-Identifier: Apache-2.0
 *
 * onnx_layers.c - the nodes of an ONNX graph that multiply by a weight, as rows. See onnx.h; operators stand in onnx_ops.def.
 *
 * The graph is walked three times: to note where names come from (weights reach their product through Transpose, Cast and
 * DequantizeLinear, biases through an Add behind it), to count rows, and to fill them.
 */
#include "onnx.h"

#include "base/error.h"
#include "base/printable.h"
#include "matrices.h"
#include "onnx_quant.h"

#include <stdlib.h>
#include <string.h>

enum { GEMM = 1, EITHER = 2, BLOCKS = 4 };

typedef struct op_row {
    const char *domain, *name;
    int x, w, scale, zero, bias;
    unsigned flags;
} op_row;

#define RFT_ONNX_OP(domain, name, x, w, scale, zero, bias, flags) {domain, name, x, w, scale, zero, bias, flags},
static const op_row ops[] = {
#include "onnx_ops.def"
};
#undef RFT_ONNX_OP

static const rft__product plain = {.name = "onnx", .where = RFT_IN_BLOCKS};
static const rft__product added = {.name = "onnx", .where = RFT_IN_BLOCKS, .tail = RFT_TAIL_ADD};

/* ---- where names come from ---- */

typedef struct origin { /* of `name`: a node that hands a weight on, or an Add that takes it as one operand */
    rft__span name, node; /* node: its message */
    int32_t scope;
    int64_t bias; /* of an Add: the tensor that it adds; else -1 */
} origin;

typedef struct graph {
    rft__onnx *onnx;
    rft__wire file; /* the model's, with the err of this call */
    origin *origins; /* sorted once they are all there */
    size_t n_origins, room;
    rft__layers *rows;  /* where rows->rows is NULL they are counted: */
    size_t n_rows, name_bytes;
    int32_t *owner;     /* of each tensor: the graph that multiplied by it first, plus 1; 0: none did */
} graph;

static bool domain_is(rft__span domain, const char *wanted) {
    return rft__span_is(domain, wanted) || (*wanted == 0 && rft__span_is(domain, "ai.onnx"));
}

static bool hands_on(const rft__onnx_node *n) {
    static const char *const names[] = {"Transpose", "DequantizeLinear", "Identity", "Cast"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (domain_is(n->domain, "") && rft__span_is(n->op, names[i])) {
            return n->n_inputs > 0;
        }
    }
    return false;
}

static bool adds(const rft__onnx_node *n) { return domain_is(n->domain, "") && rft__span_is(n->op, "Add") && n->n_inputs == 2; }

static const op_row *find_op(const rft__onnx_node *n) {
    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++) {
        if (rft__span_is(n->op, ops[i].name) && domain_is(n->domain, ops[i].domain)) {
            return &ops[i];
        }
    }
    return NULL;
}

static rft_status ignore_tensor(void *user, const rft__onnx_scope *scope, const rft__wire *file, rft__span message,
                                rft__span name) {
    (void)user, (void)scope, (void)file, (void)message, (void)name;
    return RFT_OK;
}

static rft_status count_origin(void *user, const rft__onnx_scope *scope, const rft__wire *file, const rft__onnx_node *node,
                               rft__span message) {
    graph *g = user;
    const op_row *op = find_op(node);
    (void)scope, (void)file, (void)message;
    g->room += hands_on(node) || adds(node);
    g->onnx->weights_room += (op && op->scale >= 0) || rft__span_is(node->op, "DequantizeLinear");
    return RFT_OK;
}

static rft_status note_origin(void *user, const rft__onnx_scope *scope, const rft__wire *file, const rft__onnx_node *node,
                              rft__span message) {
    graph *g = user;
    (void)file;
    if (hands_on(node)) {
        g->origins[g->n_origins++] = (origin){node->output, message, scope->id, -1};
    } else if (adds(node)) {
        const int64_t a = rft__onnx_find(g->onnx, scope, node->inputs[0]), b = rft__onnx_find(g->onnx, scope, node->inputs[1]);
        if ((a < 0) != (b < 0)) {
            g->origins[g->n_origins++] = (origin){node->inputs[a < 0 ? 0 : 1], message, scope->id, a < 0 ? b : a};
        }
    }
    return RFT_OK;
}

static int compare_names(rft__span a, rft__span b) {
    const size_t least = a.size < b.size ? a.size : b.size;
    const int order = least ? memcmp(a.bytes, b.bytes, least) : 0;
    return order ? order : (a.size > b.size) - (a.size < b.size);
}

/* Those that hand on come before Adds of the same name. */
static int compare_keys(const origin *a, const origin *b) {
    const int names = compare_names(a->name, b->name);
    const int scopes = (a->scope > b->scope) - (a->scope < b->scope);
    return names ? names : scopes ? scopes : (a->bias >= 0) - (b->bias >= 0);
}

static int compare_origins(const void *a, const void *b) {
    const origin *x = a, *y = b;
    const int keys = compare_keys(x, y);
    return keys ? keys : (x->node.bytes > y->node.bytes) - (x->node.bytes < y->node.bytes);
}

static const origin *find_origin(const graph *g, const rft__onnx_scope *scope, rft__span name, bool add) {
    for (; scope; scope = scope->outer) {
        const origin wanted = {.name = name, .scope = scope->id, .bias = add ? 0 : -1};
        size_t low = 0, high = g->n_origins;
        while (low < high) {
            const size_t middle = low + (high - low) / 2;
            if (compare_keys(&g->origins[middle], &wanted) < 0) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        if (low < g->n_origins && compare_keys(&g->origins[low], &wanted) == 0) {
            return &g->origins[low];
        }
    }
    return NULL;
}

/* ---- operands ---- */

static rft__span input_of(const rft__onnx_node *n, int index) {
    return index >= 0 && (size_t)index < n->n_inputs ? n->inputs[index] : (rft__span){0};
}

/* No tensor has an empty name, which stands for an input that is left out. */
static int64_t tensor_of(const graph *g, const rft__onnx_scope *scope, const rft__onnx_node *n, int index) {
    return rft__onnx_find(g->onnx, scope, input_of(n, index));
}

/* Exchanges the last two dimensions and no others? */
static bool turns(const rft__onnx_node *n, uint32_t n_dims) {
    bool good = n->n_perm == n_dims || (n->n_perm == 0 && n_dims == 2);
    for (size_t i = 0; i + 2 < n->n_perm && good; i++) {
        good = n->perm[i] == (int64_t)i;
    }
    return good && n_dims >= 2 && (n->n_perm == 0 || n->perm[n_dims - 2] == (int64_t)n_dims - 1);
}

static void hand_on(const graph *g, const rft__onnx_scope *scope, const rft__onnx_node *n, rft__onnx_value *v) {
    const uint32_t n_dims = v->tensor >= 0 ? g->onnx->tensors.list[v->tensor].n_dims : 0;
    if (rft__span_is(n->op, "Transpose")) {
        v->turned = !v->turned;
        v->tensor = turns(n, n_dims) ? v->tensor : -1;
    } else if (rft__span_is(n->op, "DequantizeLinear")) {
        v->scale = tensor_of(g, scope, n, 1);
        v->zero = tensor_of(g, scope, n, 2);
        v->axis = n->axis;
        v->block = n->block_size;
        v->scaled_turned = v->turned;
    }
}

/* The tensor behind a name, through at most a few nodes that hand it on; v->tensor -1: none is constant. */
static rft_status resolve(const graph *g, const rft__onnx_scope *scope, rft__span name, int depth, rft__onnx_value *v) {
    enum { DEEP = 4 };
    *v = (rft__onnx_value){.tensor = rft__onnx_find(g->onnx, scope, name), .scale = -1, .zero = -1};
    const origin *o = v->tensor < 0 && name.size > 0 && depth < DEEP ? find_origin(g, scope, name, false) : NULL;
    if (!o) {
        return RFT_OK;
    }
    rft__onnx_node node;
    RFT_TRY(rft__onnx_read_node(&g->file, o->node, &node));
    RFT_TRY(resolve(g, scope, node.inputs[0], depth + 1, v));
    hand_on(g, scope, &node, v);
    return RFT_OK;
}

/* ---- rows ---- */

/* Of three dimensions the outermost counts weights. */
static bool can_be_weight(const rft__tensor *t) {
    return (t->n_dims == 2 || t->n_dims == 3) && rft__matrix_can_be_weight(t);
}

/* Made of parts, and of what a terminal shows. */
static bool is_telling(rft__span name) {
    bool parts = false;
    for (size_t i = 0; i < name.size; i++) {
        parts = parts || name.bytes[i] == '.' || name.bytes[i] == '/';
    }
    return parts && rft__is_printable((const char *)name.bytes, name.size);
}

/* The weight's name, unless the writer made it up ("onnx::MatMul_1234") and not the node's. */
static rft__span name_of(const rft__tensor *t, const rft__onnx_node *n) {
    const rft__span own = {(const unsigned char *)t->name, strlen(t->name)};
    return !is_telling(own) && is_telling(n->name) ? n->name : own;
}

/* One element of y for each: [n], [1, n], [1, 1, n]. */
static bool is_bias(const rft__onnx *o, int64_t tensor, int64_t n) {
    return tensor >= 0 && o->tensors.list[tensor].rows == 1 && o->tensors.list[tensor].dims[0] == n;
}

/* What C of a Gemm, the bias of another operator, or an Add behind adds. */
static rft_status add_bias(const graph *g, const rft__onnx_scope *scope, const rft__onnx_node *n, const op_row *op,
                           rft__layer *row) {
    const rft__span own = input_of(n, op->bias);
    const origin *behind = own.size == 0 && n->output.size > 0 ? find_origin(g, scope, n->output, true) : NULL;
    rft__onnx_value v;
    RFT_TRY(resolve(g, scope, own, 0, &v));
    const int64_t bias = behind ? behind->bias : v.tensor;
    row->bias = is_bias(g->onnx, bias, row->n);
    row->bias_tensor = row->bias ? bias : -1;
    row->product = own.size > 0 && !row->bias ? &added : &plain;
    return RFT_OK;
}

/* On the right W is [k, n], on the left [n, k], and X on the right is [k, m]. Each can be turned. */
static bool is_k_inner(const op_row *op, const rft__onnx_node *n, const rft__onnx_value *v, bool left) {
    const bool turned = op->flags & GEMM && (left ? n->trans_a : n->trans_b) != 0;
    return left != (turned != v->turned);
}

static rft__layer row_of(const rft__onnx *o, const rft__onnx_value *v, const op_row *op, const rft__onnx_node *n, bool left) {
    const rft__tensor *t = &o->tensors.list[v->tensor];
    const bool turn_x = op->flags & GEMM && (left ? n->trans_b : n->trans_a) != 0;
    const bool k_inner = t->import || is_k_inner(op, n, v, left);
    rft__layer row = {.type = t->format->type, .count = t->dims[2], .tensor = v->tensor, .bias_tensor = -1};
    row.n = k_inner ? t->dims[1] : t->dims[0];
    row.k = k_inner ? t->dims[0] : t->dims[1];
    row.order = k_inner ? RFT_K_CONTIGUOUS : RFT_MN_CONTIGUOUS;
    row.x_order = left != turn_x ? RFT_MN_CONTIGUOUS : RFT_K_CONTIGUOUS;
    row.bytes = t->bytes / t->dims[2];
    row.scheme = t->import ? t->import->text : "";
    return row;
}

/* Branches of an If share weights, and one of them runs: what another graph inside of a node counted is not counted again. */
static bool is_counted(graph *g, const rft__onnx_scope *scope, int64_t tensor) {
    const int32_t before = g->owner[tensor], now = scope->id + 1;
    g->owner[tensor] = before ? before : now;
    return before > 1 && now > 1 && before != now;
}

static rft_status add_row(graph *g, const rft__onnx_scope *scope, const rft__onnx_node *n, const op_row *op, rft__onnx_value *v,
                          bool left) {
    rft__onnx *o = g->onnx;
    if (op->flags & BLOCKS) {
        RFT_TRY(rft__onnx_bind_blocks(o, n, v, g->file.err));
    } else if (v->scale >= 0) {
        rft__onnx_bind_scaled(o, v, is_k_inner(op, n, v, left));
    }
    const rft__tensor *t = &o->tensors.list[v->tensor];
    if (!can_be_weight(t) || is_counted(g, scope, v->tensor)) {
        return RFT_OK;
    }
    const rft__span name = name_of(t, n);
    g->n_rows++;
    g->name_bytes += name.size + 1;
    if (!g->rows->rows) {
        return RFT_OK;
    }
    rft__layer *row = &g->rows->rows[g->rows->count];
    *row = row_of(o, v, op, n, left);
    RFT_TRY(add_bias(g, scope, n, op, row));
    char *const pattern = g->rows->names + g->name_bytes - name.size - 1;
    rft__write_pattern((const char *)name.bytes, name.size, "._/:", pattern);
    row->name = pattern;
    g->rows->count++;
    return rft__layers_count(g->rows, row, g->file.err);
}

/* Two constants are no layer, and two activations have no weight. */
static rft_status take_node(void *user, const rft__onnx_scope *scope, const rft__wire *file, const rft__onnx_node *n,
                            rft__span message) {
    graph *g = user;
    rft__onnx_value w, x;
    const op_row *op = find_op(n);
    (void)file, (void)message;
    if (!op) {
        return RFT_OK;
    }
    RFT_TRY(resolve(g, scope, input_of(n, op->w), 0, &w));
    RFT_TRY(resolve(g, scope, input_of(n, op->x), 0, &x));
    if (op->scale >= 0) {
        w.scale = tensor_of(g, scope, n, op->scale);
        w.zero = tensor_of(g, scope, n, op->zero);
        w.axis = -1;
        w.scaled_turned = w.turned;
    }
    if (w.tensor >= 0 && x.tensor < 0) {
        return add_row(g, scope, n, op, &w, false);
    }
    return op->flags & EITHER && x.tensor >= 0 && w.tensor < 0 ? add_row(g, scope, n, op, &x, true) : RFT_OK;
}

/* ---- the whole ---- */

static rft_status walk(graph *g, rft_status (*node)(void *user, const rft__onnx_scope *scope, const rft__wire *file,
                                                    const rft__onnx_node *n, rft__span message)) {
    return rft__onnx_walk(&g->file, g->onnx->graph, &(rft__onnx_visitor){g, ignore_tensor, node});
}

static rft_status note_origins(const rft__allocator *a, graph *g) {
    RFT_TRY(walk(g, count_origin));
    g->origins = rft__alloc(a, g->room * sizeof *g->origins, sizeof(void *));
    g->onnx->weights = rft__alloc(a, g->onnx->weights_room * sizeof *g->onnx->weights, sizeof(void *));
    g->owner = rft__alloc(a, g->onnx->tensors.count * sizeof *g->owner, sizeof(void *));
    if (!g->origins || !g->onnx->weights || !g->owner) {
        RFT_FAIL(g->file.err, RFT_E_NOMEM, "no memory for %zu nodes", g->room);
    }
    RFT_TRY(walk(g, note_origin));
    qsort(g->origins, g->n_origins, sizeof *g->origins, compare_origins);
    return RFT_OK;
}

static rft_status fill_rows(const rft__allocator *a, graph *g) {
    RFT_TRY(walk(g, take_node));
    if (g->n_rows == 0) {
        RFT_FAIL(g->file.err, RFT_E_UNSUPPORTED, "no node of the graph multiplies by a constant matrix");
    }
    RFT_TRY(rft__layers_reserve(a, (int64_t)g->n_rows, g->name_bytes, g->rows, g->file.err));
    memset(g->owner, 0, g->onnx->tensors.count * sizeof *g->owner);
    g->n_rows = g->name_bytes = 0;
    RFT_TRY(walk(g, take_node));
    rft__layers_merge(g->rows);
    return RFT_OK;
}

rft_status rft__onnx_layers(const rft__allocator *a, rft__onnx *onnx, rft__layers *out, rft_error *err) {
    graph g = {.onnx = onnx, .file = onnx->file, .rows = out};
    g.file.err = err;
    *out = (rft__layers){0};
    rft_status status = note_origins(a, &g);
    if (status == RFT_OK) {
        status = fill_rows(a, &g);
    }
    rft__release(a, g.origins, g.room * sizeof *g.origins);
    rft__release(a, g.owner, onnx->tensors.count * sizeof *g.owner);
    if (status != RFT_OK) {
        rft__layers_free(a, out);
    }
    return status;
}
