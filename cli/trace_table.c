/* SPDX-License-Identifier: Apache-2.0
 *
 * trace_table.c - the report of `rooftile trace`: groups, products with their bounds, and the hot spots beside them.
 */
#include "trace_table.h"
#include "out_json.h"
#include "out_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static double share(const trace_report *r, double us) { return r->t->us > 0 ? 100 * us / r->t->us : 0; }

static double mean(const trace_row *row) { return row->us / (double)row->calls; }

/* ---- for people ---- */

static void text_head(const trace_report *r) {
    const trace *t = r->t;
    printf("%s%s%s · %s", text_bold(), cli_file_name(r->file), text_plain(), t->format);
    if (t->device[0])
        printf(" · recorded on %s", t->device);
    if (t->threads)
        printf(" · %u thread%s", t->threads, t->threads == 1 ? "" : "s");
    putchar('\n');
    if (r->has_machine && r->threads)
        printf("bounds of %s, %u %s%s\n\n", r->machine.name, r->threads, t->on_gpu ? "multiprocessor" : "thread",
               r->threads == 1 ? "" : "s");
    else
        putchar('\n');
}

static void text_groups(const trace_report *r) {
    enum { N = 4 };
    column columns[N] = {{"group", 0, true}, {"time, us", 0, false}, {"share %", 0, false}, {"calls", 0, false}};
    cell cells[TRACE_GROUPS + 1][N];
    int64_t calls = 0;
    for (int g = 0; g <= TRACE_GROUPS; g++) {
        const bool sum = g == TRACE_GROUPS;
        calls += sum ? 0 : r->t->group_calls[g];
        const double us = sum ? r->t->us : r->t->group_us[g];
        snprintf(cells[g][0], CELL, "%s", sum ? "all" : trace_group_name((trace_group)g));
        format_us(cells[g][1], us);
        snprintf(cells[g][2], CELL, "%.1f", share(r, us));
        snprintf(cells[g][3], CELL, "%lld", (long long)(sum ? calls : r->t->group_calls[g]));
    }
    text_table(columns, N, cells[0], TRACE_GROUPS + 1);
}

/* "-": the trace does not tell. */
static void put_text(cell out, const char *text) { format_text(out, text[0] ? text : "-", CELL); }

static void put_types(cell out, const trace_call *c) {
    const char *y = c->y[0] ? c->y : "?";
    if (c->x[0])
        snprintf(out, CELL, "%.*s·%.*s→%.*s", (int)cli_whole(c->x, 30), c->x, (int)cli_whole(c->w, 50), c->w,
                 (int)cli_whole(y, 30), y);
    else
        put_text(out, "");
}

static void put_size(cell out, const trace_call *c, int64_t size) {
    if (c->batch)
        snprintf(out, CELL, "%lld", (long long)size);
    else
        put_text(out, "");
}

static void gemm_cells(const trace_report *r, const trace_row *row, const trace_bound *b, cell *c) {
    const trace_call *call = &row->call;
    put_text(c[0], trace_phase(call));
    put_size(c[1], call, call->m);
    put_size(c[2], call, call->n);
    put_size(c[3], call, call->k);
    put_size(c[4], call, call->batch);
    put_types(c[5], call);
    snprintf(c[6], CELL, "%s%s", call->layout[0] ? call->layout : "-", call->packed ? " packed" : "");
    put_text(c[7], call->epi);
    snprintf(c[8], CELL, "%lld", (long long)row->calls);
    format_us(c[9], mean(row));
    snprintf(c[10], CELL, "%.1f", share(r, row->us));
    if (b->us > 0) {
        format_us(c[11], b->us);
        put_text(c[12], b->what);
        format_3(c[13], mean(row) / b->us);
    } else {
        for (int i = 11; i < 14; i++)
            put_text(c[i], "");
    }
    format_text(c[14], call->name, 48);
}

/* The rows of one kind: products, or all others; how many of them are shown. */
static size_t text_rows(const trace_report *r, bool gemm) {
    enum { GEMM_CELLS = 15, REST_CELLS = 6 };
    column of_gemm[GEMM_CELLS] = {{"phase", 0, true},  {"M", 0, false},         {"N", 0, false},       {"K", 0, false},
                                  {"batch", 0, false}, {"X·W→Y", 0, true},      {"layout", 0, true},   {"epilogue", 0, true},
                                  {"calls", 0, false}, {"us a call", 0, false}, {"share %", 0, false}, {"bound, us", 0, false},
                                  {"by", 0, true},     {"gap", 0, false},       {"name", 0, true}};
    column of_rest[REST_CELLS] = {{"group", 0, true},      {"phase", 0, true},    {"calls", 0, false},
                                  {"us a call", 0, false}, {"share %", 0, false}, {"name", 0, true}};
    const int n = gemm ? GEMM_CELLS : REST_CELLS;
    cell *cells = cli_alloc((r->t->n + 1) * (size_t)n, sizeof *cells);
    size_t shown = 0, found = 0;
    for (size_t i = 0; i < r->t->n; i++) {
        const trace_row *row = &r->t->rows[i];
        if ((row->call.group == TRACE_GEMM) != gemm || (found++, r->top && shown >= (size_t)r->top))
            continue;
        cell *c = cells + shown++ * (size_t)n;
        if (gemm) {
            gemm_cells(r, row, &r->bounds[i], c);
            continue;
        }
        put_text(c[0], trace_group_name(row->call.group));
        put_text(c[1], row->call.phase);
        snprintf(c[2], CELL, "%lld", (long long)row->calls);
        format_us(c[3], mean(row));
        snprintf(c[4], CELL, "%.1f", share(r, row->us));
        format_text(c[5], row->call.name, 96);
    }
    if (shown)
        text_table(gemm ? of_gemm : of_rest, n, cells, shown);
    if (found > shown)
        printf("%s%zu more rows; --top 0 shows all%s\n", text_dim(), found - shown, text_plain());
    free(cells);
    return shown;
}

