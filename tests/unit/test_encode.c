/* SPDX-License-Identifier: Apache-2.0
 *
 * test_encode.c - encoders.def against the decoders: representable weights come back bit for bit, no scale in reach does better
 * than the one found, searching is never worse than rounding, and extremes stay finite.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "format/encode.h"
#include "format/encode_fit.h"

#include "format/decode/decode_scalar.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_K = 256, MAX_BYTES = 1024 };

#define SEED 20260101u

static uint32_t random_state = SEED;

static uint32_t next_random(void) {
    random_state = random_state * 1664525u + 1013904223u;
    return random_state >> 8;
}

static float uniform(void) { return (float)(int)next_random() / 8388608.0f - 1.0f; }

/* Near enough to a normal distribution of deviation 1. */
static float normal(void) {
    float sum = 0;
    for (int i = 0; i < 12; i++) {
        sum += uniform();
    }
    return 0.5f * sum;
}

static void fill_normal(float *x, int n, float scale) {
    for (int i = 0; i < n; i++) {
        x[i] = scale * normal();
    }
}

static const rft__format *format_of(const rft__encoder *e) { return rft__format_find(e->type); }

static double squares(const float *a, const float *b, int n) {
    double sum = 0;
    for (int i = 0; i < n; i++) {
        sum += ((double)a[i] - b[i]) * ((double)a[i] - b[i]);
    }
    return sum;
}

/* One block through the file and back; the sum of squared errors. */
static double there_and_back(const rft__encoder *e, const float *x, rft__fit fit, unsigned char *bytes, float *back) {
    e->encode_blocks(x, 1, fit, bytes);
    format_of(e)->decode_blocks(bytes, 1, back);
    return squares(x, back, (int)format_of(e)->block_elements);
}

static const rft__encoder *encoder_named(const char *name) {
    const rft__encoder *e = NULL;
    for (uint32_t i = 0; (e = rft__encoder_at(i)) != NULL && strcmp(e->name, name) != 0; i++) {
    }
    assert_non_null(e);
    return e;
}

/* ---- f16 ---- */

static void f16_is_the_nearest(void **state) {
    (void)state;
    for (unsigned h = 0; h < 0x7c00u; h++) {
        const float at = rft__f16_f32(h), next = rft__f16_f32(h + 1);
        assert_int_equal(rft__f16_from_f32(at), h);
        assert_int_equal(rft__f16_from_f32(-at), h | 0x8000u);
        const float middle = h == 0x7bffu ? 65520.0f : 0.5f * at + 0.5f * next;
        assert_int_equal(rft__f16_from_f32(middle), h + (h & 1u));
        assert_int_equal(rft__f16_from_f32(nextafterf(middle, 0)), h);
        assert_int_equal(rft__f16_from_f32(nextafterf(middle, 1e9f)), h + 1);
    }
    assert_int_equal(rft__f16_from_f32(INFINITY), 0x7c00);
    assert_int_equal(rft__f16_from_f32(-1e30f), 0xfc00);
    assert_int_equal(rft__f16_from_f32(NAN) & 0x7e00u, 0x7e00u);
    assert_int_equal(rft__f16_from_f32(1e-30f), 0);
}

/* ---- every row ---- */

static void rows_agree_with_formats(void **state) {
    (void)state;
    const rft__encoder *e;
    for (uint32_t i = 0; (e = rft__encoder_at(i)) != NULL; i++) {
        const rft__format *f = format_of(e);
        assert_ptr_equal(rft__encoder_find(e->type), e);
        assert_string_equal(f->name, e->name);
        assert_non_null(f->decode_blocks);
        assert_true(f->block_elements <= MAX_K && f->block_bytes <= MAX_BYTES && f->gguf >= 0);
        assert_int_equal(e->fallback != 0, f->block_elements > 32);
        if (e->fallback) {
            assert_int_equal(format_of(rft__encoder_find(e->fallback))->block_elements, 32);
        }
    }
    assert_null(rft__encoder_find(RFT_I32));
}

