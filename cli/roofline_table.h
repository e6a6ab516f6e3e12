/* SPDX-License-Identifier: Apache-2.0
 *
 * roofline_table.h - a machine profile as tables, as JSON lines and as plots, its data sheet beside it. Called by cmd_roofline.c.
 */
#ifndef ROOFLINE_TABLE_H
#define ROOFLINE_TABLE_H

#include "cli.h"

/* spec may be NULL. */
void roofline_text(const rft_machine *m, const rft_machine *spec);
void roofline_json(const rft_machine *m, const rft_machine *spec);
/* path: as gnuplot_form takes it. An exit code. */
int roofline_plot(const char *path, const rft_machine *m, const rft_machine *spec);

/* The data sheet's roof beside a level's reads of m at its most threads; 0: not stated. */
double spec_read(const rft_machine *m, const rft_machine *spec, uint32_t level);

#endif
