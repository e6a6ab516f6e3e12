/* SPDX-License-Identifier: Apache-2.0
 *
 * check_shrink.h - makes a problem that fails as small as it stays failing. check_jobs.c calls it for problems that were drawn
 * at random, before they are shown.
 */
#ifndef CHECK_SHRINK_H
#define CHECK_SHRINK_H

#include "check_core.h"

/* p failed with *r; both become those of the smallest that was found. Its data are other data, drawn from the same seed. */
void check_shrink(checker *c, check_problem *p, check_result *r);

#endif
