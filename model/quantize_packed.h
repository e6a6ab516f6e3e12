/* SPDX-License-Identifier: Apache-2.0
 *
 * quantize_packed.h - a checkpoint whose linear layers are stored as compressed-tensors has them: the plan of its data, the
 * header of its safetensors file, and its config.json. Called by quantize.c; layout in docs/formats/quantised.md.
 */
#ifndef RFT_MODEL_QUANTIZE_PACKED_H
#define RFT_MODEL_QUANTIZE_PACKED_H

#include "quantize_plan.h"

/* Packed tensors first, then all others by falling size of their elements. */
rft_status rft__packed_plan_make(const rft_model *model, const rft_quantize_options *o, rft__quantize_plan *out, rft_error *err);

/* Header, and the shapes, which are the first data. */
rft_status rft__packed_put_head(const rft__quantize_plan *plan, rft__gguf_out *out, rft_error *err);
/* The scales, which come behind the codes. */
void rft__packed_put_scales(const rft__quantize_plan *plan, rft__gguf_out *out);

/* The text of config.json, which the caller frees by free(). */
rft_status rft__packed_config(const rft_model *model, const rft_quantize_options *o, const rft__quantize_plan *plan, char **out,
                              rft_error *err);

#endif
