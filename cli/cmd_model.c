/* SPDX-License-Identifier: Apache-2.0
 *
 * cmd_model.c - rooftile model: a model file as the products of one phase of inference or of a step of training, what bounds
 * each, and with --run what each reaches on the file's own weights.
 */
#include "bench_run.h"
#include "model_layer.h"
#include "model_table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_CONTEXT 1024
#define MAX_CONTEXT     ((int64_t)1 << 30)
#define MAX_RANKS       1024

typedef struct model_command {
    run_options run;
    const char *file, *phase_text;
    bool measure, x_given;
    rft_phase phase;
    int64_t context; /* -1: not given */
    rft_model *model;
    bench_job *job;
    model_report report;
} model_command;

static void keep_row(void *user, const bench_row *row) {
    bench_row *out = user;
    if (!row->beside)
        *out = *row;
}

/* A config.json has no weights: random values stand for them. */
static int measure_layer(model_command *c, const rft_layer *layer, model_row *row) {
    weight_set set = {0};
    layer_weights weights = {.src = rft_weight_src_init()};
    bool stored = layer->tensor >= 0;
    int code = stored ? model_layer_load(c->model, layer, &row->options, row->decoded, &weights) : CLI_OK;
    c->job->emit = keep_row;
    c->job->user = &row->bench;
    row->bench.us = 0;
    if (code == CLI_OK)
        code = bench_weights(c->job, layer->n, layer->k, stored ? &weights.src : NULL, &set);
    if (code == CLI_OK)
        code = bench_one(c->job, &set, layer->m);
    weight_set_free(&set);
    model_layer_unload(&weights);
    return code;
}

static void name_row(model_row *row) {
    static const char *const pass[] = {
        [RFT_PASS_FORWARD] = "forward", [RFT_PASS_DGRAD] = "dgrad", [RFT_PASS_WGRAD] = "wgrad"};
    const rft_layer *layer = &row->layer;
    const char *stored = layer->scheme[0] ? layer->scheme : rft_type_name(layer->type);
    const char *run = rft_type_name(row->options.w);
    bool back = layer->pass != RFT_PASS_FORWARD;
    row->pass = pass[layer->pass];
    snprintf(row->name, sizeof row->name, "%s%s%s", layer->name, back ? " " : "", back ? row->pass : "");
    if (layer->pass == RFT_PASS_WGRAD)
        snprintf(row->type, sizeof row->type, "%s", run);
    else
        snprintf(row->type, sizeof row->type, row->decoded ? "%s→%s" : "%s", stored, run);
}

static int get_layer(model_command *c, int64_t index, rft_pass pass, model_row *row) {
    rft_error err = {0};
    row->layer = rft_layer_init();
    if (rft_model_get_pass(c->model, index, &c->phase, pass, &row->layer, &err) != RFT_OK)
        return cli_failed(&err, c->file);
    row->shard = rft_shard_init();
    if (c->report.ranks > 0 &&
        rft_model_get_shard(c->model, index, &c->phase, c->report.ranks, &row->shard, &err) != RFT_OK)
        return cli_failed(&err, "--tp");
    return CLI_OK;
}

/* Rows keep the texts of their own options: those live in the report. */
static int add_layer(model_command *c, int64_t index, rft_pass pass, model_row *row) {
    rft_error err = {0};
    int code = get_layer(c, index, pass, row);
    if (code != CLI_OK)
        return code;
    const rft_layer *layer = &row->layer;
    row->options = model_layer_options(&c->run, c->x_given, c->model, layer, &row->decoded);
    name_row(row);
    c->job->o = &row->options;
    c->job->w_name = row->type;
    rft_linear_desc desc = options_desc(&row->options, layer->n, layer->k, layer->m, layer->m);
    rft_work work = {.struct_size = sizeof work};
    if ((!row->options.dynamic && rft_weight_bytes(c->job->ctx, &desc.w, &row->packed, &err) != RFT_OK) ||
        rft_work_of(&desc, layer->m, &work, &err) != RFT_OK)
        return cli_failed(&err, row->name);
    row->run_bytes = work.w_bytes;
    row->bytes = work.bytes;
    row->y_bytes = work.y_bytes;
    code = bench_plan(c->job, layer->n, layer->k, layer->m, &row->bench);
    if (code == CLI_OK && c->measure && layer->runs > 0)
        code = measure_layer(c, layer, row);
    return code;
}

