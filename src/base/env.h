/* SPDX-License-Identifier: Apache-2.0
 *
 * env.h - the library's environment variables, read in one place. Called by api and cpu at context creation.
 */
#ifndef RFT_BASE_ENV_H
#define RFT_BASE_ENV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

const char *rft__env_text(const char *name);                   /* NULL when unset or empty */
bool rft__env_count(const char *name, int64_t max, int64_t *out); /* a whole number 1..max; anything else counts as unset */
bool rft__env_first_count(const char *name, int64_t max, int64_t *out); /* the same of the first in a comma list: "4,2" */
bool rft__env_flag(const char *name);                          /* "1" */
/* The cache folder: option, RFT_CACHE_DIR, $XDG_CACHE_HOME/rooftile, ~/.cache/rooftile. False: none, or it does not fit. */
bool rft__env_cache_dir(const char *option, char *buf, size_t cap);

#endif
