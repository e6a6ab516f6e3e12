/* SPDX-License-Identifier: Apache-2.0
 *
 * test_info.c - what the library says about itself, its kernels and its plans: info, explain, log, strict, forced kernels.
 */
#define _GNU_SOURCE 1
#include "api_test.h"

#include <stdio.h>

static rft_ctx *open_ctx(const char *isa, uint32_t flags) {
    rft_ctx_options o = rft_test_options(NULL);
    o.max_isa = isa;
    o.flags = flags;
    rft_ctx *ctx = NULL;
    OK(rft_ctx_create("cpu", &o, &ctx, &test_err));
    return ctx;
}

/* ---- build and kernels ---- */

static void test_version(void **state) {
    (void)state;
    rft_build_info info = rft_build_info_init();
    assert_int_equal(rft_version(), RFT_VERSION);
    assert_int_equal(rft_get_build_info(&info), RFT_OK);
    char version[32];
    snprintf(version, sizeof version, "%d.%d.%d", RFT_VERSION_MAJOR, RFT_VERSION_MINOR, RFT_VERSION_PATCH);
    assert_string_equal(info.version, version);
    assert_true(strlen(info.commit) > 0 && strlen(info.compiler) > 0 && info.build_type != NULL);
    assert_memory_equal(info.isa_built, "ref", 3);
    assert_non_null(strstr(info.isa_built, info.isa_here));
    const bool highest = strlen(strstr(info.isa_built, info.isa_here)) == strlen(info.isa_here);
    assert_true(highest ? info.isa_missing[0] == '\0' : strstr(info.isa_missing, ": ") != NULL);
    assert_int_equal(rft_get_build_info(NULL), RFT_E_ARG);
    info.struct_size = 0;
    assert_int_equal(rft_get_build_info(&info), RFT_E_ARG);
}

static void test_names(void **state) {
    (void)state;
    assert_string_equal(rft_status_name(RFT_OK), "RFT_OK");
    assert_string_equal(rft_status_name(RFT_E_LAYOUT), "RFT_E_LAYOUT");
    assert_non_null(rft_status_name((rft_status)-7));
    assert_string_equal(rft_type_name(RFT_BF16), "bf16");
    assert_string_equal(rft_type_name((rft_type)-7), "?");
}

static void test_kernels(void **state) {
    (void)state;
    const uint32_t count = rft_kernel_count();
    assert_true(count > 0);
    for (uint32_t i = 0; i < count; i++) {
        rft_kernel_info info = {.struct_size = sizeof info};
        assert_int_equal(rft_kernel_get(i, &info), RFT_OK);
        assert_int_equal(info.struct_size, sizeof info);
        const bool gpu = strncmp(info.isa, "sm_", 3) == 0; /* its isa is part of a family's name, or none */
        assert_true(gpu || strncmp(info.name, "gem", 3) == 0 || strncmp(info.name, "dot", 3) == 0 ||
                    strncmp(info.name, "axpy", 4) == 0 || strncmp(info.name, "sums", 4) == 0);
        assert_true(gpu || strstr(info.name, info.isa) != NULL);
        assert_true(info.mr > 0 && info.nr > 0 && info.kr > 0 && info.error_gamma > 0);
        assert_true(info.available || strcmp(info.isa, "ref") != 0);
        for (uint32_t j = 0; j < i; j++) {
            rft_kernel_info other = {.struct_size = sizeof other};
            assert_int_equal(rft_kernel_get(j, &other), RFT_OK);
            assert_string_not_equal(info.name, other.name);
        }
    }
    rft_kernel_info info = {.struct_size = sizeof info};
    assert_int_equal(rft_kernel_get(count, &info), RFT_E_ARG);
    assert_int_equal(rft_kernel_get(UINT32_MAX, &info), RFT_E_ARG);
    assert_int_equal(rft_kernel_get(0, NULL), RFT_E_ARG);
}

/* ---- plans ---- */

static void test_plan_info(void **state) {
    (void)state;
    rft_ctx *const ctx = open_ctx(NULL, 0);
    const rft_linear_desc d = rft_test_desc();
    rft_plan *plan = NULL;
    OK(rft_plan_create(ctx, &d, &plan, &test_err));
    rft_test_packed p = {0};
    OK(rft_weight_bytes(ctx, &d.w, &p.bytes, &test_err));
    for (int64_t m = 1; m <= TEST_M; m++) {
        rft_plan_info info = rft_plan_info_init();
        assert_int_equal(rft_plan_get_info(plan, m, &info), RFT_OK);
        rft_work work = {.struct_size = sizeof work};
        OK(rft_work_of(&d, m, &work, &test_err));
        assert_float_equal(info.flops, 2.0 * (double)m * TEST_N * TEST_K, 0);
        assert_float_equal(info.bytes, work.bytes, 0);
        assert_float_equal(info.bytes, 4.0 * (double)(m * TEST_K + TEST_N * TEST_K + m * TEST_N), 0);
        assert_float_equal(info.bound_seconds, 0, 0);
        assert_string_equal(info.bound, "unknown");
        assert_true(info.weight_layout != 0 && info.error_c > 0 && info.error_c < 1e-3);
        assert_true(info.threads >= 1 && info.threads <= 2);
        assert_int_equal(info.workspace_align, 64);
        char text[16384];
        assert_true(rft_plan_explain(plan, m, text, sizeof text) < sizeof text);
        assert_non_null(strstr(text, info.kernel)); /* explain and info agree */
    }
    rft_plan_free(plan);
    rft_ctx_free(ctx);
}

