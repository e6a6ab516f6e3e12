/* SPDX-License-Identifier: Apache-2.0
 *
 * test_epi_math.c - the functions of epi_math.h against f64 libm over all exponents, at their special values, and Philox
 * against the published known answers. The bounds asserted here are those that docs/numerics.md states.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "epilogue/epi_math.h"

#include <float.h>
#include <math.h>
#include <stdio.h>

static double exact_sigmoid(double x) { return 1 / (1 + exp(-x)); }
static double exact_silu(double y) { return y * exact_sigmoid(y); }
static double exact_gelu(double y) { return y < -40 ? -0.0 : 0.5 * y * erfc(-y * 0.70710678118654752440); }
static double exact_gelu_tanh(double y) {
    return y < -40 ? -0.0 : y * exact_sigmoid(1.5957691216057307 * (y + 0.044715 * y * y * y));
}

/* |error| <= ulps * ulp(result) + roundoffs * 2^-24 * |x| + tiny */
typedef struct bound {
    const char *name;
    float (*function)(float);
    double (*exact)(double);
    double ulps, roundoffs, tiny;
} bound;

static double ulp(double value) {
    int exponent;
    frexp(value, &exponent);
    return fabs(value) < (double)FLT_MIN ? 0x1p-149 : ldexp(1, exponent - 24);
}

static void check_bound(const bound *b, float x) {
    const double want = b->exact((double)x);
    const float got = b->function(x);
    if (fabs(want) > (double)FLT_MAX) {
        assert_true(isinf(got) && (got > 0) == (want > 0));
        return;
    }
    const double limit = b->ulps * ulp(want) + b->roundoffs * 0x1p-24 * fabs((double)x) + b->tiny;
    if (!(fabs((double)got - want) <= limit)) {
        fail_msg("%s(%.9g) is %.9g, should be %.9g: %.2f of the bound", b->name, (double)x, (double)got, want,
                 fabs((double)got - want) / limit);
    }
}

static const bound bounds[] = {
    {"exp", rft__exp, exp, 1.4, 0, 0},
    {"tanh", rft__tanh, tanh, 1.6, 0, 0},
    {"erf", rft__erf, erf, 6.2, 0, 0},
    {"sigmoid", rft__sigmoid, exact_sigmoid, 2.4, 0, 0x1p-126},
    {"silu", rft__silu, exact_silu, 2.5, 0, 0x1p-120},
    {"gelu", rft__gelu, exact_gelu, 0, 3.8, 0x1p-149},
    {"gelu_tanh", rft__gelu_tanh, exact_gelu_tanh, 0, 2.1, 0x1p-149},
};

/* A prime step over the bit patterns meets every exponent of both signs thousands of times. */
static void functions_keep_their_bounds(void **state) {
    (void)state;
    for (unsigned i = 0; i < sizeof bounds / sizeof *bounds; i++) {
        for (uint64_t bits = 0; bits <= UINT32_MAX; bits += 4999) {
            const float x = rft__as_float((unsigned)bits);
            if (isfinite(x)) {
                check_bound(&bounds[i], x);
            }
        }
    }
}

/* Where the functions bend: evenly dense on [-16, 16]. */
static void functions_keep_their_bounds_near_zero(void **state) {
    (void)state;
    for (unsigned i = 0; i < sizeof bounds / sizeof *bounds; i++) {
        for (int j = -400000; j <= 400000; j++) {
            check_bound(&bounds[i], (float)j * 4.0e-5f);
        }
    }
}

static void assert_bits(float got, float want) { assert_int_equal(rft__as_bits(got), rft__as_bits(want)); }

static void functions_at_special_values(void **state) {
    (void)state;
    const float inf = (float)INFINITY, denormal = 0x1p-149f;
    for (unsigned i = 0; i < sizeof bounds / sizeof *bounds; i++) {
        assert_true(isnan(bounds[i].function((float)NAN)));
    }
    assert_bits(rft__exp(0.0f), 1.0f);
    assert_bits(rft__exp(-0.0f), 1.0f);
    assert_bits(rft__exp(inf), inf);
    assert_bits(rft__exp(-inf), 0.0f);
    assert_bits(rft__exp(-103.0f), 0x1p-149f);
    assert_bits(rft__sigmoid(inf), 1.0f);
    assert_bits(rft__sigmoid(-inf), 0.0f);
    assert_bits(rft__sigmoid(0.0f), 0.5f);
    float (*const odd[])(float) = {rft__tanh, rft__erf};
    for (int i = 0; i < 2; i++) {
        assert_bits(odd[i](0.0f), 0.0f);
        assert_bits(odd[i](-0.0f), -0.0f);
        assert_bits(odd[i](inf), 1.0f);
        assert_bits(odd[i](-inf), -1.0f);
        assert_bits(odd[i](-FLT_MAX), -1.0f);
        assert_bits(odd[i](denormal), denormal);
    }
    float (*const activation[])(float) = {rft__silu, rft__gelu, rft__gelu_tanh};
    for (int i = 0; i < 3; i++) {
        assert_bits(activation[i](0.0f), 0.0f);
        assert_bits(activation[i](-0.0f), -0.0f);
        assert_bits(activation[i](inf), inf);
        assert_bits(activation[i](FLT_MAX), FLT_MAX);
        assert_bits(activation[i](-inf), -0.0f);
        assert_bits(activation[i](-FLT_MAX), -0.0f);
    }
}

/* Known answers of the Random123 distribution for philox4x32 with 10 rounds. */
static void philox_known_answers(void **state) {
    (void)state;
    static const unsigned answers[][10] = {
        {0, 0, 0, 0, 0, 0, 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8},
        {0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd},
        {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344, 0xa4093822, 0x299f31d0, 0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1},
    };
    for (int i = 0; i < 3; i++) {
        unsigned x[4] = {answers[i][0], answers[i][1], answers[i][2], answers[i][3]};
        rft__philox(x, answers[i][4], answers[i][5]);
        for (int j = 0; j < 4; j++) {
            assert_int_equal(x[j], answers[i][6 + j]);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(functions_keep_their_bounds),
        cmocka_unit_test(functions_keep_their_bounds_near_zero),
        cmocka_unit_test(functions_at_special_values),
        cmocka_unit_test(philox_known_answers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
