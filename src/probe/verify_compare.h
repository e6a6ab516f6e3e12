/* SPDX-License-Identifier: Apache-2.0
 *
 * verify_compare.h - is one stored y within its bound of the reference? Called by verify.c.
 */
#ifndef RFT_PROBE_VERIFY_COMPARE_H
#define RFT_PROBE_VERIFY_COMPARE_H

#include "rooftile.h"

typedef struct rft__deviation {
    double error, limit; /* |y - reference|, and what it may be: the bound plus half an ulp of y */
    double ratio;        /* error / limit; INFINITY for a NaN or an Inf that should not be, or is missing */
} rft__deviation;

/* error: the bound of the reference's f32 evaluation; one that is not finite says that nothing is known. */
rft__deviation rft__verify_compare(rft_type type, double y, double reference, double error);

#endif
