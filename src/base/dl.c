/* SPDX-License-Identifier: Apache-2.0
 *
 * dl.c - dlopen with a reason. RTLD_LOCAL: a peer's BLAS must not take over the symbols of the program's own.
 */
#include "base/dl.h"

#include "base/error.h"

#include <dlfcn.h>

/* Valid until the thread's next call of the loader. */
static const char *reason(void) {
    const char *text = dlerror();
    return text != NULL ? text : "the loader gives no reason";
}

void *rft__dl_open(const char *const *names, rft_error *err) {
    if (names[0] == NULL) {
        rft__error_set(err, RFT_E_UNSUPPORTED, 0, "no library name was given");
        return NULL;
    }
    for (int i = 0; names[i] != NULL; i++) {
        void *library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
        if (library != NULL) {
            return library;
        }
        if (i == 0) { /* the first name is the one to install; its reason is the useful one */
            rft__error_set(err, RFT_E_UNSUPPORTED, 0, "%s cannot be loaded: %s", names[0], reason());
        }
    }
    return NULL;
}

void *rft__dl_symbol(void *library, const char *name, rft_error *err) {
    void *symbol = dlsym(library, name);
    if (symbol == NULL) {
        rft__error_set(err, RFT_E_UNSUPPORTED, 0, "symbol %s is missing: %s", name, reason());
    }
    return symbol;
}

void rft__dl_close(void *library) {
    if (library != NULL) {
        dlclose(library);
    }
}
