/* SPDX-License-Identifier: Apache-2.0
 *
 * model_layer.h - a layer of a model file as the product that runs it. Called by the commands that take a model.
 */
#ifndef MODEL_LAYER_H
#define MODEL_LAYER_H

#include "options.h"
#include "rooftile_model.h"

/* The options of a layer's product: its types and epilogue, the rest of `base`. x_given: base says the type of X. */
run_options model_layer_options(const run_options *base, bool x_given, const rft_layer *layer);

#endif
