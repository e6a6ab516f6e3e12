/* SPDX-License-Identifier: Apache-2.0
 *
 * trace_product.c - see trace_product.h.
 */
#include "trace_product.h"

#include <stdio.h>
#include <string.h>

/* y is of x's type where the trace tells x alone, as in PyTorch. */
static bool set_types(const trace_call *c, const run_options *base, run_options *o, char why[CLI_WHY]) {
    if (!c->x[0] && !base->x) {
        snprintf(why, CLI_WHY, "the trace does not tell its types; --x TYPE stands for them");
        return false;
    }
    if (c->x[0] && !parse_x(c->x, &o->x, &o->x_groups, why))
        return false;
    o->w = o->x;
    o->w_scales = scales_apart(o->w) ? scales_by_row() : (weight_scales){0};
    if (c->w[0] && !parse_weight(c->w, &o->w, &o->w_scales, why))
        return false;
    o->y = o->x;
    return !c->y[0] || parse_type(c->y, &o->y, why);
}

bool trace_product(const trace_call *c, const run_options *base, run_options *out, char why[CLI_WHY]) {
    *out = *base;
    if (c->group != TRACE_GEMM || c->batch == 0) {
        snprintf(why, CLI_WHY, "the trace does not tell its shape");
        return false;
    }
    const char *layout = c->layout[0] ? c->layout : "nt";
    out->batch = c->batch;
    if (!set_types(c, base, out, why) || !parse_layout(layout, &out->x_order, &out->w_order, why) ||
        !parse_epilogue(c->epi, &out->epi, why) || (c->compute[0] && !parse_compute(c->compute, &out->compute, why)))
        return false;
    memcpy(out->layout, layout, sizeof out->layout);
    return true;
}
