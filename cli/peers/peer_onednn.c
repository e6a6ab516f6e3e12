/* SPDX-License-Identifier: Apache-2.0
 *
 * peer_onednn.c - oneDNN's matmul: W in f32, bf16, f16 or codes with scales (onednn_codes.c), reordered beforehand to the format
 * that the primitive asks for, the epilogue as post-ops. The version names the implementation that runs; its reference is none.
 */
#include "peers/onednn_state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINE ((size_t)64)

int dnn_type(rft_type type) {
    static const int types[] = {[RFT_F32] = DNN_F32, [RFT_F16] = DNN_F16, [RFT_BF16] = DNN_BF16, [RFT_I8] = DNN_S8,
                                [RFT_U8] = DNN_U8,   [RFT_I4] = DNN_S4,   [RFT_U4] = DNN_U4,     [RFT_E2M1] = DNN_E2M1,
                                [RFT_E8M0] = DNN_E8M0};
    return (size_t)type < sizeof types / sizeof types[0] ? types[type] : 0;
}

static const char *find_functions(const peer *p, dnn_api *f) {
#define DNN_FIND(result, name, parameters)                                                                                       \
    *(void **)&f->name = peer_symbol(p, "dnnl_" #name);                                                                          \
    if (!f->name)                                                                                                                \
        return "dnnl_" #name;
    DNN_FUNCTIONS(DNN_FIND)
#undef DNN_FIND
#define DNN_FIND(result, name, parameters) *(void **)&f->name = peer_symbol(p, "dnnl_" #name);
    DNN_CODE_FUNCTIONS(DNN_FIND)
#undef DNN_FIND
    return NULL;
}

static bool open_onednn(peer *p, char why[CLI_WHY]) {
    dnn_state *s = cli_alloc(1, sizeof *s);
    const char *missing = find_functions(p, &s->f);
    p->state = s;
    s->x_is_u8 = p->kind == &peer_onednn_u8;
    if (missing)
        snprintf(why, CLI_WHY, "it does not export %s (version 3 is needed)", missing);
    else if (s->f.engine_create(&s->engine, DNN_CPU, 0) || s->f.stream_create(&s->stream, s->engine, DNN_IN_ORDER))
        snprintf(why, CLI_WHY, "it makes no CPU engine");
    else
        return true;
    free(s);
    return false;
}

bool dnn_make_md(dnn_state *s, void **md, int type, int64_t rows, int64_t columns, int64_t row_stride, int64_t column_stride) {
    dnn_dims dims = {1, rows, columns}, strides = {rows * columns, row_stride, column_stride};
    return s->f.memory_desc_create_with_strides(md, 2 + s->lead, dims + 1 - s->lead, type, strides + 1 - s->lead) == 0;
}

static bool make_descriptors(dnn_state *s) {
    const peer_product *q = &s->product;
    bool xk = q->x_order == RFT_K_CONTIGUOUS, wk = q->w_order == RFT_K_CONTIGUOUS;
    dnn_dims w = {1, q->k, q->n};
    return dnn_make_md(s, &s->src_md, s->x_type, q->m, q->k, xk ? q->k : 1, xk ? 1 : q->m) &&
           dnn_make_md(s, &s->raw_md, s->w_type, q->k, q->n, wk ? 1 : q->n, wk ? q->k : 1) &&
           dnn_make_md(s, &s->dst_md, dnn_type(q->y), q->m, q->n, q->n, 1) &&
           s->f.memory_desc_create_with_tag(&s->any_md, 2 + s->lead, w + 1 - s->lead, s->w_type, DNN_TAG_ANY) == 0;
}

bool dnn_add_arg(dnn_state *s, int arg, const void *md, void *data) {
    s->arg[s->n_arg] = (dnn_arg){arg, NULL};
    return s->f.memory_create(&s->arg[s->n_arg++].memory, md, s->engine, data) == 0;
}

/* An operand over rows x columns, 1 where it is broadcast. */
static bool add_binary(dnn_state *s, int alg, rft_type type, const void *data, int64_t rows, int64_t columns) {
    void *md;
    if (!dnn_make_md(s, &md, dnn_type(type), rows, columns, columns, 1))
        return false;
    bool good = s->f.post_ops_append_binary(s->post_ops, alg, md) == 0 &&
                dnn_add_arg(s, DNN_ARG_POST_OP * ++s->n_post_op | DNN_ARG_SRC_1, md, (void *)(uintptr_t)data);
    s->f.memory_desc_destroy(md);
    return good;
}

static bool add_eltwise(dnn_state *s, int alg, float alpha, float beta) {
    s->n_post_op++;
    return s->f.post_ops_append_eltwise(s->post_ops, alg, alpha, beta) == 0;
}

static bool add_op(dnn_state *s, const rft_epi_op *op) {
    int64_t m = s->product.m, n = s->product.n;
    const void *data = s->product.operand[op->operand].ptr;
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
        return add_binary(s, DNN_BINARY_ADD, op->type, data, 1, n);
    case RFT_EPI_COL_SCALE:
        return add_binary(s, DNN_BINARY_MUL, op->type, data, 1, n);
    case RFT_EPI_ROW_SCALE:
        return add_binary(s, DNN_BINARY_MUL, op->type, data, m, 1);
    case RFT_EPI_MUL:
        return add_binary(s, DNN_BINARY_MUL, op->type, data, m, n);
    case RFT_EPI_ADD:
        return op->beta == 1 && add_binary(s, DNN_BINARY_ADD, op->type, data, m, n);
    default:
        return false;
    }
}

