/* SPDX-License-Identifier: Apache-2.0
 *
 * jit_log.c - reads the log that NVRTC gives for --ptxas-options=-v. Called by jit.c. Per kernel it holds lines such as
 *     ptxas info    : Compiling entry function 'gemv' for 'sm_90a'
 *     ptxas         .     160 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
 *     ptxas info    : Used 32 registers, used 1 barriers, 160 bytes cumulative stack size, 1024 bytes smem
 */
#include "cuda/jit_log.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#define KERNEL_LINE "Compiling entry function '"

/* The part of the log that speaks of entry: *end is where that of the next kernel begins. NULL: there is none. */
static const char *find_kernel(const char *log, const char *entry, const char **end) {
    const size_t length = strlen(entry);
    const char *at = strstr(log, KERNEL_LINE);
    while (at != NULL) {
        at += sizeof KERNEL_LINE - 1;
        const char *next = strstr(at, KERNEL_LINE);
        if (strncmp(at, entry, length) == 0 && at[length] == '\'') {
            *end = next != NULL ? next : at + strlen(at);
            return at;
        }
        at = next;
    }
    return NULL;
}

/* The whole number that ends right before p, within [begin, p). */
static int number_before(const char *begin, const char *p) {
    int value = 0;
    for (int scale = 1; p > begin && p[-1] >= '0' && p[-1] <= '9' && scale <= INT_MAX / 100; scale *= 10) {
        value += (*--p - '0') * scale;
    }
    return value;
}

/* The sum of the numbers before each occurrence of unit: functions that were not inlined have lines of their own. */
static int sum_of(const char *begin, const char *end, const char *unit) {
    int64_t sum = 0;
    for (const char *p = strstr(begin, unit); p != NULL && p < end; p = strstr(p + 1, unit)) {
        sum += number_before(begin, p);
    }
    return sum < INT_MAX ? (int)sum : INT_MAX;
}

/* C7508: setmaxnreg is ignored; C7510: wgmma is serialised; C7517: a wait was inserted before an accumulator is read. */
static bool is_serialized(const char *log) {
    static const char *const codes[] = {"C7508", "C7510", "C7517"};
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
        if (strstr(log, codes[i]) != NULL) {
            return true;
        }
    }
    return false;
}

void rft__jit_log_figures(const char *log, const char *entry, rft__cubin *cubin) {
    const char *end = NULL, *begin = find_kernel(log, entry, &end);
    cubin->registers = cubin->shared_bytes = cubin->spill_bytes = cubin->stack_bytes = 0;
    cubin->serialized = is_serialized(log);
    if (begin == NULL) {
        return;
    }
    cubin->registers = sum_of(begin, end, " registers");
    cubin->shared_bytes = sum_of(begin, end, " bytes smem");
    cubin->stack_bytes = sum_of(begin, end, " bytes stack frame");
    const int64_t spills = (int64_t)sum_of(begin, end, " bytes spill stores") + sum_of(begin, end, " bytes spill loads");
    cubin->spill_bytes = spills < INT_MAX ? (int)spills : INT_MAX;
}

void rft__jit_log_error(const char *log, char *line, size_t cap) {
    const char *begin = log, *error = strstr(log, "error");
    for (const char *p = log; error != NULL && p < error; p++) {
        if (*p == '\n') {
            begin = p + 1;
        }
    }
    snprintf(line, cap, "%.*s", (int)(strcspn(begin, "\n") < cap ? strcspn(begin, "\n") : cap), begin);
}
