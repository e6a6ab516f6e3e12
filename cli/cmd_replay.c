/* SPDX-License-Identifier: Apache-2.0
 *
 * cmd_replay.c - rooftile replay: the products of a recorded run as lines of rooftile bench, or run here at once.
 */
#include "bench_run.h"
#include "out_json.h"
#include "out_text.h"
#include "replay_list.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct peer_sum { /* of the calls that another library ran beside ours */
    char name[32];
    double us, here;
    int64_t products;
} peer_sum;

typedef struct replay_command {
    run_options run;
    const char *file;
    bool measure;
    int64_t top;
    trace t;
    replay_list list;
    bench_job *job;
    replay_item *item; /* that runs */
    peer_sum peers[ROW_PEERS];
    int n_peer;
} replay_command;

/* ---- lines ---- */

/* "rooftile bench -n 4096 -k 4096 ... -m 1,16  # m=1: 32 calls, 1234 us; ...". */
static void print_line(const replay_command *c, size_t from, size_t end) {
    const replay_item *items = c->list.items;
    const bool on_cpu = strncmp(c->run.device, "cpu", 3) == 0;
    cell us;
    printf("rooftile bench %s%s%s -m ", items[from].line, on_cpu ? "" : " --device ", on_cpu ? "" : c->run.device);
    for (size_t i = from; i < end; i++)
        printf("%s%lld", i > from ? "," : "", (long long)items[i].m);
    for (size_t i = from; i < end; i++) {
        format_us(us, items[i].us);
        printf("%s m=%lld: %lld call%s, %s us", i > from ? ";" : "  #", (long long)items[i].m, (long long)items[i].calls,
               items[i].calls == 1 ? "" : "s", us);
    }
    putchar('\n');
}

static json_t *json_of_item(const replay_item *item) {
    char x[X_TEXT], w[WEIGHT_TEXT];
    const run_options *o = &item->options;
    x_text(o->x, &o->x_groups, x);
    weight_text(o->w, &o->w_scales, w);
    return json_pack("{s:I, s:I, s:I, s:I, s:s, s:s, s:s, s:s, s:s, s:I, s:f}", "m", (json_int_t)item->m, "n",
                     (json_int_t)item->n, "k", (json_int_t)item->k, "batch", (json_int_t)o->batch, "x", x, "w", w, "y",
                     rft_type_name(o->y), "layout", o->layout, "epi", o->epi.text, "calls", (json_int_t)item->calls,
                     "recorded_us", item->us);
}

static void print_lines(const replay_command *c) {
    for (size_t i = 0; i < c->list.n;) {
        const size_t end = replay_line_end(&c->list, i);
        if (!c->run.json)
            print_line(c, i, end);
        for (; i < end; i++)
            if (c->run.json)
                json_print(json_of_item(&c->list.items[i]));
    }
}

/* ---- runs ---- */

static peer_sum *find_peer(replay_command *c, const char *name) {
    for (int i = 0; i < c->n_peer; i++)
        if (strcmp(c->peers[i].name, name) == 0)
            return &c->peers[i];
    if (c->n_peer == ROW_PEERS)
        return NULL;
    peer_sum *fresh = &c->peers[c->n_peer++];
    snprintf(fresh->name, sizeof fresh->name, "%s", name);
    return fresh;
}

static void add_peers(replay_command *c, const bench_row *row) {
    const double calls = (double)c->item->calls;
    for (int i = 0; i < row->n_peer; i++) {
        peer_sum *sum = find_peer(c, row->peer[i].name);
        if (!sum)
            continue;
        sum->us += calls * row->peer[i].us;
        sum->here += calls * row->us;
        sum->products++;
    }
}

static void keep_time(void *user, const bench_row *row) {
    replay_command *c = user;
    if (row->beside)
        return;
    c->item->here = row->us;
    add_peers(c, row);
    if (!c->run.json)
        return;
    json_t *object = json_of_row(row);
    json_extend(object, json_of_item(c->item));
    json_print(object);
}

static int run_line(replay_command *c, size_t from, size_t end) {
    weight_set set = {0};
    c->job->o = &c->list.items[from].options;
    int code = bench_weights(c->job, c->list.items[from].n, c->list.items[from].k, NULL, &set);
    for (size_t i = from; i < end && cli_goes_on(code); i++) {
        c->item = &c->list.items[i];
        code = cli_worse(code, bench_one(c->job, &set, c->item->m));
    }
    weight_set_free(&set);
    return code;
}

