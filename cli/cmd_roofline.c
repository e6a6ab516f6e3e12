/* SPDX-License-Identifier: Apache-2.0
 *
 * cmd_roofline.c - rooftile roofline: measure this machine's roofs, show them, save them as its profile.
 * The library reads the same file: <cache folder>/machine-<device>.json, the cache folder by RFT_CACHE_DIR's rule.
 */
#define _GNU_SOURCE
#include "cli_parse.h"
#include "out_json.h"
#include "out_text.h"

#include <argp.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct roofline_options {
    const char *device, *output, *show;
    int64_t threads;
    double seconds;
    bool json;
} roofline_options;

static bool set_in_env(const char *name, const char **value) {
    *value = secure_getenv(name);
    return *value && **value;
}

/* The profile that a context of this device finds by itself. */
static bool default_path(const char *device, char *path, size_t cap) {
    const char *folder, *rest = "";
    if (!set_in_env("RFT_CACHE_DIR", &folder)) {
        rest = "/rooftile";
        if (!set_in_env("XDG_CACHE_HOME", &folder) || folder[0] != '/') {
            rest = "/.cache/rooftile";
            if (!set_in_env("HOME", &folder))
                return false;
        }
    }
    int kind = (int)strcspn(device, ":"); /* "cuda:1" and "cuda:0" share a profile */
    int length = snprintf(path, cap, "%s%s/machine-%.*s.json", folder, rest, kind, device);
    return length > 0 && (size_t)length < cap;
}

static void show_progress(void *user, const char *what) {
    (void)user;
    cli_progress("measuring %s", what);
}

static bool is_gpu(const rft_machine *m) { return strncmp(m->device, "cuda", 4) == 0; }

static int count_columns(const rft_machine *m, column *columns, char (*titles)[32]) {
    const char *what = is_gpu(m) ? "SM" : "thread";
    for (uint32_t i = 0; i < m->n_counts; i++) {
        snprintf(titles[i], sizeof titles[i], "%u %s%s", m->counts[i], what, m->counts[i] == 1 ? "" : "s");
        columns[3 + i] = (column){titles[i], 0, false};
    }
    return 3 + (int)m->n_counts;
}

static void level_rows(const rft_machine *m, cell *cells, int n) {
    for (uint32_t i = 0; i < m->n_levels; i++)
        for (int copy = 0; copy < 2; copy++) {
            const rft_machine_level *l = &m->levels[i];
            cell *row = cells + (size_t)(2 * (int)i + copy) * (size_t)n;
            snprintf(row[0], CELL, "%s", copy ? "" : l->name);
            format_bytes(row[1], (double)l->bytes);
            if (copy)
                row[1][0] = '\0';
            snprintf(row[2], CELL, "%s", copy ? "copy" : "read");
            for (uint32_t t = 0; t < m->n_counts; t++)
                format_3(row[3 + t], copy ? l->copy_gbps[t] : l->read_gbps[t]);
        }
}

static void peak_rows(const rft_machine *m, cell *cells, int n) {
    for (uint32_t i = 0; i < m->n_peaks; i++) {
        const rft_machine_peak *p = &m->peaks[i];
        cell *row = cells + (size_t)i * (size_t)n;
        snprintf(row[0], CELL, "%s", p->isa);
        snprintf(row[1], CELL, "%s", p->op);
        snprintf(row[2], CELL, "%s", rft_type_name(p->type));
        for (uint32_t t = 0; t < m->n_counts; t++)
            format_3(row[3 + t], p->gflops[t]);
    }
}

static void print_machine(const rft_machine *m) {
    column levels[3 + RFT_MACHINE_COUNTS] = {{"memory, GB/s", 0, true}, {"working set", 0, false}, {"", 0, true}};
    column peaks[3 + RFT_MACHINE_COUNTS] = {{"arithmetic, GFLOP/s", 0, true}, {"instruction", 0, true}, {"type", 0, true}};
    char titles[RFT_MACHINE_COUNTS][32];
    int n = count_columns(m, levels, titles);
    size_t rows = 2 * (m->n_levels > m->n_peaks ? m->n_levels : m->n_peaks);
    cell *cells = cli_alloc((rows + 1) * (size_t)n, sizeof *cells);
    count_columns(m, peaks, titles);
    printf("%s%s%s · %s · %s · %s %s\n\n", text_bold(), m->name, text_plain(), m->device, m->isa, m->source, m->date);
    level_rows(m, cells, n);
    text_table(levels, n, cells, 2 * m->n_levels);
    putchar('\n');
    peak_rows(m, cells, n);
    text_table(peaks, n, cells, m->n_peaks);
    if (m->launch_us > 0)
        printf("\nlaunch: %.3g us from kernel to kernel of a graph, %.3g us of the host each\n", m->launch_us, m->enqueue_us);
    free(cells);
}

static json_t *numbers(const double *v, uint32_t n) {
    json_t *array = json_array();
    for (uint32_t i = 0; i < n; i++)
        json_array_append_new(array, json_real(v[i]));
    return array;
}

