/* SPDX-License-Identifier: Apache-2.0
 *
 * model_table.c - the report of `rooftile model`: for people two tables and totals, for programs a row a layer and totals.
 */
#include "model_ranks.h"
#include "out_json.h"
#include "out_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

rft_linear_desc model_row_desc(const model_row *row) {
    const rft_layer *l = &row->layer;
    return options_desc(&row->options, l->n, l->k, l->m, l->m);
}

model_totals model_sum_up(const model_report *r) {
    model_totals t = {.bounded = true, .timed = r->measured};
    for (int64_t i = 0; i < r->n; i++) {
        const model_row *row = &r->rows[i];
        double count = (double)row->layer.count, runs = row->layer.runs;
        t.run_bytes += row->layer.pass == RFT_PASS_FORWARD ? count * row->run_bytes : 0;
        t.packed += count * (double)row->packed;
        t.weights += row->packed > 0 ? count * (double)row->layer.n * (double)row->layer.k : 0;
        t.bound_us += runs * row->bench.bound_us;
        t.us += runs * row->bench.us;
        t.bounded = t.bounded && (runs == 0 || row->bench.bound_us > 0);
        t.timed = t.timed && (runs == 0 || row->bench.us > 0);
    }
    return t;
}

rft_part model_linear_part(const model_report *r) {
    rft_part p = {.name = "linear layers", .flops = r->cost.flops};
    for (int64_t i = 0; i < r->n; i++) {
        p.read_bytes += r->rows[i].layer.runs * (r->rows[i].bytes - r->rows[i].y_bytes);
        p.write_bytes += r->rows[i].layer.runs * r->rows[i].y_bytes;
    }
    return p;
}

void model_add_part(rft_part *sum, const rft_part *part) {
    sum->flops += part->flops;
    sum->read_bytes += part->read_bytes;
    sum->write_bytes += part->write_bytes;
}

rft_part model_step_total(const model_report *r) {
    rft_part sum = model_linear_part(r);
    for (int64_t i = 0; i < r->n_parts; i++)
        model_add_part(&sum, &r->parts[i]);
    return sum;
}

static void text_head(const model_report *r) {
    const rft_model_info *i = &r->info;
    cell parameters;
    format_si(parameters, (double)i->parameters, " parameters");
    printf("%s%s%s%s%s · %s\n", text_bold(), i->name, text_plain(), i->name[0] ? " · " : "", cli_file_name(r->file),
           parameters);
    if (i->format == RFT_MODEL_ONNX)
        printf("an ONNX graph: the products by constant matrices in it, on all tokens each\n");
    else if (i->unknown)
        printf("architecture '%s' is not known: each matrix of weights is listed, and those of stacks, their role unknown; "
               "tensors of other shapes are not\n", i->architecture);
    else
        printf("%s: %lld layers, hidden %lld, ffn %lld, %lld heads (%lld kv), vocabulary %lld%s\n", i->architecture,
               (long long)i->layers, (long long)i->hidden, (long long)i->ffn, (long long)i->heads, (long long)i->kv_heads,
               (long long)i->vocab, i->tied ? " (tied)" : "");
    if (i->windowed_layers > 0)
        printf("a token sees the last %lld positions in %lld of the layers\n", (long long)i->window,
               (long long)i->windowed_layers);
    if (i->source_layers > 0)
        printf("encoder: %lld layers on %lld positions, when a text begins\n", (long long)i->source_layers,
               (long long)i->source_positions);
    if (i->experts > 0) {
        format_si(parameters, (double)i->active_parameters, " parameters");
        printf("%lld experts, %lld for a token: it meets %s\n", (long long)i->experts, (long long)i->experts_used, parameters);
    }
    printf("phase %s%s%s · ", text_bold(), r->phase, text_plain());
    bool on_cpu = strncmp(r->device, "cpu", 3) == 0;
    if (r->described)
        printf("%s, %d %s (%s)\n\n", r->machine->name, r->threads, on_cpu ? "threads" : "SMs", r->machine->source);
    else if (on_cpu)
        printf("%d thread%s\n\n", r->threads, r->threads == 1 ? "" : "s");
    else
        printf("%s\n\n", r->device);
}

