/* SPDX-License-Identifier: Apache-2.0
 *
 * registry.c - one row a backend, best first: the one place that knows them all. See registry.h.
 */
#include "plan/registry.h"

#include "cpu/cpuid.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_ORDINAL = 1023 };

typedef struct row {
    const rft__backend *backend;
    bool numbered; /* its name may be followed by :N */
} row;

static const row rows[] = {
    {&rft__backend_cuda, true},
    {&rft__backend_cpu, false},
};
enum { ROWS = sizeof rows / sizeof rows[0] };

static const row *best_row(void) {
    const row *r = rows;
    while (!r->backend->present()) {
        r++;
    }
    return r;
}

/* -1: not a number in 0..MAX_ORDINAL. */
static int parse_ordinal(const char *text) {
    if (*text < '0' || *text > '9') {
        return -1;
    }
    char *end = NULL;
    const long value = strtol(text, &end, 10);
    return *end == '\0' && value <= MAX_ORDINAL ? (int)value : -1;
}

/* The row that device names, or NULL. */
static const row *parse_device(const char *device, int *ordinal) {
    for (const row *r = rows; r < rows + ROWS; r++) {
        const size_t length = strlen(r->backend->name);
        if (strncmp(device, r->backend->name, length) != 0) {
            continue;
        }
        if (device[length] == '\0') {
            *ordinal = 0;
            return r;
        }
        if (r->numbered && device[length] == ':') {
            *ordinal = parse_ordinal(device + length + 1);
            return *ordinal >= 0 ? r : NULL;
        }
    }
    return NULL;
}

rft_status rft__registry_find(const char *device, const rft__backend **backend, int *ordinal, rft_error *err) {
    *ordinal = 0;
    const row *r = device == NULL ? best_row() : parse_device(device, ordinal);
    if (r == NULL) {
        RFT_FAIL(err, RFT_E_ARG, "device = \"%s\" is neither \"cpu\" nor \"cuda:N\" with N in 0..%d", device, MAX_ORDINAL);
    }
    *backend = r->backend;
    return RFT_OK;
}

uint32_t rft__registry_kernel_count(void) {
    uint32_t count = 0;
    for (const row *r = rows; r < rows + ROWS; r++) {
        count += r->backend->kernel_count();
    }
    return count;
}

rft_status rft__registry_kernel(uint32_t i, rft_kernel_info *info) {
    const row *r = rows;
    for (; i >= r->backend->kernel_count(); r++) {
        i -= r->backend->kernel_count();
    }
    return r->backend->kernel_get(i, info);
}

const char *rft__registry_isa_built(void) { return rft__cpu_isa_built(); }
const char *rft__registry_isa_here(void) { return rft__cpu_isa_here(); }
const char *rft__registry_isa_missing(void) { return rft__cpu_isa_missing(); }
