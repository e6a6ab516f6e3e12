/* SPDX-License-Identifier: Apache-2.0
 *
 * cmd_model.c - rooftile model: a model file as the products of one phase of inference or of a step of training, what bounds
 * each, and with --run what each reaches on the file's own weights.
 */
#include "bench_run.h"
#include "machine_files.h"
#include "model_layer.h"
#include "report_page.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_CONTEXT 1024
#define MAX_CONTEXT     ((int64_t)1 << 30)
#define MAX_RANKS       1024
#define MODEL_PHASES    8

typedef struct model_command {
    run_options run;
    const char *file, *html;
    const char *phases[MODEL_PHASES];
    int n_phases;
    bool measure, x_given, dynamic; /* dynamic: as given; training is so too */
    int64_t context, ranks; /* context -1: not given; ranks 0: nor they */
    rft_model *model;
    bench_job *job;
    rft_machine machine; /* described by --machine */
    model_report reports[MODEL_PHASES];
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

/* Bytes of W in memory are the device's own matter, so of a machine that is described they are not known. */
static rft_status add_bytes(const model_command *c, const rft_linear_desc *desc, int64_t m, model_row *row, rft_error *err) {
    rft_work work = {.struct_size = sizeof work};
    rft_status status = rft_work_of(desc, m, &work, err);
    row->run_bytes = work.w_bytes;
    row->bytes = work.bytes;
    row->y_bytes = work.y_bytes;
    bool packs = c->job->ctx && !row->options.dynamic;
    return status == RFT_OK && packs ? rft_weight_bytes(c->job->ctx, &desc->w, &row->packed, err) : status;
}

static int get_layer(const model_command *c, const model_report *r, int64_t index, rft_pass pass, model_row *row) {
    rft_error err = {0};
    row->layer = rft_layer_init();
    if (rft_model_get_pass(c->model, index, &r->kind, pass, &row->layer, &err) != RFT_OK)
        return cli_failed(&err, c->file);
    row->shard = rft_shard_init();
    if (r->ranks > 0 && rft_model_get_shard(c->model, index, &r->kind, r->ranks, &row->shard, &err) != RFT_OK)
        return cli_failed(&err, "--tp");
    return CLI_OK;
}

/* Rows keep the texts of their own options: those live in the report. */
static int add_layer(model_command *c, const model_report *r, int64_t index, rft_pass pass, model_row *row) {
    rft_error err = {0};
    int code = get_layer(c, r, index, pass, row);
    if (code != CLI_OK)
        return code;
    const rft_layer *layer = &row->layer;
    row->options = model_layer_options(&c->run, c->x_given, c->model, layer, &row->decoded);
    name_row(row);
    c->job->o = &row->options;
    c->job->w_name = row->type;
    rft_linear_desc desc = options_desc(&row->options, layer->n, layer->k, layer->m, layer->m);
    if (add_bytes(c, &desc, layer->m, row, &err) != RFT_OK)
        return cli_failed(&err, row->name);
    code = bench_plan(c->job, layer->n, layer->k, layer->m, &row->bench);
    if (code == CLI_OK && c->measure && layer->runs > 0)
        code = measure_layer(c, layer, row);
    return code;
}

/* W changes at each step of training, so it is never packed. */
static int add_layers(model_command *c, model_report *r) {
    bool train = r->kind.kind == RFT_PHASE_TRAIN;
    int64_t passes = train ? RFT_PASS_WGRAD : RFT_PASS_FORWARD, n = passes * rft_model_layer_count(c->model);
    int code = CLI_OK;
    r->rows = cli_alloc((size_t)n, sizeof *r->rows);
    c->run.dynamic = c->dynamic || train;
    for (int64_t i = 0; i < n && (code == CLI_OK || code == CLI_FAILED); i++) {
        int one = add_layer(c, r, i / passes, (rft_pass)(RFT_PASS_FORWARD + i % passes), &r->rows[i]);
        code = one != CLI_OK ? one : code;
        r->n = i + 1;
    }
    cli_progress_end();
    return code;
}

/* Where none is given, a middling one for phases that continue texts; encoders have none. */
static int64_t choose_context(const model_command *c, const rft_model_info *info, const rft_phase *phase) {
    rft_part part = rft_part_init();
    bool continues = phase->kind == RFT_PHASE_DECODE || phase->kind == RFT_PHASE_VERIFY;
    int64_t longest = info->context, middling = longest > 0 && longest < DEFAULT_CONTEXT ? longest : DEFAULT_CONTEXT;
    if (c->context >= 0)
        return c->context;
    return continues && rft_model_get_part(c->model, 0, phase, middling, &part, NULL) == RFT_OK ? middling : 0;
}

static int add_parts(const model_command *c, model_report *r) {
    rft_error err = {0};
    r->context = choose_context(c, &r->info, &r->kind);
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
        if (rft_model_get_part(c->model, i, &r->kind, r->context, &r->parts[i], &err) != RFT_OK) {
            cli_message("--context: %s", err.message);
            return CLI_USAGE;
        }
    }
    return CLI_OK;
}

static int parse_phases(model_command *c) {
    rft_error err = {0};
    const char *untrained = c->run.view ? "--view" : cli_8bit(c->run.x) ? "--x in 8 bits" : c->ranks > 0 ? "--tp" : NULL;
    for (int i = 0; i < c->n_phases; i++) {
        if (rft_phase_parse(c->phases[i], &c->reports[i].kind, &err) != RFT_OK) {
            cli_message("--phase: %s", err.message);
            return CLI_USAGE;
        }
        if (c->reports[i].kind.kind == RFT_PHASE_TRAIN && untrained) {
            cli_message("--phase %s: not with %s", c->phases[i], untrained);
            return CLI_USAGE;
        }
    }
    return CLI_OK;
}