/* The part of the products' time that lies above their bounds, of those that have one. */
static void text_gap(const trace_report *r) {
    double us = 0, bound = 0;
    for (size_t i = 0; i < r->t->n; i++)
        if (r->bounds[i].us > 0) {
            us += r->t->rows[i].us;
            bound += (double)r->t->rows[i].calls * r->bounds[i].us;
        }
    if (bound > 0)
        printf("\nproducts with a bound: %.4g us, bound %.4g us, gap %.3g; at their bounds the run would be %.1f %% shorter\n",
               us, bound, us / bound, us > bound ? share(r, us - bound) : 0);
}

static void note(const char *text) { printf("%s%s%s\n", text_dim(), text, text_plain()); }

static void text_notes(const trace_report *r) {
    const trace *t = r->t;
    note("gap: time / bound. phase?: a guess from M alone. A bound holds for a W that comes from memory: below 1 it came from a "
         "cache.");
    if (t->on_gpu)
        note("time is that of kernels and copies on the GPU, each for itself where some run at once; the host's is not in it");
    if (t->enqueued)
        note("an RFT_VERBOSE log has the time that handing a product to the GPU took, so none has a gap");
    if (t->shapes_missing)
        note("products without sizes: the trace does not tell them (torch.profiler does with record_shapes=True)");
    if (t->skipped)
        printf("%s%lld events or lines are not as the format has them, and were left out%s\n", text_dim(), (long long)t->skipped,
               text_plain());
}

void trace_text(const trace_report *r) {
    text_head(r);
    text_groups(r);
    putchar('\n');
    if (text_rows(r, true))
        putchar('\n');
    text_rows(r, false);
    text_gap(r);
    text_notes(r);
}

/* ---- for programs ---- */

static json_t *told(const char *text) { return text[0] ? json_text(text) : json_null(); }

static void add_product(json_t *object, const trace_row *row, const trace_bound *b) {
    const trace_call *c = &row->call;
    const bool sized = c->batch > 0, bounded = b->us > 0;
    json_t *sizes = json_pack("{s:o, s:o, s:o, s:o}", "m", sized ? json_integer(c->m) : json_null(), "n",
                              sized ? json_integer(c->n) : json_null(), "k", sized ? json_integer(c->k) : json_null(), "batch",
                              sized ? json_integer(c->batch) : json_null());
    json_t *kind = json_pack("{s:o, s:o, s:o, s:o, s:b, s:o, s:o, s:b}", "x", told(c->x), "w", told(c->w), "y", told(c->y),
                             "layout", told(c->layout), "packed", (int)c->packed, "epi", told(c->epi), "phase",
                             told(trace_phase(c)), "phase_guessed", (int)(sized && !c->phase[0]));
    json_t *bound = json_pack("{s:o, s:o, s:o}", "bound_us", json_known(b->us, bounded), "bound",
                              bounded ? json_string(b->what) : json_null(), "gap", json_known(mean(row) / b->us, bounded));
    json_extend(object, sizes);
    json_extend(object, kind);
    json_extend(object, bound);
}

void trace_json(const trace_report *r) {
    const trace *t = r->t;
    json_t *head = json_pack("{s:o, s:s, s:o, s:b, s:b, s:f, s:I}", "trace", json_text(r->file), "format", t->format, "device",
                             told(t->device), "gpu", (int)t->on_gpu, "enqueued", (int)t->enqueued, "us", t->us, "skipped",
                             (json_int_t)t->skipped);
    json_extend(head, json_pack("{s:o, s:i}", "machine", r->has_machine ? json_text(r->machine.name) : json_null(), "threads",
                                (int)r->threads));
    json_print(head);
    for (int g = 0; g < TRACE_GROUPS; g++)
        json_print(json_pack("{s:s, s:f, s:f, s:I}", "group_total", trace_group_name((trace_group)g), "us", t->group_us[g],
                             "share", share(r, t->group_us[g]) / 100, "calls", (json_int_t)t->group_calls[g]));
    for (size_t i = 0; i < t->n; i++) {
        const trace_row *row = &t->rows[i];
        json_t *object =
            json_pack("{s:s, s:o, s:I, s:f, s:f}", "group", trace_group_name(row->call.group), "name", json_text(row->call.name),
                      "calls", (json_int_t)row->calls, "us", row->us, "share", share(r, row->us) / 100);
        if (row->call.group == TRACE_GEMM)
            add_product(object, row, &r->bounds[i]);
        json_print(object);
    }
}
