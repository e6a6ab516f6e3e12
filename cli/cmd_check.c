/* SPDX-License-Identifier: Apache-2.0
 *
 * cmd_check.c - rooftile check: prove every kernel here, every lower level, random problems, or one given problem.
 */
#define _GNU_SOURCE
#include "bench_timer.h"
#include "check_formats.h"
#include "check_grid.h"
#include "check_random.h"
#include "options.h"
#include "out_json.h"
#include "out_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MOST_FAILURES 3 /* printed in full for one kernel */

typedef struct check_command {
    run_options run;
    int64_t random;     /* problems; 0: none were asked for */
    int64_t thin, jobs; /* jobs 0: one, on a GPU one a core */
    double seconds;     /* 0: no end */
    bool copies;
    check_session session;
    check_tally total;
    int64_t shown;
    bool headed; /* the table has its first line */
    int unrun;   /* exit code of a given problem that is no layer, or has no room; CLI_OK: there is none */
} check_command;

static const column columns[] = {
    {"what", 44, true}, {"problems", 8, false}, {"refused", 7, false}, {"failed", 6, false}, {"worst err/limit", 15, false}};

/* Of a given problem that says nothing of any kernel. */
static int code_of(check_verdict verdict) {
    return verdict == CHECK_ILLEGAL ? CLI_USAGE : verdict == CHECK_TOO_LARGE ? CLI_LIBRARY : CLI_OK;
}

static void show_failure(void *user, const check_problem *p, const check_result *r) {
    check_command *c = user;
    const int code = c->run.shapes.n ? code_of(r->verdict) : CLI_OK;
    char repro[768];
    c->unrun = cli_worse(c->unrun, code);
    if (c->shown++ >= MOST_FAILURES)
        return;
    if (code != CLI_OK) {
        cli_message("-m %lld -n %lld -k %lld: %s", (long long)p->m, (long long)p->n, (long long)p->k, r->message);
        return;
    }
    check_repro(p, strncmp(c->run.device, "cpu", 3) ? c->run.device : NULL, repro, sizeof repro);
    cli_message("%s%s%s%s: %s\n  %s", text_red(), r->kernel[0] ? r->kernel : "failure", text_plain(),
                r->verdict == CHECK_WRONG ? ": wrong" : "", r->message, repro);
}

static void show_tally(check_command *c, const char *what, const check_tally *t) {
    cli_progress_end();
    if (c->run.json) {
        json_print(json_pack("{s:s, s:I, s:I, s:I, s:f}", "what", what, "problems", (json_int_t)t->run, "refused",
                             (json_int_t)t->refused, "failed", (json_int_t)t->failed, "worst", t->worst));
    } else {
        cell cells[5];
        if (!c->headed)
            text_header(columns, 5);
        c->headed = true;
        snprintf(cells[0], CELL, "%s", what);
        snprintf(cells[1], CELL, "%lld", (long long)t->run);
        snprintf(cells[2], CELL, "%lld", (long long)t->refused);
        snprintf(cells[3], CELL, "%lld", (long long)t->failed);
        snprintf(cells[4], CELL, "%.3f", t->worst);
        text_row(columns, cells, 5);
        fflush(stdout);
    }
    if (c->total.refused == 0)
        memcpy(c->total.refusal, t->refusal, sizeof t->refusal);
    c->total.run += t->run;
    c->total.refused += t->refused;
    c->total.failed += t->failed;
    c->shown = 0;
}

/* A built kernel of this name, or of this level. */
static bool find_kernel(const char *name, const char *isa, rft_kernel_info *k) {
    for (uint32_t i = 0; i < rft_kernel_count(); i++)
        if (rft_kernel_get(i, k) == RFT_OK && strcmp(name ? k->name : k->isa, name ? name : isa) == 0)
            return true;
    return false;
}

static void run_kernels(check_command *c) {
    for (uint32_t i = 0; i < rft_kernel_count() && !c->session.cut; i++) {
        rft_kernel_info k = {.struct_size = sizeof k};
        check_tally t = {0};
        if (rft_kernel_get(i, &k) != RFT_OK || !k.available || check_on_gpu(&k) != c->session.gpu ||
            (c->run.kernel && strcmp(c->run.kernel, k.name) != 0))
            continue;
        cli_progress("check: %s", k.name);
        check_kernel(&c->session, &k, &t);
        show_tally(c, k.name, &t);
    }
}

static bool runs_here(const char *device_name, const char *isa) {
    rft_ctx_options options = rft_ctx_options_init();
    rft_ctx *ctx = NULL;
    rft_device_info device = {.struct_size = sizeof device};
    options.max_isa = isa;
    bool here = rft_ctx_create(device_name, &options, &ctx, NULL) == RFT_OK && rft_ctx_get_device(ctx, &device) == RFT_OK &&
                strcmp(device.isa, isa) == 0;
    rft_ctx_free(ctx);
    return here;
}

