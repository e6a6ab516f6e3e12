/* SPDX-License-Identifier: Apache-2.0
 *
 * own_log.c - the lines of RFT_VERBOSE=exec, between whatever else a program prints. See readers.h.
 *
 *     rooftile,0.001792,dispatch,context,cpu,AMD EPYC; isa avx512; 2 threads,
 *     rooftile,0.363499,exec,run,m=4 n=256 k=256 x=f32 w=q4_0 y=f32 layout=nt epi=silu,m=4 KERNEL; 2 threads; 1 in the list,75.9
 */
#define _GNU_SOURCE
#include "trace/readers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_LINE 2048 /* as the log's own */

enum { MARK, SECONDS, LEVEL, EVENT, WHAT, DETAIL, MICROSECONDS, FIELDS };

/* Fields as the log writes them: in quotes where they hold a comma or a quote, which is then doubled. */
static int split(const text_line *line, char text[MOST_LINE], char *field[FIELDS]) {
    size_t at = 0;
    int n = 0;
    bool quoted = false;
    field[n++] = text;
    for (size_t i = 0; i < line->length; i++) {
        const char c = line->p[i];
        if (c == '"' && quoted && i + 1 < line->length && line->p[i + 1] == '"')
            text[at++] = line->p[i++];
        else if (c == '"')
            quoted = !quoted;
        else if (c != ',' || quoted)
            text[at++] = c;
        else if (n < FIELDS) {
            text[at++] = '\0';
            field[n++] = text + at;
        } else
            return 0;
    }
    text[at] = '\0';
    return n;
}

/* ---- a run ---- */

typedef struct extras { /* of a problem, which --w and --x have with the type */
    char scale[16], group_n[24], group_k[24], x_scale[24];
    bool zero, g_idx, no_product, unknown;
    const char *global;
} extras;

static bool set_number(const char *text, int64_t *out) {
    char why[CLI_WHY];
    return parse_int(text, 0, INT64_MAX, out, why);
}

static void set_scale(extras *e, const char *value) {
    if (sscanf(value, "%15[^/]/%23[0-9]x%23[0-9]", e->scale, e->group_n, e->group_k) != 3)
        e->unknown = true;
}

/* Plain words, and keys that are no sizes or types. */
static void set_extra(extras *e, const char *key, const char *value) {
    if (strcmp(key, "scale") == 0)
        set_scale(e, value);
    else if (strcmp(key, "x_scale") == 0)
        snprintf(e->x_scale, sizeof e->x_scale, "%.20s", strncmp(value, "f32/", 4) == 0 ? value + 4 : "?");
    else if (strcmp(key, "global") == 0)
        e->global = strcmp(value, "times") == 0 ? ":times" : ":over";
    else if (strcmp(key, "zero") == 0)
        e->zero = true;
    else if (strcmp(key, "g_idx") == 0)
        e->g_idx = true;
    else if (strcmp(key, "alpha") == 0) /* said where it is 0: neither X nor W is read, as with K = 0 */
        e->no_product = true;
}

static bool set_text(char *out, size_t cap, const char *value) { return (size_t)snprintf(out, cap, "%s", value) < cap; }

/* False: the value is none of its key. */
static bool set_field(trace_call *c, extras *e, const char *key, const char *value) {
    const struct {
        const char *key;
        char *out;
        size_t cap;
    } texts[] = {{"x", c->x, sizeof c->x},
                 {"w", c->w, sizeof c->w},
                 {"y", c->y, sizeof c->y},
                 {"layout", c->layout, sizeof c->layout},
                 {"compute", c->compute, sizeof c->compute},
                 {"epi", c->epi, sizeof c->epi}};
    const struct {
        const char *key;
        int64_t *out;
    } numbers[] = {{"n", &c->n}, {"k", &c->k}, {"batch", &c->batch}};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (strcmp(key, texts[i].key) == 0)
            return set_text(texts[i].out, texts[i].cap, value);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (strcmp(key, numbers[i].key) == 0)
            return set_number(value, numbers[i].out);
    set_extra(e, key, value);
    return true;
}

