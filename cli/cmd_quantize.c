/* SPDX-License-Identifier: Apache-2.0
 *
 * cmd_quantize.c - rooftile quantize: a GGUF file whose linear layers are of a smaller type, and what each weight lost by it.
 */
#include "cli_parse.h"
#include "out_json.h"
#include "out_text.h"
#include "rooftile_model.h"

#include <argp.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct quantize_row { /* a matrix that changed its type, or each tensor with --all */
    rft_quantized q;
    char name[96], why[96], from[32];
} quantize_row;

typedef struct quantize_command {
    const char *in, *out;
    rft_quantize_options o;
    const char **keep;
    bool json, all;
    quantize_row *rows;
    size_t n_rows;
    uint64_t new_bytes; /* of all tensors */
} quantize_command;

/* Ends the call between two pieces, so that the library leaves nothing behind. */
static volatile sig_atomic_t stopped;

static void stop(int sig) { stopped = sig; }

static void catch_signals(void) {
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction action = {.sa_handler = stop};
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++)
        sigaction(signals[i], &action, NULL);
}

static bool find_type(const char *name, rft_type *out) {
    for (uint32_t i = 0; (*out = rft_quantize_type(i)) != (rft_type)0; i++)
        if (strcmp(rft_type_name(*out), name) == 0)
            return true;
    return false;
}

static void list_types(char *text, size_t size) {
    rft_type type;
    size_t n = 0;
    for (uint32_t i = 0; (type = rft_quantize_type(i)) != (rft_type)0 && n < size; i++)
        n += (size_t)snprintf(text + n, size - n, "%s%s", i ? ", " : "", rft_type_name(type));
}

static void keep_row(quantize_command *c, const rft_quantized *q) {
    c->rows = cli_grow(c->rows, c->n_rows + 1, sizeof *c->rows);
    quantize_row *row = &c->rows[c->n_rows++];
    row->q = *q;
    snprintf(row->name, sizeof row->name, "%s", q->name);
    snprintf(row->why, sizeof row->why, "%s", q->why);
    snprintf(row->from, sizeof row->from, "%s", q->scheme[0] ? q->scheme : rft_type_name(q->from));
}

static int note_tensor(void *user, const rft_quantized *q) {
    quantize_command *c = user;
    cli_progress("%lld of %lld  %s  %.0f %%", (long long)q->index + 1, (long long)q->count, q->name,
                 q->n ? 100.0 * (double)q->done / (double)q->n : 100.0);
    if (q->done == q->n) {
        c->new_bytes += q->bytes;
        if ((q->from != q->to && q->n > 1) || c->all)
            keep_row(c, q);
    }
    return stopped;
}

/* ---- output ---- */

static void error_cells(cell *c, const rft_quantized *q) {
    snprintf(c[0], CELL, "%.4f %%", 100 * q->rel_rms);
    snprintf(c[1], CELL, "%.3g", q->max_error);
    snprintf(c[2], CELL, "%.7f", q->cosine);
}

static void print_text(const quantize_command *c) {
    enum { N = 9 };
    column columns[N] = {{"tensor", 0, true},     {"N", 0, false},      {"K", 0, false},
                         {"type", 0, true},       {"kB", 0, false},     {"rel RMS", 0, false},
                         {"max error", 0, false}, {"cosine", 0, false}, {"note", 0, true}};
    cell *cells = cli_alloc(c->n_rows * N, sizeof *cells);
    for (size_t i = 0; i < c->n_rows; i++) {
        const quantize_row *row = &c->rows[i];
        cell *at = cells + i * N;
        format_text(at[0], row->name, CELL);
        snprintf(at[1], CELL, "%lld", (long long)row->q.n);
        snprintf(at[2], CELL, "%lld", (long long)row->q.k);
        snprintf(at[3], CELL, "%s→%s", row->from, rft_type_name(row->q.to));
        snprintf(at[4], CELL, "%.0f", 1e-3 * (double)row->q.bytes);
        error_cells(at + 5, &row->q);
        format_text(at[8], row->why, CELL);
    }
    text_table(columns, N, cells, c->n_rows);
    free(cells);
}