static int open_model(model_command *c) {
    rft_error err = {0};
    return rft_model_open(c->file, &c->model, &err) == RFT_OK ? CLI_OK : cli_failed(&err, c->file);
}

static int begin_report(model_command *c, int phase) {
    rft_error err = {0};
    model_report *r = &c->reports[phase];
    r->file = c->file;
    r->phase = c->phases[phase];
    r->measured = c->measure;
    r->ranks = c->ranks;
    r->info = rft_model_info_init();
    r->cost = rft_model_cost_init();
    if (rft_model_get_info(c->model, &r->info, &err) != RFT_OK ||
        rft_model_get_cost(c->model, &r->kind, &r->cost, &err) != RFT_OK)
        return cli_failed(&err, c->file);
    return add_parts(c, r);
}

/* A machine of a data sheet is asked, not opened. */
static int open_machine(model_command *c) {
    int code;
    if (!c->run.machine)
        return bench_open(c->job, &c->run);
    if (c->measure || c->run.peers) {
        cli_message("--machine %s --%s: nothing runs on a machine that is not here", c->run.machine, c->measure ? "run" : "vs");
        return CLI_USAGE;
    }
    c->machine.struct_size = sizeof c->machine;
    machine_described(&c->run, &c->machine, &code);
    if (code == CLI_OK) {
        c->run.device = c->machine.device;
        bench_describe(c->job, &c->run, &c->machine);
    }
    return code;
}

static int finish_report(model_command *c, model_report *r) {
    r->device = c->run.device;
    r->machine = c->job->has_machine ? &c->job->machine : NULL;
    r->described = c->run.machine != NULL;
    r->threads = c->job->context_threads;
    c->job->phase = r->phase;
    int code = add_layers(c, r);
    if (r != c->reports && !c->run.json)
        putchar('\n');
    if (code == CLI_OK || code == CLI_FAILED)
        (c->run.json ? model_json : model_text)(r);
    return code;
}

static int run_model(model_command *c) {
    int code = parse_phases(c);
    c->dynamic = c->run.dynamic;
    if (code == CLI_OK)
        code = open_model(c);
    for (int i = 0; code == CLI_OK && i < c->n_phases; i++)
        code = begin_report(c, i);
    if (code == CLI_OK)
        code = open_machine(c);
    for (int i = 0; i < c->n_phases && (code == CLI_OK || code == CLI_FAILED); i++) {
        int one = finish_report(c, &c->reports[i]);
        code = one != CLI_OK ? one : code;
    }
    if (c->html && (code == CLI_OK || code == CLI_FAILED)) {
        int written = report_html(c->html, c->reports, c->n_phases);
        code = written != CLI_OK ? written : code;
    }
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
        if (c->n_phases == MODEL_PHASES)
            argp_error(state, "--phase: at most %d of them", MODEL_PHASES);
        c->phases[c->n_phases++] = arg;
        return 0;
    case 'H':
        c->html = arg;
        return 0;
    case 'C':
        if (!parse_int(arg, 0, MAX_CONTEXT, &c->context, why))
            argp_error(state, "--context: %s", why);
        return 0;
    case 'T':
        if (!parse_int(arg, 1, MAX_RANKS, &c->ranks, why))
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
    if (o->machine && o->profile) {
        cli_message("--machine %s --profile %s: one of them says which machine is meant", o->machine, o->profile);
        return CLI_USAGE;
    }
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

static void close_model(model_command *c) {
    bench_close(c->job);
    rft_model_free(c->model);
    for (int i = 0; i < c->n_phases; i++) {
        free(c->reports[i].parts);
        free(c->reports[i].rows);
    }
    options_free(&c->run);
    free(c->job);
    free(c);
}

int cmd_model(int argc, char **argv) {
    static const struct argp_option flags[] = {{"phase", 'P', "PHASE", 0,
                                                "decode:B (default decode:1), prefill:BxT, verify:BxK, offline:BxT or train:BxT; "
                                                "more than one may be given", 0},
                                               {"context", 'C', "N", 0,
                                                "Tokens of a sequence in the cache before (1024 in decode, verify)", 0},
                                               {"tp", 'T', "N", 0, "Show each layer cut over N ranks too", 0},
                                               {"run", 'R', NULL, 0, "Measure each distinct layer", 0},
                                               {"html", 'H', "FILE", 0, "Write all of it as one page for a browser too", 0},
                                               {0}};
    static const struct argp argp = {flags, parse, "FILE", doc, children, NULL, NULL};
    model_command *c = cli_alloc(1, sizeof *c);
    c->run = options_default();
    c->context = -1;
    c->job = cli_alloc(1, sizeof *c->job);
    argp_parse(&argp, argc, argv, 0, NULL, c);
    if (c->n_phases == 0)
        c->phases[c->n_phases++] = "decode:1";
    c->x_given = c->run.x != (rft_type)0;
    int code = check_shared_flags(&c->run);
    if (code == CLI_OK)
        code = options_finish(&c->run, "1");
    if (code == CLI_OK)
        code = run_model(c);
    close_model(c);
    return code;
}
