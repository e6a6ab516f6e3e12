/* SPDX-License-Identifier: Apache-2.0
 *
 * cuda_text.c - config.h: what a plan fixes of a kernel, as macros. Called by cuda_choose.c. Equal texts are equal kernels.
 */
#include "cuda/cuda_device.h"
#include "cuda/cuda_epilogue.h"

static void number(rft__text *t, const char *name, long long value) { rft__text_add(t, "#define %s %lld\n", name, value); }

static int compute_type(rft__cuda_compute c) {
    static const int type[] = {
        [RFT__CUDA_F32] = RFT_F32, [RFT__CUDA_TF32] = 4, [RFT__CUDA_F16] = RFT_F16, [RFT__CUDA_BF16] = RFT_BF16};
    return type[c];
}

static void add_problem(rft__text *t, const rft__problem *p) {
    number(t, "RFT_X_TYPE", p->x);
    number(t, "RFT_W_TYPE", p->w.elem);
    number(t, "RFT_Y_TYPE", p->y);
    number(t, "RFT_X_MN", p->x_order == RFT_MN_CONTIGUOUS);
    number(t, "RFT_W_MN", (p->w.view || p->w_dynamic) && p->w.order == RFT_MN_CONTIGUOUS);
    number(t, "RFT_GLU", p->epi.glu_at < 0 ? 0 : (int)p->w.glu);
    number(t, "RFT_BATCHED", p->batch > 1);
    number(t, "RFT_W_EARLY", !p->w_dynamic);
}

static void add_config(rft__text *t, const rft__cuda_config *c) {
    const rft__cuda_row *const r = c->row;
    number(t, "RFT_COMPUTE_TYPE", compute_type(r->compute));
    number(t, "RFT_BM", r->bm);
    number(t, "RFT_BN", r->bn);
    number(t, "RFT_BK", r->bk);
    number(t, "RFT_WARPS", r->warps);
    number(t, "RFT_M", c->m);
    number(t, "RFT_SPLIT", c->split);
    number(t, "RFT_CLUSTER", c->cluster);
    number(t, "RFT_STAGES", c->stages);
    for (int i = 0; i < 4; i++) {
        rft__text_add(t, "#define RFT_OPTION%d %d\n", i, c->option[i]);
    }
}

void rft__cuda_config_text(const rft__problem *p, const rft__cuda_config *c, rft__text *t) {
    add_problem(t, p);
    add_config(t, c);
    rft__cuda_epilogue_text(&p->epi, t);
    if (c->row->family->text != NULL) {
        c->row->family->text(p, c, t);
    }
}
