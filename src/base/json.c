/* SPDX-License-Identifier: Apache-2.0
 *
 * json.c - see json.h.
 *
 * Jansson takes a piece of text that it could not store for bad syntax, or goes on with a part of it, so that a key is lost.
 * malloc says so in errno, which Jansson clears at numbers: so it is handed single bytes, and errno is looked at before each.
 */
#include "base/json.h"

#include <errno.h>
#include <stdlib.h>

typedef struct feed {
    const char *at, *end;
    bool no_memory;
} feed;

static void look(feed *f) { f->no_memory = f->no_memory || errno == ENOMEM; }

static size_t next_byte(void *to, size_t room, void *user) {
    feed *const f = user;
    look(f);
    if (f->no_memory || f->at == f->end || room == 0) {
        return f->no_memory ? (size_t)-1 : 0;
    }
    *(char *)to = *f->at++;
    return 1;
}

json_t *rft__json_parse(const void *text, size_t size, json_error_t *at, bool *no_memory) {
    feed f = {.at = text, .end = (const char *)text + size};
    errno = 0;
    json_t *root = json_load_callback(next_byte, &f, JSON_REJECT_DUPLICATES, at);
    look(&f);
    *no_memory = f.no_memory;
    if (f.no_memory) {
        json_decref(root);
        return NULL;
    }
    return root;
}

void rft__json_begin(void) { errno = 0; }

char *rft__json_end(json_t *root, size_t flags, bool *no_memory) {
    char *text = root != NULL ? json_dumps(root, flags) : NULL;
    *no_memory = errno == ENOMEM;
    json_decref(root);
    if (*no_memory) {
        free(text);
        return NULL;
    }
    return text;
}
