/* SPDX-License-Identifier: Apache-2.0
 *
 * pool.c - own threads with fixed items: item i runs on worker i, item 0 in the caller. Called by cpu/.
 * A job goes down a tree: each thread starts its FAN children, does its item and waits for them, so that neither starting
 * nor waking many threads is one thread's work. Each worker has one word, on a line of its own, that changes hands:
 *     IDLE --parent--> RUN --worker--> IDLE   ...   IDLE --rft__pool_free--> STOP
 * Whoever waits for the word spins for a bounded time, then adds ASLEEP to it and sleeps on it (futex).
 * Invariant: parent and worker write the word and the job in turns, so nothing else needs to be atomic.
 */
#define _GNU_SOURCE 1
#include "base/pool.h"

#include "base/clock.h"
#include "base/cpus.h"
#include "base/env.h"
#include "base/error.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FAN 8
#define SPIN_SECONDS 100e-6 /* some times the cost of a wake (20-45 us), so that a gap between two layers rarely pays for one */
#define SPIN_BATCH 64      /* looks at the word between two looks at the clock: 1 to 3 us */
#define LINE 128           /* two cache lines: the adjacent-line prefetcher pairs them */

enum { IDLE = 0, RUN = 1, STOP = 2, ASLEEP = 4 };

typedef struct job {
    rft__task *task;
    void *arg;
    int n;
} job;

typedef struct worker {
    _Alignas(LINE) _Atomic uint32_t word;
    job job;
    int id;
    int avoided; /* the CPU that its affinity mask leaves out for the parent's sake, or -1 */
    rft__pool *pool;
    pthread_t thread;
} worker;

struct rft__pool {
    rft__allocator allocator;
    int threads;
    int started; /* workers 1..started have a thread */
    double spin;
    rft__parallel_for *parallel_for;
    void *user;
    pthread_mutex_t turn;
    rft__pool *next, **link; /* of all_pools; link points at what points here */
    worker worker[];         /* [0] stands for the caller */
};

static _Thread_local const rft__pool *inside; /* the pool whose task this thread runs */

/* ---- the word ---- */

static void futex(_Atomic uint32_t *word, int op, uint32_t value) {
    syscall(SYS_futex, word, op | FUTEX_PRIVATE_FLAG, value, NULL, NULL, 0);
}

/* True: the other side slept and was woken. */
static bool post(worker *w, uint32_t word) {
    const bool asleep = atomic_exchange_explicit(&w->word, word, memory_order_acq_rel) & ASLEEP;
    if (asleep) {
        futex(&w->word, FUTEX_WAKE, 1);
    }
    return asleep;
}

static void relax(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb");
#endif
}

static bool changes_soon(worker *w, uint32_t word) {
    for (int i = 0; i < SPIN_BATCH; i++) {
        if (atomic_load_explicit(&w->word, memory_order_acquire) != word) {
            return true;
        }
        relax();
    }
    return false;
}

static bool spin_while(worker *w, uint32_t word, double seconds) {
    if (changes_soon(w, word)) { /* most often, and without asking for the time */
        return true;
    }
    for (const double end = rft__now() + seconds; rft__now() < end;) {
        if (changes_soon(w, word)) {
            return true;
        }
    }
    return false;
}

static void sleep_while(worker *w, uint32_t word) {
    uint32_t seen = word;
    if (atomic_compare_exchange_strong_explicit(&w->word, &seen, word | ASLEEP, memory_order_acq_rel, memory_order_acquire)) {
        while (atomic_load_explicit(&w->word, memory_order_acquire) == (word | ASLEEP)) {
            futex(&w->word, FUTEX_WAIT, word | ASLEEP); /* returns early on a signal, and at once where the word has changed */
        }
    }
}

/* Returns the new word; the other side may have added ASLEEP to it by now. */
static uint32_t wait_while(worker *w, uint32_t word, double spin) {
    if (!spin_while(w, word, spin)) {
        sleep_while(w, word);
    }
    return atomic_load_explicit(&w->word, memory_order_acquire);
}

/* ---- threads ---- */

/* A scheduler often wakes a thread on the CPU of its waker, above all in a virtual machine, where an idle CPU looks taken.
 * There it would wait for the parent's own item to end, so that CPU is taken out of its affinity mask first. */
static void start_child(worker *w, const job *j) {
    w->job = *j;
    if (w->pool->spin > 0 && atomic_load_explicit(&w->word, memory_order_relaxed) & ASLEEP) {
        w->avoided = rft__cpus_avoid(w->thread, w->avoided, sched_getcpu());
    }
    post(w, RUN);
}

static void run_subtree(rft__pool *pool, int id, const job *j) {
    const int first = id * FAN + 1;
    const int end = first + FAN < j->n ? first + FAN : j->n;
    for (int i = first; i < end; i++) {
        start_child(&pool->worker[i], j);
    }
    j->task(j->arg, id);
    for (int i = first; i < end; i++) {
        wait_while(&pool->worker[i], RUN, pool->spin);
    }
}

static void *worker_main(void *arg) {
    worker *self = arg;
    double spin = self->pool->spin;
    inside = self->pool;
    while (wait_while(self, IDLE, spin) != STOP) {
        const job j = self->job;
        run_subtree(self->pool, self->id, &j);
        spin = post(self, IDLE) ? 0 : self->pool->spin; /* a parent just woken may have been put on this CPU: make way */
    }
    return NULL;
}

static int start_worker(rft__pool *pool, int id) {
    worker *w = &pool->worker[id];
    w->id = id;
    w->avoided = -1;
    w->pool = pool;
    atomic_init(&w->word, IDLE);
    const int code = pthread_create(&w->thread, NULL, worker_main, w);
    if (code == 0) {
        char name[32]; /* of which the kernel takes 15 characters */
        snprintf(name, sizeof name, "rooftile/%d", id);
        pthread_setname_np(w->thread, name);
    }
    return code;
}

