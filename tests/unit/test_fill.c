/* SPDX-License-Identifier: Apache-2.0
 *
 * test_fill.c - random data: repeatable, of both signs, in range, with outliers, every type rounded right, no byte too many.
 */
#include "format/format.h"
#include "rooftile_analysis.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define COUNT 65536

static float data[COUNT], decoded[COUNT];

static void test_f32(void **state) {
    (void)state;
    int negative = 0, outliers = 0;
    double sum = 0.0;
    assert_int_equal(rft_fill_random(RFT_F32, data, COUNT, 7, NULL), RFT_OK);
    for (int i = 0; i < COUNT; i++) {
        negative += data[i] < 0.0f;
        outliers += fabsf(data[i]) > 1.0f;
        sum += (double)data[i];
        assert_true(fabsf(data[i]) <= 16.0f);
    }
    assert_in_range(negative, COUNT / 2 - 1000, COUNT / 2 + 1000);
    assert_in_range(outliers, 20, 100);
    assert_true(fabs(sum / COUNT) < 0.02);
}

/* The same seed gives the same bits, whatever the count; another seed gives others. */
static void test_repeats(void **state) {
    (void)state;
    static float other[COUNT];
    assert_int_equal(rft_fill_random(RFT_F32, data, COUNT, 7, NULL), RFT_OK);
    assert_int_equal(rft_fill_random(RFT_F32, other, 1000, 7, NULL), RFT_OK);
    assert_memory_equal(data, other, 1000 * sizeof *other);
    assert_true(other[1000] == 0.0f);
    assert_int_equal(rft_fill_random(RFT_F32, other, 1000, 8, NULL), RFT_OK);
    int equal = 0;
    for (int i = 0; i < 1000; i++) {
        equal += other[i] == data[i];
    }
    assert_in_range(equal, 0, 2);
}

/* Narrow floats hold the f32 values of the same seed, rounded to nearest: within half a unit of the last place. */
static void test_narrow_floats(void **state) {
    (void)state;
    static const struct {
        rft_type type;
        int fraction_bits, least_exponent;
    } types[] = {{RFT_F16, 10, -14}, {RFT_BF16, 7, -126}, {RFT_E4M3, 3, -6}, {RFT_E5M2, 2, -14}};
    static uint8_t stored[2 * COUNT];
    assert_int_equal(rft_fill_random(RFT_F32, data, COUNT, 3, NULL), RFT_OK);
    for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
        assert_int_equal(rft_fill_random(types[t].type, stored, COUNT, 3, NULL), RFT_OK);
        rft__format_find(types[t].type)->decode_blocks(stored, COUNT, decoded);
        for (int i = 0; i < COUNT; i++) {
            const int exponent = data[i] == 0.0f ? types[t].least_exponent : ilogbf(data[i]);
            const int place = (exponent > types[t].least_exponent ? exponent : types[t].least_exponent) - types[t].fraction_bits;
            assert_true(fabsf(decoded[i] - data[i]) <= ldexpf(0.5f, place));
            assert_true(signbit(decoded[i]) == signbit(data[i]));
        }
    }
}

/* All codes of an integer or 4-bit type occur, and the byte behind the last element stays. */
static void test_codes(void **state) {
    (void)state;
    static const rft_type types[] = {RFT_I8, RFT_U8, RFT_I4, RFT_U4, RFT_E2M1, RFT_NF4};
    for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
        uint8_t stored[8193];
        int seen[256] = {0};
        memset(stored, 0xa5, sizeof stored);
        const bool nibbles = t >= 2;
        const int count = nibbles ? 2 * 8192 - 1 : 8192;
        assert_int_equal(rft_fill_random(types[t], stored, count, 1, NULL), RFT_OK);
        for (int i = 0; i < 8192; i++) {
            seen[stored[i]]++;
        }
        for (int code = 0; code < 256; code++) {
            assert_in_range(seen[code], 5, 100);
        }
        assert_int_equal(stored[8192], 0xa5);
        assert_true(!nibbles || stored[8191] < 16);
    }
}

static void test_scales_and_i32(void **state) {
    (void)state;
    uint8_t scales[1000];
    int32_t whole[1000];
    int negative = 0;
    assert_int_equal(rft_fill_random(RFT_E8M0, scales, 1000, 1, NULL), RFT_OK);
    assert_int_equal(rft_fill_random(RFT_I32, whole, 1000, 1, NULL), RFT_OK);
    for (int i = 0; i < 1000; i++) {
        assert_in_range(scales[i], 120, 127);
        negative += whole[i] < 0;
    }
    assert_in_range(negative, 400, 600);
}

static void test_arguments(void **state) {
    (void)state;
    rft_error err = {0};
    float one = 5.0f;
    assert_int_equal(rft_fill_random(RFT_F32, NULL, 1, 0, &err), RFT_E_ARG);
    assert_int_equal(rft_fill_random(RFT_F32, &one, -1, 0, &err), RFT_E_ARG);
    assert_non_null(strstr(err.message, "-1"));
    assert_int_equal(rft_fill_random(RFT_F32, NULL, 0, 0, &err), RFT_OK);
    assert_int_equal(rft_fill_random((rft_type)99, &one, 1, 0, &err), RFT_E_ARG);
    assert_int_equal(rft_fill_random(RFT_GGUF_Q4_0, &one, 1, 0, &err), RFT_E_UNSUPPORTED);
    assert_non_null(strstr(err.message, "258"));
    assert_true(one == 5.0f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_f32),   cmocka_unit_test(test_repeats),        cmocka_unit_test(test_narrow_floats),
        cmocka_unit_test(test_codes), cmocka_unit_test(test_scales_and_i32), cmocka_unit_test(test_arguments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
