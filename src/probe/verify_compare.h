/* SPDX-License-Identifier: Apache-2.0
 *
 * verify_compare.h - is one stored y within its bound of the reference? Called by verify.c.
 */
#ifndef RFT_PROBE_VERIFY_COMPARE_H
#define RFT_PROBE_VERIFY_COMPARE_H

#include "rooftile.h"

#include <stdbool.h>

typedef struct rft__deviation {
    double error, limit; /* |y - reference|, and what it may be: the bound plus half an ulp of y */
    double ratio;        /* error / limit; INFINITY for a NaN or an Inf that should not be, or is missing */
} rft__deviation;

/* error: the bound of the reference's f32 evaluation; one that is not finite says that nothing is known. */
rft__deviation rft__verify_compare(rft_type type, double y, double reference, double error);

/* A y of codes. */
typedef struct rft__codes_scale {
    double scale;
    bool found;      /* made for the codes of one group (RFT_EPI_QUANTIZE_ROWS), not given */
    bool reaches;    /* if found: one of these codes is the largest of its type, as the scale asks */
    bool may_be_nan; /* if found: something not finite went into the group, wherever */
} rft__codes_scale;

/* code: as a number. The result is in units of y. */
rft__deviation rft__verify_compare_codes(rft_type type, const rft__codes_scale *s, double code, double reference, double error);
/* Largest code that a found scale leads to. */
double rft__codes_top(rft_type type);

#endif
