/* SPDX-License-Identifier: Apache-2.0
 *
 * json_cut.h - cuts the events out of a JSON file of any size, so that a parser sees one at a time and memory stays small.
 * Called by kineto.c and nsight.c. It follows brackets and strings alone: whether a piece is sound JSON is for the parser to say.
 */
#ifndef JSON_CUT_H
#define JSON_CUT_H

#include <stdbool.h>
#include <stddef.h>

typedef struct json_piece {
    const char *p;
    size_t length;
} json_piece;

/* The value at *at of [*at, end), blanks before it skipped; *at moves behind it. False: there is none, or it does not end. */
bool json_cut(const char **at, const char *end, json_piece *value);

/* Opens the object or array at *at. */
bool json_enter(const char **at, const char *end, char bracket);
/* The next element of an array that was entered. False: there is no more, or what follows is none (*broken). */
bool json_next(const char **at, const char *end, json_piece *value, bool *broken);
/* The next member of an object that was entered; the key with its quotes. */
bool json_next_member(const char **at, const char *end, json_piece *key, json_piece *value, bool *broken);
/* Whether the key is this plain word. */
bool json_is_key(const json_piece *key, const char *word);

#endif
