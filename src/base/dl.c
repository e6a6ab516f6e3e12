/* SPDX-License-Identifier: Apache-2.0
 *
 * dl.c - dlopen and dlsym. Called by cuda/, for libraries that are used where they exist and needed to build nowhere.
 * Invariant: a library is opened locally, so its symbols never meet the program's.
 */
#define _GNU_SOURCE 1
#include "base/dl.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

void *rft__dl_open(const char *name, bool loaded_only, char *reason, size_t cap) {
    void *library = dlopen(name, RTLD_LAZY | RTLD_LOCAL | (loaded_only ? RTLD_NOLOAD : 0));
    if (library == NULL) {
        const char *text = dlerror();
        snprintf(reason, cap, "%s", text != NULL ? text : "it is not loaded");
    }
    return library;
}

void *rft__dl_symbol(void *library, const char *name) {
    return dlsym(library, name);
}

/* Copies the pointer's bytes, as C has no conversion from an object's pointer to a function's. */
const char *rft__dl_bind(void *library, const rft__dl_row *rows, size_t count, void *table) {
    const char *missing = NULL;
    for (size_t i = 0; i < count; i++) {
        void *symbol = rft__dl_symbol(library, rows[i].name);
        memcpy((char *)table + rows[i].offset, &symbol, sizeof symbol);
        if (symbol == NULL && !rows[i].optional && missing == NULL) {
            missing = rows[i].name;
        }
    }
    return missing;
}
