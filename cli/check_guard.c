/* SPDX-License-Identifier: Apache-2.0
 *
 * check_guard.c - see check_guard.h. A guard is mapped once and grows, so that thousands of problems cost no system calls.
 */
#define _GNU_SOURCE
#include "check_guard.h"

#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define CANARY      256 /* bytes watched on the open side */
#define CANARY_BYTE 0xc5

static size_t page_bytes(void) { return (size_t)sysconf(_SC_PAGESIZE); }

void guard_free(guard *g) {
    if (g->base)
        munmap(g->base - page_bytes(), g->capacity + 2 * page_bytes());
    *g = (guard){0};
}

static bool reserve(guard *g, size_t bytes) {
    size_t page = page_bytes(), need = (bytes + 2 * CANARY + page - 1) / page * page;
    if (need <= g->capacity)
        return true;
    guard_free(g);
    char *p = mmap(NULL, need + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        return false;
    g->base = p + page;
    g->capacity = need;
    return mprotect(g->base, need, PROT_READ | PROT_WRITE) == 0;
}

static char *place_in(const guard *g, size_t bytes, size_t align, bool at_end) {
    if (!at_end)
        return g->base;
    uintptr_t end = (uintptr_t)g->base + g->capacity;
    return g->base + (((end - bytes) & ~(uintptr_t)(align - 1)) - (uintptr_t)g->base);
}

/* The watched bytes lie before a piece at the end, and behind one at the beginning. */
static char *canary(const guard *g) { return g->placed == g->base ? g->placed + g->bytes : g->placed - CANARY; }

void *guard_place(guard *g, size_t bytes, size_t align, bool at_end) {
    if (bytes > SIZE_MAX / 2 || !reserve(g, bytes))
        return NULL;
    g->placed = place_in(g, bytes, align, at_end);
    g->bytes = bytes;
    memset(g->placed, 0xff, bytes);
    memset(canary(g), CANARY_BYTE, CANARY);
    return g->placed;
}

bool guard_intact(const guard *g) {
    const char *c = canary(g);
    for (int i = 0; i < CANARY; i++)
        if ((unsigned char)c[i] != CANARY_BYTE)
            return false;
    return true;
}
