/* SPDX-License-Identifier: Apache-2.0
 *
 * test_mlp.c - the MLP call: the same numbers as its two products and the activation written out, and its refusals.
 */
#include "api_test.h"

#include <math.h>

enum { M = 4, X = 24, HIDDEN = 18, Y = 20 };

static rft_ctx *ctx;
static float x[M * X], up[2 * HIDDEN * X], down[Y * HIDDEN], residual[M * Y], y[M * Y], want[M * Y];

static int make_all(void **state) {
    (void)state;
    const rft_ctx_options o = rft_test_options(NULL);
    rft_test_fill(x, M * X, 1);
    rft_test_fill(up, 2 * HIDDEN * X, 2);
    rft_test_fill(down, Y * HIDDEN, 3);
    rft_test_fill(residual, M * Y, 4);
    for (int i = 0; i < 2 * HIDDEN * X; i++) {
        up[i] /= 8; /* keeps silu off its flat ends */
    }
    return rft_ctx_create("cpu", &o, &ctx, NULL) == RFT_OK ? 0 : -1;
}

static int free_all(void **state) {
    (void)state;
    rft_ctx_free(ctx);
    return 0;
}

static rft_mlp_desc describe(rft_epi_kind activation, uint32_t up_flags) {
    rft_mlp_desc d = rft_mlp_desc_init();
    d.x = d.hidden = d.y = RFT_F32;
    d.up = d.down = rft_weight_desc_init();
    d.up.elem = d.down.elem = RFT_F32;
    d.up.n = up_flags ? 2 * HIDDEN : HIDDEN;
    d.up.k = X;
    d.up.flags = up_flags;
    d.down.n = Y;
    d.down.k = HIDDEN;
    d.activation = activation;
    d.m_min = 1;
    d.m_max = M;
    return d;
}

/* Hidden column h of row m, by the definition. */
static double hidden_at(const rft_mlp_desc *d, int m, int h) {
    const int gate_row = d->up.flags == RFT_WEIGHT_GLU_INTERLEAVED ? 2 * h : h;
    const int up_row = d->up.flags == RFT_WEIGHT_GLU_INTERLEAVED ? 2 * h + 1 : HIDDEN + h;
    double gate = 0, linear = 0;
    for (int k = 0; k < X; k++) {
        gate += (double)x[m * X + k] * (double)up[gate_row * X + k];
        linear += d->up.flags ? (double)x[m * X + k] * (double)up[up_row * X + k] : 0;
    }
    if (d->activation == RFT_EPI_RELU) {
        return gate < 0 ? 0 : gate;
    }
    return gate / (1 + exp(-gate)) * (d->up.flags ? linear : 1);
}

static void reference(const rft_mlp_desc *d) {
    for (int m = 0; m < M; m++) {
        for (int n = 0; n < Y; n++) {
            double sum = residual[m * Y + n];
            for (int h = 0; h < HIDDEN; h++) {
                sum += hidden_at(d, m, h) * (double)down[n * HIDDEN + h];
            }
            want[m * Y + n] = (float)sum;
        }
    }
}

static void run(rft_mlp_desc *d) {
    const rft_epi_op add = {.kind = RFT_EPI_ADD, .type = RFT_F32, .beta = 1};
    d->epi = &add;
    d->n_epi = 1;
    rft_mlp *mlp = NULL;
    OK(rft_mlp_create(ctx, d, &mlp, &test_err));
    rft_plan_info info = rft_plan_info_init();
    assert_int_equal(rft_mlp_get_info(mlp, M, &info), RFT_OK);
    assert_true(info.workspace >= M * HIDDEN * sizeof(float));
    rft_test_packed pu = rft_test_pack(ctx, &d->up, up), pd = rft_test_pack(ctx, &d->down, down);
    const rft_operand operand = {.ptr = residual};
    rft_mlp_args a = rft_mlp_args_init();
    a.m = M;
    a.x = x;
    a.up = pu.weight;
    a.down = pd.weight;
    a.y = y;
    a.operand = &operand;
    a.n_operand = 1;
    a.workspace = rft_test_storage(info.workspace);
    a.workspace_bytes = info.workspace;
    memset(a.workspace, 0xff, info.workspace);
    OK(rft_mlp_run(mlp, &a, &test_err));
    free(a.workspace);
    rft_test_unpack(&pu);
    rft_test_unpack(&pd);
    rft_mlp_free(mlp);
}

