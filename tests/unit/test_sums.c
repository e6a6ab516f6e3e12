/* SPDX-License-Identifier: Apache-2.0
 *
 * test_sums.c - kernels of codes that sum before they scale: which plans have them, that they keep to their bound for every kind
 * of codes, cut of k and level, and that what they cannot say of weights (Inf, NaN, sums that overflow) is what the weights say.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "codes_run.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_N = 80, MOST_K = 768, MOST_M = 6 };

static const char *const levels[] = {"avx2", "avx512"};
enum { LEVELS = 2 };

static rft_ctx *ctx[LEVELS]; /* NULL where the level does not run here */
static rft_error err;
static unsigned char codes[2 * MOST_N * MOST_K], zeros[MOST_N * MOST_K];
static float scales[MOST_N * MOST_K];
static float x[MOST_M * MOST_K], y[MOST_M * MOST_N], z[MOST_M * MOST_N];

static int make_all(void **state) {
    (void)state;
    for (int i = 0; i < LEVELS; i++) {
        ctx[i] = run_context(levels[i], 1);
    }
    return 0;
}

static int free_all(void **state) {
    (void)state;
    for (int i = 0; i < LEVELS; i++) {
        rft_ctx_free(ctx[i]);
    }
    return 0;
}

/* One format of each kind, and all values of four bits. group: k of a scale that lies apart, 0 where it does not. */
typedef struct kind {
    rft_type elem;
    int64_t group;
    bool zero, minimum;
} kind;

#define GGUF(number) ((rft_type)(256 + (number)))
static const kind kinds[] = {{GGUF(2), 0, false, false},  {GGUF(3), 0, false, true},   {GGUF(6), 0, false, false},
                             {GGUF(7), 0, false, true},   {GGUF(8), 0, false, false},  {GGUF(10), 0, false, true},
                             {GGUF(11), 0, false, false}, {GGUF(12), 0, false, true},  {GGUF(13), 0, false, true},
                             {GGUF(14), 0, false, false}, {GGUF(20), 0, false, false}, {GGUF(23), 0, false, false},
                             {GGUF(39), 0, false, false}, {GGUF(40), 0, false, false}, {RFT_I4, 128, false, false},
                             {RFT_I4, 8, false, false},   {RFT_U4, 32, true, false},   {RFT_U8, 64, true, false},
                             {RFT_I8, 1024, false, false}, {RFT_E2M1, 16, false, false}, {RFT_NF4, 64, false, false},
                             {RFT_FP4, 64, false, false}};
enum { KINDS = sizeof kinds / sizeof *kinds };

static rft_linear_desc describe(const kind *f, int64_t m, int64_t n, int64_t k, uint32_t flags) {
    rft_linear_desc d = rft_linear_desc_init();
    d.x = d.y = RFT_F32;
    d.w.elem = f->elem;
    d.w.n = n;
    d.w.k = k;
    d.m_min = d.m_max = m;
    d.flags = flags;
    if (f->group != 0) {
        d.w.scale = RFT_F32;
        d.w.group_n = 1;
        d.w.group_k = f->group;
        d.w.zero = f->zero ? RFT_U8 : (rft_type)0;
    }
    return d;
}

static rft_weight_src source(const rft_linear_desc *d) {
    rft_weight_src s = rft_weight_src_init();
    s.q = codes;
    s.scale = d->w.scale != 0 ? scales : NULL;
    s.zero = d->w.zero != 0 ? zeros : NULL;
    return s;
}

static void fill(rft_type elem, uint64_t seed) {
    assert_int_equal(rft_fill_random(elem, codes, MOST_N * MOST_K, seed, &err), RFT_OK);
    assert_int_equal(rft_fill_random(RFT_F32, scales, MOST_N * MOST_K, seed + 1, &err), RFT_OK);
    assert_int_equal(rft_fill_random(RFT_F32, x, MOST_M * MOST_K, seed + 2, &err), RFT_OK);
    for (int i = 0; i < MOST_N * MOST_K; i++) {
        zeros[i] = (unsigned char)((i * 7 + (int)seed) % 16);
    }
}

static rft_plan_info info_of(rft_ctx *c, const rft_linear_desc *d, rft_plan **plan) {
    rft_plan_info info = rft_plan_info_init();
    assert_int_equal(rft_plan_create(c, d, plan, &err), RFT_OK);
    assert_int_equal(rft_plan_get_info(*plan, d->m_max, &info), RFT_OK);
    return info;
}

static bool sums(const rft_plan_info *info) { return strncmp(info->kernel, "sums_", 5) == 0; }