static void print_json(const rft_machine *m) {
    for (uint32_t i = 0; i < m->n_levels; i++)
        json_print(json_pack("{s:s, s:I, s:o, s:o}", "level", m->levels[i].name, "bytes", (json_int_t)m->levels[i].bytes,
                             "read_gbps", numbers(m->levels[i].read_gbps, m->n_counts), "copy_gbps",
                             numbers(m->levels[i].copy_gbps, m->n_counts)));
    for (uint32_t i = 0; i < m->n_peaks; i++)
        json_print(json_pack("{s:s, s:s, s:s, s:o}", "isa", m->peaks[i].isa, "op", m->peaks[i].op, "type",
                             rft_type_name(m->peaks[i].type), "gflops", numbers(m->peaks[i].gflops, m->n_counts)));
    if (m->launch_us > 0)
        json_print(json_pack("{s:f, s:f}", "launch_us", m->launch_us, "enqueue_us", m->enqueue_us));
}

static int measure_machine(const roofline_options *o, rft_machine *m) {
    rft_ctx_options options = rft_ctx_options_init();
    rft_error err = {0};
    rft_ctx *ctx;
    options.threads = (uint32_t)o->threads;
    if (rft_ctx_create(o->device, &options, &ctx, &err) != RFT_OK)
        return cli_failed(&err, "context");
    rft_status s = rft_machine_measure(ctx, o->seconds, show_progress, NULL, m, &err);
    cli_progress_end();
    rft_ctx_free(ctx);
    return s == RFT_OK ? CLI_OK : cli_failed(&err, "measure");
}

static int save(const roofline_options *o, const rft_machine *m) {
    char path[PATH_MAX];
    rft_error err = {0};
    if (o->output) {
        snprintf(path, sizeof path, "%s", o->output);
    } else if (!default_path(o->device, path, sizeof path)) {
        cli_message("no cache folder: set RFT_CACHE_DIR or HOME, or give --output");
        return CLI_USAGE;
    }
    if (rft_machine_save(m, path, &err) != RFT_OK)
        return cli_failed(&err, "save");
    if (!o->json)
        printf("\nsaved to %s\n", path);
    return CLI_OK;
}

static int run(const roofline_options *o) {
    rft_machine *m = cli_alloc(1, sizeof *m);
    rft_error err = {0};
    int code = CLI_OK;
    m->struct_size = sizeof *m;
    if (!o->show)
        code = measure_machine(o, m);
    else if (rft_machine_load(o->show, m, &err) != RFT_OK)
        code = cli_failed(&err, "--show");
    if (code == CLI_OK) {
        (o->json ? print_json : print_machine)(m);
        code = o->show ? CLI_OK : save(o, m);
    }
    free(m);
    return code;
}

static error_t parse(int key, char *arg, struct argp_state *state) {
    roofline_options *o = state->input;
    char why[CLI_WHY];
    switch (key) {
    case 'D':
        o->device = arg;
        return 0;
    case 'o':
        o->output = arg;
        return 0;
    case 'S':
        o->show = arg;
        return 0;
    case 'J':
        o->json = true;
        return 0;
    case 'T':
        if (!parse_int(arg, 1, CLI_MAX_THREADS, &o->threads, why))
            argp_error(state, "--threads: %s", why);
        return 0;
    case 's':
        if (!parse_number(arg, 0.1, 3600, &o->seconds, why))
            argp_error(state, "--seconds: %s", why);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const char doc[] =
    "Measures the read and copy bandwidth of each cache and of memory, and the arithmetic peak of each type, at several thread "
    "counts; of a GPU all its multiprocessors, and what a launch takes. The profile is what every bound of the tool and the "
    "library comes from.\v"
    "Without --output the profile goes to CACHE/machine-DEVICE.json, where the library looks for it; CACHE is $RFT_CACHE_DIR, "
    "else "
    "$XDG_CACHE_HOME/rooftile, else ~/.cache/rooftile. Measure on an idle machine.";

int cmd_roofline(int argc, char **argv) {
    static const struct argp_option flags[] = {
        {"device", 'D', "NAME", 0, "cpu (default), cuda or cuda:N", 0},
        {"threads", 'T', "N", 0, "Most threads measured; default: all cores of this process", 0},
        {"seconds", 's', "N", 0, "Time to spend (default 10)", 0},
        {"output", 'o', "FILE", 0, "Save here instead of the cache folder", 0},
        {"show", 'S', "FILE", 0, "Show a saved profile; measure nothing", 0},
        {"json", 'J', NULL, 0, "One JSON object a line", 0},
        {0}};
    static const struct argp argp = {flags, parse, NULL, doc, NULL, NULL, NULL};
    roofline_options o = {.device = "cpu", .seconds = 10};
    argp_parse(&argp, argc, argv, 0, NULL, &o);
    return run(&o);
}
