/* SPDX-License-Identifier: Apache-2.0
 *
 * test_amx.c - the level amx over the stand-in of its instructions, through the public API: what is chosen, who owns the tiles of
 * a thread, rows of X that are copied first, and one order of summation for all m. check.rooftile_check_amx proves the numbers.
 */
#include "amx_level.c"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "amx_plans.h"

#include <pthread.h>

enum { N = 80, K = 2048, MOST = 200, LD = K + 32, ALIGN = 64 };

static uint16_t *x, *w; /* x: MOST x LD, w: N x K */
static void *packed, *workspace;
static float *y;

static rft_ctx *open_level(uint32_t threads, void (*parallel_for)(void *, int, void (*)(void *, int), void *)) {
    rft_ctx_options o = rft_ctx_options_init();
    rft_ctx *ctx = NULL;
    o.threads = threads;
    o.max_isa = "amx";
    o.cache_dir = "/nonexistent";
    o.parallel_for = parallel_for;
    OK(rft_ctx_create("cpu", &o, &ctx, &err));
    return ctx;
}

static rft_linear_desc describe(int64_t m_min, int64_t m_max, uint32_t flags) {
    rft_linear_desc d = rft_linear_desc_init();
    d.x = RFT_BF16;
    d.y = RFT_F32;
    d.w.elem = RFT_BF16;
    d.w.n = N;
    d.w.k = K;
    d.m_min = m_min;
    d.m_max = m_max;
    d.flags = flags;
    return d;
}

/* Rows of x at ldx, product into y. */
static void run(rft_ctx *ctx, const rft_linear_desc *d, int64_t m, const void *rows, int64_t ldx) {
    rft_plan_info info = rft_plan_info_init();
    rft_weight_src src = rft_weight_src_init();
    rft_linear_args args = rft_linear_args_init();
    rft_plan *plan = NULL;
    rft_weight *weight = NULL;
    size_t bytes = 0;
    src.q = w;
    OK(rft_plan_create(ctx, d, &plan, &err));
    OK(rft_plan_get_info(plan, m, &info));
    OK(rft_weight_bytes(ctx, &d->w, &bytes, &err));
    packed = realloc(packed, bytes + ALIGN);
    workspace = realloc(workspace, info.workspace + ALIGN);
    OK(rft_weight_pack(ctx, &d->w, &src, (char *)packed + ALIGN - (uintptr_t)packed % ALIGN, NULL, &weight, &err));
    args.m = m;
    args.x = rows;
    args.ldx = ldx;
    args.y = y;
    args.weight = weight;
    args.workspace = (char *)workspace + ALIGN - (uintptr_t)workspace % ALIGN;
    args.workspace_bytes = info.workspace;
    memset(y, 0xff, (size_t)(m * d->w.n) * sizeof *y);
    OK(rft_linear_run(plan, &args, &err));
    rft_weight_free(weight);
    rft_plan_free(plan);
}

static void test_choice(void **state) {
    (void)state;
    rft_ctx *ctx = open_level(1, NULL);
    rft_linear_desc d = describe(1, 4096, 0);
    assert_false(is_amx(kernel_at(ctx, &d, 1)));
    assert_string_equal(kernel_at(ctx, &d, 16), "gemm_bf16_bf16_f32_16x64_amx");
    assert_string_equal(kernel_at(ctx, &d, 32), "gemm_bf16_bf16_f32_32x32_amx");
    assert_string_equal(kernel_at(ctx, &d, 4096), "gemm_bf16_bf16_f32_32x32_amx");
    d.flags = RFT_BATCH_INVARIANT;
    assert_true(is_amx(kernel_at(ctx, &d, 1)));
    d.compute = RFT_COMPUTE_F32;
    assert_false(is_amx(kernel_at(ctx, &d, 16)));
    d.compute = RFT_COMPUTE_AUTO;
    d.w.elem = RFT_F16;
    assert_false(is_amx(kernel_at(ctx, &d, 16)));
    rft_ctx_free(ctx);
}

/* Palette 1, one tile: what a program may have configured for itself. */
static const unsigned char callers[64] = {[0] = 1, [16] = 32, [48] = 7};

static void test_caller(void **state) {
    (void)state;
    rft_ctx *ctx = open_level(1, NULL);
    const rft_linear_desc d = describe(16, 16, 0);
    static const unsigned char none[64];
    const long before = rft__standin_here.products;
    run(ctx, &d, 16, x, LD);
    assert_true(rft__standin_here.products > before);
    assert_memory_equal(rft__standin_here.config, none, sizeof none);
    rft__standin_configure(callers);
    run(ctx, &d, 16, x, LD);
    assert_memory_equal(rft__standin_here.config, callers, sizeof callers);
    rft__standin_release();
    rft_ctx_free(ctx);
}

typedef struct item {
    void (*task)(void *, int);
    void *arg;
    int i;
} item;

