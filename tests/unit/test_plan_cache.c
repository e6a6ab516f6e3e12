/* SPDX-License-Identifier: Apache-2.0
 *
 * test_plan_cache.c - equal problems find one entry, for as long as somebody uses it, whatever their hashes.
 */
#include "plan/plan_cache.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdlib.h>

enum { THREADS = 8, ROUNDS = 2000, PROBLEMS = 5 };

static rft__plan_cache cache;

static int make_cache(void **state) {
    (void)state;
    return rft__plan_cache_init(&cache) ? 0 : -1;
}

static int destroy_cache(void **state) {
    (void)state;
    rft__plan_cache_destroy(&cache);
    return 0;
}

static rft__problem problem(int64_t n) {
    rft_linear_desc d = rft_linear_desc_init();
    d.x = d.y = d.w.elem = RFT_F32;
    d.w.n = n;
    d.w.k = 8;
    d.m_max = 1;
    rft__problem p;
    assert_int_equal(rft__problem_make(&p, &d, NULL), RFT_OK);
    return p;
}

static rft__plan_entry entry(int64_t n, uint64_t hash) { return (rft__plan_entry){.problem = problem(n), .hash = hash}; }

static void assert_empty(void) {
    for (int i = 0; i < RFT__CACHE_BUCKETS; i++) {
        assert_null(cache.bucket[i]);
    }
}

static void test_an_entry_lives_while_it_has_users(void **state) {
    (void)state;
    rft__plan_entry a = entry(1, 7);
    assert_null(rft__plan_cache_find(&cache, &a.problem, 7));
    assert_ptr_equal(rft__plan_cache_add(&cache, &a), &a);
    assert_ptr_equal(rft__plan_cache_find(&cache, &a.problem, 7), &a);
    assert_false(rft__plan_cache_drop(&cache, &a));
    assert_true(rft__plan_cache_drop(&cache, &a));
    assert_null(rft__plan_cache_find(&cache, &a.problem, 7));
    assert_empty();
}

static void test_equal_hashes_are_not_equal_problems(void **state) {
    (void)state;
    rft__plan_entry e[3] = {entry(1, 7), entry(2, 7), entry(3, 7 + RFT__CACHE_BUCKETS)}; /* one bucket */
    for (int i = 0; i < 3; i++) {
        assert_ptr_equal(rft__plan_cache_add(&cache, &e[i]), &e[i]);
    }
    for (int i = 0; i < 3; i++) {
        assert_ptr_equal(rft__plan_cache_find(&cache, &e[i].problem, e[i].hash), &e[i]);
        assert_false(rft__plan_cache_drop(&cache, &e[i]));
    }
    assert_true(rft__plan_cache_drop(&cache, &e[1])); /* from the middle */
    assert_true(rft__plan_cache_drop(&cache, &e[0]));
    assert_true(rft__plan_cache_drop(&cache, &e[2]));
    assert_empty();
}

static void test_the_slower_of_two_gets_the_other(void **state) {
    (void)state;
    rft__plan_entry fast = entry(1, 7), slow = entry(1, 7);
    assert_ptr_equal(rft__plan_cache_add(&cache, &fast), &fast);
    assert_ptr_equal(rft__plan_cache_add(&cache, &slow), &fast);
    assert_false(rft__plan_cache_drop(&cache, &fast));
    assert_true(rft__plan_cache_drop(&cache, &fast));
    assert_empty();
}

static void test_a_private_entry_never_enters(void **state) {
    (void)state;
    rft__plan_entry own = entry(1, 7);
    own.users = 1;
    assert_true(rft__plan_cache_drop(&cache, &own));
    assert_empty();
}

static rft__plan_entry *get(int n) {
    const rft__plan_entry own = entry(n, (uint64_t)n);
    rft__plan_entry *const found = rft__plan_cache_find(&cache, &own.problem, own.hash);
    if (found != NULL) {
        return found;
    }
    rft__plan_entry *const made = malloc(sizeof *made);
    *made = own;
    rft__plan_entry *const shared = rft__plan_cache_add(&cache, made);
    if (shared != made) {
        free(made);
    }
    return shared;
}

/* As plans do: find or make, then the last user frees. */
static void *churn(void *arg) {
    (void)arg;
    for (int i = 0; i < ROUNDS; i++) {
        rft__plan_entry *const e = get(i % PROBLEMS);
        const bool wrong = e->hash != (uint64_t)(i % PROBLEMS);
        if (rft__plan_cache_drop(&cache, e)) {
            free(e);
        }
        if (wrong) {
            return &cache;
        }
    }
    return NULL;
}

static void test_threads(void **state) {
    (void)state;
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, churn, NULL), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        void *wrong = NULL;
        assert_int_equal(pthread_join(threads[i], &wrong), 0);
        assert_null(wrong);
    }
    assert_empty();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_entry_lives_while_it_has_users),
        cmocka_unit_test(test_equal_hashes_are_not_equal_problems),
        cmocka_unit_test(test_the_slower_of_two_gets_the_other),
        cmocka_unit_test(test_a_private_entry_never_enters),
        cmocka_unit_test(test_threads),
    };
    return cmocka_run_group_tests(tests, make_cache, destroy_cache);
}
