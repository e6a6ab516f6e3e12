/* SPDX-License-Identifier: Apache-2.0
 *
 * team.c - see team.h. Workers spin for about 50 us for the next job, then sleep.
 * Invariant: `next` hands out each index once; a job is over when the caller finds none left and `inside` is 0.
 */
#define _GNU_SOURCE
#include "team.h"
#include "cli.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

#define SPINS 20000

struct team {
    int size; /* the caller included */
    int n_worker;
    pthread_t *worker;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    atomic_uint job; /* number of the current one */
    atomic_bool stop;
    void (*task)(void *arg, int i);
    void *arg;
    int n;
    atomic_int next, inside; /* inside: workers that may read the job */
};

static void relax(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

static void work(team *t) {
    int i;
    while ((i = atomic_fetch_add(&t->next, 1)) < t->n)
        t->task(t->arg, i);
}

static unsigned wait_for_job(team *t, unsigned seen) {
    for (int spin = 0; spin < SPINS; spin++) {
        if (atomic_load(&t->job) != seen)
            return atomic_load(&t->job);
        relax();
    }
    pthread_mutex_lock(&t->lock);
    while (atomic_load(&t->job) == seen)
        pthread_cond_wait(&t->wake, &t->lock);
    pthread_mutex_unlock(&t->lock);
    return atomic_load(&t->job);
}

static void *worker_main(void *user) {
    team *t = user;
    unsigned seen = 0;
    for (;;) {
        seen = wait_for_job(t, seen);
        if (atomic_load(&t->stop))
            return NULL;
        work(t);
        atomic_fetch_sub(&t->inside, 1);
    }
}

static void announce(team *t) {
    pthread_mutex_lock(&t->lock);
    atomic_fetch_add(&t->job, 1);
    pthread_cond_broadcast(&t->wake);
    pthread_mutex_unlock(&t->lock);
}

static void wait_for_workers(team *t) {
    for (int spin = 0; atomic_load(&t->inside) > 0; spin++)
        if (spin < SPINS)
            relax();
        else
            sched_yield();
}

void team_for(void *user, int n, void (*task)(void *arg, int i), void *arg) {
    team *t = user;
    t->task = task;
    t->arg = arg;
    t->n = n;
    atomic_store(&t->next, 0);
    atomic_store(&t->inside, t->n_worker);
    announce(t);
    work(t);
    wait_for_workers(t);
}

static int core_count(void) {
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

team *team_create(uint32_t threads) {
    team *t = cli_alloc(1, sizeof *t);
    t->size = threads ? (int)threads : core_count();
    t->worker = cli_alloc((size_t)t->size, sizeof *t->worker);
    pthread_mutex_init(&t->lock, NULL);
    pthread_cond_init(&t->wake, NULL);
    while (t->n_worker < t->size - 1 && pthread_create(&t->worker[t->n_worker], NULL, worker_main, t) == 0)
        t->n_worker++;
    if (t->n_worker == t->size - 1)
        return t;
    team_free(t);
    return NULL;
}

void team_free(team *t) {
    if (!t)
        return;
    atomic_store(&t->stop, true);
    announce(t);
    for (int i = 0; i < t->n_worker; i++)
        pthread_join(t->worker[i], NULL);
    pthread_cond_destroy(&t->wake);
    pthread_mutex_destroy(&t->lock);
    free(t->worker);
    free(t);
}

int team_size(const team *t) { return t->size; }
