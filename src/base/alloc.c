/* SPDX-License-Identifier: Apache-2.0
 *
 * alloc.c - memory from the caller's hooks, or from the system where alloc is NULL, and overflow-checked arithmetic.
 * Invariant: large system buffers are mapped, not written here, so that the thread which first writes a page places it
 * on its own NUMA node.
 */
#define _GNU_SOURCE 1
#include "base/alloc.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define LARGE ((size_t)2 << 20) /* a huge page; system buffers of this size and more are mapped */

rft__allocator rft__allocator_default(void) {
    return (rft__allocator){.alloc = NULL, .release = NULL, .user = NULL, .huge_pages = false};
}

static bool mapped_size(size_t bytes, size_t *size) {
    if (rft__add_size(bytes, LARGE - 1, size)) {
        return false;
    }
    *size -= *size % LARGE;
    return true;
}

/* Maps align bytes too many, then gives both ends back. */
static void *map_large(size_t bytes, size_t align, bool huge_pages) {
    size_t size, room;
    align = align < LARGE ? LARGE : align;
    if (!mapped_size(bytes, &size) || rft__add_size(size, align, &room)) {
        return NULL;
    }
    char *base = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED) {
        return NULL;
    }
    const size_t head = (align - (uintptr_t)base % align) % align;
    char *p = base + head;
    if (head > 0) {
        munmap(base, head);
    }
    munmap(p + size, align - head);
    if (huge_pages) {
        madvise(p, size, MADV_HUGEPAGE); /* a wish: a kernel without huge pages refuses it, the memory is good all the same */
    }
    return p;
}

static void *system_alloc(const rft__allocator *a, size_t bytes, size_t align) {
    if (bytes >= LARGE) {
        return map_large(bytes, align, a->huge_pages);
    }
    void *p = NULL;
    if (posix_memalign(&p, align, bytes) != 0) {
        return NULL;
    }
    return memset(p, 0, bytes);
}

/* A hook that breaks the alignment is refused here, before a kernel faults on it. */
static void *hook_alloc(const rft__allocator *a, size_t bytes, size_t align) {
    void *p = a->alloc(a->user, bytes, align);
    if (p == NULL) {
        return NULL;
    }
    if ((uintptr_t)p % align != 0) {
        a->release(a->user, p, bytes);
        return NULL;
    }
    return memset(p, 0, bytes);
}

void *rft__alloc(const rft__allocator *a, size_t bytes, size_t align) {
    bytes = bytes == 0 ? 1 : bytes;
    return a->alloc != NULL ? hook_alloc(a, bytes, align) : system_alloc(a, bytes, align);
}

void rft__release(const rft__allocator *a, void *p, size_t bytes) {
    if (p == NULL) {
        return;
    }
    bytes = bytes == 0 ? 1 : bytes;
    if (a->alloc != NULL) {
        a->release(a->user, p, bytes);
    } else if (bytes >= LARGE) {
        size_t size;
        if (mapped_size(bytes, &size)) {
            munmap(p, size);
        }
    } else {
        free(p);
    }
}

bool rft__mul_overflows(int64_t a, int64_t b, int64_t *out) {
    return __builtin_mul_overflow(a, b, out) || a < 0 || b < 0;
}

bool rft__add_overflows(int64_t a, int64_t b, int64_t *out) {
    return __builtin_add_overflow(a, b, out) || a < 0 || b < 0;
}

bool rft__mul_size(size_t a, size_t b, size_t *out) {
    return __builtin_mul_overflow(a, b, out);
}

bool rft__add_size(size_t a, size_t b, size_t *out) {
    return __builtin_add_overflow(a, b, out);
}