static int add_layers(model_command *c) {
    int64_t passes = c->phase.kind == RFT_PHASE_TRAIN ? RFT_PASS_WGRAD : RFT_PASS_FORWARD;
    int64_t n = passes * rft_model_layer_count(c->model);
    int code = CLI_OK;
    c->report.rows = cli_alloc((size_t)n, sizeof *c->report.rows);
    for (int64_t i = 0; i < n && (code == CLI_OK || code == CLI_FAILED); i++) {
        int one = add_layer(c, i / passes, (rft_pass)(RFT_PASS_FORWARD + i % passes), &c->report.rows[i]);
        code = one != CLI_OK ? one : code;
        c->report.n = i + 1;
    }
    cli_progress_end();
    return code;
}

/* Where none is given, a middling one for phases that continue texts; encoders have none. */
static int64_t choose_context(const model_command *c) {
    rft_part part = rft_part_init();
    bool continues = c->phase.kind == RFT_PHASE_DECODE || c->phase.kind == RFT_PHASE_VERIFY;
    int64_t longest = c->report.info.context, middling = DEFAULT_CONTEXT;
    if (longest > 0 && longest < middling)
        middling = longest;
    if (c->context >= 0)
        return c->context;
    return continues && rft_model_get_part(c->model, 0, &c->phase, middling, &part, NULL) == RFT_OK ? middling : 0;
}

static int add_parts(model_command *c) {
    rft_error err = {0};
    model_report *r = &c->report;
    r->context = choose_context(c);
    r->n_parts = rft_model_part_count(c->model);
    r->parts = cli_alloc((size_t)r->n_parts, sizeof *r->parts);
    if (r->n_parts == 0 && c->context >= 0) {
        cli_message("--context: architecture '%s' is not known, nor its attention", r->info.architecture);
        return CLI_USAGE;
    }
    if (r->ranks > 0 && rft_model_cache_share(c->model, r->ranks, &r->cache_share, &err) != RFT_OK)
        return cli_failed(&err, "--tp");
    for (int64_t i = 0; i < r->n_parts; i++) {
        r->parts[i] = rft_part_init();
        if (rft_model_get_part(c->model, i, &c->phase, r->context, &r->parts[i], &err) != RFT_OK) {
            cli_message("--context: %s", err.message);
            return CLI_USAGE;
        }
    }
    return CLI_OK;
}

/* W changes at each step of training, so it is never packed. */
static int read_phase(model_command *c) {
    rft_error err = {0};
    if (rft_phase_parse(c->phase_text, &c->phase, &err) != RFT_OK) {
        cli_message("--phase: %s", err.message);
        return CLI_USAGE;
    }
    bool train = c->phase.kind == RFT_PHASE_TRAIN;
    const char *flag = c->run.view ? "--view" : cli_8bit(c->run.x) ? "--x in 8 bits" : c->report.ranks > 0 ? "--tp" : NULL;
    if (train && flag) {
        cli_message("--phase %s: not with %s", c->phase_text, flag);
        return CLI_USAGE;
    }
    c->run.dynamic = c->run.dynamic || train;
    return CLI_OK;
}

static int open_model(model_command *c) {
    rft_error err = {0};
    if (rft_model_open(c->file, &c->model, &err) != RFT_OK)
        return cli_failed(&err, c->file);
    c->report.info = rft_model_info_init();
    c->report.cost = rft_model_cost_init();
    if (rft_model_get_info(c->model, &c->report.info, &err) != RFT_OK ||
        rft_model_get_cost(c->model, &c->phase, &c->report.cost, &err) != RFT_OK)
        return cli_failed(&err, c->file);
    return CLI_OK;
}

static int run_model(model_command *c) {
    c->report.file = c->file;
    c->report.phase = c->phase_text;
    c->report.measured = c->measure;
    c->report.device = c->run.device;
    int code = read_phase(c);
    if (code == CLI_OK)
        code = open_model(c);
    if (code == CLI_OK)
        code = add_parts(c);
    c->job->phase = c->phase_text;
    if (code == CLI_OK)
        code = bench_open(c->job, &c->run);
    if (code != CLI_OK)
        return code;
    c->report.threads = c->job->context_threads;
    code = add_layers(c);
    if (code == CLI_OK || code == CLI_FAILED)
        (c->run.json ? model_json : model_text)(&c->report);
    return code;
}

