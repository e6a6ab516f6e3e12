/* SPDX-License-Identifier: Apache-2.0
 *
 * cmd_why.c - rooftile why: the six questions that decide the speed of one linear layer, answered on one screen.
 */
#include "model_ranks.h"
#include "why_facts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct why_command {
    model_session s;
    const char *layer;
} why_command;

static int unknown_layer(const why_command *c) {
    char names[512] = "";
    size_t at = 0;
    for (int64_t i = 0; i < c->s.n && at < sizeof names; i++)
        if (i == 0 || strcmp(c->s.rows[i].layer.name, c->s.rows[i - 1].layer.name) != 0)
            at += (size_t)snprintf(names + at, sizeof names - at, " %s", c->s.rows[i].layer.name);
    cli_message("'%s' is no layer of %s; it has%s", c->layer, c->s.m.file, names);
    return CLI_USAGE;
}

/* Nothing runs a W that is cut amid blocks. */
static int measure_row(const why_command *c, model_row *row) {
    if (row->amiss) {
        cli_message("%s of one rank: %s", c->layer, row->shard.note);
        return CLI_LIBRARY;
    }
    return c->s.m.measure ? model_row_measure(&c->s.m, row) : CLI_OK;
}

/* A name may have several rows, where blocks differ in type or shape. */
static int show_layers(why_command *c) {
    int code = CLI_OK;
    int64_t shown = 0;
    for (int64_t i = 0; i < c->s.n && cli_goes_on(code); i++) {
        why_facts facts;
        if (strcmp(c->s.rows[i].layer.name, c->layer) != 0)
            continue;
        code = cli_worse(code, measure_row(c, &c->s.rows[i]));
        if (!cli_goes_on(code))
            break;
        if (shown++ && !c->s.m.run.json)
            putchar('\n');
        why_collect(&c->s, &c->s.rows[i], &facts);
        (c->s.m.run.json ? why_json : why_text)(&facts);
    }
    return shown || code != CLI_OK ? code : unknown_layer(c);
}

static const struct argp_child children[] = {{&model_session_argp, 0, NULL, 0}, {&ranks_argp, 0, NULL, 0}, {0}};

static error_t parse(int key, char *arg, struct argp_state *state) {
    why_command *c = state->input;
    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &c->s;
        state->child_inputs[1] = &c->s.m;
        return 0;
    case 'R': c->s.m.measure = true; return 0;
    case ARGP_KEY_ARG:
        if (c->layer)
            argp_error(state, "'%s': one model and one layer at a time", arg);
        *(c->s.m.file ? &c->layer : &c->s.m.file) = arg;
        return 0;
    case ARGP_KEY_END:
        if (!c->s.m.file)
            argp_error(state, "no model file");
        else if (!c->layer)
            argp_error(state, "no layer: rooftile model %s lists them", c->s.m.file);
        return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

static const char doc[] =
    "Says what decides the speed of one linear layer of a model: the phase; M, N and K; the layout; the types; what is "
    "fused behind the product; and whether the product is the hot spot at all. Then its bound, with --run its time, and what to "
    "do.\v"
    "LAYER is a name of rooftile model's first column. MODEL and the flags are those of rooftile model, for "
    "one phase of inference and without --html; with --tp or --ep the answers are about what one rank has of the layer.\n\n"
    "Example: rooftile why model.gguf ffn_down --phase decode:1 --run";

int cmd_why(int argc, char **argv) {
    static const struct argp_option flags[] = {{"run", 'R', NULL, 0, "Measure it, on the model's own weights", 0}, {0}};
    static const struct argp argp = {flags, parse, "MODEL LAYER", doc, children, NULL, NULL};
    why_command c = {.s = model_session_make()};
    argp_parse(&argp, argc, argv, 0, NULL, &c);
    int code = model_session_open(&c.s);
    if (code == CLI_OK)
        code = show_layers(&c);
    model_session_close(&c.s);
    return code;
}