static void test_explain(void **state) {
    (void)state;
    rft_ctx *const ctx = open_ctx(NULL, 0);
    const rft_linear_desc d = rft_test_desc();
    rft_plan *plan = NULL;
    OK(rft_plan_create(ctx, &d, &plan, &test_err));
    char all[16384], part[16384];
    const size_t length = rft_plan_explain(plan, 2, all, sizeof all);
    assert_int_equal(strlen(all), length);
    const char first[] = "m=1..5 n=48 k=40 x=f32 w=f32 y=f32 layout=nt epi=none\n";
    assert_memory_equal(all, first, sizeof first - 1);
    assert_non_null(strstr(all, "work: 7.68 kFLOP"));
    assert_non_null(strstr(all, "bound: unknown"));
    assert_int_equal(rft_plan_explain(plan, 2, NULL, 0), length); /* as snprintf */
    for (size_t cap = 1; cap < length; cap += 37) {
        memset(part, '#', sizeof part);
        assert_int_equal(rft_plan_explain(plan, 2, part, cap), length);
        assert_int_equal(strlen(part), cap - 1);
        assert_memory_equal(part, all, cap - 1);
        assert_int_equal(part[cap], '#');
    }
    rft_plan_explain(plan, 6, all, sizeof all);
    assert_non_null(strstr(all, "m = 6 lies outside"));
    rft_plan_free(plan);
    rft_ctx_free(ctx);
}

static void test_equal_plans_share_a_choice(void **state) {
    (void)state;
    rft_ctx *const ctx = open_ctx(NULL, 0);
    const rft_linear_desc d = rft_test_desc();
    rft_plan *a = NULL, *b = NULL;
    OK(rft_plan_create(ctx, &d, &a, &test_err));
    OK(rft_plan_create(ctx, &d, &b, &test_err));
    rft_plan_info ia = rft_plan_info_init(), ib = rft_plan_info_init();
    rft_plan_free(a); /* b's choice stays */
    assert_int_equal(rft_plan_get_info(b, 1, &ib), RFT_OK);
    OK(rft_plan_create(ctx, &d, &a, &test_err));
    assert_int_equal(rft_plan_get_info(a, 1, &ia), RFT_OK);
    assert_string_equal(ia.kernel, ib.kernel);
    rft_plan_free(b);
    rft_plan_free(a);
    rft_ctx_free(ctx);
}

static void test_forced_kernels(void **state) {
    (void)state;
    rft_ctx *const ctx = open_ctx(NULL, 0);
    int served = 0;
    for (uint32_t i = 0; i < rft_kernel_count(); i++) {
        rft_kernel_info kernel = {.struct_size = sizeof kernel};
        assert_int_equal(rft_kernel_get(i, &kernel), RFT_OK);
        const bool other_device = strncmp(kernel.isa, "sm_", 3) == 0;
        const rft_linear_desc d = rft_test_desc();
        rft_plan *plan = NULL;
        const rft_status status = rft_plan_create_forced(ctx, &d, kernel.name, &plan, &test_err);
        if (status == RFT_OK) {
            rft_plan_info info = rft_plan_info_init();
            assert_int_equal(rft_plan_get_info(plan, TEST_M, &info), RFT_OK);
            assert_string_equal(info.kernel, kernel.name);
            served++;
        } else {
            assert_int_equal(status, other_device ? RFT_E_ARG : RFT_E_UNSUPPORTED);
            assert_true(strlen(test_err.message) > 10);
        }
        rft_plan_free(plan);
    }
    assert_true(served >= 1);
    rft_ctx_free(ctx);
}

/* ---- log and strict ---- */

typedef struct lines {
    int plans, runs, packs, contexts, other;
    char last[1024];
} lines;

static void keep(void *user, rft_log_level level, const char *line) {
    lines *const l = user;
    (void)level;
    l->plans += strstr(line, ",plan,") != NULL;
    l->runs += strstr(line, ",run,") != NULL;
    l->packs += strstr(line, ",pack,") != NULL;
    l->contexts += strstr(line, ",context,") != NULL;
    l->other += strchr(line, '\n') != NULL || strncmp(line, "rooftile,", 9) != 0;
    snprintf(l->last, sizeof l->last, "%s", line);
}

