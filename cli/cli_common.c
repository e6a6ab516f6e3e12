/* SPDX-License-Identifier: Apache-2.0
 *
 * cli_common.c - messages, progress and memory of the tool. Called by every command.
 */
#define _GNU_SOURCE
#include "cli.h"

#include <argp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define HUGE_PAGE ((size_t)2 << 20)

static bool progress_shown;

void cli_message(const char *format, ...) {
    va_list args;
    cli_progress_end();
    fflush(stdout);
    fputs("rooftile: ", stderr);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
}

int cli_failed(const rft_error *err, const char *doing) {
    cli_message("%s: %s (%s)", doing, err->message, rft_status_name(err->status));
    return err->status == RFT_E_IO ? CLI_IO : CLI_LIBRARY;
}

void cli_progress(const char *format, ...) {
    va_list args;
    if (!isatty(STDERR_FILENO))
        return;
    fflush(stdout);
    fputs("\r\033[K", stderr);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fflush(stderr);
    progress_shown = true;
}

void cli_progress_end(void) {
    if (progress_shown)
        fputs("\r\033[K", stderr);
    progress_shown = false;
}

static void out_of_memory(void) {
    cli_message("out of memory");
    exit(CLI_LIBRARY);
}

void *cli_alloc(size_t count, size_t size) {
    void *p = calloc(count ? count : 1, size ? size : 1);
    if (!p)
        out_of_memory();
    return p;
}

void *cli_grow(void *old, size_t count, size_t size) {
    void *p = reallocarray(old, count ? count : 1, size);
    if (!p)
        out_of_memory();
    return p;
}

static size_t mapped_bytes(size_t bytes) { return bytes ? (bytes + HUGE_PAGE - 1) & ~(HUGE_PAGE - 1) : HUGE_PAGE; }

/* Maps one huge page too many and cuts the ends, so that the result begins on one. */
void *cli_map(size_t bytes) {
    size_t size = mapped_bytes(bytes);
    if (bytes > SIZE_MAX / 2)
        return NULL;
    char *base = mmap(NULL, size + HUGE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED)
        return NULL;
    size_t head = (HUGE_PAGE - (uintptr_t)base % HUGE_PAGE) % HUGE_PAGE;
    if (head)
        munmap(base, head);
    munmap(base + head + size, HUGE_PAGE - head);
    madvise(base + head, size, MADV_HUGEPAGE);
    return base + head;
}

void cli_unmap(void *p, size_t bytes) {
    if (p)
        munmap(p, mapped_bytes(bytes));
}

int64_t cli_block(rft_type type) {
    size_t one = rft_type_bytes(type, 1);
    int64_t k = 1;
    while (one > 0 && k < 256 && rft_type_bytes(type, k + 1) == one)
        k++;
    return one > 0 ? k : 0;
}

bool cli_bytes(rft_type type, int64_t count, size_t *bytes) {
    *bytes = rft_type_bytes(type, count);
    return *bytes > 0 || (count == 0 && rft_type_bytes(type, 1) > 0);
}

bool cli_low_bit(rft_type type) {
    static const rft_type types[] = {RFT_I8, RFT_U8, RFT_I4, RFT_U4, RFT_E4M3, RFT_E5M2, RFT_E2M1, RFT_NF4, RFT_FP4};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (type == types[i])
            return true;
    return (int)type >= 256;
}

bool cli_8bit(rft_type type) { return type == RFT_I8 || type == RFT_E4M3; }

const char *cli_file_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

size_t cli_whole(const char *text, size_t most) {
    const size_t n = strnlen(text, most);
    size_t last = n; /* behind the first byte of the last character */
    while (last > 0 && ((unsigned char)text[last - 1] & 0xc0) == 0x80)
        last--;
    const unsigned char first = last ? (unsigned char)text[last - 1] : 0;
    const size_t bytes = first < 0xc0 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
    return last && n - last + 1 < bytes ? last - 1 : n;
}

void cli_take_file(const struct argp_state *state, const char **file, const char *arg) {
    if (*file)
        argp_error(state, "'%s': one file at a time", arg);
    *file = arg;
}

bool cli_product(int64_t a, int64_t b, int64_t c, int64_t *out) {
    return !__builtin_mul_overflow(a, b, out) && !__builtin_mul_overflow(*out, c, out);
}
