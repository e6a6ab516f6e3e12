/* SPDX-License-Identifier: Apache-2.0
 *
 * test_pool.c - the thread pool alone: which thread gets which item, refusals, rest, fork, and no growth.
 * Many callers at once are test_thread_pool.c's, which runs under ThreadSanitizer; that tool has no threads after a fork.
 */
#define _GNU_SOURCE 1
#include "base/cpus.h"
#include "base/pool.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "emulated.h"
#include "leave_child.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SANITIZED 1
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

#define MOST 64

static rft__pool *new_pool(int threads) {
    const rft__allocator a = rft__allocator_default();
    rft_error err;
    rft__pool *pool;
    if (rft__pool_create(&a, threads, NULL, NULL, &pool, &err) != RFT_OK) {
        fail_msg("%s", err.message);
    }
    return pool;
}

typedef struct record {
    int count[MOST];
    pthread_t thread[MOST];
} record;

static void note(void *arg, int i) {
    record *r = arg;
    r->count[i]++;
    r->thread[i] = pthread_self();
}

static void rest(long microseconds) {
    const struct timespec t = {.tv_sec = microseconds / 1000000, .tv_nsec = microseconds % 1000000 * 1000};
    nanosleep(&t, NULL);
}

/* ---- items ---- */

static void items_stay_on_their_threads(void **state) {
    (void)state;
    const int sizes[] = {1, 2, 3, 9, 10, 33, MOST};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        const int threads = sizes[s];
        rft__pool *pool = new_pool(threads);
        record first = {0};
        rft__pool_run(pool, threads, note, &first);
        for (int round = 0; round < 60; round++) {
            const int n = 1 + round % threads;
            record r = {0};
            rft__pool_run(pool, n, note, &r);
            for (int i = 0; i < MOST; i++) {
                assert_int_equal(r.count[i], i < n);
                assert_true(i >= n || pthread_equal(r.thread[i], first.thread[i]));
            }
            rest(round % 20 == 0 ? 1000 : 0); /* workers asleep and awake */
        }
        assert_true(pthread_equal(first.thread[0], pthread_self()));
        for (int i = 0; i < threads; i++) {
            for (int j = 0; j < i; j++) {
                assert_false(pthread_equal(first.thread[i], first.thread[j]));
            }
        }
        rft__pool_free(pool);
    }
}

static void no_items_is_no_work(void **state) {
    (void)state;
    rft__pool *pool = new_pool(2);
    record r = {0};
    rft__pool_run(pool, 0, note, &r);
    assert_int_equal(r.count[0], 0);
    rft__pool_free(pool);
    rft__pool_free(NULL);
}

static void slow_task(void *arg, int i) {
    rest(2000 * i); /* the caller has to sleep as well */
    note(arg, i);
}

static void slow_items_are_waited_for(void **state) {
    (void)state;
    rft__pool *pool = new_pool(3);
    for (int round = 1; round <= 5; round++) {
        record r = {0};
        rft__pool_run(pool, 3, slow_task, &r);
        assert_int_equal(r.count[0] + r.count[1] + r.count[2], 3);
    }
    rft__pool_free(pool);
}

typedef struct nest {
    rft__pool *pool;
    int count[2][2];
} nest;

static void inner(void *arg, int i) {
    (*(int(*)[2])arg)[i]++;
}

static void outer(void *arg, int i) {
    nest *n = arg;
    rft__pool_run(n->pool, 2, inner, &n->count[i]);
}

static void nested_run_is_serial(void **state) {
    (void)state;
    nest n = {.pool = new_pool(2)};
    rft__pool_run(n.pool, 2, outer, &n);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(n.count[i][0], 1);
        assert_int_equal(n.count[i][1], 1);
    }
    record r = {0};
    rft__pool_run(n.pool, 2, note, &r); /* and the pool is parallel again */
    assert_false(pthread_equal(r.thread[0], r.thread[1]));
    rft__pool_free(n.pool);
}

static int for_calls;

static void serial_for(void *user, int n, void (*task)(void *, int), void *arg) {
    assert_ptr_equal(user, &for_calls);
    for_calls++;
    for (int i = n - 1; i >= 0; i--) {
        task(arg, i);
    }
}

static void parallel_for_is_used(void **state) {
    (void)state;
    const rft__allocator a = rft__allocator_default();
    rft__pool *pool;
    assert_int_equal(rft__pool_create(&a, 4, serial_for, &for_calls, &pool, NULL), RFT_OK);
    record r = {0};
    rft__pool_run(pool, 4, note, &r);
    assert_int_equal(for_calls, 1);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(r.count[i], 1);
    }
    rft__pool_run(pool, 1, note, &r);
    assert_int_equal(for_calls, 1); /* one item needs nobody */
    rft__pool_free(pool);
}

/* ---- refusals ---- */