void model_text_layers(const model_row *rows, int64_t n) {
    enum { N = 11 };
    column columns[N] = {{"layer", 0, true},      {"count", 0, false},     {"M", 0, false},       {"N", 0, false},
                         {"K", 0, false},         {"W", 0, true},          {"epilogue", 0, true}, {"W, kB", 0, false},
                         {"FLOP/byte", 0, false}, {"bound, us", 0, false}, {"by", 0, true}};
    cell *cells = cli_alloc((size_t)(n * N), sizeof *cells);
    for (int64_t i = 0; i < n; i++) {
        const model_row *row = &rows[i];
        cell *c = cells + i * N;
        format_text(c[0], row->name, CELL);
        bool all = row->layer.experts == 0 && row->layer.runs > 0;
        snprintf(c[1], CELL, all ? "%.0f" : "%.4g of %lld", row->layer.runs, (long long)row->layer.count);
        snprintf(c[2], CELL, "%lld", (long long)row->layer.m);
        snprintf(c[3], CELL, "%lld", (long long)row->layer.n);
        snprintf(c[4], CELL, "%lld", (long long)row->layer.k);
        snprintf(c[5], CELL, "%s", row->type);
        snprintf(c[6], CELL, "%s", row->layer.unknown ? "role unknown" : row->layer.epilogue);
        snprintf(c[7], CELL, "%.0f", 1e-3 * (double)row->layer.weight_bytes);
        format_3(c[8], row->bench.intensity);
        if (row->bench.bound_us > 0)
            format_us(c[9], row->bench.bound_us);
        else
            strcpy(c[9], "-");
        snprintf(c[10], CELL, "%s", row->bench.bound);
    }
    text_table(columns, N, cells, (size_t)n);
    free(cells);
}

static void measured_cells(cell *c, int n, const bench_row *b) {
    if (b->us <= 0) {
        for (int i = 0; i < n; i++)
            strcpy(c[i], "-");
        return;
    }
    format_us(c[0], b->us);
    snprintf(c[1], CELL, "%.1f %%", 100 * b->spread);
    format_3(c[2], 1e3 * b->tflops);
    format_3(c[3], b->gbps);
    snprintf(c[4], CELL, b->bound_us > 0 ? "%.1f" : "-", b->pct_roof);
    snprintf(c[5], CELL, "%.3f", b->err_limit > 0 ? b->err / b->err_limit : 0);
}

void model_text_runs(const model_row *rows, int64_t n, bool measured) {
    enum { MEASURED = 6, N = MEASURED + 2 };
    column columns[N] = {{"layer", 0, true}, {"us", 0, false},     {"spread", 0, false},  {"GFLOP/s", 0, false},
                         {"GB/s", 0, false}, {"roof %", 0, false}, {"err/lim", 0, false}, {"kernel", 0, true}};
    cell *cells = cli_alloc((size_t)(n * N), sizeof *cells);
    int used = measured ? N : 2;
    for (int64_t i = 0; i < n; i++) {
        const model_row *row = &rows[i];
        cell *c = cells + i * used;
        format_text(c[0], row->name, CELL);
        if (measured)
            measured_cells(c + 1, MEASURED, &row->bench);
        snprintf(c[used - 1], CELL, "%s", row->bench.kernel[0] ? row->bench.kernel : "-");
    }
    columns[used - 1] = columns[N - 1];
    putchar('\n');
    text_table(columns, used, cells, (size_t)n);
    free(cells);
}

void model_text_peers(const model_row *rows, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        for (int j = 0; j < rows[i].bench.n_peer; j++) {
            const row_peer *p = &rows[i].bench.peer[j];
            printf("%s%-12s %s %s: %.4g us, %.2f times ours\n", i == 0 && j == 0 ? "\n" : "", rows[i].name, p->name, p->version,
                   p->us, p->ratio);
        }
}

