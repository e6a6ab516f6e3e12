/* SPDX-License-Identifier: Apache-2.0
 *
 * torch_ops.c - see torch_ops.h. One row an op: where X, W and what is added stand among its arguments.
 */
#include "trace/torch_ops.h"

#include <stdio.h>
#include <string.h>

#define MOST_DIMS 8

typedef enum w_form { W_NK, W_KN } w_form; /* [out, in], or [in, out] as the second factor of a product */

typedef struct product_op {
    const char *name;
    int x, w;
    w_form form;
    int added;      /* the bias, or the matrix of addmm; -1: none */
    int activation; /* the argument that names one; -1: none */
} product_op;

static const product_op products[] = {
    {"aten::linear", 0, 1, W_NK, 2, -1},
    {"aten::mm", 0, 1, W_KN, -1, -1},
    {"aten::addmm", 1, 2, W_KN, 0, -1},
    {"aten::_addmm_activation", 1, 2, W_KN, 0, 5},
    {"aten::matmul", 0, 1, W_KN, -1, -1},
    {"aten::bmm", 0, 1, W_KN, -1, -1},
    {"aten::baddbmm", 1, 2, W_KN, 0, -1},
    {"aten::mv", 1, 0, W_NK, -1, -1},
    {"aten::addmv", 2, 1, W_NK, 0, -1},
    {"aten::_int_mm", 0, 1, W_KN, -1, -1},
    {"aten::_scaled_mm", 0, 1, W_KN, -1, -1},
    {"aten::mkldnn_linear", 0, 1, W_NK, 2, -1},
    {"mkldnn::_linear_pointwise", 0, 1, W_NK, 2, 3},
    {"mkl::_mkl_linear", 0, 2, W_NK, 3, -1},
};

static const product_op *find_product(const char *name) {
    for (size_t i = 0; i < sizeof products / sizeof *products; i++)
        if (strcmp(products[i].name, name) == 0)
            return &products[i];
    return NULL;
}

/* ---- arguments ---- */

typedef struct tensor_arg {
    int rank; /* 0: no tensor, or a scalar */
    int64_t dims[MOST_DIMS], strides[MOST_DIMS];
    bool strided;
} tensor_arg;

/* How many, or -1: no list of whole numbers of at most MOST_DIMS. */
static int read_numbers(const json_t *list, int64_t out[MOST_DIMS]) {
    const size_t n = json_array_size(list);
    if (!json_is_array(list) || n > MOST_DIMS)
        return -1;
    for (size_t i = 0; i < n; i++) {
        const json_t *value = json_array_get(list, i);
        if (!json_is_integer(value) || json_integer_value(value) < 0)
            return -1;
        out[i] = json_integer_value(value);
    }
    return (int)n;
}

static bool read_tensor(const torch_args *args, int index, tensor_arg *out) {
    *out = (tensor_arg){0};
    out->rank = read_numbers(json_array_get(args->dims, (size_t)index), out->dims);
    out->strided = read_numbers(json_array_get(args->strides, (size_t)index), out->strides) == out->rank;
    return out->rank >= 0;
}

static const char *text_of(const json_t *list, int index) {
    const char *text = index >= 0 ? json_string_value(json_array_get(list, (size_t)index)) : NULL;
    return text ? text : "";
}

/* The library's name of a type of PyTorch; another as it is. */
static const char *type_name(const char *torch) {
    static const char *const names[][2] = {
        {"float", "f32"},        {"c10::BFloat16", "bf16"}, {"c10::Half", "f16"},           {"signed char", "i8"},
        {"unsigned char", "u8"}, {"double", "f64"},         {"c10::Float8_e4m3fn", "e4m3"}, {"c10::Float8_e5m2", "e5m2"}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(torch, names[i][0]) == 0)
            return names[i][1];
    return torch;
}

/* ---- the shape ---- */

/* Sizes in front of the last two, multiplied; false: too large. */
static bool lead_of(const tensor_arg *a, int inner, int64_t *out) {
    *out = 1;
    for (int i = 0; i + inner < a->rank; i++)
        if (!cli_product(*out, a->dims[i], 1, out))
            return false;
    return true;
}

static int64_t dim_from_end(const tensor_arg *a, int back) { return a->rank >= back ? a->dims[a->rank - back] : 1; }