static void *no_memory(void *user, size_t bytes, size_t align) {
    (void)user, (void)bytes, (void)align;
    return NULL;
}

static void bad_sizes_are_refused(void **state) {
    (void)state;
    const rft__allocator a = rft__allocator_default(), none = {.alloc = no_memory};
    const int bad[] = {0, -1, RFT_MAX_THREADS + 1};
    rft__pool *pool;
    rft_error err;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(rft__pool_create(&a, bad[i], NULL, NULL, &pool, &err), RFT_E_ARG);
        assert_non_null(strstr(err.message, "threads = "));
    }
    assert_int_equal(rft__pool_create(&none, 2, NULL, NULL, &pool, &err), RFT_E_NOMEM);
}

/* Runs body in a child; fails where it returns false, crashes or hangs. */
static void in_child(bool (*body)(void)) {
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        alarm(60);
        leave_child(body() ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static bool too_many_threads(void) {
    const rft__allocator a = rft__allocator_default();
    const struct rlimit memory = {.rlim_cur = (rlim_t)400 << 20, .rlim_max = (rlim_t)400 << 20}; /* some ten stacks */
    rft_error err;
    rft__pool *pool;
    if (setrlimit(RLIMIT_AS, &memory) != 0 || rft__pool_create(&a, 1000, NULL, NULL, &pool, &err) != RFT_E_NOMEM ||
        strstr(err.message, "threads = 1000") == NULL) {
        return false;
    }
    if (rft__pool_create(&a, 2, NULL, NULL, &pool, &err) != RFT_OK) { /* those that had started are gone again */
        return false;
    }
    rft__pool_free(pool);
    return true;
}

static void missing_threads_are_an_error(void **state) {
    (void)state;
    SKIP_WHERE_EMULATED();
    if (SANITIZED) {
        skip(); /* its shadow memory is larger than any limit */
    }
    in_child(too_many_threads);
}

/* ---- rest ---- */

static double cpu_seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void idle_workers_sleep(void **state) {
    (void)state;
    rft__pool *pool = new_pool(4);
    record r = {0};
    rft__pool_run(pool, 4, note, &r);
    const double before = cpu_seconds();
    rest(200000);
    assert_true(cpu_seconds() - before < 0.02);
    rft__pool_free(pool);
}

static void crowded_threads_finish(void **state) {
    (void)state;
    rft__pool *pool = new_pool(MOST);
    record r = {0};
    for (int i = 0; i < 200; i++) {
        rft__pool_run(pool, MOST, note, &r);
    }
    for (int i = 0; i < MOST; i++) {
        assert_int_equal(r.count[i], 200);
    }
    rft__pool_free(pool);
}

static void *wait_for_leave(void *arg) {
    const int *leave = arg;
    while (__atomic_load_n(leave, __ATOMIC_ACQUIRE) == 0) {
        rest(1000);
    }
    return NULL;
}

static void avoided_cpu_comes_back(void **state) {
    (void)state;
    cpu_set_t all, now, only;
    assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
    if (CPU_COUNT(&all) < 2) {
        skip();
    }
    int cpu = 0, leave = 0;
    for (; !CPU_ISSET((size_t)cpu, &all); cpu++) {
    }
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, wait_for_leave, &leave), 0);
    int second = cpu + 1;
    for (; !CPU_ISSET((size_t)second, &all); second++) {
    }
    assert_int_equal(rft__cpus_avoid(thread, -1, cpu), cpu);
    pthread_getaffinity_np(thread, sizeof now, &now);
    assert_false(CPU_ISSET((size_t)cpu, &now));
    assert_int_equal(CPU_COUNT(&now), CPU_COUNT(&all) - 1);
    assert_int_equal(rft__cpus_avoid(thread, cpu, second), second);
    pthread_getaffinity_np(thread, sizeof now, &now);
    assert_true(CPU_ISSET((size_t)cpu, &now));
    assert_false(CPU_ISSET((size_t)second, &now));
    assert_int_equal(rft__cpus_avoid(thread, second, -1), -1);
    pthread_getaffinity_np(thread, sizeof now, &now);
    assert_true(CPU_EQUAL(&now, &all));
    CPU_ZERO(&only);
    CPU_SET((size_t)cpu, &only);
    assert_int_equal(pthread_setaffinity_np(thread, sizeof only, &only), 0);
    assert_int_equal(rft__cpus_avoid(thread, -1, cpu), -1); /* its only CPU stays */
    __atomic_store_n(&leave, 1, __ATOMIC_RELEASE);
    pthread_join(thread, NULL);
}

/* ---- fork ---- */

static rft__pool *forked;

static bool runs_in_child(void) {
    for (int i = 0; i < 100; i++) {
        record r = {0};
        rft__pool_run(forked, 3, note, &r);
        if (r.count[0] != 1 || r.count[1] != 1 || r.count[2] != 1 || pthread_equal(r.thread[1], r.thread[2])) {
            return false;
        }
    }
    rft__pool_free(forked);
    return true;
}

