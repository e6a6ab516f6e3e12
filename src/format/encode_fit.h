/* SPDX-License-Identifier: Apache-2.0
 *
 * encode_fit.h - scales of the least squared error: x ~ d * level(code), and x ~ d * code + m.
 *
 * Called by encode_q.c and encode_k.c. Inputs are finite; n is at most RFT_FIT_MAX.
 */
#ifndef RFT_FORMAT_ENCODE_FIT_H
#define RFT_FORMAT_ENCODE_FIT_H

#include <stdint.h>

#define RFT_FIT_MAX 128

typedef struct rft__levels { /* what codes 0 .. count-1 stand for, ascending */
    int count;
    float lowest;        /* of even levels: count of them from here in steps of 1 */
    const float *values; /* of uneven ones; else NULL */
} rft__levels;

extern const rft__levels rft__iq4_levels; /* of IQ4_NL and IQ4_XS */

static inline float rft__level(const rft__levels *levels, int code) {
    return levels->values ? levels->values[code] : levels->lowest + (float)code;
}

/* The code whose level is nearest to u. */
int rft__nearest_code(const rft__levels *levels, float u);
/* Codes of x under scale d (0: all codes are that of 0), and the sum of squared errors. codes may be NULL. */
double rft__code_scaled(const rft__levels *levels, const float *x, int n, float d, uint8_t *codes);
/* The same for x ~ d * code + m with codes 0..max. */
double rft__code_affine(int max, const float *x, int n, float d, float m, uint8_t *codes);

/* The d, of either sign or `positive`, that no other beats: at most 64 even levels -c .. c-1, or at most 16 uneven ones. `store`
 * is what the file keeps of a scale, NULL: all of it. */
float rft__fit_scale(const rft__levels *levels, const float *x, int n, float (*store)(float), int positive);

typedef struct rft__affine {
    float d, m;
    double error;
} rft__affine;

/* A d >= 0 and m of small error, as stored. at_most_0: m may not be positive. */
rft__affine rft__fit_affine(int max, const float *x, int n, float (*store)(float), int at_most_0);
/* The d and m that just hold the range of x. */
rft__affine rft__range_affine(int max, const float *x, int n, float (*store)(float), int at_most_0);

#endif
