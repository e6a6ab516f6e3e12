/* SPDX-License-Identifier: Apache-2.0
 *
 * codes_panel_body.h - how kernels take scales and codes out of a panel (packing.h); text for codes_body.h and codes8_body.h.
 *
 * Scales of a chunk are widened to f32 first, on the stack, so that the loop over k knows no kind of scale. The includer
 * defines vec (16 floats), ivec (16 words of 32 bits), table (16 floats), and
 *     vec_zero() vec_load(p) vec_store(p, v) vec_set(f) vec_mul vec_div vec_sub, vec_fma(a, b, c): a * b + c
 *     vec_from_f16(p) vec_from_i8(p) vec_from_i16(p): 16 of them; vec_from_words(v): of int32; vec_cast(v): of their bits
 *     words_load(p) words_set(n) words_from_u8(p) words_from_u16(p) words_and words_or words_add words_shl(v, n) words_shr(v, n)
 *     small_value(v, b): words below 256 as floats, less what small_bias(f) made b of, f a whole number
 *     table_load(p), table_value(t, v): by the low four bits of each word
 *     words_sar(v, n): arithmetically right, n in each word; words_or_where_all(v, mask, a): v | a where v has all bits of mask
 *     bytes_max(a, b) bytes_any_above(v, n): unsigned, n in each byte
 */
#ifndef RFT_CPU_CODES_PANEL_BODY_H
#define RFT_CPU_CODES_PANEL_BODY_H

#include "cpu/tile_family.h"

/* Scales of one chunk of a panel, and its minima, zero points with the bias, or scales for the fields of floats. */
typedef struct scales {
    _Alignas(64) float scale[RFT__CHUNK_SCALES * RFT__COLUMNS], offset[RFT__CHUNK_SCALES * RFT__COLUMNS];
    bool unfit; /* such scales overflow */
} scales;

/* Bytes in front of the codes at work that kernels in f32 and the unpacking of strips fetch, to L2; products in 8 bits have
 * cpu_ahead.c. GB/s of q8_0, q4_0, q4_k at m = 1, taken when those fetched so too, one Zen 4 core where bf16 streams 27.2: 1024
 * 27.6 26.7 27.0, 2048 27.6 24.0 20.8, 4096 21.6 17.1 13.5; 1024 to L1 20.3 22.4 20.4. */
enum { CODES_AHEAD = 1024 };

/* ---- scales ---- */

/* 2^(b - 127); 0 is the subnormal 2^-127, 255 NaN. */
RFT_INLINE vec from_e8m0(const void *p) {
    const ivec b = words_from_u8(p), none = words_shr(words_add(b, words_set(-1)), 31);
    const ivec last = words_shr(words_add(b, words_set(1)), 8);
    return vec_cast(words_or(words_shl(b, 23), words_shl(words_or(none, last), 22)));
}

/* How codes that are floats are read: rft__f8 in registers. */
typedef struct f8_fields {
    ivec shift, keep, exponent;
    vec unit;
} f8_fields;

/* The fields of a float in the upper byte of each word as those of an f32: value / unit, if the value is finite. */
RFT_INLINE ivec f8_fields_of(const f8_fields *f, ivec top) { return words_and(words_sar(top, f->shift), f->keep); }

RFT_INLINE vec f8_value(const f8_fields *f, ivec fields) {
    return vec_mul(vec_cast(words_or_where_all(fields, f->exponent, words_set(0x7f800000))), f->unit);
}

RFT_INLINE f8_fields f8_set(const rft__f8 *f) {
    return (f8_fields){words_set(f->shift), words_set(f->keep), words_set(f->exponent), vec_set(f->unit)};
}

RFT_INLINE vec from_e4m3(const void *p) {
    const rft__f8 e4m3 = rft__f8_of(true);
    const f8_fields f = f8_set(&e4m3);
    return f8_value(&f, f8_fields_of(&f, words_shl(words_from_u8(p), 24)));
}

