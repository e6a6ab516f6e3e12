/* SPDX-License-Identifier: Apache-2.0
 *
 * model_session.c - see model_session.h.
 */
#include "model_session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_CONTEXT    ((int64_t)1 << 30)
#define DEFAULT_CONTEXT 1024

model_session model_session_make(void) {
    return (model_session){
        .run = options_default(), .phase_text = "decode:1", .context = -1, .job = cli_alloc(1, sizeof(bench_job))};
}

static error_t parse_flag(int key, char *arg, struct argp_state *state) {
    model_session *s = state->input;
    char why[CLI_WHY];
    switch (key) {
    case ARGP_KEY_INIT: state->child_inputs[0] = &s->run; return 0;
    case 'P': s->phase_text = arg; return 0;
    case 'C':
        if (!parse_int(arg, 0, MOST_CONTEXT, &s->context, why))
            argp_error(state, "--context: %s", why);
        return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp_option flags[] = {
    {"phase", 'P', "PHASE", 0, "decode:B (default decode:1), prefill:BxT, verify:BxK or offline:BxT", 0},
    {"context", 'C', "N", 0, "Tokens of a sequence in the cache before (1024 in decode, verify)", 0},
    {0}};
static const struct argp_child children[] = {{&options_argp, 0, NULL, 0}, {0}};
const struct argp model_session_argp = {flags, parse_flag, NULL, NULL, children, NULL, NULL};

/* ---- open ---- */

/* The file says what is multiplied. */
static int check_flags(const run_options *o) {
    const bool shaped = o->m.n || o->n.n || o->k.n || o->shapes_file || o->w || o->epi.n_op || o->batch != 1;
    if (!shaped && !o->warm && o->x_order == RFT_K_CONTIGUOUS && o->w_order == RFT_K_CONTIGUOUS)
        return CLI_OK;
    cli_message("shapes, stored types, layouts and epilogues come from the model file, and its weights are read cold");
    return CLI_USAGE;
}

static int plan_layer(model_session *s, int64_t index) {
    model_row *row = &s->rows[index];
    rft_error err = {0};
    rft_work work = {.struct_size = sizeof work};
    row->layer = rft_layer_init();
    if (rft_model_get_layer(s->model, index, &s->phase, &row->layer, &err) != RFT_OK)
        return cli_failed(&err, s->file);
    const rft_layer *layer = &row->layer;
    row->options = model_layer_options(&s->run, s->x_given, s->model, layer, &row->decoded);
    const char *stored = layer->scheme[0] ? layer->scheme : rft_type_name(layer->type);
    snprintf(row->type, sizeof row->type, row->decoded ? "%s→%s" : "%s", stored, rft_type_name(row->options.w));
    const rft_linear_desc desc = options_desc(&row->options, layer->n, layer->k, layer->m, layer->m);
    if (rft_work_of(&desc, layer->m, &work, &err) != RFT_OK)
        return cli_failed(&err, layer->name);
    row->run_bytes = work.w_bytes;
    row->bytes = work.bytes;
    row->y_bytes = work.y_bytes;
    s->job->o = &row->options;
    s->job->w_name = row->type;
    return bench_plan(s->job, layer->n, layer->k, layer->m, &row->bench);
}

static int plan_layers(model_session *s) {
    const int64_t n = rft_model_layer_count(s->model);
    int code = CLI_OK;
    s->rows = cli_alloc((size_t)n, sizeof *s->rows);
    for (int64_t i = 0; i < n && code == CLI_OK; i++) {
        code = plan_layer(s, i);
        s->n = i + 1;
    }
    return code;
}

static bool continues_texts(const rft_phase *phase) { return phase->kind == RFT_PHASE_DECODE || phase->kind == RFT_PHASE_VERIFY; }

/* Encoders have no cache: what they refuse is asked again without one. */
static int add_rest(model_session *s) {
    rft_error err = {0};
    int64_t context = s->context >= 0 ? s->context : continues_texts(&s->phase) ? DEFAULT_CONTEXT : 0;
    for (int64_t i = 0; i < rft_model_part_count(s->model); i++) {
        rft_part part = rft_part_init();
        rft_status status = rft_model_get_part(s->model, i, &s->phase, context, &part, &err);
        if (status != RFT_OK && s->context < 0)
            status = rft_model_get_part(s->model, i, &s->phase, context = 0, &part, &err);
        if (status != RFT_OK) {
            cli_message("--context: %s", err.message);
            return CLI_USAGE;
        }
        s->rest.flops += part.flops;
        s->rest.read_bytes += part.read_bytes;
        s->rest.write_bytes += part.write_bytes;
    }
    s->context = context;
    return CLI_OK;
}

static int open_model(model_session *s) {
    rft_error err = {0};
    if (rft_phase_parse(s->phase_text, &s->phase, &err) != RFT_OK) {
        cli_message("--phase: %s", err.message);
        return CLI_USAGE;
    }
    if (s->phase.kind == RFT_PHASE_TRAIN) {
        cli_message("--phase %s: `rooftile model` lists the products of a step of training", s->phase_text);
        return CLI_USAGE;
    }
    s->info = rft_model_info_init();
    if (rft_model_open(s->file, &s->model, &err) != RFT_OK || rft_model_get_info(s->model, &s->info, &err) != RFT_OK)
        return cli_failed(&err, s->file);
    return CLI_OK;
}

int model_session_open(model_session *s) {
    s->x_given = s->run.x != (rft_type)0;
    int code = check_flags(&s->run);
    if (code == CLI_OK)
        code = options_finish(&s->run, "1");
    if (code == CLI_OK)
        code = open_model(s);
    if (code == CLI_OK)
        code = add_rest(s);
    s->job->phase = s->phase_text;
    if (code == CLI_OK)
        code = bench_open(s->job, &s->run);
    return code == CLI_OK ? plan_layers(s) : code;
}

/* ---- measure ---- */

static void keep_row(void *user, const bench_row *row) {
    bench_row *out = user;
    if (!row->beside)
        *out = *row;
}

int model_session_measure(model_session *s, int64_t index) {
    model_row *row = &s->rows[index];
    const rft_layer *layer = &row->layer;
    weight_set set = {0};
    layer_weights weights = {.src = rft_weight_src_init()};
    const bool stored = layer->tensor >= 0;
    s->job->o = &row->options;
    s->job->w_name = row->type;
    s->job->emit = keep_row;
    s->job->user = &row->bench;
    int code = stored ? model_layer_load(s->model, layer, &row->options, row->decoded, &weights) : CLI_OK;
    if (code == CLI_OK)
        code = bench_weights(s->job, layer->n, layer->k, stored ? &weights.src : NULL, &set);
    if (code == CLI_OK)
        code = bench_one(s->job, &set, layer->m);
    weight_set_free(&set);
    model_layer_unload(&weights);
    cli_progress_end();
    return code;
}

void model_session_close(model_session *s) {
    bench_close(s->job);
    rft_model_free(s->model);
    free(s->rows);
    free(s->job);
    options_free(&s->run);
}
