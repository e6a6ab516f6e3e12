/* SPDX-License-Identifier: Apache-2.0
 *
 * test_growth.c - making and freeing objects again and again holds on to nothing: neither memory from the hooks, nor
 * pages of the process, nor threads and files.
 */
#define _GNU_SOURCE 1
#include "api_test.h"

#include <dirent.h>
#include <stdio.h>
#include <unistd.h>

enum { PLANS = 100000, CONTEXTS = 1000 };

static rft_test_memory memory;

static rft_ctx *open_ctx(void) {
    const rft_ctx_options o = rft_test_options(&memory);
    rft_ctx *ctx = NULL;
    OK(rft_ctx_create("cpu", &o, &ctx, &test_err));
    return ctx;
}

static long resident_pages(void) {
    long total = 0, resident = 0;
    FILE *const f = fopen("/proc/self/statm", "r");
    assert_non_null(f);
    assert_int_equal(fscanf(f, "%ld %ld", &total, &resident), 2);
    fclose(f);
    return resident;
}

/* Sanitizers keep freed memory back, so under them only the hooks count. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define PAGES_TELL 0
#elif defined(__has_feature)
#define PAGES_TELL !(__has_feature(address_sanitizer) || __has_feature(thread_sanitizer))
#else
#define PAGES_TELL 1
#endif

static int entries(const char *folder) {
    DIR *const d = opendir(folder);
    assert_non_null(d);
    int count = 0;
    while (readdir(d) != NULL) {
        count++;
    }
    closedir(d);
    return count;
}

static void plan_round(rft_ctx *ctx, int i) {
    rft_linear_desc d = rft_test_desc();
    d.w.n = 16 * (1 + i % 7);
    rft_plan *plan = NULL;
    OK(rft_plan_create(ctx, &d, &plan, &test_err));
    rft_plan_free(plan);
}

static void test_plans(void **state) {
    (void)state;
    rft_ctx *const ctx = open_ctx();
    const long long bytes = atomic_load(&memory.bytes), blocks = atomic_load(&memory.blocks);
    for (int i = 0; i < PLANS / 10; i++) { /* until the system's allocator has what it needs */
        plan_round(ctx, i);
    }
    const long pages = resident_pages();
    for (int i = 0; i < PLANS; i++) {
        plan_round(ctx, i);
    }
    assert_int_equal(atomic_load(&memory.bytes), bytes);
    assert_int_equal(atomic_load(&memory.blocks), blocks);
    assert_true(!PAGES_TELL || resident_pages() <= pages + 64);
    rft_ctx_free(ctx);
    assert_int_equal(atomic_load(&memory.bytes), 0);
}

static void test_contexts(void **state) {
    (void)state;
    for (int i = 0; i < CONTEXTS / 10; i++) {
        rft_ctx_free(open_ctx());
    }
    const long pages = resident_pages();
    const int threads = entries("/proc/self/task"), files = entries("/proc/self/fd");
    for (int i = 0; i < CONTEXTS; i++) {
        rft_ctx_free(open_ctx());
    }
    assert_int_equal(atomic_load(&memory.bytes), 0);
    assert_int_equal(atomic_load(&memory.blocks), 0);
    assert_int_equal(entries("/proc/self/task"), threads);
    assert_int_equal(entries("/proc/self/fd"), files);
    assert_true(!PAGES_TELL || resident_pages() <= pages + 256);
}

static void test_failed_calls(void **state) {
    (void)state;
    rft_ctx *const ctx = open_ctx();
    const long long bytes = atomic_load(&memory.bytes);
    for (int i = 0; i < CONTEXTS; i++) {
        rft_linear_desc d = rft_test_desc();
        d.w.ld = 1;
        rft_plan *plan = NULL;
        REFUSED(RFT_E_ARG, "desc.w.ld = 1", rft_plan_create(ctx, &d, &plan, &test_err));
        d.w.ld = 0;
        REFUSED(RFT_E_ARG, "nobody", rft_plan_create_forced(ctx, &d, "nobody", &plan, &test_err));
    }
    assert_int_equal(atomic_load(&memory.bytes), bytes);
    rft_ctx_free(ctx);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plans),
        cmocka_unit_test(test_contexts),
        cmocka_unit_test(test_failed_calls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
