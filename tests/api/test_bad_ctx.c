/* SPDX-License-Identifier: Apache-2.0
 *
 * test_bad_ctx.c - contexts: bad devices, options, struct sizes, profiles and cache folders; what is no error.
 */
#define _GNU_SOURCE 1
#include "api_test.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/rft_test_ctx_XXXXXX";
static char damaged[64]; /* a profile that is no JSON, in the cache folder */

static int make_folder(void **state) {
    (void)state;
    if (mkdtemp(folder) == NULL) {
        return -1;
    }
    snprintf(damaged, sizeof damaged, "%s/machine-cpu.json", folder);
    FILE *f = fopen(damaged, "w");
    return f != NULL && fputs("{ \"name\": ", f) >= 0 && fclose(f) == 0 ? 0 : -1;
}

static int remove_folder(void **state) {
    (void)state;
    chmod(folder, 0700);
    unlink(damaged);
    return rmdir(folder);
}

static void refused_device(const char *device, rft_status status, const char *part) {
    const rft_ctx_options o = rft_test_options(NULL);
    rft_ctx *ctx = (rft_ctx *)1;
    REFUSED(status, part, rft_ctx_create(device, &o, &ctx, &test_err));
    assert_null(ctx);
}

static void test_devices(void **state) {
    (void)state;
    refused_device("gpu", RFT_E_ARG, "device = \"gpu\"");
    refused_device("", RFT_E_ARG, "device = \"\"");
    refused_device("cpu:0", RFT_E_ARG, "device = \"cpu:0\"");
    refused_device("CPU", RFT_E_ARG, "device = \"CPU\"");
    refused_device("cuda:", RFT_E_ARG, "device = \"cuda:\"");
    refused_device("cuda:-1", RFT_E_ARG, "device = \"cuda:-1\"");
    refused_device("cuda:0x", RFT_E_ARG, "device = \"cuda:0x\"");
    refused_device("cuda:99999999999999999999", RFT_E_ARG, "device = \"cuda:9999");
    refused_device("cuda:1024", RFT_E_ARG, "0..1023");
}

static void test_null(void **state) {
    (void)state;
    REFUSED(RFT_E_ARG, "out is NULL", rft_ctx_create("cpu", NULL, NULL, &test_err));
    assert_int_equal(rft_ctx_create("cpu", NULL, NULL, NULL), RFT_E_ARG); /* err may be NULL */
    rft_ctx_free(NULL);
    rft_device_info info = {.struct_size = sizeof info};
    assert_int_equal(rft_ctx_get_device(NULL, &info), RFT_E_ARG);
    rft_machine machine = {.struct_size = sizeof machine};
    REFUSED(RFT_E_ARG, "ctx is NULL", rft_ctx_get_machine(NULL, &machine, &test_err));
}

#define BAD_OPTIONS(status, part, change)                                                                                        \
    do {                                                                                                                         \
        rft_ctx_options bad = rft_test_options(NULL);                                                                            \
        rft_ctx *none = NULL;                                                                                                    \
        bad.change;                                                                                                              \
        REFUSED(status, part, rft_ctx_create("cpu", &bad, &none, &test_err));                                                    \
        assert_null(none);                                                                                                       \
    } while (0)

static void test_options(void **state) {
    (void)state;
    static int context;
    BAD_OPTIONS(RFT_E_ARG, "options.threads = 1025", threads = 1025);
    BAD_OPTIONS(RFT_E_ARG, "options.threads = 4294967295", threads = UINT32_MAX);
    BAD_OPTIONS(RFT_E_ARG, "options.flags = 0x100", flags = 0x100);
    BAD_OPTIONS(RFT_E_ARG, "options.release is NULL", alloc = rft_test_alloc);
    BAD_OPTIONS(RFT_E_ARG, "options.alloc is NULL", release = rft_test_release);
    BAD_OPTIONS(RFT_E_ARG, "options.log_level = 99", log_level = (rft_log_level)99);
    BAD_OPTIONS(RFT_E_ARG, "options.log_level = -1", log_level = (rft_log_level)-1);
    BAD_OPTIONS(RFT_E_ARG, "options.cuda_context", cuda_context = &context);
    BAD_OPTIONS(RFT_E_ARG, "avx9000", max_isa = "avx9000");
}

static void test_option_sizes(void **state) {
    (void)state;
    BAD_OPTIONS(RFT_E_ARG, "struct_size = 0", struct_size = 0);
    BAD_OPTIONS(RFT_E_ARG, "struct_size = 3", struct_size = 3);
    BAD_OPTIONS(RFT_E_ARG, "struct_size = 4294967295", struct_size = UINT32_MAX);

    struct newer { /* a program built against a later library */
        rft_ctx_options known;
        uint64_t later;
    } n = {.known = rft_test_options(NULL), .later = 1};
    n.known.struct_size = sizeof n;
    rft_ctx *ctx = NULL;
    REFUSED(RFT_E_ARG, "options", rft_ctx_create("cpu", &n.known, &ctx, &test_err));
    n.later = 0; /* asks nothing that this library does not know */
    OK(rft_ctx_create("cpu", &n.known, &ctx, &test_err));
    rft_ctx_free(ctx);

    rft_ctx_options older = rft_test_options(NULL); /* ends behind `flags` */
    older.struct_size = offsetof(rft_ctx_options, parallel_for);
    older.max_isa = "beyond the end";
    OK(rft_ctx_create("cpu", &older, &ctx, &test_err));
    rft_ctx_free(ctx);
}

