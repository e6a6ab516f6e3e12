/* SPDX-License-Identifier: Apache-2.0
 *
 * model_rows.c - see model_rows.h.
 */
#include "model_rows.h"

#include "machine_files.h"
#include "model_layer.h"

#include <stdio.h>
#include <stdlib.h>

#define DEFAULT_CONTEXT 1024

model_run model_run_make(void) {
    return (model_run){.run = options_default(), .context = -1, .job = cli_alloc(1, sizeof(bench_job))};
}

/* ---- flags ---- */

/* The file says what is multiplied. */
static int check_flags(const run_options *o) {
    const char *flag = options_shape_flag(o);
    if (machine_check(o) != CLI_OK)
        return CLI_USAGE;
    if (flag)
        cli_message("%s: shapes, stored types and epilogues come from the model file", flag);
    else if (o->warm)
        cli_message("--warm: a model's weights are read once a token, so only cold runs are shown");
    else
        return CLI_OK;
    return CLI_USAGE;
}

static int check_ranks(model_run *m) {
    rft_ranks *r = &m->ranks;
    if (m->dispatch && r->ep == 0) {
        cli_message("--dispatch %s: without --ep no tokens are sent to experts", rft_type_name(m->dispatch));
        return CLI_USAGE;
    }
    if (r->tp > 0 && r->ep % r->tp != 0) {
        cli_message("--ep %lld --tp %lld: %lld ranks are no whole groups of %lld", (long long)r->ep, (long long)r->tp,
                    (long long)r->ep, (long long)r->tp);
        return CLI_USAGE;
    }
    r->tp += r->tp == 0 && r->ep > 0;
    return CLI_OK;
}

int model_run_flags(model_run *m) {
    m->x_given = m->run.x != (rft_type)0;
    int code = check_flags(&m->run);
    if (code == CLI_OK)
        code = check_ranks(m);
    return code == CLI_OK ? options_finish(&m->run, "1") : code;
}

int model_run_phase(const char *text, rft_phase *out) {
    rft_error err = {0};
    if (rft_phase_parse(text, out, &err) == RFT_OK)
        return CLI_OK;
    cli_message("--phase: %s", err.message);
    return CLI_USAGE;
}

/* ---- the file and the device ---- */

/* Of codes with the share that each has of its scale. */
static double value_bytes(rft_type type, const x_groups *groups, int64_t row) {
    const double scaled = (double)(groups->k ? groups->k : row);
    return (double)rft_type_bytes(type, 1) + (cli_8bit(type) && scaled > 0 ? sizeof(float) / scaled : 0);
}

int model_run_open(model_run *m) {
    rft_error err = {0};
    m->info = rft_model_info_init();
    if (rft_model_open(m->file, &m->model, &err) != RFT_OK || rft_model_get_info(m->model, &m->info, &err) != RFT_OK)
        return cli_failed(&err, m->file);
    if (m->dispatch)
        m->ranks.dispatch_bytes = value_bytes(m->dispatch, &m->dispatch_groups, m->info.hidden);
    return CLI_OK;
}

/* Where none is given, a middling one for phases that continue texts; encoders have none. */
static int64_t choose_context(const model_run *m, const rft_phase *phase) {
    rft_part part = rft_part_init();
    bool continues = phase->kind == RFT_PHASE_DECODE || phase->kind == RFT_PHASE_VERIFY;
    int64_t longest = m->info.context, middling = longest > 0 && longest < DEFAULT_CONTEXT ? longest : DEFAULT_CONTEXT;
    if (m->context >= 0)
        return m->context;
    return continues && rft_model_get_part(m->model, 0, phase, middling, &part, NULL) == RFT_OK ? middling : 0;
}

int model_run_parts(const model_run *m, const rft_phase *phase, int64_t *context, rft_part **parts, int64_t *n) {
    rft_error err = {0};
    *context = choose_context(m, phase);
    *n = rft_model_part_count(m->model);
    *parts = cli_alloc((size_t)*n, sizeof **parts);
    if (*n == 0 && m->context >= 0) {
        cli_message("--context: architecture '%s' is not known, nor its attention", m->info.architecture);
        return CLI_USAGE;
    }
    for (int64_t i = 0; i < *n; i++) {
        (*parts)[i] = rft_part_init();
        if (rft_model_get_part(m->model, i, phase, *context, &(*parts)[i], &err) != RFT_OK) {
            cli_message("--context: %s", err.message);
            return CLI_USAGE;
        }
    }
    return CLI_OK;
}

/* A machine of a data sheet is asked, not opened. */
int model_run_device(model_run *m) {
    rft_machine machine;
    int code;
    if (!m->run.machine)
        return bench_open(m->job, &m->run);
    if (m->measure || m->run.peers) {
        cli_message("--machine %s --%s: nothing runs on a machine that is not here", m->run.machine, m->measure ? "run" : "vs");
        return CLI_USAGE;
    }
    machine_described(&m->run, &machine, &code);
    if (code == CLI_OK) {
        bench_describe(m->job, &m->run, &machine);
        m->run.device = m->job->machine.device;
    }
    return code;
}