static void run_level(check_command *c, const char *isa) {
    check_tally t = {0};
    char what[64];
    cli_progress("check: level %s", isa);
    check_level(&c->session, isa, &t);
    snprintf(what, sizeof what, "chosen under %s", isa);
    show_tally(c, what, &t);
}

static void run_choice(check_command *c) {
    check_tally t = {0};
    cli_progress("check: the library's choice");
    check_level(&c->session, NULL, &t);
    show_tally(c, "chosen", &t);
}

/* Built levels, lowest first, that this machine has and --isa allows. list: their names' storage. */
static int levels_here(const check_command *c, char list[256], const char *level[CHECK_LEVELS]) {
    rft_build_info build = rft_build_info_init();
    char *rest = list, *isa;
    int n = 0;
    snprintf(list, 256, "%s", rft_get_build_info(&build) == RFT_OK ? build.isa_built : "");
    while (n < CHECK_LEVELS && (isa = strsep(&rest, ",")) != NULL)
        if (*isa && (!c->run.isa || strcmp(c->run.isa, isa) == 0) && runs_here(c->run.device, isa))
            level[n++] = isa;
    return n;
}

static void run_levels(check_command *c) {
    const char *level[CHECK_LEVELS];
    char list[256];
    const int n = levels_here(c, list, level);
    for (int i = 0; i < n && !c->session.cut; i++)
        run_level(c, level[i]);
}

static void run_random(check_command *c) {
    check_tally t = {0};
    random_space space = {.threads = c->run.threads};
    rft_kernel_info kernel = {.struct_size = sizeof kernel};
    char list[256];
    if (c->run.kernel && find_kernel(c->run.kernel, NULL, &kernel))
        space.kernel = &kernel;
    else if (!c->session.gpu)
        space.levels = levels_here(c, list, space.level);
    if (c->run.isa && !c->session.gpu && !space.kernel && !space.levels)
        return; /* none is run on a machine without the level */
    check_random(&c->session, c->random, &space, &t);
    show_tally(c, "random problems", &t);
}

static void run_given(check_command *c) {
    const run_options *o = &c->run;
    check_tally t = {0};
    check_list list = {0};
    check_problem p = {.kernel = o->kernel,
                       .isa = o->isa,
                       .threads = o->threads,
                       .batch = o->batch,
                       .x = o->x,
                       .x_groups = o->x_groups,
                       .w = o->w,
                       .scales = o->w_scales,
                       .y = o->y,
                       .x_order = o->x_order,
                       .w_order = o->w_order,
                       .compute = o->compute,
                       .epi = o->epi,
                       .dynamic = o->dynamic,
                       .view = o->view,
                       .seed = o->seed};
    for (size_t i = 0; i < o->shapes.n; i++)
        for (size_t j = 0; j < o->shapes.v[i].m.n; j++) {
            p.n = o->shapes.v[i].n;
            p.k = o->shapes.v[i].k;
            p.m = o->shapes.v[i].m.v[j];
            check_list_add(&list, &p, NULL);
        }
    check_list_run(&c->session, &list, &t);
    if (c->unrun == CLI_OK)
        show_tally(c, "given problems", &t);
}

static bool names_are_known(const run_options *o) {
    rft_build_info build = rft_build_info_init();
    rft_kernel_info k = {.struct_size = sizeof k};
    if (o->isa && !find_kernel(NULL, o->isa, &k)) {
        rft_get_build_info(&build);
        cli_message("--isa: \"%s\" is none of this build's levels (%s)", o->isa, build.isa_built);
        return false;
    }
    if (o->kernel && !find_kernel(o->kernel, NULL, &k)) {
        cli_message("--kernel: no kernel is named \"%s\"; rooftile info --kernels lists them", o->kernel);
        return false;
    }
    return true;
}

static void open_session(check_command *c) {
    check_session *s = &c->session;
    *s = (check_session){.gpu = strncmp(c->run.device, "cuda", 4) == 0,
                         .deadline = c->seconds > 0 ? now_seconds() + c->seconds : 0,
                         .seed = c->run.seed,
                         .thin = c->thin,
                         .shrink = c->random ? MOST_FAILURES : 0,
                         .failure = show_failure,
                         .user = c};
    int64_t cores = sysconf(_SC_NPROCESSORS_ONLN), jobs = c->jobs ? c->jobs : s->gpu ? cores : 1;
    s->jobs = jobs < 1 ? 1 : jobs > CHECK_JOBS ? CHECK_JOBS : (int)jobs;
    for (int i = 0; i < s->jobs; i++)
        s->c[i] = i ? checker_beside(s->c[0]) : checker_create(c->run.device, c->copies);
}

