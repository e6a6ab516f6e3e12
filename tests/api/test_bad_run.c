/* SPDX-License-Identifier: Apache-2.0
 *
 * test_bad_run.c - runs: each bad argument is refused by name before y is touched; what is allowed to be missing.
 */
#include "api_test.h"

#include <math.h>

static rft_ctx *ctx;
static float x[TEST_M * TEST_K], w[TEST_N * TEST_K], y[TEST_M * TEST_N];
static rft_test_packed packed;
static rft_plan *plan;
static rft_plan_info info;
static void *workspace;

static int make_all(void **state) {
    (void)state;
    const rft_ctx_options o = rft_test_options(NULL);
    OK(rft_ctx_create("cpu", &o, &ctx, &test_err));
    const rft_linear_desc d = rft_test_desc();
    rft_test_fill(x, TEST_M * TEST_K, 1);
    rft_test_fill(w, TEST_N * TEST_K, 2);
    packed = rft_test_pack(ctx, &d.w, w);
    OK(rft_plan_create(ctx, &d, &plan, &test_err));
    info = rft_plan_info_init();
    OK(rft_plan_get_info(plan, TEST_M, &info));
    workspace = rft_test_storage(info.workspace);
    return 0;
}

static int free_all(void **state) {
    (void)state;
    free(workspace);
    rft_plan_free(plan);
    rft_test_unpack(&packed);
    rft_ctx_free(ctx);
    return 0;
}

static rft_linear_args good(void) {
    rft_linear_args a = rft_linear_args_init();
    a.m = TEST_M;
    a.x = x;
    a.weight = packed.weight;
    a.y = y;
    a.workspace = workspace;
    a.workspace_bytes = info.workspace;
    return a;
}

#define BAD_ARGS(status, part, change)                                                                                           \
    do {                                                                                                                         \
        rft_linear_args bad = good();                                                                                            \
        bad.change;                                                                                                              \
        REFUSED(status, part, rft_linear_run(plan, &bad, &test_err));                                                            \
    } while (0)

static void *off(void *p, int bytes) { return (char *)p + bytes; }

static void test_null(void **state) {
    (void)state;
    const rft_linear_args a = good();
    REFUSED(RFT_E_ARG, "plan is NULL", rft_linear_run(NULL, &a, &test_err));
    REFUSED(RFT_E_ARG, "args is NULL", rft_linear_run(plan, NULL, &test_err));
    assert_int_equal(rft_linear_run(plan, NULL, NULL), RFT_E_ARG);
    BAD_ARGS(RFT_E_ARG, "args.x is NULL", x = NULL);
    BAD_ARGS(RFT_E_ARG, "args.y is NULL", y = NULL);
    BAD_ARGS(RFT_E_ARG, "args.weight is NULL", weight = NULL);
    if (info.workspace > 0) {
        BAD_ARGS(RFT_E_ARG, "args.workspace", workspace = NULL);
    }
}

static void test_sizes(void **state) {
    (void)state;
    BAD_ARGS(RFT_E_ARG, "args", struct_size = 0);
    BAD_ARGS(RFT_E_ARG, "args", struct_size = 3);
    BAD_ARGS(RFT_E_ARG, "args.struct_size = 12 is no size", struct_size = offsetof(rft_linear_args, m) + 4);
    struct newer {
        rft_linear_args known;
        const void *later;
    } n = {.known = good(), .later = x};
    n.known.struct_size = sizeof n;
    REFUSED(RFT_E_ARG, "args", rft_linear_run(plan, &n.known, &test_err));
    n.later = NULL;
    OK(rft_linear_run(plan, &n.known, &test_err));
}

