/* SPDX-License-Identifier: Apache-2.0
 *
 * test_alloc_failure.c - memory that runs out at the n-th allocation, for every n: an error, nothing leaked, and the
 * objects that existed before still work. Memory is counted by the context's hooks.
 */
#include "api_test.h"

enum { MANY = 200 }; /* more allocations than one call makes */

static rft_test_memory memory;

/* Fails at each allocation in turn until `make` succeeds; then `drop` must give everything back. */
static void exhaust(void *arg, rft_status (*make)(void *arg), void (*drop)(void *arg)) {
    const long long bytes = atomic_load(&memory.bytes), blocks = atomic_load(&memory.blocks);
    rft_status status = RFT_E_NOMEM;
    int n = 0;
    for (; n < MANY && status != RFT_OK; n++) {
        atomic_store(&memory.until_failure, n);
        memset(&test_err, 0, sizeof test_err);
        status = make(arg);
        if (status != RFT_OK) {
            assert_int_equal(status, RFT_E_NOMEM);
            assert_int_equal(test_err.status, RFT_E_NOMEM);
            assert_true(strlen(test_err.message) > 5);
            assert_int_equal(atomic_load(&memory.bytes), bytes);
            assert_int_equal(atomic_load(&memory.blocks), blocks);
        }
    }
    atomic_store(&memory.until_failure, -1);
    assert_int_equal(status, RFT_OK);
    assert_true(n >= 2); /* it did allocate through the hooks */
    drop(arg);
    assert_int_equal(atomic_load(&memory.bytes), bytes);
    assert_int_equal(atomic_load(&memory.blocks), blocks);
}

/* ---- contexts ---- */

static rft_ctx *ctx;

static rft_status make_ctx(void *arg) {
    rft_ctx_options o = rft_test_options(NULL);
    o.alloc = rft_test_alloc;
    o.release = rft_test_release;
    o.user = &memory;
    o.flags = *(const uint32_t *)arg;
    return rft_ctx_create("cpu", &o, &ctx, &test_err);
}

static void drop_ctx(void *arg) {
    (void)arg;
    rft_ctx_free(ctx);
}

static void test_context(void **state) {
    (void)state;
    uint32_t flags = 0;
    exhaust(&flags, make_ctx, drop_ctx);
    flags = RFT_CTX_HUGE_PAGES;
    exhaust(&flags, make_ctx, drop_ctx);
    assert_int_equal(atomic_load(&memory.bytes), 0);
}

/* ---- plans, MLPs and weights in a context that is there ---- */

static int open_ctx(void **state) {
    (void)state;
    uint32_t flags = 0;
    atomic_store(&memory.until_failure, -1);
    return make_ctx(&flags) == RFT_OK ? 0 : -1;
}

static int close_ctx(void **state) {
    (void)state;
    rft_ctx_free(ctx);
    return atomic_load(&memory.bytes) == 0 && atomic_load(&memory.blocks) == 0 ? 0 : -1;
}

static rft_plan *plan;

static rft_status make_plan(void *arg) { return rft_plan_create(ctx, arg, &plan, &test_err); }

static void drop_plan(void *arg) {
    (void)arg;
    rft_plan_free(plan);
}

static void test_plan(void **state) {
    (void)state;
    rft_linear_desc d = rft_test_desc();
    exhaust(&d, make_plan, drop_plan);
    d.w.elem = RFT_BF16;
    d.x = RFT_BF16;
    d.m_max = 512;
    exhaust(&d, make_plan, drop_plan);
    d.w.flags = RFT_WEIGHT_VIEW;
    exhaust(&d, make_plan, drop_plan);
}

static void test_second_equal_plan(void **state) {
    (void)state;
    rft_linear_desc d = rft_test_desc();
    rft_plan *first = NULL;
    OK(rft_plan_create(ctx, &d, &first, &test_err));
    exhaust(&d, make_plan, drop_plan);
    rft_plan_info info = rft_plan_info_init();
    assert_int_equal(rft_plan_get_info(first, 1, &info), RFT_OK);
    rft_plan_free(first);
}

static rft_mlp *mlp;

static rft_status make_mlp(void *arg) { return rft_mlp_create(ctx, arg, &mlp, &test_err); }

static void drop_mlp(void *arg) {
    (void)arg;
    rft_mlp_free(mlp);
}

static void test_mlp(void **state) {
    (void)state;
    rft_mlp_desc d = rft_mlp_desc_init();
    d.x = d.hidden = d.y = RFT_F32;
    d.up = d.down = rft_test_weight_desc();
    d.up.flags = RFT_WEIGHT_GLU_HALVES;
    d.down.k = TEST_N / 2;
    d.activation = RFT_EPI_SWIGLU;
    d.m_max = 4;
    exhaust(&d, make_mlp, drop_mlp);
}

static float matrix[TEST_N * TEST_K];
static void *storage;
static rft_weight *weight;

static rft_status pack(void *arg) {
    rft_weight_src src = rft_weight_src_init();
    src.q = matrix;
    return rft_weight_pack(ctx, arg, &src, storage, NULL, &weight, &test_err);
}

static rft_status open_packed(void *arg) { return rft_weight_open(ctx, storage, *(const size_t *)arg, &weight, &test_err); }

static void drop_weight(void *arg) {
    (void)arg;
    rft_weight_free(weight);
}

static void test_weight(void **state) {
    (void)state;
    rft_weight_desc d = rft_test_weight_desc();
    size_t bytes = 0;
    OK(rft_weight_bytes(ctx, &d, &bytes, &test_err));
    storage = rft_test_storage(bytes);
    exhaust(&d, pack, drop_weight);
    exhaust(&bytes, open_packed, drop_weight);
    d.flags = RFT_WEIGHT_VIEW;
    exhaust(&d, pack, drop_weight);
    free(storage);
}

/* A run allocates nothing: it succeeds with no memory left. */
static void test_run(void **state) {
    (void)state;
    static float x[TEST_M * TEST_K], y[TEST_M * TEST_N], want[TEST_M * TEST_N];
    rft_test_fill(x, TEST_M * TEST_K, 1);
    rft_test_fill(matrix, TEST_N * TEST_K, 2);
    const rft_linear_desc d = rft_test_desc();
    rft_test_packed p = rft_test_pack(ctx, &d.w, matrix);
    OK(rft_plan_create(ctx, &d, &plan, &test_err));
    rft_plan_info info = rft_plan_info_init();
    OK(rft_plan_get_info(plan, 1, &info));
    rft_linear_args a = rft_linear_args_init();
    a.m = TEST_M;
    a.x = x;
    a.y = y;
    a.weight = p.weight;
    a.workspace = rft_test_storage(info.workspace);
    a.workspace_bytes = info.workspace;
    atomic_store(&memory.until_failure, 0);
    const rft_status status = rft_linear_run(plan, &a, &test_err);
    atomic_store(&memory.until_failure, -1);
    OK(status);
    rft_test_product(x, matrix, want, TEST_M, TEST_N, TEST_K);
    rft_test_equal(y, want, TEST_M * TEST_N);
    free(a.workspace);
    rft_plan_free(plan);
    rft_test_unpack(&p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_context),
        cmocka_unit_test_setup_teardown(test_plan, open_ctx, close_ctx),
        cmocka_unit_test_setup_teardown(test_second_equal_plan, open_ctx, close_ctx),
        cmocka_unit_test_setup_teardown(test_mlp, open_ctx, close_ctx),
        cmocka_unit_test_setup_teardown(test_weight, open_ctx, close_ctx),
        cmocka_unit_test_setup_teardown(test_run, open_ctx, close_ctx),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
