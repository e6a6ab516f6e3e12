/* SPDX-License-Identifier: Apache-2.0
 *
 * fill.c - random test data of each plain element type, and of GGUF blocks. Called through rooftile_analysis.h by tests, bench
 * and tune.
 * Element i is a function of (seed, i) alone, so that a shorter fill is a prefix of a longer one.
 */
#include "base/error.h"
#include "format/format.h"
#include "probe/random.h"
#include "rooftile_analysis.h"

#include <string.h>

/* In [-1, 1), and one of 1024 up to 16 times as large: products of outliers are what sloppy kernels lose. */
static float value_at(uint64_t seed, int64_t i) {
    const uint64_t bits = rft__random_at(seed, (uint64_t)i);
    const float value = (float)((int32_t)(bits >> 40) - (1 << 23)) * 0x1p-23f;
    const float scale = (bits & 1023) != 0 ? 1.0f : 1.0f + (float)(bits >> 10 & 15);
    return value * scale;
}

/* A float of fewer bits: rounds |value| < 16 to nearest even. Sums with a power of two do the subnormals' rounding. */
static uint32_t narrow(float value, unsigned exponent_bits, unsigned fraction_bits) {
    const uint32_t bias = (1u << (exponent_bits - 1)) - 1, shift = 23 - fraction_bits;
    const uint32_t normal = (128u - bias) << 23, unit = (151u - bias - fraction_bits) << 23;
    uint32_t bits, code;
    memcpy(&bits, &value, sizeof bits);
    const uint32_t sign = bits >> 31 << (exponent_bits + fraction_bits);
    bits &= 0x7fffffffu;
    if (bits < normal) {
        float magnitude, one;
        memcpy(&magnitude, &bits, sizeof bits);
        memcpy(&one, &unit, sizeof unit);
        magnitude += one;
        memcpy(&code, &magnitude, sizeof code);
        return sign | (code - unit);
    }
    code = bits + ((1u << (shift - 1)) - 1) + (bits >> shift & 1);
    return sign | ((code >> shift) - ((127u - bias) << fraction_bits));
}

static void fill_f32(uint64_t seed, float *dst, int64_t count) {
    for (int64_t i = 0; i < count; i++) {
        dst[i] = value_at(seed, i);
    }
}

static void fill_16(uint64_t seed, uint16_t *dst, int64_t count, unsigned exponent_bits) {
    for (int64_t i = 0; i < count; i++) {
        dst[i] = (uint16_t)narrow(value_at(seed, i), exponent_bits, 15 - exponent_bits);
    }
}

static void fill_f8(uint64_t seed, uint8_t *dst, int64_t count, unsigned exponent_bits) {
    for (int64_t i = 0; i < count; i++) {
        dst[i] = (uint8_t)narrow(value_at(seed, i), exponent_bits, 7 - exponent_bits);
    }
}

static void fill_i32(uint64_t seed, int32_t *dst, int64_t count) {
    for (int64_t i = 0; i < count; i++) {
        dst[i] = (int32_t)(rft__random_at(seed, (uint64_t)i) >> 48) - (1 << 15);
    }
}

/* Every code of the type is a value: integers, and nibbles two a byte with the last one's pair 0. */
static void fill_bytes(uint64_t seed, uint8_t *dst, int64_t count) {
    for (int64_t i = 0; i < count; i++) {
        dst[i] = (uint8_t)(rft__random_at(seed, (uint64_t)i) >> 56);
    }
}

static void fill_nibbles(uint64_t seed, uint8_t *dst, int64_t count) {
    for (int64_t i = 0; i < count; i += 2) {
        const uint64_t low = rft__random_at(seed, (uint64_t)i) >> 60,
                       high = i + 1 < count ? rft__random_at(seed, (uint64_t)i + 1) >> 60 : 0;
        dst[i / 2] = (uint8_t)(low | high << 4);
    }
}

/* Scales: the powers of two 2^-7 to 1. */
static void fill_e8m0(uint64_t seed, uint8_t *dst, int64_t count) {
    for (int64_t i = 0; i < count; i++) {
        dst[i] = (uint8_t)(120 + (rft__random_at(seed, (uint64_t)i) >> 61));
    }
}

/* ---- GGUF blocks: random codes under small finite scales ---- */

typedef enum scale_form { SCALE_F16, SCALE_E8M0, SCALE_UE4M3 } scale_form;

