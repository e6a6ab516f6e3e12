/* SPDX-License-Identifier: Apache-2.0
 *
 * check_jobs.c - see check_jobs.h. Threads take the next problem each until none is left, the time is up or the device is lost.
 */
#define _GNU_SOURCE
#include "check_jobs.h"
#include "check_shrink.h"
#include "bench_timer.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

void check_list_add(check_list *l, const check_problem *p, const check_problem *plain) {
    if (l->n == l->room) {
        l->room = l->room ? 2 * l->room : 256;
        l->v = cli_grow(l->v, (size_t)l->room, sizeof *l->v);
    }
    l->v[l->n++] = (check_task){.p = *p, .plain = plain ? *plain : *p, .has_plain = plain != NULL};
}

typedef struct crew {
    check_session *s;
    const check_list *list;
    atomic_llong next, shrunk;
    pthread_mutex_t lock; /* of tally and failure */
    check_tally *tally;
} crew;

typedef struct member {
    crew *crew;
    checker *c;
    pthread_t thread;
} member;

static bool has_failed(const check_result *r) {
    return r->verdict != CHECK_RIGHT && r->verdict != CHECK_REFUSED && r->verdict != CHECK_SKIPPED;
}

static void count(crew *w, const check_problem *p, const check_result *r) {
    check_tally *t = w->tally;
    pthread_mutex_lock(&w->lock);
    const bool failed = has_failed(r);
    if (r->verdict == CHECK_REFUSED && t->refused++ == 0)
        memcpy(t->refusal, r->message, sizeof t->refusal);
    t->run += failed || r->verdict == CHECK_RIGHT;
    t->failed += failed;
    if (r->verdict == CHECK_RIGHT && r->worst > t->worst)
        t->worst = r->worst;
    if (failed)
        w->s->failure(w->s->user, p, r);
    pthread_mutex_unlock(&w->lock);
}

/* A refused variation still leaves the size to be proven in the plainest way. */
static void prove(crew *w, checker *c, check_task *task) {
    check_result r;
    check_run(c, &task->p, &r);
    if (has_failed(&r) && atomic_fetch_add(&w->shrunk, 1) < w->s->shrink)
        check_shrink(c, &task->p, &r);
    count(w, &task->p, &r);
    if (r.verdict != CHECK_REFUSED || !task->has_plain)
        return;
    check_run(c, &task->plain, &r);
    count(w, &task->plain, &r);
}

static bool is_over(crew *w, const checker *c) {
    bool over = (w->s->deadline > 0 && now_seconds() > w->s->deadline) || (w->s->gpu && checker_lost(c));
    if (over) {
        pthread_mutex_lock(&w->lock);
        w->s->cut = true;
        pthread_mutex_unlock(&w->lock);
    }
    return over;
}

static void *work(void *arg) {
    member *m = arg;
    int64_t i;
    while ((i = atomic_fetch_add(&m->crew->next, 1)) < m->crew->list->n && !is_over(m->crew, m->c))
        prove(m->crew, m->c, &m->crew->list->v[i]);
    return NULL;
}

void check_list_run(check_session *s, check_list *l, check_tally *tally) {
    crew w = {.s = s, .list = l, .tally = tally};
    member m[CHECK_JOBS];
    int n = 0;
    pthread_mutex_init(&w.lock, NULL);
    for (; n < s->jobs; n++) {
        m[n] = (member){.crew = &w, .c = s->c[n]};
        if (n > 0 && pthread_create(&m[n].thread, NULL, work, &m[n]) != 0)
            break;
    }
    work(&m[0]);
    for (int i = 1; i < n; i++)
        pthread_join(m[i].thread, NULL);
    pthread_mutex_destroy(&w.lock);
    free(l->v);
    *l = (check_list){0};
}
