/* SPDX-License-Identifier: Apache-2.0
 *
 * probe_team.h - the same work on n threads at the same time, timed from the first start to the last end. Called by measure.c.
 */
#ifndef RFT_PROBE_TEAM_H
#define RFT_PROBE_TEAM_H

#include "base/pool.h"

typedef struct rft__team {
    rft__pool *pool; /* of own threads: a caller's parallel_for may run items one after the other */
    int n;           /* threads at work */
} rft__team;

/* Seconds that task(arg, 0..n-1) took. */
double rft__team_time(const rft__team *team, rft__task *task, void *arg);

#endif