static void test_numbers(void **state) {
    (void)state;
    static const uint32_t pairings[] = {RFT_WEIGHT_GLU_HALVES, RFT_WEIGHT_GLU_INTERLEAVED};
    static const rft_epi_kind plain[] = {RFT_EPI_RELU, RFT_EPI_SILU};
    for (int i = 0; i < 4; i++) {
        rft_mlp_desc d = i < 2 ? describe(RFT_EPI_SWIGLU, pairings[i]) : describe(plain[i - 2], 0);
        memset(y, 0xff, sizeof y);
        run(&d);
        reference(&d);
        rft_test_equal(y, want, M * Y);
    }
}

static void test_info_adds_up(void **state) {
    (void)state;
    const rft_mlp_desc d = describe(RFT_EPI_SWIGLU, RFT_WEIGHT_GLU_HALVES);
    rft_mlp *mlp = NULL;
    OK(rft_mlp_create(ctx, &d, &mlp, &test_err));
    rft_plan_info info = rft_plan_info_init();
    assert_int_equal(rft_mlp_get_info(mlp, M, &info), RFT_OK);
    assert_float_equal(info.flops, 2.0 * M * X * 2 * HIDDEN + 2.0 * M * HIDDEN * Y, 0);
    assert_non_null(info.kernel);
    assert_true(info.error_c > 0);
    assert_int_equal(rft_mlp_get_info(mlp, M + 1, &info), RFT_E_ARG);
    assert_int_equal(rft_mlp_get_info(mlp, M, NULL), RFT_E_ARG);
    assert_int_equal(rft_mlp_get_info(NULL, M, &info), RFT_E_ARG);
    rft_mlp_free(mlp);
}

#define BAD_DESC(status, part, change)                                                                                           \
    do {                                                                                                                         \
        rft_mlp_desc bad = describe(RFT_EPI_SWIGLU, RFT_WEIGHT_GLU_HALVES);                                                      \
        rft_mlp *none = (rft_mlp *)1;                                                                                            \
        bad.change;                                                                                                              \
        REFUSED(status, part, rft_mlp_create(ctx, &bad, &none, &test_err));                                                      \
        assert_null(none);                                                                                                       \
    } while (0)

static void test_bad_descriptors(void **state) {
    (void)state;
    const rft_mlp_desc d = describe(RFT_EPI_RELU, 0);
    rft_mlp *mlp = NULL;
    REFUSED(RFT_E_ARG, "ctx is NULL", rft_mlp_create(NULL, &d, &mlp, &test_err));
    REFUSED(RFT_E_ARG, "desc is NULL", rft_mlp_create(ctx, NULL, &mlp, &test_err));
    REFUSED(RFT_E_ARG, "out is NULL", rft_mlp_create(ctx, &d, NULL, &test_err));
    rft_mlp_free(NULL);
    BAD_DESC(RFT_E_ARG, "desc", struct_size = 0);
    BAD_DESC(RFT_E_ARG, "desc.up", up.struct_size = 0);
    BAD_DESC(RFT_E_ARG, "desc.down", down.struct_size = 1000);
    BAD_DESC(RFT_E_ARG, "desc.activation = 2", activation = RFT_EPI_BIAS);
    BAD_DESC(RFT_E_ARG, "needs a weight without GLU pairing", activation = RFT_EPI_GELU);
    BAD_DESC(RFT_E_ARG, "needs a GLU weight", up.flags = 0);
    BAD_DESC(RFT_E_ARG, "desc.down.k = 17 differs from the 18", down.k = HIDDEN - 1);
    BAD_DESC(RFT_E_ARG, "desc, up projection: desc.w: n = -36", up.n = -2 * HIDDEN);
    BAD_DESC(RFT_E_ARG, "desc, down projection", m_max = (bad.down.n = INT64_MAX, M));
    BAD_DESC(RFT_E_ARG, "desc.m_max = 0", m_max = 0);
    BAD_DESC(RFT_E_UNSUPPORTED, "e5m2", hidden = RFT_E5M2);
    BAD_DESC(RFT_E_ARG, "desc.flags = 0x1", flags = RFT_W_DYNAMIC);
    BAD_DESC(RFT_E_ARG, "desc.x = f32 beside RFT_X_SCALED", flags = RFT_X_SCALED);
    BAD_DESC(RFT_E_ARG, "desc.hidden_group_k = 32, and hidden activations of f32", hidden_group_k = 32);
    BAD_DESC(RFT_E_ARG, "desc.hidden_group_k = 33", hidden_group_k = (bad.hidden = RFT_I8, 33));
    BAD_DESC(RFT_E_UNSUPPORTED, "desc.compute = RFT_COMPUTE_I8", compute = RFT_COMPUTE_I8);
    BAD_DESC(RFT_E_UNSUPPORTED, "desc.up.batch = 2", up.batch = 2);
}

