/* SPDX-License-Identifier: Apache-2.0
 *
 * cmd_trace.c - rooftile trace: what a recorded run spent its time on, and how far its products are from this machine's bounds.
 */
#include "machine_files.h"
#include "trace_product.h"
#include "trace_table.h"

#include <stdlib.h>
#include <string.h>

#define DEFAULT_TOP 15

typedef struct trace_command {
    const char *file, *machine;
    run_options assumed; /* x of products whose types the file does not tell */
    bool json;
    trace t;
    trace_report report;
} trace_command;

/* ---- the machine of the bounds ---- */

static bool find_own_machine(const char *device, rft_machine *machine) {
    rft_ctx_options options = rft_ctx_options_init();
    rft_ctx *ctx;
    rft_error err = {0};
    if (rft_ctx_create(device, &options, &ctx, &err) != RFT_OK)
        return false;
    bool good = rft_ctx_get_machine(ctx, machine, &err) == RFT_OK;
    rft_ctx_free(ctx);
    return good;
}

static bool is_gpu(const rft_machine *machine) { return strncmp(machine->device, "cpu", 3) != 0; }

/* The one named, else this one's CPU or GPU, as the run was on either. */
static int choose_machine(trace_command *c) {
    trace_report *r = &c->report;
    r->machine.struct_size = sizeof r->machine;
    if (c->machine) {
        int code = machine_load("--machine", c->machine, &r->machine);
        if (code != CLI_OK)
            return code;
        r->has_machine = is_gpu(&r->machine) == c->t.on_gpu;
        if (!r->has_machine)
            cli_message("--machine %s: the run was on a %s and this machine is none, so no bound is shown", c->machine,
                        c->t.on_gpu ? "GPU" : "CPU");
        return CLI_OK;
    }
    r->has_machine = find_own_machine(c->t.on_gpu ? "cuda" : "cpu", &r->machine);
    if (!r->has_machine)
        cli_message("no profile of a %s here, so no bound is shown; --machine names one, `rooftile roofline` measures this one",
                    c->t.on_gpu ? "GPU" : "CPU");
    return CLI_OK;
}

/* Of the flag, of the run where it is told and the machine is a CPU, else all of them. */
static void choose_threads(trace_command *c) {
    const rft_machine *m = &c->report.machine;
    const uint32_t told = c->assumed.threads ? c->assumed.threads : c->t.on_gpu ? 0 : c->t.threads;
    const uint32_t all = c->report.has_machine && m->n_counts ? m->counts[m->n_counts - 1] : 0;
    c->report.threads = told && told < all ? told : all;
}

static trace_bound bound_of(const trace_command *c, const trace_call *call) {
    run_options o;
    char why[CLI_WHY];
    rft_bound b = {.struct_size = sizeof b};
    if (!c->report.has_machine || c->t.enqueued || !trace_product(call, &c->assumed, &o, why))
        return (trace_bound){0};
    const rft_linear_desc desc = options_desc(&o, call->n, call->k, call->m, call->m);
    if (rft_machine_bound(&c->report.machine, &desc, call->m, c->report.threads, &b, NULL) != RFT_OK)
        return (trace_bound){0};
    return (trace_bound){1e6 * b.seconds, b.what};
}

static int run_trace(trace_command *c) {
    trace_report *r = &c->report;
    int code = trace_open(c->file, &c->t);
    if (code == CLI_OK)
        code = choose_machine(c);
    if (code != CLI_OK)
        return code;
    choose_threads(c);
    r->file = c->file;
    r->t = &c->t;
    r->bounds = cli_alloc(c->t.n, sizeof *r->bounds);
    for (size_t i = 0; i < c->t.n; i++)
        r->bounds[i] = bound_of(c, &c->t.rows[i].call);
    (c->json ? trace_json : trace_text)(r);
    return CLI_OK;
}

/* ---- the command line ---- */

enum { KEY_MACHINE = 256, KEY_TOP, KEY_X, KEY_THREADS, KEY_JSON };

static const struct argp_option flags[] = {
    {"machine", KEY_MACHINE, "NAME|FILE", 0, "Data sheet or profile that the bounds are of; default: this machine's profile", 0},
    {"threads", KEY_THREADS, "N", 0, "That the bounds are of; default: those of the run where it tells, else all", 0},
    {"x", KEY_X, "TYPE", 0, "Stands for the types of products that the file does not tell", 0},
    {"top", KEY_TOP, "N", 0, "Rows of each table (default 15; 0: all)", 0},
    {"json", KEY_JSON, NULL, 0, "One JSON object a line", 0},
    {0}};

static error_t reject(struct argp_state *state, const char *flag, const char *why) {
    argp_error(state, "--%s: %s", flag, why);
    return 0;
}

static error_t parse(int key, char *arg, struct argp_state *state) {
    trace_command *c = state->input;
    char why[CLI_WHY];
    int64_t threads;
    switch (key) {
    case KEY_MACHINE:
        c->machine = arg;
        return 0;
    case KEY_JSON:
        c->json = true;
        return 0;
    case KEY_TOP:
        return parse_int(arg, 0, INT32_MAX, &c->report.top, why) ? 0 : reject(state, "top", why);
    case KEY_X:
        return parse_x(arg, &c->assumed.x, &c->assumed.x_groups, why) ? 0 : reject(state, "x", why);
    case KEY_THREADS:
        if (!parse_int(arg, 1, CLI_MAX_THREADS, &threads, why))
            return reject(state, "threads", why);
        c->assumed.threads = (uint32_t)threads;
        return 0;
    case ARGP_KEY_ARG:
        cli_take_file(state, &c->file, arg);
        return 0;
    case ARGP_KEY_NO_ARGS:
        argp_error(state, "no file of a recorded run");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const char doc[] =
    "Reads a recorded run and says what it spent its time on: products of matrices, attention, norms, collectives, all else. "
    "Each product has its sizes, types, layout, epilogue and phase as far as the file tells, its bound and the gap: time / "
    "bound.\v"
    "FILE is a JSON of torch.profiler (record_shapes=True tells sizes), an SQLite export of Nsight Systems, or the output of a "
    "program under ONEDNN_VERBOSE=1 or RFT_VERBOSE=exec; what it holds tells which.\n\n"
    "Example: rooftile trace trace.json --machine h200";

int cmd_trace(int argc, char **argv) {
    static const struct argp argp = {flags, parse, "FILE", doc, NULL, NULL, NULL};
    trace_command *c = cli_alloc(1, sizeof *c);
    c->assumed = options_default();
    c->report.top = DEFAULT_TOP;
    argp_parse(&argp, argc, argv, 0, NULL, c);
    int code = run_trace(c);
    free(c->report.bounds);
    trace_free(&c->t);
    free(c);
    return code;
}