/* Its fields as those of an f32 mean 2^-120 of it, subnormals too. */
RFT_INLINE vec from_ue4m3(const void *p) { return vec_mul(vec_cast(words_shl(words_from_u8(p), 20)), vec_set(0x1p120f)); }

RFT_INLINE vec from_f32(const void *p) { return vec_load(p); }

RFT_INLINE vec from_bf16(const void *p) { return vec_cast(words_shl(words_from_u16(p), 16)); }

/* n rows of 16 direct scales; the bytes that they take. */
RFT_INLINE int64_t expand_direct(rft__scale_kind kind, const char *from, int64_t n, float *to) {
    const int64_t bytes = RFT__COLUMNS * rft__packing_scale_bytes(kind);
#define EXPAND_ROWS(of_kind, row)                                       \
    if (kind == of_kind) {                                              \
        for (int64_t i = 0; i < n; i++) {                               \
            vec_store(to + i * RFT__COLUMNS, row(from + i * bytes));    \
        }                                                               \
    }
    EXPAND_ROWS(RFT__SCALE_F16, vec_from_f16)
    EXPAND_ROWS(RFT__SCALE_F32, from_f32)
    EXPAND_ROWS(RFT__SCALE_BF16, from_bf16)
    EXPAND_ROWS(RFT__SCALE_UE4M3, from_ue4m3)
    EXPAND_ROWS(RFT__SCALE_E8M0, from_e8m0)
    EXPAND_ROWS(RFT__SCALE_E4M3, from_e4m3)
#undef EXPAND_ROWS
    return n * bytes;
}

static void expand_super(const char *block, const char *parts, int64_t n, float sign, float *to) {
    const vec whole = vec_mul(vec_from_f16(block), vec_set(sign));
    for (int64_t i = 0; i < n; i++) {
        vec_store(to + i * RFT__COLUMNS, vec_mul(whole, vec_from_i8(parts + i * RFT__COLUMNS)));
    }
}

/* Scales under one of all, by which they are multiplied or divided. */
static void expand_global(rft__scale_kind kind, const char *head, int64_t n, float *to) {
    const vec global = vec_load((const void *)head);
    expand_direct(RFT__SCALE_E4M3, head + 4 * RFT__COLUMNS, n, to);
    for (int64_t i = 0; i < n; i++, to += RFT__COLUMNS) {
        vec_store(to, kind == RFT__SCALE_E4M3_TIMES ? vec_mul(vec_load(to), global) : vec_div(vec_load(to), global));
    }
}

/* Scales that make numbers of fields at once. value / unit * (scale * unit) rounds as value * scale does, unless that scale is
 * none any more, which takes weights of 2^7 and more. */
static void fold_unit(float unit, int64_t n, scales *s) {
    s->unfit = false;
    for (int64_t i = 0; i < n * RFT__COLUMNS; i++) {
        const float magnitude = s->scale[i] < 0.0f ? -s->scale[i] : s->scale[i];
        s->unfit |= magnitude >= 0x1p7f;
        s->offset[i] = s->scale[i] * unit;
    }
}

/* The head of a chunk of k. */
static __attribute__((noinline)) void expand(const rft__packing *p, const char *head, int64_t k, scales *s) {
    const int64_t n = rft__packing_scales(p, k);
    const bool minimum = p->offset == RFT__OFFSET_MINIMUM;
    if (p->scale == RFT__SCALE_SUPER) {
        const char *parts = head + (minimum ? 4 : 2) * RFT__COLUMNS;
        expand_super(head, parts, n, 1.0f, s->scale);
        if (minimum) {
            expand_super(head + 2 * RFT__COLUMNS, parts + n * RFT__COLUMNS, n, -1.0f, s->offset);
        }
        return;
    }
    if (rft__packing_has_global(p->scale)) {
        expand_global(p->scale, head, n, s->scale);
    } else {
        head += expand_direct(p->scale, head, n, s->scale);
    }
    if (minimum) {
        expand_direct(p->scale, head, n, s->offset);
    }
    for (int64_t i = 0; p->offset == RFT__OFFSET_ZERO && i < n; i++) {
        vec_store(s->offset + i * RFT__COLUMNS, vec_from_i16(head + 2 * i * RFT__COLUMNS));
    }
    if (p->offset == RFT__OFFSET_FLOAT) {
        fold_unit(p->f8.unit, n, s);
    }
    if (n < RFT__CHUNK_SCALES) { /* half a block beyond k, where x is 0 */
        vec_store(s->scale + n * RFT__COLUMNS, vec_zero());
        vec_store(s->offset + n * RFT__COLUMNS, vec_zero());
    }
}

