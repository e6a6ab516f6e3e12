/* SPDX-License-Identifier: Apache-2.0
 *
 * check_jobs.h - a list of problems, proven by one thread or several. Plans that are compiled and references that are computed
 * at the same time are what a GPU would wait for. check_grid.c makes the lists; commands read the tally.
 */
#ifndef CHECK_JOBS_H
#define CHECK_JOBS_H

#include "check_core.h"

#define CHECK_JOBS 256

typedef struct check_tally {
    int64_t run, refused, failed;
    double worst; /* |error| / bound */
    char refusal[CHECK_MESSAGE]; /* why, of the first that was refused */
} check_tally;

typedef struct check_session {
    checker *c[CHECK_JOBS]; /* one a thread */
    int jobs;
    bool gpu;
    double deadline; /* by now_seconds: later problems are left out; 0: none is */
    uint64_t seed;
    int64_t thin; /* take about one problem of this many; 1: all */
    int64_t shrink; /* problems of a list that fail are made smaller, the first so many */
    void (*failure)(void *user, const check_problem *p, const check_result *r);
    void *user;
    bool cut; /* problems were left out */
} check_session;

typedef struct check_task {
    check_problem p, plain; /* plain: of the same size, for where p is refused */
    bool has_plain;
} check_task;

typedef struct check_list {
    check_task *v;
    int64_t n, room;
} check_list;

void check_list_add(check_list *l, const check_problem *p, const check_problem *plain);
/* Proves all and empties the list. failure is called by one thread at a time. */
void check_list_run(check_session *s, check_list *l, check_tally *tally);

#endif
