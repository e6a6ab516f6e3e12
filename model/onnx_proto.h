/* SPDX-License-Identifier: Apache-2.0
 *
 * onnx_proto.h - the messages of an ONNX file that say what its graphs multiply: nodes with attributes, and tensors.
 *
 * Called by onnx.c and onnx_layers.c, which walk the file several times over the same bytes and keep spans of it. Field numbers
 * are those of onnx.proto; all that is not named here is skipped. Facts: docs/formats/onnx.md.
 */
#ifndef RFT_MODEL_ONNX_PROTO_H
#define RFT_MODEL_ONNX_PROTO_H

#include "format/format.h"
#include "rooftile_model.h"
#include "wire.h"

enum { RFT_ONNX_INPUTS = 9, RFT_ONNX_GRAPHS_DEEP = 8 };

typedef struct rft__onnx_node {
    rft__span op, domain, name, output; /* the first output */
    rft__span inputs[RFT_ONNX_INPUTS];
    size_t n_inputs; /* of those kept */
    /* Attributes, 0 (axis: 1) where they are absent. */
    int64_t trans_a, trans_b, axis, block_size, bits, n, k;
    int64_t perm[RFT_TENSOR_MAX_DIMS];
    size_t n_perm;   /* as many as there are, also where they are too many to be kept */
    rft__span value; /* of a Constant: its tensor */
} rft__onnx_node;

typedef struct rft__onnx_tensor {
    rft__span name;
    uint32_t n_dims;
    int64_t dims[RFT_TENSOR_MAX_DIMS]; /* dims[0] is contiguous; dimensions beyond the last are multiplied into it */
    const rft__format *format;         /* NULL: a type that no weight has */
    int64_t elements, bytes;           /* of 4-bit types two in a byte, without gaps between rows */
    rft__span raw;                     /* in the file; bytes NULL: elsewhere */
    int64_t values;                    /* else: numbers of typed fields, which must be copied */
    bool external;
    rft__span location; /* external */
    uint64_t offset, length;
    bool has_length;
} rft__onnx_tensor;

typedef struct rft__onnx_scope rft__onnx_scope;
struct rft__onnx_scope { /* a graph; those of nodes' attributes see the names of the one around them */
    const rft__onnx_scope *outer;
    int32_t id; /* 0: the model's own */
};

/* What a walk calls: for each initializer and Constant (named by its output), for each other node. */
typedef struct rft__onnx_visitor {
    void *user;
    rft_status (*tensor)(void *user, const rft__onnx_scope *scope, const rft__wire *file, rft__span message, rft__span name);
    rft_status (*node)(void *user, const rft__onnx_scope *scope, const rft__wire *file, const rft__onnx_node *node,
                       rft__span message);
} rft__onnx_visitor;

/* Finds the model's graph, and its name. */
rft_status rft__onnx_graph(const rft__wire *file, rft__span *graph, rft__span *name);
/* Initializers of a graph come before its nodes, nodes in their order, and graphs inside of a node behind it. */
rft_status rft__onnx_walk(const rft__wire *file, rft__span graph, const rft__onnx_visitor *visitor);
rft_status rft__onnx_read_node(const rft__wire *file, rft__span message, rft__onnx_node *node);
/* Checks sizes; where data lies outside of the file, only its numbers. */
rft_status rft__onnx_read_tensor(const rft__wire *file, rft__span message, rft__onnx_tensor *tensor);
/* Writes the `values` of a tensor that was read, in its stored type. */
rft_status rft__onnx_copy_values(const rft__wire *file, rft__span message, const rft__onnx_tensor *tensor, unsigned char *dst);

#endif
