/* SPDX-License-Identifier: Apache-2.0
 *
 * loops.h - what a caller's parallel_for may do with a hand-off: one thread takes all, from either end, or a thread each.
 */
#ifndef RFT_TESTS_API_LOOPS_H
#define RFT_TESTS_API_LOOPS_H

#include "api_test.h"

#include <pthread.h>

enum { MOST_ITEMS = 8 };

typedef void task_fn(void *arg, int i);

static void serial(void *user, int n, task_fn *task, void *arg) {
    (void)user;
    for (int i = 0; i < n; i++) {
        task(arg, i);
    }
}

static void reversed(void *user, int n, task_fn *task, void *arg) {
    (void)user;
    for (int i = n - 1; i >= 0; i--) {
        task(arg, i);
    }
}

typedef struct item {
    task_fn *task;
    void *arg;
    int i;
} item;

static void *run_item(void *arg) {
    const item *const it = arg;
    it->task(it->arg, it->i);
    return NULL;
}

/* Counts items in the int that user points to, if any. */
static void threaded(void *user, int n, task_fn *task, void *arg) {
    pthread_t threads[MOST_ITEMS];
    item items[MOST_ITEMS];
    assert_true(n <= MOST_ITEMS);
    for (int i = 0; i < n; i++) {
        items[i] = (item){task, arg, i};
        assert_int_equal(pthread_create(&threads[i], NULL, run_item, &items[i]), 0);
    }
    for (int i = 0; i < n; i++) {
        pthread_join(threads[i], NULL);
    }
    if (user != NULL) {
        *(int *)user += n;
    }
}

/* The first is the library's own pool. */
static void (*const test_loops[])(void *, int, task_fn *, void *) = {NULL, serial, reversed, threaded};
enum { LOOPS = sizeof test_loops / sizeof *test_loops };

#endif
