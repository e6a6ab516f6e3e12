/* SPDX-License-Identifier: Apache-2.0
 *
 * test_fast_math.c - the activations as kernels compute them, compiled as C, against f64: a sample of all floats and every one
 * where a result gets special, with ex2 and rcp off by as much as PTX allows to either side. On a GPU test_cuda_texts.c goes
 * over all floats with the instructions themselves.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define RFT_TESTS_FAST_MATH
#include "emulated_words.h"

static double exp2_off;    /* of the relative error of ex2, -1 .. 1 */
static int reciprocal_off; /* ulps */

static float rft__exp2(float x) {
    const double y = exp2((double)x) * (1.0 + exp2_off * 0x1.6ap-23);
    return y < 0x1p-126 ? 0.0f : (float)y;
}

static float rft__reciprocal(float x) {
    const float y = 1.0f / x;
    return y < 0x1p-126f ? 0.0f : y == 1.0f ? y : __uint_as_float(__float_as_uint(y) + (unsigned)reciprocal_off);
}

static float rft__max_nan(float a, float b) { return a != a || a > b ? a : b; }
static float rft__min_nan(float a, float b) { return a != a || a < b ? a : b; }

#include "cuda/kernels/fast_math.cuh"
#include "epilogue/epi_math.h"

static double silu(double y) { return y / (1.0 + exp(-y)); }
static double gelu(double y) { return 0.5 * y * erfc(-y * 0.70710678118654752); }
static double gelu_tanh(double y) { return y / (1.0 + exp(-1.5957691216057308 * (y + 0.044715 * y * y * y))); }

static const struct {
    const char *name;
    float (*fast)(float);
    double (*exact)(double);
    bool of_value; /* the bound is relative to the result, otherwise to y */
    double units;  /* of 2^-24 */
} functions[] = {
    {"silu", rft__silu, silu, true, 8.0},
    {"gelu", rft__gelu, gelu, false, 4.5},
    {"gelu_tanh", rft__gelu_tanh, gelu_tanh, false, 3.5},
};

enum { FUNCTIONS = sizeof functions / sizeof *functions };

static double worst[FUNCTIONS];

static void check(int f, float y) {
    const double exact = functions[f].exact(y), error = fabs(functions[f].fast(y) - exact);
    const double scale = functions[f].of_value ? fabs(exact) : fabs((double)y);
    const double units = (error - 0x1p-119) / (scale * 0x1p-24);
    worst[f] = units > worst[f] ? units : worst[f];
    if (!(units <= functions[f].units) && error > 0x1p-119) {
        fail_msg("%s(%a) = %a, by f64 %a: %.2f units", functions[f].name, (double)y, (double)functions[f].fast(y), exact, units);
    }
}

static void check_all(uint64_t first, uint64_t last, uint64_t step) {
    for (uint64_t i = first; i < last; i += step) {
        const float y = __uint_as_float((unsigned)i);
        for (int f = 0; f < FUNCTIONS && isfinite(y); f++) {
            check(f, y);
        }
    }
}

static void within_their_bounds(void **state) {
    (void)state;
    static const float special[] = {0x1p-126f, 0x1p-25f, 1.0f, 5.5f, 10.0f, 17.0f, 87.3f, 88.3f, 88.8f, 0x1p126f};
    for (int off = 0; off < 9; off++) {
        exp2_off = off % 3 - 1;
        reciprocal_off = off / 3 - 1;
        check_all(0, (uint64_t)1 << 32, 20011);
        for (unsigned j = 0; j < 2 * sizeof special / sizeof *special; j++) {
            const uint64_t at = __float_as_uint(special[j / 2]) | (uint64_t)(j % 2) << 31;
            check_all(at - 500, at + 500, 1);
        }
    }
    for (int f = 0; f < FUNCTIONS; f++) {
        print_message("%s: %.2f units\n", functions[f].name, worst[f]);
    }
}

static void special_values(void **state) {
    (void)state;
    exp2_off = reciprocal_off = 0;
    for (int f = 0; f < FUNCTIONS; f++) {
        assert_true(isnan(functions[f].fast(NAN)));
        assert_true(functions[f].fast(INFINITY) == INFINITY);
        assert_true(fabsf(functions[f].fast(3e38f) - 3e38f) < 1e32f);
        assert_true(functions[f].fast(-INFINITY) == 0.0f && signbit(functions[f].fast(-INFINITY)));
        assert_true(functions[f].fast(-0.0f) == 0.0f && signbit(functions[f].fast(-0.0f)));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(within_their_bounds), cmocka_unit_test(special_values)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
