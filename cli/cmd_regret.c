/* SPDX-License-Identifier: Apache-2.0
 *
 * cmd_regret.c - rooftile regret: what another library's default choice costs on a model's layers, against the best that it has
 * and against ours. All take turns in one run, as in bench --vs.
 */
#include "model_session.h"
#include "out_json.h"
#include "out_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct rival { /* one library as two peers: what it does unasked, and the best found */
    const char *name, *first, *best, *first_is, *best_is;
} rival;

static const rival rivals[] = {
    {"onednn", "onednn-plain", "onednn", "W as stored", "W in the format that the primitive asks for"},
    {"cublaslt", "cublaslt-first", "cublaslt", "the first of the heuristic's list", "the fastest of its list"},
};

typedef struct regret_command {
    model_session s;
    const rival *rival;
    char peers[2 * 4096];
} regret_command;

/* "onednn=/path/libdnnl.so.3" becomes both peers at that path. */
static int choose_rival(regret_command *c) {
    const char *vs = c->s.m.run.peers;
    if (!vs)
        vs = strncmp(c->s.m.run.device, "cpu", 3) == 0 ? "onednn" : "cublaslt";
    const size_t length = strcspn(vs, "=");
    for (size_t i = 0; i < sizeof rivals / sizeof *rivals; i++)
        if (strlen(rivals[i].name) == length && strncmp(rivals[i].name, vs, length) == 0)
            c->rival = &rivals[i];
    if (!c->rival || strchr(vs, ',')) {
        cli_message("--vs %s: one of onednn and cublaslt has a default that others of its own beat", vs);
        return CLI_USAGE;
    }
    const int n = snprintf(c->peers, sizeof c->peers, "%s%s,%s%s", c->rival->first, vs + length, c->rival->best, vs + length);
    if (n < 0 || (size_t)n >= sizeof c->peers) {
        cli_message("--vs: the path is longer than %zu bytes", sizeof c->peers / 2);
        return CLI_USAGE;
    }
    c->s.m.run.peers = c->peers;
    return CLI_OK;
}

/* ---- one row ---- */

static const row_peer *find_peer(const bench_row *row, const char *name) {
    for (int i = 0; i < row->n_peer; i++)
        if (strcmp(row->peer[i].name, name) == 0)
            return &row->peer[i];
    return NULL;
}

typedef struct loss {                     /* of one layer; 0: it has no such time */
    double first_us, best_us, first_ours; /* first_ours: the default's time / ours */
    double first_best;                    /* and / the best's, both against ours in the same rounds */
    const char *how;                      /* of the best */
} loss;

static loss loss_of(const regret_command *c, const model_row *row) {
    const row_peer *first = find_peer(&row->bench, c->rival->first), *best = find_peer(&row->bench, c->rival->best);
    loss l = {.how = best ? best->version : ""};
    if (first) {
        l.first_us = first->us;
        l.first_ours = first->ratio;
    }
    if (best)
        l.best_us = best->us;
    if (first && best && best->ratio > 0)
        l.first_best = first->ratio / best->ratio;
    return l;
}

typedef struct sums { /* of one pass through the layers that have all three times */
    double first, best, ours;
    int64_t n;
} sums;

static sums sum_up(const regret_command *c) {
    sums t = {0};
    for (int64_t i = 0; i < c->s.n; i++) {
        const model_row *row = &c->s.rows[i];
        const loss l = loss_of(c, row);
        if (l.first_us <= 0 || l.best_us <= 0 || row->bench.us <= 0)
            continue;
        t.first += row->layer.runs * l.first_us;
        t.best += row->layer.runs * l.best_us;
        t.ours += row->layer.runs * row->bench.us;
        t.n++;
    }
    return t;
}

/* ---- output ---- */

static void put_us(cell out, double us) {
    if (us > 0)
        format_us(out, us);
    else
        strcpy(out, "-");
}

static void print_table(const regret_command *c) {
    enum { N = 12 };
    column columns[N] = {{"layer", 0, true},
                         {"runs", 0, false},
                         {"M", 0, false},
                         {"N", 0, false},
                         {"K", 0, false},
                         {"W", 0, true},
                         {"default us", 0, false},
                         {"best us", 0, false},
                         {"ours us", 0, false},
                         {"default/best", 0, false},
                         {"default/ours", 0, false},
                         {"the best", 0, true}};
    cell *cells = cli_alloc((size_t)c->s.n * N, sizeof *cells);
    for (int64_t i = 0; i < c->s.n; i++) {
        const model_row *row = &c->s.rows[i];
        const loss l = loss_of(c, row);
        cell *to = cells + i * N;
        format_text(to[0], row->layer.name, CELL);
        snprintf(to[1], CELL, "%.4g", row->layer.runs);
        snprintf(to[2], CELL, "%lld", (long long)row->layer.m);
        snprintf(to[3], CELL, "%lld", (long long)row->layer.n);
        snprintf(to[4], CELL, "%lld", (long long)row->layer.k);
        snprintf(to[5], CELL, "%s", row->type);
        put_us(to[6], l.first_us);
        put_us(to[7], l.best_us);
        put_us(to[8], row->bench.us);
        format_3(to[9], l.first_best);
        format_3(to[10], l.first_ours);
        format_text(to[11], l.how, CELL);
    }
    printf("%s%s%s %s · phase %s · default: %s; best: %s\n\n", text_bold(), c->s.m.info.name, text_plain(), c->rival->name,
           c->s.phase_text, c->rival->first_is, c->rival->best_is);
    text_table(columns, N, cells, (size_t)c->s.n);
    free(cells);
}

