/* SPDX-License-Identifier: Apache-2.0
 *
 * probe_team.c - timed work of many threads behind a barrier. See probe_team.h.
 * The barrier spins, so that all threads start within a fraction of a microsecond, and yields where threads outnumber CPUs.
 */
#include "probe/probe_team.h"

#include "base/clock.h"

#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

enum { SPINS = 10000 };

typedef struct race {
    rft__task *task;
    void *arg;
    int n;
    atomic_int ready;
    pthread_mutex_t lock; /* of the next two */
    double start, end;
} race;

static void wait_for_all(race *r) {
    atomic_fetch_add(&r->ready, 1);
    for (int i = 0; atomic_load_explicit(&r->ready, memory_order_acquire) < r->n; i++) {
        if (i >= SPINS) {
            sched_yield();
        }
    }
}

static void run_one(void *arg, int i) {
    race *r = arg;
    wait_for_all(r);
    const double start = rft__now();
    r->task(r->arg, i);
    const double end = rft__now();
    pthread_mutex_lock(&r->lock);
    r->start = fmin(r->start, start);
    r->end = fmax(r->end, end);
    pthread_mutex_unlock(&r->lock);
}

double rft__team_time(const rft__team *team, rft__task *task, void *arg) {
    race r = {.task = task, .arg = arg, .n = team->n, .lock = PTHREAD_MUTEX_INITIALIZER, .start = (double)INFINITY, .end = 0.0};
    rft__pool_run(team->pool, team->n, run_one, &r);
    return r.end - r.start;
}
