/* SPDX-License-Identifier: Apache-2.0
 *
 * test_thread_plan.c - 8 threads share one context, one plan and one weight, and make equal plans at the same time.
 * Runs under ThreadSanitizer too (label tsan).
 */
#include "api_test.h"

#include <pthread.h>

enum { THREADS = 8, ROUNDS = 40, M = 3 };

static rft_ctx *ctx;
static rft_plan *plan;
static rft_test_packed packed;
static rft_plan_info info;
static float x[M * TEST_K], w[TEST_N * TEST_K], want[M * TEST_N];

static int make_all(void **state) {
    (void)state;
    const rft_ctx_options o = rft_test_options(NULL);
    OK(rft_ctx_create("cpu", &o, &ctx, &test_err));
    rft_test_fill(x, M * TEST_K, 1);
    rft_test_fill(w, TEST_N * TEST_K, 2);
    rft_test_product(x, w, want, M, TEST_N, TEST_K);
    const rft_linear_desc d = rft_test_desc();
    packed = rft_test_pack(ctx, &d.w, w);
    OK(rft_plan_create(ctx, &d, &plan, &test_err));
    info = rft_plan_info_init();
    return rft_plan_get_info(plan, M, &info);
}

static int free_all(void **state) {
    (void)state;
    rft_plan_free(plan);
    rft_test_unpack(&packed);
    rft_ctx_free(ctx);
    return 0;
}

static bool near(const float *y) {
    for (int i = 0; i < M * TEST_N; i++) {
        if (!(y[i] - want[i] < 1e-3f && want[i] - y[i] < 1e-3f)) {
            return false;
        }
    }
    return true;
}

static bool run(const rft_plan *p, float *y, void *workspace) {
    rft_linear_args a = rft_linear_args_init();
    a.m = M;
    a.x = x;
    a.y = y;
    a.weight = packed.weight;
    a.workspace = workspace;
    a.workspace_bytes = info.workspace;
    return rft_linear_run(p, &a, NULL) == RFT_OK && near(y);
}

/* cmocka's checks belong to the main thread; a thread says only whether all was well. */
static void *run_shared(void *arg) {
    float *const y = malloc(sizeof want);
    void *const workspace = rft_test_storage(info.workspace);
    bool ok = true;
    for (int i = 0; i < ROUNDS && ok; i++) {
        memset(y, 0xff, sizeof want);
        ok = run(plan, y, workspace);
    }
    free(workspace);
    free(y);
    return ok ? NULL : arg;
}

static void *make_equal_plans(void *arg) {
    float *const y = malloc(sizeof want);
    void *const workspace = rft_test_storage(info.workspace);
    bool ok = true;
    for (int i = 0; i < ROUNDS && ok; i++) {
        const rft_linear_desc d = rft_test_desc();
        rft_plan *own = NULL;
        char text[256];
        ok = rft_plan_create(ctx, &d, &own, NULL) == RFT_OK && run(own, y, workspace) &&
             rft_plan_explain(own, M, text, sizeof text) > 0;
        rft_plan_free(own);
    }
    free(workspace);
    free(y);
    return ok ? NULL : arg;
}

static void *make_weights(void *arg) {
    bool ok = true;
    for (int i = 0; i < ROUNDS && ok; i++) {
        rft_weight *again = NULL;
        float *const back = malloc(sizeof w);
        ok = rft_weight_open(ctx, packed.storage, packed.bytes, &again, NULL) == RFT_OK &&
             rft_weight_unpack(again, back, 0, NULL) == RFT_OK && memcmp(back, w, sizeof w) == 0;
        rft_weight_free(again);
        free(back);
    }
    return ok ? NULL : arg;
}

static int failed; /* its address says so */

static void at_once(void *(*const *tasks)(void *), int kinds) {
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, tasks[i % kinds], &failed), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        void *wrong = NULL;
        assert_int_equal(pthread_join(threads[i], &wrong), 0);
        assert_null(wrong);
    }
}

static void test_one_plan(void **state) {
    (void)state;
    void *(*const tasks[])(void *) = {run_shared};
    at_once(tasks, 1);
}

static void test_everything_at_once(void **state) {
    (void)state;
    void *(*const tasks[])(void *) = {run_shared, make_equal_plans, make_weights, make_equal_plans};
    at_once(tasks, 4);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_plan),
        cmocka_unit_test(test_everything_at_once),
    };
    return cmocka_run_group_tests(tests, make_all, free_all);
}
