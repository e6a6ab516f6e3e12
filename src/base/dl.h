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

/* name: as dlopen takes it. loaded_only: only what the process holds already. NULL: reason holds the loader's text. */
void *rft__dl_open(const char *name, bool loaded_only, char *reason, size_t cap);
void *rft__dl_symbol(void *library, const char *name); /* NULL: none */
/* Fills all of table. Returns the first name that is missing and not optional, NULL when all are there. */
const char *rft__dl_bind(void *library, const rft__dl_row *rows, size_t count, void *table);

#endif