void model_run_close(model_run *m) {
    bench_close(m->job);
    rft_model_free(m->model);
    free(m->job);
    options_free(&m->run);
}

/* ---- a row ---- */

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
static rft_status add_bytes(const model_run *m, model_row *row, rft_error *err) {
    const rft_layer *layer = &row->layer;
    const rft_linear_desc desc = model_row_desc(row);
    rft_work work = {.struct_size = sizeof work};
    rft_status status = rft_work_of(&desc, layer->m, &work, err);
    row->run_bytes = work.w_bytes;
    row->bytes = work.bytes;
    row->y_bytes = work.y_bytes;
    bool packs = m->job->ctx && !row->options.dynamic;
    return status == RFT_OK && packs ? rft_weight_bytes(m->job->ctx, &desc.w, &row->packed, err) : status;
}

static void take_turn(bench_job *job, const model_row *row) {
    job->o = &row->options;
    job->w_name = row->type;
}

/* W changes at each step of training, so it is never packed. */
static int read_row(const model_run *m, const rft_phase *phase, int64_t index, rft_pass pass, model_row *row) {
    rft_error err = {0};
    run_options run = m->run;
    run.dynamic |= phase->kind == RFT_PHASE_TRAIN;
    row->layer = rft_layer_init();
    if (rft_model_get_pass(m->model, index, phase, pass, &row->layer, &err) != RFT_OK)
        return cli_failed(&err, m->file);
    row->options = model_layer_options(&run, m->x_given, m->model, &row->layer, &row->decoded);
    name_row(row);
    return CLI_OK;
}

static int plan_row(const model_run *m, model_row *row) {
    rft_error err = {0};
    if (add_bytes(m, row, &err) != RFT_OK)
        return cli_failed(&err, row->name);
    take_turn(m->job, row);
    return bench_plan(m->job, row->layer.n, row->layer.k, row->layer.m, &row->bench);
}

int model_row_plan(const model_run *m, const rft_phase *phase, int64_t index, rft_pass pass, model_row *row) {
    int code = read_row(m, phase, index, pass, row);
    return code == CLI_OK ? plan_row(m, row) : code;
}

/* A rank's layer is one like others, but a W that is cut is none that the file has. */
static void take_shard(rft_layer *layer, const rft_shard *s) {
    if (s->n != layer->n || s->k != layer->k)
        layer->tensor = layer->bias_tensor = -1;
    layer->m = s->m;
    layer->n = s->n;
    layer->k = s->k;
    layer->count = s->count;
    layer->weight_bytes = (uint64_t)s->weight_bytes;
    layer->runs = s->runs;
    layer->runs_min = s->runs_min;
    layer->runs_max = s->runs_max;
    layer->flops = s->flops;
}

int model_shard_plan(const model_run *m, const rft_phase *phase, int64_t index, rft_pass pass, model_row *row) {
    rft_error err = {0};
    rft_work work = {.struct_size = sizeof work};
    int code = read_row(m, phase, index, pass, row);
    if (code != CLI_OK)
        return code;
    row->shard = rft_shard_init();
    if (rft_model_get_pass_shard(m->model, index, phase, pass, &m->ranks, &row->shard, &err) != RFT_OK)
        return cli_failed(&err, m->ranks.ep > 0 ? "--ep" : "--tp");
    take_shard(&row->layer, &row->shard);
    const rft_linear_desc desc = model_row_desc(row);
    row->amiss = !row->shard.divides && rft_work_of(&desc, row->layer.m, &work, NULL) != RFT_OK;
    row->bench.bound = "";
    return row->amiss ? CLI_OK : plan_row(m, row);
}

static void keep_row(void *user, const bench_row *row) {
    bench_row *out = user;
    if (!row->beside)
        *out = *row;
}

int model_row_measure(const model_run *m, model_row *row) {
    const rft_layer *layer = &row->layer;
    weight_set set = {0};
    layer_weights weights = {.src = rft_weight_src_init()};
    bench_job *job = m->job;
    bool stored = layer->tensor >= 0;
    int code = stored ? model_layer_load(m->model, layer, &row->options, row->decoded, &weights) : CLI_OK;
    take_turn(job, row);
    job->emit = keep_row;
    job->user = &row->bench;
    if (code == CLI_OK)
        code = bench_weights(job, layer->n, layer->k, stored ? &weights.src : NULL, &set);
    if (code == CLI_OK)
        code = bench_one(job, &set, layer->m);
    weight_set_free(&set);
    model_layer_unload(&weights);
    cli_progress_end();
    return code;
}
