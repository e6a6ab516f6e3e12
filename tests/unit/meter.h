/* SPDX-License-Identifier: Apache-2.0
 *
 * meter.h - an allocator that counts what is live and fails at one call. Included by unit tests of what allocates.
 */
#ifndef RFT_TESTS_METER_H
#define RFT_TESTS_METER_H

#include <stdlib.h>
#include <string.h>

typedef struct meter {
    size_t live, peak, fail_at, calls; /* fail_at: the call that returns NULL, from 1 on; 0: none */
} meter;

static void *meter_alloc(void *user, size_t bytes, size_t align) {
    meter *m = user;
    if (++m->calls == m->fail_at) {
        return NULL;
    }
    m->live += bytes;
    m->peak = m->live > m->peak ? m->live : m->peak;
    void *p = aligned_alloc(align, (bytes + align - 1) / align * align + align);
    return p != NULL ? memset(p, 0, bytes) : NULL;
}

static void meter_release(void *user, void *p, size_t bytes) {
    ((meter *)user)->live -= p != NULL ? bytes : 0;
    free(p);
}

#endif
