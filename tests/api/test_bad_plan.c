/* SPDX-License-Identifier: Apache-2.0
 *
 * test_bad_plan.c - plans: bad descriptors as the caller hands them over. What the fields may hold is tested, field by
 * field, in tests/unit/test_problem.c; here that the refusal reaches the caller, and struct sizes.
 */
#include "api_test.h"

static rft_ctx *ctx;

static int make_ctx(void **state) {
    (void)state;
    const rft_ctx_options o = rft_test_options(NULL);
    return rft_ctx_create("cpu", &o, &ctx, NULL) == RFT_OK ? 0 : -1;
}

static int free_ctx(void **state) {
    (void)state;
    rft_ctx_free(ctx);
    return 0;
}

#define BAD_DESC(status, part, change)                                                                                           \
    do {                                                                                                                         \
        rft_linear_desc bad = rft_test_desc();                                                                                   \
        rft_plan *plan = (rft_plan *)1;                                                                                          \
        bad.change;                                                                                                              \
        REFUSED(status, part, rft_plan_create(ctx, &bad, &plan, &test_err));                                                     \
        assert_null(plan);                                                                                                       \
    } while (0)

static void test_null(void **state) {
    (void)state;
    const rft_linear_desc d = rft_test_desc();
    rft_plan *plan = NULL;
    REFUSED(RFT_E_ARG, "ctx is NULL", rft_plan_create(NULL, &d, &plan, &test_err));
    REFUSED(RFT_E_ARG, "desc is NULL", rft_plan_create(ctx, NULL, &plan, &test_err));
    REFUSED(RFT_E_ARG, "out is NULL", rft_plan_create(ctx, &d, NULL, &test_err));
    REFUSED(RFT_E_ARG, "kernel is NULL", rft_plan_create_forced(ctx, &d, NULL, &plan, &test_err));
    REFUSED(RFT_E_ARG, "no_such_kernel", rft_plan_create_forced(ctx, &d, "no_such_kernel", &plan, &test_err));
    rft_plan_free(NULL);
    rft_plan_info info = rft_plan_info_init();
    assert_int_equal(rft_plan_get_info(NULL, 1, &info), RFT_E_ARG);
    char text[32];
    const size_t length = rft_plan_explain(NULL, 1, text, sizeof text);
    assert_int_equal(length, strlen(text));
    assert_int_equal(rft_plan_create(ctx, NULL, &plan, NULL), RFT_E_ARG);
}

static void test_sizes(void **state) {
    (void)state;
    BAD_DESC(RFT_E_ARG, "desc", struct_size = 0);
    BAD_DESC(RFT_E_ARG, "desc", struct_size = 1);
    BAD_DESC(RFT_E_ARG, "desc.struct_size = 20", struct_size = 20);
    BAD_DESC(RFT_E_ARG, "desc.w", w.struct_size = 0);
    BAD_DESC(RFT_E_ARG, "desc.w.struct_size = 12", w.struct_size = 12);
    BAD_DESC(RFT_E_ARG, "desc.w", w.struct_size = sizeof(rft_weight_desc) + 8);
    struct newer {
        rft_linear_desc known;
        uint32_t later[4];
    } n = {.known = rft_test_desc(), .later = {0, 0, 0, 7}};
    n.known.struct_size = sizeof n;
    rft_plan *plan = NULL;
    REFUSED(RFT_E_ARG, "desc", rft_plan_create(ctx, &n.known, &plan, &test_err));
    n.later[3] = 0;
    OK(rft_plan_create(ctx, &n.known, &plan, &test_err));
    rft_plan_free(plan);
}

