/* SPDX-License-Identifier: Apache-2.0
 *
 * test_gpu_context.c - contexts on a GPU: many of them one after the other and at once, on a context of the caller's, in a forked
 * child, with a part of the multiprocessors; and what is refused, in which words.
 */
#define _GNU_SOURCE 1
#include "gpu_test.h"

#include <sys/wait.h>

enum { N = 520, K = 256, CYCLES = 200, SETTLED = 20 /* cycles until the driver's own pools are full */ };

static rft_ctx *open_with(const rft_ctx_options *o) {
    rft_ctx *ctx = NULL;
    OK(rft_ctx_create("cuda:0", o, &ctx, &test_err));
    return ctx;
}

/* Plan, weight, run and proof in ctx, which stands in for the tests' own meanwhile. */
static void use(rft_ctx *ctx, rft_type type, int64_t m) {
    const rft_linear_desc d = gpu_desc(type, m, N, K);
    rft_ctx *const usual = gpu;
    gpu = ctx;
    gpu_layer l = gpu_make(&d, NULL, m, 1);
    gpu_run(&l);
    gpu_prove(&l, 0);
    gpu_free(&l);
    gpu_drop(NULL);
    gpu = usual;
}

/* ---- many contexts ---- */

static void test_create_and_free(void **state) {
    const rft_ctx_options o = gpu_options(NULL);
    size_t settled = 0;
    (void)state;
    gpu_driver_needed();
    for (int i = 0; i < CYCLES; i++) {
        gpu_watch(0, "context %d", i);
        rft_ctx *const ctx = open_with(&o);
        use(ctx, RFT_BF16, 1 + i % 2 * 40);
        rft_ctx_free(ctx);
        settled = i == SETTLED ? gpu_memory_free() : settled;
    }
    assert_true(gpu_memory_free() + ((size_t)2 << 20) >= settled);
}

/* A weight packed in one context serves a plan of another. */
static void test_several_at_once(void **state) {
    enum { CONTEXTS = 4 };
    const rft_ctx_options o = gpu_options(NULL);
    const rft_linear_desc d = gpu_desc(RFT_F16, 5, N, K);
    rft_ctx *ctx[CONTEXTS];
    (void)state;
    gpu_needed();
    gpu_layer first = gpu_make(&d, NULL, 5, 1);
    gpu_run(&first);
    for (int i = 0; i < CONTEXTS; i++) {
        gpu_layer other = first;
        ctx[i] = open_with(&o);
        OK(rft_plan_create(ctx[i], &d, &other.plan, &test_err));
        other.args.y = gpu_filled(0xff, first.y_bytes);
        OK(rft_linear_run(other.plan, &other.args, &test_err));
        OK(rft_ctx_sync(ctx[i], NULL, &test_err));
        gpu_assert_equal(first.args.y, other.args.y, first.y_bytes);
        rft_plan_free(other.plan);
    }
    for (int i = 0; i < CONTEXTS; i++) {
        rft_ctx_free(ctx[i]);
    }
    gpu_run(&first);
    gpu_prove(&first, 0);
    gpu_free(&first);
}

static void test_callers_context(void **state) {
    rft_ctx_options o = gpu_options(NULL);
    void *now = NULL, *caller = NULL;
    (void)state;
    gpu_driver_needed();
    CU(cu.cuCtxCreate_v2(&caller, 0, 0));
    CU(cu.cuCtxSetCurrent(NULL)); /* takes what the creation put on the thread's stack off again */
    CU(cu.cuCtxSetCurrent(gpu_primary));
    o.cuda_context = caller;
    rft_ctx *const ctx = open_with(&o);
    use(ctx, RFT_BF16, 3);
    CU(cu.cuCtxGetCurrent(&now));
    assert_ptr_equal(now, gpu_primary);
    CU(cu.cuCtxSetCurrent(NULL)); /* as on a thread that never met the driver */
    use(ctx, RFT_BF16, 130);
    CU(cu.cuCtxGetCurrent(&now));
    assert_null(now);
    rft_ctx_free(ctx);
    CU(cu.cuCtxSetCurrent(caller)); /* it is the caller's still */
    (void)gpu_memory_free();
    CU(cu.cuCtxDestroy_v2(caller));
    CU(cu.cuCtxSetCurrent(gpu_primary));
    use(gpu, RFT_BF16, 3);
}

/* ---- fork ---- */

static const gpu_layer *forked;

static bool refuses(rft_status status, const rft_error *err) {
    return status == RFT_E_DEVICE && err->status == RFT_E_DEVICE && strlen(err->message) > 10;
}

