/* SPDX-License-Identifier: Apache-2.0
 *
 * report_page.c - see report_page.h: the page's frame, its sections and its tables. Style sheet and script are files of
 * cli/report/, embedded by the build. Called by cmd_model.c.
 * Invariant: the page is well-formed XML but for its style and script, and says all without the script.
 */
#define _GNU_SOURCE
#include "report_page.h"
#include "html.h"
#include "model_ranks.h"
#include "report_embedded.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

bool report_bound(const model_report *r, const rft_linear_desc *desc, int64_t m, rft_bound *out) {
    *out = (rft_bound){.struct_size = sizeof *out};
    return r->machine && rft_machine_bound(r->machine, desc, m, (uint32_t)r->threads, out, NULL) == RFT_OK;
}

double report_time(const model_row *row) { return row->bench.us > 0 ? row->bench.us : row->bench.bound_us; }

double report_total(const model_report *r) {
    double us = 0;
    for (int64_t i = 0; i < r->n; i++)
        us += r->rows[i].layer.runs * report_time(&r->rows[i]);
    return us;
}

void report_time_text(cell out, double us) {
    cell digits;
    double scale = us >= 1000 ? 1e-3 : us >= 0.1 ? 1 : 1e3;
    format_us(digits, scale * us);
    snprintf(out, CELL, "%.32s %s", digits, scale < 1 ? "ms" : scale > 1 ? "ns" : "µs");
}

/* ---- head ---- */

static const char *title_of(const model_report *r) { return r->info.name[0] ? r->info.name : cli_file_name(r->file); }

static void page_begin(FILE *f, const model_report *r) {
    fputs("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n"
          "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n"
          "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; "
          "script-src 'unsafe-inline'\"/>\n<meta name=\"color-scheme\" content=\"light dark\"/>\n",
          f);
    fputs("<title>", f);
    html_text(f, title_of(r));
    fprintf(f, " · rooftile</title>\n<style>\n%s</style>\n</head>\n<body>\n<main>\n", report_css);
}

static void architecture_facts(FILE *f, const rft_model_info *i) {
    cell parameters;
    format_si(parameters, (double)i->parameters, " parameters");
    html_text(f, i->architecture);
    if (i->unknown)
        fputs(" (not known: each matrix is listed, its role unknown)", f);
    else
        fprintf(f, ": %lld layers, hidden %lld, ffn %lld, %lld heads (%lld kv), vocabulary %lld%s", (long long)i->layers,
                (long long)i->hidden, (long long)i->ffn, (long long)i->heads, (long long)i->kv_heads, (long long)i->vocab,
                i->tied ? " (tied)" : "");
    fprintf(f, " · %s", parameters);
    if (i->experts > 0) {
        format_si(parameters, (double)i->active_parameters, " parameters");
        fprintf(f, ", %lld experts, %lld for a token, which meets %s", (long long)i->experts, (long long)i->experts_used,
                parameters);
    }
}

static void machine_facts(FILE *f, const model_report *r) {
    const rft_machine *m = r->machine;
    bool on_cpu = strncmp(r->device, "cpu", 3) == 0;
    if (m)
        html_text(f, m->name);
    else
        fputs("no machine profile: <code>rooftile roofline</code> measures one, and bounds then show", f);
    fprintf(f, " · %d %s%s", r->threads, on_cpu ? "thread" : "multiprocessor", r->threads == 1 ? "" : "s");
    if (m) {
        const rft_machine_level *memory = &m->levels[m->n_levels - 1];
        fputs(strcmp(m->source, "spec") == 0 ? " · data sheet, " : " · measured ", f);
        html_text(f, m->date);
        fputs(" · ", f);
        html_text(f, memory->name);
        fprintf(f, " %.4g GB/s", rft_machine_roof(m, memory->read_gbps, (uint32_t)r->threads));
    }
}

