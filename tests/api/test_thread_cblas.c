/* SPDX-License-Identifier: Apache-2.0
 *
 * test_thread_cblas.c - threads whose first calls meet, more shapes at once than plans are kept, refusals in between, and a child
 * that was forked while they run. Runs under ThreadSanitizer too (label tsan).
 */
#include "cblas_test.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 4, SHAPES = 300, ROUNDS = 2, SECONDS = 10 };

static pthread_barrier_t together;
static atomic_bool stop;

/* Whole numbers, so every sum is exact. cmocka's checks belong to the main thread. */
static bool multiply(int m, int n, int k, int seed) {
    float a[16 * 20], b[20 * 32], c[16 * 32];
    for (int i = 0; i < m * k; i++) {
        a[i] = (float)((i + seed) % 7 - 3);
    }
    for (int i = 0; i < k * n; i++) {
        b[i] = (float)((i * 3 + seed) % 5 - 2);
    }
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, m, n, k, 1, a, k, b, n, 0, c, n);
    for (int i = 0; i < m * n; i++) {
        float sum = 0;
        for (int l = 0; l < k; l++) {
            sum += a[i / n * k + l] * b[l * n + i % n];
        }
        if (c[i] != sum) {
            return false;
        }
    }
    return true;
}

static bool multiply_shape(int i) { return multiply(3 + i % 13, 12 + i / 13 % 20, 8 + i % 12, i); }

static void *run_shapes(void *arg) {
    const int first = *(const int *)arg;
    bool ok = true;
    pthread_barrier_wait(&together);
    for (int i = 0; i < ROUNDS * SHAPES && ok; i++) {
        ok = multiply_shape((first + i) % SHAPES);
    }
    return ok ? NULL : arg;
}

static void test_threads(void **state) {
    (void)state;
    pthread_t thread[THREADS];
    int first[THREADS];
    assert_int_equal(pthread_barrier_init(&together, NULL, THREADS), 0);
    for (int i = 0; i < THREADS; i++) {
        first[i] = i * SHAPES / THREADS * (i % 2);
        assert_int_equal(pthread_create(thread + i, NULL, run_shapes, first + i), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        void *failed;
        pthread_join(thread[i], &failed);
        assert_null(failed);
    }
    pthread_barrier_destroy(&together);
}

static void *run_until_stopped(void *arg) {
    bool ok = true;
    for (int i = 0; !atomic_load(&stop) && ok; i++) {
        ok = multiply_shape(i % SHAPES);
    }
    return ok ? NULL : arg;
}

static bool child_multiplies(void) {
    const pid_t child = fork();
    if (child == 0) {
        alarm(SECONDS);
        bool ok = true;
        for (int i = 0; i < 20 && ok; i++) {
            ok = multiply_shape(i);
        }
        _exit(!ok);
    }
    int status = 1;
    waitpid(child, &status, 0);
    return status == 0;
}

#if defined(__SANITIZE_THREAD__)
#define FORKS 0 /* its run time starts no threads in a child of many */
#else
#define FORKS 12
#endif

static void test_forks(void **state) {
    (void)state;
    pthread_t thread;
    int one = 1, failed_children = 0;
    assert_int_equal(pthread_create(&thread, NULL, run_until_stopped, &one), 0);
    for (int i = 0; i < FORKS; i++) {
        failed_children += !child_multiplies();
    }
    atomic_store(&stop, true);
    void *failed;
    pthread_join(thread, &failed);
    assert_null(failed);
    assert_int_equal(failed_children, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_threads), cmocka_unit_test(test_forks)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