/* Scales of given codes come first: as scales of x 3.6 has rows of them in its reference alone. */
static bool make_post_ops(dnn_state *s, char why[CLI_WHY]) {
    const peer_product *q = &s->product;
    bool good = q->x != RFT_I8 || add_binary(s, DNN_BINARY_MUL, RFT_F32, q->x_scale, q->m, 1);
    for (uint32_t i = 0; good && i < q->epi->n_op; i++)
        good = add_op(s, &q->epi->op[i]);
    if (!good)
        snprintf(why, CLI_WHY, "its post-ops cannot say epilogue %.100s", q->epi->text);
    return good;
}

/* ---- the primitive ---- */

/* A descriptor of a kernel that is made to be fast. */
static bool describe_matmul(dnn_state *s, const void *weights_md) {
    const char *implementation = "";
    if (s->f.matmul_primitive_desc_create(&s->pd, s->engine, s->src_md, weights_md, NULL, s->dst_md, s->attr))
        return false;
    if (s->f.primitive_desc_query(s->pd, DNN_QUERY_IMPL_INFO, 0, &implementation) == 0 && strncmp(implementation, "ref", 3) != 0)
        return true;
    s->f.primitive_desc_destroy(s->pd);
    s->pd = NULL;
    return false;
}

static const void *weights_md(const dnn_state *s) { return s->f.primitive_desc_query_md(s->pd, DNN_QUERY_WEIGHTS_MD, 0); }

static bool describe_packed(dnn_state *s) {
    if (!describe_matmul(s, s->any_md))
        return false;
    if (s->f.reorder_primitive_desc_create(&s->reorder_pd, s->raw_md, s->engine, weights_md(s), s->engine, NULL) == 0)
        return true;
    s->f.primitive_desc_destroy(s->pd);
    s->pd = s->reorder_pd = NULL;
    return false;
}

/* W in the format that the primitive asks for, or as stored where it has none for such a W or cannot reorder to it, or where
 * that is asked for. */
static bool make_primitive(peer *p, dnn_state *s) {
    const char *implementation = "";
    const bool packs = p->kind != &peer_onednn_plain;
    if (!((packs && describe_packed(s)) || describe_matmul(s, s->raw_md)) || s->f.primitive_create(&s->primitive, s->pd))
        return false;
    s->f.primitive_desc_query(s->pd, DNN_QUERY_IMPL_INFO, 0, &implementation);
    const dnn_version *v = s->f.version();
    snprintf(p->version, sizeof p->version, "%d.%d.%d %s%s", v->major, v->minor, v->patch, implementation,
             s->reorder_pd ? "" : ", W as stored");
    return true;
}