static void print_text(const regret_command *c) {
    const sums t = sum_up(c);
    print_table(c);
    if (t.n)
        printf(
            "\na pass through %lld of %lld layers: default %.4g ms, best %.4g ms, ours %.4g ms; the default takes %.3f times as "
            "long as the best and %.3f times as long as ours\n",
            (long long)t.n, (long long)c->s.n, 1e-3 * t.first, 1e-3 * t.best, 1e-3 * t.ours, t.first / t.best, t.first / t.ours);
}

static json_t *known(double value) { return json_known(value, value > 0); }

static void print_json(const regret_command *c) {
    const sums t = sum_up(c);
    for (int64_t i = 0; i < c->s.n; i++) {
        const model_row *row = &c->s.rows[i];
        const loss l = loss_of(c, row);
        json_t *object = json_of_row(&row->bench);
        json_extend(object, json_pack("{s:o, s:f, s:o, s:o, s:o, s:o}", "layer", json_text(row->layer.name), "runs",
                                      row->layer.runs, "default_us", known(l.first_us), "best_us", known(l.best_us),
                                      "default_best", known(l.first_best), "default_ours", known(l.first_ours)));
        json_print(object);
    }
    json_print(json_pack("{s:o, s:s, s:s, s:I, s:o, s:o, s:o}", "totals", json_text(c->s.m.file), "vs", c->rival->name, "phase",
                         c->s.phase_text, "layers", (json_int_t)t.n, "default_us", known(t.first), "best_us", known(t.best),
                         "ours_us", known(t.ours)));
}

static int run_regret(regret_command *c) {
    const char *machine = c->s.m.run.machine;
    if (machine) {
        cli_message("--machine %s: every figure here is measured, and nothing runs on a machine that is not here", machine);
        return CLI_USAGE;
    }
    int code = choose_rival(c);
    if (code == CLI_OK)
        code = model_session_open(&c->s);
    if (code == CLI_OK && c->s.m.job->peers.n < 2) {
        cli_message("--vs %s: without the library there is nothing to compare with", c->rival->name);
        code = CLI_LIBRARY;
    }
    for (int64_t i = 0; i < c->s.n && cli_goes_on(code); i++)
        if (c->s.rows[i].layer.runs > 0)
            code = cli_worse(code, model_row_measure(&c->s.m, &c->s.rows[i]));
    if (cli_goes_on(code))
        (c->s.m.run.json ? print_json : print_text)(c);
    return code;
}

static const struct argp_child children[] = {{&model_session_argp, 0, NULL, 0}, {0}};

static error_t parse(int key, char *arg, struct argp_state *state) {
    regret_command *c = state->input;
    switch (key) {
    case ARGP_KEY_INIT: state->child_inputs[0] = &c->s; return 0;
    case ARGP_KEY_ARG: cli_take_file(state, &c->s.m.file, arg); return 0;
    case ARGP_KEY_NO_ARGS: argp_error(state, "no model file"); return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

static const char doc[] =
    "Times each layer of a model three ways, in turns: as another library does it unasked, as the best that this library has, "
    "and as ours. What the default loses to the best is its regret.\v"
    "--vs onednn[=PATH] (on the CPU): W as stored beside W in the format that its primitive asks for. --vs cublaslt[=PATH] (on a "
    "GPU): the first algorithm of its heuristic's list beside the fastest of the list, found by timing each.\n\n"
    "Example: rooftile regret model.gguf --phase decode:16 --vs onednn=/path/libdnnl.so.3";

int cmd_regret(int argc, char **argv) {
    static const struct argp argp = {NULL, parse, "MODEL", doc, children, NULL, NULL};
    regret_command *c = cli_alloc(1, sizeof *c);
    c->s = model_session_make();
    argp_parse(&argp, argc, argv, 0, NULL, c);
    int code = run_regret(c);
    model_session_close(&c->s);
    free(c);
    return code;
}
