/* SPDX-License-Identifier: Apache-2.0
 *
 * onnx_quant.h - codes of an ONNX file with their scales and zero points as one imported weight.
 *
 * Called by onnx_layers.c. A form that is not read leaves the tensor as it is: its codes alone are the row's bytes.
 */
#ifndef RFT_MODEL_ONNX_QUANT_H
#define RFT_MODEL_ONNX_QUANT_H

#include "onnx.h"

typedef struct rft__onnx_value { /* an operand that is constant */
    int64_t tensor;        /* -1: it is not */
    bool turned;           /* its last two dimensions are exchanged on the way */
    int64_t scale, zero;   /* tensors, -1: none */
    int64_t axis, block;   /* of scales: the dimension they lie along, and how many share one (0: all of the other dimension) */
    bool scaled_turned;    /* axis and scales are of the turned tensor */
} rft__onnx_value;

/* MatMulNBits: codes [N][blocks][bytes of a block], scales and zero points a block. */
rft_status rft__onnx_bind_blocks(rft__onnx *onnx, const rft__onnx_node *node, const rft__onnx_value *v, rft_error *err);
/* A matrix of 4- or 8-bit codes, one scale for all, for each row or column, or for blocks along k. k_inner: rows run along k. */
void rft__onnx_bind_scaled(rft__onnx *onnx, const rft__onnx_value *v, bool k_inner);

#endif
