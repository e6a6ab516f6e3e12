/* SPDX-License-Identifier: Apache-2.0
 *
 * test_one_sum.c - products in 8 bits whose scales serve all k, of a token and of a row of W: one sum in int32, rounded once. On
 * every level and at every height of a tile the bits are those of a formula; the largest sums do not wrap. Floats that are
 * rounded so give what rft_quantize and such a plan make.
 */
#include "product.h"

enum { MOST_K = 131072, N = 17, MOST_M = 35, MOST_GROUPS = 80 };

static signed char w[N * MOST_K], x[MOST_M * MOST_K], zeros[N];
static float w_scale[N * MOST_GROUPS], x_scale[MOST_M], y[MOST_M * N];

typedef struct one_case {
    rft_type elem;
    bool zero, fixed; /* fixed: one scale for all of x */
    int64_t m, k, group; /* group: k of a scale of W, 0: a row */
    rft_type type;       /* of x, 0: codes */
    const void *x;
} one_case;

/* Returns whether the plan says that it sums so. */
static bool run(rft_ctx *ctx, const one_case *c) {
    product p = rft_test_dense(ctx, RFT_F32, c->m, N, c->k);
    rft_weight_src src = rft_weight_src_init();
    rft_plan *plan = NULL;
    rft_weight *weight = NULL;
    rft_plan_info info = rft_plan_info_init();
    size_t bytes = 0;
    char text[16384];
    p.desc.m_min = 1;
    p.desc.m_max = MOST_M;
    p.desc.x = c->type != 0 ? c->type : RFT_I8;
    p.desc.flags = c->type != 0 ? 0 : RFT_X_SCALED | (c->fixed ? RFT_X_STATIC : 0);
    p.desc.compute = RFT_COMPUTE_I8;
    p.desc.x_group_k = c->type != 0 ? c->k : 0;
    p.desc.w.group_k = c->group;
    p.desc.w.elem = c->elem;
    p.desc.w.scale = RFT_F32;
    p.desc.w.group_n = 1;
    p.desc.w.zero = c->zero ? c->elem : (rft_type)0;
    src.q = w;
    src.scale = w_scale;
    src.zero = c->zero ? zeros : NULL;
    OK(rft_plan_create(ctx, &p.desc, &plan, &test_err));
    OK(rft_plan_get_info(plan, c->m, &info));
    assert_non_null(strstr(info.kernel, "_i8_"));
    OK(rft_weight_bytes(ctx, &p.desc.w, &bytes, &test_err));
    void *storage = rft_test_storage(bytes), *work = rft_test_storage(info.workspace);
    OK(rft_weight_pack(ctx, &p.desc.w, &src, storage, NULL, &weight, &test_err));
    p.args.x = c->type != 0 ? c->x : x;
    p.args.x_scale = c->type != 0 ? NULL : x_scale;
    p.args.y = y;
    p.args.weight = weight;
    p.args.workspace = work;
    p.args.workspace_bytes = info.workspace;
    OK(rft_linear_run(plan, &p.args, &test_err));
    assert_true(rft_plan_explain(plan, c->m, text, sizeof text) < sizeof text);
    const bool one = strstr(text, "one sum over all k") != NULL;
    assert_true(one == (info.error_c < (8 + info.threads) * 0x1p-24) || c->k < 8);
    assert_true(info.group_x == (c->type != 0 ? c->k : 0) && (info.error_x > 0) == (c->type != 0));
    rft_weight_free(weight);
    rft_plan_free(plan);
    free(storage);
    free(work);
    return one;
}

static int64_t sum_of(const one_case *c, int64_t row, int64_t n) {
    const bool is_unsigned = c->elem == RFT_U8;
    const int zero = !c->zero ? 0 : is_unsigned ? (unsigned char)zeros[n] : zeros[n];
    int64_t sum = 0;
    for (int64_t k = 0; k < c->k; k++) {
        const int code = is_unsigned ? (unsigned char)w[n * c->k + k] : w[n * c->k + k];
        sum += (code - zero) * x[row * c->k + k];
    }
    return sum;
}

static void fill_scales(bool all_one) {
    for (int i = 0; i < N * MOST_GROUPS; i++) {
        w_scale[i] = all_one ? 1.0f : 0.013f * (float)(1 + i % 5);
    }
    for (int i = 0; i < MOST_M; i++) {
        x_scale[i] = all_one ? 1.0f : 0.0071f * (float)(1 + i % 3);
    }
}

/* Codes so large that sums take 31 bits, at lengths on both sides of what one sum may have. */
static void test_largest(void **state) {
    (void)state;
    static const struct {
        rft_type elem;
        bool zero;
        int of_w, of_zero, of_x;
    } codes[] = {{RFT_I8, false, -128, 0, -128}, {RFT_I8, false, 127, 0, -128}, {RFT_U8, false, 255, 0, 127},
                 {RFT_U8, false, 255, 0, -128},  {RFT_U8, true, 0, 255, 127},   {RFT_I8, true, 127, -128, -128}};
    static const int64_t ks[] = {65536, 65568, MOST_K};
    levels l;
    rft_test_levels(&l);
    fill_scales(true);
    for (unsigned i = 0; i < (unsigned)l.count * 6 * 3; i++) {
        rft_ctx *ctx = rft_test_context(l.name[i / 18], 1 + i % 2 * 2);
        const one_case c = {codes[i % 6].elem, codes[i % 6].zero, i % 2 == 0, 1 + i % 3, ks[i / 6 % 3], 0, 0, NULL};
        memset(w, codes[i % 6].of_w, (size_t)(N * c.k));
        memset(x, codes[i % 6].of_x, (size_t)(c.m * c.k));
        memset(zeros, codes[i % 6].of_zero, sizeof zeros);
        assert_true(run(ctx, &c) == (c.k == 65536));
        const float want = (float)((double)(codes[i % 6].of_w - codes[i % 6].of_zero) * codes[i % 6].of_x * (double)c.k);
        for (int64_t at = 0; at < c.m * N; at++) {
            assert_true(y[at] == want);
        }
        rft_ctx_free(ctx);
    }
}

