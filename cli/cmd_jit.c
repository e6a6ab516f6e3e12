/* SPDX-License-Identifier: Apache-2.0
 *
 * cmd_jit.c - rooftile jit: compile the kernels of a model or of given shapes into the cache, so that no plan waits for the
 * compiler later. With a profile it needs no GPU, only NVRTC.
 */
#include "bench_timer.h"
#include "machine_files.h"
#include "model_layer.h"
#include "out_json.h"
#include "out_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct jit_command {
    run_options run;
    const char *model;
    bool x_given;
    rft_machine machine; /* that the kernels are for, where it is described and not here */
    rft_ctx *ctx;        /* of the GPU, where it is here */
    int64_t products;
    double seconds;
} jit_command;

static const column columns[] = {{"m", 9, true}, {"n", 7, false},       {"k", 7, false},      {"x", 4, true},
                                 {"w", 4, true}, {"seconds", 7, false}, {"epilogue", 0, true}};

enum { COLUMNS = sizeof columns / sizeof *columns };

static void show(const jit_command *c, const run_options *o, const rft_linear_desc *d, double seconds) {
    cell cells[COLUMNS];
    if (c->run.json) {
        json_print(json_pack("{s:I, s:I, s:I, s:I, s:s, s:s, s:s, s:f}", "m_min", (json_int_t)d->m_min, "m_max",
                             (json_int_t)d->m_max, "n", (json_int_t)d->w.n, "k", (json_int_t)d->w.k, "x", rft_type_name(o->x),
                             "w", rft_type_name(o->w), "epi", o->epi.text, "seconds", seconds));
        return;
    }
    snprintf(cells[0], CELL, d->m_min == d->m_max ? "%lld" : "%lld..%lld", (long long)d->m_min, (long long)d->m_max);
    snprintf(cells[1], CELL, "%lld", (long long)d->w.n);
    snprintf(cells[2], CELL, "%lld", (long long)d->w.k);
    snprintf(cells[3], CELL, "%s", rft_type_name(o->x));
    snprintf(cells[4], CELL, "%s", rft_type_name(o->w));
    snprintf(cells[5], CELL, "%.2f", seconds);
    format_text(cells[6], o->epi.text, 120);
    text_row(columns, cells, COLUMNS);
    fflush(stdout);
}

static rft_status build_described(const jit_command *c, const rft_linear_desc *d, rft_error *err) {
    rft_ctx_options options = rft_ctx_options_init();
    options.threads = c->run.threads;
    return rft_prebuild(&c->machine, &options, d, err);
}

static rft_status build_here(const jit_command *c, const rft_linear_desc *d, rft_error *err) {
    rft_plan *plan;
    rft_status status = rft_plan_create(c->ctx, d, &plan, err);
    if (status == RFT_OK)
        rft_plan_free(plan);
    return status;
}

/* One plan's kernels, for rows m_min..m_max. */
static int build(jit_command *c, const run_options *o, int64_t n, int64_t k, int64_t m_min, int64_t m_max) {
    rft_linear_desc d = options_desc(o, n, k, m_min, m_max);
    rft_error err = {0};
    double start = now_seconds();
    if ((c->ctx ? build_here : build_described)(c, &d, &err) != RFT_OK)
        return cli_failed(&err, "compile");
    double seconds = now_seconds() - start;
    c->products++;
    c->seconds += seconds;
    show(c, o, &d, seconds);
    return CLI_OK;
}

static int build_shapes(jit_command *c) {
    int code = CLI_OK;
    for (size_t i = 0; i < c->run.shapes.n; i++)
        for (size_t j = 0; code == CLI_OK && j < c->run.shapes.v[i].m.n; j++) {
            const shape *s = &c->run.shapes.v[i];
            code = build(c, &c->run, s->n, s->k, s->m.v[j], s->m.v[j]);
        }
    return code;
}

/* The rows of -m as one range: what an engine plans when it loads a model. */
static void range_of(const int_list *m, int64_t *least, int64_t *most) {
    *least = *most = m->n ? m->v[0] : 1;
    for (size_t i = 0; i < m->n; i++) {
        *least = m->v[i] < *least ? m->v[i] : *least;
        *most = m->v[i] > *most ? m->v[i] : *most;
    }
}

