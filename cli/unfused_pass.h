/* SPDX-License-Identifier: Apache-2.0
 *
 * unfused_pass.h - one op of an epilogue over a piece of one row, as a plain vectorisable loop. Called by unfused.c.
 */
#ifndef UNFUSED_PASS_H
#define UNFUSED_PASS_H

#include "rooftile.h"

typedef struct row_pass {
    rft_epi_kind kind;     /* 0: convert */
    rft_type operand_type; /* RFT_F32 or RFT_BF16 */
    rft_type out_type;     /* of the conversion: RFT_F32 or RFT_BF16 */
    float alpha, beta;
    int64_t count;
    float *y; /* read and written; a gated unit reads `up` beside it */
    const float *up;
    const void *operand; /* of these columns, or of this row */
    void *out;           /* of the conversion */
} row_pass;

void run_row_pass(const row_pass *p);

#endif