/* Sums of more bits than a float has: rounded once, whatever tile, pass over k and level they come from. */
static void test_rounded_once(void **state) {
    (void)state;
    static const int64_t ms[] = {1, 4, 7, 9, MOST_M}, ks[] = {1, 255, 4099, 9000};
    levels l;
    rft_test_levels(&l);
    fill_scales(false);
    for (int64_t i = 0; i < N * MOST_K; i++) {
        w[i] = (signed char)(40 + i * 31 % 83);
    }
    for (int64_t i = 0; i < MOST_M * MOST_K; i++) {
        x[i] = (signed char)(127 - i * 17 % 97);
    }
    for (int i = 0; i < N; i++) {
        zeros[i] = (signed char)(i - 5);
    }
    for (unsigned i = 0; i < (unsigned)l.count * 5 * 4 * 4; i++) {
        rft_ctx *ctx = rft_test_context(l.name[i / 80], 1);
        const one_case c = {i % 2 ? RFT_U8 : RFT_I8, i / 2 % 2, i % 3 == 0, ms[i / 4 % 5], ks[i / 20 % 4], 0, 0, NULL};
        assert_true(run(ctx, &c));
        for (int64_t at = 0; at < c.m * N; at++) {
            const float by = w_scale[at % N] * x_scale[c.fixed ? 0 : at / N];
            const float sum = (float)sum_of(&c, at / N, at % N), want = sum * by;
            assert_true(y[at] == want);
        }
        rft_ctx_free(ctx);
    }
}

/* A K split has one sum a part: codes of X that stand in front of it are none of its own. */
static void test_parts(void **state) {
    (void)state;
    levels l;
    rft_test_levels(&l);
    fill_scales(true);
    for (int64_t i = 0; i < N * 16384; i++) {
        w[i] = (signed char)(i % 3 + 100);
    }
    for (int64_t i = 0; i < 8 * 16384; i++) {
        x[i] = (signed char)(i % 5 + 1);
    }
    for (int i = 0; i < l.count * 2; i++) {
        rft_ctx *ctx = rft_test_context(l.name[i / 2], 4);
        const one_case c = {RFT_I8, false, true, i % 2 ? 8 : 1, 16384, 0, 0, NULL};
        assert_true(run(ctx, &c));
        for (int64_t at = 0; at < c.m * N; at++) {
            assert_true(y[at] == (float)sum_of(&c, at / N, at % N));
        }
        rft_ctx_free(ctx);
    }
}

/* Also where W has scales for groups, k is split among threads, and x lies in another type. */
static void test_rounded_by_rows(void **state) {
    (void)state;
    static float from[9 * 4900], want[9 * N];
    static uint16_t half[9 * 4900];
    static const int64_t ms[] = {1, 9}, ks[] = {300, 4900}, groups[] = {0, 64, 256};
    levels l;
    rft_test_levels(&l);
    fill_scales(false);
    rft_test_random(RFT_I8, w, N * 4900, 3);
    rft_test_random(RFT_F16, half, 9 * 4900, 4);
    for (unsigned i = 0; i < (unsigned)l.count * 2 * 2 * 3 * 2; i++) {
        rft_ctx *ctx = rft_test_context(l.name[i / 24], 1 + i % 2 * 3);
        one_case c = {.elem = RFT_I8, .m = ms[i / 2 % 2], .k = ks[i / 4 % 2], .group = groups[i / 8 % 3]};
        c.type = i % 3 == 0 ? RFT_F16 : RFT_F32;
        for (int64_t at = 0; at < c.m * c.k; at++) {
            from[at] = rft_test_get(RFT_F16, half, at);
        }
        from[5] = i % 5 == 0 && c.type == RFT_F32 ? (float)NAN : from[5];
        c.x = c.type == RFT_F32 ? (const void *)from : half;
        run(ctx, &c);
        memcpy(want, y, sizeof want);
        rft_quantize_args q = rft_quantize_args_init();
        q.from = RFT_F32;
        q.to = RFT_I8;
        q.m = c.m;
        q.k = c.k;
        q.x = from;
        q.q = x;
        q.scale = x_scale;
        OK(rft_quantize(ctx, &q, &test_err));
        c.type = 0;
        run(ctx, &c);
        for (int64_t at = 0; at < c.m * N; at++) {
            assert_true(isnan(want[at]) ? isnan(y[at]) : y[at] == want[at]);
        }
        rft_ctx_free(ctx);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_largest),
        cmocka_unit_test(test_rounded_once),
        cmocka_unit_test(test_parts),
        cmocka_unit_test(test_rounded_by_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