static void text_totals(const model_report *r) {
    model_totals t = model_sum_up(r);
    cell flops, stored, run, packed;
    double tokens = (double)r->cost.tokens;
    printf("\n%stotals%s of the linear layers, %.0f token%s at once\n", text_bold(), text_plain(), tokens,
           tokens == 1 ? "" : "s");
    format_si(flops, r->cost.flops_per_token, "FLOP");
    format_si(stored, (double)r->cost.weight_bytes, "B");
    format_si(run, t.run_bytes, "B");
    printf("  %s a token · weights %s stored, %s as run\n", flops, stored, run);
    if (r->info.experts > 0) {
        cell least, most;
        format_si(stored, r->cost.read_bytes, "B");
        format_si(least, r->cost.read_bytes_min, "B");
        format_si(most, r->cost.read_bytes_max, "B");
        printf("  routing   %s of them read as expected, %s to %s\n", stored, least, most);
    }
    format_si(packed, t.packed, "B");
    if (t.packed > 0)
        printf("  packed    %s in memory, %.3f bytes a weight\n", packed, t.packed / t.weights);
    if (t.bounded)
        printf("  bound     %10.4g ms · %.4g tokens/s\n", 1e-3 * t.bound_us, 1e6 * tokens / t.bound_us);
    if (t.timed)
        printf("  measured  %10.4g ms · %.4g tokens/s", 1e-3 * t.us, 1e6 * tokens / t.us);
    if (t.timed && t.bounded)
        printf(" · %.1f %% of the bound", 100 * t.bound_us / t.us);
    printf(t.timed ? "\n" : "");
}

static void amount(cell out, double value, const char *unit) {
    if (value > 0)
        format_si(out, value, unit);
    else
        strcpy(out, "-");
}

static void part_cells(cell *c, const rft_part *p, double flops, double bytes) {
    double moved = p->read_bytes + p->write_bytes;
    snprintf(c[0], CELL, "%s", p->name);
    amount(c[1], p->flops, "FLOP");
    amount(c[2], p->read_bytes, "B");
    amount(c[3], p->write_bytes, "B");
    snprintf(c[4], CELL, "%.1f", flops > 0 ? 100 * p->flops / flops : 0);
    snprintf(c[5], CELL, "%.1f", bytes > 0 ? 100 * moved / bytes : 0);
}

/* The whole step, linear layers first, so that a reader sees whether they are what matters. */
static void text_parts(const model_report *r) {
    enum { N = 6 };
    column columns[N] = {{"step", 0, true},    {"work", 0, false},      {"read", 0, false},
                         {"written", 0, false}, {"of FLOP, %", 0, false}, {"of bytes, %", 0, false}};
    rft_part step = model_step_total(r), linear = model_linear_part(r);
    double bytes = step.read_bytes + step.write_bytes;
    if (r->n_parts == 0)
        return;
    cell *cells = cli_alloc((size_t)((r->n_parts + 1) * N), sizeof *cells);
    part_cells(cells, &linear, step.flops, bytes);
    for (int64_t i = 0; i < r->n_parts; i++)
        part_cells(cells + (i + 1) * N, &r->parts[i], step.flops, bytes);
    putchar('\n');
    text_table(columns, N, cells, (size_t)r->n_parts + 1);
    free(cells);
    printf("%scontext %lld; activations and cache beside the linear layers in 16 bits%s\n", text_dim(), (long long)r->context,
           text_plain());
    if (r->kind.kind == RFT_PHASE_TRAIN)
        printf("%sdgrad: dX = dY W. wgrad: dW += dY^T X in f32. Derivatives of activations, bias gradients and the optimiser are "
               "not shown.%s\n", text_dim(), text_plain());
}

static void text_notes(const model_report *r) {
    bool decoded = false;
    for (int64_t i = 0; i < r->n; i++)
        decoded = decoded || r->rows[i].decoded;
    for (int64_t i = 0; i < r->n; i++) {
        const rft_layer *layer = &r->rows[i].layer;
        const char *stored = layer->order == RFT_MN_CONTIGUOUS ? "stored [in, out]" : "";
        if (layer->pass == RFT_PASS_FORWARD && (layer->parts[0] || stored[0]))
            printf("%s%s: %s%s%s%s%s\n", text_dim(), layer->name, layer->parts[0] ? "joins " : "", layer->parts,
                   layer->parts[0] && stored[0] ? ", " : "", stored, text_plain());
    }
    if (decoded)
        printf("%sA→B: stored as A, decoded to B when loaded; bytes, intensity and bound of a row are those of its run.%s\n",
               text_dim(), text_plain());
    if ((r->measured || r->ranks_measured) && r->info.format == RFT_MODEL_CONFIG)
        printf("%sA config.json holds no weights: random ones were run.%s\n", text_dim(), text_plain());
    else if (r->ranks_measured)
        printf("%sOf W that are cut random ones were run.%s\n", text_dim(), text_plain());
}