static void close_session(check_command *c) {
    for (int i = c->session.jobs - 1; i >= 0; i--)
        checker_free(c->session.c[i]);
}

static void run_all(check_command *c) {
    if (c->run.shapes.n) {
        run_given(c);
    } else if (c->random) {
        run_random(c);
    } else {
        if (!c->run.isa)
            run_kernels(c);
        if (!c->run.kernel && c->session.gpu && !c->session.cut)
            run_choice(c);
        else if (!c->run.kernel)
            run_levels(c);
    }
}

static int conclude(const check_command *c, bool lost) {
    if (lost)
        cli_message("a kernel broke the device, so no problem behind it was run");
    else if (c->session.cut)
        cli_message("--seconds %g: the time was up before all problems were run", c->seconds);
    if (c->unrun != CLI_OK)
        return c->unrun;
    if (c->total.refused && (c->total.run == 0 || c->run.shapes.n))
        cli_message("%lld refused, the first: %s", (long long)c->total.refused, c->total.refusal);
    if (c->total.run == 0) {
        cli_message("no problem was run%s", c->total.refused ? "" : ": no kernel of this level or name runs here");
        return CLI_FAILED;
    }
    if (!c->run.json)
        printf("%lld problems, %s%lld failed%s\n", (long long)c->total.run, c->total.failed ? text_red() : "",
               (long long)c->total.failed, c->total.failed ? text_plain() : "");
    return c->total.failed ? CLI_FAILED : CLI_OK;
}

static int run_check(check_command *c) {
    if (!options_are_here(&c->run) || !names_are_known(&c->run))
        return CLI_USAGE;
    rft_error err = {0};
    open_session(c);
    if (checker_open(c->session.c[0], &err) != RFT_OK) {
        close_session(c);
        return cli_failed(&err, "context");
    }
    check_catch_faults();
    run_all(c);
    bool lost = checker_lost(c->session.c[0]);
    close_session(c);
    return conclude(c, lost);
}

static const struct argp_child children[] = {{&options_argp, 0, NULL, 0}, {0}};

static error_t parse(int key, char *arg, struct argp_state *state) {
    check_command *c = state->input;
    char why[CLI_WHY];
    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &c->run;
        return 0;
    case 'R':
        if (!parse_int(arg, 1, INT32_MAX, &c->random, why))
            argp_error(state, "--random: %s", why);
        return 0;
    case 'T':
        if (!parse_int(arg, 1, 1000, &c->thin, why))
            argp_error(state, "--thin: %s", why);
        return 0;
    case 'J':
        if (!parse_int(arg, 1, CHECK_JOBS, &c->jobs, why))
            argp_error(state, "--jobs: %s", why);
        return 0;
    case 's':
        if (!parse_number(arg, 0.1, 86400, &c->seconds, why))
            argp_error(state, "--seconds: %s", why);
        return 0;
    case 'C':
        c->copies = true;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const char doc[] = "Compares every kernel that runs here, and the library's choice under each lower level, with an f64 "
                          "reference: sizes round all "
                          "tile edges, operands between guard pages, NaN in every gap and in the workspace. On a GPU operands "
                          "are copies between bands of "
                          "NaN, and a second run must make the same bits.\v"
                          "A failure prints the command that repeats it. With -m, -n and -k only these problems run; --kernel "
                          "and --isa narrow the rest.\n\n"
                          "Exit codes: 0 all right, 1 a failure, 2 usage, 3 the library failed, 4 a file failed.";

int cmd_check(int argc, char **argv) {
    static const struct argp_option flags[] = {{"random", 'R', "N", 0, "Run N random problems instead", 0},
                                               {"thin", 'T', "N", 0, "Run one problem in N of the full set", 0},
                                               {"jobs", 'J', "N", 0, "Prove N at once; default: 1, on a GPU one a core", 0},
                                               {"seconds", 's', "N", 0, "Start no problem after N seconds", 0},
                                               {"copies", 'C', NULL, 0, "Hand over copies, each run twice, as on a GPU", 0},
                                               {0}};
    static const struct argp argp = {flags, parse, NULL, doc, children, NULL, NULL};
    check_command c = {.run = options_default(), .thin = 1};
    argp_parse(&argp, argc, argv, 0, NULL, &c);
    int code = options_finish(&c.run, "1");
    if (code == CLI_OK)
        code = run_check(&c);
    options_free(&c.run);
    return code;
}
