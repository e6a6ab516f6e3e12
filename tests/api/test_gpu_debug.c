/* SPDX-License-Identifier: Apache-2.0
 *
 * test_gpu_debug.c - debug builds on a GPU: kernels of each family run with every access checked, and are right; the sums that
 * they dump are what they store, and parts of k add up to them, bit by bit.
 */
#include "gpu_test.h"

enum { N = 392, K = 4168, PARTS = 8, EVERY = 5 /* row of the table, and the first of a family */ };

static rft_ctx *usual;

/* A context with a dump stands in for the tests' own. */
static void enter(const char *dump) {
    const rft_ctx_options o = gpu_options(NULL);
    usual = gpu;
    setenv("RFT_KERNEL_DEBUG", "1", 1);
    setenv("RFT_KERNEL_DUMP", dump, 1);
    OK(rft_ctx_create("cuda:0", &o, &gpu, &test_err));
    unsetenv("RFT_KERNEL_DEBUG");
    unsetenv("RFT_KERNEL_DUMP");
}

static void leave(void) {
    gpu_drop(NULL);
    rft_ctx_free(gpu);
    gpu = usual;
}

static bool first_of_family(const rft_kernel_info *info) {
    static char last[16];
    const bool same = strncmp(last, info->name, 9) == 0; /* gemm_sm90, gemm_simt, gemv_bf16, stream_sm */
    snprintf(last, sizeof last, "%.9s", info->name);
    return !same;
}

/* One dump of the row's sums, for the caller to free, and y in *y if that is not NULL. */
static float *dump_of(const rft_linear_desc *d, const char *kernel, int64_t m, void **y) {
    gpu_layer l = gpu_make(d, kernel, m, 1);
    assert_int_equal(l.args.workspace_bytes, (size_t)(m * d->w.n) * sizeof(float));
    gpu_run(&l);
    gpu_prove(&l, 0);
    if (y != NULL) {
        *y = gpu_fetch(l.args.y, l.y_bytes);
    }
    float *const sums = gpu_fetch(l.args.workspace, l.args.workspace_bytes);
    gpu_free(&l);
    return sums;
}

static void check_row(const rft_kernel_info *info, rft_type y_type) {
    const int64_t most = gpu_most_m(info), m = most < 150 ? most : 150;
    rft_linear_desc d = gpu_desc_of(info, m, N, K);
    void *y = NULL;
    d.y = y_type;
    gpu_watch(0, "%s, a debug build, y of type %d", info->name, (int)y_type);
    float *const sums = dump_of(&d, info->name, m, &y);
    for (int64_t i = 0; i < m * N; i++) {
        const double stored = rft_test_get(y_type, y, i), sum = (double)sums[i], ulp = y_type == RFT_F32 ? 0.0 : 0x1p-8;
        if (!(fabs(stored - sum) <= ulp * fabs(sum))) {
            fail_msg("%s: sum %lld is %g, y %g", info->name, (long long)i, sum, stored);
        }
    }
    free(sums);
    free(y);
}

static void test_sums(void **state) {
    rft_kernel_info info;
    int rows = 0;
    (void)state;
    gpu_needed();
    enter("acc");
    for (uint32_t i = 0; gpu_next_kernel(&i, &info);) {
        if (first_of_family(&info) || i % EVERY == 0) {
            check_row(&info, rows++ % 2 ? RFT_F32 : RFT_BF16);
            gpu_drop(NULL);
        }
    }
    leave();
    print_message("%d rows\n", rows);
    assert_true(rows > 4);
}

/* A part that a sum has not is left as it was: NaN. */
static void check_parts(const char *kernel, int64_t m) {
    rft_linear_desc d = gpu_desc(RFT_BF16, m, N, K);
    float *total = NULL;
    d.y = RFT_F32;
    for (int part = 0; part < PARTS; part++) {
        char name[16];
        snprintf(name, sizeof name, "part%d", part);
        gpu_watch(0, "%s of %s", name, kernel);
        enter(name);
        float *const own = dump_of(&d, kernel, m, NULL);
        leave();
        int64_t there = 0;
        for (int64_t i = 0; total != NULL && i < m * N; i++) {
            there += !isnan(own[i]);
            total[i] = isnan(own[i]) ? total[i] : total[i] + own[i];
        }
        free(total != NULL ? own : NULL);
        if (total != NULL && there == 0) { /* nor has any sum a later one, which is seconds of compiling each */
            break;
        }
        total = total != NULL ? total : own;
    }
    enter("acc");
    float *const whole = dump_of(&d, kernel, m, NULL);
    leave();
    assert_memory_equal(total, whole, (size_t)(m * N) * sizeof *whole);
    free(total);
    free(whole);
}

static void test_parts(void **state) {
    rft_kernel_info info;
    (void)state;
    gpu_needed();
    for (uint32_t i = 0; gpu_next_kernel(&i, &info);) {
        if (info.x == RFT_BF16 && info.w == RFT_BF16 && first_of_family(&info)) {
            check_parts(info.name, gpu_most_m(&info) < 100 ? gpu_most_m(&info) : 100);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_sums, gpu_drop),
        cmocka_unit_test_teardown(test_parts, gpu_drop),
    };
    return cmocka_run_group_tests(tests, gpu_open, gpu_close);
}
