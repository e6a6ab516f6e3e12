/* SPDX-License-Identifier: Apache-2.0
 *
 * trace.h - what a recorded run spent its time on: products of matrices, attention, norms, collectives and the rest.
 * `rooftile trace` and `rooftile replay` read a file into rows; readers.h has a reader for each format, told apart by what the
 * file holds. Files are not trusted: every length, count and number of theirs is checked before it is used.
 */
#ifndef TRACE_H
#define TRACE_H

#include "cli_parse.h"

#define TRACE_NAME   112
#define TRACE_PHASE  12
#define TRACE_DEVICE 96

typedef enum trace_group { TRACE_GEMM, TRACE_ATTENTION, TRACE_NORM, TRACE_COLLECTIVE, TRACE_OTHER, TRACE_GROUPS } trace_group;

typedef struct trace_call { /* what rows are told apart by; zeroed where the file does not tell */
    trace_group group;
    char name[TRACE_NAME];                     /* of the op, primitive or kernel; the start of a longer one */
    int64_t m, n, k, batch;                    /* batch 0: no shape is known */
    char x[X_TEXT], w[WEIGHT_TEXT], y[X_TEXT]; /* as --x, --w and --y read them, or a type that those do not have */
    char layout[3];                            /* as --layout reads it */
    char compute[8];                           /* as --compute reads it */
    char packed;                               /* 1: W lies in a library's own format */
    char epi[64];                              /* as --epi reads it; "none" */
    char phase[TRACE_PHASE];                   /* "decode", "prefill", "mixed", "backward": the file says so */
} trace_call;

typedef struct trace_row {
    trace_call call;
    int64_t calls;
    double us;
} trace_row;

typedef struct trace {
    const char *format;
    char device[TRACE_DEVICE]; /* on which the run was recorded; "" */
    bool on_gpu;
    bool enqueued;       /* times of products are those of handing them to a GPU */
    uint32_t threads;    /* of the run; 0: not told */
    bool shapes_missing; /* products were recorded without their shapes */
    int64_t skipped;     /* events or lines that are not what the format has */
    trace_row *rows;     /* sorted by time once the file is read */
    size_t n, cap;
    uint32_t *slots; /* a hash table over the rows: index + 1 */
    size_t n_slot;
    double us, group_us[TRACE_GROUPS];
    int64_t group_calls[TRACE_GROUPS];
} trace;

/* An exit code; the message has been given. Free it in any case. */
int trace_open(const char *path, trace *t);
/* The same of the bytes of a file, which may be of any format but a database. False: `why` says what is wrong. */
bool trace_read(trace *t, const char *bytes, size_t size, char why[CLI_WHY]);
void trace_free(trace *t);

const char *trace_group_name(trace_group group);
/* By the words in an op's or kernel's name. */
trace_group trace_group_of(const char *name);
/* "decode?" and "prefill?" are guesses from m alone. */
const char *trace_phase(const trace_call *call);

/* ---- for the readers ---- */

/* The row of such calls, whose texts then hold no control characters; calls of too many kinds share one row of their group. */
uint32_t trace_intern(trace *t, const trace_call *call);
void trace_count(trace *t, uint32_t row, int64_t calls, double us);
/* Names may be longer than they are kept, or no UTF-8. */
void trace_set_name(trace_call *call, const char *name);
/* Sizes of a product as they are bounded here; false: one is negative or too large. */
bool trace_set_shape(trace_call *call, int64_t batch, int64_t m, int64_t n, int64_t k);
/* Appends an op to a list as --epi reads it; false: it does not fit. */
bool trace_add_epi(trace_call *call, const char *op);

#endif
