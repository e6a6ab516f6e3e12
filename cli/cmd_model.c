/* SPDX-License-Identifier: Apache-2.0
 *
 * cmd_model.c - rooftile model: a model file as the products of one phase of inference or of a step of training, what bounds
 * each, and with --run what each reaches on the file's own weights.
 */
#include "model_ranks.h"
#include "report_page.h"

#include <stdio.h>
#include <stdlib.h>

#define MODEL_PHASES 8

typedef struct model_command {
    model_run m;
    const char *html;
    const char *phases[MODEL_PHASES];
    int n_phases;
    model_report reports[MODEL_PHASES];
} model_command;

/* Of ranks the rows of one are those that are measured. */
static int add_shard(const model_command *c, const model_report *r, int64_t index, rft_pass pass, model_row *row) {
    int code = model_shard_plan(&c->m, &r->kind, index, pass, row);
    const bool runs = !row->amiss && row->layer.runs > 0;
    return code == CLI_OK && r->ranks_measured && runs ? model_row_measure(&c->m, row) : code;
}

/* shard: its row of one rank, or NULL. */
static int add_layer(const model_command *c, const model_report *r, int64_t index, rft_pass pass, model_row *row,
                     model_row *shard) {
    int code = model_row_plan(&c->m, &r->kind, index, pass, row);
    if (code == CLI_OK && shard)
        return add_shard(c, r, index, pass, shard);
    return code == CLI_OK && r->measured && row->layer.runs > 0 ? model_row_measure(&c->m, row) : code;
}

static int add_layers(const model_command *c, model_report *r) {
    int64_t passes = r->kind.kind == RFT_PHASE_TRAIN ? RFT_PASS_WGRAD : RFT_PASS_FORWARD;
    int64_t n = passes * rft_model_layer_count(c->m.model);
    int code = CLI_OK;
    r->rows = cli_alloc((size_t)n, sizeof *r->rows);
    r->shards = r->ranks.sizes.tp > 0 ? cli_alloc((size_t)n, sizeof *r->shards) : NULL;
    for (int64_t i = 0; i < n && cli_goes_on(code); i++) {
        model_row *shard = r->shards ? &r->shards[i] : NULL;
        code = cli_worse(code, add_layer(c, r, i / passes, (rft_pass)(RFT_PASS_FORWARD + i % passes), &r->rows[i], shard));
        r->n = i + 1;
    }
    return code;
}

static int parse_phases(model_command *c) {
    const char *untrained = c->m.run.view ? "--view" : cli_8bit(c->m.run.x) ? "--x in 8 bits" : NULL;
    for (int i = 0; i < c->n_phases; i++) {
        int code = model_run_phase(c->phases[i], &c->reports[i].kind);
        if (code != CLI_OK)
            return code;
        if (c->reports[i].kind.kind == RFT_PHASE_TRAIN && untrained) {
            cli_message("--phase %s: not with %s", c->phases[i], untrained);
            return CLI_USAGE;
        }
    }
    return CLI_OK;
}

static int begin_report(model_command *c, int phase) {
    rft_error err = {0};
    model_report *r = &c->reports[phase];
    r->file = c->m.file;
    r->phase = c->phases[phase];
    r->measured = c->m.measure && c->m.ranks.tp == 0;
    r->ranks_measured = c->m.measure && c->m.ranks.tp > 0;
    r->info = c->m.info;
    r->cost = rft_model_cost_init();
    if (rft_model_get_cost(c->m.model, &r->kind, &r->cost, &err) != RFT_OK)
        return cli_failed(&err, r->file);
    int code = ranks_begin(&c->m, &r->kind, &r->ranks);
    return code == CLI_OK ? model_run_parts(&c->m, &r->kind, &r->context, &r->parts, &r->n_parts) : code;
}

static int finish_report(model_command *c, model_report *r) {
    r->device = c->m.run.device;
    r->machine = c->m.job->has_machine ? &c->m.job->machine : NULL;
    r->described = c->m.run.machine != NULL;
    r->threads = c->m.job->context_threads;
    c->m.job->phase = r->phase;
    int code = add_layers(c, r);
    if (r != c->reports && !c->m.run.json)
        putchar('\n');
    if (cli_goes_on(code))
        (c->m.run.json ? model_json : model_text)(r);
    return code;
}

static int run_model(model_command *c) {
    int code = parse_phases(c);
    if (code == CLI_OK)
        code = model_run_open(&c->m);
    for (int i = 0; code == CLI_OK && i < c->n_phases; i++)
        code = begin_report(c, i);
    if (code == CLI_OK)
        code = model_run_device(&c->m);
    for (int i = 0; i < c->n_phases && cli_goes_on(code); i++)
        code = cli_worse(code, finish_report(c, &c->reports[i]));
    if (c->html && cli_goes_on(code))
        code = cli_worse(code, report_html(c->html, c->reports, c->n_phases));
    return code;
}

static const struct argp_child children[] = {{&options_argp, 0, NULL, 0}, {&ranks_argp, 0, NULL, 0}, {0}};

static error_t parse(int key, char *arg, struct argp_state *state) {
    model_command *c = state->input;
    char why[CLI_WHY];
    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &c->m.run;
        state->child_inputs[1] = &c->m;
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
        if (!parse_int(arg, 0, MODEL_MOST_CONTEXT, &c->m.context, why))
            argp_error(state, "--context: %s", why);
        return 0;
    case 'R':
        c->m.measure = true;
        return 0;
    case ARGP_KEY_ARG:
        cli_take_file(state, &c->m.file, arg);
        return 0;
    case ARGP_KEY_NO_ARGS:
        argp_error(state, "no model file");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
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
    "With --tp or --ep a second table has what one of the ranks has of each layer, and --run measures that; the phase is that of "
    "all ranks together.\n\n"
    "Example: rooftile model model.gguf --phase decode:1 --run";

static void close_model(model_command *c) {
    model_run_close(&c->m);
    for (int i = 0; i < c->n_phases; i++) {
        free(c->reports[i].parts);
        free(c->reports[i].rows);
        free(c->reports[i].shards);
    }
    free(c);
}

int cmd_model(int argc, char **argv) {
    static const struct argp_option flags[] = {{"phase", 'P', "PHASE", 0,
                                                "decode:B (default decode:1), prefill:BxT, verify:BxK, offline:BxT or train:BxT; "
                                                "more than one may be given", 0},
                                               {"context", 'C', "N", 0,
                                                "Tokens of a sequence in the cache before (1024 in decode, verify)", 0},
                                               {"run", 'R', NULL, 0, "Measure each distinct layer", 0},
                                               {"html", 'H', "FILE", 0, "Write all of it as one page for a browser too", 0},
                                               {0}};
    static const struct argp argp = {flags, parse, "FILE", doc, children, NULL, NULL};
    model_command *c = cli_alloc(1, sizeof *c);
    c->m = model_run_make();
    argp_parse(&argp, argc, argv, 0, NULL, c);
    if (c->n_phases == 0)
        c->phases[c->n_phases++] = "decode:1";
    int code = model_run_flags(&c->m);
    if (code == CLI_OK)
        code = run_model(c);
    close_model(c);
    return code;
}