static void origin_facts(FILE *f) {
    rft_build_info info = rft_build_info_init();
    const time_t now = time(NULL);
    struct tm utc;
    char date[32] = "";
    if (gmtime_r(&now, &utc))
        strftime(date, sizeof date, "%Y-%m-%d %H:%M UTC", &utc);
    fputs("A bound is the larger of FLOP / peak and least bytes / memory bandwidth, with each operand once · rooftile ", f);
    html_text(f, rft_get_build_info(&info) == RFT_OK ? info.version : "");
    fprintf(f, ", %s", date);
}

static void page_head(FILE *f, const model_report *r) {
    fputs("<header>\n<h1><bdi>", f);
    html_text(f, title_of(r));
    fputs("</bdi></h1>\n<p><bdi>", f);
    html_text(f, cli_file_name(r->file));
    fputs("</bdi> · ", f);
    architecture_facts(f, &r->info);
    fputs("</p>\n<p>", f);
    machine_facts(f, r);
    fputs("</p>\n<p class=\"note\">", f);
    origin_facts(f);
    fputs("</p>\n</header>\n", f);
}

/* ---- plot ---- */

static void legend(FILE *f, const model_report *reports, int n) {
    fputs("<p class=\"legend\">", f);
    for (int i = 0; i < n; i++) {
        fprintf(f, "<label class=\"phase-%d\"><input type=\"checkbox\" checked=\"checked\" data-phase=\"%d\"/><i></i>", i, i);
        html_text(f, reports[i].phase);
        fputs("</label>\n", f);
    }
    fputs("</p>\n", f);
}

static void plot_section(FILE *f, const model_report *reports, int n) {
    if (!report_has_plot(reports, n))
        return;
    fputs("<section class=\"plot\">\n<h2>Roofline</h2>\n", f);
    legend(f, reports, n);
    fputs("<figure>\n", f);
    report_plot(f, reports, n);
    fputs(reports->measured
              ? "<figcaption>Each circle is a layer, as large as its share of the phase's time; a line leads from what was "
                "measured to "
                "its bound. Dotted roofs bound none of these layers.</figcaption>\n"
              : "<figcaption>Each circle is a layer, as large as its share of the phase's least time, at its bound: nothing was "
                "measured. Dotted roofs bound none of these layers.</figcaption>\n",
          f);
    fputs("</figure>\n</section>\n", f);
}

/* ---- what bounds a step ---- */

static void fact(FILE *f, const char *what, const char *value) {
    fputs("<div>", f);
    html_element(f, "dt", NULL, what);
    html_element(f, "dd", NULL, value);
    fputs("</div>\n", f);
}

static void time_fact(FILE *f, const char *what, double us) {
    cell text;
    report_time_text(text, us);
    fact(f, what, text);
}

static void rate_fact(FILE *f, const char *what, double per_second) {
    cell digits;
    format_us(digits, per_second);
    fact(f, what, digits);
}

static void phase_facts(FILE *f, const model_report *r) {
    model_totals t = model_sum_up(r);
    double tokens = (double)r->cost.tokens;
    cell text;
    fputs("<dl class=\"facts\">\n", f);
    if (t.bounded)
        time_fact(f, "least time of the linear layers", t.bound_us);
    if (t.timed)
        time_fact(f, "measured", t.us);
    if (t.bounded)
        rate_fact(f, "tokens/s at the bound", 1e6 * tokens / t.bound_us);
    if (t.timed)
        rate_fact(f, "tokens/s measured", 1e6 * tokens / t.us);
    format_si(text, r->cost.read_bytes, "B");
    fact(f, "weights read", text);
    format_si(text, r->cost.flops, "FLOP");
    fact(f, "work", text);
    fputs("</dl>\n", f);
}

static double memory_share(const model_report *r) {
    double memory = 0, all = 0;
    for (int64_t i = 0; i < r->n; i++) {
        double us = r->rows[i].layer.runs * r->rows[i].bench.bound_us;
        all += us;
        memory += strcmp(r->rows[i].bench.bound, "memory") == 0 ? us : 0;
    }
    return all > 0 ? memory / all : 0;
}

