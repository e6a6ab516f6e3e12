/* SPDX-License-Identifier: Apache-2.0
 *
 * json_cut.c - see json_cut.h. No recursion: a value is its bytes up to where its brackets are closed.
 */
#include "trace/json_cut.h"

#include <string.h>

static bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

static const char *skip_blanks(const char *p, const char *end) {
    while (p < end && is_blank(*p))
        p++;
    return p;
}

/* p stands on the opening quote; behind the closing one, or NULL. */
static const char *skip_string(const char *p, const char *end) {
    for (p++; p < end; p++) {
        if (*p == '\\')
            p++;
        else if (*p == '"')
            return p + 1;
    }
    return NULL;
}

static const char *skip_nested(const char *p, const char *end) {
    size_t depth = 0;
    while (p && p < end) {
        const char c = *p;
        if (c == '"') {
            p = skip_string(p, end);
            continue;
        }
        p++;
        if (c == '{' || c == '[')
            depth++;
        else if ((c == '}' || c == ']') && --depth == 0)
            return p;
    }
    return NULL;
}

static const char *skip_scalar(const char *p, const char *end) {
    const char *from = p;
    while (p < end && !is_blank(*p) && *p != ',' && *p != ']' && *p != '}')
        p++;
    return p > from ? p : NULL;
}

bool json_cut(const char **at, const char *end, json_piece *value) {
    const char *p = skip_blanks(*at, end);
    if (p >= end)
        return false;
    const char *stop = *p == '"' ? skip_string(p, end) : *p == '{' || *p == '[' ? skip_nested(p, end) : skip_scalar(p, end);
    if (!stop)
        return false;
    *value = (json_piece){p, (size_t)(stop - p)};
    *at = stop;
    return true;
}

bool json_enter(const char **at, const char *end, char bracket) {
    const char *p = skip_blanks(*at, end);
    if (p >= end || *p != bracket)
        return false;
    *at = p + 1;
    return true;
}

/* Behind a value a comma may stand; false where a bracket closes instead. */
static bool has_more(const char **at, const char *end, bool *broken) {
    const char *p = skip_blanks(*at, end);
    if (p < end && *p == ',')
        p = skip_blanks(p + 1, end);
    *at = p;
    *broken = p >= end;
    return p < end && *p != ']' && *p != '}';
}

bool json_next(const char **at, const char *end, json_piece *value, bool *broken) {
    if (!has_more(at, end, broken))
        return false;
    *broken = !json_cut(at, end, value);
    return !*broken;
}

bool json_next_member(const char **at, const char *end, json_piece *key, json_piece *value, bool *broken) {
    if (!has_more(at, end, broken))
        return false;
    *broken = !json_cut(at, end, key) || key->p[0] != '"' || !json_enter(at, end, ':') || !json_cut(at, end, value);
    return !*broken;
}

bool json_is_key(const json_piece *key, const char *word) {
    const size_t length = strlen(word);
    return key->length == length + 2 && memcmp(key->p + 1, word, length) == 0;
}
