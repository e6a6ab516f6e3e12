/* SPDX-License-Identifier: Apache-2.0
 *
 * codes_ref_body.h - the vectors of cpu/codes_panel_body.h in portable C: arrays of 16. A product is rounded before it is added.
 */
#ifndef RFT_CPU_REF_CODES_REF_BODY_H
#define RFT_CPU_REF_CODES_REF_BODY_H

#include "cpu/tile_family.h"
#include "format/decode/decode_scalar.h"

#include <math.h>
#include <string.h>

/* Registers are not the point here, and arrays of 16 that are unrolled by 32 k take compilers minutes. */
#undef RFT_UNROLL
#define RFT_UNROLL

typedef struct vec {
    float at[16];
} vec;

typedef struct ivec {
    uint32_t at[16];
} ivec;

typedef vec table;

/* `expression` of i for all 16. */
#define EACH(type, expression)          \
    type v;                             \
    for (int i = 0; i < 16; i++) {      \
        v.at[i] = (expression);         \
    }                                   \
    return v

RFT_INLINE vec vec_set(float f) { EACH(vec, f); }
RFT_INLINE vec vec_zero(void) { return vec_set(0.0f); }
RFT_INLINE vec vec_load(const float *p) { EACH(vec, p[i]); }
RFT_INLINE void vec_store(float *p, vec v) { memcpy(p, &v, sizeof v); }
RFT_INLINE vec vec_mul(vec a, vec b) { EACH(vec, a.at[i] * b.at[i]); }
RFT_INLINE vec vec_sub(vec a, vec b) { EACH(vec, a.at[i] - b.at[i]); }
RFT_INLINE vec vec_div(vec a, vec b) { EACH(vec, a.at[i] / b.at[i]); }
RFT_INLINE vec vec_fma(vec a, vec b, vec c) { EACH(vec, a.at[i] * b.at[i] + c.at[i]); }
RFT_INLINE vec vec_from_f16(const char *p) { EACH(vec, rft__f16_f32(rft__load_u16((const unsigned char *)p + 2 * i))); }
RFT_INLINE vec vec_from_i8(const char *p) { EACH(vec, (float)((const signed char *)p)[i]); }
RFT_INLINE vec vec_from_i16(const char *p) {
    EACH(vec, (float)(int16_t)rft__load_u16((const unsigned char *)p + 2 * i));
}
RFT_INLINE vec vec_from_words(ivec w) { EACH(vec, (float)(int32_t)w.at[i]); }
RFT_INLINE vec vec_cast(ivec w) {
    vec f;
    memcpy(&f, &w, sizeof f);
    return f;
}
RFT_INLINE ivec vec_bits(vec f) {
    ivec w;
    memcpy(&w, &f, sizeof w);
    return w;
}

RFT_INLINE ivec words_set(int32_t n) { EACH(ivec, (uint32_t)n); }
RFT_INLINE ivec words_load(const void *p) {
    ivec v;
    memcpy(&v, p, sizeof v);
    return v;
}
RFT_INLINE void words_store(int32_t *p, ivec v) { memcpy(p, &v, sizeof v); }
RFT_INLINE ivec words_from_u8(const void *p) { EACH(ivec, ((const unsigned char *)p)[i]); }
RFT_INLINE ivec words_from_u16(const void *p) { EACH(ivec, rft__load_u16((const unsigned char *)p + 2 * i)); }
RFT_INLINE ivec words_and(ivec a, ivec b) { EACH(ivec, a.at[i] & b.at[i]); }
RFT_INLINE ivec words_or(ivec a, ivec b) { EACH(ivec, a.at[i] | b.at[i]); }
RFT_INLINE ivec words_add(ivec a, ivec b) { EACH(ivec, a.at[i] + b.at[i]); }
RFT_INLINE ivec words_max(ivec a, ivec b) { EACH(ivec, a.at[i] > b.at[i] ? a.at[i] : b.at[i]); }
RFT_INLINE ivec words_shl(ivec a, int n) { EACH(ivec, a.at[i] << n); }
RFT_INLINE ivec words_shr(ivec a, int n) { EACH(ivec, a.at[i] >> n); }
RFT_INLINE ivec words_sar(ivec a, ivec n) { EACH(ivec, (uint32_t)((int32_t)a.at[i] >> n.at[i])); }
RFT_INLINE ivec words_or_where_all(ivec w, ivec mask, ivec a) {
    EACH(ivec, w.at[i] | ((w.at[i] & mask.at[i]) == mask.at[i] ? a.at[i] : 0));
}
RFT_INLINE ivec bytes_max(ivec a, ivec b) {
    for (int i = 0; i < 64; i++) {
        unsigned char *const x = (unsigned char *)&a + i, *const y = (unsigned char *)&b + i;
        *x = *x > *y ? *x : *y;
    }
    return a;
}
RFT_INLINE bool bytes_any_above(ivec v, int n) {
    bool any = false;
    for (int i = 0; i < 64; i++) {
        any |= ((const unsigned char *)&v)[i] > n;
    }
    return any;
}
RFT_INLINE ivec words_round(vec f) { EACH(ivec, (uint32_t)(int32_t)rintf(f.at[i])); }
RFT_INLINE vec small_bias(float bias) { return vec_set(bias); }
RFT_INLINE vec small_value(ivec v, vec bias) { return vec_sub(vec_from_words(v), bias); }
RFT_INLINE table table_load(const float *p) { return vec_load(p); }
RFT_INLINE vec table_value(table t, ivec w) { EACH(vec, t.at[w.at[i] & 15u]); }

RFT_INLINE ivec bytes_look_up(const unsigned char *p, ivec w) {
    EACH(ivec, (uint32_t)p[w.at[i] & 255u] | (uint32_t)p[w.at[i] >> 8 & 255u] << 8 | (uint32_t)p[w.at[i] >> 16 & 255u] << 16 |
                   (uint32_t)p[w.at[i] >> 24] << 24);
}

#endif
