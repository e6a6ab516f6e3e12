/* SPDX-License-Identifier: Apache-2.0
 *
 * verify_compare.c - one y against its reference. See verify_compare.h.
 * Half an ulp is taken at the largest value that f32 evaluation may have had, and is that of the subnormals below them.
 */
#include "probe/verify_compare.h"

#include <math.h>

typedef struct grid {
    int digits, least, greatest; /* of the significand, with the hidden one; exponents of normal numbers */
} grid;

static grid grid_of(rft_type type) {
    switch (type) {
    case RFT_E4M3:
        return (grid){4, -6, 8};
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

/* ---- codes ---- */

double rft__codes_top(rft_type type) { return type == RFT_I8 ? 127.0 : 448.0; }

static double saturated(rft_type type, double reference) {
    const double top = rft__codes_top(type);
    return fmin(fmax(reference, type == RFT_I8 ? -128.0 : -top), top);
}

/* All in units of codes. */
static rft__deviation compare_code(rft_type type, double code, double reference, double error) {
    if (isnan(reference)) {
        return verdict(type == RFT_I8 ? code == 0.0 : isnan(code));
    }
    if (!isfinite(error)) {
        return verdict(true);
    }
    if (isnan(code)) {
        return verdict(false);
    }
    const grid g = grid_of(type);
    const double nearest = saturated(type, reference), difference = fabs(code - nearest);
    const double limit = error + (type == RFT_I8 ? 0.5 : half_ulp(&g, fabs(nearest)));
    return (rft__deviation){.error = difference, .limit = limit, .ratio = difference / limit};
}

/* A group that is too small to count. */
static rft__deviation compare_nothing(double code, double reference, double error) {
    const double limit = error + 0x1p-110, size = fabs(reference);
    return code == 0.0 && isfinite(error) ? (rft__deviation){.error = size, .limit = limit, .ratio = size / limit}
                                          : verdict(code == 0.0);
}

rft__deviation rft__verify_compare_codes(rft_type type, const rft__codes_scale *s, double code, double reference, double error) {
    /* The quotient is rounded; with a found scale its inverse too, and the scale. */
    const double roundings = s->found ? 4.0 : 1.0, size = fabs(s->scale);
    if (s->found && isnan(s->scale)) {
        return verdict(code == 0.0 && (s->may_be_nan || !isfinite(reference)));
    }
    if (s->found && s->scale == 0.0) {
        return compare_nothing(code, reference, error);
    }
    if (s->found && (s->scale < 0.0 || isinf(s->scale) || !s->reaches || !isfinite(reference))) {
        return verdict(false);
    }
    const double quotient = reference / s->scale, slack = roundings * 0x1p-24 * fabs(quotient);
    rft__deviation d = compare_code(type, code, quotient, error / size + (isfinite(slack) ? slack : 0.0));
    if (isfinite(d.ratio)) {
        d.error *= size;
        d.limit *= size;
    }
    return d;
}
