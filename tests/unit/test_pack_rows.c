/* SPDX-License-Identifier: Apache-2.0
 *
 * test_pack_rows.c - rows as int4 in groups, int8 and FP8: the nearest FP8 code, scales that brute force does not beat, what
 * codes and scales stand for, and extremes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "format/pack_rows.h"

#include "format/decode/decode_scalar.h"

#include <math.h>
#include <string.h>

enum { K = 256 };

static uint32_t random_state = 20260202u;

static float uniform(void) {
    random_state = random_state * 1664525u + 1013904223u;
    return (float)(int)(random_state >> 8) / 8388608.0f - 1.0f;
}

static void fill(float *x, int round) {
    for (int i = 0; i < K; i++) {
        x[i] = 0.03f * (uniform() + uniform() + uniform());
    }
    if (round % 3 == 1) {
        x[round % K] = -0.9f;
    }
    for (int i = 0; round % 3 == 2 && i < K; i++) {
        x[i] = fabsf(x[i]);
    }
}

static void e4m3_is_the_nearest(void **state) {
    (void)state;
    for (unsigned b = 0; b < 0x7eu; b++) {
        const float at = rft__e4m3_f32(b), next = rft__e4m3_f32(b + 1), middle = 0.5f * (at + next);
        assert_int_equal(rft__e4m3_from_f32(at), b);
        assert_int_equal(rft__e4m3_from_f32(-at), b | 0x80u);
        assert_int_equal(rft__e4m3_from_f32(middle), b + (b & 1u));
        assert_int_equal(rft__e4m3_from_f32(nextafterf(middle, 0)), b);
        assert_int_equal(rft__e4m3_from_f32(nextafterf(middle, 1e9f)), b + 1);
    }
    assert_int_equal(rft__e4m3_from_f32(448), 0x7e);
    assert_int_equal(rft__e4m3_from_f32(-1e30f), 0xfe);
    assert_int_equal(rft__e4m3_from_f32(INFINITY), 0x7e);
    assert_int_equal(rft__e4m3_from_f32(NAN) & 0x7f, 0x7f);
    assert_int_equal(rft__e4m3_from_f32(1e-30f), 0);
}

static float scale_at(const rft__packing *p, const unsigned char *scales, int64_t i) {
    const unsigned char *at = scales + i * (p->scale == RFT_F32 ? 4 : 2);
    return p->scale == RFT_F32 ? rft__bits_f32(rft__load_u32(at))
                               : (p->scale == RFT_F16 ? rft__f16_f32(rft__load_u16(at)) : rft__bf16_f32(rft__load_u16(at)));
}

static float code_at(const rft__packing *p, const unsigned char *codes, int64_t i) {
    return p->code == RFT_I4   ? (float)((int)rft__nibble(codes[i / 2], (unsigned)(i & 1)) - 8)
           : p->code == RFT_I8 ? (float)((int)codes[i] - 128)
                               : rft__e4m3_f32(codes[i]);
}

static double squares(const float *a, const float *b) {
    double sum = 0;
    for (int i = 0; i < K; i++) {
        sum += ((double)a[i] - b[i]) * ((double)a[i] - b[i]);
    }
    return sum;
}

/* What a row says that it stands for is what its bytes stand for; the error is that of the type. */
static void rows_stand_for_their_codes(void **state) {
    (void)state;
    static const rft_type types[] = {RFT_I4, RFT_I8, RFT_E4M3}, scale_types[] = {RFT_F32, RFT_F16, RFT_BF16};
    static const double limits[] = {0.10, 0.008, 0.035};
    static const float zeros[K];
    for (int t = 0; t < 9; t++) {
        const rft__packing p = {types[t / 3], scale_types[t % 3], K, types[t / 3] == RFT_I4 ? 32 : K};
        assert_int_equal(rft__packing_code_bytes(&p), p.code == RFT_I4 ? K / 2 : K);
        assert_int_equal(rft__packing_scale_bytes(&p), K / p.group_k * (p.scale == RFT_F32 ? 4 : 2));
        for (int round = 0; round < 30; round++) {
            unsigned char codes[K], scales[K];
            float x[K], back[K];
            fill(x, round);
            for (int fit = RFT_FIT_NEAREST; fit <= RFT_FIT_SEARCH; fit++) {
                rft__pack_row(&p, x, (rft__fit)fit, codes, scales, back);
                for (int i = 0; i < K; i++) {
                    assert_true(scale_at(&p, scales, i / p.group_k) > 0);
                    assert_true(back[i] == code_at(&p, codes, i) * scale_at(&p, scales, i / p.group_k));
                }
            }
            if (round % 3 == 0) {
                assert_true(sqrt(squares(x, back) / squares(x, zeros)) < limits[t / 3]);
            }
        }
    }
}

/* Every bf16 scale of a group of 32. */
static void no_scale_is_better(void **state) {
    (void)state;
    for (int round = 0; round < 12; round++) {
        const rft__packing p = {RFT_I4, RFT_BF16, 32, 32};
        unsigned char codes[16], scales[2];
        float x[K], back[K] = {0};
        double best = HUGE_VAL, found = 0;
        fill(x, round);
        rft__pack_row(&p, x, RFT_FIT_SEARCH, codes, scales, back);
        for (unsigned h = 0x3000; h < 0x4000; h++) {
            const float d = rft__bf16_f32(h);
            double error = 0;
            for (int i = 0; i < 32; i++) {
                const float code = fminf(fmaxf(rintf(x[i] / d), -8), 7), e = x[i] - code * d;
                error += (double)e * e;
            }
            best = error < best ? error : best;
        }
        for (int i = 0; i < 32; i++) {
            found += ((double)x[i] - back[i]) * ((double)x[i] - back[i]);
        }
        if (found > best * (1 + 1e-3)) { /* a bf16 scale is coarse: the search rounds only the best of its vectors of codes */
            fail_msg("round %d: error %.6g, but %.6g is possible", round, sqrt(found), sqrt(best));
        }
    }
}

static void odd_lengths_and_extremes(void **state) {
    (void)state;
    static const float values[] = {0, 1e-40f, 3e38f, -3e38f, 1e-20f, 65504};
    for (size_t v = 0; v < sizeof values / sizeof values[0]; v++) {
        for (int t = 0; t < 3; t++) {
            const rft_type code = t == 0 ? RFT_I4 : t == 1 ? RFT_I8 : RFT_E4M3;
            const rft__packing p = {code, RFT_F32, 13, t == 0 ? 32 : 13};
            unsigned char codes[16], scales[4];
            float x[13] = {0}, back[13];
            x[5] = x[12] = values[v];
            rft__pack_row(&p, x, RFT_FIT_SEARCH, codes, scales, back);
            assert_int_equal(rft__packing_code_bytes(&p), t == 0 ? 8 : t == 1 ? 16 : 13);
            for (int i = 0; i < 13; i++) {
                assert_true(isfinite(back[i]) && fabsf(back[i] - x[i]) <= 0.1f * fabsf(values[v]) + 1e-30f);
            }
            assert_true(t != 0 || (codes[6] >> 4 == 0 && codes[7] == 0)); /* padding */
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(e4m3_is_the_nearest),
        cmocka_unit_test(rows_stand_for_their_codes),
        cmocka_unit_test(no_scale_is_better),
        cmocka_unit_test(odd_lengths_and_extremes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