/* Relative RMS errors of normal weights: nearest and search each below what is listed, as measured plus 2 %. */
static void errors_are_small(void **state) {
    (void)state;
    static const struct {
        const char *name;
        double nearest, search;
    } rows[] = {
        {"f32", 0, 0},
        {"f16", 2e-4, 2e-4},
        {"bf16", 1.62e-3, 1.62e-3},
        {"q8_0", 0.0054, 0.0047},
        {"q4_0", 0.0865, 0.0812},
        {"q4_1", 0.0805, 0.0707},
        {"q5_0", 0.0424, 0.0396},
        {"q5_1", 0.0388, 0.0334},
        {"q2_k", 0.333, 0.262},
        {"q3_k", 0.157, 0.145},
        {"q4_k", 0.0794, 0.0700},
        {"q5_k", 0.0388, 0.0343},
        {"q6_k", 0.0190, 0.0166},
        {"iq4_nl", 0.0801, 0.0741},
        {"iq4_xs", 0.0811, 0.0746},
        {"mxfp4", 0.116, 0.1143},
    };
    static float x[MAX_K], back[MAX_K];
    unsigned char bytes[MAX_BYTES];
    for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++) {
        const rft__encoder *e = encoder_named(rows[r].name);
        const int n = (int)format_of(e)->block_elements;
        double energy = 0, nearest = 0, search = 0;
        for (int b = 0; b < 65536 / MAX_K; b++) {
            static const float none[MAX_K];
            fill_normal(x, n, 0.02f);
            const double by_nearest = there_and_back(e, x, RFT_FIT_NEAREST, bytes, back);
            const double by_search = there_and_back(e, x, RFT_FIT_SEARCH, bytes, back);
            assert_true(by_search <= by_nearest * (1 + 1e-6));
            energy += squares(x, none, n);
            nearest += by_nearest;
            search += by_search;
        }
        nearest = sqrt(nearest / energy);
        search = sqrt(search / energy);
        if (nearest > rows[r].nearest || search > rows[r].search) {
            fail_msg("%s: nearest %.5f, search %.5f; at most %.5f and %.5f", e->name, nearest, search, rows[r].nearest,
                     rows[r].search);
        }
    }
}

/* ---- exactness ---- */

static void store_f16_at(unsigned char *p, float value) {
    const uint16_t h = rft__f16_from_f32(value);
    memcpy(p, &h, sizeof h);
}

static float random_scale(void) {
    const float v = 0.001f + 0.01f * fabsf(uniform());
    return next_random() & 1u ? v : -v;
}

static void assert_exact(const rft__encoder *e, const unsigned char *block, rft__fit fit) {
    float x[MAX_K], back[MAX_K];
    unsigned char bytes[MAX_BYTES];
    format_of(e)->decode_blocks(block, 1, x);
    const double error = there_and_back(e, x, fit, bytes, back);
    if (error != 0) {
        fail_msg("%s, seed %u: representable weights miss by %.3g", e->name, SEED, sqrt(error));
    }
}

/* Any block of one scale, or of a scale and a minimum, is found again from its weights. */
static void representable_weights_are_exact(void **state) {
    (void)state;
    static const struct {
        const char *name;
        int n_scales;
    } rows[] = {{"q4_0", 1}, {"q5_0", 1}, {"q8_0", 1}, {"iq4_nl", 1}, {"q4_1", 2}, {"q5_1", 2}, {"mxfp4", 0}};
    for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++) {
        const rft__encoder *e = encoder_named(rows[r].name);
        for (int round = 0; round < 400; round++) {
            unsigned char block[MAX_BYTES];
            for (uint32_t i = 0; i < format_of(e)->block_bytes; i++) {
                block[i] = (unsigned char)next_random();
            }
            for (int s = 0; s < rows[r].n_scales; s++) {
                const float d = random_scale();
                store_f16_at(block + 2 * s, rows[r].n_scales == 2 && s == 0 ? fabsf(d) : d);
            }
            if (rows[r].n_scales == 0) {
                block[0] = (unsigned char)(100 + next_random() % 50);
            }
            assert_exact(e, block, RFT_FIT_SEARCH);
        }
    }
}

