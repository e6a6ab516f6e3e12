/* SPDX-License-Identifier: Apache-2.0
 *
 * cuda_weight.h - packing and unpacking of a GPU's weights, as problem/backend.h asks for. See cuda_weight.c.
 */
#ifndef RFT_CUDA_CUDA_WEIGHT_H
#define RFT_CUDA_CUDA_WEIGHT_H

#include "cuda/cuda_device.h"

rft_status rft__cuda_weight_pack(rft__device *device, const rft__matrix *w, const rft__stored_w *from, void *data, void *stream,
                                 rft_error *err);
rft_status rft__cuda_weight_unpack(rft__device *device, const rft__matrix *w, const void *data, float *out, int64_t ld,
                                   rft_error *err);

#endif
