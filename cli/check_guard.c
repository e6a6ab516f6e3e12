/* SPDX-License-Identifier: Apache-2.0
 *
 * check_guard.c - see check_guard.h. A guard is mapped once and grows, so that thousands of problems cost no system calls.
 */
#define _GNU_SOURCE
#include "check_guard.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define CANARY      256 /* bytes watched on the open side */
#define CANARY_BYTE 0xc5
#define BAND        4096 /* bytes of NaN on each side of a device's copy */
#define ALIGNMENT   256  /* of device memory; addresses of a piece and its copy are equal below it */

static size_t page_bytes(void) { return (size_t)sysconf(_SC_PAGESIZE); }

static void free_copy(guard *g) {
    if (g->device)
        rft_memory_free(g->ctx, g->device, g->device_bytes);
    free(g->image);
    g->device = g->image = NULL;
    g->device_bytes = 0;
}

static void free_pages(guard *g) {
    if (g->base)
        munmap(g->base - page_bytes(), g->capacity + 2 * page_bytes());
    g->base = NULL;
    g->capacity = 0;
}

void guard_free(guard *g) {
    free_copy(g);
    free_pages(g);
    *g = (guard){0};
}

void guard_forget(guard *g) {
    g->placed = NULL;
    g->bytes = 0;
}

static bool reserve(guard *g, size_t bytes) {
    size_t page = page_bytes(), need = (bytes + 2 * CANARY + page - 1) / page * page;
    if (need <= g->capacity)
        return true;
    free_pages(g);
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

/* ---- the copy on a device ---- */

static rft_status reserve_copy(guard *g, rft_ctx *ctx, rft_error *err) {
    size_t need = 2 * BAND + ALIGNMENT + g->bytes;
    void *p;
    if (g->ctx == ctx && need <= g->device_bytes)
        return RFT_OK;
    free_copy(g);
    need += need / 2;
    rft_status status = rft_memory_alloc(ctx, need, &p, err);
    if (status != RFT_OK)
        return status;
    g->ctx = ctx;
    g->device = p;
    g->device_bytes = need;
    g->image = cli_alloc(need, 1);
    return RFT_OK;
}

static size_t sent_bytes(const guard *g) { return g->at + g->bytes + BAND; }

rft_status guard_send(guard *g, rft_ctx *ctx, rft_error *err) {
    rft_status status = reserve_copy(g, ctx, err);
    if (status != RFT_OK)
        return status;
    g->at = BAND + (uintptr_t)g->placed % ALIGNMENT;
    memset(g->image, 0xff, sent_bytes(g));
    memcpy(g->image + g->at, g->placed, g->bytes);
    return rft_memory_write(ctx, g->device, g->image, sent_bytes(g), err);
}

void *guard_device(const guard *g) { return g->device + g->at; }

const void *guard_received(const guard *g) { return g->image + g->at; }

/* The first byte of a band that changed, or end. */
static const char *first_stray(const char *p, const char *end) {
    while (p < end && (unsigned char)*p == 0xff)
        p++;
    return p;
}

rft_status guard_receive(guard *g, int64_t *stray, rft_error *err) {
    const char *piece = g->image + g->at, *end = piece + g->bytes, *last = g->image + sent_bytes(g);
    rft_status status = rft_memory_read(g->ctx, g->image, g->device, sent_bytes(g), err);
    *stray = GUARD_INTACT;
    if (status != RFT_OK)
        return status;
    const char *before = first_stray(g->image, piece), *behind = first_stray(end, last);
    if (before < piece)
        *stray = before - piece;
    else if (behind < last)
        *stray = behind - piece;
    return RFT_OK;
}
