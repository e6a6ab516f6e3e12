/* SPDX-License-Identifier: Apache-2.0
 *
 * peer_onednn.c - oneDNN's matmul: f32, bf16 and f16, W reordered beforehand to the format that the primitive asks for,
 * the epilogue as post-ops. The version names the implementation that runs.
 */
#include "peers/onednn_api.h"
#include "peers/peer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_ARGS (4 + RFT_MAX_OPERANDS)

typedef struct dnn_state {
    dnn_api f;
    void *engine, *stream;
    peer_product product;
    void *src_md, *any_md, *raw_md, *dst_md, *attr, *post_ops, *pd, *primitive;
    dnn_arg arg[MOST_ARGS]; /* the weights' place is filled in by run */
    int n_arg, weights_arg;
    void **weights; /* a memory object a copy */
    char *packed;
    size_t stride, total;
    int64_t copies;
} dnn_state;

static int type_of(rft_type type) {
    return type == RFT_F32 ? DNN_F32 : type == RFT_BF16 ? DNN_BF16 : type == RFT_F16 ? DNN_F16 : 0;
}

static const char *find_functions(const peer *p, dnn_api *f) {
#define DNN_FIND(result, name, parameters)                                                                                       \
    *(void **)&f->name = peer_symbol(p, "dnnl_" #name);                                                                          \
    if (!f->name)                                                                                                                \
        return "dnnl_" #name;
    DNN_FUNCTIONS(DNN_FIND)
#undef DNN_FIND
    return NULL;
}

static bool open_onednn(peer *p, char why[CLI_WHY]) {
    dnn_state *s = cli_alloc(1, sizeof *s);
    const char *missing = find_functions(p, &s->f);
    p->state = s;
    if (missing)
        snprintf(why, CLI_WHY, "it does not export %s (version 3 is needed)", missing);
    else if (s->f.engine_create(&s->engine, DNN_CPU, 0) || s->f.stream_create(&s->stream, s->engine, DNN_IN_ORDER))
        snprintf(why, CLI_WHY, "it makes no CPU engine");
    else
        return true;
    free(s);
    return false;
}

static bool make_md(dnn_state *s, void **md, rft_type type, int64_t rows, int64_t columns, int64_t row_stride,
                    int64_t column_stride) {
    dnn_dims dims = {rows, columns}, strides = {row_stride, column_stride};
    return s->f.memory_desc_create_with_strides(md, 2, dims, type_of(type), strides) == 0;
}

static bool make_descriptors(dnn_state *s, const peer_product *q) {
    bool xk = q->x_order == RFT_K_CONTIGUOUS, wk = q->w_order == RFT_K_CONTIGUOUS;
    dnn_dims w = {q->k, q->n};
    return make_md(s, &s->src_md, q->x, q->m, q->k, xk ? q->k : 1, xk ? 1 : q->m) &&
           make_md(s, &s->raw_md, q->w, q->k, q->n, wk ? 1 : q->n, wk ? q->k : 1) &&
           make_md(s, &s->dst_md, q->y, q->m, q->n, q->n, 1) &&
           s->f.memory_desc_create_with_tag(&s->any_md, 2, w, type_of(q->w), DNN_TAG_ANY) == 0;
}

static bool add_arg(dnn_state *s, int arg, const void *md, void *data) {
    s->arg[s->n_arg] = (dnn_arg){arg, NULL};
    return s->f.memory_create(&s->arg[s->n_arg++].memory, md, s->engine, data) == 0;
}

/* An operand over rows x columns, 1 where it is broadcast. */
static bool add_binary(dnn_state *s, int index, int alg, const rft_epi_op *op, int64_t rows, int64_t columns) {
    void *md;
    if (!make_md(s, &md, op->type, rows, columns, columns, 1))
        return false;
    bool good = s->f.post_ops_append_binary(s->post_ops, alg, md) == 0 &&
                add_arg(s, DNN_ARG_POST_OP * (index + 1) | DNN_ARG_SRC_1, md, s->product.operand[op->operand].ptr);
    s->f.memory_desc_destroy(md);
    return good;
}

static bool add_eltwise(dnn_state *s, int alg, float alpha, float beta) {
    return s->f.post_ops_append_eltwise(s->post_ops, alg, alpha, beta) == 0;
}

static bool add_op(dnn_state *s, int index, const rft_epi_op *op) {
    int64_t m = s->product.m, n = s->product.n;
    switch (op->kind) {
    case RFT_EPI_SCALE:
        return add_eltwise(s, DNN_LINEAR, op->alpha, 0);
    case RFT_EPI_SILU:
        return add_eltwise(s, DNN_SWISH, 1, 0);
    case RFT_EPI_GELU:
        return add_eltwise(s, DNN_GELU_ERF, 0, 0);
    case RFT_EPI_GELU_TANH:
        return add_eltwise(s, DNN_GELU_TANH, 0, 0);
    case RFT_EPI_RELU:
        return add_eltwise(s, DNN_RELU, 0, 0);
    case RFT_EPI_CLAMP:
        return add_eltwise(s, DNN_CLIP, op->alpha, op->beta);
    case RFT_EPI_BIAS:
        return add_binary(s, index, DNN_BINARY_ADD, op, 1, n);
    case RFT_EPI_COL_SCALE:
        return add_binary(s, index, DNN_BINARY_MUL, op, 1, n);
    case RFT_EPI_ROW_SCALE:
        return add_binary(s, index, DNN_BINARY_MUL, op, m, 1);
    case RFT_EPI_MUL:
        return add_binary(s, index, DNN_BINARY_MUL, op, m, n);
    case RFT_EPI_ADD:
        return op->beta == 1 && add_binary(s, index, DNN_BINARY_ADD, op, m, n);
    default:
        return false;
    }
}

static bool make_post_ops(dnn_state *s, const epilogue *epi) {
    if (s->f.post_ops_create(&s->post_ops) || s->f.primitive_attr_create(&s->attr))
        return false;
    for (uint32_t i = 0; i < epi->n_op; i++)
        if (!add_op(s, (int)i, &epi->op[i]))
            return false;
    return s->f.primitive_attr_set_post_ops(s->attr, s->post_ops) == 0;
}

static bool make_primitive(peer *p, dnn_state *s) {
    const char *implementation = "";
    if (s->f.matmul_primitive_desc_create(&s->pd, s->engine, s->src_md, s->any_md, NULL, s->dst_md, s->attr) ||
        s->f.primitive_create(&s->primitive, s->pd))
        return false;
    s->f.primitive_desc_query(s->pd, DNN_QUERY_IMPL_INFO, 0, &implementation);
    const dnn_version *v = s->f.version();
    snprintf(p->version, sizeof p->version, "%d.%d.%d %s", v->major, v->minor, v->patch, implementation);
    return true;
}

static bool reorder(dnn_state *s, void *primitive, void *from, void *to) {
    const dnn_arg args[2] = {{DNN_ARG_SRC, from}, {DNN_ARG_DST, to}};
    return s->f.primitive_execute(primitive, s->stream, 2, args) == 0 && s->f.stream_wait(s->stream) == 0;
}

static bool fill_copies(dnn_state *s, const void *md, void *primitive) {
    void *raw;
    if (s->f.memory_create(&raw, s->raw_md, s->engine, (void *)(uintptr_t)weight_set_raw(s->product.weights, 0)))
        return false;
    bool good = true;
    for (int64_t i = 0; good && i < s->copies; i++)
        good = s->f.memory_create(&s->weights[i], md, s->engine, s->packed + (size_t)i * s->stride) == 0 &&
               reorder(s, primitive, raw, s->weights[i]);
    s->f.memory_destroy(raw);
    return good;
}

/* The reorder that a program does once when it loads its weights; not timed. */
static bool pack_copies(dnn_state *s) {
    const void *md = s->f.primitive_desc_query_md(s->pd, DNN_QUERY_WEIGHTS_MD, 0);
    void *pd, *primitive;
    s->stride = (s->f.memory_desc_get_size(md) + 63) & ~(size_t)63;
    s->copies = s->product.weights->copies;
    s->total = s->stride * (size_t)s->copies;
    s->packed = cli_map(s->total);
    s->weights = cli_alloc((size_t)s->copies, sizeof *s->weights);
    if (!s->packed || s->f.reorder_primitive_desc_create(&pd, s->raw_md, s->engine, md, s->engine, NULL))
        return false;
    bool good = s->f.primitive_create(&primitive, pd) == 0;
    if (good) {
        good = fill_copies(s, md, primitive);
        s->f.primitive_destroy(primitive);
    }
    s->f.primitive_desc_destroy(pd);
    return good;
}

static void finish_onednn(peer *p) {
    dnn_state *s = p->state;
    void **mds[] = {&s->src_md, &s->any_md, &s->raw_md, &s->dst_md};
    for (int i = 0; i < s->n_arg; i++)
        if (i != s->weights_arg)
            s->f.memory_destroy(s->arg[i].memory);
    for (int64_t i = 0; s->weights && i < s->copies; i++)
        s->f.memory_destroy(s->weights[i]);
    for (size_t i = 0; i < sizeof mds / sizeof mds[0]; i++)
        s->f.memory_desc_destroy(*mds[i]);
    s->f.primitive_destroy(s->primitive);
    s->f.primitive_desc_destroy(s->pd);
    s->f.primitive_attr_destroy(s->attr);
    s->f.post_ops_destroy(s->post_ops);
    free(s->weights);
    cli_unmap(s->packed, s->total);
    dnn_state kept = {.f = s->f, .engine = s->engine, .stream = s->stream};
    *s = kept;
}

static bool add_data(dnn_state *s) {
    if (!add_arg(s, DNN_ARG_SRC, s->src_md, (void *)(uintptr_t)s->product.x_data) ||
        !add_arg(s, DNN_ARG_DST, s->dst_md, s->product.y_data))
        return false;
    s->weights_arg = s->n_arg;
    s->arg[s->n_arg++] = (dnn_arg){DNN_ARG_WEIGHTS, NULL};
    return true;
}

static bool prepare_onednn(peer *p, const peer_product *product, char why[CLI_WHY]) {
    dnn_state *s = p->state;
    s->product = *product;
    s->weights_arg = -1;
    if (!type_of(product->x) || !type_of(product->w) || !type_of(product->y))
        snprintf(why, CLI_WHY, "it does not know one of these types");
    else if (!make_descriptors(s, product) || !make_post_ops(s, product->epi))
        snprintf(why, CLI_WHY, "its post-ops cannot say epilogue %.100s", product->epi->text);
    else if (!make_primitive(p, s))
        snprintf(why, CLI_WHY, "it has no matmul of %s x %s to %s here", rft_type_name(product->x), rft_type_name(product->w),
                 rft_type_name(product->y));
    else if (!add_data(s) || !pack_copies(s))
        snprintf(why, CLI_WHY, "it could not reorder the weights");
    else
        return true;
    finish_onednn(p);
    return false;
}

static bool run_onednn(peer *p, int64_t i, void *stream) {
    (void)stream;
    dnn_state *s = p->state;
    s->arg[s->weights_arg].memory = s->weights[i % s->copies];
    return s->f.primitive_execute(s->primitive, s->stream, s->n_arg, s->arg) == 0 && s->f.stream_wait(s->stream) == 0;
}

static void close_onednn(peer *p) {
    dnn_state *s = p->state;
    s->f.stream_destroy(s->stream);
    s->f.engine_destroy(s->engine);
    free(s);
    p->state = NULL;
}

static const char *const files[] = {"libdnnl.so.3", "libdnnl.so", NULL};

const peer_kind peer_onednn = {"onednn",       false,      files,         NULL,        open_onednn,
                               prepare_onednn, run_onednn, finish_onednn, close_onednn};
