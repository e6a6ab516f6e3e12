/* SPDX-License-Identifier: Apache-2.0
 *
 * test_fork.c - a child that was forked after the parent's first run uses the parent's context, plan and weight.
 */
#define _GNU_SOURCE 1
#include "api_test.h"

#include <sys/wait.h>
#include <unistd.h>

enum { M = 5, N = 512, K = 256, SECONDS = 20 };

static rft_ctx *ctx;
static rft_plan *plan;
static rft_test_packed packed;
static float x[M * K], w[N * K], y[M * N], want[M * N];
static rft_linear_args args;

static rft_linear_desc layer(void) {
    rft_linear_desc d = rft_test_desc();
    d.w.n = N;
    d.w.k = K;
    return d;
}

static int make_all(void **state) {
    (void)state;
    const rft_ctx_options o = rft_test_options(NULL);
    OK(rft_ctx_create("cpu", &o, &ctx, &test_err));
    rft_test_fill(x, M * K, 1);
    rft_test_fill(w, N * K, 2);
    const rft_linear_desc d = layer();
    packed = rft_test_pack(ctx, &d.w, w);
    OK(rft_plan_create(ctx, &d, &plan, &test_err));
    rft_plan_info info = rft_plan_info_init();
    OK(rft_plan_get_info(plan, M, &info));
    args = rft_linear_args_init();
    args.m = M;
    args.x = x;
    args.y = want;
    args.weight = packed.weight;
    args.workspace = rft_test_storage(info.workspace);
    args.workspace_bytes = info.workspace;
    OK(rft_linear_run(plan, &args, &test_err));
    args.y = y;
    return 0;
}

static int free_all(void **state) {
    (void)state;
    free(args.workspace);
    rft_plan_free(plan);
    rft_test_unpack(&packed);
    rft_ctx_free(ctx);
    return 0;
}

/* In the child: 0 where the bits are the parent's. A hang ends by the alarm. */
static int run_in_child(void) {
    memset(y, 0, sizeof y);
    return rft_linear_run(plan, &args, NULL) == RFT_OK && memcmp(y, want, sizeof y) == 0 ? 0 : 1;
}

static int plan_in_child(void) {
    const rft_linear_desc d = layer();
    rft_plan *own = NULL;
    if (rft_plan_create(ctx, &d, &own, NULL) != RFT_OK || rft_linear_run(own, &args, NULL) != RFT_OK) {
        return 1;
    }
    rft_plan_free(own);
    return memcmp(y, want, sizeof y) == 0 ? 0 : 1;
}

static int free_in_child(void) {
    const int wrong = run_in_child();
    rft_plan_free(plan);
    rft_weight_free(packed.weight);
    rft_ctx_free(ctx);
    return wrong;
}

static int context_in_child(void) {
    const rft_ctx_options o = rft_test_options(NULL);
    rft_ctx *own = NULL;
    if (rft_ctx_create("cpu", &o, &own, NULL) != RFT_OK) {
        return 1;
    }
    rft_ctx_free(own);
    return run_in_child();
}

static void assert_child(int (*work)(void)) {
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        alarm(SECONDS);
        _exit(work());
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    assert_int_equal(run_in_child(), 0); /* and the parent goes on */
}

static void test_run(void **state) {
    (void)state;
    assert_child(run_in_child);
}

static void test_plan(void **state) {
    (void)state;
    assert_child(plan_in_child);
}

static void test_freeing(void **state) {
    (void)state;
    assert_child(free_in_child);
}

static void test_context(void **state) {
    (void)state;
    assert_child(context_in_child);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_run),
        cmocka_unit_test(test_plan),
        cmocka_unit_test(test_freeing),
        cmocka_unit_test(test_context),
    };
    return cmocka_run_group_tests(tests, make_all, free_all);
}
