/* SPDX-License-Identifier: Apache-2.0
 *
 * pool.h - runs task(arg, i) for i in 0..n-1, one item a thread: item i always lands on the same thread, so that the
 * thread that packed a slab of W is the one that reads it. Own threads or the caller's parallel_for.
 * Called by cpu/. Any number of callers: calls on one pool take turns (with parallel_for, turns are the caller's business).
 * Works in a forked child (a new set of threads there). A task that runs its own pool again gets a serial loop.
 */
#ifndef RFT_BASE_POOL_H
#define RFT_BASE_POOL_H

#include "base/alloc.h"
#include "rooftile.h"

#define RFT_MAX_THREADS 1024

typedef struct rft__pool rft__pool;
typedef void rft__task(void *arg, int i);
typedef void rft__parallel_for(void *user, int n, rft__task *task, void *arg); /* rft_ctx_options.parallel_for */

/* 1 <= threads <= RFT_MAX_THREADS. parallel_for NULL: own threads. */
rft_status rft__pool_create(const rft__allocator *a, int threads, rft__parallel_for *parallel_for, void *user, rft__pool **out,
                            rft_error *err);
void rft__pool_free(rft__pool *pool);
/* n <= threads. n == 1 runs in the caller. */
void rft__pool_run(rft__pool *pool, int n, rft__task *task, void *arg);
/* Threads that this process may use: affinity mask and cgroup quota, or RFT_NUM_THREADS, or OMP_NUM_THREADS. */
int rft__pool_default_threads(void);

#endif