/* Few codes in use: their scale is found all the same. */
static void few_codes_are_exact(void **state) {
    (void)state;
    const rft__encoder *e = encoder_named("q4_0");
    for (int most = 1; most <= 7; most++) {
        for (int round = 0; round < 50; round++) {
            unsigned char block[18];
            store_f16_at(block, random_scale());
            for (int j = 0; j < 16; j++) {
                const unsigned low = 8 + next_random() % (unsigned)(most + 1), high = 8 - next_random() % (unsigned)(most + 1);
                block[2 + j] = (unsigned char)(low | high << 4);
            }
            assert_exact(e, block, RFT_FIT_SEARCH);
        }
    }
}

/* 256 weights of parts whose codes reach both ends, and whose largest integers are the largest there are. */
static void representable_k_weights_are_exact(void **state) {
    (void)state;
    static const struct {
        const char *name;
        int part, max_code, max_integer;
    } rows[] = {{"q4_k", 32, 15, 63}, {"q5_k", 32, 31, 63}, {"q2_k", 16, 3, 15}};
    for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++) {
        const rft__encoder *e = encoder_named(rows[r].name);
        for (int round = 0; round < 40; round++) {
            float x[MAX_K], back[MAX_K];
            unsigned char bytes[MAX_BYTES];
            const float d = rft__f16_f32(rft__f16_from_f32(fabsf(random_scale())));
            const float dmin = rft__f16_f32(rft__f16_from_f32(fabsf(random_scale())));
            for (int p = 0; p < MAX_K / rows[r].part; p++) {
                const unsigned top = (unsigned)rows[r].max_integer;
                const float scale = d * (float)(p == 3 ? top : 1 + next_random() % top);
                const float minimum = dmin * (float)(p == 5 ? top : next_random() % (top + 1));
                for (int i = 0; i < rows[r].part; i++) {
                    const unsigned code = i == 2 ? 0 : i == 7 ? (unsigned)rows[r].max_code : next_random();
                    x[p * rows[r].part + i] = scale * (float)(int)(code & (unsigned)rows[r].max_code) - minimum;
                }
            }
            const double error = there_and_back(e, x, RFT_FIT_SEARCH, bytes, back);
            static const float none[MAX_K];
            if (error > 1e-6 * squares(x, none, MAX_K)) {
                fail_msg("%s, seed %u, round %d: relative error %.3g", e->name, SEED, round,
                         sqrt(error / squares(x, none, MAX_K)));
            }
        }
    }
}

/* ---- optimality ---- */

static void assert_not_beaten(const char *name, int round, double found, double best, double allowed) {
    if (found > best * allowed + 1e-20) {
        fail_msg("%s, seed %u, block %d: error %.6g, but %.6g is possible", name, SEED, round, sqrt(found), sqrt(best));
    }
}

