/* SPDX-License-Identifier: Apache-2.0
 *
 * matrices.h - the layers of a file whose architecture has no row in archs.c: every matrix that can be a weight.
 *
 * Called by model.c, and for what rows have in common by onnx_layers.c. Rows obey the invariant of layers.h, but come in the
 * order of the file.
 */
#ifndef RFT_MODEL_MATRICES_H
#define RFT_MODEL_MATRICES_H

#include "layers.h"

/* Stacks of matrices are rows too. Tensors that differ in the numbers of their names alone ("layers.0.up", "layers.1.up") are one
 * row, "layers.*.up". */
rft_status rft__layers_from_matrices(const rft__allocator *a, const rft__tensors *tensors, rft__layers *out, rft_error *err);

/* Floats and codes; whatever the number of dimensions. */
bool rft__matrix_can_be_weight(const rft__tensor *t);
/* Copies a name with `*` for each part between separators that is a number, never longer; returns what is behind its end. */
char *rft__write_pattern(const char *name, size_t length, const char *separators, char *out);
/* Makes one row of those that differ in tensors alone, where the first of them stands; counts add up. */
void rft__layers_merge(rft__layers *layers);

#endif