/* X [..., m, k] times W, whose own leading sizes are those of a batch. A W without them meets all rows of X. */
static bool set_shape(trace_call *call, const product_op *op, const tensor_arg *x, const tensor_arg *w) {
    int64_t batch, rows, x_lead;
    const bool vector = w->rank == 1; /* of k */
    const int64_t k = dim_from_end(x, 1), n = vector ? 1 : dim_from_end(w, op->form == W_NK ? 2 : 1);
    const int64_t w_k = vector ? w->dims[0] : dim_from_end(w, op->form == W_NK ? 1 : 2);
    if (x->rank == 0 || w->rank == 0 || w_k != k || !lead_of(w, 2, &batch) || !lead_of(x, 1, &rows) || !lead_of(x, 2, &x_lead))
        return false;
    if (batch <= 1)
        return trace_set_shape(call, 1, rows, n, k);
    return trace_set_shape(call, x_lead > batch ? x_lead : batch, dim_from_end(x, 2), n, k);
}

/* 'n' where the last index of a tensor's last two is the contiguous one, 't' where the other is, 0 where neither is. Ties of
 * sizes of 1 go to `tie`. */
static char order_of(const tensor_arg *a, char tie) {
    if (!a->strided || a->rank == 0)
        return 0;
    const bool rows = a->strides[a->rank - 1] == 1, columns = a->rank > 1 && a->strides[a->rank - 2] == 1;
    if (a->rank == 1 || (rows && columns))
        return rows ? tie : 0;
    return rows ? 'n' : columns ? 't' : 0;
}

/* As BLAS names it: W is transposed where its k is contiguous, which [out, in] in rows has. */
static void set_layout(trace_call *call, const product_op *op, const tensor_arg *x, const tensor_arg *w) {
    const bool nk = op->form == W_NK;
    const char of_x = order_of(x, 'n'), of_w = order_of(w, nk ? 'n' : 't');
    if (!of_x || !of_w)
        return;
    call->layout[0] = of_x;
    call->layout[1] = nk ? (of_w == 'n' ? 't' : 'n') : of_w;
}

/* ---- what follows ---- */

static void add_typed(trace_call *call, const char *op, const char *type) {
    char text[40];
    const bool plain = strcmp(type, "bf16") != 0 && strcmp(type, "f16") != 0; /* f32, or not told */
    snprintf(text, sizeof text, "%s%s%s", op, plain ? "" : "@", plain ? "" : type);
    trace_add_epi(call, text);
}

/* A vector of n is a bias; of one matrix of m x n it is beta * C. */
static void set_added(trace_call *call, const product_op *op, const torch_args *args) {
    tensor_arg added;
    if (op->added < 0 || !read_tensor(args, op->added, &added) || added.rank == 0)
        return;
    const char *beta = op->added == 0 ? text_of(args->values, op->w + 1) : "";
    const bool bias = added.rank == 1 || (added.rank == 2 && added.dims[0] == 1 && call->m != 1);
    if (strcmp(beta, "0") == 0)
        return;
    add_typed(call, bias ? "bias" : "add", type_name(text_of(args->types, op->added)));
}

static void set_activation(trace_call *call, const product_op *op, const torch_args *args) {
    const char *value = text_of(args->values, op->activation);
    if (op->activation < 0)
        return;
    if (strcmp(op->name, "aten::_addmm_activation") == 0)
        value = strcmp(value, "True") == 0 ? "gelu_tanh" : "relu";
    else if (strcmp(value, "swish") == 0)
        value = "silu";
    if (strcmp(value, "relu") == 0 || strcmp(value, "gelu_tanh") == 0 || strcmp(value, "gelu") == 0 || strcmp(value, "silu") == 0)
        trace_add_epi(call, value);
}

static void describe(trace_call *call, const product_op *op, const torch_args *args) {
    tensor_arg x, w;
    if (!read_tensor(args, op->x, &x) || !read_tensor(args, op->w, &w) || !set_shape(call, op, &x, &w))
        return;
    snprintf(call->x, sizeof call->x, "%s", type_name(text_of(args->types, op->x)));
    snprintf(call->w, sizeof call->w, "%s", type_name(text_of(args->types, op->w)));
    if (strcmp(call->x, "f32") == 0 || strcmp(call->x, "bf16") == 0 || strcmp(call->x, "f16") == 0)
        snprintf(call->y, sizeof call->y, "%s", call->x);
    set_layout(call, op, &x, &w);
    strcpy(call->epi, "none");
    set_added(call, op, args);
    set_activation(call, op, args);
}

trace_call torch_call(const char *name, const torch_args *args) {
    trace_call call = {0};
    const product_op *op = find_product(name);
    trace_set_name(&call, name);
    call.group = op ? TRACE_GEMM : trace_group_of(name);
    if (op)
        describe(&call, op, args);
    return call;
}
