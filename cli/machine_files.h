/* SPDX-License-Identifier: Apache-2.0
 *
 * machine_files.h - profiles by name: the data sheets that come with the tool (bench/machines), and any profile by its path.
 * Called by roofline, explain, jit and trace, and by bench_run.c, model_rows.c and report_advice.c.
 */
#ifndef MACHINE_FILES_H
#define MACHINE_FILES_H

#include "bench_row.h"
#include "options.h"

/* A name such as "h100", or a path: a text with a slash or that ends in .json. An exit code; flag: for messages. */
int machine_load(const char *flag, const char *name, rft_machine *out);
/* Refuses --machine with --profile, of which one says which machine is meant. An exit code. */
int machine_check(const run_options *o);
/* The machine that --machine or --profile describes, for commands that need no machine; false: neither was given. */
bool machine_described(const run_options *o, rft_machine *out, int *code);
/* What is chosen there: the text of rft_explain_machine, and the kernel that it names. */
rft_status machine_explain(const rft_machine *m, const rft_linear_desc *desc, int64_t rows, uint32_t threads, char *text,
                           size_t cap, char kernel[ROW_NAME], rft_error *err);
/* That kernel alone; "": there is none. */
rft_status machine_kernel(const rft_machine *m, const rft_linear_desc *desc, int64_t rows, uint32_t threads,
                          char kernel[ROW_NAME], rft_error *err);
/* The data sheet of a measured machine, by the name that it gives itself. */
bool machine_spec(const rft_machine *measured, rft_machine *out);

#endif
