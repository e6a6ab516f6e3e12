/* SPDX-License-Identifier: Apache-2.0
 *
 * machine.c - the rules of a machine profile. See machine.h.
 * A roof of 0 is one that nobody knows; it is allowed everywhere and bounds nothing.
 */
#define _POSIX_C_SOURCE 200809L
#include "roofline/machine.h"

#include "base/error.h"
#include "base/printable.h"
#include "base/type.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define MAX_THREADS (1u << 20)
#define MAX_ROOF    1e12 /* 10^9 bytes or FLOPs a second: a thousand times the largest machine there is */

typedef struct checker {
    const char *where;
    rft_status status;
    rft_error *err;
} checker;

/* key comes first, because a long path would be what a full message loses. */
static rft_status bad_text(const checker *c, const char *key, const char *rule) {
    RFT_FAIL(c->err, c->status, "%s must be %s, in %s", key, rule, c->where);
}

static rft_status check_text(const checker *c, const char *key, const char *text, size_t cap) {
    const size_t length = strnlen(text, cap);
    if (length == 0 || length == cap) {
        return bad_text(c, key, "text that is neither empty nor too long");
    }
    return rft__is_printable(text, length) ? RFT_OK : bad_text(c, key, "text without control characters");
}

static rft_status check_count(const checker *c, const char *key, uint32_t count, uint32_t max) {
    if (count < 1 || count > max) {
        RFT_FAIL(c->err, c->status, "%s: %u entries, 1 to %u are allowed, in %s", key, count, max, c->where);
    }
    return RFT_OK;
}

static rft_status check_threads(const checker *c, const rft_machine *mach) {
    uint32_t last = 0;
    for (uint32_t i = 0; i < mach->n_counts; i++) {
        if (mach->counts[i] <= last || mach->counts[i] > MAX_THREADS) {
            RFT_FAIL(c->err, c->status, "threads[%u] = %u: thread counts must ascend from 1 to at most %u, in %s", i,
                     mach->counts[i], MAX_THREADS, c->where);
        }
        last = mach->counts[i];
    }
    return RFT_OK;
}

static rft_status check_roofs(const checker *c, const char *list, uint32_t entry, const char *key, const double *roofs,
                              uint32_t n) {
    for (uint32_t i = 0; i < n; i++) {
        if (!(roofs[i] >= 0.0 && roofs[i] <= MAX_ROOF)) {
            RFT_FAIL(c->err, c->status, "%s[%u].%s[%u] = %g: a number from 0 to %g is needed, in %s", list, entry, key, i,
                     roofs[i], MAX_ROOF, c->where);
        }
    }
    return RFT_OK;
}

static rft_status check_level(const checker *c, const rft_machine *mach, uint32_t i) {
    const rft_machine_level *level = &mach->levels[i];
    char key[32];
    snprintf(key, sizeof key, "levels[%u].name", i);
    RFT_TRY(check_text(c, key, level->name, sizeof level->name));
    if (level->bytes > INT64_MAX) {
        RFT_FAIL(c->err, c->status, "levels[%u].bytes = %llu: at most 2^63 - 1 are allowed, in %s", i,
                 (unsigned long long)level->bytes, c->where);
    }
    RFT_TRY(check_roofs(c, "levels", i, "read_gbps", level->read_gbps, mach->n_counts));
    return check_roofs(c, "levels", i, "copy_gbps", level->copy_gbps, mach->n_counts);
}

static rft_status check_peak(const checker *c, const rft_machine *mach, uint32_t i) {
    const rft_machine_peak *peak = &mach->peaks[i];
    char key[32];
    snprintf(key, sizeof key, "peaks[%u].isa", i);
    RFT_TRY(check_text(c, key, peak->isa, sizeof peak->isa));
    snprintf(key, sizeof key, "peaks[%u].op", i);
    RFT_TRY(check_text(c, key, peak->op, sizeof peak->op));
    if (rft__type_name(peak->type)[0] == '?') {
        RFT_FAIL(c->err, c->status, "peaks[%u].type = %d is not an rft_type, in %s", i, (int)peak->type, c->where);
    }
    return check_roofs(c, "peaks", i, "gflops", peak->gflops, mach->n_counts);
}

static rft_status check_time(const checker *c, const char *key, double us) {
    if (!(us >= 0.0 && us <= MAX_ROOF)) {
        RFT_FAIL(c->err, c->status, "%s = %g: a number from 0 to %g is needed, in %s", key, us, MAX_ROOF, c->where);
    }
    return RFT_OK;
}

static rft_status check_head(const checker *c, const rft_machine *mach) {
    RFT_TRY(check_text(c, "name", mach->name, sizeof mach->name));
    RFT_TRY(check_text(c, "device", mach->device, sizeof mach->device));
    RFT_TRY(check_text(c, "isa", mach->isa, sizeof mach->isa));
    RFT_TRY(check_text(c, "date", mach->date, sizeof mach->date));
    RFT_TRY(check_text(c, "source", mach->source, sizeof mach->source));
    if (strcmp(mach->source, "measured") != 0 && strcmp(mach->source, "spec") != 0) {
        RFT_FAIL(c->err, c->status, "source = \"%s\": \"measured\" or \"spec\" is needed, in %s", mach->source, c->where);
    }
    return RFT_OK;
}

rft_status rft__machine_check(const rft_machine *mach, const char *where, rft_status status, rft_error *err) {
    const checker c = {.where = where, .status = status, .err = err};
    RFT_TRY(check_head(&c, mach));
    RFT_TRY(check_count(&c, "threads", mach->n_counts, RFT_MACHINE_COUNTS));
    RFT_TRY(check_count(&c, "levels", mach->n_levels, RFT_MACHINE_LEVELS));
    RFT_TRY(check_count(&c, "peaks", mach->n_peaks, RFT_MACHINE_PEAKS));
    RFT_TRY(check_threads(&c, mach));
    for (uint32_t i = 0; i < mach->n_levels; i++) {
        RFT_TRY(check_level(&c, mach, i));
    }
    for (uint32_t i = 0; i < mach->n_peaks; i++) {
        RFT_TRY(check_peak(&c, mach, i));
    }
    RFT_TRY(check_time(&c, "launch_us", mach->launch_us));
    return check_time(&c, "enqueue_us", mach->enqueue_us);
}