static void verdict(FILE *f, const model_report *r) {
    model_totals t = model_sum_up(r);
    rft_part linear = model_linear_part(r), step = model_step_total(r);
    double share = memory_share(r);
    if (!t.bounded)
        return;
    fprintf(f, "<p class=\"verdict\">%s bounds this phase: %.0f %% of the least time of its linear layers is %s.",
            share >= 0.5 ? "Memory" : "Arithmetic", 100 * (share >= 0.5 ? share : 1 - share),
            share >= 0.5 ? "reading" : "multiplying");
    if (t.timed)
        fprintf(f, " Together they run at %.0f %% of their bound.", 100 * t.bound_us / t.us);
    if (r->n_parts > 0)
        fprintf(f, " They are %.0f %% of the step's bytes and %.0f %% of its work, behind a context of %lld tokens.",
                100 * (linear.read_bytes + linear.write_bytes) / (step.read_bytes + step.write_bytes),
                step.flops > 0 ? 100 * linear.flops / step.flops : 0, (long long)r->context);
    fputs("</p>\n", f);
}

/* The time of a phase by layer, in the order of execution. */
static void time_bar(FILE *f, const model_report *r) {
    double total = report_total(r);
    if (total <= 0)
        return;
    fprintf(f, "<div class=\"bar\" role=\"img\" aria-label=\"%s by layer\">\n", r->measured ? "time" : "least time");
    for (int64_t i = 0; i < r->n; i++) {
        double share = 100 * r->rows[i].layer.runs * report_time(&r->rows[i]) / total;
        if (share <= 0)
            continue;
        fprintf(f, "<span style=\"flex-grow:%.3f\" title=\"", share);
        html_text(f, r->rows[i].name);
        fprintf(f, ", %.1f %%\">", share);
        if (share >= 4)
            html_text(f, r->rows[i].name);
        if (share >= 9)
            fprintf(f, " %.0f %%", share);
        fputs("</span>\n", f);
    }
    fputs("</div>\n", f);
}

/* ---- tables ---- */

static void heading(FILE *f, const char *title, bool number) {
    fprintf(f, "<th scope=\"col\"%s><button type=\"button\">", number ? " class=\"n\"" : "");
    html_text(f, title);
    fputs("</button></th>\n", f);
}

static void number(FILE *f, double value, const char *text) {
    fprintf(f, "<td class=\"n\" data-v=\"%.9g\">", value);
    html_text(f, text);
    fputs("</td>\n", f);
}

static void whole(FILE *f, int64_t value) {
    fprintf(f, "<td class=\"n\" data-v=\"%lld\">%lld</td>\n", (long long)value, (long long)value);
}

static void fixed(FILE *f, double value, int digits) {
    cell text;
    snprintf(text, sizeof text, "%.*f", digits, value);
    number(f, value, text);
}

static void three(FILE *f, double value, void (*format)(cell, double)) {
    cell text = "–";
    if (value > 0)
        format(text, value);
    number(f, value, text);
}

static void layer_headings(FILE *f, bool measured) {
    static const struct {
        const char *title;
        bool number, measured;
    } columns[] = {{"layer", false, false}, {"time, %", true, false},   {"count", true, false},     {"M", true, false},
                   {"N", true, false},      {"K", true, false},         {"W", false, false},        {"epilogue", false, false},
                   {"W, MB", true, false},  {"FLOP/byte", true, false}, {"bound, µs", true, false}, {"by", false, false},
                   {"µs", true, true},      {"roof, %", true, true},    {"spread, %", true, true},  {"GFLOP/s", true, true},
                   {"GB/s", true, true},    {"err/limit", true, true},  {"kernel", false, false}};
    fputs("<thead><tr>\n", f);
    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++)
        if (measured || !columns[i].measured)
            heading(f, columns[i].title, columns[i].number);
    fputs("</tr></thead>\n", f);
}

static void measured_cells(FILE *f, const bench_row *b) {
    three(f, b->us, format_us);
    fixed(f, b->pct_roof, 1);
    fixed(f, 100 * b->spread, 1);
    three(f, 1e3 * b->tflops, format_3);
    three(f, b->gbps, format_3);
    fixed(f, b->err_limit > 0 ? b->err / b->err_limit : 0, 3);
}

