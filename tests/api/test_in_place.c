/* SPDX-License-Identifier: Apache-2.0
 *
 * test_in_place.c - which kernels read a W that is not packed where it lies, that they are right at awkward sizes and beside
 * the end of readable memory, and that batch-invariant plans keep the bits of packed W.
 */
#define _GNU_SOURCE 1
#include "product.h"

#include <sys/mman.h>

enum { MOST_M = 5, MOST_N = 96, MOST_K = 130, PAGE = 4096, ROOM = 64 * PAGE };

static levels l;
static char *w_end; /* the first byte that faults */
static float x[MOST_M * MOST_K], y[MOST_M * MOST_N], again[MOST_M * MOST_N];

static int make_all(void **state) {
    (void)state;
    rft_test_levels(&l);
    char *const room = mmap(NULL, ROOM + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    w_end = room + ROOM;
    return room != MAP_FAILED ? mprotect(w_end, PAGE, PROT_NONE) : -1;
}

/* W's last element is the last one that can be read. */
static product given(rft_ctx *ctx, rft_type type, rft_order order, int64_t m, int64_t n, int64_t k) {
    product p = rft_test_dense(ctx, type, m, n, k);
    p.desc.w.order = order;
    p.desc.flags = RFT_W_DYNAMIC;
    p.w = p.args.w = w_end - n * k * (int64_t)rft_test_size(type);
    p.args.x = x;
    p.args.y = y;
    rft_test_random(type, x, m * k, 1);
    rft_test_random(type, w_end - n * k * (int64_t)rft_test_size(type), n * k, 2);
    return p;
}

static bool runs(const product *p, const char *op) {
    rft_plan_info info = rft_plan_info_init();
    prepared r = rft_test_prepare(p);
    OK(rft_plan_get_info(r.plan, p->args.m, &info));
    const bool same = strncmp(info.kernel, op, strlen(op)) == 0;
    rft_test_discard(&r);
    return same;
}

/* level 0 is the portable one, which packs. */
static void test_every_order_and_type(void **state) {
    (void)state;
    static const char *const ops[] = {[RFT_K_CONTIGUOUS] = "dot_", [RFT_MN_CONTIGUOUS] = "axpy_"};
    for (int i = 0; i < l.count * TEST_TYPES * 2; i++) {
        rft_ctx *const ctx = rft_test_context(l.name[i / 6], 2);
        const rft_order order = (rft_order)(i % 2);
        for (int m = 1; m <= MOST_M; m++) {
            for (int64_t n = 33; n <= MOST_N; n += 21) {
                const product p = given(ctx, test_types[i / 2 % 3], order, m, n, m % 2 == 0 ? MOST_K : 45);
                assert_int_equal(runs(&p, ops[order]), strcmp(l.name[i / 6], "ref") != 0);
                rft_test_prove(&p);
            }
        }
        rft_ctx_free(ctx);
    }
}

static void test_view(void **state) {
    (void)state;
    for (int i = 0; i < l.count * 2; i++) {
        rft_ctx *const ctx = rft_test_context(l.name[i / 2], 1);
        product p = given(ctx, RFT_BF16, (rft_order)(i % 2), 3, 49, 77);
        p.desc.flags = 0;
        p.desc.w.flags = RFT_WEIGHT_VIEW;
        p.args.w = NULL;
        rft_test_prove(&p);
        rft_ctx_free(ctx);
    }
}

/* Batch-invariant plans never sum in lanes: dynamic W gives the bits of packed W. */
static void test_invariant_bits(void **state) {
    (void)state;
    for (int i = 0; i < l.count * 4; i++) {
        rft_ctx *const ctx = rft_test_context(l.name[i / 4], 2);
        product p = given(ctx, i / 2 % 2 == 0 ? RFT_F32 : RFT_F16, (rft_order)(i % 2), 3, 41, 67);
        p.desc.flags = RFT_W_DYNAMIC | RFT_BATCH_INVARIANT;
        assert_false(runs(&p, "dot_"));
        rft_test_run(&p);
        memcpy(again, y, sizeof y);
        p.desc.flags = RFT_BATCH_INVARIANT;
        p.args.w = NULL;
        rft_test_run(&p);
        assert_memory_equal(again, y, 3 * 41 * sizeof *y);
        rft_ctx_free(ctx);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_order_and_type),
        cmocka_unit_test(test_view),
        cmocka_unit_test(test_invariant_bits),
    };
    return cmocka_run_group_tests(tests, make_all, NULL);
}