/* ---- profile and cache folder ---- */

static void test_named_profile_must_be_good(void **state) {
    (void)state;
    BAD_OPTIONS(RFT_E_IO, "/nonexistent/profile.json", profile = "/nonexistent/profile.json");
    BAD_OPTIONS(RFT_E_IO, damaged, profile = damaged);
}

typedef struct warnings {
    int count;
    char last[512];
} warnings;

static void count_warning(void *user, rft_log_level level, const char *line) {
    warnings *const w = user;
    w->count += level == RFT_LOG_WARN;
    snprintf(w->last, sizeof w->last, "%s", line);
}

static int warnings_with(const char *cache_dir) {
    warnings w = {0};
    rft_ctx_options o = rft_test_options(NULL);
    o.cache_dir = cache_dir;
    o.log = count_warning;
    o.user = &w;
    o.log_level = RFT_LOG_WARN;
    rft_ctx *ctx = NULL;
    OK(rft_ctx_create("cpu", &o, &ctx, &test_err));
    rft_machine machine = {.struct_size = sizeof machine};
    REFUSED(RFT_E_UNSUPPORTED, "ctx has no machine profile", rft_ctx_get_machine(ctx, &machine, &test_err));
    rft_ctx_free(ctx);
    if (w.count > 0) {
        assert_non_null(strstr(w.last, "machine-cpu.json"));
    }
    return w.count;
}

static void test_cache_folder_is_no_condition(void **state) {
    (void)state;
    assert_int_equal(warnings_with("/nonexistent/folder"), 0); /* missing: nothing to say */
    assert_int_equal(warnings_with(folder), 1);                /* damaged: said and ignored */
    char long_name[5000];
    memset(long_name, 'x', sizeof long_name - 1);
    long_name[sizeof long_name - 1] = '\0';
    warnings_with(long_name);
    assert_int_equal(chmod(folder, 0500), 0); /* read-only */
    assert_int_equal(warnings_with(folder), 1);
    assert_int_equal(chmod(folder, 0), 0); /* unreadable, but for root */
    assert_int_equal(warnings_with(folder), 1);
    assert_int_equal(chmod(folder, 0700), 0);
}

static void test_a_number_of_threads_that_is_none(void **state) {
    (void)state;
    warnings w = {0};
    rft_ctx_options o = rft_test_options(NULL);
    o.threads = 0;
    o.log = count_warning;
    o.user = &w;
    o.log_level = RFT_LOG_WARN;
    rft_ctx *ctx = NULL;
    setenv("RFT_NUM_THREADS", "many", 1);
    OK(rft_ctx_create("cpu", &o, &ctx, &test_err));
    unsetenv("RFT_NUM_THREADS");
    rft_ctx_free(ctx);
    assert_int_equal(w.count, 1);
    assert_non_null(strstr(w.last, ",RFT_NUM_THREADS,ignored: many is not a whole number in 1..1024,"));
}

static void test_profile_of_the_cache_folder(void **state) {
    (void)state;
    rft_machine m = {.struct_size = sizeof m, .n_counts = 1, .n_levels = 1, .n_peaks = 1, .counts = {2}};
    strcpy(m.name, "Some CPU");
    strcpy(m.device, "cpu");
    strcpy(m.isa, "avx2");
    strcpy(m.date, "2026-01-31");
    strcpy(m.source, "spec");
    m.levels[0] = (rft_machine_level){.name = "DRAM", .bytes = 1u << 30, .read_gbps = {10}, .copy_gbps = {10}};
    m.peaks[0] = (rft_machine_peak){.isa = "avx2", .op = "fma_f32", .type = RFT_F32, .gflops = {100}};
    OK(rft_machine_save(&m, damaged, &test_err));
    rft_ctx_options o = rft_test_options(NULL);
    o.cache_dir = folder;
    rft_ctx *ctx = NULL;
    OK(rft_ctx_create(NULL, &o, &ctx, &test_err));
    rft_machine got = {.struct_size = sizeof got};
    OK(rft_ctx_get_machine(ctx, &got, &test_err));
    assert_string_equal(got.name, "Some CPU");

    const rft_linear_desc d = rft_test_desc();
    rft_plan *plan = NULL;
    OK(rft_plan_create(ctx, &d, &plan, &test_err));
    rft_plan_info info = rft_plan_info_init();
    assert_int_equal(rft_plan_get_info(plan, 1, &info), RFT_OK);
    assert_string_equal(info.bound, "memory");
    assert_float_equal(info.bound_seconds, info.bytes / 10e9, 1e-12);
    rft_plan_free(plan);
    rft_ctx_free(ctx);

    strcpy(m.device, "cuda");
    OK(rft_machine_save(&m, damaged, &test_err));
    BAD_OPTIONS(RFT_E_ARG, "describes device \"cuda\"", profile = damaged);
}

