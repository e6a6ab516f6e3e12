/* SPDX-License-Identifier: Apache-2.0
 *
 * test_thread_pool.c - the pool and the log from many threads at once. Its data are deliberately not atomic: under
 * ThreadSanitizer a missing order between caller and worker, or two runs that overlap, is a reported race.
 */
#define _GNU_SOURCE 1
#include "base/log.h"
#include "base/pool.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define CALLERS 4
#define RUNS 400

static rft__pool *new_pool(int threads) {
    const rft__allocator a = rft__allocator_default();
    rft__pool *pool;
    assert_int_equal(rft__pool_create(&a, threads, NULL, NULL, &pool, NULL), RFT_OK);
    return pool;
}

static void in_threads(void *(*body)(void *), void *arg) {
    pthread_t thread[CALLERS];
    for (int i = 0; i < CALLERS; i++) {
        assert_int_equal(pthread_create(&thread[i], NULL, body, arg), 0);
    }
    for (int i = 0; i < CALLERS; i++) {
        void *good;
        pthread_join(thread[i], &good);
        assert_non_null(good);
    }
}

typedef struct slab { /* one item's own data, and what all callers share through that item's thread */
    int own;
    int *shared;
} slab;

static void count(void *arg, int i) {
    slab *s = (slab *)arg + i;
    s->own++;
    s->shared[i]++;
}

typedef struct crowd {
    rft__pool *pool;
    int threads;
    int shared[16];
} crowd;

static void *call_often(void *arg) {
    crowd *c = arg;
    slab s[16] = {0};
    for (int i = 0; i < c->threads; i++) {
        s[i].shared = c->shared;
    }
    for (int run = 1; run <= RUNS; run++) {
        rft__pool_run(c->pool, c->threads, count, s);
        for (int i = 0; i < c->threads; i++) { /* plain reads of what the workers wrote */
            if (s[i].own != run) {
                return NULL;
            }
        }
        if (run % 100 == 0) {
            const struct timespec t = {.tv_nsec = 500000}; /* let the workers fall asleep */
            nanosleep(&t, NULL);
        }
    }
    return c;
}

static void callers_take_turns(void **state) {
    (void)state;
    const int threads[] = {2, 3, 12};
    for (int i = 0; i < 3; i++) {
        crowd c = {.pool = new_pool(threads[i]), .threads = threads[i]};
        in_threads(call_often, &c);
        for (int j = 0; j < threads[i]; j++) {
            assert_int_equal(c.shared[j], CALLERS * RUNS);
        }
        rft__pool_free(c.pool);
    }
}

static void *own_pools(void *arg) {
    for (int i = 0; i < 50; i++) {
        crowd c = {.threads = 1 + i % 3};
        const rft__allocator a = rft__allocator_default();
        if (rft__pool_create(&a, c.threads, NULL, NULL, &c.pool, NULL) != RFT_OK) {
            return NULL;
        }
        slab s[3] = {{0, c.shared}, {0, c.shared}, {0, c.shared}};
        rft__pool_run(c.pool, c.threads, count, s);
        rft__pool_free(c.pool);
        if (c.shared[c.threads - 1] != 1) {
            return NULL;
        }
    }
    return arg;
}

static void pools_come_and_go(void **state) {
    (void)state;
    int any;
    in_threads(own_pools, &any);
}

static void listen(void *user, rft_log_level level, const char *line) {
    (void)level;
    *(bool *)user = strstr(line, ",hint,event,what,detail 7,") != NULL;
}

static void *log_often(void *arg) {
    for (int i = 0; i < 200; i++) {
        bool heard = false;
        const rft__log log = {.callback = listen, .user = &heard, .level = RFT_LOG_HINT};
        rft__log_event(&log, RFT_LOG_HINT, "event", "what", -1, "detail %d", 7);
        if (!heard) {
            return NULL;
        }
    }
    return arg;
}

static void log_from_many_threads(void **state) {
    (void)state;
    int any;
    in_threads(log_often, &any);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(callers_take_turns),
        cmocka_unit_test(pools_come_and_go),
        cmocka_unit_test(log_from_many_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
