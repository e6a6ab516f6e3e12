/* SPDX-License-Identifier: Apache-2.0
 *
 * test_invariance.c - which bits may not change: with RFT_BATCH_INVARIANT a row's bits depend on neither m, the other rows, the
 * plan's range nor the threads; without it the same plan and inputs give the same bits, whoever runs the items and in any order.
 */
#include "loops.h"
#include "product.h"

enum { MOST_M = 70, N = 36, K = 1030, THREAD_COUNTS = 5 };

static const uint32_t thread_counts[THREAD_COUNTS] = {1, 2, 3, 4, 7};
static levels l;
static float x[MOST_M * K], w[N * K], want[MOST_M * N], y[MOST_M * N];

static int make_all(void **state) {
    (void)state;
    rft_test_levels(&l);
    return 0;
}

static void make_operands(rft_type type) {
    rft_test_random(type, x, MOST_M * K, 1);
    rft_test_random(type, w, N * K, 2);
}

/* A plan for m_min..m_max rows of x from `row` on; y gets them at their place in the whole. */
static product rows_of(rft_ctx *ctx, rft_type type, int64_t row, int64_t m, uint32_t flags) {
    product p = rft_test_dense(ctx, type, m, N, K);
    p.desc.flags = flags;
    p.args.x = rft_test_at(type, x, row * K);
    p.args.y = y + row * N;
    p.w = w;
    return p;
}

static void assert_rows(int64_t row, int64_t m) { assert_memory_equal(y + row * N, want + row * N, (size_t)(m * N) * sizeof *y); }

/* ---- batch invariance ---- */

/* One plan for 1..70 rows, run at each m, and plans for a few m alone. */
static void every_m(rft_ctx *ctx, rft_type type) {
    product p = rows_of(ctx, type, 0, MOST_M, RFT_BATCH_INVARIANT);
    p.desc.m_min = 1;
    p.desc.m_max = MOST_M;
    prepared r = rft_test_prepare(&p);
    for (int64_t m = 1; m <= MOST_M; m++) {
        memset(y, 0xff, sizeof y);
        r.args.m = m;
        OK(rft_linear_run(r.plan, &r.args, &test_err));
        assert_rows(0, m);
    }
    rft_test_discard(&r);
}

static void plans_of_their_own(rft_ctx *ctx, rft_type type) {
    static const int64_t rows[] = {0, 1, 15, 41, 69}, counts[] = {1, 9, 54, 17, 1};
    for (int i = 0; i < 5; i++) {
        const product p = rows_of(ctx, type, rows[i], counts[i], RFT_BATCH_INVARIANT);
        memset(y, 0xff, sizeof y);
        rft_test_run(&p);
        assert_rows(rows[i], counts[i]);
    }
}

static void other_rows(rft_ctx *ctx, rft_type type) {
    const product p = rows_of(ctx, type, 0, MOST_M, RFT_BATCH_INVARIANT);
    for (int64_t m = 0; m < MOST_M; m++) {
        for (int64_t k = 0; k < K && m % 10 != 3; k++) {
            rft_test_set(type, x, m * K + k, k % 2 == 0 ? NAN : INFINITY);
        }
    }
    rft_test_run(&p);
    for (int64_t m = 3; m < MOST_M; m += 10) {
        assert_rows(m, 1);
    }
    make_operands(type);
}

static void invariant_at(const char *isa, rft_type type) {
    make_operands(type);
    for (int i = 0; i < THREAD_COUNTS; i++) {
        rft_ctx *const ctx = rft_test_context(isa, thread_counts[i]);
        if (i == 0) {
            const product p = rows_of(ctx, type, 0, MOST_M, RFT_BATCH_INVARIANT);
            rft_test_prove(&p);
            memcpy(want, y, sizeof y);
        }
        every_m(ctx, type);
        plans_of_their_own(ctx, type);
        other_rows(ctx, type);
        rft_ctx_free(ctx);
    }
}

static void test_batch_invariant(void **state) {
    (void)state;
    for (int i = 0; i < l.count; i++) {
        for (int t = 0; t < TEST_TYPES; t++) {
            invariant_at(l.name[i], test_types[t]);
        }
    }
}

/* ---- the same call again ---- */

static void test_twice_the_same(void **state) {
    (void)state;
    static const int64_t rows[] = {1, 5, 33, 70};
    rft_ctx *const ctx = rft_test_context(NULL, 4);
    for (int t = 0; t < TEST_TYPES; t++) {
        make_operands(test_types[t]);
        for (int i = 0; i < 4; i++) {
            const product p = rows_of(ctx, test_types[t], 0, rows[i], 0);
            rft_test_run(&p);
            memcpy(want, y, sizeof y);
            memset(y, 0xff, sizeof y);
            rft_test_run(&p);
            assert_rows(0, rows[i]);
        }
    }
    rft_ctx_free(ctx);
}

/* ---- the caller's parallel_for ---- */

static void test_parallel_for(void **state) {
    (void)state;
    int items = 0;
    for (int i = 0; i < LOOPS * TEST_TYPES; i++) {
        const rft_type type = test_types[i / LOOPS];
        rft_ctx_options o = rft_test_options(NULL);
        rft_ctx *ctx = NULL;
        o.threads = 8;
        o.parallel_for = test_loops[i % LOOPS];
        o.user = &items;
        OK(rft_ctx_create("cpu", &o, &ctx, &test_err));
        make_operands(type);
        const product some = rows_of(ctx, type, 0, 21, 0), one = rows_of(ctx, type, 21, 1, 0);
        rft_test_run(&some);
        rft_test_run(&one);
        if (i % LOOPS == 0) {
            memcpy(want, y, sizeof y);
        }
        assert_rows(0, 22);
        rft_ctx_free(ctx);
    }
    assert_true(items >= TEST_TYPES * 8);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_batch_invariant),
        cmocka_unit_test(test_twice_the_same),
        cmocka_unit_test(test_parallel_for),
    };
    return cmocka_run_group_tests(tests, make_all, NULL);
}