/* ---- copies of W, each with its scales and zero points behind it ---- */

static bool reorder(dnn_state *s, void *to) {
    void *from, *memory = NULL, *primitive = NULL;
    if (s->f.memory_create(&from, s->raw_md, s->engine, (void *)(uintptr_t)weight_set_raw(s->product.weights, 0)))
        return false;
    bool good = s->f.memory_create(&memory, weights_md(s), s->engine, to) == 0 &&
                s->f.primitive_create(&primitive, s->reorder_pd) == 0;
    const dnn_arg args[2] = {{DNN_ARG_SRC, from}, {DNN_ARG_DST, memory}};
    good = good && s->f.primitive_execute(primitive, s->stream, 2, args) == 0 && s->f.stream_wait(s->stream) == 0;
    s->f.primitive_destroy(primitive);
    s->f.memory_destroy(memory);
    s->f.memory_destroy(from);
    return good;
}

static bool fill_first(dnn_state *s) {
    for (int i = DNN_SCALES; i < DNN_PARTS; i++)
        if (s->part[i].bytes)
            memcpy(s->copies + s->part[i].at, s->part[i].data, s->part[i].bytes);
    if (s->reorder_pd)
        return reorder(s, s->copies);
    memcpy(s->copies, weight_set_raw(s->product.weights, 0), s->product.weights->raw_bytes);
    return true;
}

static bool make_memories(dnn_state *s, dnn_part *part, const void *md) {
    bool good = true;
    part->memory = cli_alloc((size_t)s->n_copy, sizeof *part->memory);
    for (int64_t i = 0; good && i < s->n_copy; i++)
        good = s->f.memory_create(&part->memory[i], md, s->engine, s->copies + (size_t)i * s->stride + part->at) == 0;
    return good;
}

static void lay_out(dnn_state *s) {
    s->part[DNN_W].arg = DNN_ARG_WEIGHTS;
    s->part[DNN_W].bytes = s->f.memory_desc_get_size(weights_md(s));
    s->stride = 0;
    for (int i = 0; i < DNN_PARTS; i++) {
        s->part[i].at = s->stride;
        s->stride += (s->part[i].bytes + LINE - 1) & ~(LINE - 1);
    }
    s->n_copy = s->product.weights->copies;
    s->total = s->stride * (size_t)s->n_copy;
}

/* What a program does once when it loads its weights; not timed. */
static bool pack_copies(dnn_state *s) {
    lay_out(s);
    s->copies = cli_map(s->total);
    if (!s->copies || !fill_first(s))
        return false;
    for (int64_t i = 1; i < s->n_copy; i++)
        memcpy(s->copies + (size_t)i * s->stride, s->copies, s->stride);
    for (int i = 0; i < DNN_PARTS; i++)
        if (s->part[i].bytes && !make_memories(s, &s->part[i], i == DNN_W ? weights_md(s) : s->part[i].md))
            return false;
    return true;
}

static void finish_onednn(peer *p) {
    dnn_state *s = p->state;
    void *mds[] = {s->src_md, s->any_md, s->raw_md, s->dst_md};
    for (int i = 0; i < s->n_arg; i++)
        s->f.memory_destroy(s->arg[i].memory);
    for (int part = 0; part < DNN_PARTS; part++) {
        for (int64_t i = 0; s->part[part].memory && i < s->n_copy; i++)
            s->f.memory_destroy(s->part[part].memory[i]);
        free(s->part[part].memory);
    }
    for (size_t i = 0; i < sizeof mds / sizeof mds[0]; i++)
        s->f.memory_desc_destroy(mds[i]);
    s->f.primitive_destroy(s->primitive);
    s->f.primitive_desc_destroy(s->reorder_pd);
    s->f.primitive_desc_destroy(s->pd);
    s->f.primitive_attr_destroy(s->attr);
    s->f.post_ops_destroy(s->post_ops);
    dnn_codes_free(s);
    cli_unmap(s->copies, s->total);
    *s = (dnn_state){.f = s->f, .engine = s->engine, .stream = s->stream, .x_is_u8 = s->x_is_u8};
}

