/* SPDX-License-Identifier: Apache-2.0
 *
 * test_thread_shares.c - parts in shares for whoever is ready: y has the bits of one thread, whoever takes which, in lists
 * too. Runs under ThreadSanitizer as well (label tsan).
 */
#include "loops.h"
#include "product.h"

enum { THREADS = 3, MOST_X = 640 * 1024, MOST_W = 2 * 1056 * 512, MOST_Y = 2 * 130 * 1056, LIST = 3 };

static float x[MOST_X], w[MOST_W], want[MOST_Y], y[LIST][MOST_Y];

static rft_ctx *context_of(int loop) {
    rft_ctx_options o = rft_test_options(NULL);
    rft_ctx *ctx = NULL;
    o.threads = THREADS;
    o.parallel_for = test_loops[loop];
    OK(rft_ctx_create("cpu", &o, &ctx, &test_err));
    return ctx;
}

/* ---- products ---- */

/* Parts of three threads that are cut in columns, in rows, pairs of gate and up in columns, and columns of two products, of which
 * one part has some of both. */
typedef struct shape {
    int64_t m, n, k, batch;
    bool glu;
} shape;

static const shape shapes[] = {
    {130, 1056, 512, 1, false}, {640, 200, 1024, 1, false}, {96, 2048, 384, 1, true}, {130, 1056, 512, 2, false}};
enum { SHAPES = sizeof shapes / sizeof *shapes };

static product product_of(rft_ctx *ctx, const shape *s, rft_type type, float *out) {
    product p = rft_test_dense(ctx, type, s->m, s->n, s->k);
    if (s->glu) {
        static const rft_epi_op op = {.kind = RFT_EPI_SWIGLU};
        p.desc.w.flags = RFT_WEIGHT_GLU_HALVES;
        p.desc.epi = &op;
        p.desc.n_epi = 1;
    }
    p.desc.batch = p.desc.w.batch = s->batch;
    p.args.x = x;
    p.args.y = out;
    p.w = w;
    return p;
}

static size_t bytes_of(const shape *s) { return (size_t)(s->batch * s->m * s->n) / (s->glu ? 2 : 1) * sizeof(float); }

static void make_want(const shape *s, rft_type type) {
    rft_ctx *one = rft_test_context(NULL, 1);
    rft_test_random(type, x, s->batch * s->m * s->k, 1);
    rft_test_random(type, w, s->batch * s->n * s->k, 2);
    const product p = product_of(one, s, type, want);
    rft_test_run(&p);
    rft_ctx_free(one);
}

static void test_bits(void **state) {
    (void)state;
    for (int i = 0; i < SHAPES * TEST_TYPES * LOOPS; i++) {
        const shape *s = shapes + i / (TEST_TYPES * LOOPS);
        const rft_type type = test_types[i / LOOPS % TEST_TYPES];
        if (i % LOOPS == 0) {
            make_want(s, type);
        }
        rft_ctx *ctx = context_of(i % LOOPS);
        const product p = product_of(ctx, s, type, y[0]);
        memset(y[0], 0xff, sizeof y[0]);
        rft_test_run(&p);
        assert_memory_equal(y[0], want, bytes_of(s));
        rft_ctx_free(ctx);
    }
}

/* Equal products in one list: each has shares of its own. */
static void test_list(void **state) {
    (void)state;
    const shape *s = shapes;
    make_want(s, RFT_F32);
    for (int loop = 0; loop < LOOPS; loop++) {
        rft_ctx *ctx = context_of(loop);
        prepared r[LIST];
        const rft_plan *plans[LIST];
        rft_linear_args args[LIST];
        memset(y, 0xff, sizeof y);
        for (int i = 0; i < LIST; i++) {
            const product p = product_of(ctx, s, RFT_F32, y[i]);
            r[i] = rft_test_prepare(&p);
            plans[i] = r[i].plan;
            args[i] = r[i].args;
        }
        OK(rft_run_list(plans, args, LIST, &test_err));
        for (int i = 0; i < LIST; i++) {
            assert_memory_equal(y[i], want, bytes_of(s));
            rft_test_discard(r + i);
        }
        rft_ctx_free(ctx);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bits),
        cmocka_unit_test(test_list),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