/* In the child: 0 where everything is refused and nothing hangs. */
static int child(void) {
    rft_error err = {0};
    rft_ctx *ctx = NULL;
    void *p = NULL;
    const rft_ctx_options o = gpu_options(NULL);
    int wrong = !refuses(rft_linear_run(forked->plan, &forked->args, &err), &err);
    wrong |= refuses(rft_ctx_sync(gpu, NULL, &err), &err) ? 0 : 2;
    wrong |= refuses(rft_memory_alloc(gpu, 64, &p, &err), &err) ? 0 : 4;
    wrong |= refuses(rft_ctx_create("cuda:0", &o, &ctx, &err), &err) ? 0 : 8;
    rft_memory_free(gpu, forked->args.y, forked->y_bytes);
    rft_plan_free(forked->plan);
    rft_weight_free(forked->weight);
    rft_ctx_free(gpu);
    return wrong;
}

static void test_fork(void **state) {
    const rft_linear_desc d = gpu_desc(RFT_BF16, 7, N, K);
    (void)state;
    gpu_needed();
    gpu_layer l = gpu_make(&d, NULL, 7, 1);
    gpu_run(&l);
    forked = &l;
    gpu_watch(0, "a forked child");
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        alarm(20);
        _exit(child());
    }
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    gpu_fill(l.args.y, 0xff, l.y_bytes);
    gpu_run(&l); /* and the parent goes on */
    gpu_prove(&l, 0);
    gpu_free(&l);
}

/* ---- a part of the multiprocessors ---- */

static void test_sm_limit(void **state) {
    static const uint32_t limits[] = {1, 7, 64, UINT32_MAX};
    static const int64_t rows[] = {1, 16, 130, 700};
    rft_device_info whole = {.struct_size = sizeof whole}, part = whole;
    (void)state;
    gpu_needed();
    assert_int_equal(rft_ctx_get_device(gpu, &whole), RFT_OK);
    for (int i = 0; i < 4; i++) {
        rft_ctx_options o = gpu_options(NULL);
        o.sm_limit = limits[i];
        rft_ctx *const ctx = open_with(&o);
        assert_int_equal(rft_ctx_get_device(ctx, &part), RFT_OK);
        assert_int_equal(part.sms, limits[i] < (uint32_t)whole.sms ? (int)limits[i] : whole.sms);
        for (int j = 0; j < 4 && limits[i] < (uint32_t)whole.sms; j++) {
            gpu_watch(0, "sm_limit=%u m=%lld", limits[i], (long long)rows[j]);
            use(ctx, RFT_BF16, rows[j]);
            use(ctx, RFT_F32, rows[j]); /* FMA tiles by blocks that take them in turn */
        }
        rft_ctx_free(ctx);
    }
}

/* ---- refusals ---- */

static void test_devices(void **state) {
    rft_ctx *ctx = NULL;
    const rft_ctx_options o = gpu_options(NULL);
    (void)state;
    gpu_needed();
    REFUSED(RFT_E_DEVICE, "device = \"cuda:99\": there ", rft_ctx_create("cuda:99", &o, &ctx, &test_err));
    assert_null(ctx);
}

static void test_pointers(void **state) {
    const rft_linear_desc d = gpu_desc(RFT_BF16, 16, N, K);
    (void)state;
    gpu_needed();
    gpu_layer l = gpu_make(&d, NULL, 16, 1);
    char *const x = gpu_random(RFT_BF16, 16 * K + 8, 9);
    l.args.x = x + 1;
    REFUSED(RFT_E_ARG, "args.x = ", rft_linear_run(l.plan, &l.args, &test_err));
    for (int byte = 2; byte <= 16; byte += 2) {
        gpu_fill(l.args.y, 0xff, l.y_bytes);
        l.args.x = x + byte;
        gpu_run(&l);
        gpu_prove(&l, 0);
    }
    l.args.y = (char *)l.args.y + 1;
    REFUSED(RFT_E_ARG, "args.y = ", rft_linear_run(l.plan, &l.args, &test_err));
    gpu_free(&l);
}

