/* SPDX-License-Identifier: Apache-2.0
 *
 * report_page.h - `rooftile model --html`: what was found out about a model as one page that needs nothing else: no network, no
 * other file. report_page.c writes it, report_plot.c its plot, report_advice.c what to do about the largest gaps.
 */
#ifndef REPORT_PAGE_H
#define REPORT_PAGE_H

#include "model_table.h"
#include "out_text.h"

#include <stdio.h>

/* All phases of one model; an exit code. */
int report_html(const char *path, const model_report *reports, int n);

/* ---- between its files ---- */

/* A product's bound on the report's machine; false: that is not known. */
bool report_bound(const model_report *r, const rft_linear_desc *desc, int64_t m, rft_bound *out);
double report_time(const model_row *row);   /* us of one call: measured, else the bound; 0: neither is known */
double report_total(const model_report *r); /* us of all runs of all rows, by report_time */

/* "35.1 µs", in ns, µs or ms. */
void report_time_text(cell out, double us);

/* Whether there is anything to draw: a machine, and a time for some row. */
bool report_has_plot(const model_report *reports, int n);
void report_plot(FILE *f, const model_report *reports, int n);
/* The three rows that lose most, or without measurements cost most, and what would help. */
void report_advice(FILE *f, const model_report *r);

#endif