/* ---- what a context says ---- */

static void test_device_info(void **state) {
    (void)state;
    rft_ctx_options o = rft_test_options(NULL);
    o.max_isa = "ref";
    rft_ctx *ctx = NULL;
    OK(rft_ctx_create("cpu", &o, &ctx, &test_err));
    rft_device_info info = {.struct_size = sizeof info};
    assert_int_equal(rft_ctx_get_device(ctx, &info), RFT_OK);
    assert_int_equal(info.threads, 2);
    assert_string_equal(info.isa, "ref");
    assert_true(info.memory > 0);
    assert_int_equal(info.struct_size, sizeof info);
    info.struct_size = 0;
    assert_int_equal(rft_ctx_get_device(ctx, &info), RFT_E_ARG);
    assert_int_equal(rft_ctx_get_device(ctx, NULL), RFT_E_ARG);
    REFUSED(RFT_E_ARG, "machine", rft_ctx_get_machine(ctx, NULL, &test_err));
    rft_ctx_free(ctx);
}

static rft_status count_call(void *user, uint32_t i, void *stream, rft_error *err) {
    (void)stream, (void)err;
    *(uint32_t *)user += i + 1;
    return RFT_OK;
}

static void test_memory_and_time(void **state) {
    (void)state;
    const rft_ctx_options o = rft_test_options(NULL);
    rft_ctx *ctx = NULL;
    OK(rft_ctx_create("cpu", &o, &ctx, &test_err));
    char byte = 1;
    void *p = NULL;
    REFUSED(RFT_E_ARG, "ctx is NULL", rft_memory_alloc(NULL, 1, &p, &test_err));
    REFUSED(RFT_E_ARG, "p is NULL", rft_memory_alloc(ctx, 1, NULL, &test_err));
    REFUSED(RFT_E_ARG, "ctx is NULL", rft_memory_write(NULL, &byte, &byte, 1, &test_err));
    REFUSED(RFT_E_ARG, "dst is NULL and bytes = 1", rft_memory_write(ctx, NULL, &byte, 1, &test_err));
    REFUSED(RFT_E_ARG, "src is NULL and bytes = 1", rft_memory_read(ctx, &byte, NULL, 1, &test_err));
    REFUSED(RFT_E_ARG, "dst is NULL and bytes = 1", rft_memory_fill(ctx, NULL, 0, 1, &test_err));
    OK(rft_memory_read(ctx, NULL, NULL, 0, &test_err));
    REFUSED(RFT_E_ARG, "ctx is NULL", rft_ctx_sync(NULL, NULL, &test_err));
    uint32_t calls = 0;
    rft_timing timing = {.struct_size = sizeof timing};
    REFUSED(RFT_E_ARG, "ctx is NULL", rft_measure_calls(NULL, count_call, &calls, 1, &timing, &test_err));
    REFUSED(RFT_E_ARG, "call is NULL", rft_measure_calls(ctx, NULL, &calls, 1, &timing, &test_err));
    REFUSED(RFT_E_ARG, "timing", rft_measure_calls(ctx, count_call, &calls, 1, NULL, &test_err));
    OK(rft_measure_calls(ctx, count_call, &calls, 0, &timing, &test_err));
    assert_int_equal(calls, 0);
    rft_ctx_free(ctx);
}

static void test_bytes_of_a_type(void **state) {
    (void)state;
    assert_int_equal(rft_type_bytes(RFT_F32, 3), 12);
    assert_int_equal(rft_type_bytes(RFT_GGUF_Q4_0, 33), 36);
    assert_int_equal(rft_type_bytes(RFT_F32, -1), 0);
    assert_int_equal(rft_type_bytes(RFT_F32, INT64_MAX), 0);
    assert_int_equal(rft_type_bytes(RFT_F32, INT64_MAX / 4), (size_t)(INT64_MAX / 4) * 4);
    assert_int_equal(rft_type_bytes(RFT_F32, INT64_MAX / 4 + 1), 0);
    assert_int_equal(rft_type_bytes((rft_type)999, 1), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_devices),
        cmocka_unit_test(test_null),
        cmocka_unit_test(test_options),
        cmocka_unit_test(test_option_sizes),
        cmocka_unit_test(test_named_profile_must_be_good),
        cmocka_unit_test(test_cache_folder_is_no_condition),
        cmocka_unit_test(test_a_number_of_threads_that_is_none),
        cmocka_unit_test(test_profile_of_the_cache_folder),
        cmocka_unit_test(test_device_info),
        cmocka_unit_test(test_memory_and_time),
        cmocka_unit_test(test_bytes_of_a_type),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
