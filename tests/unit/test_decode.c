/* SPDX-License-Identifier: Apache-2.0
 *
 * test_decode.c - formats.def and the decoders: scalars over all their codes, blocks made by hand with values worked out
 * on paper, and random blocks against another implementation (tests/data/golden_blocks.bin, tools/make_golden_blocks.py).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "format/format.h"

#include "format/decode/decode_scalar.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void decode(const rft__format *format, const void *src, int64_t k, float *dst) {
    format->decode_blocks(src, k / format->block_elements, dst);
}

/* ---- scalars ---- */

/* The value that an IEEE-like code of e exponent and f fraction bits has, infinities and NaN aside. */
static double code_value(unsigned code, int e, int f, int bias) {
    const int exponent = (int)(code >> f) & ((1 << e) - 1), fraction = (int)code & ((1 << f) - 1);
    const double magnitude = exponent ? ldexp(1 + ldexp(fraction, -f), exponent - bias) : ldexp(fraction, 1 - bias - f);
    return code >> (e + f) & 1u ? -magnitude : magnitude;
}

static void assert_same(float got, double want) { assert_true(got == (float)want && !signbit(got) == !signbit(want)); }

static void f16_all_codes(void **state) {
    (void)state;
    for (unsigned h = 0; h < 0x10000u; h++) {
        const float got = rft__f16_f32(h);
        if ((h & 0x7c00u) != 0x7c00u) {
            assert_same(got, code_value(h, 5, 10, 15));
        } else {
            assert_true(h & 0x3ffu ? isnan(got) : isinf(got) && !signbit(got) == !(h & 0x8000u));
        }
    }
}

static void fp8_all_codes(void **state) {
    (void)state;
    for (unsigned b = 0; b < 256; b++) {
        if ((b & 127u) == 127u) {
            assert_true(isnan(rft__e4m3_f32(b)));
        } else {
            assert_same(rft__e4m3_f32(b), code_value(b, 4, 3, 7));
        }
        if ((b & 0x7cu) != 0x7cu) {
            assert_same(rft__e5m2_f32(b), code_value(b, 5, 2, 15));
        }
    }
    assert_true(isinf(rft__e5m2_f32(0x7c)) && isinf(rft__e5m2_f32(0xfc)) && isnan(rft__e5m2_f32(0x7d)));
}

static void e2m1_and_e8m0_all_codes(void **state) {
    (void)state;
    for (unsigned b = 0; b < 16; b++) {
        assert_same(rft__e2m1_f32(b), code_value(b, 2, 1, 1));
    }
    for (unsigned b = 0; b < 255; b++) {
        assert_same(rft__e8m0_f32(b), ldexp(1, (int)b - 127));
    }
    assert_true(isnan(rft__e8m0_f32(255)));
}

/* The tables of bitsandbytes, as its users store them. */
static void nf4_and_fp4_all_codes(void **state) {
    (void)state;
    static const double nf4[16] = {-1.0,
                                   -0.6961928009986877,
                                   -0.5250730514526367,
                                   -0.39491748809814453,
                                   -0.28444138169288635,
                                   -0.18477343022823334,
                                   -0.09105003625154495,
                                   0.0,
                                   0.07958029955625534,
                                   0.16093020141124725,
                                   0.24611230194568634,
                                   0.33791524171829224,
                                   0.44070982933044434,
                                   0.5626170039176941,
                                   0.7229568362236023,
                                   1.0};
    static const float twelfths[8] = {0, 0.0625f, 8, 12, 4, 6, 2, 3};
    for (unsigned b = 0; b < 16; b++) {
        assert_true(rft__nf4_f32(b) == (float)nf4[b]);
        const float magnitude = twelfths[b % 8] / 12.0f;
        assert_true(rft__fp4_f32(b) == (b < 8 ? magnitude : -magnitude));
    }
}

