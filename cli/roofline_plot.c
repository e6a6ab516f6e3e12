/* SPDX-License-Identifier: Apache-2.0
 *
 * roofline_plot.c - the script of gnuplot for a machine profile: the roofline of all threads, and where several counts were
 * measured, bandwidth and arithmetic by threads. Called by cmd_roofline.c through roofline_table.h.
 */
#include "gnuplot.h"
#include "out_text.h"
#include "roofline_table.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct sheet {
    const rft_machine *m, *spec;
    double memory, top, x0, x1, y0; /* GB/s, highest GFLOP/s, FLOP/byte and GFLOP/s where the roofline begins and ends */
    double unit;                    /* GFLOP/s in one of the axis */
} sheet;

typedef struct peak_label {
    uint32_t peak;
    double y; /* of the label, moved apart from its neighbours */
} peak_label;

static uint32_t last(const rft_machine *m) { return m->n_counts - 1; }

/* From a tenth of where the slowest arithmetic meets memory, so that a corner is free, to eight times where the fastest does. */
static bool frame(sheet *s) {
    double least = INFINITY;
    s->memory = s->m->levels[s->m->n_levels - 1].read_gbps[last(s->m)];
    for (uint32_t i = 0; i < s->m->n_peaks; i++) {
        double gflops = s->m->peaks[i].gflops[last(s->m)];
        s->top = fmax(s->top, gflops);
        least = gflops > 0 ? fmin(least, gflops) : least;
    }
    if (s->memory <= 0 || s->top <= 0)
        return false;
    s->x0 = fmin(0.25, 0.1 * least / s->memory);
    s->x1 = 8 * s->top / s->memory;
    s->y0 = s->x0 * s->memory;
    s->unit = s->top >= 2e4 ? 1e3 : 1;
    return true;
}

/* ---- the roofline: each roof a line between two points, levels in the key, peaks beside their lines ---- */

static void data_line(FILE *f, const char *name, uint32_t i, const double x[2], const double y[2]) {
    fprintf(f, "$%s%u << EOD\n%.9g %.9g\n%.9g %.9g\nEOD\n", name, i, x[0], y[0], x[1], y[1]);
}

static void slope(FILE *f, const sheet *s, const char *name, uint32_t i, double gbps) {
    double x1 = fmax(s->x0, s->top / gbps);
    data_line(f, name, i, (double[]){s->x0, x1}, (double[]){s->x0 * gbps / s->unit, x1 * gbps / s->unit});
}

static void roof_data(FILE *f, const sheet *s, double spec) {
    for (uint32_t i = 0; i < s->m->n_levels; i++)
        if (s->m->levels[i].read_gbps[last(s->m)] > 0)
            slope(f, s, "level", i, s->m->levels[i].read_gbps[last(s->m)]);
    for (uint32_t i = 0; i < s->m->n_peaks; i++) {
        double gflops = s->m->peaks[i].gflops[last(s->m)], y = gflops / s->unit;
        if (gflops > 0)
            data_line(f, "peak", i, (double[]){gflops / s->memory, s->x1}, (double[]){y, y});
    }
    if (spec > 0)
        slope(f, s, "spec", 0, spec);
}

static void speed(FILE *f, const char *before, const char *what, double value, const char *unit) {
    char text[96];
    cell digits;
    format_3(digits, value);
    snprintf(text, sizeof text, "%.15s%s%.15s %.16s %s", before, before[0] ? " " : "", what, digits, unit);
    gnuplot_quote(f, text);
}

static int by_height(const void *a, const void *b) {
    double x = ((const peak_label *)a)->y, y = ((const peak_label *)b)->y;
    return (x < y) - (x > y);
}

static void peak_labels(FILE *f, const sheet *s) {
    peak_label labels[RFT_MACHINE_PEAKS];
    double apart = pow(1.5 * s->top / s->y0, 0.05), above = INFINITY;
    int n = 0;
    for (uint32_t i = 0; i < s->m->n_peaks; i++)
        if (s->m->peaks[i].gflops[last(s->m)] > 0)
            labels[n++] = (peak_label){i, s->m->peaks[i].gflops[last(s->m)]};
    qsort(labels, (size_t)n, sizeof *labels, by_height);
    for (int i = 0; i < n; i++) {
        const rft_machine_peak *p = &s->m->peaks[labels[i].peak];
        above = fmin(labels[i].y, above / apart);
        fputs("set label ", f);
        speed(f, p->isa, p->op, p->gflops[last(s->m)] / s->unit, "");
        fprintf(f, " at %.9g,%.9g left offset 1,0\n", s->x1, above / s->unit);
    }
}

static void roof_lines(FILE *f, const sheet *s, double spec) {
    const char *begin = "plot";
    for (uint32_t i = 0; i < s->m->n_levels; i++) {
        double gbps = s->m->levels[i].read_gbps[last(s->m)];
        bool is_memory = i == s->m->n_levels - 1;
        if (gbps <= 0)
            continue;
        fprintf(f, "%s $level%u with lines linewidth %d linecolor rgb '%s' dashtype %u title ", begin, i, is_memory ? 3 : 1,
                is_memory ? "#000000" : "#666666", is_memory ? 1 : i + 2);
        speed(f, "", s->m->levels[i].name, gbps, "GB/s");
        begin = ",";
    }
    for (uint32_t i = 0; i < s->m->n_peaks; i++)
        if (s->m->peaks[i].gflops[last(s->m)] > 0)
            fprintf(f, ", $peak%u with lines linewidth 2 linetype %u notitle", i, i + 1);
    if (spec > 0) {
        fputs(", $spec0 with lines linecolor rgb '#999999' title ", f);
        speed(f, "data sheet", s->m->levels[s->m->n_levels - 1].name, spec, "GB/s");
    }
    fputs("\n", f);
}

