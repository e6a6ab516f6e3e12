/* SPDX-License-Identifier: Apache-2.0
 *
 * plan_cache.c - a table of lists, each a few entries long. See plan_cache.h.
 */
#include "plan/plan_cache.h"

bool rft__plan_cache_init(rft__plan_cache *cache) {
    *cache = (rft__plan_cache){.bucket = {NULL}};
    return pthread_mutex_init(&cache->lock, NULL) == 0;
}

void rft__plan_cache_destroy(rft__plan_cache *cache) { pthread_mutex_destroy(&cache->lock); }

static rft__plan_entry **bucket_of(rft__plan_cache *cache, uint64_t hash) { return &cache->bucket[hash % RFT__CACHE_BUCKETS]; }

/* With the lock held. */
static rft__plan_entry *take(rft__plan_cache *cache, const rft__problem *p, uint64_t hash) {
    for (rft__plan_entry *e = *bucket_of(cache, hash); e != NULL; e = e->next) {
        if (e->hash == hash && rft__problem_equal(&e->problem, p)) {
            e->users++;
            return e;
        }
    }
    return NULL;
}

rft__plan_entry *rft__plan_cache_find(rft__plan_cache *cache, const rft__problem *p, uint64_t hash) {
    pthread_mutex_lock(&cache->lock);
    rft__plan_entry *const found = take(cache, p, hash);
    pthread_mutex_unlock(&cache->lock);
    return found;
}

rft__plan_entry *rft__plan_cache_add(rft__plan_cache *cache, rft__plan_entry *entry) {
    pthread_mutex_lock(&cache->lock);
    rft__plan_entry *result = take(cache, &entry->problem, entry->hash);
    if (result == NULL) {
        rft__plan_entry **const head = bucket_of(cache, entry->hash);
        entry->users = 1;
        entry->shared = true;
        entry->next = *head;
        *head = entry;
        result = entry;
    }
    pthread_mutex_unlock(&cache->lock);
    return result;
}

/* With the lock held. */
static void unlink_entry(rft__plan_cache *cache, rft__plan_entry *entry) {
    rft__plan_entry **at = bucket_of(cache, entry->hash);
    while (*at != entry) {
        at = &(*at)->next;
    }
    *at = entry->next;
}

bool rft__plan_cache_drop(rft__plan_cache *cache, rft__plan_entry *entry) {
    pthread_mutex_lock(&cache->lock);
    const bool last = --entry->users == 0;
    if (last && entry->shared) {
        unlink_entry(cache, entry);
    }
    pthread_mutex_unlock(&cache->lock);
    return last;
}
