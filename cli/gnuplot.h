/* SPDX-License-Identifier: Apache-2.0
 *
 * gnuplot.h - plots by gnuplot, run without a shell: its script comes through a pipe, its picture goes to a file that the tool
 * opens, so that no name of a file or a machine is ever part of a command. Called by
 * cmd_roofline.c and roofline_plot.c.
 */
#ifndef GNUPLOT_H
#define GNUPLOT_H

#include <stdbool.h>
#include <stdio.h>

typedef enum plot_form { PLOT_SVG, PLOT_PNG, PLOT_TEXT } plot_form;

/* By the end of a file's name, or "-" for text on standard output; false: neither. */
bool gnuplot_form(const char *path, plot_form *form);
/* Runs gnuplot on what `write_script` prints, behind the choice of a terminal for so many plots; side_by_side is 1 in that script
 * where they share a picture. An exit code. */
int gnuplot_run(const char *path, int plots, void (*write_script)(FILE *script, const void *what), const void *what);
/* 'text' as gnuplot takes it literally. */
void gnuplot_quote(FILE *script, const char *text);

#endif
