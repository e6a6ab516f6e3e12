/* SPDX-License-Identifier: Apache-2.0
 *
 * test_dynamic.c - W that is not packed: a view and a run-time W are read at each run, with that run's strides and batches, as in
 * products of two activations and in the two products of training.
 */
#include "product.h"

enum { M = 21, N = 34, K = 47, BATCH = 3, ROOM = 2 * BATCH * 64 * 64 };

static levels l;
static float x[ROOM], w[ROOM], y[ROOM], again[ROOM];

static int make_all(void **state) {
    (void)state;
    rft_test_levels(&l);
    return 0;
}

static product given(rft_ctx *ctx, rft_type type, rft_order order) {
    product p = rft_test_dense(ctx, type, M, N, K);
    p.desc.w.order = order;
    p.args.x = x;
    p.args.y = y;
    p.w = w;
    rft_test_random(type, x, ROOM, 1);
    rft_test_random(type, w, ROOM, 2);
    return p;
}

static void each(void (*test)(product *p, rft_type type)) {
    for (int i = 0; i < l.count * TEST_TYPES * 2; i++) {
        rft_ctx *const ctx = rft_test_context(l.name[i / 6], 3);
        product p = given(ctx, test_types[i / 2 % 3], (rft_order)(i % 2));
        test(&p, test_types[i / 2 % 3]);
        rft_ctx_free(ctx);
    }
}

static void assert_proven(const prepared *r, const void *stored) {
    rft_verify_result v = {.struct_size = sizeof v};
    OK(rft_verify(r->plan, &r->args, stored, 0, 1, &v, &test_err));
    assert_true(v.checked > 0 && v.worst <= 1);
}

/* One plan, W of other values, strides and batch strides at each run. */
static void each_run_its_own(product *p, rft_type type) {
    p->desc.flags = RFT_W_DYNAMIC;
    p->desc.batch = p->desc.w.batch = BATCH;
    prepared r = rft_test_prepare(p);
    const int64_t row = p->desc.w.order == RFT_K_CONTIGUOUS ? K : N, rows = N + K - row;
    for (int64_t pad = 0; pad < 12; pad += 3) {
        r.args.w = rft_test_at(type, w, pad);
        r.args.ldw = pad == 0 ? 0 : row + pad;
        r.args.w_batch_stride = pad == 0 ? 0 : (row + pad) * rows + 2 * pad;
        memset(y, 0xff, sizeof y);
        OK(rft_linear_run(r.plan, &r.args, &test_err));
        assert_proven(&r, NULL);
    }
    rft_test_discard(&r);
}

static void test_each_run_has_its_own_w(void **state) {
    (void)state;
    each(each_run_its_own);
}

/* A view has no copy: it sees what its owner writes. */
static void follows(product *p, rft_type type) {
    p->desc.w.flags = RFT_WEIGHT_VIEW;
    prepared r = rft_test_prepare(p);
    OK(rft_linear_run(r.plan, &r.args, &test_err));
    assert_proven(&r, w);
    memcpy(again, y, sizeof y);
    rft_test_random(type, w, N * K, 7);
    OK(rft_linear_run(r.plan, &r.args, &test_err));
    assert_memory_not_equal(y, again, M * N * sizeof *y);
    assert_proven(&r, w);
    rft_test_discard(&r);
}

static void test_a_view_follows_its_owner(void **state) {
    (void)state;
    each(follows);
}

/* Forward, dgrad (X = dY, W transposed) and wgrad (both MN-contiguous) of one stored W and X. */
static void training(product *p, rft_type type) {
    (void)type;
    p->desc.flags = RFT_W_DYNAMIC;
    p->args.w = w;
    p->w = NULL;
    p->desc.w.order = RFT_K_CONTIGUOUS;
    rft_test_prove(p);
    p->desc.w.order = RFT_MN_CONTIGUOUS; /* dX[m][k] = sum over n of dY[m][n] W[n][k] */
    p->desc.w.n = K;
    p->desc.w.k = N;
    rft_test_prove(p);
    p->desc.x_order = RFT_MN_CONTIGUOUS; /* dW[n][k] = sum over m of dY[m][n] X[m][k] */
    p->args.m = N;
    p->desc.w.n = K;
    p->desc.w.k = M;
    rft_test_prove(p);
}

static void test_products_of_training(void **state) {
    (void)state;
    each(training);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_run_has_its_own_w),
        cmocka_unit_test(test_a_view_follows_its_owner),
        cmocka_unit_test(test_products_of_training),
    };
    return cmocka_run_group_tests(tests, make_all, NULL);
}