/* Where the plots of a picture lie side by side; on a terminal they follow each other. */
static void place(FILE *f, double from, double width) {
    fprintf(f, "if (side_by_side) { set origin %g,0; set size %g,1 }\n", from, width);
}

static void write_roofline(FILE *f, sheet *s) {
    char title[160];
    double spec = spec_read(s->m, s->spec, s->m->n_levels - 1);
    bool on_gpu = strncmp(s->m->device, "cuda", 4) == 0;
    if (!frame(s))
        return;
    snprintf(title, sizeof title, "%s, %u %s", s->m->name, s->m->counts[last(s->m)],
             on_gpu                                    ? "SMs"
             : last(s->m) == 0 && s->m->counts[0] == 1 ? "thread"
                                                       : "threads");
    roof_data(f, s, spec);
    peak_labels(f, s);
    fputs("set title ", f);
    gnuplot_quote(f, title);
    fprintf(f,
            "\nset logscale xy\nset grid\nset key bottom right\nset rmargin 30\nset format '%%g'\nset xlabel 'FLOP/byte'\n"
            "set ylabel '%s'\nset xrange [%.9g:%.9g]\nset yrange [%.9g:%.9g]\n",
            s->unit > 1 ? "TFLOP/s" : "GFLOP/s", s->x0, s->x1, s->y0 / s->unit, 1.5 * s->top / s->unit);
    roof_lines(f, s, spec);
    fputs("unset label\nset rmargin\nset key below\n", f);
}

/* ---- by threads ---- */

static void write_series(FILE *f, const rft_machine *m, const char *name, uint32_t i, const double *roofs) {
    fprintf(f, "$%s%u << EOD\n", name, i);
    for (uint32_t t = 0; t < m->n_counts; t++)
        fprintf(f, "%u %.9g\n", m->counts[t], roofs[t]);
    fputs("EOD\n", f);
}

static void begin_curves(FILE *f, const char *title, const char *unit, const rft_machine *m) {
    fprintf(f, "set title '%s by threads'\nset xlabel 'threads'\nset ylabel '%s'\nset xrange [%.9g:%.9g]\nset yrange [*:*]\n",
            title, unit, 0.9 * m->counts[0], 1.1 * m->counts[last(m)]);
    for (uint32_t t = 0; t < m->n_counts; t++)
        fprintf(f, "%s'%u' %u", t ? ", " : "set xtics (", m->counts[t], m->counts[t]);
    fputs(")\n", f);
}

static void write_bandwidth(FILE *f, const rft_machine *m) {
    for (uint32_t i = 0; i < m->n_levels; i++) {
        write_series(f, m, "read", i, m->levels[i].read_gbps);
        write_series(f, m, "copy", i, m->levels[i].copy_gbps);
    }
    begin_curves(f, "Bandwidth", "GB/s", m);
    for (uint32_t i = 0; i < m->n_levels; i++)
        for (int copy = 0; copy < 2; copy++) {
            char title[48];
            snprintf(title, sizeof title, "%s %s", m->levels[i].name, copy ? "copy" : "read");
            fprintf(f, "%s $%s%u with linespoints linetype %u dashtype %d title ", i || copy ? "," : "plot",
                    copy ? "copy" : "read", i, i + 1, copy ? 3 : 1);
            gnuplot_quote(f, title);
        }
    fputs("\n", f);
}

static void write_arithmetic(FILE *f, const rft_machine *m) {
    for (uint32_t i = 0; i < m->n_peaks; i++)
        write_series(f, m, "flops", i, m->peaks[i].gflops);
    begin_curves(f, "Arithmetic", "GFLOP/s", m);
    for (uint32_t i = 0; i < m->n_peaks; i++) {
        char title[48];
        snprintf(title, sizeof title, "%s %s", m->peaks[i].isa, m->peaks[i].op);
        fprintf(f, "%s $flops%u with linespoints title ", i ? "," : "plot", i);
        gnuplot_quote(f, title);
    }
    fputs("\n", f);
}

/* A data sheet knows one core and all of them, which makes no curve. */
static bool has_curves(const rft_machine *m) { return m->n_counts > 1 && strcmp(m->source, "measured") == 0; }

static void write_script(FILE *f, const void *what) {
    sheet s = *(const sheet *)what;
    bool curves = has_curves(s.m);
    place(f, 0, curves ? 0.44 : 1);
    write_roofline(f, &s);
    if (curves) {
        place(f, 0.44, 0.28);
        write_bandwidth(f, s.m);
        place(f, 0.72, 0.28);
        write_arithmetic(f, s.m);
    }
}

int roofline_plot(const char *path, const rft_machine *m, const rft_machine *spec) {
    const sheet s = {.m = m, .spec = spec};
    return gnuplot_run(path, has_curves(m) ? 3 : 1, write_script, &s);
}