/* As --w reads a type with scales that lie apart: one group of all k is a scale a row. */
static bool add_extras(trace_call *c, const extras *e) {
    char w[WEIGHT_TEXT], x[X_TEXT], group[56] = "";
    const bool whole = strtoll(e->group_k, NULL, 10) == c->k;
    if (strcmp(e->group_n, "1") != 0)
        snprintf(group, sizeof group, ":g%sx%s", e->group_n, e->group_k);
    else if (!whole)
        snprintf(group, sizeof group, ":g%s", e->group_k);
    int length = snprintf(w, sizeof w, "%.20s%s%s%s%s%s%s", c->w, group, strcmp(e->scale, "f32") ? ":" : "",
                          strcmp(e->scale, "f32") ? e->scale : "", e->zero ? ":zero" : "", e->global ? e->global : "",
                          e->g_idx ? ":act" : "");
    if (e->scale[0] && (length < 0 || !set_text(c->w, sizeof c->w, w)))
        return false;
    const bool of_row = strtoll(e->x_scale, NULL, 10) == c->k, codes = strcmp(c->x, "i8") == 0 || strcmp(c->x, "e4m3") == 0;
    if (e->x_scale[0] && !(of_row && codes)) {
        snprintf(x, sizeof x, "%.10s:g%.20s", c->x, of_row ? "0" : e->x_scale);
        return set_text(c->x, sizeof c->x, x);
    }
    return true;
}

/* "m=4 n=256 k=256 x=f32 ...": words of key=value, or alone. */
static bool read_problem(char *what, trace_call *c) {
    extras e = {0};
    char *word;
    c->batch = 1;
    while ((word = strsep(&what, " ")) != NULL) {
        char *value = strchr(word, '=');
        if (value)
            *value++ = '\0';
        if (!set_field(c, &e, word, value ? value : ""))
            return false;
    }
    if (!add_extras(c, &e) || e.unknown)
        return false;
    c->k = e.no_product ? 0 : c->k;
    return true;
}

/* "m=4 KERNEL; 2 threads; 1 in the list". */
static bool read_detail(const char *detail, int64_t *m, char kernel[96], unsigned *threads, unsigned *listed) {
    long long rows;
    if (sscanf(detail, "m=%lld %95[^;]; %u threads; %u in the list", &rows, kernel, threads, listed) != 4)
        return false;
    *m = rows;
    return true;
}

/* Kernels of a GPU are named by families; the time is then that of handing the work over. */
static bool is_of_gpu(const char *kernel) {
    return strstr(kernel, "_sm90_") || strstr(kernel, "_sm80_") || strstr(kernel, "simt");
}

static bool read_run(trace *t, char *field[FIELDS], double us) {
    trace_call call = {.group = TRACE_GEMM};
    char kernel[96], name[TRACE_NAME];
    unsigned threads, listed;
    int64_t m;
    if (!read_detail(field[DETAIL], &m, kernel, &threads, &listed) || !read_problem(field[WHAT], &call) ||
        !trace_set_shape(&call, call.batch, m, call.n, call.k))
        return false;
    if (listed > 1) /* one line for all of a list, which tells the shape of its first product alone */
        call = (trace_call){.group = TRACE_GEMM};
    snprintf(name, sizeof name, listed > 1 ? "%s, list of %u" : "%s", kernel, listed);
    trace_set_name(&call, name);
    t->threads = threads > 0 && threads <= CLI_MAX_THREADS ? threads : t->threads;
    t->enqueued = t->enqueued || t->on_gpu || is_of_gpu(kernel);
    trace_count(t, trace_intern(t, &call), 1, us);
    return true;
}

/* ---- lines ---- */

static void read_line(trace *t, const text_line *line) {
    char text[MOST_LINE], *field[FIELDS], *end;
    if (line->length >= MOST_LINE || split(line, text, field) != FIELDS) {
        t->skipped++;
        return;
    }
    if (strcmp(field[EVENT], "context") == 0) {
        snprintf(t->device, sizeof t->device, "%.*s", (int)strcspn(field[DETAIL], ";"), field[DETAIL]);
        t->on_gpu = strncmp(field[WHAT], "cpu", 3) != 0;
        return;
    }
    const bool run = strcmp(field[EVENT], "run") == 0, pack = strcmp(field[EVENT], "pack") == 0;
    if (strcmp(field[LEVEL], "exec") != 0 || !(run || pack))
        return;
    const double us = strtod(field[MICROSECONDS], &end);
    const bool timed = end != field[MICROSECONDS] && *end == '\0' && us >= 0 && us < 1e15;
    const trace_call packing = {.group = TRACE_OTHER, .name = "pack"};
    if (timed && pack)
        trace_count(t, trace_intern(t, &packing), 1, us);
    else
        t->skipped += !timed || !read_run(t, field, us);
}

bool trace_is_own_line(const char *line, size_t length) { return length > 9 && memcmp(line, "rooftile,", 9) == 0; }

bool trace_read_own(trace *t, const char *bytes, size_t size, char why[CLI_WHY]) {
    const char *at = bytes;
    text_line line;
    t->format = "RFT_VERBOSE log";
    while (trace_next_line(&at, bytes + size, &line))
        if (trace_is_own_line(line.p, line.length) && !memmem(line.p, line.length, ",time_s,", 8))
            read_line(t, &line);
    (void)why;
    return true;
}