static int build_layers(jit_command *c, const rft_model *model) {
    const rft_phase phase = {RFT_PHASE_DECODE, 1, 1};
    run_options base = c->run;
    rft_error err = {0};
    int64_t m_min, m_max;
    int code = CLI_OK;
    if (!c->ctx)
        base.device = c->machine.device; /* which decides what runs as it is stored */
    range_of(&c->run.m, &m_min, &m_max);
    for (int64_t i = 0; code == CLI_OK && i < rft_model_layer_count(model); i++) {
        rft_layer layer = rft_layer_init();
        if (rft_model_get_layer(model, i, &phase, &layer, &err) != RFT_OK)
            return cli_failed(&err, c->model);
        bool decoded;
        run_options o = model_layer_options(&base, c->x_given, model, &layer, &decoded);
        code = build(c, &o, layer.n, layer.k, m_min, m_max);
    }
    return code;
}

static int build_model(jit_command *c) {
    rft_error err = {0};
    rft_model *model;
    if (rft_model_open(c->model, &model, &err) != RFT_OK)
        return cli_failed(&err, c->model);
    int code = build_layers(c, model);
    rft_model_free(model);
    return code;
}

static int open_target(jit_command *c) {
    int code;
    if (!machine_described(&c->run, &c->machine, &code))
        return options_context(&c->run, NULL, NULL, &c->ctx);
    if (code != CLI_OK || strncmp(c->machine.device, "cuda", 4) == 0)
        return code;
    cli_message("--%s: \"%s\" describes a \"%s\" device; kernels are compiled for GPUs", c->run.machine ? "machine" : "profile",
                c->machine.name, c->machine.device);
    return CLI_USAGE;
}

static int run_jit(jit_command *c) {
    if (!c->model && c->run.shapes.n == 0) {
        cli_message("nothing to compile: give --prebuild MODEL, or -n and -k, or --shapes FILE");
        return CLI_USAGE;
    }
    if (!c->run.machine && !c->run.profile && strncmp(c->run.device, "cuda", 4) != 0) {
        cli_message("kernels are compiled for GPUs: give --device cuda:N, or --machine NAME of one that is not here");
        return CLI_USAGE;
    }
    int code = open_target(c);
    if (code == CLI_OK && !c->run.json)
        text_header(columns, COLUMNS);
    if (code == CLI_OK)
        code = c->model ? build_model(c) : build_shapes(c);
    if (code == CLI_OK && !c->run.json)
        printf("%lld product%s, %.1f s\n", (long long)c->products, c->products == 1 ? "" : "s", c->seconds);
    rft_ctx_free(c->ctx);
    return code;
}

static const struct argp_child children[] = {{&options_argp, 0, NULL, 0}, {0}};

static error_t parse(int key, char *arg, struct argp_state *state) {
    jit_command *c = state->input;
    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &c->run;
        return 0;
    case 'P':
        c->model = arg;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const char doc[] =
    "Compiles the kernels that a model's layers, or given shapes, need on a GPU, into the cache folder where the library looks "
    "for "
    "them ($RFT_CACHE_DIR, else ~/.cache/rooftile). A product that was compiled before takes no time.\v"
    "A model's layers are planned for all rows of -m at once, from the least to the most (default 1); of shapes, each m by "
    "itself, as bench does. With --machine or --profile the GPU need not be here, but NVRTC must.\n\n"
    "Example: rooftile jit --prebuild model.gguf -m 1..512 --machine h200";

int cmd_jit(int argc, char **argv) {
    static const struct argp_option flags[] = {
        {"prebuild", 'P', "MODEL", 0, "GGUF file or config.json whose layers are meant", 0}, {0}};
    static const struct argp argp = {flags, parse, NULL, doc, children, NULL, NULL};
    jit_command *c = cli_alloc(1, sizeof *c);
    c->run = options_default();
    argp_parse(&argp, argc, argv, 0, NULL, c);
    c->x_given = c->run.x != (rft_type)0;
    int code = options_finish(&c->run, "1");
    if (code == CLI_OK)
        code = run_jit(c);
    options_free(&c->run);
    free(c);
    return code;
}
