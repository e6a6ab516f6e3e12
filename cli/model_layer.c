/* SPDX-License-Identifier: Apache-2.0
 *
 * model_layer.c - see model_layer.h.
 */
#include "model_layer.h"

#include <string.h>

/* What multiplies a stored W: floats as they are, on the CPU formats that it packs as they are; others decoded to bf16. */
static rft_type type_as_run(const run_options *base, const rft_layer *layer) {
    rft_linear_desc d = rft_linear_desc_init();
    rft_work work = {.struct_size = sizeof work};
    bool on_cpu = strncmp(base->device, "cpu", 3) == 0;
    d.x = d.y = RFT_F32;
    d.m_max = 1;
    d.w.elem = layer->type;
    d.w.n = layer->n;
    d.w.k = layer->k;
    bool native = (on_cpu || !cli_low_bit(layer->type)) && rft_work_of(&d, 1, &work, NULL) == RFT_OK;
    return native ? layer->type : RFT_BF16;
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
    o.w = type_as_run(base, layer);
    if (!x_given)
        o.x = cli_low_bit(o.w) ? RFT_F32 : o.w;
    if (o.compute == RFT_COMPUTE_I8 && !cli_low_bit(o.w))
        o.compute = RFT_COMPUTE_AUTO;
    make_epilogue(layer, &o.epi);
    return o;
}
