/* SPDX-License-Identifier: Apache-2.0
 *
 * test_plan.c - plans over a backend that only counts: how often it is asked to choose, what becomes of a fallback,
 * and that every choice is freed once.
 */
#include "plan/plan.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

struct rft__choice {
    int number;
};

static rft__choice choices[64];
static int chosen, freed;
static rft_status choose_status;
static const char *fallback;

static rft_status choose(rft__device *device, const rft__problem *p, const char *forced, rft__choice **out, rft_error *err) {
    (void)device;
    (void)p;
    (void)forced;
    if (choose_status != RFT_OK) {
        RFT_FAIL(err, choose_status, "no kernel");
    }
    choices[chosen].number = chosen;
    *out = &choices[chosen++];
    return RFT_OK;
}

static void choice_free(rft__device *device, rft__choice *choice) {
    (void)device;
    assert_true(choice->number >= 0); /* not freed before */
    choice->number = -1;
    freed++;
}

static void choice_info(const rft__choice *choice, int64_t m, rft_plan_info *info) {
    assert_true(choice->number >= 0);
    info->kernel = m == 1 ? "gemv_fake" : "gemm_fake";
    info->workspace = 640;
}

static const char *choice_fallback(const rft__choice *choice) {
    (void)choice;
    return fallback;
}

static void choice_explain(const rft__choice *choice, int64_t m, rft__text *text) {
    rft__text_add(text, "candidate %d at m = %lld\n", choice->number, (long long)m);
}

static uint64_t weight_layout(const rft__matrix *w) { return (uint64_t)w->n; }

static const rft__backend fake = {.name = "fake",
                                  .weight_layout = weight_layout,
                                  .choose = choose,
                                  .choice_free = choice_free,
                                  .choice_info = choice_info,
                                  .choice_fallback = choice_fallback,
                                  .choice_explain = choice_explain};

static rft_ctx ctx;
static char log_line[1024];

static void keep(void *user, rft_log_level level, const char *line) {
    (void)user;
    (void)level;
    snprintf(log_line, sizeof log_line, "%s", line);
}

static int open_ctx(void **state) {
    (void)state;
    chosen = freed = 0;
    choose_status = RFT_OK;
    fallback = NULL;
    log_line[0] = '\0';
    ctx = (rft_ctx){
        .allocator = rft__allocator_default(), .backend = &fake, .threads = 2, .log = {.callback = keep, .level = RFT_LOG_HINT}};
    return rft__plan_cache_init(&ctx.cache) ? 0 : -1;
}

static int close_ctx(void **state) {
    (void)state;
    rft__plan_cache_destroy(&ctx.cache);
    return freed == chosen ? 0 : -1;
}

static rft__problem layer(int64_t n) {
    rft_linear_desc d = rft_linear_desc_init();
    d.x = d.y = d.w.elem = RFT_F32;
    d.w.n = n;
    d.w.k = 8;
    d.m_min = 1;
    d.m_max = 4;
    rft__problem p;
    assert_int_equal(rft__problem_make(&p, &d, NULL), RFT_OK);
    return p;
}

static rft_plan *plan_of(int64_t n, const char *forced) {
    const rft__problem p = layer(n);
    rft_plan *plan = NULL;
    assert_int_equal(rft__plan_make(&ctx, &p, forced, &plan, NULL), RFT_OK);
    return plan;
}

static void test_equal_plans_choose_once(void **state) {
    (void)state;
    rft_plan *a = plan_of(16, NULL), *b = plan_of(16, NULL), *c = plan_of(32, NULL);
    assert_int_equal(chosen, 2);
    assert_ptr_equal(a->choice, b->choice);
    assert_int_equal(a->workspace, 640);
    assert_int_equal(a->weight_layout, 16);
    rft__plan_drop(a);
    assert_int_equal(freed, 0);
    rft__plan_drop(b);
    assert_int_equal(freed, 1);
    rft__plan_drop(c);
}

