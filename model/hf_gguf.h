/* SPDX-License-Identifier: Apache-2.0
 *
 * hf_gguf.h - what a checkpoint's tensors, rows and sizes are called in a GGUF file.
 *
 * Called by quantize_plan.c and quantize.c. Facts: the converter of llama.cpp; docs/formats/gguf.md.
 */
#ifndef RFT_MODEL_HF_GGUF_H
#define RFT_MODEL_HF_GGUF_H

#include "gguf_out.h"
#include "model_object.h"

/* The name in a GGUF file; false: it has none there. */
bool rft__hf_gguf_name(const char *name, char out[RFT_GGUF_MAX_NAME]);

/* Heads whose halves the file interleaves in this tensor (its GGUF name), 0 where rows keep their order. */
int64_t rft__hf_gguf_heads(const rft__hparams *h, const char *name);
/* The checkpoint's row that is row `at` of `rows` in the file. */
int64_t rft__hf_gguf_row(int64_t at, int64_t rows, int64_t heads);

/* The keys that config.json yields. file_type: general.file_type. */
rft_status rft__hf_gguf_keys(const rft_model *model, uint32_t file_type, rft__gguf_out *out, rft_error *err);

/* The divisors of the rotary frequencies that rope_scaling of type llama3 asks for: *count values, 0: none asked for. */
#define RFT_MAX_ROPE_FREQS 1024
rft_status rft__hf_rope_freqs(const rft_model *model, float freqs[RFT_MAX_ROPE_FREQS], int64_t *count, rft_error *err);

#endif