static void test_numbers(void **state) {
    (void)state;
    BAD_ARGS(RFT_E_ARG, "args.m = 0 lies outside", m = 0);
    BAD_ARGS(RFT_E_ARG, "args.m = -1 lies outside", m = -1);
    BAD_ARGS(RFT_E_ARG, "args.m = 6 lies outside the plan's m_min..m_max = 1..5", m = TEST_M + 1);
    BAD_ARGS(RFT_E_ARG, "args.ldx = 39 is less", ldx = TEST_K - 1);
    BAD_ARGS(RFT_E_ARG, "args.ldx = -40", ldx = -TEST_K);
    BAD_ARGS(RFT_E_ARG, "args.ldy = 47 is less", ldy = TEST_N - 1);
    BAD_ARGS(RFT_E_ARG, "args.ldx = 9223372036854775807", ldx = INT64_MAX);
    BAD_ARGS(RFT_E_ARG, "args.ldy = 2305843009213693951", ldy = INT64_MAX / 4);
    BAD_ARGS(RFT_E_ARG, "args.x_batch_stride = -1", x_batch_stride = -1);
    BAD_ARGS(RFT_E_ARG, "args.y_batch_stride = -1", y_batch_stride = -1);
    BAD_ARGS(RFT_E_ARG, "overflows", x_batch_stride = INT64_MAX);
}

static void test_alignment(void **state) {
    (void)state;
    BAD_ARGS(RFT_E_ARG, "args.x = 0x", x = off(x, 2));
    BAD_ARGS(RFT_E_ARG, "args.y = 0x", y = off(y, 1));
    if (info.workspace > 0) {
        BAD_ARGS(RFT_E_ARG, "args.workspace = 0x", workspace = off(workspace, 32));
        BAD_ARGS(RFT_E_ARG, "args.workspace_bytes = 0 is less than", workspace_bytes = 0);
        BAD_ARGS(RFT_E_ARG, "args.workspace_bytes", workspace_bytes = info.workspace - 1);
    }
}

static void test_unsupported_fields(void **state) {
    (void)state;
    static const int32_t rows[TEST_M];
    static const int64_t offsets[2];
    BAD_ARGS(RFT_E_UNSUPPORTED, "args.m_device", m_device = rows);
    BAD_ARGS(RFT_E_UNSUPPORTED, "args.group_offset", group_offset = offsets);
    BAD_ARGS(RFT_E_UNSUPPORTED, "args.row_index", row_index = rows);
    BAD_ARGS(RFT_E_UNSUPPORTED, "args.x_scale", x_scale = x);
    BAD_ARGS(RFT_E_ARG, "args.w is set", w = w);
}

/* The type's own alignment is all that is asked. */
static void test_odd_addresses_are_fine(void **state) {
    (void)state;
    static float xs[TEST_M * TEST_K + 1], ys[TEST_M * TEST_N + 1], want[TEST_M * TEST_N];
    memcpy(xs + 1, x, sizeof x);
    rft_linear_args a = good();
    a.x = xs + 1;
    a.y = ys + 1;
    OK(rft_linear_run(plan, &a, &test_err));
    rft_test_product(x, w, want, TEST_M, TEST_N, TEST_K);
    rft_test_equal(ys + 1, want, TEST_M * TEST_N);
}

/* ---- weights of another kind ---- */

#define BAD_PACKED(part, change)                                                                                                 \
    do {                                                                                                                         \
        rft_weight_desc d = rft_test_weight_desc();                                                                              \
        d.change;                                                                                                                \
        rft_test_packed other = rft_test_pack(ctx, &d, w);                                                                       \
        BAD_ARGS(RFT_E_LAYOUT, part, weight = other.weight);                                                                     \
        rft_test_unpack(&other);                                                                                                 \
    } while (0)

static void test_other_weights(void **state) {
    (void)state;
    BAD_PACKED("args.weight has n = 46", n = 46);
    BAD_PACKED("k = 39", k = 39);
    BAD_PACKED("args.weight has elem bf16", elem = RFT_BF16);
    BAD_PACKED("GLU pairing 1", flags = RFT_WEIGHT_GLU_HALVES);
    BAD_PACKED("args.weight has layout 0x0", flags = RFT_WEIGHT_VIEW);
    rft_weight_desc d = rft_test_weight_desc();
    d.n = TEST_N / 2;
    d.batch = 2;
    rft_test_packed other = rft_test_pack(ctx, &d, w);
    BAD_ARGS(RFT_E_LAYOUT, "batch = 2", weight = other.weight);
    rft_test_unpack(&other);
}

