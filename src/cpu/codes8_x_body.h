/* SPDX-License-Identifier: Apache-2.0
 *
 * codes8_x_body.h - X in 8 bits as products of codes read it: rounded, or as given, with the sums of its codes; text for
 * codes8_body.h. The includer defines what codes_panel_body.h asks, and
 *     words_max(a, b): unsigned; words_round(v): floats to int32, to nearest even; vec_bits(v)
 *     words_largest(v): of 16, unsigned; bytes_store(p, v): the low bytes of 16 words; bytes_sum(p): of 16 signed ones
 */
#ifndef RFT_CPU_CODES8_X_BODY_H
#define RFT_CPU_CODES8_X_BODY_H

#include "cpu/tile_family.h"

#include <string.h>

static float largest_of(const float *x, int n) {
    ivec bits = words_set(0);
    for (int i = 0; i < n; i += RFT__COLUMNS) {
        bits = words_max(bits, words_and(vec_bits(vec_load(x + i)), words_set(0x7fffffff)));
    }
    const uint32_t most = words_largest(bits);
    float largest;
    memcpy(&largest, &most, sizeof most);
    return largest;
}

/* One group of n k, 32 or a multiple, whose largest |x| that is: its codes; the scale returned. */
static float round_group(const float *x, int n, float largest, signed char *code) {
    const float scale = rft__x8_scale(largest, 127.0f);
    const bool counts = scale > 0.0f;
    const vec inverse = vec_set(counts ? 127.0f / largest : 0.0f);
    for (int i = 0; i < n; i += RFT__COLUMNS) {
        bytes_store(code + i, counts ? words_round(vec_mul(vec_load(x + i), inverse)) : words_set(0));
    }
    return scale;
}

/* What goes with codes and scales that are in their place. */
static void add_sums(const rft__packing *p, int64_t k, rft__x8 *x) {
    const int each = rft__packing_sum(p);
    for (int64_t i = 0; i < rft__packing_sums(p, k); i++) {
        int32_t sum = 0;
        for (int at = 0; at < each; at += RFT__LEAST_SUM) {
            sum += bytes_sum(x->code + i * each + at);
        }
        if (p->one_sum) {
            x->sum[i].word = sum;
        } else if (p->offset == RFT__OFFSET_NONE) {
            x->sum[i].word = -p->i8_bias * sum;
        } else {
            x->sum[i].real = p->offset == RFT__OFFSET_MINIMUM ? x->scale[i * each / p->x_group] * (float)sum : (float)-sum;
        }
    }
}

static void quantise(const rft__packing *packing, const float *x, const float *largest, int64_t k, rft__x8 *dst) {
    const int n = packing->x_group;
    float padded[RFT__CHUNK];
    if (k < RFT__CHUNK) {
        memset(padded, 0, sizeof padded);
        memcpy(padded, x, (size_t)k * sizeof *x);
        memset(dst, 0, sizeof *dst);
        x = padded;
    }
    for (int at = 0; at < k; at += n) {
        dst->scale[at / n] = round_group(x + at, n, largest != NULL ? *largest : largest_of(x + at, n), dst->code + at);
    }
    add_sums(packing, k, dst);
}

/* The same of codes that are given. */
static void record(const rft__packing *packing, const signed char *x, const float *scale, int64_t k, rft__x8 *dst) {
    if (k < RFT__CHUNK) {
        memset(dst, 0, sizeof *dst);
    }
    memcpy(dst->code, x, (size_t)k);
    memcpy(dst->scale, scale, (size_t)rft__ceil_div(k, packing->x_group) * sizeof *scale);
    add_sums(packing, k, dst);
}

#endif
