/* SPDX-License-Identifier: Apache-2.0
 *
 * model_object.h - what an rft_model is made of. Built by model.c and constant from then on; read by quantize.c too.
 */
#ifndef RFT_MODEL_MODEL_OBJECT_H
#define RFT_MODEL_MODEL_OBJECT_H

#include "checkpoint.h"
#include "import.h"
#include "layers.h"
#include "mapping.h"
#include "onnx.h"

struct rft_model {
    rft__allocator allocator;
    rft__mapping mapping; /* of a GGUF or ONNX file or config.json; none where the caller keeps the bytes */
    uint64_t file_bytes;
    rft_model_format format;
    rft__gguf gguf;
    rft__checkpoint checkpoint;
    rft__onnx onnx;
    rft__imported imported;      /* of a checkpoint whose config.json says that it is quantised */
    const rft__tensors *tensors; /* of one of the four; none for a config.json */
    rft__hparams hparams;
    rft__layers layers;
    int64_t parameters;
};

#endif
