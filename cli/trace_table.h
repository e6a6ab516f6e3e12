/* SPDX-License-Identifier: Apache-2.0
 *
 * trace_table.h - what `rooftile trace` has found out, and its two forms.
 */
#ifndef TRACE_TABLE_H
#define TRACE_TABLE_H

#include "trace/trace.h"

typedef struct trace_bound { /* of a row */
    double us;               /* of one call; 0: none */
    const char *what;
} trace_bound;

typedef struct trace_report {
    const char *file;
    trace *t;
    trace_bound *bounds; /* one a row */
    bool has_machine;
    rft_machine machine;
    uint32_t threads; /* that the bounds are of */
    int64_t top;      /* rows shown of each table; 0: all */
} trace_report;

void trace_text(const trace_report *r);
void trace_json(const trace_report *r);

#endif
