/* SPDX-License-Identifier: Apache-2.0
 *
 * verify_host.h - what a comparison reads, in this program's memory. Operands of a run on a device are copied from there: of x
 * and y the rows that are compared, each where it lies in the whole, of the others all. Called by verify.c.
 */
#ifndef RFT_PROBE_VERIFY_HOST_H
#define RFT_PROBE_VERIFY_HOST_H

#include "api/api.h"

enum { RFT__VERIFY_COPIES = RFT_MAX_OPERANDS + 3 };

typedef struct rft__verify_host {
    rft_ctx *ctx;
    const int64_t *batches, *rows; /* that are compared, ascending */
    int64_t n_batches, n_rows;
    int n_copies;
    struct {
        void *p;
        size_t bytes;
    } copy[RFT__VERIFY_COPIES];
    rft_operand operand[RFT_MAX_OPERANDS]; /* as the run's, of this program's memory */
} rft__verify_host;

/* Makes args and *w point to this program's memory; on the CPU they do already. h brings ctx, batches and rows; w's strides are
 * in elements. What was made is freed by rft__verify_host_free, in any case. */
rft_status rft__verify_host_make(rft__verify_host *h, const rft__problem *p, rft_linear_args *args, const void **w,
                                 int64_t w_row_stride, int64_t w_batch_stride, rft_error *err);
void rft__verify_host_free(rft__verify_host *h);

#endif
