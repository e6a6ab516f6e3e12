/* SPDX-License-Identifier: Apache-2.0
 *
 * pack_rows.c - see pack_rows.h. Scales are positive, and rounded to what the file keeps before codes are chosen.
 */
#include "format/pack_rows.h"

#include "base/alloc.h"
#include "base/type.h"
#include "format/encode_blocks.h"
#include "format/encode_fit.h"

#include <float.h>
#include <math.h>
#include <string.h>

static const rft__levels four_bits = {16, -8, NULL};

static float through_bf16(float x) { return rft__bf16_f32(rft__bf16_from_f32(x)); }

static float through_f32(float x) { return x; }

typedef float (*store_fn)(float);

static store_fn store_of(const rft__packing *p) {
    return p->scale == RFT_BF16 ? through_bf16 : p->scale == RFT_F16 ? rft__through_f16 : through_f32;
}

bool rft__packing_is(rft_type code) { return code == RFT_I4 || code == RFT_I8 || code == RFT_E4M3; }

int64_t rft__packing_code_bytes(const rft__packing *p) {
    return p->code == RFT_I4 ? rft__ceil_div(p->k, 8) * 4 : p->code == RFT_I8 ? rft__ceil_div(p->k, 4) * 4 : p->k;
}

int64_t rft__packing_scale_bytes(const rft__packing *p) {
    return rft__ceil_div(p->k, p->group_k) * (int64_t)rft__type_size(p->scale);
}

float rft__packing_limit(const rft__packing *p) { return p->scale == RFT_F16 ? 65504.0f : 0; }

static void store_scale(const rft__packing *p, float scale, unsigned char *at) {
    if (p->scale == RFT_F32) {
        memcpy(at, &scale, sizeof scale);
    } else {
        rft__store_u16(at, p->scale == RFT_F16 ? rft__f16_from_f32(scale) : rft__bf16_from_f32(scale));
    }
}

static float largest(const float *x, int64_t n) {
    float most = 0;
    for (int64_t i = 0; i < n; i++) {
        most = fmaxf(most, fabsf(x[i]));
    }
    return most;
}

/* ---- int4 ---- */

/* The fitted scale, unless rounding it made it worse than the plain one. */
static float scale_4(const rft__packing *p, const float *x, int n, rft__fit fit) {
    const store_fn store = store_of(p);
    const float plain = store(largest(x, n) / 7.5f); /* between 7 above zero and 8 below */
    if (fit == RFT_FIT_NEAREST) {
        return plain;
    }
    const float fitted = store(rft__fit_scale(&four_bits, x, n, store, 1));
    return rft__code_scaled(&four_bits, x, n, fitted, NULL) <= rft__code_scaled(&four_bits, x, n, plain, NULL) ? fitted : plain;
}

static void pack_4(const rft__packing *p, const float *x, rft__fit fit, unsigned char *codes, unsigned char *scales,
                   float *back) {
    const int64_t step = (int64_t)rft__type_size(p->scale);
    for (int64_t at = 0; at < p->k; at += p->group_k, scales += step) {
        uint8_t code[RFT_FIT_MAX];
        const int n = (int)rft__min(p->group_k, p->k - at);
        const float d = scale_4(p, x + at, n, fit);
        rft__code_scaled(&four_bits, x + at, n, d, code);
        store_scale(p, d, scales);
        for (int i = 0; i < n; i++) {
            unsigned char *byte = &codes[(at + i) / 2];
            *byte = (unsigned char)(*byte | code[i] << 4 * ((at + i) & 1));
            back[at + i] = (float)((int)code[i] - 8) * d;
        }
    }
}

/* ---- one scale a row ---- */

static void pack_8(const rft__packing *p, const float *x, unsigned char *codes, unsigned char *scales, float *back) {
    const float d = store_of(p)(largest(x, p->k) / 127), inverse = d >= FLT_MIN ? 1 / d : 0;
    store_scale(p, d, scales);
    for (int64_t i = 0; i < p->k; i++) {
        const float code = rintf(fmaxf(fminf(x[i] * inverse, 127), -128));
        codes[i] = (unsigned char)((int)code + 128);
        back[i] = code * d;
    }
}

static void pack_fp8(const rft__packing *p, const float *x, unsigned char *codes, unsigned char *scales, float *back) {
    const float d = store_of(p)(largest(x, p->k) / 448), inverse = d >= FLT_MIN ? 1 / d : 0;
    store_scale(p, d, scales);
    for (int64_t i = 0; i < p->k; i++) {
        codes[i] = rft__e4m3_from_f32(x[i] * inverse);
        back[i] = rft__e4m3_f32(codes[i]) * d;
    }
}

void rft__pack_row(const rft__packing *p, const float *x, rft__fit fit, unsigned char *codes, unsigned char *scales,
                   float *back) {
    memset(codes, 0, (size_t)rft__packing_code_bytes(p));
    if (p->code == RFT_I4) {
        pack_4(p, x, fit, codes, scales, back);
    } else if (p->code == RFT_I8) {
        pack_8(p, x, codes, scales, back);
    } else {
        pack_fp8(p, x, codes, scales, back);
    }
}
