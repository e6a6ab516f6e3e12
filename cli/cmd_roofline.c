/* SPDX-License-Identifier: Apache-2.0
 *
 * cmd_roofline.c - rooftile roofline: measure this machine's roofs, show them, save them as its profile.
 * The library reads the same file: <cache folder>/machine-<device>.json, the cache folder by RFT_CACHE_DIR's rule.
 */
#define _GNU_SOURCE
#include "gnuplot.h"
#include "machine_files.h"
#include "roofline_table.h"

#include <argp.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct roofline_options {
    const char *device, *output, *show, *spec, *plot;
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

static int show_machine(const roofline_options *o, const rft_machine *m, const rft_machine *spec) {
    (o->json ? roofline_json : roofline_text)(m, spec);
    int code = o->show ? CLI_OK : save(o, m);
    return code == CLI_OK && o->plot ? roofline_plot(o->plot, m, spec) : code;
}

/* The data sheet is the one asked for, else that of a measured machine by its name. */
static int run(const roofline_options *o) {
    rft_machine *m = cli_alloc(2, sizeof *m), *spec = m + 1;
    m->struct_size = sizeof *m;
    int code = o->spec ? machine_load("--spec", o->spec, spec) : CLI_OK;
    if (code == CLI_OK)
        code = o->show ? machine_load("--show", o->show, m) : measure_machine(o, m);
    if (code == CLI_OK) {
        bool known = o->spec || (strcmp(m->source, "measured") == 0 && machine_spec(m, spec));
        code = show_machine(o, m, known ? spec : NULL);
    }
    free(m);
    return code;
}

static error_t parse(int key, char *arg, struct argp_state *state) {
    roofline_options *o = state->input;
    char why[CLI_WHY];
    plot_form form;
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
    case 'p':
        if (!gnuplot_form(arg, &form))
            argp_error(state, "--plot: '%s' is neither a file that ends in .svg or .png nor -, the terminal", arg);
        o->plot = arg;
        return 0;
    case 'P':
        o->spec = arg;
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
        {"show", 'S', "NAME", 0, "Show a saved profile (FILE.json), or a data sheet such as h100; measure nothing", 0},
        {"spec", 'P', "NAME", 0, "Data sheet to set beside, such as epyc-9654; default: the one of this machine's name", 0},
        {"plot", 'p', "FILE", 0, "Plot into FILE.svg or FILE.png, or with - on the terminal, by gnuplot", 0},
        {"json", 'J', NULL, 0, "One JSON object a line", 0},
        {0}};
    static const struct argp argp = {flags, parse, NULL, doc, NULL, NULL, NULL};
    roofline_options o = {.device = "cpu", .seconds = 10};
    argp_parse(&argp, argc, argv, 0, NULL, &o);
    return run(&o);
}
