/* SPDX-License-Identifier: Apache-2.0
 *
 * rooftile_check.c - proves every kernel row against an f64 reference at every ISA level that this machine has, and times
 * single rows (--bench). Run by ctest; a failure prints the seed and the command that repeats it.
 */
#define _GNU_SOURCE
#include "bench_rows.h"
#include "check_rows.h"

#include <argp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_LEVELS = 16, MOST_FAILURES = 5 /* shown of each line */, SKIPPED = 77 };

typedef struct options {
    const char *row; /* part of the names of rows and levels to take; NULL: all */
    uint64_t seed;
    int64_t thin;
    bool bench;
} options;

typedef struct levels { /* of this machine, lowest first */
    char text[256];
    const char *name[MOST_LEVELS];
    int count;
} levels;

static int shown;

static void show_failure(const check_problem *p, const check_result *r) {
    char repro[768];
    if (shown++ < MOST_FAILURES) {
        check_repro(p, NULL, repro, sizeof repro);
        fprintf(stderr, "FAILED %s: %s\n  %s\n", r->kernel, r->message, repro);
    }
}

static bool runs_here(const char *isa) {
    bool runs = false;
    for (uint32_t i = 0; i < rft_kernel_count() && !runs; i++) {
        rft_kernel_info row = {.struct_size = sizeof row};
        runs = rft_kernel_get(i, &row) == RFT_OK && row.available && strcmp(row.isa, isa) == 0;
    }
    return runs;
}

static bool find_levels(levels *l) {
    rft_build_info build = rft_build_info_init();
    if (rft_get_build_info(&build) != RFT_OK) {
        return false;
    }
    snprintf(l->text, sizeof l->text, "%s", build.isa_built);
    char *rest = l->text, *name;
    while (l->count < MOST_LEVELS && (name = strsep(&rest, ",")) != NULL) {
        if (runs_here(name)) {
            l->name[l->count++] = name;
        }
        if (strcmp(name, build.isa_here) == 0) {
            return true;
        }
    }
    return false;
}

static bool report(const char *what, const char *isa, const row_tally *t) {
    const bool right = t->failed == 0 && t->run > 0;
    printf("%-42s %-12s %9lld %9lld %7lld %16.3f%s\n", what, isa, (long long)t->run, (long long)t->refused, (long long)t->failed,
           t->worst, right ? "" : "  FAILED");
    fflush(stdout);
    shown = 0;
    return right;
}

/* A row at its own level in full, and at the machine's with that level's packing and epilogue. */
static bool prove_row(row_session *s, const rft_kernel_info *row, const levels *l) {
    const char *const top = l->name[l->count - 1];
    row_tally own = {0}, above = {0};
    check_row(s, row, row->isa, &own);
    const bool right = report(row->name, row->isa, &own);
    if (strcmp(top, row->isa) == 0) {
        return right;
    }
    check_row_ways(s, row, top, &above);
    return report(row->name, top, &above) && right;
}

static bool prove_level(row_session *s, const char *isa) {
    row_tally t = {0};
    check_chosen(s, isa, &t);
    return report("(chosen)", isa, &t);
}

static bool wanted(const options *o, const char *name) { return o->row == NULL || strstr(name, o->row) != NULL; }

/* Calls for each row of this machine that the options name; -1: one failed, else how many there were. */
static int64_t each_row(const options *o, const levels *l, row_session *s) {
    int64_t rows = 0;
    bool right = true;
    for (uint32_t i = 0; i < rft_kernel_count(); i++) {
        rft_kernel_info row = {.struct_size = sizeof row};
        if (rft_kernel_get(i, &row) == RFT_OK && row.available && strncmp(row.isa, "sm_", 3) != 0 && wanted(o, row.name)) {
            right = (o->bench ? bench_row(&row, o->seed) : prove_row(s, &row, l)) && right;
            rows++;
        }
    }
    return right ? rows : -1;
}

/* A row that the options name was built, but does not run here. */
static bool is_elsewhere(const options *o) {
    for (uint32_t i = 0; i < rft_kernel_count(); i++) {
        rft_kernel_info row = {.struct_size = sizeof row};
        if (rft_kernel_get(i, &row) == RFT_OK && !row.available && wanted(o, row.name)) {
            return true;
        }
    }
    return false;
}

static int prove_all(const options *o, const levels *l) {
    row_session s = {.checker = checker_create("cpu", false), .seed = o->seed, .thin = o->thin, .failure = show_failure};
    check_catch_faults();
    printf("seed %llu\n%-42s %-12s %9s %9s %7s %16s\n", (unsigned long long)o->seed, "row", "level", "problems", "refused",
           "failed", "worst err/limit");
    const int64_t rows = each_row(o, l, &s);
    bool right = rows >= 0;
    for (int i = 0; i < l->count; i++) {
        right = (!wanted(o, l->name[i]) || prove_level(&s, l->name[i])) && right;
    }
    checker_free(s.checker);
    if (rows == 0) {
        fprintf(stderr, "no row of this machine has \"%s\" in its name\n", o->row);
        return is_elsewhere(o) ? SKIPPED : EXIT_FAILURE;
    }
    return right ? EXIT_SUCCESS : EXIT_FAILURE;
}

static error_t parse(int key, char *arg, struct argp_state *state) {
    options *const o = state->input;
    switch (key) {
    case 'b':
        o->bench = true;
        return 0;
    case 'q':
        o->thin = 7;
        return 0;
    case 'r':
        o->row = arg;
        return 0;
    case 's':
        o->seed = strtoull(arg, NULL, 0);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

int main(int argc, char **argv) {
    static const struct argp_option flags[] = {{"bench", 'b', NULL, 0, "Time the rows instead", 0},
                                               {"quick", 'q', NULL, 0, "One problem in 7, for sanitizers", 0},
                                               {"row", 'r', "TEXT", 0, "Only rows and levels with TEXT in their names", 0},
                                               {"seed", 's', "N", 0, "Of all data and of every drawn choice (1)", 0},
                                               {0}};
    static const struct argp argp = {flags, parse, NULL, "Proves the kernel rows of this machine against an f64 reference.",
                                     NULL,  NULL,  NULL};
    options o = {.seed = 1, .thin = 1};
    levels l = {.count = 0};
    argp_parse(&argp, argc, argv, 0, NULL, &o);
    if (!find_levels(&l)) {
        fprintf(stderr, "the library does not say which levels it has\n");
        return EXIT_FAILURE;
    }
    if (o.bench) {
        return each_row(&o, &l, NULL) > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
    }
    return prove_all(&o, &l);
}
