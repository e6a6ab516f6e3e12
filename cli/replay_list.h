/* SPDX-License-Identifier: Apache-2.0
 *
 * replay_list.h - the products of a recorded run as lines for rooftile bench: what differs in m alone shares a line.
 */
#ifndef REPLAY_LIST_H
#define REPLAY_LIST_H

#include "options.h"
#include "trace/trace.h"

typedef struct replay_item { /* one m of a line */
    run_options options;
    char line[320]; /* the flags of bench but -m, made of what was parsed, never of a file's own text */
    int64_t m, n, k, calls;
    double us;   /* of all calls as recorded */
    double here; /* us of one call here; 0: not run */
} replay_item;

typedef struct replay_list { /* items of a line follow each other, the line with most time first */
    replay_item *items;
    size_t n;
    int64_t left_out; /* calls of products that cannot be run */
    double left_out_us;
    char why[CLI_WHY]; /* of the one with most time */
} replay_list;

void replay_list_make(const trace *t, const run_options *base, replay_list *list);
void replay_list_free(replay_list *list);
/* The first item behind the line that begins at `from`. */
size_t replay_line_end(const replay_list *list, size_t from);
/* Keeps the first `lines` lines. */
void replay_list_cut(replay_list *list, int64_t lines);

#endif