/* y within its bound, as a share of it. */
static double prove(rft_ctx *c, const rft_linear_desc *d) {
    const rft_weight_src s = source(d);
    rft_plan *plan = NULL;
    rft_weight *weight = NULL;
    size_t bytes = 0;
    rft_linear_args a = rft_linear_args_init();
    rft_verify_result result = {.struct_size = sizeof result};
    const rft_plan_info info = info_of(c, d, &plan);
    assert_int_equal(rft_weight_bytes(c, &d->w, &bytes, &err), RFT_OK);
    void *const storage = aligned_alloc(64, (bytes + 63) / 64 * 64);
    assert_int_equal(rft_weight_pack(c, &d->w, &s, storage, NULL, &weight, &err), RFT_OK);
    a.m = d->m_max;
    a.x = x;
    a.y = y;
    a.weight = weight;
    a.workspace = aligned_alloc(64, (info.workspace + 63) / 64 * 64 + 64);
    a.workspace_bytes = info.workspace;
    assert_int_equal(rft_linear_run(plan, &a, &err), RFT_OK);
    assert_int_equal(rft_verify_source(plan, &a, &s, 0.0, 1, &result, &err), RFT_OK);
    free(a.workspace);
    free(storage);
    rft_weight_free(weight);
    rft_plan_free(plan);
    return result.worst;
}

/* Few rows are served so without RFT_BATCH_INVARIANT, and a minimum then counts apart; with it none are. */
static void test_which_plans(void **state) {
    (void)state;
    static const int most[] = {1, 4}; /* of all kinds; some have more */
    for (int l = 0; l < LEVELS; l++) {
        for (int i = 0; i < 2 * KINDS * MOST_M && ctx[l] != NULL; i++) {
            const kind *f = &kinds[i / (2 * MOST_M)];
            const int64_t m = i / 2 % MOST_M + 1;
            const rft_linear_desc d = describe(f, m, 64, 256, i % 2 ? RFT_BATCH_INVARIANT : 0);
            rft_plan *plan = NULL;
            const rft_plan_info info = info_of(ctx[l], &d, &plan);
            assert_true(sums(&info) ? i % 2 == 0 : i % 2 != 0 || m > most[l]);
            assert_int_equal(info.minimum_apart, f->minimum && sums(&info));
            rft_plan_free(plan);
        }
    }
}

/* In 8 bits a minimum counts apart too, whether x is rounded or given. */
static void test_minima_in_8_bits(void **state) {
    (void)state;
    for (int i = 0; i < 2 * KINDS && ctx[0] != NULL; i++) {
        const kind *f = &kinds[i / 2];
        rft_linear_desc d = describe(f, 1, 64, 256, i % 2 ? RFT_X_SCALED : 0);
        rft_plan *plan = NULL;
        d.x = i % 2 ? RFT_I8 : RFT_F32;
        d.compute = RFT_COMPUTE_I8;
        const rft_plan_info info = info_of(ctx[0], &d, &plan);
        assert_int_equal(info.minimum_apart, f->minimum);
        rft_plan_free(plan);
    }
}

/* Whole chunks, whole blocks of a chunk, and k that end within a block; panels that fill a tile and others. */
static void test_bounds(void **state) {
    (void)state;
    static const int64_t depths[] = {256, 768, 32, 288, 8, 70, 300, 601, 0}, columns[] = {64, 33, 80};
    for (int l = 0; l < LEVELS; l++) {
        for (int i = 0; i < KINDS * 9 * 3 * MOST_M && ctx[l] != NULL; i++) {
            const kind *f = &kinds[i / MOST_M / 27];
            const int64_t k = depths[i / MOST_M / 3 % 9];
            if (f->group == 0 && k % (f->elem < GGUF(10) || f->elem == GGUF(20) || f->elem == GGUF(39) ? 32 : 256) != 0) {
                continue;
            }
            fill(f->elem, (uint64_t)i);
            const rft_linear_desc d = describe(f, i % MOST_M + 1, columns[i / MOST_M % 3], k, 0);
            const double worst = prove(ctx[l], &d);
            if (!(worst <= 1.0)) {
                fail_msg("%s %s, n %lld, k %lld: %g of the bound", levels[l], rft_type_name(f->elem), (long long)d.w.n,
                         (long long)k, worst);
            }
        }
    }
}

/* Weights that are 0, as their codes are the bias or the zero point, take nothing from an x of any size. */
static void test_no_value(void **state) {
    (void)state;
    static const kind none[] = {{RFT_I4, 32, false, false}, {RFT_U4, 32, true, false}, {RFT_I8, 128, false, false},
                                {RFT_U8, 64, true, false}};
    for (int i = 0; i < 4 * LEVELS; i++) {
        const kind *f = &none[i / LEVELS];
        const rft_linear_desc d = describe(f, 1, 40, 512, 0);
        const rft_weight_src s = source(&d);
        fill(RFT_U8, 3);
        memset(codes, f->elem == RFT_U4 ? 0x99 : f->elem == RFT_U8 ? 9 : 0, sizeof codes);
        memset(zeros, 9, sizeof zeros);
        for (int k = 0; k < 512; k++) {
            x[k] *= 1e30f;
        }
        if (ctx[i % LEVELS] != NULL) {
            codes_run(ctx[i % LEVELS], &d, &s, 1, x, y);
            for (int n = 0; n < 40; n++) {
                assert_true(y[n] == 0.0f);
            }
        }
    }
}