static lines logged(rft_log_level level) {
    lines l = {0};
    rft_ctx_options o = rft_test_options(NULL);
    o.log = keep;
    o.user = &l;
    o.log_level = level;
    rft_ctx *ctx = NULL;
    OK(rft_ctx_create("cpu", &o, &ctx, &test_err));
    static float w[TEST_N * TEST_K], x[TEST_K], y[TEST_N];
    const rft_linear_desc d = rft_test_desc();
    rft_test_packed p = rft_test_pack(ctx, &d.w, w);
    rft_plan *plan = NULL;
    OK(rft_plan_create(ctx, &d, &plan, &test_err));
    rft_plan_info info = rft_plan_info_init();
    assert_int_equal(rft_plan_get_info(plan, 1, &info), RFT_OK);
    rft_linear_args a = rft_linear_args_init();
    a.m = 1;
    a.x = x;
    a.y = y;
    a.weight = p.weight;
    a.workspace = rft_test_storage(info.workspace);
    a.workspace_bytes = info.workspace;
    OK(rft_linear_run(plan, &a, &test_err));
    if (l.runs > 0) {
        assert_non_null(strstr(l.last, info.kernel));
    }
    free(a.workspace);
    rft_plan_free(plan);
    rft_test_unpack(&p);
    rft_ctx_free(ctx);
    assert_int_equal(l.other, 0);
    return l;
}

static void test_log(void **state) {
    (void)state;
    lines l = logged(RFT_LOG_HINT);
    assert_int_equal(l.plans + l.runs + l.packs + l.contexts, 0);
    l = logged(RFT_LOG_DISPATCH);
    assert_true(l.plans == 1 && l.contexts == 1 && l.runs == 0 && l.packs == 0);
    l = logged(RFT_LOG_EXEC);
    assert_true(l.plans == 1 && l.contexts == 1 && l.runs == 1 && l.packs == 1);
}

/* Under a cap of ref nothing falls back: ref is then the best there is. */
static void test_strict_allows_the_best(void **state) {
    (void)state;
    static const char *const caps[] = {NULL, "ref"};
    for (int i = 0; i < 2; i++) {
        rft_ctx *const ctx = open_ctx(caps[i], RFT_CTX_STRICT);
        const rft_linear_desc d = rft_test_desc();
        rft_plan *plan = NULL;
        OK(rft_plan_create(ctx, &d, &plan, &test_err));
        rft_plan_free(plan);
        rft_ctx_free(ctx);
    }
}

/* ---- a machine that is not here ---- */

#if defined(__x86_64__)
#define OTHER_ISA "avx2"
#else
#define OTHER_ISA "ref" /* the only one that is built */
#endif

static rft_machine somewhere_else(void) {
    rft_machine m = {.struct_size = sizeof m, .n_counts = 2, .n_levels = 1, .n_peaks = 1, .counts = {1, 64}};
    strcpy(m.name, "Some other CPU");
    strcpy(m.device, "cpu");
    strcpy(m.isa, OTHER_ISA);
    strcpy(m.date, "2026-01-31");
    strcpy(m.source, "spec");
    m.levels[0] = (rft_machine_level){.name = "DRAM", .bytes = 1u << 30, .read_gbps = {10, 200}, .copy_gbps = {10, 200}};
    m.peaks[0] = (rft_machine_peak){.isa = OTHER_ISA, .op = "fma_f32", .type = RFT_F32, .gflops = {100, 6400}};
    return m;
}

static void test_explain_machine(void **state) {
    (void)state;
    rft_machine m = somewhere_else();
    rft_linear_desc d = rft_test_desc();
    d.w.n = d.w.k = 4096;
    d.m_max = 512;
    char text[8192];
    size_t length = 0;
    OK(rft_explain_machine(&m, &d, 512, 0, text, sizeof text, &length, &test_err));
    assert_int_equal(length, strlen(text));
    assert_non_null(strstr(text, "_" OTHER_ISA));
    assert_non_null(strstr(text, "on 64 threads"));
    assert_non_null(strstr(text, "spec profile of Some other CPU"));
    size_t again = 0;
    OK(rft_explain_machine(&m, &d, 512, 64, NULL, 0, &again, &test_err));
    assert_int_equal(again, length);
    REFUSED(RFT_E_ARG, "m = 513 lies outside", rft_explain_machine(&m, &d, 513, 0, text, sizeof text, &length, &test_err));
    REFUSED(RFT_E_ARG, "desc is NULL", rft_explain_machine(&m, NULL, 1, 0, text, sizeof text, &length, &test_err));
    strcpy(m.isa, "sse2");
    REFUSED(RFT_E_ARG, "sse2", rft_explain_machine(&m, &d, 1, 0, text, sizeof text, &length, &test_err));
    m = somewhere_else();
    strcpy(m.device, "abacus");
    REFUSED(RFT_E_ARG, "abacus", rft_explain_machine(&m, &d, 1, 0, text, sizeof text, &length, &test_err));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_version),         cmocka_unit_test(test_names),   cmocka_unit_test(test_kernels),
        cmocka_unit_test(test_plan_info),       cmocka_unit_test(test_explain), cmocka_unit_test(test_equal_plans_share_a_choice),
        cmocka_unit_test(test_forced_kernels),  cmocka_unit_test(test_log),     cmocka_unit_test(test_strict_allows_the_best),
        cmocka_unit_test(test_explain_machine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
