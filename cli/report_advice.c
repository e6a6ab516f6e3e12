/* SPDX-License-Identifier: Apache-2.0
 *
 * report_advice.c - the three rows of a phase that lose most to their bounds, or where none loses cost most, and what would make
 * each cheaper. Called by report_page.c.
 * Invariant: a figure that is promised is a bound of this machine's profile for a changed product, not a rule of thumb.
 */
#include "html.h"
#include "machine_files.h"
#include "report_page.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { GAPS = 3 };
#define WORTH      1.25 /* a changed product is named where its bound is that much lower */
#define SHORT_CALL 50   /* us: waking threads and cold caches show */
#define LOSS       0.01 /* of a phase: less is no gap */

typedef struct gap {
    const model_row *row;
    double us; /* of a step: lost to the bound, or where that is little, what the row takes */
    bool lost;
} gap;

typedef struct adviser {
    FILE *f;
    const model_report *r;
    const model_row *row;
    rft_linear_desc desc;
    rft_bound bound;
    bool on_cpu;
} adviser;

/* Rows that lose come first. */
static int by_loss(const void *a, const void *b) {
    const gap *x = a, *y = b;
    return x->lost != y->lost ? y->lost - x->lost : (x->us < y->us) - (x->us > y->us);
}

static int find_gaps(const model_report *r, gap *gaps) {
    int n = 0;
    double total = report_total(r);
    for (int64_t i = 0; i < r->n; i++) {
        const model_row *row = &r->rows[i];
        double lost = row->layer.runs * (row->bench.us - row->bench.bound_us);
        bool is_gap = row->bench.us > 0 && lost > LOSS * total;
        if (row->bench.bound_us > 0)
            gaps[n++] = (gap){row, is_gap ? lost : row->layer.runs * report_time(row), is_gap};
    }
    qsort(gaps, (size_t)n, sizeof *gaps, by_loss);
    return n < GAPS ? n : GAPS;
}

/* ---- what the run loses ---- */

/* Whether a kernel of this library would run a product on the report's machine. */
static bool kernel_of(const adviser *a, const rft_linear_desc *desc, char kernel[ROW_NAME]) {
    rft_error err;
    uint32_t threads = (uint32_t)a->r->threads;
    return machine_kernel(a->r->machine, desc, a->row->layer.m, threads, kernel, &err) == RFT_OK && kernel[0];
}

/* Whether a low-bit W that nobody asked to multiply in 8 bits would be, and as which product. */
static bool would_take_i8(const adviser *a, rft_linear_desc *changed) {
    char kernel[ROW_NAME];
    bool asked = changed->compute != RFT_COMPUTE_AUTO;
    changed->compute = RFT_COMPUTE_I8;
    if (asked || !cli_low_bit(changed->w.elem) || cli_8bit(changed->x))
        return false;
    return kernel_of(a, changed, kernel) && strstr(kernel, "_i8_");
}

static void say_how_to_look(const adviser *a) {
    const run_options *o = &a->row->options;
    char x[X_TEXT], w[WEIGHT_TEXT];
    x_text(o->x, &o->x_groups, x);
    weight_text(o->w, &o->w_scales, w);
    fprintf(a->f,
            " <code>rooftile bench -m %lld -n %lld -k %lld --x %s --w %s%s --vs %s</code> shows what other libraries reach.",
            (long long)a->row->layer.m, (long long)a->row->layer.n, (long long)a->row->layer.k, x, w,
            a->on_cpu ? "" : " --device cuda:0", a->on_cpu ? "onednn,ggml" : "cublaslt");
}

static void say_loss(const adviser *a) {
    const bench_row *b = &a->row->bench;
    double launch = a->r->machine->launch_us;
    rft_linear_desc changed = a->desc;
    cell us, limit;
    report_time_text(us, b->us);
    report_time_text(limit, b->bound_us);
    fprintf(a->f, " A call takes %s, its bound by %s is %s.", us, b->bound, limit);
    if (launch > 0 && b->bound_us < 4 * launch)
        fprintf(a->f,
                " A launch alone takes %.2g µs: one graph of the step, and one W for layers that read the same X, make fewer.",
                launch);
    else if (would_take_i8(a, &changed))
        fputs(" Codes are unpacked to f32 here; <code>--compute i8</code> multiplies them in 8 bits.", a->f);
    else if (a->on_cpu && b->us < SHORT_CALL)
        fputs(" So short a call is mostly waking threads: <code>rft_run_list</code> runs layers of one X in one hand-off, and "
              "joined W (q+k+v, gate+up) are one product.",
              a->f);
    else
        say_how_to_look(a);
}

/* ---- what would lower the bound ---- */

/* Rows that take no longer than reading W does. */
static double free_rows(const adviser *a) {
    double reading = a->bound.memory_seconds * a->row->run_bytes / a->row->bytes;
    return a->bound.compute_seconds > 0 ? floor((double)a->row->layer.m * reading / a->bound.compute_seconds) : 0;
}

/* Names a changed product where its bound is worth it. */
static void say_changed(const adviser *a, const char *how, const rft_linear_desc *changed) {
    rft_bound b;
    char kernel[ROW_NAME];
    cell now, then;
    if (!report_bound(a->r, changed, a->row->layer.m, &b) || b.seconds <= 0 || a->bound.seconds < WORTH * b.seconds)
        return;
    report_time_text(now, 1e6 * a->bound.seconds);
    report_time_text(then, 1e6 * b.seconds);
    fprintf(a->f, " %s%s the bound of a call falls from %s to %s.", how,
            kernel_of(a, changed, kernel) ? "" : ", for which there is no kernel here yet,", now, then);
}