static bool same(float a, float b) { return a == b || (isnan(a) && isnan(b)); }

/* The result of a plan that sums is the weights' own: NaN and Inf where the chain has them, and then its bits. */
static void as_chain(rft_ctx *c, const rft_linear_desc *d, int64_t only) {
    const rft_weight_src s = source(d);
    rft_linear_desc chain = *d;
    chain.flags |= RFT_BATCH_INVARIANT;
    codes_run(c, d, &s, 1, x, y);
    codes_run(c, &chain, &s, 1, x, z);
    for (int64_t n = 0; n < d->w.n; n++) {
        const bool special = !(fabsf(z[n]) < INFINITY);
        if ((only >= 0 && special != (n == only)) || (special && !same(y[n], z[n])) || (!special && !(fabsf(y[n]) < INFINITY))) {
            fail_msg("y[%lld] is %.9g, of the chain %.9g", (long long)n, (double)y[n], (double)z[n]);
        }
    }
    assert_true(prove(c, d) <= 1.0);
}

/* A scale of Inf with codes of both signs or of no value is NaN, with codes of one sign Inf, in its own column. */
static void test_scales_of_inf(void **state) {
    (void)state;
    static const kind f = {RFT_I4, 64, false, false};
    for (int l = 0; l < LEVELS; l++) {
        for (int i = 0; i < 4 && ctx[l] != NULL; i++) {
            const rft_linear_desc d = describe(&f, 1, 70, 256, 0);
            fill(RFT_I4, 5);
            if (i < 2) { /* codes of one sign, x too */
                memset(codes + 37 * 128, i == 0 ? 0x11 : 0xff, 128);
                for (int k = 0; k < 256; k++) {
                    x[k] = fabsf(x[k]) + 1.0f;
                }
            }
            scales[37 * 4 + 2] = i == 3 ? NAN : i == 1 ? -INFINITY : INFINITY;
            as_chain(ctx[l], &d, 37);
            assert_true(i < 2 ? y[37] == INFINITY : isnan(y[37]));
        }
    }
}

static void test_minima_of_inf(void **state) {
    (void)state;
    static const kind f = {GGUF(3), 0, false, true};
    for (int l = 0; l < LEVELS; l++) {
        const rft_linear_desc d = describe(&f, 1, 70, 256, 0);
        fill(GGUF(3), 6);
        memcpy(codes + (41 * 8 + 3) * 20 + 2, &(uint16_t){0x7c00}, 2);
        if (ctx[l] != NULL) {
            as_chain(ctx[l], &d, 41);
        }
    }
}

/* Sums of codes that overflow where those of weights do not, and x of Inf and NaN. */
static void test_large_x(void **state) {
    (void)state;
    static const kind f = {RFT_I8, 128, false, false};
    for (int l = 0; l < LEVELS; l++) {
        for (int i = 0; i < 3 && ctx[l] != NULL; i++) {
            const rft_linear_desc d = describe(&f, 1, 70, 256, 0);
            fill(RFT_I8, 7);
            for (int n = 0; n < 70 * 2; n++) {
                scales[n] = 0x1p-40f;
            }
            x[100] = i == 0 ? 0x1.8p126f : i == 1 ? INFINITY : NAN;
            x[101] = i == 0 ? -0x1p127f : 1.0f;
            as_chain(ctx[l], &d, -1);
        }
    }
}

/* What is lost in one row or column takes no bits of the others. */
static void test_other_rows(void **state) {
    (void)state;
    static const kind f = {RFT_I4, 32, false, false};
    for (int l = 0; l < LEVELS; l++) {
        const int64_t m = l == 0 ? 1 : 4;
        const rft_linear_desc d = describe(&f, m, 80, 512, 0);
        const rft_weight_src s = source(&d);
        fill(RFT_I4, 8);
        if (ctx[l] == NULL) {
            continue;
        }
        codes_run(ctx[l], &d, &s, m, x, z);
        scales[7 * 16 + 3] = INFINITY;
        x[2 * 512 + 100] = NAN;
        codes_run(ctx[l], &d, &s, m, x, y);
        for (int64_t i = 0; i < m * 80; i++) {
            assert_true(i / 80 == 2 ? isnan(y[i]) : i % 80 == 7 ? !isfinite(y[i]) : y[i] == z[i]);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_which_plans), cmocka_unit_test(test_minima_in_8_bits), cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_no_value),    cmocka_unit_test(test_scales_of_inf),    cmocka_unit_test(test_minima_of_inf),
        cmocka_unit_test(test_large_x),     cmocka_unit_test(test_other_rows)};
    return cmocka_run_group_tests(tests, make_all, free_all);
}
