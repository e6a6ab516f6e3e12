/* SPDX-License-Identifier: Apache-2.0
 *
 * test_split.c - K over threads where N is too short for them: within its bound, the same bits each time, and in a list the same
 * bits as alone, beside entries of other sizes and types that are not split.
 */
#include "product.h"

enum { MOST_M = 21, MOST_N = 130, K = 4096, LIST = 5 };

static float x[MOST_M * K], w[MOST_N * K], y[LIST][MOST_M * MOST_N], again[LIST][MOST_M * MOST_N];

static product narrow(rft_ctx *ctx, rft_type type, int64_t m, int64_t n, int64_t k, int i) {
    product p = rft_test_dense(ctx, type, m, n, k);
    p.args.x = x;
    p.args.y = y[i];
    p.w = w;
    return p;
}

static int32_t threads_of(const product *p) {
    rft_plan_info info = rft_plan_info_init();
    prepared r = rft_test_prepare(p);
    OK(rft_plan_get_info(r.plan, p->args.m, &info));
    rft_test_discard(&r);
    return info.threads;
}

static void test_bound_and_bits(void **state) {
    (void)state;
    static const uint32_t threads[] = {4, 8, 16};
    for (int i = 0; i < 3 * TEST_TYPES * 2 * 3; i++) {
        const rft_type type = test_types[i / 3 % 3];
        rft_ctx *const ctx = rft_test_context(NULL, threads[i % 3]);
        const product p = narrow(ctx, type, (const int64_t[]){1, 4, MOST_M}[i / 18], 16 + i / 9 % 2, K, 0);
        rft_test_random(type, x, MOST_M * K, 1);
        rft_test_random(type, w, MOST_N * K, 2);
        assert_true(threads_of(&p) > 2);
        rft_test_prove(&p);
        memcpy(again, y, sizeof y);
        memset(y, 0xff, sizeof y);
        rft_test_run(&p);
        assert_memory_equal(y, again, (size_t)(p.args.m * p.desc.w.n) * sizeof(float));
        rft_ctx_free(ctx);
    }
}

/* Entries that differ in size, type and split, in one list. */
static void test_list_equals_alone(void **state) {
    (void)state;
    for (uint32_t threads = 1; threads <= 8; threads++) {
        rft_ctx *const ctx = rft_test_context(NULL, threads);
        rft_test_random(RFT_BF16, x, MOST_M * K, 1); /* read as f32 they are numbers, too */
        rft_test_random(RFT_BF16, w, MOST_N * K, 2);
        const product list[LIST] = {narrow(ctx, RFT_BF16, 3, 17, K, 0), narrow(ctx, RFT_F32, 1, 16, 2048, 1),
                                    narrow(ctx, RFT_F32, MOST_M, MOST_N, 100, 2), narrow(ctx, RFT_BF16, 1, MOST_N, 33, 3),
                                    narrow(ctx, RFT_BF16, MOST_M, 5, 1025, 4)};
        prepared r[LIST];
        const rft_plan *plans[LIST];
        rft_linear_args args[LIST];
        for (int i = 0; i < LIST; i++) {
            r[i] = rft_test_prepare(&list[i]);
            plans[i] = r[i].plan;
            args[i] = r[i].args;
            OK(rft_linear_run(r[i].plan, &r[i].args, &test_err));
        }
        memcpy(again, y, sizeof y);
        memset(y, 0, sizeof y);
        OK(rft_run_list(plans, args, LIST, &test_err));
        for (int i = 0; i < LIST; i++) {
            assert_memory_equal(y[i], again[i], (size_t)(list[i].args.m * list[i].desc.w.n) * sizeof(float));
            rft_test_discard(&r[i]);
        }
        rft_ctx_free(ctx);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bound_and_bits),
        cmocka_unit_test(test_list_equals_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
