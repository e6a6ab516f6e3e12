/* SPDX-License-Identifier: Apache-2.0
 *
 * cblas_error.c - cblas_xerbla, what a refused call tells. A file of its own, so that a program linked to the archive brings its
 * own; in the shared library calls of it go through the loader, which prefers the program's too.
 * Invariant: it returns. Functions of CBLAS have no result, and a library does not end its program.
 */
#include "rooftile_cblas.h"

#include <stdarg.h>
#include <stdio.h>

void cblas_xerbla(int position, const char *routine, const char *form, ...) {
    char reason[512];
    va_list arguments;
    va_start(arguments, form);
    vsnprintf(reason, sizeof reason, form, arguments);
    va_end(arguments);
    if (position > 0) {
        fprintf(stderr, "%s: argument %d is not allowed: %s", routine, position, reason);
    } else {
        fprintf(stderr, "%s: %s", routine, reason);
    }
}
