/* SPDX-License-Identifier: Apache-2.0
 *
 * options.h - the flags that all commands which plan or run a product share, and what they make: a context and descriptors.
 * A command calls options_parse or, where it has flags of its own, adds `options_argp` as a child of its argp, with a
 * run_options as its input, and calls options_finish.
 */
#ifndef OPTIONS_H
#define OPTIONS_H

#include "cli_parse.h"

#include <argp.h>

typedef struct run_options {
    const char *device, *isa, *kernel, *profile, *machine, *shapes_file, *peers;
    int_list m, n, k;
    shape_list shapes; /* made by options_finish from -n, -k and -m, or from the file */
    rft_type x, w, y;  /* 0 until options_finish where no flag gave them */
    weight_scales w_scales;
    x_groups x_groups;
    rft_order x_order, w_order;
    rft_compute compute;
    char layout[3];
    epilogue epi;
    int64_t batch;
    uint32_t threads; /* 0: the library's default */
    uint64_t seed;
    double seconds; /* measured for one contender and row */
    int64_t rounds;
    bool warm, json, dynamic, view, unfused, between;
} run_options;

extern const struct argp options_argp;

run_options options_default(void);
/* Completes the options; an exit code. m_default: the rows where -m is not given. */
int options_finish(run_options *o, const char *m_default);
/* All of it for a command without flags of its own, which needs a shape; doc: its help. An exit code. */
int options_parse(run_options *o, int argc, char **argv, const char *doc);
void options_free(run_options *o);
/* The first flag given, before options_finish, that says what is multiplied beside the types of x and y; NULL: none. */
const char *options_shape_flag(const run_options *o);

/* Whether the device has kernels for these types: a GPU multiplies floats alone. False: `why` names the flag in the way. */
bool options_device_takes(const run_options *o, char why[CLI_WHY]);

/* No other machine is asked for; else a message. */
bool options_are_here(const run_options *o);
/* A context for the options; parallel_for may be NULL. An exit code. */
typedef void cli_parallel_for(void *user, int n, void (*task)(void *arg, int i), void *arg);
int options_context(const run_options *o, cli_parallel_for *parallel_for, void *user, rft_ctx **out);

/* The product Y[m][n] of these options, for rows m_min..m_max. */
rft_linear_desc options_desc(const run_options *o, int64_t n, int64_t k, int64_t m_min, int64_t m_max);
rft_status options_plan(const run_options *o, rft_ctx *ctx, const rft_linear_desc *desc, rft_plan **out, rft_error *err);
/* Columns of y: n, or n/2 behind a gated unit. */
int64_t options_columns(const run_options *o, int64_t n);

#endif
