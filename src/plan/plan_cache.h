/* SPDX-License-Identifier: Apache-2.0
 *
 * plan_cache.h - the choices that are in use in one context, so that equal plans share one. Called by plan.c.
 * Invariant: an entry is in the table while, and only while, a plan uses it. The lock is never held while a backend works.
 */
#ifndef RFT_PLAN_PLAN_CACHE_H
#define RFT_PLAN_PLAN_CACHE_H

#include "problem/backend.h"

#include <pthread.h>

#define RFT__CACHE_BUCKETS 64

typedef struct rft__plan_entry {
    struct rft__plan_entry *next;
    rft__problem problem;
    uint64_t hash;
    uint32_t users;
    bool shared; /* in the table; a forced choice is not */
    rft__choice *choice;
} rft__plan_entry;

typedef struct rft__plan_cache {
    pthread_mutex_t lock;
    rft__plan_entry *bucket[RFT__CACHE_BUCKETS];
} rft__plan_cache;

bool rft__plan_cache_init(rft__plan_cache *cache); /* false: the system has no room for a lock */
void rft__plan_cache_destroy(rft__plan_cache *cache);

/* An entry of an equal problem, with one user more; NULL: there is none. */
rft__plan_entry *rft__plan_cache_find(rft__plan_cache *cache, const rft__problem *p, uint64_t hash);
/* Puts an entry in, with one user. Where another thread was faster, the other's entry is returned and this one is still the
 * caller's. */
rft__plan_entry *rft__plan_cache_add(rft__plan_cache *cache, rft__plan_entry *entry);
/* Takes one user away. True: that was the last; the entry is out of the table and the caller's to free. */
bool rft__plan_cache_drop(rft__plan_cache *cache, rft__plan_entry *entry);

#endif
