/* SPDX-License-Identifier: Apache-2.0
 *
 * alloc.h - the one door to memory, through the caller's hooks where given, and overflow-checked size arithmetic.
 * Invariant: nothing in the library calls malloc, free or mmap but alloc.c.
 */
#ifndef RFT_BASE_ALLOC_H
#define RFT_BASE_ALLOC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct rft__allocator { /* alloc NULL: the system's memory */
    void *(*alloc)(void *user, size_t bytes, size_t align);
    void (*release)(void *user, void *p, size_t bytes);
    void *user;
    bool huge_pages; /* madvise(MADV_HUGEPAGE) on system buffers of 2 MiB and more; a hook's memory is the caller's to advise */
} rft__allocator;

rft__allocator rft__allocator_default(void);
/* Zeroed memory, aligned to align (a power of two, >= sizeof(void *)); NULL on failure. bytes 0 yields a valid pointer. */
void *rft__alloc(const rft__allocator *a, size_t bytes, size_t align);
void rft__release(const rft__allocator *a, void *p, size_t bytes); /* NULL is allowed */

/* True on overflow or a negative operand; *out is then unspecified. */
bool rft__mul_overflows(int64_t a, int64_t b, int64_t *out);
bool rft__add_overflows(int64_t a, int64_t b, int64_t *out);
bool rft__mul_size(size_t a, size_t b, size_t *out);
bool rft__add_size(size_t a, size_t b, size_t *out);

static inline int64_t rft__ceil_div(int64_t a, int64_t b) { return a / b + (a % b != 0); }
static inline int64_t rft__round_up(int64_t a, int64_t b) { return rft__ceil_div(a, b) * b; }
static inline int64_t rft__min(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t rft__max(int64_t a, int64_t b) { return a > b ? a : b; }

#endif
