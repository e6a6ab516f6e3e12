/* SPDX-License-Identifier: Apache-2.0
 *
 * json.h - JSON of files, parsed and written. Called by readers and writers of profiles, configurations and checkpoints.
 * Invariant: what found no memory is told from what is wrong, and nothing is lost in silence.
 */
#ifndef RFT_BASE_JSON_H
#define RFT_BASE_JSON_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

/* NULL: *no_memory, or *at says where and what; keys that come twice are an error. */
json_t *rft__json_parse(const void *text, size_t size, json_error_t *at, bool *no_memory);

/* A tree is built between these two: calls of jansson that find no memory may go on without what they should have added. */
void rft__json_begin(void);
/* Takes root, which may be NULL. The text of the whole of it, for free(); NULL: *no_memory, or something in it is not UTF-8. */
char *rft__json_end(json_t *root, size_t flags, bool *no_memory);

#endif
