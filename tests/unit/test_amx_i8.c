/* SPDX-License-Identifier: Apache-2.0
 *
 * test_amx_i8.c - products in 8 bits on tiles over the stand-in: chosen from which m on, and the bits of the level below at every
 * length of a sum, kind of offset and height, over threads and passes of K; one sum over all k where x is given in 8 bits.
 * check.rooftile_check_amx proves the numbers.
 */
#include "amx_level.c"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "amx_plans.h"

enum { N = 80, K = 2720, MOST = 70, ALIGN = 64, GGUF = 256, Q8_0 = 8, Q4_K = 12, Q6_K = 14 };

/* What W and x are: sums of 16, 32, 64, 128, 256 and all k with and without offset, in place and by strips. */
static const struct w_case {
    rft_type elem;
    int64_t k, group;
    bool zero, given; /* given: x in 8 bits, with a scale a row */
} cases[] = {
    {RFT_GGUF_Q4_0, K, 0, false, false}, {(rft_type)(GGUF + Q8_0), K, 0, false, false},
    {(rft_type)(GGUF + Q4_K), 2560, 0, false, false},     {(rft_type)(GGUF + Q6_K), 2560, 0, false, false},
    {RFT_I8, K, K, false, false}, {RFT_I8, K, 64, false, false},
    {RFT_I8, K - 5, 128, false, false},     {RFT_I4, K, 128, false, false}, {RFT_U4, K, 64, true, false},
    {RFT_U8, K, K, true, false}, {RFT_U8, K - 37, 32, true, false},     {RFT_I8, K, K, false, true},
    {RFT_U8, K - 5, K, true, true}, {RFT_I4, K - 165, K, false, true}, {RFT_U4, K, K, true, true},
};

#define STRIPS "gemm_i8_bytes_f32_32x32_amx"
#define COUNT(a) (sizeof(a) / sizeof *(a))

static rft_ctx *open_level(const char *level, uint32_t threads) {
    rft_ctx_options o = rft_ctx_options_init();
    rft_ctx *ctx = NULL;
    o.threads = threads;
    o.max_isa = level;
    o.cache_dir = "/nonexistent";
    OK(rft_ctx_create("cpu", &o, &ctx, &err));
    return ctx;
}

static rft_linear_desc describe(const struct w_case *c, int64_t m_min, int64_t m_max) {
    rft_linear_desc d = rft_linear_desc_init();
    d.x = c->given ? RFT_I8 : RFT_F32;
    d.y = RFT_F32;
    d.flags = c->given ? RFT_X_SCALED : 0;
    d.compute = RFT_COMPUTE_I8;
    d.w.elem = c->elem;
    d.w.n = N;
    d.w.k = c->k;
    d.m_min = m_min;
    d.m_max = m_max;
    if (c->group != 0) {
        d.w.scale = RFT_F32;
        d.w.group_k = c->group < c->k ? c->group : 0;
        d.w.group_n = 1;
        d.w.zero = c->zero ? RFT_U8 : (rft_type)0;
    }
    return d;
}

static void *operand(rft_type type, int64_t n, uint64_t seed) {
    void *p = calloc(1, (size_t)rft_type_bytes(type, n) + ALIGN);
    OK(rft_fill_random(type, p, n, seed, &err));
    return p;
}

/* Stored W and X, the same for both levels. */
typedef struct operands_of {
    void *q, *x;
    float *scale; /* of W, and of x in 8 bits */
    unsigned char *zero;
} operands_of;

static operands_of make(const struct w_case *c) {
    const int64_t groups = N * K / 16;
    operands_of o = {operand(c->elem, N * c->k, 1), operand(c->given ? RFT_I8 : RFT_F32, MOST * K, 2),
                     malloc((size_t)groups * sizeof(float)), malloc((size_t)groups)};
    for (int64_t i = 0; i < groups; i++) {
        o.scale[i] = 0.01f * (float)(1 + i % 7);
        o.zero[i] = (unsigned char)(i % 11);
    }
    return o;
}

static void drop(operands_of *o) {
    free(o->q);
    free(o->scale);
    free(o->x);
    free(o->zero);
}

/* The product at m by that kernel, NULL the plan's choice. */
static float *product(rft_ctx *ctx, const rft_linear_desc *d, const operands_of *o, const char *kernel, int64_t m) {
    rft_plan_info info = rft_plan_info_init();
    rft_weight_src src = rft_weight_src_init();
    rft_linear_args args = rft_linear_args_init();
    rft_plan *plan = NULL;
    rft_weight *weight = NULL;
    size_t bytes = 0;
    src.q = o->q;
    src.scale = d->w.scale != 0 ? o->scale : NULL;
    src.zero = d->w.zero != 0 ? o->zero : NULL;
    OK(kernel != NULL ? rft_plan_create_forced(ctx, d, kernel, &plan, &err) : rft_plan_create(ctx, d, &plan, &err));
    OK(rft_plan_get_info(plan, m, &info));
    OK(rft_weight_bytes(ctx, &d->w, &bytes, &err));
    void *packed = aligned_alloc(ALIGN, (bytes / ALIGN + 1) * ALIGN);
    void *workspace = aligned_alloc(ALIGN, (info.workspace / ALIGN + 1) * ALIGN);
    OK(rft_weight_pack(ctx, &d->w, &src, packed, NULL, &weight, &err));
    args.m = m;
    args.x = o->x;
    args.x_scale = d->x == RFT_I8 ? o->scale : NULL;
    args.y = malloc((size_t)(m * N) * sizeof(float));
    args.weight = weight;
    args.workspace = workspace;
    args.workspace_bytes = info.workspace;
    OK(rft_linear_run(plan, &args, &err));
    rft_weight_free(weight);
    rft_plan_free(plan);
    free(packed);
    free(workspace);
    return args.y;
}