static void test_forced_plans_share_nothing(void **state) {
    (void)state;
    rft_plan *a = plan_of(16, NULL), *b = plan_of(16, "gemm_fake"), *c = plan_of(16, "gemm_fake");
    assert_int_equal(chosen, 3);
    rft__plan_drop(b);
    rft_plan *d = plan_of(16, NULL);
    assert_ptr_equal(d->choice, a->choice);
    rft__plan_drop(a);
    rft__plan_drop(c);
    rft__plan_drop(d);
}

static void test_a_refusal_leaves_nothing(void **state) {
    (void)state;
    const rft__problem p = layer(16);
    rft_plan *plan = NULL;
    rft_error err = {0};
    choose_status = RFT_E_UNSUPPORTED;
    assert_int_equal(rft__plan_make(&ctx, &p, NULL, &plan, &err), RFT_E_UNSUPPORTED);
    assert_string_equal(err.message, "no kernel");
    choose_status = RFT_OK;
    rft__plan_drop(plan_of(16, NULL));
    assert_int_equal(chosen, 1);
}

static void test_a_fallback_is_a_hint(void **state) {
    (void)state;
    fallback = "k = 7 is not a multiple of 8";
    rft__plan_drop(plan_of(16, NULL));
    assert_non_null(strstr(log_line, "hint,fallback,m=1..4 n=16"));
    assert_non_null(strstr(log_line, fallback));
}

static void test_a_backend_without_fallbacks(void **state) {
    (void)state;
    rft__backend bare = fake;
    bare.choice_fallback = NULL;
    fallback = "nobody asks";
    ctx.backend = &bare;
    ctx.strict = true;
    rft__plan_drop(plan_of(16, NULL));
    ctx.backend = &fake;
}

static void test_a_fallback_is_an_error_when_strict(void **state) {
    (void)state;
    fallback = "k = 7 is not a multiple of 8";
    ctx.strict = true;
    const rft__problem p = layer(16);
    rft_plan *plan = NULL;
    rft_error err = {0};
    assert_int_equal(rft__plan_make(&ctx, &p, NULL, &plan, &err), RFT_E_UNSUPPORTED);
    assert_null(plan);
    assert_non_null(strstr(err.message, fallback));
    rft__plan_drop(plan_of(16, "gemm_ref")); /* asked for by name, so no fallback */
}

static void test_explain(void **state) {
    (void)state;
    rft_plan *plan = plan_of(16, NULL);
    char buf[1024];
    rft__text text = {buf, sizeof buf, 0};
    rft__plan_explain(plan, 2, &text);
    const char want[] = "m=1..4 n=16 k=8 x=f32 w=f32 y=f32 layout=nt epi=none\n"
                        "candidate 0 at m = 2\n"
                        "work: 512 FLOP, 704 B (x 64 B, w 512 B, y 128 B, operands 0 B), 0.727 FLOP/B\n"
                        "bound: unknown";
    assert_memory_equal(buf, want, sizeof want - 1);
    rft__plan_drop(plan);
}

static void test_info(void **state) {
    (void)state;
    rft_plan *plan = plan_of(16, NULL);
    rft_plan_info info;
    rft__plan_info(plan, 1, &info);
    assert_string_equal(info.kernel, "gemv_fake");
    assert_string_equal(info.bound, "unknown");
    assert_int_equal(info.workspace_align, 64);
    assert_float_equal(info.flops, 256, 0);
    rft__plan_drop(plan);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_ctx, close_ctx)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_equal_plans_choose_once),
        TEST(test_forced_plans_share_nothing),
        TEST(test_a_refusal_leaves_nothing),
        TEST(test_a_fallback_is_a_hint),
        TEST(test_a_backend_without_fallbacks),
        TEST(test_a_fallback_is_an_error_when_strict),
        TEST(test_explain),
        TEST(test_info),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