static void plain_elements(void **state) {
    (void)state;
    static const struct {
        rft_type type;
        unsigned char bytes[8];
        float first, second;
    } rows[] = {
        {RFT_F32, {0, 0, 0xc0, 0x3f, 0, 0, 0, 0xc1}, 1.5f, -8},
        {RFT_BF16, {0xc0, 0x3f, 0x00, 0xc1}, 1.5f, -8},
        {RFT_F16, {0x00, 0x3e, 0x00, 0xc8}, 1.5f, -8},
        {RFT_I8, {0x7f, 0x80}, 127, -128},
        {RFT_U8, {0x7f, 0x80}, 127, 128},
        {RFT_I4, {0x87}, 7, -8},
        {RFT_U4, {0x87}, 7, 8},
        {RFT_E2M1, {0xf3}, 1.5f, -6},
        {RFT_NF4, {0x0f}, 1, -1},
        {RFT_FP4, {0xb5}, 0.5f, -1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        float got[2];
        decode(rft__format_find(rows[i].type), rows[i].bytes, 2, got);
        assert_true(got[0] == rows[i].first && got[1] == rows[i].second);
    }
    const double f64 = 0.1;
    float got;
    decode(rft__format_find((rft_type)(256 + 28)), &f64, 1, &got);
    assert_true(got == 0.1f);
}

static void bf16_rounds_to_even(void **state) {
    (void)state;
    static const struct {
        uint32_t bits;
        uint16_t want;
    } rows[] = {
        {0x3f800000, 0x3f80}, {0x3f807fff, 0x3f80}, {0x3f808000, 0x3f80}, {0x3f808001, 0x3f81}, {0x3f818000, 0x3f82},
        {0xbf818000, 0xbf82}, {0x7f7fffff, 0x7f80}, {0xff800000, 0xff80}, {0x00000001, 0x0000}, {0x80000000, 0x8000},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_int_equal(rft__bf16_from_f32(rft__bits_f32(rows[i].bits)), rows[i].want);
    }
    assert_true(isnan(rft__bf16_f32(rft__bf16_from_f32(rft__bits_f32(0x7f800001))))); /* whose upper half is infinity */
}

/* ---- blocks made by hand; halves: 0x3800 = 0.5, 0x3c00 = 1, 0x4000 = 2, 0xbc00 = -1 ---- */

#define GGUF(number) ((rft_type)(256 + (number)))
#define AT(offset, ...)                                                                                                          \
    {                                                                                                                            \
        offset, sizeof((unsigned char[]){__VA_ARGS__}), { __VA_ARGS__ }                                                          \
    }

typedef struct patch {
    unsigned offset, count;
    unsigned char bytes[8];
} patch;
typedef struct expectation {
    unsigned index;
    float value;
} expectation;
typedef struct hand_block {
    rft_type type;
    patch patches[6];      /* all other bytes are 0 */
    expectation values[6]; /* up to one with index 0 behind the first */
} hand_block;

static const hand_block hand_blocks[] = {
    /* q4_0: (code - 8) d */
    {RFT_GGUF_Q4_0, {AT(0, 0x00, 0x38), AT(2, 0x1f), AT(17, 0x80)}, {{0, 3.5f}, {16, -3.5f}, {15, -4}, {31, 0}, {1, -4}}},
    /* q4_1: code d + m */
    {GGUF(3), {AT(0, 0x00, 0x40), AT(2, 0x00, 0xbc), AT(4, 0x1f)}, {{0, 29}, {16, 1}, {1, -1}}},
    /* q5_0: fifth bits of weights 0 and 31 */
    {GGUF(6), {AT(0, 0x00, 0x3c), AT(2, 1, 0, 0, 0x80), AT(6, 0x21), AT(21, 0xf0)}, {{0, 1}, {16, -14}, {31, 15}, {15, -16}}},
    /* q5_1 */
    {GGUF(7), {AT(0, 0x00, 0x38), AT(2, 0x00, 0x3c), AT(4, 0, 1, 0, 0), AT(8, 0x04)}, {{0, 3}, {8, 9}, {31, 1}}},
    /* q8_0 */
    {GGUF(8), {AT(0, 0x00, 0x38), AT(2, 0x80, 0x7f), AT(33, 0xff)}, {{0, -64}, {1, 63.5f}, {31, -0.5f}}},
    /* q2_k: scales[8] (weights 128..143) = 3 with minimum 2; d 0.5, dmin 1; weight 128 has code 2, 129 code 0 */
    {GGUF(10), {AT(8, 0x23), AT(48, 0x02), AT(80, 0x00, 0x38), AT(82, 0x00, 0x3c)}, {{128, 1}, {129, -2}, {0, 0}}},
    /* q3_k: all scale codes 0 (so -32) but number 9's, 33 (so 1), in byte 1 high nibble and byte 9 bits 4..5; d 1.
     * weight 144 (half 1, plane 0, byte 16): low bits 3, third bit = bit 4 of hmask[16] set: 3. weight 145: 0 - 4.
     * weight 0: -4 times -32. */
    {GGUF(11), {AT(97, 0x10), AT(105, 0x20), AT(108, 0x00, 0x3c), AT(16, 0x10), AT(80, 0x03)}, {{144, 3}, {145, -4}, {0, 128}}},
    /* q4_k: sub-block 1 (weights 32..63): scale 2, minimum 3; sub-block 5: scale 0x25 = 37 and minimum 0x16 = 22, split */
    {GGUF(12),
     {AT(0, 0x00, 0x38), AT(2, 0x00, 0x3c), AT(4, 0, 0x82, 0, 0, 0, 0x43), AT(13, 0x65), AT(16, 0x50), AT(80, 0x30)},
     {{32, 2}, {33, -3}, {160, 33.5f}, {0, 0}}},
    /* q5_k: sub-block 0: scale 1, minimum 1; weight 0 has code 7 and the fifth bit */
    {GGUF(13),
     {AT(0, 0x00, 0x40), AT(2, 0x00, 0x3c), AT(4, 1, 0, 0, 0, 1), AT(16, 0x01), AT(48, 0x07)},
     {{0, 45}, {1, -1}, {32, 0}}},
    /* q6_k: weight 96 (plane 3): nibble high of ql[32] = 5, bits 6..7 of qh[0] = 2: 37 - 32; scale 6 = -2, d 0.5 */
    {GGUF(14), {AT(32, 0x50), AT(128, 0x80), AT(198, 0xfe), AT(208, 0x00, 0x38)}, {{96, -5}, {97, 32}, {0, 0}}},
    /* iq4_nl */
    {GGUF(20), {AT(0, 0x00, 0x38), AT(2, 0x8f), AT(17, 0x70)}, {{0, 56.5f}, {16, 0.5f}, {15, -63.5f}, {31, -5}}},
    /* iq4_xs: sub-block 3: low nibble 1, high bits 2: 33 - 32; sub-block 0: code 0: -32 */
    {GGUF(23), {AT(0, 0x00, 0x3c), AT(2, 0x80, 0), AT(5, 0x10), AT(56, 0x9f)}, {{96, 113}, {112, 13}, {0, 4064}}},
    /* mxfp4: 2^(128 - 127) */
    {GGUF(39), {AT(0, 128), AT(1, 0xf7), AT(16, 0x1a)}, {{0, 12}, {16, -12}, {15, -2}, {31, 1}, {1, 0}}},
    /* nvfp4: scale 2 of 4 (weights 32..47) = 0x40 = 2; byte 4 + 16 holds weights 32 and 40; 0x7f as a scale is 0 */
    {GGUF(40), {AT(0, 0x7f, 0, 0x40, 0), AT(4, 0x77), AT(20, 0xb5)}, {{0, 0}, {32, 6}, {40, -3}}},
};

static void check_hand_block(const hand_block *row) {
    unsigned char block[512] = {0};
    float got[256];
    const rft__format *format = rft__format_find(row->type);
    assert_non_null(format);
    for (size_t i = 0; i < 6; i++) {
        memcpy(block + 1 + row->patches[i].offset, row->patches[i].bytes, row->patches[i].count); /* at an odd address */
    }
    format->decode_blocks(block + 1, 1, got);
    for (size_t i = 0; i < 6 && (i == 0 || row->values[i].index != 0 || row->values[i].value != 0); i++) {
        const expectation *e = &row->values[i];
        if (got[e->index] != e->value) {
            fail_msg("%s weight %u is %g, not %g", format->name, e->index, (double)got[e->index], (double)e->value);
        }
    }
}

static void blocks_by_hand(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof hand_blocks / sizeof hand_blocks[0]; i++) {
        check_hand_block(&hand_blocks[i]);
    }
}