static void print_json(const quantize_command *c) {
    for (size_t i = 0; i < c->n_rows; i++) {
        const rft_quantized *q = &c->rows[i].q;
        json_print(json_pack("{s:o, s:s, s:s, s:I, s:I, s:I, s:f, s:f, s:f, s:s}", "tensor", json_text(c->rows[i].name), "from",
                             c->rows[i].from, "to", rft_type_name(q->to), "n", (json_int_t)q->n, "k", (json_int_t)q->k, "bytes",
                             (json_int_t)q->bytes, "rel_rms", q->rel_rms, "max_error", q->max_error, "cosine", q->cosine, "note",
                             c->rows[i].why));
    }
}

/* Each weight counts alike: squares of relative errors, weighted by elements. */
static double mean_error(const quantize_command *c) {
    double sum = 0, n = 0;
    for (size_t i = 0; i < c->n_rows; i++) {
        const rft_quantized *q = &c->rows[i].q;
        const double weights = q->from == q->to ? 0 : (double)q->n * (double)q->k;
        sum += weights * q->rel_rms * q->rel_rms;
        n += weights;
    }
    return n > 0 ? sqrt(sum / n) : 0;
}

static void print_totals(const quantize_command *c, const rft_model_info *info) {
    cell before, after;
    format_si(before, (double)info->file_bytes, "B");
    format_si(after, (double)c->new_bytes, "B");
    if (c->json)
        json_print(json_pack("{s:o, s:I, s:I, s:f}", "output", json_text(c->out), "file_bytes", (json_int_t)info->file_bytes,
                             "tensor_bytes", (json_int_t)c->new_bytes, "rel_rms", mean_error(c)));
    else
        printf("\n%s: %s of tensors, from a model of %s; rel RMS of what changed %.4f %%\n", c->out, after, before,
               100 * mean_error(c));
}

/* ---- the command ---- */

static int run(quantize_command *c) {
    rft_error err = {0};
    rft_model *model = NULL;
    rft_model_info info = rft_model_info_init();
    if (rft_model_open(c->in, &model, &err) != RFT_OK)
        return cli_failed(&err, c->in);
    c->o.keep = c->keep;
    c->o.progress = note_tensor;
    c->o.user = c;
    catch_signals();
    rft_status status = rft_model_get_info(model, &info, &err);
    if (status == RFT_OK)
        status = rft_model_quantize(model, c->out, &c->o, &err);
    cli_progress_end();
    rft_model_free(model);
    if (status != RFT_OK) {
        int code = cli_failed(&err, c->out);
        if (stopped) { /* end as the signal would have ended us */
            signal(stopped, SIG_DFL);
            raise(stopped);
        }
        return code;
    }
    (c->json ? print_json : print_text)(c);
    if (c->json || c->n_rows)
        print_totals(c, &info);
    return CLI_OK;
}

static void parse_to(quantize_command *c, const char *arg, struct argp_state *state) {
    char types[256];
    list_types(types, sizeof types);
    if (!find_type(arg, &c->o.to))
        argp_error(state, "--to: '%s' is none of %s", arg, types);
}

static void add_keep(quantize_command *c, const char *arg) {
    c->keep = cli_grow(c->keep, c->o.n_keep + 1, sizeof *c->keep);
    c->keep[c->o.n_keep++] = arg;
}

static void parse_threads(quantize_command *c, const char *arg, struct argp_state *state) {
    char why[CLI_WHY];
    int64_t n;
    if (!parse_int(arg, 1, CLI_MAX_THREADS, &n, why))
        argp_error(state, "--threads: %s", why);
    c->o.threads = (uint32_t)n;
}

