/* SPDX-License-Identifier: Apache-2.0
 *
 * model_layer.h - a layer of a model file as the product that runs it. Called by the commands that take a model.
 */
#ifndef MODEL_LAYER_H
#define MODEL_LAYER_H

#include "options.h"
#include "rooftile_model.h"

/* The options of a layer's product in its pass: its types, orders and epilogue, the rest of `base`. x_given: base says the
 * type of X. *decoded: W does not run as it is stored. */
run_options model_layer_options(const run_options *base, bool x_given, const rft_model *model, const rft_layer *layer,
                                bool *decoded);

/* W of a layer in memory, as its options have it. */
typedef struct layer_weights {
    rft_weight_src src;
    void *memory; /* NULL: src is the file's own mapping */
    size_t bytes;
} layer_weights;

/* Of a layer that has a tensor; o: its options. An exit code; unload them in any case. */
int model_layer_load(const rft_model *model, const rft_layer *layer, const run_options *o, bool decoded, layer_weights *out);
void model_layer_unload(layer_weights *weights);

#endif
