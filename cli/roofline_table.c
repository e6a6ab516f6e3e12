/* SPDX-License-Identifier: Apache-2.0
 *
 * roofline_table.c - see roofline_table.h. The last columns are those of the most threads: the share of the data sheet, and of a
 * peak the intensity from which on it is reached, where memory is no longer the limit.
 */
#include "roofline_table.h"
#include "out_json.h"
#include "out_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint32_t most_threads(const rft_machine *m) { return m->counts[m->n_counts - 1]; }

double spec_read(const rft_machine *m, const rft_machine *spec, uint32_t level) {
    const rft_machine_level *found = NULL;
    for (uint32_t i = 0; spec && i + 1 < spec->n_levels; i++)
        if (strcmp(spec->levels[i].name, m->levels[level].name) == 0)
            found = &spec->levels[i];
    if (spec && level == m->n_levels - 1) /* memory, whatever its kind is called */
        found = &spec->levels[spec->n_levels - 1];
    return found ? rft_machine_roof(spec, found->read_gbps, most_threads(m)) : 0;
}

/* The same of a peak. */
static double spec_peak(const rft_machine *m, const rft_machine *spec, uint32_t peak) {
    const rft_machine_peak *p = &m->peaks[peak];
    for (uint32_t i = 0; spec && i < spec->n_peaks; i++)
        if (strcmp(spec->peaks[i].op, p->op) == 0 && strcmp(spec->peaks[i].isa, p->isa) == 0)
            return rft_machine_roof(spec, spec->peaks[i].gflops, most_threads(m));
    return 0;
}

static double ridge(const rft_machine *m, uint32_t peak) {
    double memory = m->levels[m->n_levels - 1].read_gbps[m->n_counts - 1];
    return memory > 0 ? m->peaks[peak].gflops[m->n_counts - 1] / memory : 0;
}

/* ---- tables ---- */

enum { LEAD = 3, TAIL = 2, MOST = LEAD + RFT_MACHINE_COUNTS + TAIL };

static bool is_gpu(const rft_machine *m) { return strncmp(m->device, "cuda", 4) == 0; }

static int count_columns(const rft_machine *m, column *columns, char (*titles)[32]) {
    const char *what = is_gpu(m) ? "SM" : "thread";
    for (uint32_t i = 0; i < m->n_counts; i++) {
        snprintf(titles[i], sizeof titles[i], "%u %s%s", m->counts[i], what, m->counts[i] == 1 ? "" : "s");
        columns[LEAD + i] = (column){titles[i], 0, false};
    }
    return LEAD + (int)m->n_counts;
}

static void share_cell(cell out, double measured, double spec) {
    if (spec > 0 && measured > 0)
        snprintf(out, CELL, "%.1f", 100 * measured / spec);
    else
        strcpy(out, "-");
}

static void level_rows(const rft_machine *m, const rft_machine *spec, cell *cells, int n) {
    for (uint32_t i = 0; i < m->n_levels; i++)
        for (int copy = 0; copy < 2; copy++) {
            const rft_machine_level *l = &m->levels[i];
            cell *row = cells + (size_t)(2 * (int)i + copy) * (size_t)n;
            snprintf(row[0], CELL, "%s", copy ? "" : l->name);
            format_bytes(row[1], (double)l->bytes);
            if (copy)
                row[1][0] = '\0';
            snprintf(row[2], CELL, "%s", copy ? "copy" : "read");
            for (uint32_t t = 0; t < m->n_counts; t++)
                format_3(row[LEAD + t], copy ? l->copy_gbps[t] : l->read_gbps[t]);
            if (spec)
                share_cell(row[LEAD + m->n_counts], copy ? 0 : l->read_gbps[m->n_counts - 1], spec_read(m, spec, i));
        }
}

