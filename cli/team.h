/* SPDX-License-Identifier: Apache-2.0
 *
 * team.h - a few threads for the separate passes of --unfused, and for the library's parallel_for in the same run:
 * one set of threads serves both sides, so that neither waits for the other's spinning workers.
 */
#ifndef TEAM_H
#define TEAM_H

#include <stdint.h>

typedef struct team team;

/* threads 0: all cores of this process. NULL: no memory or no threads. */
team *team_create(uint32_t threads);
void team_free(team *t);
int team_size(const team *t);
/* Has the form of rft_ctx_options.parallel_for; user is the team. One caller at a time. */
void team_for(void *user, int n, void (*task)(void *arg, int i), void *arg);

#endif
