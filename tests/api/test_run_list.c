/* SPDX-License-Identifier: Apache-2.0
 *
 * test_run_list.c - q, k and v in one call: the same bits as three runs; one bad entry stops the list before it starts.
 */
#include "api_test.h"

enum { LIST = 3, MOST = 16, M = 3 };

static const int64_t widths[LIST] = {48, 16, 35};
static rft_ctx *ctx;
static float x[M * TEST_K], w[LIST][48 * TEST_K], y[LIST][M * 48], alone[LIST][M * 48];
static rft_plan *plans[LIST];
static rft_test_packed packed[LIST];
static rft_linear_args args[LIST];

static int make_all(void **state) {
    (void)state;
    const rft_ctx_options o = rft_test_options(NULL);
    OK(rft_ctx_create("cpu", &o, &ctx, &test_err));
    rft_test_fill(x, M * TEST_K, 9);
    for (unsigned i = 0; i < LIST; i++) {
        rft_linear_desc d = rft_test_desc();
        d.w.n = widths[i];
        rft_test_fill(w[i], 48 * TEST_K, i);
        packed[i] = rft_test_pack(ctx, &d.w, w[i]);
        OK(rft_plan_create(ctx, &d, &plans[i], &test_err));
        rft_plan_info info = rft_plan_info_init();
        assert_int_equal(rft_plan_get_info(plans[i], M, &info), RFT_OK);
        args[i] = rft_linear_args_init();
        args[i].m = M;
        args[i].x = x;
        args[i].y = y[i];
        args[i].weight = packed[i].weight;
        args[i].workspace = rft_test_storage(info.workspace);
        args[i].workspace_bytes = info.workspace;
    }
    return 0;
}

static int free_all(void **state) {
    (void)state;
    for (int i = 0; i < LIST; i++) {
        free(args[i].workspace);
        rft_plan_free(plans[i]);
        rft_test_unpack(&packed[i]);
    }
    rft_ctx_free(ctx);
    return 0;
}

static const rft_plan *const *list(void) { return (const rft_plan *const *)plans; }

static void test_same_as_alone(void **state) {
    (void)state;
    for (int i = 0; i < LIST; i++) {
        rft_linear_args one = args[i];
        one.y = alone[i];
        OK(rft_linear_run(plans[i], &one, &test_err));
    }
    OK(rft_run_list(list(), args, LIST, &test_err));
    for (int i = 0; i < LIST; i++) {
        assert_memory_equal(y[i], alone[i], (size_t)(M * widths[i]) * sizeof(float));
    }
}

static void test_as_long_as_allowed(void **state) {
    (void)state;
    const rft_plan *many[MOST + 1];
    static rft_linear_args many_args[MOST + 1];
    static float out[MOST + 1][M * 48];
    for (int i = 0; i <= MOST; i++) {
        many[i] = plans[0];
        many_args[i] = args[0];
        many_args[i].y = out[i];
        many_args[i].workspace = rft_test_storage(args[0].workspace_bytes);
    }
    OK(rft_run_list(many, many_args, MOST, &test_err));
    REFUSED(RFT_E_ARG, "count = 17 is more than the 16", rft_run_list(many, many_args, MOST + 1, &test_err));
    for (int i = 0; i <= MOST; i++) {
        free(many_args[i].workspace);
        if (i < MOST) {
            assert_memory_equal(out[i], alone[0], sizeof alone[0]);
        }
    }
}

/* A program of a later version: its args are longer, and so is the step from one to the next. */
static void test_longer_args(void **state) {
    (void)state;
    static struct newer {
        rft_linear_args known;
        uint64_t later[2];
    } newer[LIST];
    for (int i = 0; i < LIST; i++) {
        newer[i].known = args[i];
        newer[i].known.struct_size = sizeof newer[i];
        memset(y[i], 0, sizeof y[i]);
    }
    OK(rft_run_list(list(), &newer[0].known, LIST, &test_err));
    for (int i = 0; i < LIST; i++) {
        assert_memory_equal(y[i], alone[i], (size_t)(M * widths[i]) * sizeof(float));
    }
    newer[2].known.struct_size = sizeof(rft_linear_args);
    REFUSED(RFT_E_ARG, "args[2].struct_size", rft_run_list(list(), &newer[0].known, LIST, &test_err));
    newer[0].known.struct_size = sizeof newer[0] - 1;
    REFUSED(RFT_E_ARG, "args[0].struct_size", rft_run_list(list(), &newer[0].known, LIST, &test_err));
}

static void test_refusals(void **state) {
    (void)state;
    OK(rft_run_list(NULL, NULL, 0, &test_err));
    REFUSED(RFT_E_ARG, "plans is NULL", rft_run_list(NULL, args, LIST, &test_err));
    REFUSED(RFT_E_ARG, "args is NULL", rft_run_list(list(), NULL, LIST, &test_err));
    const rft_plan *holes[LIST] = {plans[0], NULL, plans[2]};
    REFUSED(RFT_E_ARG, "plans[1] is NULL", rft_run_list(holes, args, LIST, &test_err));
}

static void test_one_bad_entry_stops_all(void **state) {
    (void)state;
    for (int i = 0; i < LIST; i++) {
        memset(y[i], 0x33, sizeof y[i]);
    }
    args[2].x = NULL;
    REFUSED(RFT_E_ARG, "entry 2 of the list: args.x is NULL", rft_run_list(list(), args, LIST, &test_err));
    assert_int_equal(rft_run_list(list(), args, LIST, NULL), RFT_E_ARG);
    args[2].x = x;
    for (int i = 0; i < LIST; i++) {
        for (size_t j = 0; j < sizeof y[i]; j++) {
            assert_int_equal(((unsigned char *)y[i])[j], 0x33);
        }
    }
}

static void test_empty_entries_are_skipped(void **state) {
    (void)state;
    rft_linear_desc d = rft_test_desc();
    d.w.n = 0;
    rft_plan *empty = NULL;
    OK(rft_plan_create(ctx, &d, &empty, &test_err));
    const rft_plan *mixed[2] = {empty, plans[1]};
    rft_linear_args a[2] = {rft_linear_args_init(), args[1]};
    a[0].m = 1;
    memset(y[1], 0, sizeof y[1]);
    OK(rft_run_list(mixed, a, 2, &test_err));
    assert_memory_equal(y[1], alone[1], (size_t)(M * widths[1]) * sizeof(float));
    OK(rft_run_list(mixed, a, 1, &test_err));
    rft_plan_free(empty);
}

static void test_two_contexts(void **state) {
    (void)state;
    const rft_ctx_options o = rft_test_options(NULL);
    rft_ctx *second = NULL;
    OK(rft_ctx_create("cpu", &o, &second, &test_err));
    const rft_linear_desc d = rft_test_desc();
    rft_plan *stranger = NULL;
    OK(rft_plan_create(second, &d, &stranger, &test_err));
    const rft_plan *mixed[2] = {plans[0], stranger};
    REFUSED(RFT_E_ARG, "plans[1] belongs to another context", rft_run_list(mixed, args, 2, &test_err));
    rft_plan_free(stranger);
    rft_ctx_free(second);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_as_alone),
        cmocka_unit_test(test_as_long_as_allowed),
        cmocka_unit_test(test_longer_args),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_one_bad_entry_stops_all),
        cmocka_unit_test(test_empty_entries_are_skipped),
        cmocka_unit_test(test_two_contexts),
    };
    return cmocka_run_group_tests(tests, make_all, free_all);
}
