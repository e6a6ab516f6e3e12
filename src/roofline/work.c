/* SPDX-License-Identifier: Apache-2.0
 *
 * work.c - the least work of a call. See work.h.
 * Sums are made in double: a canonical problem's sizes fit in 63 bits one by one, not always together.
 */
#include "roofline/work.h"

#include "base/sized.h"

static bool multiplies(const rft__problem *p, int64_t m) {
    return p->alpha != 0.0f && m > 0 && p->w.n > 0 && p->w.k > 0 && p->batch > 0;
}

void rft__work(const rft__problem *p, int64_t m, rft_work *work) {
    const double rows = (double)m * (double)p->batch;
    *work = (rft_work){.struct_size = (uint32_t)sizeof *work,
                       .y_bytes = rows * (double)p->epi.n_out * (double)rft__type_size(p->y),
                       .operand_bytes = rft__epi_bytes(&p->epi, m, p->batch)};
    if (multiplies(p, m)) {
        work->flops = 2.0 * rows * (double)p->w.n * (double)p->w.k;
        work->x_bytes = rows * ((double)p->w.k * (double)rft__type_size(p->x) + 4.0 * (double)rft__problem_x_scales(p));
        work->w_bytes = rft__matrix_bytes(&p->w);
    }
    work->bytes = work->x_bytes + work->w_bytes + work->y_bytes + work->operand_bytes;
    work->intensity = work->bytes > 0.0 ? work->flops / work->bytes : 0.0;
}

rft_status rft__work_read(rft__problem *p, const rft_linear_desc *desc, int64_t m, rft_error *err) {
    if (m < 0) {
        RFT_FAIL(err, RFT_E_ARG, "m = %lld is negative", (long long)m);
    }
    return rft__problem_read(p, desc, err);
}

rft_status rft_work_of(const rft_linear_desc *desc, int64_t m, rft_work *work, rft_error *err) {
    RFT_TRY(rft__sized_check(work, "work", err));
    rft__problem p;
    RFT_TRY(rft__work_read(&p, desc, m, err));
    rft_work own;
    rft__work(&p, m, &own);
    rft__sized_write(work, &own, sizeof own);
    return RFT_OK;
}