/* Hopper rows of each family name the rule that odd rows break, and run even ones still. */
static void test_forced_and_unaligned(void **state) {
    rft_kernel_info info;
    int n = 0;
    (void)state;
    gpu_needed();
    for (uint32_t i = 0; gpu_next_kernel(&i, &info);) {
        if (strcmp(info.isa, "sm_90a") != 0 || info.x != RFT_BF16 || info.nr != 128 || (info.mr != 16 && info.mr != 128)) {
            continue;
        }
        gpu_watch(0, "%s unaligned", info.name);
        const rft_linear_desc d = gpu_desc_of(&info, 8, 64, 64);
        gpu_layer l = gpu_make(&d, info.name, 8, 1);
        const void *const good = l.args.x;
        l.args.ldx = 65;
        REFUSED(RFT_E_UNSUPPORTED, "ldx and its batch stride must be multiples of 16 bytes",
                rft_linear_run(l.plan, &l.args, &test_err));
        assert_non_null(strstr(test_err.message, info.name));
        l.args.ldx = 64;
        l.args.x = (const char *)good + 2;
        REFUSED(RFT_E_UNSUPPORTED, "multiples of 16 bytes", rft_linear_run(l.plan, &l.args, &test_err));
        l.args.x = good;
        gpu_run(&l);
        gpu_prove(&l, 0);
        gpu_free(&l);
        gpu_drop(NULL);
        n++;
    }
    print_message("%d rows\n", n);
}

/* Operands that only the slower kernel takes: said once a plan, and an error where the context is strict. */

static atomic_int hints;

static void count_hints(void *user, rft_log_level level, const char *line) {
    (void)user;
    atomic_fetch_add(&hints, level == RFT_LOG_HINT && strstr(line, "fallback") != NULL);
}

static void test_unaligned_is_said(void **state) {
    const rft_linear_desc d = gpu_desc(RFT_BF16, 300, N, K);
    rft_ctx *const usual = gpu;
    (void)state;
    gpu_needed();
    for (int strict = 0; strict < 2; strict++) {
        rft_ctx_options o = gpu_options(NULL);
        o.log = count_hints;
        o.log_level = RFT_LOG_HINT;
        o.flags = strict ? RFT_CTX_STRICT : 0;
        atomic_store(&hints, 0);
        gpu = open_with(&o);
        gpu_layer l = gpu_make(&d, NULL, 300, 1);
        l.args.x = gpu_random(RFT_BF16, 300 * (K + 1), 5);
        l.args.ldx = K + 1;
        if (strict) {
            REFUSED(RFT_E_UNSUPPORTED, "RFT_CTX_STRICT", rft_linear_run(l.plan, &l.args, &test_err));
        } else {
            gpu_run(&l);
            gpu_prove(&l, 0);
            gpu_run(&l);
        }
        assert_int_equal(atomic_load(&hints), strict ? 0 : 1);
        gpu_free(&l);
        gpu_drop(NULL);
        rft_ctx_free(gpu);
        gpu = usual;
    }
}

static void test_sizes(void **state) {
    static const int64_t big = (int64_t)1 << 31;
    rft_plan *plan = NULL;
    (void)state;
    gpu_needed();
    const rft_linear_desc m = gpu_desc(RFT_BF16, big, 8, 8), n = gpu_desc(RFT_BF16, 1, big, 8), k = gpu_desc(RFT_BF16, 1, 8, big);
    REFUSED(RFT_E_UNSUPPORTED, "desc.m_max = 2147483648", rft_plan_create(gpu, &m, &plan, &test_err));
    REFUSED(RFT_E_UNSUPPORTED, "desc.w.n = 2147483648", rft_plan_create(gpu, &n, &plan, &test_err));
    REFUSED(RFT_E_UNSUPPORTED, "desc.w.k = 2147483648", rft_plan_create(gpu, &k, &plan, &test_err));
    void *p = NULL;
    REFUSED(RFT_E_NOMEM, "no device memory", rft_memory_alloc(gpu, (size_t)1 << 46, &p, &test_err));
    assert_null(p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_create_and_free, gpu_drop),
        cmocka_unit_test_teardown(test_several_at_once, gpu_drop),
        cmocka_unit_test_teardown(test_callers_context, gpu_drop),
        cmocka_unit_test_teardown(test_fork, gpu_drop),
        cmocka_unit_test_teardown(test_sm_limit, gpu_drop),
        cmocka_unit_test_teardown(test_devices, gpu_drop),
        cmocka_unit_test_teardown(test_pointers, gpu_drop),
        cmocka_unit_test_teardown(test_forced_and_unaligned, gpu_drop),
        cmocka_unit_test_teardown(test_unaligned_is_said, gpu_drop),
        cmocka_unit_test_teardown(test_sizes, gpu_drop),
    };
    return cmocka_run_group_tests(tests, gpu_open, gpu_close);
}