/* The scales of k of a chunk of panels side by side; returned: what lies behind the first one's head. */
RFT_INLINE const char *open_chunk(int panels, const rft__packing *packing, const char *w, size_t w_stride, int64_t k, scales *s) {
    RFT_UNROLL
    for (int p = 0; p < panels; p++) {
        expand(packing, w + (size_t)p * w_stride, k, &s[p]);
    }
    return w + rft__packing_head_bytes(packing, k);
}

/* ---- codes ---- */

/* Codes 4 t .. 4 t + 3 of a block, a byte each. */
RFT_INLINE ivec quad(int bits, const char *block, int t) {
    if (bits == 8) {
        return words_load(block + 64 * t);
    }
    ivec codes;
    if (bits >= 4) {
        codes = words_load(block + 64 * (t / 2));
        codes = words_and(t % 2 != 0 ? words_shr(codes, 4) : codes, words_set(0x0f0f0f0f));
        block += 256;
    }
    if (bits != 4 && bits != 5) {
        ivec two = words_load(block + 64 * (t / 4));
        two = words_and(t % 4 != 0 ? words_shr(two, 2 * (t % 4)) : two, words_set(0x03030303));
        codes = bits == 6 ? words_or(codes, words_shl(two, 4)) : two;
        block += 128;
    }
    if (bits % 2 != 0) {
        ivec one = words_load(block);
        one = words_and(t != 0 ? words_shr(one, t) : one, words_set(0x01010101));
        codes = words_or(codes, words_shl(one, bits - 1));
    }
    return codes;
}

/* What turns codes into values. */
typedef struct meaning {
    table table;
    vec bias; /* with a zero point 0: it comes with that */
    f8_fields f8;
} meaning;

RFT_INLINE meaning meaning_of(rft__offset_kind offset, const rft__packing *p) {
    return (meaning){table_load(p->lut), small_bias(offset == RFT__OFFSET_ZERO ? 0.0f : (float)p->bias), f8_set(&p->f8)};
}

/* Value i of the eight of slice v: with a zero point the code itself, of a float its fields, else that less the bias. */
RFT_INLINE vec value(int bits, rft__offset_kind offset, const char *block, const meaning *m, int v, int i) {
    if (bits == 4) {
        const int at = 8 * (i % 4) + 4 * (i / 4);
        const ivec codes = words_load(block + 64 * v);
        return table_value(m->table, at != 0 ? words_shr(codes, at) : codes);
    }
    ivec code = quad(bits, block, 2 * v + i / 4);
    if (offset == RFT__OFFSET_FLOAT) {
        return vec_cast(f8_fields_of(&m->f8, i % 4 != 3 ? words_shl(code, 24 - 8 * (i % 4)) : code));
    }
    code = i % 4 != 0 ? words_shr(code, 8 * (i % 4)) : code;
    return small_value(i % 4 != 3 ? words_and(code, words_set(255)) : code, m->bias);
}

RFT_INLINE vec weight(rft__offset_kind offset, vec value, vec scale, vec shift) {
    return offset == RFT__OFFSET_MINIMUM ? vec_fma(value, scale, shift)
           : offset == RFT__OFFSET_ZERO  ? vec_mul(vec_sub(value, shift), scale)
           : offset == RFT__OFFSET_FLOAT ? vec_mul(value, shift)
                                         : vec_mul(value, scale);
}