/* ---- random blocks against another implementation ---- */

static unsigned char *read_golden(size_t *size) {
    FILE *file = fopen(RFT_TEST_DATA_DIR "/golden_blocks.bin", "rb");
    assert_non_null(file);
    unsigned char *bytes = malloc(1u << 20);
    assert_non_null(bytes);
    *size = fread(bytes, 1, 1u << 20, file);
    fclose(file);
    return bytes;
}

/* Returns the bytes of the record. */
static size_t check_golden_record(const unsigned char *record) {
    uint32_t head[4];
    memcpy(head, record, sizeof head);
    const rft__format *format = rft__format_find_gguf(head[0]);
    assert_non_null(format);
    assert_int_equal(format->block_bytes, head[2]);
    assert_int_equal(format->block_elements, head[3]);
    const size_t n = (size_t)head[1] * head[3], stored = (size_t)head[1] * head[2];
    float *got = malloc(n * sizeof *got);
    assert_non_null(got);
    decode(format, record + sizeof head, (int64_t)n, got);
    for (size_t i = 0; i < n; i++) {
        float want;
        memcpy(&want, record + sizeof head + stored + 4 * i, sizeof want);
        if (got[i] != want) {
            fail_msg("%s weight %zu is %.9g, not %.9g", format->name, i, (double)got[i], (double)want);
        }
    }
    free(got);
    return sizeof head + stored + 4 * n;
}