static void layer_row(FILE *f, const model_report *r, int phase, int64_t i, double total) {
    const model_row *row = &r->rows[i];
    const bench_row *b = &row->bench;
    cell runs;
    fprintf(f, "<tr id=\"r%d-%lld\"><th scope=\"row\"><bdi>", phase, (long long)i);
    html_text(f, row->name);
    fputs("</bdi></th>\n", f);
    fixed(f, total > 0 ? 100 * row->layer.runs * report_time(row) / total : 0, 1);
    snprintf(runs, sizeof runs, row->layer.experts ? "%.4g of %lld" : "%.0f", row->layer.runs, (long long)row->layer.count);
    number(f, row->layer.runs, runs);
    whole(f, row->layer.m);
    whole(f, row->layer.n);
    whole(f, row->layer.k);
    html_element(f, "td", NULL, row->type);
    html_element(f, "td", NULL, row->layer.unknown ? "role unknown" : row->layer.epilogue);
    three(f, 1e-6 * (double)row->layer.weight_bytes, format_3);
    three(f, b->intensity, format_3);
    three(f, b->bound_us, format_us);
    html_element(f, "td", strcmp(b->bound, "memory") == 0 ? "by memory" : "by", b->bound);
    if (r->measured)
        measured_cells(f, b);
    html_element(f, "td", "kernel", b->kernel);
    fputs("</tr>\n", f);
}

static void layer_table(FILE *f, const model_report *r, int phase) {
    double total = report_total(r);
    html_element(f, "h3", NULL, "Layers");
    fputs("<div class=\"wide\"><table class=\"sortable\">\n", f);
    layer_headings(f, r->measured);
    fputs("<tbody>\n", f);
    for (int64_t i = 0; i < r->n; i++)
        layer_row(f, r, phase, i, total);
    fputs("</tbody></table></div>\n", f);
}

static void part_row(FILE *f, const rft_part *p, const rft_part *step) {
    double bytes = step->read_bytes + step->write_bytes;
    cell text;
    fputs("<tr><th scope=\"row\">", f);
    html_text(f, p->name);
    fputs("</th>\n", f);
    const double amounts[] = {p->flops, p->read_bytes, p->write_bytes};
    for (int i = 0; i < 3; i++) {
        strcpy(text, "–");
        if (amounts[i] > 0)
            format_si(text, amounts[i], i == 0 ? "FLOP" : "B");
        number(f, amounts[i], text);
    }
    fixed(f, step->flops > 0 ? 100 * p->flops / step->flops : 0, 1);
    fixed(f, bytes > 0 ? 100 * (p->read_bytes + p->write_bytes) / bytes : 0, 1);
    fputs("</tr>\n", f);
}

static void step_table(FILE *f, const model_report *r) {
    static const char *const titles[] = {"step", "work", "read", "written", "of work, %", "of bytes, %"};
    rft_part linear = model_linear_part(r), step = model_step_total(r);
    if (r->n_parts == 0)
        return;
    html_element(f, "h3", NULL, "The whole step");
    fputs("<div class=\"wide\"><table class=\"sortable\">\n<thead><tr>\n", f);
    for (int i = 0; i < 6; i++)
        heading(f, titles[i], i > 0);
    fputs("</tr></thead>\n<tbody>\n", f);
    part_row(f, &linear, &step);
    for (int64_t i = 0; i < r->n_parts; i++)
        part_row(f, &r->parts[i], &step);
    fputs("</tbody></table></div>\n", f);
}

static void rank_cells(FILE *f, const model_row *row, bool measured) {
    const rft_shard *s = &row->shard;
    cell runs;
    html_element(f, "td", NULL, s->split[0] ? s->split : "–");
    snprintf(runs, sizeof runs, row->layer.experts ? "%.4g of %lld" : "%.4g", s->runs, (long long)s->count);
    number(f, s->runs, runs);
    whole(f, s->m);
    whole(f, s->n);
    whole(f, s->k);
    three(f, 1e-6 * s->weight_bytes, format_3);
    three(f, row->bench.bound_us, format_us);
    if (measured)
        three(f, row->bench.us, format_us);
    html_element(f, "td", NULL, s->collective[0] ? s->collective : "–");
    three(f, 1e-6 * s->sent_bytes, format_3);
    html_element(f, "td", NULL, s->note);
}