/* NULL: there is none, or what the plan takes. */
static const char *in_place_row(rft_type w) {
    return w == RFT_U8                                     ? "gemm_i8_q8z_f32_32x32_amx"
           : w == RFT_I8 || w == (rft_type)(GGUF + Q8_0) ? "gemm_i8_q8_f32_32x32_amx"
                                                           : NULL;
}

/* One row, and as few as memory allows, stay with the level below, whatever the flags; the error bound is the same. */
static void test_choice(void **state) {
    (void)state;
    rft_ctx *ctx = open_level("amx", 1);
    for (size_t i = 0; i < COUNT(cases); i++) {
        rft_linear_desc d = describe(cases + i, 1, 512);
        const char *in_place = in_place_row(d.w.elem);
        assert_false(is_amx(kernel_at(ctx, &d, 1)));
        assert_false(is_amx(kernel_at(ctx, &d, 7)));
        assert_int_equal(is_amx(kernel_at(ctx, &d, 8)), in_place != NULL);
        assert_int_equal(is_amx(kernel_at(ctx, &d, 12)), in_place != NULL);
        assert_string_equal(kernel_at(ctx, &d, 13), in_place != NULL ? in_place : STRIPS);
        d.flags |= RFT_BATCH_INVARIANT;
        assert_false(is_amx(kernel_at(ctx, &d, 1)));
        assert_true(is_amx(kernel_at(ctx, &d, 512)));
        d.compute = cases[i].given ? RFT_COMPUTE_F32 : RFT_COMPUTE_AUTO;
        assert_false(is_amx(kernel_at(ctx, &d, 512)));
    }
    rft_ctx_free(ctx);
}

/* Panels in place serve every m where a row of W has one scale; more scales are unpacked once for many rows of X. */
static void test_in_place(void **state) {
    (void)state;
    static const struct w_case a_row = {RFT_I8, K, K, false, false}, of_64 = {RFT_I8, K, 64, false, false};
    rft_ctx *ctx = open_level("amx", 1);
    rft_linear_desc d = describe(&a_row, 1, 4096);
    for (int64_t m = 8; m <= 4096; m *= 2) {
        assert_string_equal(kernel_at(ctx, &d, m), in_place_row(RFT_I8));
    }
    d = describe(&of_64, 1, 512);
    assert_string_equal(kernel_at(ctx, &d, 32), in_place_row(RFT_I8));
    assert_string_equal(kernel_at(ctx, &d, 512), STRIPS);
    rft_ctx_free(ctx);
}

static void test_bits(void **state) {
    (void)state;
    static const int64_t rows[] = {1, 2, 16, 17, 31, 33, MOST};
    rft_ctx *below = open_level("avx512", 1), *one = open_level("amx", 1), *three = open_level("amx", 3);
    for (size_t i = 0; i < COUNT(cases); i++) {
        const rft_linear_desc d = describe(cases + i, 1, MOST);
        operands_of o = make(cases + i);
        float *want = product(below, &d, &o, NULL, MOST);
        const char *const rows_of[] = {NULL, STRIPS, in_place_row(d.w.elem)};
        for (size_t n = 0; n < 3 * COUNT(rows); n++) {
            const int64_t m = rows[n / 3];
            const long before = rft__standin_here.products;
            float *y = product(n % 2 == 0 ? one : three, &d, &o, rows_of[n % 3], m);
            assert_memory_equal(y, want, (size_t)(m * N) * sizeof *y);
            assert_true(rows_of[n % 3] == NULL || n % 2 != 0 || rft__standin_here.products > before);
            free(y);
        }
        free(want);
        drop(&o);
    }
    rft_ctx_free(below);
    rft_ctx_free(one);
    rft_ctx_free(three);
}

/* A program's own shapes are found again behind a sum of 32 k, which has shapes of its own. */
static void test_caller(void **state) {
    (void)state;
    static const unsigned char callers[64] = {[0] = 1, [16] = 32, [48] = 7};
    rft_ctx *ctx = open_level("amx", 1);
    const rft_linear_desc d = describe(cases, 1, MOST);
    operands_of o = make(cases);
    rft__standin_configure(callers);
    free(product(ctx, &d, &o, NULL, MOST));
    assert_memory_equal(rft__standin_here.config, callers, sizeof callers);
    rft__standin_release();
    drop(&o);
    rft_ctx_free(ctx);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_choice),
        cmocka_unit_test(test_in_place),
        cmocka_unit_test(test_bits),
        cmocka_unit_test(test_caller),
    };
    if (!rft__isa_available("amx")) {
        print_message("skipped: the level below amx is missing (%s)\n", rft__cpu_isa_missing());
        return 0;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