static bool frees_in_child(void) {
    rft__pool_free(forked); /* threads that are not there must not be waited for */
    return true;
}

static bool grandchild_runs(void) {
    in_child(runs_in_child);
    return runs_in_child();
}

static void child_has_its_own_threads(void **state) {
    (void)state;
    SKIP_WHERE_EMULATED();
    rft__pool *other = new_pool(2);
    forked = new_pool(3);
    in_child(runs_in_child);
    in_child(frees_in_child);
    in_child(grandchild_runs);
    record r = {0};
    rft__pool_run(forked, 3, note, &r); /* the parent's are as they were */
    assert_int_equal(r.count[2], 1);
    rft__pool_free(forked);
    rft__pool_free(other);
}

static int stop_busy;

static void *busy_caller(void *arg) {
    record r = {0};
    while (__atomic_load_n(&stop_busy, __ATOMIC_ACQUIRE) == 0) {
        rft__pool_run(arg, 3, note, &r);
    }
    return NULL;
}

static void fork_amid_a_run(void **state) {
    (void)state;
    SKIP_WHERE_EMULATED();
    forked = new_pool(3);
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, busy_caller, forked), 0);
    for (int i = 0; i < 20; i++) {
        in_child(runs_in_child);
    }
    __atomic_store_n(&stop_busy, 1, __ATOMIC_RELEASE);
    pthread_join(thread, NULL);
    rft__pool_free(forked);
}

/* ---- growth ---- */

static long resident_pages(void) {
    long size, pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    assert_non_null(f);
    assert_int_equal(fscanf(f, "%ld %ld", &size, &pages), 2);
    fclose(f);
    return pages;
}

static void create_and_free(int threads, int times) {
    for (int i = 0; i < times; i++) {
        rft__pool_free(new_pool(threads));
    }
}

static void nothing_grows(void **state) {
    (void)state;
    SKIP_WHERE_EMULATED();
    if (SANITIZED) {
        skip(); /* its quarantine grows; its leak check does this work there */
    }
    create_and_free(1, 1000);
    create_and_free(2, 200);
    const long before = resident_pages();
    create_and_free(1, 100000);
    create_and_free(2, 4000);
    assert_true(resident_pages() - before < 256);
}

/* ---- default threads ---- */

static void environment_sets_threads(void **state) {
    (void)state;
    unsetenv("RFT_NUM_THREADS");
    unsetenv("OMP_NUM_THREADS");
    const int cpus = rft__pool_default_threads();
    assert_int_equal(cpus, rft__cpus_available());
    setenv("OMP_NUM_THREADS", "5,2", 1);
    assert_int_equal(rft__pool_default_threads(), 5);
    setenv("RFT_NUM_THREADS", "3", 1);
    assert_int_equal(rft__pool_default_threads(), 3);
    setenv("RFT_NUM_THREADS", "0", 1);
    assert_int_equal(rft__pool_default_threads(), 5);
    setenv("OMP_NUM_THREADS", "many", 1);
    assert_int_equal(rft__pool_default_threads(), cpus);
    unsetenv("RFT_NUM_THREADS");
    unsetenv("OMP_NUM_THREADS");
}

static void affinity_limits_threads(void **state) {
    (void)state;
    cpu_set_t all, one;
    assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
    CPU_ZERO(&one);
    for (size_t i = 0; CPU_COUNT(&one) == 0; i++) {
        if (CPU_ISSET(i, &all)) {
            CPU_SET(i, &one);
        }
    }
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    assert_int_equal(rft__pool_default_threads(), 1);
    rft__pool *pool = new_pool(2); /* two threads on one CPU */
    record r = {0};
    for (int i = 0; i < 100; i++) {
        rft__pool_run(pool, 2, note, &r);
    }
    assert_int_equal(r.count[1], 100);
    rft__pool_free(pool);
    assert_int_equal(sched_setaffinity(0, sizeof all, &all), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(items_stay_on_their_threads),
        cmocka_unit_test(no_items_is_no_work),
        cmocka_unit_test(slow_items_are_waited_for),
        cmocka_unit_test(nested_run_is_serial),
        cmocka_unit_test(parallel_for_is_used),
        cmocka_unit_test(bad_sizes_are_refused),
        cmocka_unit_test(missing_threads_are_an_error),
        cmocka_unit_test(idle_workers_sleep),
        cmocka_unit_test(crowded_threads_finish),
        cmocka_unit_test(avoided_cpu_comes_back),
        cmocka_unit_test(child_has_its_own_threads),
        cmocka_unit_test(fork_amid_a_run),
        cmocka_unit_test(nothing_grows),
        cmocka_unit_test(environment_sets_threads),
        cmocka_unit_test(affinity_limits_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