static void say_four_bits(const adviser *a) {
    rft_linear_desc changed = a->desc;
    weight_scales scales;
    char why[CLI_WHY];
    if (!parse_weight("i4:g128:f16", &changed.w.elem, &scales, why))
        return;
    scales_describe(&scales, &changed.w);
    say_changed(a, "With W in 4 bits (<code>rooftile quantize</code>)", &changed);
}

static void say_half(const adviser *a) {
    rft_linear_desc changed = a->desc;
    if (cli_low_bit(changed.w.elem) || cli_8bit(changed.x))
        return;
    changed.x = changed.w.elem = RFT_BF16;
    say_changed(a, "With X and W in bf16", &changed);
}

/* FP8 on a GPU; CPUs have no unit for it. */
static void say_fp8(const adviser *a) {
    rft_linear_desc changed = a->desc;
    weight_scales scales;
    char why[CLI_WHY];
    if (a->on_cpu || cli_low_bit(changed.w.elem) || !parse_weight("e4m3", &changed.w.elem, &scales, why))
        return;
    scales_describe(&scales, &changed.w);
    changed.x = RFT_E4M3;
    changed.flags |= RFT_X_SCALED;
    say_changed(a, "With X and W in FP8", &changed);
}

/* Codes that are there already, or those of 8 bits. */
static void say_bytes_multiplied(const adviser *a) {
    rft_linear_desc changed = a->desc;
    char why[CLI_WHY];
    bool codes = cli_low_bit(changed.w.elem);
    if (!codes && !parse_type("q8_0", &changed.w.elem, why))
        return;
    if (would_take_i8(a, &changed))
        say_changed(a, codes ? "With <code>--compute i8</code>" : "With W in 8 bits and <code>--compute i8</code>", &changed);
}

static void say_memory(const adviser *a) {
    double rows = free_rows(a);
    int64_t m = a->row->layer.m;
    fprintf(a->f, " %.0f %% of its least bytes are W.", 100 * a->row->run_bytes / a->row->bytes);
    if (rows >= 2 * (double)m)
        fprintf(a->f,
                " Reading W takes as long for %.0f rows as for %lld: a larger batch, or speculated tokens, are nearly free.",
                rows, (long long)m);
    say_four_bits(a);
}

static void say_compute(const adviser *a) {
    fputs(" Its arithmetic is the limit.", a->f);
    say_half(a);
    say_bytes_multiplied(a);
    say_fp8(a);
}

/* The largest row that the same holds for: rows, W and what bounds them are alike. */
static const gap *alike(const adviser *a, const gap *first, const gap *g) {
    rft_bound b;
    for (; first < g; first++) {
        rft_linear_desc desc = model_row_desc(first->row);
        if (report_bound(a->r, &desc, first->row->layer.m, &b) && strcmp(b.what, a->bound.what) == 0 && desc.x == a->desc.x &&
            desc.w.elem == a->desc.w.elem && first->row->layer.m == a->row->layer.m)
            return first;
    }
    return NULL;
}

static void say_remedy(const adviser *a, const gap *same) {
    if (!same) {
        (strcmp(a->bound.what, "memory") == 0 ? say_memory : say_compute)(a);
        return;
    }
    fputs(" What is said of the bound of <bdi>", a->f);
    html_text(a->f, same->row->name);
    fputs("</bdi> holds for it too.", a->f);
}

static void say_row(FILE *f, const model_report *r, const gap *first, const gap *g, double total) {
    adviser a = {.f = f, .r = r, .row = g->row, .desc = model_row_desc(g->row), .on_cpu = strncmp(r->device, "cpu", 3) == 0};
    cell us;
    if (!report_bound(r, &a.desc, g->row->layer.m, &a.bound))
        return;
    report_time_text(us, g->us);
    fputs("<li><strong><bdi>", f);
    html_text(f, g->row->name);
    fprintf(f, "</bdi></strong> %s %s of the step (%.0f %%)",
            g->lost       ? "loses"
            : r->measured ? "takes"
                          : "takes at least",
            us, total > 0 ? 100 * g->us / total : 0);
    if (r->measured && !g->lost)
        fprintf(f, ", at %.0f %% of its roof", g->row->bench.pct_roof);
    fputs(".", f);
    if (g->lost)
        say_loss(&a);
    say_remedy(&a, alike(&a, first, g));
    fputs("</li>\n", f);
}

void report_advice(FILE *f, const model_report *r) {
    gap *gaps = cli_alloc((size_t)r->n, sizeof *gaps);
    int n = find_gaps(r, gaps);
    double total = report_total(r);
    if (n > 0) {
        html_element(f, "h3", NULL, r->measured ? "The largest gaps, and what to do" : "The largest costs, and what to do");
        fputs("<ol class=\"advice\">\n", f);
        for (int i = 0; i < n; i++)
            say_row(f, r, gaps, &gaps[i], total);
        fputs("</ol>\n", f);
        if (!r->measured && !r->described)
            fputs(
                "<p class=\"note\"><code>--run</code> measures each layer, and then shows how far each is from its bound.</p>\n",
                f);
    }
    free(gaps);
}
