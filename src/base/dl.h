/* SPDX-License-Identifier: Apache-2.0
 *
 * dl.h - shared libraries that are found when the program runs, and the tables of functions that they fill.
 * Called by cuda/. Invariant: nothing in the library calls dlopen but dl.c; what is opened stays open until the process ends.
 */
#ifndef RFT_BASE_DL_H
#define RFT_BASE_DL_H

#include <stdbool.h>
#include <stddef.h>

typedef struct rft__dl_row { /* one function of a table */
    const char *name;        /* of the symbol */
    size_t offset;           /* of its pointer in the table */
    bool optional;           /* NULL where the library lacks it */
} rft__dl_row;

/* The first of names (ended by NULL) that is in the process already or, unless loaded_only, can be loaded. NULL: none, and
 * reason says why the loader refused the last one that it found, or that it found none. */
void *rft__dl_open(const char *const *names, bool loaded_only, char *reason, size_t cap);
void *rft__dl_symbol(void *library, const char *name); /* NULL: none */
/* Fills table. Returns the name of the first symbol that is missing and not optional, NULL when all are there. */
const char *rft__dl_bind(void *library, const rft__dl_row *rows, size_t count, void *table);

#endif
