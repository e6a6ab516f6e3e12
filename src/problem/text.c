/* SPDX-License-Identifier: Apache-2.0
 *
 * text.c - the sink of explain: text that keeps counting when its buffer is full. Called by problem, plan and the backends.
 * Invariant: buf is terminated whenever cap > 0, and length is what the whole text needs.
 */
#include "problem/backend.h"

#include <stdarg.h>
#include <stdio.h>

void rft__text_add(rft__text *t, const char *format, ...) {
    const size_t used = t->length < t->cap ? t->length : t->cap;
    va_list args;
    va_start(args, format);
    const int n = vsnprintf(used < t->cap ? t->buf + used : NULL, t->cap - used, format, args);
    va_end(args);
    t->length += n > 0 ? (size_t)n : 0;
}