/* A thread of another's pool: had no tiles before, worked with them, and has none afterwards. */
static void *run_item_alone(void *arg) {
    const item *it = arg;
    static const unsigned char none[64];
    it->task(it->arg, it->i);
    assert_memory_equal(rft__standin_here.config, none, sizeof none);
    return NULL;
}

static void in_threads(void *user, int n, void (*task)(void *, int), void *arg) {
    (void)user;
    for (int i = 0; i < n; i++) {
        item it = {task, arg, i};
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, run_item_alone, &it), 0);
        pthread_join(thread, NULL);
    }
}

static void test_threads(void **state) {
    (void)state;
    rft_ctx *ctx = open_level(3, in_threads);
    const rft_linear_desc d = describe(MOST, MOST, 0);
    run(ctx, &d, MOST, x, LD);
    rft_ctx_free(ctx);
}

/* Rows a multiple of 2 KiB apart are copied, others are read where they lie, MN-contiguous ones are turned: the same numbers. */
static void test_rows(void **state) {
    (void)state;
    rft_ctx *ctx = open_level(3, NULL);
    rft_linear_desc d = describe(MOST, MOST, 0);
    uint16_t *const packed_rows = malloc((size_t)MOST * K * 2), *const turned = malloc((size_t)MOST * K * 2);
    float *const want = malloc((size_t)MOST * N * sizeof *want);
    for (int r = 0; r < MOST; r++) {
        for (int k = 0; k < K; k++) {
            packed_rows[r * K + k] = turned[k * MOST + r] = x[r * LD + k];
        }
    }
    run(ctx, &d, MOST, x, LD);
    memcpy(want, y, (size_t)MOST * N * sizeof *want);
    run(ctx, &d, MOST, packed_rows, K);
    assert_memory_equal(y, want, (size_t)MOST * N * sizeof *want);
    d.x_order = RFT_MN_CONTIGUOUS;
    run(ctx, &d, MOST, turned, MOST);
    assert_memory_equal(y, want, (size_t)MOST * N * sizeof *want);
    free(packed_rows);
    free(turned);
    free(want);
    rft_ctx_free(ctx);
}

/* More rows than one copy holds, so each thread turns its own: k = 2 of 350000 rows, as straight rows give. */
static void test_many_rows(void **state) {
    (void)state;
    enum { MANY = 360000, PAIR = 2 };
    rft_ctx *ctx = open_level(2, NULL);
    rft_linear_desc d = describe(MANY, MANY, 0);
    uint16_t *const rows = malloc((size_t)MANY * PAIR * 2), *const turned = malloc((size_t)MANY * PAIR * 2);
    float *const want = malloc((size_t)MANY * sizeof *want), *const small = y;
    d.w.n = 1;
    d.w.k = PAIR;
    OK(rft_fill_random(RFT_BF16, rows, (int64_t)MANY * PAIR, 3, &err));
    for (int i = 0; i < MANY * PAIR; i++) {
        turned[i % PAIR * MANY + i / PAIR] = rows[i];
    }
    y = want;
    run(ctx, &d, MANY, rows, PAIR);
    y = malloc((size_t)MANY * sizeof *y);
    d.x_order = RFT_MN_CONTIGUOUS;
    run(ctx, &d, MANY, turned, MANY);
    assert_memory_equal(y, want, (size_t)MANY * sizeof *want);
    free(y);
    free(want);
    free(rows);
    free(turned);
    y = small;
    rft_ctx_free(ctx);
}

static void test_invariance(void **state) {
    (void)state;
    static const int64_t sizes[] = {1, 4, 5, 17, 33};
    rft_ctx *ctx = open_level(3, NULL);
    rft_linear_desc d = describe(1, MOST, RFT_BATCH_INVARIANT);
    float *const want = malloc((size_t)MOST * N * sizeof *want);
    run(ctx, &d, MOST, x, LD);
    memcpy(want, y, (size_t)MOST * N * sizeof *want);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        run(ctx, &d, sizes[i], x, LD);
        assert_memory_equal(y, want, (size_t)sizes[i] * N * sizeof *want);
    }
    free(want);
    rft_ctx_free(ctx);
}

static int set_up(void **state) {
    (void)state;
    x = malloc((size_t)MOST * LD * 2);
    w = malloc((size_t)N * K * 2);
    y = malloc((size_t)MOST * N * sizeof *y);
    OK(rft_fill_random(RFT_BF16, x, (int64_t)MOST * LD, 1, &err));
    OK(rft_fill_random(RFT_BF16, w, (int64_t)N * K, 2, &err));
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    free(x);
    free(w);
    free(y);
    free(packed);
    free(workspace);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_choice), cmocka_unit_test(test_caller),     cmocka_unit_test(test_threads),
        cmocka_unit_test(test_rows),   cmocka_unit_test(test_many_rows),  cmocka_unit_test(test_invariance),
    };
    if (!rft__isa_available("amx")) {
        print_message("skipped: the level below amx is missing (%s)\n", rft__cpu_isa_missing());
        return 0;
    }
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
