/* SPDX-License-Identifier: Apache-2.0
 *
 * model_layer.c - see model_layer.h.
 */
#include "model_layer.h"

/* What multiplies a stored W: plain types as they are, block formats decoded to bf16 when they are loaded. */
static rft_type type_as_run(rft_type stored) {
    return stored == RFT_F32 || stored == RFT_F16 || stored == RFT_BF16 ? stored : RFT_BF16;
}

static void make_epilogue(const rft_layer *layer, epilogue *e) {
    *e = (epilogue){.n_op = layer->n_epi};
    for (uint32_t i = 0; i < layer->n_epi; i++) {
        rft_epi_kind kind = layer->epi[i];
        bool operand = kind == RFT_EPI_BIAS || kind == RFT_EPI_MUL || kind == RFT_EPI_ADD;
        e->op[i] = (rft_epi_op){.kind = kind, .operand = i, .type = operand ? RFT_F32 : (rft_type)0, .beta = 1};
    }
    epilogue_text(e);
}

run_options model_layer_options(const run_options *base, bool x_given, const rft_layer *layer) {
    run_options o = *base;
    o.w = type_as_run(layer->type);
    if (!x_given)
        o.x = o.w;
    make_epilogue(layer, &o.epi);
    return o;
}
