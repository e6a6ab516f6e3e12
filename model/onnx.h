/* SPDX-License-Identifier: Apache-2.0
 *
 * onnx.h - the weights of an ONNX file: its initializers, in the file or in files beside it, and the products that its graphs
 * make of them.
 *
 * Called by model.c, which keeps the file mapped. Invariant after rft__onnx_open: the tensors obey tensors.h; those of graphs
 * inside of nodes are called #<graph>/<name>.
 */
#ifndef RFT_MODEL_ONNX_H
#define RFT_MODEL_ONNX_H

#include "import.h"
#include "layers.h"
#include "mapping.h"
#include "onnx_proto.h"

#define RFT_ONNX_MAX_NAME  512 /* of a tensor, with its terminator */
#define RFT_ONNX_MAX_FILES 4096

typedef struct rft__onnx_file {
    char name[256];
    rft__mapping map;
} rft__onnx_file;

enum { RFT_ONNX_PARTS = 3 }; /* codes, scales, zero points */

typedef struct rft__onnx_weight { /* codes with what a node or a DequantizeLinear says of them */
    rft__import import;
    rft__tensor parts[RFT_ONNX_PARTS]; /* as stored */
} rft__onnx_weight;

typedef struct rft__onnx {
    rft__wire file;
    rft__span graph, name;
    const char *folder; /* of the files beside; NULL: none may be opened */
    rft__tensors tensors;
    rft__onnx_file *files; /* sorted by name */
    size_t n_files, files_room;
    unsigned char *copied; /* data of tensors that typed fields scatter */
    size_t copied_bytes;
    rft__onnx_weight *weights;
    size_t n_weights, weights_room;
} rft__onnx;

/* A guess by the first bytes: an ONNX file has no magic. */
bool rft__onnx_begins(const unsigned char *bytes, size_t size);
/* folder lives until then; on failure everything is released. */
rft_status rft__onnx_open(const rft__allocator *a, const unsigned char *bytes, size_t size, const char *folder, rft__onnx *out,
                          rft_error *err);
void rft__onnx_free(const rft__allocator *a, rft__onnx *onnx);
uint64_t rft__onnx_beside_bytes(const rft__onnx *onnx); /* of the files beside */

/* The tensor that a name means in a graph, -1: none. */
int64_t rft__onnx_find(const rft__onnx *onnx, const rft__onnx_scope *scope, rft__span name);

/* Rows of one name but for numbers, type and shape are one; they come in the order of the nodes. Weights with scales become
 * imported tensors on the way. */
rft_status rft__onnx_layers(const rft__allocator *a, rft__onnx *onnx, rft__layers *out, rft_error *err);

#endif
