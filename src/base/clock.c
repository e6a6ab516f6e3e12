/* SPDX-License-Identifier: Apache-2.0
 *
 * clock.c - monotonic time. Called by the log, the pool and all that measures.
 */
#define _GNU_SOURCE 1
#include "base/clock.h"

#include <time.h>

double rft__now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}
