/* SPDX-License-Identifier: Apache-2.0
 *
 * test_numerics.c - the promises of docs/numerics.md about single values, at every ISA level: what is never read, where NaN and
 * Inf go, empty sizes, denormals, signs of zero, overflow, and y as its own residual.
 */
#define _GNU_SOURCE 1
#include "product.h"

#include <float.h>
#include <sys/mman.h>

enum { M = 31, N = 35, K = 69, MOST = 70000 };

static levels l;
static rft_ctx *contexts[TEST_LEVELS];
static void *unreadable; /* MOST floats that fault */
static float x[MOST], w[MOST], y[MOST], other[MOST];

static int make_all(void **state) {
    (void)state;
    rft_test_levels(&l);
    for (int i = 0; i < l.count; i++) {
        contexts[i] = rft_test_context(l.name[i], 2);
    }
    unreadable = mmap(NULL, MOST * sizeof(float), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return unreadable != MAP_FAILED ? 0 : -1;
}

static int free_all(void **state) {
    (void)state;
    for (int i = 0; i < l.count; i++) {
        rft_ctx_free(contexts[i]);
    }
    return munmap(unreadable, MOST * sizeof(float));
}

/* Calls for each level and type of x and w, with random operands. */
static void each(void (*test)(product *p, rft_type type)) {
    for (int i = 0; i < l.count; i++) {
        for (int t = 0; t < TEST_TYPES; t++) {
            product p = rft_test_dense(contexts[i], test_types[t], M, N, K);
            rft_test_random(test_types[t], x, M * K, 1);
            rft_test_random(test_types[t], w, N * K, 2);
            p.args.x = x;
            p.args.y = y;
            p.w = w;
            memset(y, 0xff, sizeof y);
            test(&p, test_types[t]);
        }
    }
}

static void assert_finite(int64_t count) {
    for (int64_t i = 0; i < count; i++) {
        assert_true(isfinite(y[i]));
    }
}

/* ---- what is not read ---- */

static void beta_zero(product *p, rft_type type) {
    (void)type;
    const rft_epi_op add = {.kind = RFT_EPI_ADD, .type = RFT_F32, .beta = 0};
    const rft_operand operand = {.ptr = unreadable};
    rft_test_run(p);
    memcpy(other, y, M * N * sizeof *y);
    p->desc.epi = &add;
    p->desc.n_epi = 1;
    p->args.operand = &operand;
    p->args.n_operand = 1;
    memset(y, 0xff, sizeof y);
    rft_test_run(p);
    assert_memory_equal(y, other, M * N * sizeof *y);
}

static void test_beta_zero_reads_no_operand(void **state) {
    (void)state;
    each(beta_zero);
}

static void assert_bias(const float *bias) {
    for (int i = 0; i < M * N; i++) {
        assert_true(y[i] == bias[i % N]);
    }
}

static void alpha_zero(product *p, rft_type type) {
    const rft_epi_op op = {.kind = RFT_EPI_BIAS, .type = RFT_F32};
    const rft_operand operand = {.ptr = other};
    rft_test_random(RFT_F32, other, N, 3);
    p->desc.flags = RFT_ALPHA | RFT_W_DYNAMIC;
    p->desc.alpha = 0;
    p->desc.epi = &op;
    p->desc.n_epi = 1;
    p->args.operand = &operand;
    p->args.n_operand = 1;
    p->args.x = p->args.w = unreadable;
    rft_test_run(p);
    assert_bias(other);
    p->args.x = p->args.w = NULL;
    memset(y, 0xff, sizeof y);
    rft_test_run(p);
    assert_bias(other);
    p->desc.flags = RFT_ALPHA;
    for (int i = 0; i < N * K; i++) {
        rft_test_set(type, w, i, NAN);
    }
    p->args.x = unreadable;
    memset(y, 0xff, sizeof y);
    rft_test_run(p);
    assert_bias(other);
}

static void test_alpha_zero_reads_no_operand(void **state) {
    (void)state;
    each(alpha_zero);
}

/* A packed W that faults: not even its bytes are touched. */
static void test_alpha_zero_reads_no_packed_weight(void **state) {
    (void)state;
    const size_t bytes = MOST * sizeof(float);
    void *const storage = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(storage != MAP_FAILED);
    product p = rft_test_dense(contexts[l.count - 1], RFT_BF16, M, N, K);
    p.desc.flags = RFT_ALPHA | RFT_W_DYNAMIC; /* prepared without a weight */
    prepared r = rft_test_prepare(&p);
    rft_plan_free(r.plan);
    p.desc.flags = RFT_ALPHA;
    p.desc.m_max = M;
    rft_weight_src src = rft_weight_src_init();
    src.q = w;
    OK(rft_plan_create(p.ctx, &p.desc, &r.plan, &test_err));
    OK(rft_weight_pack(p.ctx, &p.desc.w, &src, storage, NULL, &r.packed.weight, &test_err));
    assert_int_equal(mprotect(storage, bytes, PROT_NONE), 0);
    r.args.weight = r.packed.weight;
    r.args.x = unreadable;
    r.args.y = y;
    memset(y, 0xff, sizeof y);
    OK(rft_linear_run(r.plan, &r.args, &test_err));
    for (int i = 0; i < M * N; i++) {
        assert_true(y[i] == 0);
    }
    rft_test_discard(&r);
    munmap(storage, bytes);
}

/* ---- NaN and Inf ---- */

/* y with x[m][k] = value: row m is no longer finite, all else keeps its bits. */
static void spoil_row(product *p, rft_type type, int m, int k, float value) {
    const float kept = rft_test_get(type, x, m * K + k);
    rft_test_set(type, x, m * K + k, value);
    rft_test_run(p);
    for (int i = 0; i < M * N; i++) {
        if (i / N == m) {
            assert_false(isfinite(y[i]));
        } else {
            assert_memory_equal(y + i, other + i, sizeof *y);
        }
    }
    rft_test_set(type, x, m * K + k, kept);
}

static void spoil_column(product *p, rft_type type, int n, int k, float value) {
    const float kept = rft_test_get(type, w, n * K + k);
    rft_test_set(type, w, n * K + k, value);
    rft_test_run(p);
    for (int i = 0; i < M * N; i++) {
        if (i % N == n) {
            assert_false(isfinite(y[i]));
        } else {
            assert_memory_equal(y + i, other + i, sizeof *y);
        }
    }
    rft_test_set(type, w, n * K + k, kept);
}

static void one_bad_value(product *p, rft_type type) {
    rft_test_run(p);
    assert_finite(M * N);
    memcpy(other, y, M * N * sizeof *y);
    for (int i = 0; i < 6; i++) {
        const float value = i % 3 == 0 ? NAN : i % 3 == 1 ? INFINITY : -INFINITY;
        spoil_row(p, type, i * 6, i % 2 == 0 ? K - 1 : i * 11, value);
        spoil_column(p, type, i * 7 - i / 5, i % 2 == 0 ? K - 1 : i * 13, value);
    }
}

static void test_a_bad_value_stays_in_its_row_and_column(void **state) {
    (void)state;
    each(one_bad_value);
}

/* 0 * Inf and Inf - Inf are NaN; Inf + finite is Inf. */
static void infinities(product *p, rft_type type) {
    p->args.m = 3;
    for (int i = 0; i < 3 * K; i++) {
        rft_test_set(type, x, i, 1);
    }
    for (int i = 0; i < N * K; i++) {
        rft_test_set(type, w, i, 0.5f);
    }
    rft_test_set(type, x, 0 * K + 3, INFINITY);
    rft_test_set(type, x, 1 * K + 3, INFINITY);
    rft_test_set(type, x, 1 * K + K - 1, -INFINITY);
    rft_test_set(type, w, 1 * K + 3, 0);
    rft_test_run(p);
    assert_true(y[0 * N + 0] == INFINITY);
    assert_true(isnan(y[0 * N + 1]));
    assert_true(isnan(y[1 * N + 0]));
    assert_true(y[2 * N + 0] == 0.5f * K);
}

static void test_infinities(void **state) {
    (void)state;
    each(infinities);
}

/* ---- empty sizes ---- */

static void no_k(product *p, rft_type type) {
    (void)type;
    const rft_epi_op ops[] = {{.kind = RFT_EPI_BIAS, .type = RFT_F32}, {.kind = RFT_EPI_SCALE, .alpha = 2}};
    const rft_operand operand = {.ptr = other};
    rft_test_random(RFT_F32, other, N, 3);
    p->desc.w.k = 0;
    p->desc.epi = ops;
    p->desc.n_epi = 2;
    p->args.operand = &operand;
    p->args.n_operand = 1;
    p->args.x = NULL;
    rft_test_run(p);
    for (int i = 0; i < M * N; i++) {
        assert_true(y[i] == 2 * other[i % N]);
    }
}

static void test_no_k_is_the_epilogue_of_zeros(void **state) {
    (void)state;
    each(no_k);
}

static void no_y(product *p, rft_type type) {
    (void)type;
    p->args.y = unreadable;
    p->args.m = 0;
    rft_test_run(p);
    p->args.m = M;
    p->desc.w.n = 0;
    rft_test_run(p);
    p->args.x = p->args.y = NULL;
    rft_test_run(p);
}

static void test_no_m_or_no_n_writes_nothing(void **state) {
    (void)state;
    each(no_y);
}

/* ---- small and large values ---- */

static void one_by_one(product *p, int64_t m) {
    p->args.m = m;
    p->desc.w.n = 1;
    p->desc.w.k = 1;
}

static uint32_t bits_of(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* f32 keeps denormals of x, of w, of products and of y; f16 has none in f32. */
static void test_f32_denormals(void **state) {
    (void)state;
    static const float values[] = {0x1p-149f, 0x1.8p-140f, -0x1p-127f, 0x1.fffffcp-127f, FLT_MIN};
    for (int i = 0; i < l.count; i++) {
        product p = rft_test_dense(contexts[i], RFT_F32, 5, 1, 1);
        const float one = 1, half = 0.5f;
        p.args.x = values;
        p.args.y = y;
        p.w = &one;
        rft_test_run(&p);
        assert_memory_equal(y, values, sizeof values);
        p.w = &half;
        rft_test_run(&p);
        assert_true(bits_of(y[1]) == bits_of(0x1.8p-141f) && bits_of(y[4]) == bits_of(0x1p-127f));
        p.args.x = &one;
        p.args.m = 1;
        p.desc.w.n = 5;
        p.w = values;
        rft_test_run(&p);
        assert_memory_equal(y, values, sizeof values);
    }
}

static void test_f16_denormals(void **state) {
    (void)state;
    static const uint16_t values[] = {1, 0x8003, 0x3ff, 0x400}, one = 0x3c00;
    for (int i = 0; i < l.count; i++) {
        uint16_t out[4];
        product p = rft_test_dense(contexts[i], RFT_F16, 4, 1, 1);
        p.desc.y = RFT_F16;
        p.args.x = values;
        p.args.y = out;
        p.w = &one;
        rft_test_run(&p);
        assert_memory_equal(out, values, sizeof values);
    }
}

/* RFT_COMPUTE_F32 keeps bf16 denormals exactly; AUTO may flush them, by no more than its eta. */
static void test_bf16_denormals(void **state) {
    (void)state;
    static const uint16_t values[] = {1, 0x8003, 0x7f, 0x80}, one = 0x3f80;
    for (int i = 0; i < l.count; i++) {
        uint16_t out[4];
        product p = rft_test_dense(contexts[i], RFT_BF16, 4, 1, 1);
        p.desc.y = RFT_BF16;
        p.args.x = values;
        p.args.y = out;
        p.w = &one;
        rft_test_prove(&p);
        p.desc.compute = RFT_COMPUTE_F32;
        rft_test_prove(&p);
        assert_memory_equal(out, values, sizeof values);
    }
}

/* Sums start from +0; an op may make a -0, which every type of y keeps. */
static void negative_zero(product *p, rft_type type) {
    static const rft_epi_op ops[] = {{.kind = RFT_EPI_SCALE, .alpha = -1}, {.kind = RFT_EPI_RELU}};
    one_by_one(p, 2);
    rft_test_set(type, x, 0, -0.0f);
    rft_test_set(type, x, 1, 0.0f);
    rft_test_set(type, w, 0, 1.0f);
    rft_test_run(p);
    assert_true(bits_of(y[0]) == 0 && bits_of(y[1]) == 0);
    p->desc.epi = ops;
    p->desc.n_epi = 2;
    for (int t = 0; t < TEST_TYPES; t++) {
        p->desc.y = test_types[t];
        rft_test_run(p);
        assert_true(bits_of(rft_test_get(test_types[t], y, 0)) == 0x80000000u);
        assert_true(bits_of(rft_test_get(test_types[t], y, 1)) == 0x80000000u);
    }
}

static void test_negative_zero(void **state) {
    (void)state;
    each(negative_zero);
}

/* What is beyond the largest value of y's type becomes Inf, with its sign; what is not, stays. */
static void overflow(product *p, rft_type type) {
    static const float values[] = {0x1.fep15f, 0x1p15f, -0x1p15f, 0x1p14f};
    static const struct {
        rft_type y;
        float w;
        uint16_t want[4];
    } cases[] = {
        {RFT_F16, 1, {0x7bf8, 0x7800, 0xf800, 0x7400}},
        {RFT_F16, 2, {0x7c00, 0x7c00, 0xfc00, 0x7800}},
        {RFT_BF16, 2, {0x47ff, 0x4780, 0xc780, 0x4700}},
    };
    one_by_one(p, 4);
    for (int i = 0; i < 4; i++) {
        rft_test_set(type, x, i, values[i]);
    }
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        rft_test_set(type, w, 0, cases[c].w);
        p->desc.y = cases[c].y;
        rft_test_run(p);
        assert_memory_equal(y, cases[c].want, sizeof cases[c].want);
    }
}

static void test_16_bit_overflow(void **state) {
    (void)state;
    each(overflow);
}

/* Sums beyond FLT_MAX are Inf, and y of bf16 rounds to Inf from 2^128 (1 - 2^-9) on. */
static void test_f32_overflow(void **state) {
    (void)state;
    static const float values[] = {FLT_MAX, -FLT_MAX, 0x1.fep127f, 0x1.fefffep127f, 0x1.ffp127f};
    static const uint16_t want[] = {0x7f80, 0xff80, 0x7f7f, 0x7f7f, 0x7f80};
    for (int i = 0; i < l.count; i++) {
        uint16_t out[5];
        const float ones[] = {1, 1}, two = 2;
        product p = rft_test_dense(contexts[i], RFT_F32, 5, 1, 1);
        p.args.x = values;
        p.args.y = y;
        p.w = &two;
        rft_test_run(&p);
        assert_true(y[0] == INFINITY && y[1] == -INFINITY && y[2] == INFINITY);
        p.desc.y = RFT_BF16;
        p.args.y = out;
        p.w = ones;
        rft_test_run(&p);
        assert_memory_equal(out, want, sizeof want);
    }
}

/* ---- y as an operand ---- */

/* y = x w + y and y = (x w) * y, in place, against the same with a copy as the operand. */
static void in_place(product *p, rft_epi_kind kind, int64_t ld) {
    const int64_t m = p->args.m, columns = ld * (m - 1) + p->desc.w.n;
    const rft_epi_op op = {.kind = kind, .type = p->desc.y, .beta = 0.5f};
    rft_operand operand = {.ptr = other, .ld = ld};
    static float start[MOST];
    rft_test_random(p->desc.y, start, columns, 5);
    memcpy(other, start, sizeof start);
    memcpy(y, start, sizeof start);
    p->desc.epi = &op;
    p->desc.n_epi = 1;
    p->args.operand = &operand;
    p->args.n_operand = 1;
    p->args.ldy = ld;
    p->args.y = y;
    rft_test_run(p);
    memcpy(other, start, sizeof start);
    operand.ptr = p->args.y = other;
    rft_test_run(p);
    assert_memory_equal(y, other, (size_t)columns * rft_test_size(p->desc.y));
}

static void residual(product *p, rft_type type) {
    rft_ctx *const many = rft_test_context(NULL, 8), *const few = p->ctx;
    for (int t = 0; t < TEST_TYPES; t++) {
        p->desc.y = test_types[t];
        p->ctx = few;
        p->args.m = M;
        p->desc.w.n = N;
        p->desc.w.k = K;
        rft_test_random(type, x, M * K, 1);
        rft_test_random(type, w, N * K, 2);
        in_place(p, RFT_EPI_ADD, N);
        in_place(p, RFT_EPI_MUL, N + 6);
        p->ctx = many; /* several passes over K, then K over threads */
        p->desc.w.k = 2000;
        rft_test_random(type, x, M * 2000, 1);
        rft_test_random(type, w, N * 2000, 2);
        in_place(p, RFT_EPI_ADD, N);
        p->args.m = 2;
        p->desc.w.n = 17;
        in_place(p, RFT_EPI_ADD, 17);
    }
    rft_ctx_free(many);
}

static void test_y_in_place(void **state) {
    (void)state;
    each(residual);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_beta_zero_reads_no_operand),
        cmocka_unit_test(test_alpha_zero_reads_no_operand),
        cmocka_unit_test(test_alpha_zero_reads_no_packed_weight),
        cmocka_unit_test(test_a_bad_value_stays_in_its_row_and_column),
        cmocka_unit_test(test_infinities),
        cmocka_unit_test(test_no_k_is_the_epilogue_of_zeros),
        cmocka_unit_test(test_no_m_or_no_n_writes_nothing),
        cmocka_unit_test(test_f32_denormals),
        cmocka_unit_test(test_f16_denormals),
        cmocka_unit_test(test_bf16_denormals),
        cmocka_unit_test(test_negative_zero),
        cmocka_unit_test(test_16_bit_overflow),
        cmocka_unit_test(test_f32_overflow),
        cmocka_unit_test(test_y_in_place),
    };
    return cmocka_run_group_tests(tests, make_all, free_all);
}