/* As x_group_k is: what is longer than the row is the row. */
static void test_long_groups(void **state) {
    (void)state;
    static const int64_t groups[] = {0, 32, (int64_t)1 << 40, INT64_MAX / 32 * 32};
    for (size_t i = 0; i < sizeof groups / sizeof groups[0]; i++) {
        rft_mlp_desc d = describe(RFT_EPI_SWIGLU, RFT_WEIGHT_GLU_HALVES);
        rft_mlp *mlp = NULL;
        d.hidden = RFT_I8;
        d.hidden_group_k = groups[i];
        OK(rft_mlp_create(ctx, &d, &mlp, &test_err));
        rft_mlp_free(mlp);
    }
}

static void test_bad_runs(void **state) {
    (void)state;
    rft_mlp_desc d = describe(RFT_EPI_SWIGLU, RFT_WEIGHT_GLU_HALVES);
    rft_mlp *mlp = NULL;
    OK(rft_mlp_create(ctx, &d, &mlp, &test_err));
    rft_plan_info info = rft_plan_info_init();
    assert_int_equal(rft_mlp_get_info(mlp, M, &info), RFT_OK);
    rft_test_packed pu = rft_test_pack(ctx, &d.up, up), pd = rft_test_pack(ctx, &d.down, down);
    rft_mlp_args good = rft_mlp_args_init();
    good.m = M;
    good.x = x;
    good.up = pu.weight;
    good.down = pd.weight;
    good.y = y;
    good.workspace = rft_test_storage(info.workspace);
    good.workspace_bytes = info.workspace;
    REFUSED(RFT_E_ARG, "mlp is NULL", rft_mlp_run(NULL, &good, &test_err));
    REFUSED(RFT_E_ARG, "args is NULL", rft_mlp_run(mlp, NULL, &test_err));
#define BAD_ARGS(status, part, change)                                                                                           \
    do {                                                                                                                         \
        rft_mlp_args bad = good;                                                                                                 \
        bad.change;                                                                                                              \
        REFUSED(status, part, rft_mlp_run(mlp, &bad, &test_err));                                                                \
    } while (0)
    BAD_ARGS(RFT_E_ARG, "args", struct_size = 0);
    BAD_ARGS(RFT_E_ARG, "up projection: args.m = 5", m = M + 1);
    BAD_ARGS(RFT_E_ARG, "up projection: args.x is NULL", x = NULL);
    BAD_ARGS(RFT_E_ARG, "up projection: args.weight is NULL", up = NULL);
    BAD_ARGS(RFT_E_ARG, "down projection: args.weight is NULL", down = NULL);
    BAD_ARGS(RFT_E_LAYOUT, "up projection: args.weight has n = 20", up = pd.weight);
    BAD_ARGS(RFT_E_ARG, "down projection: args.y is NULL", y = NULL);
    BAD_ARGS(RFT_E_ARG, "down projection: args.ldy = 19", ldy = Y - 1);
    BAD_ARGS(RFT_E_ARG, "args.workspace = ", workspace = NULL);
    BAD_ARGS(RFT_E_ARG, "args.workspace_bytes = 0 is less than", workspace_bytes = 0);
    OK(rft_mlp_run(mlp, &good, &test_err));
    free(good.workspace);
    rft_test_unpack(&pu);
    rft_test_unpack(&pd);
    rft_mlp_free(mlp);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_info_adds_up),
        cmocka_unit_test(test_bad_descriptors),
        cmocka_unit_test(test_long_groups),
        cmocka_unit_test(test_bad_runs),
    };
    return cmocka_run_group_tests(tests, make_all, free_all);
}