static void exchange_row(FILE *f, const rft_exchange *e, bool measured) {
    cell spread;
    if (!e)
        return;
    fprintf(f, "<tr><th scope=\"row\">%s</th>\n", e->name);
    html_element(f, "td", NULL, "–");
    for (int i = 0; i < 6 + measured; i++)
        number(f, 0, "–");
    html_element(f, "td", NULL, "all-to-all");
    three(f, 1e-6 * e->sent_bytes, format_3);
    ranks_spread(e, spread);
    html_element(f, "td", NULL, spread);
    fputs("</tr>\n", f);
}

static void rank_rows(FILE *f, const model_report *r) {
    for (int64_t i = 0; i < r->n; i++) {
        exchange_row(f, ranks_before(r, i), r->ranks_measured);
        fputs("<tr><th scope=\"row\"><bdi>", f);
        html_text(f, r->shards[i].name);
        fputs("</bdi></th>\n", f);
        rank_cells(f, &r->shards[i], r->ranks_measured);
        fputs("</tr>\n", f);
        exchange_row(f, ranks_behind(r, i), r->ranks_measured);
    }
}

static void rank_table(FILE *f, const model_report *r) {
    static const char *const titles[] = {"a rank",    "cut", "count",  "M",         "N",   "K", "W, MB",
                                         "bound, µs", "µs",  "behind", "sends, MB", "note"};
    char text[RANKS_TEXT];
    if (!r->shards)
        return;
    html_element(f, "h3", NULL, "One of the ranks");
    ranks_tokens(&r->ranks, r->phase, &r->kind, text);
    if (text[0])
        html_element(f, "p", NULL, text);
    ranks_sentence(r, text);
    html_element(f, "p", NULL, text);
    fputs("<div class=\"wide\"><table class=\"sortable\">\n<thead><tr>\n", f);
    for (int i = 0; i < 12; i++)
        if (i != 8 || r->ranks_measured)
            heading(f, titles[i], (i > 1 && i < 9) || i == 10);
    fputs("</tr></thead>\n<tbody>\n", f);
    rank_rows(f, r);
    fputs("</tbody></table></div>\n", f);
}

static void phase_section(FILE *f, const model_report *r, int phase) {
    fprintf(f, "<section class=\"phase phase-%d\" data-phase=\"%d\">\n<h2><i></i>", phase, phase);
    html_text(f, r->phase);
    fputs("</h2>\n", f);
    verdict(f, r);
    phase_facts(f, r);
    time_bar(f, r);
    if (r->machine)
        report_advice(f, r);
    layer_table(f, r, phase);
    step_table(f, r);
    rank_table(f, r);
    fputs("</section>\n", f);
}

/* ---- all of it ---- */

static void page_end(FILE *f) {
    fprintf(f, "</main>\n<div id=\"tip\" hidden=\"hidden\"></div>\n<script>\n%s</script>\n</body>\n</html>\n", report_js);
}

static void write_page(FILE *f, const model_report *reports, int n) {
    page_begin(f, reports);
    page_head(f, reports);
    plot_section(f, reports, n);
    for (int i = 0; i < n; i++)
        phase_section(f, &reports[i], i);
    page_end(f);
}

static int failed(const char *path) {
    cli_message("--html %s: %s", path, strerror(errno));
    return CLI_IO;
}

int report_html(const char *path, const model_report *reports, int n) {
    FILE *f = fopen(path, "w");
    if (!f)
        return failed(path);
    write_page(f, reports, n);
    bool whole_page = !ferror(f);
    if (fclose(f) != 0 || !whole_page)
        return failed(path);
    return CLI_OK;
}