static void parse_group(quantize_command *c, const char *arg, struct argp_state *state) {
    char unused[CLI_WHY];
    if (!parse_int(arg, 32, 128, &c->o.group_k, unused) || (c->o.group_k & (c->o.group_k - 1)) != 0)
        argp_error(state, "--group: '%s' is none of 32, 64 and 128", arg);
}

static void parse_file(quantize_command *c, const char *arg, struct argp_state *state) {
    if (c->out)
        argp_error(state, "'%s': one file in, one file out", arg);
    *(c->in ? &c->out : &c->in) = arg;
}

static error_t parse(int key, char *arg, struct argp_state *state) {
    quantize_command *c = state->input;
    switch (key) {
    case 't':
        parse_to(c, arg, state);
        return 0;
    case 'k':
        add_keep(c, arg);
        return 0;
    case 'N':
        c->o.flags |= RFT_QUANTIZE_NEAREST;
        return 0;
    case 'E':
        c->o.flags |= RFT_QUANTIZE_EMBEDDINGS;
        return 0;
    case 'R':
        c->o.flags |= RFT_QUANTIZE_AGAIN;
        return 0;
    case 'A':
        c->all = true;
        return 0;
    case 'J':
        c->json = true;
        return 0;
    case 'G':
        parse_group(c, arg, state);
        return 0;
    case 'T':
        parse_threads(c, arg, state);
        return 0;
    case ARGP_KEY_ARG:
        parse_file(c, arg, state);
        return 0;
    case ARGP_KEY_END:
        if (!c->out || !c->o.to)
            argp_error(state, "%s", c->out ? "--to is missing" : "an input and an output file are needed");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const char doc[] =
    "Writes a GGUF file with the weights of the linear layers in another type, from f32, f16 or bf16 tensors of a GGUF file or a "
    "safetensors checkpoint, and prints what each lost: relative RMS error, largest error, cosine.\v"
    "Norms, biases and the embedding stay as they are (vectors of a checkpoint become f32). Rows that are no whole blocks of 256 "
    "take "
    "a type with blocks of 32, which the table notes. OUT is replaced once the new file is whole; an error or a signal leaves it "
    "as "
    "it was. Keys are carried over; of a checkpoint they come from config.json, and the new file has no tokenizer.\n\n"
    "With i4, i8 and e4m3, OUT is a new folder in the layout of compressed-tensors (int4 in groups, int8 and FP8 with a scale a "
    "row), made from a checkpoint.\n\n"
    "Example: rooftile quantize model.gguf small.gguf --to q4_k --keep '*ffn_down*'";

int cmd_quantize(int argc, char **argv) {
    static const struct argp_option flags[] = {
        {"to", 't', "TYPE", 0, "q8_0 q6_k q5_k q5_1 q5_0 q4_k q4_1 q4_0 iq4_nl iq4_xs mxfp4 q3_k q2_k bf16 f16 f32; i4 i8 e4m3",
         0},
        {"group", 'G', "N", 0, "Weights under one scale in i4: 32, 64 or 128 (default)", 0},
        {"keep", 'k', "PATTERN", 0, "Leave tensors of these names (in the new file) as they are; may be repeated", 0},
        {"embeddings", 'E', NULL, 0, "The token embedding too, which a tied lm_head multiplies by", 0},
        {"nearest", 'N', NULL, 0, "Round to nearest instead of searching for the scales of least error", 0},
        {"requantize", 'R', NULL, 0, "Allow weights that are quantised already", 0},
        {"all", 'A', NULL, 0, "Show tensors that stay as they are too", 0},
        {"threads", 'T', "N", 0, "Threads (default: all cores)", 0},
        {"json", 'J', NULL, 0, "One object a line", 0},
        {0}};
    static const struct argp argp = {flags, parse, "IN OUT", doc, NULL, NULL, NULL};
    quantize_command c = {.o = rft_quantize_options_init()};
    argp_parse(&argp, argc, argv, 0, NULL, &c);
    int code = run(&c);
    free(c.rows);
    free(c.keep);
    return code;
}