static void peak_rows(const rft_machine *m, const rft_machine *spec, cell *cells, int n) {
    for (uint32_t i = 0; i < m->n_peaks; i++) {
        const rft_machine_peak *p = &m->peaks[i];
        cell *row = cells + (size_t)i * (size_t)n;
        snprintf(row[0], CELL, "%s", p->isa);
        snprintf(row[1], CELL, "%s", p->op);
        snprintf(row[2], CELL, "%s", rft_type_name(p->type));
        for (uint32_t t = 0; t < m->n_counts; t++)
            format_3(row[LEAD + t], p->gflops[t]);
        format_3(row[LEAD + m->n_counts], ridge(m, i));
        if (spec)
            share_cell(row[LEAD + m->n_counts + 1], p->gflops[m->n_counts - 1], spec_peak(m, spec, i));
    }
}

void roofline_text(const rft_machine *m, const rft_machine *spec) {
    column levels[MOST] = {{"memory, GB/s", 0, true}, {"working set", 0, false}, {"", 0, true}};
    column peaks[MOST] = {{"arithmetic, GFLOP/s", 0, true}, {"instruction", 0, true}, {"type", 0, true}};
    const column share = {"of spec, %", 0, false};
    char titles[RFT_MACHINE_COUNTS][32];
    int n = count_columns(m, levels, titles), n_level = n, n_peak = n;
    count_columns(m, peaks, titles);
    peaks[n_peak++] = (column){"FLOP/byte", 0, false};
    if (spec)
        levels[n_level++] = peaks[n_peak++] = share;
    size_t rows = 2 * (m->n_levels > m->n_peaks ? m->n_levels : m->n_peaks);
    cell *cells = cli_alloc(rows * (size_t)n_peak, sizeof *cells);
    printf("%s%s%s · %s · %s · %s %s\n\n", text_bold(), m->name, text_plain(), m->device, m->isa, m->source, m->date);
    level_rows(m, spec, cells, n_level);
    text_table(levels, n_level, cells, 2 * m->n_levels);
    putchar('\n');
    peak_rows(m, spec, cells, n_peak);
    text_table(peaks, n_peak, cells, m->n_peaks);
    if (m->launch_us > 0)
        printf("\nlaunch: %.3g us from kernel to kernel of a graph, %.3g us of the host each\n", m->launch_us, m->enqueue_us);
    if (spec)
        printf("\nspec: data sheet of %s, at %u %s%s\n", spec->name, most_threads(m), is_gpu(m) ? "SMs" : "threads",
               is_gpu(m) ? "" : "; DRAM with all its channels");
    free(cells);
}

/* ---- JSON ---- */

static json_t *numbers(const double *v, uint32_t n) {
    json_t *array = json_array();
    for (uint32_t i = 0; i < n; i++)
        json_array_append_new(array, json_real(v[i]));
    return array;
}

static json_t *beside(const char *key, double measured, double spec) {
    bool known = spec > 0;
    return json_pack("{s:o, s:o}", key, json_known(spec, known), "pct_spec",
                     json_known(100 * measured / spec, known && measured > 0));
}

static void print_extended(json_t *object, json_t *more) {
    json_extend(object, more);
    json_print(object);
}

void roofline_json(const rft_machine *m, const rft_machine *spec) {
    uint32_t last = m->n_counts - 1;
    for (uint32_t i = 0; i < m->n_levels; i++) {
        const rft_machine_level *l = &m->levels[i];
        print_extended(json_pack("{s:s, s:I, s:o, s:o}", "level", l->name, "bytes", (json_int_t)l->bytes, "read_gbps",
                                 numbers(l->read_gbps, m->n_counts), "copy_gbps", numbers(l->copy_gbps, m->n_counts)),
                       beside("spec_gbps", l->read_gbps[last], spec_read(m, spec, i)));
    }
    for (uint32_t i = 0; i < m->n_peaks; i++) {
        const rft_machine_peak *p = &m->peaks[i];
        print_extended(json_pack("{s:s, s:s, s:s, s:o, s:f}", "isa", p->isa, "op", p->op, "type", rft_type_name(p->type),
                                 "gflops", numbers(p->gflops, m->n_counts), "ridge", ridge(m, i)),
                       beside("spec_gflops", p->gflops[last], spec_peak(m, spec, i)));
    }
    if (m->launch_us > 0)
        json_print(json_pack("{s:f, s:f}", "launch_us", m->launch_us, "enqueue_us", m->enqueue_us));
}