static void blocks_against_another_implementation(void **state) {
    (void)state;
    size_t size, at = 0, records = 0;
    unsigned char *bytes = read_golden(&size);
    for (; at < size; records++) {
        at += check_golden_record(bytes + at);
    }
    assert_int_equal(at, size);
    assert_int_equal(records, 15);
    free(bytes);
}

/* ---- the table ---- */

static const rft__format *find_name(const char *name) {
    const rft__format *format;
    for (uint32_t i = 0; (format = rft__format_at(i)) != NULL && strcmp(format->name, name) != 0; i++) {
    }
    return format;
}

static void storage_is_exact(void **state) {
    (void)state;
    static const struct {
        const char *name;
        int64_t bytes_of_256;
    } rows[] = {
        {"f32", 1024}, {"f16", 512},    {"bf16", 512},  {"e4m3", 256},  {"i4", 128},   {"nf4", 128},    {"i32", 1024},
        {"q4_0", 144}, {"q4_1", 160},   {"q5_0", 176},  {"q5_1", 192},  {"q8_0", 272}, {"q8_1", 288},   {"q2_k", 84},
        {"q3_k", 110}, {"q4_k", 144},   {"q5_k", 176},  {"q6_k", 210},  {"q8_k", 292}, {"iq2_xxs", 66}, {"iq2_xs", 74},
        {"iq2_s", 82}, {"iq3_xxs", 98}, {"iq3_s", 110}, {"iq1_s", 50},  {"iq1_m", 56}, {"iq4_nl", 144}, {"iq4_xs", 136},
        {"tq1_0", 54}, {"tq2_0", 66},   {"mxfp4", 136}, {"nvfp4", 144}, {"q1_0", 36},  {"q2_0", 72},    {"f64", 2048},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        int64_t bytes;
        const rft__format *format = find_name(rows[i].name);
        assert_non_null(format);
        assert_int_equal(rft__format_bytes(format->type, 3, 256, &bytes, NULL), RFT_OK);
        assert_int_equal(bytes, 3 * rows[i].bytes_of_256);
    }
}

static void rows_are_unique(void **state) {
    (void)state;
    const rft__format *a, *b;
    for (uint32_t i = 0; (a = rft__format_at(i)) != NULL; i++) {
        assert_ptr_equal(rft__format_find(a->type), a);
        assert_ptr_equal(find_name(a->name), a);
        assert_true(a->gguf < 0 || rft__format_find_gguf((uint32_t)a->gguf) == a);
        for (uint32_t j = 0; j < i; j++) {
            b = rft__format_at(j);
            assert_true(a->type != b->type && (a->gguf < 0 || a->gguf != b->gguf));
        }
    }
    assert_null(rft__format_find((rft_type)0));
    assert_null(rft__format_find_gguf(4)); /* a number that GGUF has withdrawn */
    assert_string_equal(rft__format_name((rft_type)9999), "?");
}

static void bad_sizes_are_refused(void **state) {
    (void)state;
    rft_error err;
    int64_t bytes;
    assert_int_equal(rft__format_bytes((rft_type)9999, 1, 1, &bytes, &err), RFT_E_ARG);
    assert_non_null(strstr(err.message, "9999"));
    assert_int_equal(rft__format_bytes(RFT_GGUF_Q4_0, 1, 100, &bytes, &err), RFT_E_ARG);
    assert_string_equal(err.message, "k = 100 is not a multiple of 32, the block of q4_0");
    assert_int_equal(rft__format_bytes(RFT_F32, 1, -1, &bytes, &err), RFT_E_ARG);
    assert_int_equal(rft__format_bytes(RFT_F32, -1, 1, &bytes, &err), RFT_E_ARG);
    assert_int_equal(rft__format_bytes(RFT_F32, 1, INT64_MAX, &bytes, &err), RFT_E_ARG);
    assert_int_equal(rft__format_bytes(RFT_F32, INT64_MAX, 2, &bytes, &err), RFT_E_ARG);
    assert_null(rft__format_find(RFT_I32)->decode_blocks);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(f16_all_codes),
        cmocka_unit_test(fp8_all_codes),
        cmocka_unit_test(e2m1_and_e8m0_all_codes),
        cmocka_unit_test(nf4_and_fp4_all_codes),
        cmocka_unit_test(plain_elements),
        cmocka_unit_test(bf16_rounds_to_even),
        cmocka_unit_test(blocks_by_hand),
        cmocka_unit_test(blocks_against_another_implementation),
        cmocka_unit_test(storage_is_exact),
        cmocka_unit_test(rows_are_unique),
        cmocka_unit_test(bad_sizes_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