static void test_fields(void **state) {
    (void)state;
    static const rft_epi_op unknown = {.kind = (rft_epi_kind)77};
    static const rft_epi_op swiglu = {.kind = RFT_EPI_SWIGLU};
    BAD_DESC(RFT_E_ARG, "desc.m_max = -3", m_max = -3);
    BAD_DESC(RFT_E_ARG, "desc.w: n = -1", w.n = -1);
    BAD_DESC(RFT_E_ARG, "desc.w.ld = 39", w.ld = 39);
    BAD_DESC(RFT_E_ARG, "overflow", w.k = INT64_MAX);
    BAD_DESC(RFT_E_UNSUPPORTED, "desc.x = u4", x = RFT_U4);
    BAD_DESC(RFT_E_ARG, "epi[0].kind is 77", n_epi = (bad.epi = &unknown, 1));
    BAD_DESC(RFT_E_ARG, "RFT_WEIGHT_GLU_HALVES", n_epi = (bad.epi = &swiglu, 1));
    BAD_DESC(RFT_E_ARG, "swiglu", w.flags = RFT_WEIGHT_GLU_HALVES);
    BAD_DESC(RFT_E_ARG, "n_epi is 17", n_epi = (bad.epi = &swiglu, 17));
}

static void test_info(void **state) {
    (void)state;
    const rft_linear_desc d = rft_test_desc();
    rft_plan *plan = NULL;
    OK(rft_plan_create(ctx, &d, &plan, &test_err));
    rft_plan_info info = rft_plan_info_init();
    assert_int_equal(rft_plan_get_info(plan, 0, &info), RFT_E_ARG);
    assert_int_equal(rft_plan_get_info(plan, TEST_M + 1, &info), RFT_E_ARG);
    assert_int_equal(rft_plan_get_info(plan, -1, &info), RFT_E_ARG);
    assert_int_equal(rft_plan_get_info(plan, 1, NULL), RFT_E_ARG);
    info.struct_size = 2;
    assert_int_equal(rft_plan_get_info(plan, 1, &info), RFT_E_ARG);

    struct older { /* only the fields up to weight_layout; the rest is not ours to write */
        rft_plan_info info;
    } o;
    memset(&o, 0x77, sizeof o);
    o.info.struct_size = offsetof(rft_plan_info, workspace);
    assert_int_equal(rft_plan_get_info(plan, 1, &o.info), RFT_OK);
    assert_non_null(strstr(o.info.kernel, "gem"));
    assert_int_equal(o.info.struct_size, offsetof(rft_plan_info, workspace));
    for (size_t i = offsetof(rft_plan_info, workspace); i < sizeof o; i++) {
        assert_int_equal(((unsigned char *)&o)[i], 0x77);
    }
    rft_plan_free(plan);
}

static void test_work_and_machine(void **state) {
    (void)state;
    const rft_linear_desc d = rft_test_desc();
    rft_work work = {.struct_size = sizeof work};
    REFUSED(RFT_E_ARG, "desc is NULL", rft_work_of(NULL, 1, &work, &test_err));
    REFUSED(RFT_E_ARG, "m = -1", rft_work_of(&d, -1, &work, &test_err));
    REFUSED(RFT_E_ARG, "work is NULL", rft_work_of(&d, 1, NULL, &test_err));
    rft_bound bound = {.struct_size = sizeof bound};
    REFUSED(RFT_E_ARG, "machine is NULL", rft_machine_bound(NULL, &d, 1, 1, &bound, &test_err));
    rft_machine empty = {.struct_size = sizeof empty};
    REFUSED(RFT_E_ARG, "machine", rft_machine_bound(&empty, &d, 1, 1, &bound, &test_err));
    size_t length = 0;
    REFUSED(RFT_E_ARG, "machine is NULL", rft_explain_machine(NULL, &d, 1, 1, NULL, 0, &length, &test_err));
    REFUSED(RFT_E_ARG, "machine", rft_explain_machine(&empty, &d, 1, 1, NULL, 0, &length, &test_err));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_null),
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_fields),
        cmocka_unit_test(test_info),
        cmocka_unit_test(test_work_and_machine),
    };
    return cmocka_run_group_tests(tests, make_ctx, free_ctx);
}