static void print_table(const replay_command *c) {
    enum { N = 9 };
    column columns[N] = {{"M", 0, false},       {"N", 0, false},     {"K", 0, false},
                         {"product", 0, true},  {"calls", 0, false}, {"recorded us", 0, false},
                         {"here us", 0, false}, {"ratio", 0, false}, {"saved us", 0, false}};
    cell *cells = cli_alloc((c->list.n + 1) * N, sizeof *cells);
    double recorded = 0, here = 0;
    size_t rows = 0;
    for (size_t i = 0; i < c->list.n; i++) {
        const replay_item *item = &c->list.items[i];
        cell *to = cells + rows * N;
        if (item->here <= 0)
            continue;
        const double calls = (double)item->calls, saved = item->us - calls * item->here;
        snprintf(to[0], CELL, "%lld", (long long)item->m);
        snprintf(to[1], CELL, "%lld", (long long)item->n);
        snprintf(to[2], CELL, "%lld", (long long)item->k);
        format_text(to[3], strstr(item->line, "--x"), 120);
        snprintf(to[4], CELL, "%lld", (long long)item->calls);
        format_us(to[5], item->us / calls);
        format_us(to[6], item->here);
        format_3(to[7], item->us / calls / item->here);
        snprintf(to[8], CELL, "%.4g", saved);
        recorded += item->us;
        here += calls * item->here;
        rows++;
    }
    text_table(columns, N, cells, rows);
    free(cells);
    if (here > 0)
        printf("\nrecorded %.4g us, here %.4g us: %.3g times as long. ratio: recorded / here; W is read cold here.\n", recorded,
               here, recorded / here);
    for (int i = 0; i < c->n_peer; i++) {
        const peer_sum *p = &c->peers[i];
        printf("%s: %.4g us for %lld of %zu products, %.3g times as long as here\n", p->name, p->us, (long long)p->products, rows,
               p->us / p->here);
    }
}

static int run_all(replay_command *c) {
    int code = bench_open(c->job, &c->run);
    c->job->phase = "";
    c->job->emit = keep_time;
    c->job->user = c;
    for (size_t i = 0; i < c->list.n && cli_goes_on(code);) {
        const size_t end = replay_line_end(&c->list, i);
        code = cli_worse(code, run_line(c, i, end));
        i = end;
    }
    cli_progress_end();
    if (!c->run.json && cli_goes_on(code))
        print_table(c);
    return code;
}

/* ---- the command line ---- */

static int run_replay(replay_command *c) {
    int code = trace_open(c->file, &c->t);
    if (code != CLI_OK)
        return code;
    replay_list_make(&c->t, &c->run, &c->list);
    if (c->list.left_out)
        cli_message("%lld calls (%.4g us) left out: %s", (long long)c->list.left_out, c->list.left_out_us, c->list.why);
    if (c->top)
        replay_list_cut(&c->list, c->top);
    if (c->list.n == 0) {
        cli_message("%s: no product in it can be run", c->file);
        return CLI_FAILED;
    }
    if (c->measure)
        return run_all(c);
    print_lines(c);
    return CLI_OK;
}

static int check_flags(const run_options *o) {
    if (!options_are_here(o))
        return CLI_USAGE;
    if (!options_shape_flag(o) && !o->y)
        return CLI_OK;
    cli_message(
        "shapes, types, layouts and epilogues come from the recorded run; --x alone stands for types that it does not tell");
    return CLI_USAGE;
}

static const struct argp_child children[] = {{&options_argp, 0, NULL, 0}, {0}};

static error_t parse(int key, char *arg, struct argp_state *state) {
    replay_command *c = state->input;
    char why[CLI_WHY];
    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &c->run;
        return 0;
    case 'R':
        c->measure = true;
        return 0;
    case 'N':
        if (!parse_int(arg, 0, INT32_MAX, &c->top, why))
            argp_error(state, "--top: %s", why);
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
    "Turns the products of a recorded run, in any of the formats of rooftile trace, into lines for rooftile bench: one for "
    "those that differ in m alone, with their calls and time behind it. --run times them here instead, beside what was "
    "recorded.\v"
    "Products whose types the file does not tell need --x TYPE. Flags that choose shapes do not apply.\n\n"
    "Example: ONEDNN_VERBOSE=1 ./engine >log; rooftile replay log --run --vs onednn";

int cmd_replay(int argc, char **argv) {
    static const struct argp_option flags[] = {
        {"run", 'R', NULL, 0, "Time each here", 0}, {"top", 'N', "N", 0, "Only the N lines with most recorded time", 0}, {0}};
    static const struct argp argp = {flags, parse, "FILE", doc, children, NULL, NULL};
    replay_command *c = cli_alloc(1, sizeof *c);
    c->run = options_default();
    c->job = cli_alloc(1, sizeof *c->job);
    argp_parse(&argp, argc, argv, 0, NULL, c);
    int code = check_flags(&c->run);
    if (code == CLI_OK)
        code = run_replay(c);
    bench_close(c->job);
    replay_list_free(&c->list);
    trace_free(&c->t);
    options_free(&c->run);
    free(c->job);
    free(c);
    return code;
}