typedef struct block_scales { /* where a block has its floats */
    rft_type type;
    scale_form form;
    int count, at[4];
} block_scales;

#define RFT_GGUF(number) ((rft_type)(256 + (number)))
static const block_scales block_types[] = {
    {RFT_GGUF_Q4_0, SCALE_F16, 1, {0}},      {RFT_GGUF(3), SCALE_F16, 2, {0, 2}},
    {RFT_GGUF(6), SCALE_F16, 1, {0}},        {RFT_GGUF(7), SCALE_F16, 2, {0, 2}},
    {RFT_GGUF(8), SCALE_F16, 1, {0}},        {RFT_GGUF(10), SCALE_F16, 2, {80, 82}},
    {RFT_GGUF(11), SCALE_F16, 1, {108}},     {RFT_GGUF(12), SCALE_F16, 2, {0, 2}},
    {RFT_GGUF(13), SCALE_F16, 2, {0, 2}},    {RFT_GGUF(14), SCALE_F16, 1, {208}},
    {RFT_GGUF(20), SCALE_F16, 1, {0}},       {RFT_GGUF(23), SCALE_F16, 1, {0}},
    {RFT_GGUF(39), SCALE_E8M0, 1, {0}},      {RFT_GGUF(40), SCALE_UE4M3, 4, {0, 1, 2, 3}},
};

/* f16: +-2^-10 to 2^-4; e8m0: 2^-7 to 1; e4m3: 2^-3 to 2. */
static void put_scale(uint64_t bits, scale_form form, uint8_t *p) {
    const uint64_t low = bits & 255;
    if (form == SCALE_F16) {
        p[0] = (uint8_t)low;
        p[1] = (uint8_t)((bits >> 8 & 0x80) | (20 + (bits >> 16) % 24));
    } else {
        *p = (uint8_t)(form == SCALE_E8M0 ? 120 + low % 8 : 32 + low % 32);
    }
}

static bool fill_blocks(rft_type type, uint64_t seed, uint8_t *dst, int64_t count) {
    const rft__format *const f = rft__format_find(type);
    const block_scales *s = block_types, *const end = s + sizeof block_types / sizeof *block_types;
    while (s < end && s->type != type) {
        s++;
    }
    if (s == end || count % f->block_elements != 0) {
        return false;
    }
    fill_bytes(seed, dst, count / f->block_elements * f->block_bytes);
    for (int64_t b = 0; b < count / f->block_elements; b++, dst += f->block_bytes) {
        for (int i = 0; i < s->count; i++) {
            put_scale(rft__random_at(~seed, (uint64_t)(4 * b + i)), s->form, dst + s->at[i]);
        }
    }
    return true;
}

rft_status rft_fill_random(rft_type type, void *dst, int64_t count, uint64_t seed, rft_error *err) {
    if (count < 0 || (dst == NULL && count > 0)) {
        RFT_FAIL(err, RFT_E_ARG, "dst = %p, count = %lld: dst must not be NULL and count not negative", dst, (long long)count);
    }
    switch (type) {
    case RFT_F32:
        fill_f32(seed, dst, count);
        return RFT_OK;
    case RFT_F16:
        fill_16(seed, dst, count, 5);
        return RFT_OK;
    case RFT_BF16:
        fill_16(seed, dst, count, 8);
        return RFT_OK;
    case RFT_E4M3:
        fill_f8(seed, dst, count, 4);
        return RFT_OK;
    case RFT_E5M2:
        fill_f8(seed, dst, count, 5);
        return RFT_OK;
    case RFT_I32:
        fill_i32(seed, dst, count);
        return RFT_OK;
    case RFT_I8:
    case RFT_U8:
        fill_bytes(seed, dst, count);
        return RFT_OK;
    case RFT_I4:
    case RFT_U4:
    case RFT_E2M1:
    case RFT_NF4:
    case RFT_FP4:
        fill_nibbles(seed, dst, count);
        return RFT_OK;
    case RFT_E8M0:
        fill_e8m0(seed, dst, count);
        return RFT_OK;
    default:
        break;
    }
    if (fill_blocks(type, seed, dst, count)) {
        return RFT_OK;
    }
    RFT_FAIL(err, (int)type >= 256 ? RFT_E_UNSUPPORTED : RFT_E_ARG,
             "type = %d, count = %lld: random data is made for plain types and for whole blocks that have a decoder", (int)type,
             (long long)count);
}