static void test_weights_of_other_scales(void **state) {
    (void)state;
    static const float scales[TEST_N * TEST_K];
    rft_linear_desc d = rft_test_desc();
    d.w.elem = RFT_I8;
    d.w.scale = RFT_F32;
    d.w.group_n = 1;
    rft_plan *by_row = NULL;
    OK(rft_plan_create(ctx, &d, &by_row, &test_err));
    d.w.group_k = 8;
    size_t bytes = 0;
    OK(rft_weight_bytes(ctx, &d.w, &bytes, &test_err));
    void *storage = rft_test_storage(bytes);
    rft_weight_src src = rft_weight_src_init();
    src.q = w;
    src.scale = scales;
    rft_linear_args a = good();
    rft_weight *by_group = NULL;
    OK(rft_weight_pack(ctx, &d.w, &src, storage, NULL, &by_group, &test_err));
    a.weight = by_group;
    REFUSED(RFT_E_LAYOUT, "has scales of f32 for groups of 1 x 8, the plan's w f32 for 1 x 40",
            rft_linear_run(by_row, &a, &test_err));
    rft_weight_free(by_group);
    free(storage);
    rft_plan_free(by_row);
}

static void test_view_of_another_order(void **state) {
    (void)state;
    rft_linear_desc d = rft_test_desc();
    d.w.flags = RFT_WEIGHT_VIEW;
    rft_plan *view_plan = NULL;
    OK(rft_plan_create(ctx, &d, &view_plan, &test_err));
    rft_linear_args a = good();
    REFUSED(RFT_E_LAYOUT, "the plan reads 0x0", rft_linear_run(view_plan, &a, &test_err));
    d.w.order = RFT_MN_CONTIGUOUS;
    rft_test_packed view = rft_test_pack(ctx, &d.w, w);
    a.weight = view.weight;
    REFUSED(RFT_E_LAYOUT, "view of order 1", rft_linear_run(view_plan, &a, &test_err));
    rft_test_unpack(&view);
    rft_plan_free(view_plan);
}

/* ---- W at run time ---- */

static void test_dynamic(void **state) {
    (void)state;
    rft_linear_desc d = rft_test_desc();
    d.flags = RFT_W_DYNAMIC;
    rft_plan *dynamic = NULL;
    OK(rft_plan_create(ctx, &d, &dynamic, &test_err));
    rft_plan_info i = rft_plan_info_init();
    OK(rft_plan_get_info(dynamic, 1, &i));
    rft_linear_args a = good();
    REFUSED(RFT_E_ARG, "args.weight is set", rft_linear_run(dynamic, &a, &test_err));
    a.weight = NULL;
    a.workspace = rft_test_storage(i.workspace);
    a.workspace_bytes = i.workspace;
    REFUSED(RFT_E_ARG, "args.w is NULL", rft_linear_run(dynamic, &a, &test_err));
    a.w = off(w, 1);
    REFUSED(RFT_E_ARG, "args.w = 0x", rft_linear_run(dynamic, &a, &test_err));
    a.w = w;
    a.ldw = TEST_K - 1;
    REFUSED(RFT_E_ARG, "args.ldw = 39", rft_linear_run(dynamic, &a, &test_err));
    a.ldw = INT64_MAX / 2;
    REFUSED(RFT_E_ARG, "args.ldw = 4611686018427387903", rft_linear_run(dynamic, &a, &test_err));
    a.ldw = 0;
    a.w_batch_stride = -8;
    REFUSED(RFT_E_ARG, "args.w_batch_stride = -8", rft_linear_run(dynamic, &a, &test_err));
    a.w_batch_stride = 0;
    OK(rft_linear_run(dynamic, &a, &test_err));
    free(a.workspace);
    rft_plan_free(dynamic);
}

/* ---- operands ---- */

