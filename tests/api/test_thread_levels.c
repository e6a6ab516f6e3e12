/* SPDX-License-Identifier: Apache-2.0
 *
 * test_thread_levels.c - contexts of every ISA cap at work at the same time, each with a pool of its own, on the same X and W:
 * every level's result is within its bound. K is over the threads of each. Runs under ThreadSanitizer too (label tsan).
 */
#include "product.h"

#include <pthread.h>

enum { M = 3, N = 33, K = 2100, ROUNDS = 10 };

static levels l;
static float x[M * K], w[N * K];

typedef struct work {
    rft_ctx *ctx;
    prepared ready;
    float y[M * N], first[M * N];
    bool right;
    pthread_t thread;
} work;

/* cmocka's checks belong to the main thread; a thread only notes whether all was well. */
static void *run_level(void *arg) {
    work *const wk = arg;
    wk->right = rft_linear_run(wk->ready.plan, &wk->ready.args, NULL) == RFT_OK;
    memcpy(wk->first, wk->y, sizeof wk->y);
    for (int i = 0; i < ROUNDS && wk->right; i++) {
        memset(wk->y, 0xff, sizeof wk->y);
        wk->right =
            rft_linear_run(wk->ready.plan, &wk->ready.args, NULL) == RFT_OK && memcmp(wk->y, wk->first, sizeof wk->y) == 0;
    }
    return NULL;
}

static void test_levels_at_once(void **state) {
    (void)state;
    static work works[TEST_LEVELS];
    rft_test_levels(&l);
    for (int t = 0; t < TEST_TYPES; t++) {
        rft_test_random(test_types[t], x, M * K, 1);
        rft_test_random(test_types[t], w, N * K, 2);
        for (int i = 0; i < l.count; i++) {
            works[i].ctx = rft_test_context(l.name[i], 6);
            product p = rft_test_dense(works[i].ctx, test_types[t], M, N, K);
            p.args.x = x;
            p.args.y = works[i].y;
            p.w = w;
            works[i].ready = rft_test_prepare(&p);
        }
        for (int i = 0; i < l.count; i++) {
            assert_int_equal(pthread_create(&works[i].thread, NULL, run_level, &works[i]), 0);
        }
        for (int i = 0; i < l.count; i++) {
            rft_verify_result v = {.struct_size = sizeof v};
            pthread_join(works[i].thread, NULL);
            assert_true(works[i].right);
            OK(rft_verify(works[i].ready.plan, &works[i].ready.args, w, 0, 1, &v, &test_err));
            assert_true(v.worst <= 1);
            rft_test_discard(&works[i].ready);
            rft_ctx_free(works[i].ctx);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_levels_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