static bool add_data(dnn_state *s) {
    return dnn_add_arg(s, DNN_ARG_SRC, s->src_md, (void *)(uintptr_t)s->x_data) &&
           dnn_add_arg(s, DNN_ARG_DST, s->dst_md, s->product.y_data);
}

/* What the row says to the attributes. */
static bool make_attributes(peer *p, dnn_state *s, char why[CLI_WHY]) {
    const peer_product *q = &s->product;
    bool codes = cli_low_bit(q->w), in_8_bits = dnn_in_8_bits(s), given = q->x == RFT_I8;
    if (!dnn_type(q->x) || !dnn_type(q->w) || !dnn_type(q->y))
        snprintf(why, CLI_WHY, "it does not know one of these types");
    else if (s->x_is_u8 && !in_8_bits)
        snprintf(why, CLI_WHY, "it stands beside products in 8 bits alone");
    else if (given && (!codes || q->compute == RFT_COMPUTE_F32 || q->x_groups > 1))
        snprintf(why, CLI_WHY, "x in 8 bits meets codes in 8 bits there, and has a scale a row");
    else if (s->f.post_ops_create(&s->post_ops) || s->f.primitive_attr_create(&s->attr))
        snprintf(why, CLI_WHY, "it has no memory");
    else
        return (!codes || dnn_codes_make(s, why)) && (!in_8_bits || dnn_x_make(p, s, why)) && make_post_ops(s, why) &&
               s->f.primitive_attr_set_post_ops(s->attr, s->post_ops) == 0;
    return false;
}

static bool ready(peer *p, dnn_state *s, char why[CLI_WHY]) {
    const peer_product *q = &s->product;
    if (!make_attributes(p, s, why))
        return false;
    if (!make_descriptors(s) || !make_primitive(p, s))
        snprintf(why, CLI_WHY, "it has no matmul of %s x %s to %s here but its reference", rft_type_name(q->x),
                 rft_type_name(q->w), rft_type_name(q->y));
    else if (!add_data(s) || !pack_copies(s))
        snprintf(why, CLI_WHY, "it could not reorder the weights");
    else
        return true;
    return false;
}

static bool prepare_onednn(peer *p, const peer_product *product, char why[CLI_WHY]) {
    dnn_state *s = p->state;
    s->product = *product;
    s->x_type = dnn_type(product->x);
    s->w_type = dnn_type(product->w);
    s->x_data = product->x_data;
    s->lead = product->x == RFT_I8;
    bool good = ready(p, s, why);
    if (!good)
        finish_onednn(p);
    return good;
}

static bool run_onednn(peer *p, int64_t i, void *stream) {
    (void)stream;
    dnn_state *s = p->state;
    dnn_arg arg[DNN_MOST_ARGS];
    int n = s->n_arg;
    memcpy(arg, s->arg, (size_t)n * sizeof *arg);
    for (int part = 0; part < DNN_PARTS; part++)
        if (s->part[part].memory)
            arg[n++] = (dnn_arg){s->part[part].arg, s->part[part].memory[i % s->n_copy]};
    return s->f.primitive_execute(s->primitive, s->stream, n, arg) == 0 && s->f.stream_wait(s->stream) == 0;
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
const peer_kind peer_onednn_u8 = {"onednn-u8",    false,      files,         NULL,        open_onednn,
                                  prepare_onednn, run_onednn, finish_onednn, close_onednn};
const peer_kind peer_onednn_plain = {"onednn-plain", false,      files,         NULL,        open_onednn,
                                     prepare_onednn, run_onednn, finish_onednn, close_onednn};