/* 0 or the errno of the thread that could not be had. The program's signals are not for our threads. */
static int start_workers(rft__pool *pool) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int code = 0;
    while (code == 0 && pool->started < pool->threads - 1) {
        code = start_worker(pool, pool->started + 1);
        pool->started += code == 0;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return code;
}

static void stop_workers(rft__pool *pool) {
    for (int i = 1; i <= pool->started; i++) {
        post(&pool->worker[i], STOP);
    }
    for (int i = 1; i <= pool->started; i++) {
        pthread_join(pool->worker[i].thread, NULL);
    }
    pool->started = 0;
}

/* ---- fork: the child has the memory of all pools and the threads of none ---- */

static rft__pool *all_pools;
static pthread_mutex_t all_pools_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t fork_once = PTHREAD_ONCE_INIT;

static void before_fork(void) {
    pthread_mutex_lock(&all_pools_lock);
}

static void after_fork_in_parent(void) {
    pthread_mutex_unlock(&all_pools_lock);
}

/* The child has one thread, so nobody watches. New workers start at the first run. */
static void after_fork_in_child(void) {
    for (rft__pool *pool = all_pools; pool != NULL; pool = pool->next) {
        pool->started = 0;
        pthread_mutex_init(&pool->turn, NULL);
    }
    pthread_mutex_init(&all_pools_lock, NULL);
}

static void watch_forks(void) {
    pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}

static void list_add(rft__pool *pool) {
    pthread_once(&fork_once, watch_forks);
    pthread_mutex_lock(&all_pools_lock);
    pool->next = all_pools;
    pool->link = &all_pools;
    if (pool->next != NULL) {
        pool->next->link = &pool->next;
    }
    all_pools = pool;
    pthread_mutex_unlock(&all_pools_lock);
}

static void list_remove(rft__pool *pool) {
    pthread_mutex_lock(&all_pools_lock);
    *pool->link = pool->next;
    if (pool->next != NULL) {
        pool->next->link = pool->link;
    }
    pthread_mutex_unlock(&all_pools_lock);
}

/* ---- the pool ---- */

static size_t pool_bytes(int threads) {
    return sizeof(rft__pool) + (size_t)threads * sizeof(worker);
}

rft_status rft__pool_create(const rft__allocator *a, int threads, rft__parallel_for *parallel_for, void *user, rft__pool **out,
                            rft_error *err) {
    if (threads < 1 || threads > RFT_MAX_THREADS) {
        RFT_FAIL(err, RFT_E_ARG, "threads = %d is not within 1..%d", threads, RFT_MAX_THREADS);
    }
    rft__pool *pool = rft__alloc(a, pool_bytes(threads), LINE);
    if (pool == NULL) {
        RFT_FAIL(err, RFT_E_NOMEM, "no memory for a pool of %d threads (%zu bytes)", threads, pool_bytes(threads));
    }
    pool->allocator = *a;
    pool->threads = threads;
    pool->spin = threads > 1 && threads <= rft__cpus_available() ? SPIN_SECONDS : 0;
    pool->parallel_for = parallel_for;
    pool->user = user;
    pthread_mutex_init(&pool->turn, NULL);
    const int code = parallel_for == NULL ? start_workers(pool) : 0;
    list_add(pool);
    if (code != 0) {
        const int started = pool->started;
        rft__pool_free(pool);
        return rft__error_set(err, RFT_E_NOMEM, code, "only %d of threads = %d could be started: %s", started + 1, threads,
                              strerrordesc_np(code));
    }
    *out = pool;
    return RFT_OK;
}

void rft__pool_free(rft__pool *pool) {
    if (pool == NULL) {
        return;
    }
    list_remove(pool);
    stop_workers(pool);
    pthread_mutex_destroy(&pool->turn);
    const rft__allocator a = pool->allocator;
    rft__release(&a, pool, pool_bytes(pool->threads));
}

static void run_serial(const job *j, int first) {
    for (int i = first; i < j->n; i++) {
        j->task(j->arg, i);
    }
}

static void run_workers(rft__pool *pool, const job *j) {
    pthread_mutex_lock(&pool->turn);
    if (pool->started < pool->threads - 1) {
        start_workers(pool); /* a forked child; what it does not get, the caller does below */
    }
    const rft__pool *outer = inside;
    inside = pool;
    job shared = *j;
    shared.n = j->n <= pool->started ? j->n : pool->started + 1;
    run_subtree(pool, 0, &shared);
    run_serial(j, shared.n);
    inside = outer;
    pthread_mutex_unlock(&pool->turn);
}

void rft__pool_run(rft__pool *pool, int n, rft__task *task, void *arg) {
    const job j = {.task = task, .arg = arg, .n = n};
    if (n <= 1 || inside == pool) { /* from within a task the workers are busy with that task */
        run_serial(&j, 0);
    } else if (pool->parallel_for != NULL) {
        pool->parallel_for(pool->user, n, task, arg);
    } else {
        run_workers(pool, &j);
    }
}

int rft__pool_default_threads(void) {
    int64_t threads;
    if (rft__env_count("RFT_NUM_THREADS", RFT_MAX_THREADS, &threads) ||
        rft__env_first_count("OMP_NUM_THREADS", RFT_MAX_THREADS, &threads)) {
        return (int)threads;
    }
    const int cpus = rft__cpus_available();
    return cpus < RFT_MAX_THREADS ? cpus : RFT_MAX_THREADS;
}
