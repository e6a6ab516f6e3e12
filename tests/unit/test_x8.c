/* SPDX-License-Identifier: Apache-2.0
 *
 * test_x8.c - activations in 8 bits: each code of both types, each rounding against an independent one, and the loops of every
 * ISA level of this machine, which must give the same bits.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/type.h"
#include "cpu/cpuid.h"
#include "epilogue/narrow8.h"
#include "format/decode/decode_scalar.h"
#include "format/format.h"

#include <math.h>
#include <string.h>

enum { CODES = 256, PATTERNS = 1 << 16 };

static const rft_type types[] = {RFT_I8, RFT_E4M3};

static float value_of(rft_type type, unsigned code) {
    return type == RFT_I8 ? (float)(int)(signed char)(unsigned char)code : rft__e4m3_f32(code);
}

/* Every 65521st pattern of f32, and those round the codes. */
static float pattern(unsigned i) { return rft__as_float(i * 65521u); }

static float near_code(rft_type type, unsigned i) {
    const float value = value_of(type, i % CODES), next = value_of(type, (i + 1) % CODES);
    static const float parts[] = {0.0f, 0.25f, 0.5f, 0.75f};
    return value + (next - value) * parts[i / CODES % 4];
}

static void test_i8(void **state) {
    (void)state;
    for (unsigned i = 0; i < PATTERNS; i++) {
        const float x = i % 2 != 0 ? near_code(RFT_I8, i / 2) : pattern(i);
        const double rounded = isnan(x) ? 0.0 : fmin(fmax(nearbyint((double)x), -128.0), 127.0);
        if ((double)rft__narrow_i8(x) != rounded) {
            fail_msg("%.9g is %d, not %g", (double)x, (int)rft__narrow_i8(x), rounded);
        }
    }
    assert_int_equal(rft__narrow_i8(0.5f), 0);
    assert_int_equal(rft__narrow_i8(1.5f), 2);
    assert_int_equal(rft__narrow_i8(-2.5f), -2);
    assert_int_equal(rft__narrow_i8((float)INFINITY), 127);
    assert_int_equal(rft__narrow_i8(-(float)INFINITY), -128);
    assert_int_equal(rft__narrow_i8(rft__as_float(0x7fc12345u)), 0);
}

static void test_e4m3(void **state) {
    (void)state;
    for (unsigned i = 0; i < PATTERNS; i++) {
        const float x = i % 2 != 0 ? near_code(RFT_E4M3, i / 2) : pattern(i);
        const unsigned code = rft__narrow_e4m3(x), want = rft__e4m3_from_f32(x);
        if (code != want) {
            fail_msg("%.9g is 0x%02x, not 0x%02x", (double)x, code, want);
        }
    }
    assert_int_equal(rft__narrow_e4m3((float)INFINITY), 0x7e);
    assert_int_equal(rft__narrow_e4m3(-1e30f), 0xfe);
    assert_int_equal(rft__narrow_e4m3((float)NAN) & 0x7f, 0x7f);
}

/* ---- the loops of all levels ---- */

static const rft__x8_ops *ops_of(int level) { return level <= rft__isa_here() ? rft__isa_at(level)->ops.x8 : NULL; }

static void test_widen(void **state) {
    (void)state;
    unsigned char codes[CODES];
    float wide[CODES];
    for (unsigned i = 0; i < CODES; i++) {
        codes[i] = (unsigned char)i;
    }
    for (int level = 0; level < rft__isa_count(); level++) {
        for (int t = 0; t < 2 && ops_of(level) != NULL; t++) {
            ops_of(level)->widen(types[t], codes, 0.3f, CODES, wide);
            for (unsigned i = 0; i < CODES; i++) {
                const float want = value_of(types[t], i) * 0.3f;
                assert_true(isnan(want) ? isnan(wide[i]) : rft__as_bits(wide[i]) == rft__as_bits(want));
            }
        }
    }
}

static void test_levels_agree(void **state) {
    (void)state;
    enum { N = 200 };
    static float x[N];
    unsigned char q[N], first[N];
    for (unsigned i = 0; i < N; i++) {
        x[i] = (i % 3 != 0 ? near_code(RFT_E4M3, 7 * i) : near_code(RFT_I8, 5 * i)) * (i % 7 != 0 ? 1.0f : 300.0f);
    }
    for (int64_t n = 0; n <= N; n += n < 40 ? 1 : 23) {
        for (int t = 0; t < 4; t++) {
            const int type = t % 2;
            for (int level = 0; level < rft__isa_count(); level++) {
                const rft__x8_ops *ops = ops_of(level);
                memset(q, 0xa5, sizeof q);
                if (ops != NULL) {
                    (t < 2 ? ops->multiply : ops->divide)[type](x, 0.7f, n, q);
                    assert_int_equal(ops->largest(x, n), rft__isa_at(0)->ops.x8->largest(x, n));
                    assert_true(n == N || q[n] == 0xa5);
                    memcpy(first, level == 0 ? q : first, sizeof q);
                    assert_memory_equal(q, first, sizeof q);
                }
            }
        }
    }
}

static void test_largest(void **state) {
    (void)state;
    float x[37] = {0.0f};
    const rft__x8_ops *ops = ops_of(0);
    assert_int_equal(ops->largest(x, 37), 0);
    x[36] = -3.0f;
    assert_int_equal(ops->largest(x, 37), rft__as_bits(3.0f));
    x[5] = -(float)INFINITY;
    assert_int_equal(ops->largest(x, 37), 0x7f800000);
    x[7] = (float)NAN;
    assert_true(ops->largest(x, 37) > 0x7f800000u);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_i8), cmocka_unit_test(test_e4m3), cmocka_unit_test(test_widen),
                                       cmocka_unit_test(test_levels_agree), cmocka_unit_test(test_largest)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