static const float iq4_values[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
static const float e2m1_values[15] = {-6, -4, -3, -2, -1.5f, -1, -0.5f, 0, 0.5f, 1, 1.5f, 2, 3, 4, 6};

/* Blocks of several kinds: normal, with an outlier, few distinct values. */
static void fill_block(float *x, int n, int round) {
    fill_normal(x, n, 0.05f);
    if (round % 4 == 1) {
        x[next_random() % (unsigned)n] *= 8;
    }
    for (int i = 0; round % 4 == 2 && i < n; i++) {
        x[i] = 0.01f * (float)(int)(next_random() % 7u) - 0.02f;
    }
    for (int i = 0; round % 4 == 3 && i < n; i++) {
        x[i] = fabsf(x[i]);
    }
}

/* Every finite f16 as the scale, codes nearest under each. */
static void no_scale_is_better(void **state) {
    (void)state;
    static const struct {
        const char *name;
        rft__levels levels;
        double allowed;
    } rows[] = {{"q4_0", {16, -8, NULL}, 1 + 1e-5},
                {"q5_0", {32, -16, NULL}, 1 + 1e-5},
                {"iq4_nl", {16, 0, iq4_values}, 1 + 1e-5},
                {"q8_0", {256, -128, NULL}, 1.15}};
    float x[32], back[32];
    unsigned char bytes[64];
    for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++) {
        for (int round = 0; round < 8; round++) {
            double best = HUGE_VAL;
            fill_block(x, 32, round);
            for (unsigned h = 1; h < 0x7c00u; h++) {
                for (unsigned sign = 0; sign < 2; sign++) {
                    const double error = rft__code_scaled(&rows[r].levels, x, 32, rft__f16_f32(h | sign << 15), NULL);
                    best = error < best ? error : best;
                }
            }
            const double found = there_and_back(encoder_named(rows[r].name), x, RFT_FIT_SEARCH, bytes, back);
            assert_not_beaten(rows[r].name, round, found, best, rows[r].allowed);
        }
    }
}

static void no_exponent_is_better(void **state) {
    (void)state;
    static const rft__levels levels = {15, 0, e2m1_values};
    float x[32], back[32];
    unsigned char bytes[17];
    for (int round = 0; round < 200; round++) {
        double best = HUGE_VAL;
        fill_block(x, 32, round);
        for (unsigned e = 1; e < 255; e++) {
            const double error = rft__code_scaled(&levels, x, 32, rft__e8m0_f32(e), NULL);
            best = error < best ? error : best;
        }
        assert_not_beaten("mxfp4", round, there_and_back(encoder_named("mxfp4"), x, RFT_FIT_SEARCH, bytes, back), best, 1 + 1e-9);
    }
}

/* A fine grid of scales and minima round all that the range of the weights makes sensible. */
static double best_line(int max, const float *x, int n) {
    float low = x[0], high = x[0];
    double best = HUGE_VAL;
    for (int i = 1; i < n; i++) {
        low = fminf(low, x[i]);
        high = fmaxf(high, x[i]);
    }
    for (float steps = 0.4f * (float)max; steps < 1.8f * (float)max; steps += 0.004f * (float)max) {
        const float d = rft__f16_f32(rft__f16_from_f32((high - low) / steps));
        for (float shift = -0.4f * (float)max; shift < 0.4f * (float)max; shift += 0.05f) {
            const double error = rft__code_affine(max, x, n, d, rft__f16_f32(rft__f16_from_f32(low + shift * d)), NULL);
            best = error < best ? error : best;
        }
    }
    return best;
}

static void few_lines_are_better(void **state) {
    (void)state;
    float x[32], back[32];
    unsigned char bytes[24];
    double found = 0, best = 0;
    for (int round = 0; round < 24; round++) {
        fill_block(x, 32, round);
        const double one = there_and_back(encoder_named("q4_1"), x, RFT_FIT_SEARCH, bytes, back), least = best_line(15, x, 32);
        assert_not_beaten("q4_1", round, one, least, 1.25);
        found += one;
        best += least;
    }
    assert_not_beaten("q4_1", -1, found, best, 1.06);
}