void model_text(const model_report *r) {
    text_head(r);
    model_text_layers(r->rows, r->n);
    if (!r->shards) {
        model_text_runs(r->rows, r->n, r->measured);
        model_text_peers(r->rows, r->n);
    }
    text_totals(r);
    text_parts(r);
    if (r->shards)
        ranks_text(r);
    text_notes(r);
}

static void add_routing(json_t *object, const rft_layer *layer) {
    json_t *more = json_pack("{s:s, s:I, s:I, s:f, s:f, s:f, s:b}", "parts", layer->parts, "experts", (json_int_t)layer->experts,
                             "experts_used", (json_int_t)layer->experts_used, "runs", layer->runs, "runs_min", layer->runs_min,
                             "runs_max", layer->runs_max, "role_unknown", (int)layer->unknown);
    json_extend(object, more);
}

static void json_parts(const model_report *r) {
    for (int64_t i = 0; i < r->n_parts; i++) {
        const rft_part *p = &r->parts[i];
        json_print(json_pack("{s:s, s:s, s:I, s:f, s:f, s:f}", "part", p->name, "phase", r->phase, "context",
                             (json_int_t)r->context, "flops", p->flops, "read_bytes", p->read_bytes, "write_bytes",
                             p->write_bytes));
    }
}

/* Bytes of W in memory; a machine that is not here was not asked for them. */
static json_t *packed_json(const model_report *r, double bytes) {
    return r->described ? json_null() : json_integer((json_int_t)bytes);
}

static json_t *layer_json(const model_report *r, const model_row *row) {
    const rft_layer *l = &row->layer;
    const char *stored = l->scheme[0] ? l->scheme : rft_type_name(l->type);
    return json_pack("{s:o, s:s, s:I, s:s, s:I, s:o}", "layer", json_text(l->name), "pass", row->pass, "count",
                     (json_int_t)l->count, "stored", stored, "weight_bytes", (json_int_t)l->weight_bytes, "packed_bytes",
                     packed_json(r, (double)row->packed));
}

void model_json(const model_report *r) {
    model_totals t = model_sum_up(r);
    rft_part step = model_step_total(r), linear = model_linear_part(r);
    for (int64_t i = 0; i < r->n; i++) {
        json_t *object = json_of_row(&r->rows[i].bench);
        json_extend(object, layer_json(r, &r->rows[i]));
        add_routing(object, &r->rows[i].layer);
        if (r->shards)
            json_object_set_new(object, "rank", ranks_row_json(&r->shards[i]));
        json_print(object);
    }
    json_parts(r);
    ranks_exchange_json(&r->ranks, r->phase);
    json_t *object = json_pack("{s:o, s:s, s:s, s:I, s:f, s:f, s:I, s:f}", "totals", json_text(r->file), "architecture",
                               r->info.architecture, "phase", r->phase, "tokens", (json_int_t)r->cost.tokens, "flops",
                               r->cost.flops, "flops_per_token", r->cost.flops_per_token, "weight_bytes",
                               (json_int_t)r->cost.weight_bytes, "run_bytes", t.run_bytes);
    json_t *rest = json_pack("{s:o, s:o, s:o, s:o, s:o}", "packed_bytes", packed_json(r, t.packed), "bytes_per_weight",
                             json_known(t.packed / t.weights, t.packed > 0), "bound_us", json_known(t.bound_us, t.bounded), "us",
                             json_known(t.us, t.timed), "tokens_per_s",
                             json_known(1e6 * (double)r->cost.tokens / t.us, t.timed));
    json_extend(object, rest);
    rest = json_pack("{s:I, s:I, s:f, s:f, s:f}", "parameters", (json_int_t)r->info.parameters, "active_parameters",
                     (json_int_t)r->info.active_parameters, "read_bytes", r->cost.read_bytes, "read_bytes_min",
                     r->cost.read_bytes_min, "read_bytes_max", r->cost.read_bytes_max);
    json_extend(object, rest);
    rest = json_pack("{s:I, s:f, s:f, s:f}", "context", (json_int_t)r->context, "linear_bytes",
                     linear.read_bytes + linear.write_bytes, "step_flops", step.flops, "step_bytes",
                     step.read_bytes + step.write_bytes);
    json_extend(object, rest);
    if (r->shards)
        json_extend(object, ranks_totals_json(r));
    json_print(object);
}