/* ---- */

RFT_INLINE void fetch_block(int bits, int panels, const char *codes, size_t w_stride) {
    RFT_UNROLL
    for (int p = 0; p < panels; p++) {
        RFT_UNROLL
        for (int line = 0; line < bits; line++) {
            __builtin_prefetch(codes + (size_t)p * w_stride + CODES_AHEAD + line * 64, 0, 2);
        }
    }
}

/* Sums of a tile, in registers while it is multiplied: from acc where they go on, and back. */
RFT_INLINE void load_sums(int rows, int panels, const float *acc, int acc_stride, bool accumulate,
                          vec c[RFT__MAX_ROWS][RFT__MAX_PANELS]) {
    RFT_UNROLL
    for (int i = 0; i < rows * panels; i++) {
        c[i / panels][i % panels] =
            accumulate ? vec_load(acc + i / panels * acc_stride + i % panels * RFT__COLUMNS) : vec_zero();
    }
}

RFT_INLINE void store_sums(int rows, int panels, vec c[RFT__MAX_ROWS][RFT__MAX_PANELS], float *acc, int acc_stride) {
    RFT_UNROLL
    for (int i = 0; i < rows * panels; i++) {
        vec_store(acc + i / panels * acc_stride + i % panels * RFT__COLUMNS, c[i / panels][i % panels]);
    }
}

/* What the names of families stand for. */
#define CODES_BITS_q2m   2
#define CODES_BITS_q3    3
#define CODES_BITS_q4    4
#define CODES_BITS_q4m   4
#define CODES_BITS_q4z   4
#define CODES_BITS_q5    5
#define CODES_BITS_q5m   5
#define CODES_BITS_q6    6
#define CODES_BITS_q8    8
#define CODES_BITS_q8z   8
#define CODES_BITS_f8    8
#define CODES_OFFSET_q2m RFT__OFFSET_MINIMUM
#define CODES_OFFSET_q3  RFT__OFFSET_NONE
#define CODES_OFFSET_q4  RFT__OFFSET_NONE
#define CODES_OFFSET_q4m RFT__OFFSET_MINIMUM
#define CODES_OFFSET_q4z RFT__OFFSET_ZERO
#define CODES_OFFSET_q5  RFT__OFFSET_NONE
#define CODES_OFFSET_q5m RFT__OFFSET_MINIMUM
#define CODES_OFFSET_q6  RFT__OFFSET_NONE
#define CODES_OFFSET_q8  RFT__OFFSET_NONE
#define CODES_OFFSET_q8z RFT__OFFSET_ZERO
#define CODES_OFFSET_f8  RFT__OFFSET_FLOAT

/* ---- families: CODES_TILE(bits, offset, rows, panels, ...), the includer's, for each height ---- */

#define CODES_FUNCTION(name, p, r)                                                                                               \
    static void codes_##name##_##r##x##p(const rft__packing *packing, int64_t k, const void *x, const char *w, size_t w_stride,  \
                                         float *acc, int acc_stride, bool accumulate) {                                          \
        CODES_TILE(CODES_BITS_##name, CODES_OFFSET_##name, r, p, packing, k, x, w, w_stride, acc, acc_stride, accumulate);       \
    }
#define CODES_ENTRY(name, p, r) codes_##name##_##r##x##p,

/* Of one name: tiles of wide_rows beside some panels, and of one_rows beside one. */
#define CODES_FAMILY(symbol, name, wide_panels, wide_rows, one_rows)                          \
    RFT_ROWS_##wide_rows(CODES_FUNCTION, name, wide_panels)                                   \
    RFT_ROWS_##one_rows(CODES_FUNCTION, name, 1)                                              \
    const rft__codes_family symbol = {wide_panels,                                            \
                                      {RFT_ROWS_##wide_rows(CODES_ENTRY, name, wide_panels)}, \
                                      {RFT_ROWS_##one_rows(CODES_ENTRY, name, 1)}};

#endif