static const struct argp_child children[] = {{&options_argp, 0, NULL, 0}, {0}};

static error_t parse(int key, char *arg, struct argp_state *state) {
    model_command *c = state->input;
    char why[CLI_WHY];
    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &c->run;
        return 0;
    case 'P':
        c->phase_text = arg;
        return 0;
    case 'C':
        if (!parse_int(arg, 0, MAX_CONTEXT, &c->context, why))
            argp_error(state, "--context: %s", why);
        return 0;
    case 'T':
        if (!parse_int(arg, 1, MAX_RANKS, &c->report.ranks, why))
            argp_error(state, "--tp: %s", why);
        return 0;
    case 'R':
        c->measure = true;
        return 0;
    case ARGP_KEY_ARG:
        if (c->file)
            argp_error(state, "'%s': one file at a time", arg);
        c->file = arg;
        return 0;
    case ARGP_KEY_NO_ARGS:
        argp_error(state, "no model file");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

/* The file says what is multiplied. */
static int check_shared_flags(const run_options *o) {
    const char *flag = o->m.n ? "-m" : o->n.n ? "-n" : o->k.n ? "-k" : o->shapes_file ? "--shapes" : o->w ? "--w" : NULL;
    if (!flag && o->epi.n_op)
        flag = "--epi";
    if (!flag && o->batch != 1)
        flag = "--batch";
    if (!flag && (o->x_order != RFT_K_CONTIGUOUS || o->w_order != RFT_K_CONTIGUOUS))
        flag = "--layout";
    if (!flag && o->warm) {
        cli_message("--warm: a model's weights are read once a token, so only cold runs are shown");
        return CLI_USAGE;
    }
    if (!flag)
        return CLI_OK;
    cli_message("%s: shapes, stored types and epilogues come from the model file", flag);
    return CLI_USAGE;
}

static const char doc[] =
    "Lists the linear layers of a GGUF file, a Hugging Face checkpoint (its folder, index or .safetensors file), a config.json "
    "alone or an ONNX graph as matrix products: size, stored type, epilogue behind each, bytes, intensity, what bounds it, the "
    "kernel. --run measures each on the file's own weights, proven right first.\v"
    "On the CPU GGUF blocks and quantised checkpoints run in the low-bit form that they are stored in, with --compute i8 in 8 "
    "bits where their codes are whole numbers; a GPU decodes them to bf16 when they are loaded, shown as q4_1→bf16. A "
    "config.json has no weights, so --run takes random ones. X is of the type that W is run in, f32 beside low-bit W, unless --x "
    "is given. Flags that choose shapes do not apply.\n\n"
    "Phase train lists three products a layer, forward, dgrad and wgrad, none of which packs W.\n\n"
    "Example: rooftile model model.gguf --phase decode:1 --run";

int cmd_model(int argc, char **argv) {
    static const struct argp_option flags[] = {{"phase", 'P', "PHASE", 0,
                                                "decode:B (default decode:1), prefill:BxT, verify:BxK, offline:BxT, train:BxT",
                                                0},
                                               {"context", 'C', "N", 0,
                                                "Tokens of a sequence in the cache before (1024 in decode, verify)", 0},
                                               {"tp", 'T', "N", 0, "Show each layer cut over N ranks too", 0},
                                               {"run", 'R', NULL, 0, "Measure each distinct layer", 0},
                                               {0}};
    static const struct argp argp = {flags, parse, "FILE", doc, children, NULL, NULL};
    model_command c = {.run = options_default(), .phase_text = "decode:1", .context = -1, .job = cli_alloc(1, sizeof *c.job)};
    argp_parse(&argp, argc, argv, 0, NULL, &c);
    c.x_given = c.run.x != (rft_type)0;
    int code = check_shared_flags(&c.run);
    if (code == CLI_OK)
        code = options_finish(&c.run, "1");
    if (code == CLI_OK)
        code = run_model(&c);
    bench_close(c.job);
    rft_model_free(c.model);
    free(c.report.parts);
    free(c.report.rows);
    free(c.job);
    options_free(&c.run);
    return code;
}
