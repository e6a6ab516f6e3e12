/* SPDX-License-Identifier: Apache-2.0
 *
 * check_random.h - random problems over every field of a layer's description. rooftile check --random runs them.
 */
#ifndef CHECK_RANDOM_H
#define CHECK_RANDOM_H

#include "check_jobs.h"

#define CHECK_LEVELS 16

typedef struct random_space { /* what is drawn is as given here where that is not 0 */
    const rft_kernel_info *kernel; /* the only one that may serve; types are mostly those that it reads */
    const char *level[CHECK_LEVELS];
    int levels; /* 0: the device's own */
    uint32_t threads;
} random_space;

/* count problems; the same for the same seed, count and space. */
void check_random(check_session *s, int64_t count, const random_space *space, check_tally *tally);

#endif