/* Every pair of integers for each part of a Q4_K block, under the block's own scales. */
static void few_integers_are_better(void **state) {
    (void)state;
    const rft__encoder *e = encoder_named("q4_k");
    float x[MAX_K], back[MAX_K];
    unsigned char bytes[144];
    for (int round = 0; round < 6; round++) {
        fill_block(x, MAX_K, round);
        double best = 0;
        const double found = there_and_back(e, x, RFT_FIT_SEARCH, bytes, back);
        const float d = rft__f16_f32(rft__load_u16(bytes)), dmin = rft__f16_f32(rft__load_u16(bytes + 2));
        for (int p = 0; p < 8; p++) {
            double part = HUGE_VAL;
            for (int i = 0; i < 64 * 64; i++) {
                const double error = rft__code_affine(15, x + 32 * p, 32, d * (float)(i / 64), -(dmin * (float)(i % 64)), NULL);
                part = error < part ? error : part;
            }
            best += part;
        }
        assert_not_beaten("q4_k", round, found, best, 1.10);
    }
}

/* ---- extremes ---- */

static void assert_finite(const rft__encoder *e, const float *x, const char *what) {
    const int n = (int)format_of(e)->block_elements;
    for (int fit = RFT_FIT_NEAREST; fit <= RFT_FIT_SEARCH; fit++) {
        unsigned char bytes[MAX_BYTES];
        float back[MAX_K], most = 0;
        there_and_back(e, x, (rft__fit)fit, bytes, back);
        for (int i = 0; i < n; i++) {
            most = fmaxf(most, fabsf(x[i]));
        }
        for (int i = 0; i < n; i++) {
            if (!isfinite(back[i]) || fabsf(back[i] - x[i]) > 1.01f * most + 1e-30f) {
                fail_msg("%s, %s: weight %d is %g, not %g", e->name, what, i, (double)back[i], (double)x[i]);
            }
        }
    }
}

static void extremes_stay_finite(void **state) {
    (void)state;
    const rft__encoder *e;
    for (uint32_t i = 0; (e = rft__encoder_at(i)) != NULL; i++) {
        const float limit = e->limit > 0 ? e->limit : 3.0e38f;
        const float values[] = {0, limit, -limit, 1e-40f, 1e-7f, -1e-12f, 1};
        for (size_t v = 0; v < sizeof values / sizeof values[0]; v++) {
            float x[MAX_K] = {0};
            assert_int_equal(rft__encode_check(e->limit, &values[v], 1), -1);
            x[5] = values[v];
            assert_finite(e, x, "one weight");
            for (int k = 0; k < MAX_K; k++) {
                x[k] = values[v];
            }
            assert_finite(e, x, "all equal");
            for (int k = 0; k < MAX_K; k += 2) {
                x[k] = -values[v];
            }
            assert_finite(e, x, "both signs");
        }
    }
}

static void what_cannot_be_stored_is_found(void **state) {
    (void)state;
    const rft__encoder *e;
    const float bad[] = {NAN, -NAN, INFINITY, -INFINITY};
    for (uint32_t i = 0; (e = rft__encoder_at(i)) != NULL; i++) {
        float x[40] = {1, -1};
        assert_int_equal(rft__encode_check(e->limit, x, 40), -1);
        for (size_t b = 0; b < sizeof bad / sizeof bad[0]; b++) {
            x[37] = bad[b];
            assert_int_equal(rft__encode_check(e->limit, x, 40), 37);
        }
        if (e->limit > 0) {
            x[37] = 0;
            x[11] = -nextafterf(e->limit, INFINITY);
            assert_int_equal(rft__encode_check(e->limit, x, 40), 11);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(f16_is_the_nearest),   cmocka_unit_test(rows_agree_with_formats),
        cmocka_unit_test(errors_are_small),     cmocka_unit_test(representable_weights_are_exact),
        cmocka_unit_test(few_codes_are_exact),  cmocka_unit_test(representable_k_weights_are_exact),
        cmocka_unit_test(no_scale_is_better),   cmocka_unit_test(no_exponent_is_better),
        cmocka_unit_test(few_lines_are_better), cmocka_unit_test(few_integers_are_better),
        cmocka_unit_test(extremes_stay_finite), cmocka_unit_test(what_cannot_be_stored_is_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