static void test_operands(void **state) {
    (void)state;
    const rft_epi_op ops[] = {{.kind = RFT_EPI_BIAS, .type = RFT_F32, .operand = 1},
                              {.kind = RFT_EPI_ADD, .type = RFT_F32, .beta = 1}};
    rft_linear_desc d = rft_test_desc();
    d.epi = ops;
    d.n_epi = 2;
    rft_plan *fused = NULL;
    OK(rft_plan_create(ctx, &d, &fused, &test_err));
    static float bias[TEST_N], residual[TEST_M * TEST_N];
    rft_operand operand[] = {{.ptr = residual}, {.ptr = bias}};
    rft_linear_args a = good();
    REFUSED(RFT_E_ARG, "operand", rft_linear_run(fused, &a, &test_err));
    a.n_operand = 1;
    a.operand = operand;
    REFUSED(RFT_E_ARG, "operand", rft_linear_run(fused, &a, &test_err));
    a.n_operand = 2;
    operand[1].ptr = NULL;
    REFUSED(RFT_E_ARG, "operand[1].ptr is NULL", rft_linear_run(fused, &a, &test_err));
    operand[1].ptr = off(bias, 2);
    REFUSED(RFT_E_ARG, "operand[1].ptr", rft_linear_run(fused, &a, &test_err));
    operand[1].ptr = bias;
    operand[0].ld = TEST_N - 1;
    REFUSED(RFT_E_ARG, "operand[0].ld is 47", rft_linear_run(fused, &a, &test_err));
    operand[0].ld = INT64_MAX;
    REFUSED(RFT_E_ARG, "operand[0]", rft_linear_run(fused, &a, &test_err));
    operand[0].ld = 0;
    OK(rft_linear_run(fused, &a, &test_err));
    rft_plan_free(fused);
}

/* ---- what may be missing ---- */

static void test_nothing_to_do(void **state) {
    (void)state;
    rft_linear_desc d = rft_test_desc();
    d.m_min = 0;
    rft_plan *any = NULL;
    OK(rft_plan_create(ctx, &d, &any, &test_err));
    rft_linear_args a = rft_linear_args_init();
    OK(rft_linear_run(any, &a, &test_err)); /* m = 0 */
    rft_plan_free(any);
    d.w.n = 0;
    OK(rft_plan_create(ctx, &d, &any, &test_err));
    a.m = TEST_M;
    OK(rft_linear_run(any, &a, &test_err));
    rft_plan_free(any);
}

static void run_without_x_and_w(const rft_linear_desc *d) {
    rft_plan *any = NULL;
    OK(rft_plan_create(ctx, d, &any, &test_err));
    rft_plan_info i = rft_plan_info_init();
    OK(rft_plan_get_info(any, TEST_M, &i));
    rft_linear_args a = rft_linear_args_init();
    a.m = TEST_M;
    a.y = y;
    a.workspace = rft_test_storage(i.workspace);
    a.workspace_bytes = i.workspace;
    for (int j = 0; j < TEST_M * TEST_N; j++) {
        y[j] = NAN;
    }
    OK(rft_linear_run(any, &a, &test_err));
    for (int j = 0; j < TEST_M * TEST_N; j++) {
        assert_true(y[j] == 0.0f);
    }
    free(a.workspace);
    rft_plan_free(any);
}

static void test_nothing_to_read(void **state) {
    (void)state;
    rft_linear_desc d = rft_test_desc();
    d.flags = RFT_ALPHA; /* alpha = 0 */
    run_without_x_and_w(&d);
    d = rft_test_desc();
    d.w.k = 0;
    run_without_x_and_w(&d);
    d.flags = RFT_W_DYNAMIC;
    run_without_x_and_w(&d);
    d.flags = 0;
    d.w.flags = RFT_WEIGHT_VIEW;
    run_without_x_and_w(&d);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_null),
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_alignment),
        cmocka_unit_test(test_unsupported_fields),
        cmocka_unit_test(test_odd_addresses_are_fine),
        cmocka_unit_test(test_other_weights),
        cmocka_unit_test(test_weights_of_other_scales),
        cmocka_unit_test(test_view_of_another_order),
        cmocka_unit_test(test_dynamic),
        cmocka_unit_test(test_operands),
        cmocka_unit_test(test_nothing_to_do),
        cmocka_unit_test(test_nothing_to_read),
    };
    return cmocka_run_group_tests(tests, make_all, free_all);
}
