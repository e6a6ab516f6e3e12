/* SPDX-License-Identifier: Apache-2.0
 *
 * verify_compare.c - one y against its reference. See verify_compare.h.
 * Half an ulp is taken at the largest value that f32 evaluation may have had, and is that of the subnormals below them.
 */
#include "probe/verify_compare.h"

#include <math.h>
#include <stdbool.h>

typedef struct grid {
    int digits, least, greatest; /* of the significand, with the hidden one; exponents of normal numbers */
} grid;

static grid grid_of(rft_type type) {
    switch (type) {
    case RFT_F16:
        return (grid){11, -14, 15};
    case RFT_BF16:
        return (grid){8, -126, 127};
    default:
        return (grid){24, -126, 127};
    }
}

static double half_ulp(const grid *g, double magnitude) {
    const int exponent = magnitude > 0.0 ? ilogb(magnitude) : g->least;
    return ldexp(1.0, (exponent > g->least ? exponent : g->least) - g->digits);
}

/* The least magnitude that rounds to infinity. */
static double overflow_of(const grid *g) { return ldexp(2.0 - ldexp(1.0, -g->digits), g->greatest); }

static rft__deviation verdict(bool right) {
    return (rft__deviation){.ratio = right ? 0.0 : (double)INFINITY, .error = right ? 0.0 : (double)INFINITY};
}

rft__deviation rft__verify_compare(rft_type type, double y, double reference, double error) {
    const grid g = grid_of(type);
    if (isnan(reference)) {
        return verdict(isnan(y));
    }
    if (isinf(reference)) {
        return verdict(y == reference);
    }
    if (!isfinite(error)) {
        return verdict(true);
    }
    if (!isfinite(y)) {
        return verdict(isinf(y) && copysign(1.0, y) * reference + error >= overflow_of(&g));
    }
    const double difference = fabs(y - reference), limit = error + half_ulp(&g, fabs(reference) + error);
    return (rft__deviation){.error = difference, .limit = limit, .ratio = difference / limit};
}
