/* SPDX-License-Identifier: Apache-2.0
 *
 * readers.h - one reader a format. Each adds rows to a trace, or says in `why` what is wrong with the file.
 */
#ifndef TRACE_READERS_H
#define TRACE_READERS_H

#include "trace/trace.h"

/* The JSON of torch.profiler. */
bool trace_read_kineto(trace *t, const char *bytes, size_t size, char why[CLI_WHY]);
/* Lines of ONEDNN_VERBOSE=1 (or DNNL_VERBOSE, MKLDNN_VERBOSE) between any others. */
bool trace_is_onednn_line(const char *line, size_t length);
bool trace_read_onednn(trace *t, const char *bytes, size_t size, char why[CLI_WHY]);
/* Lines of RFT_VERBOSE=exec between any others. */
bool trace_is_own_line(const char *line, size_t length);
bool trace_read_own(trace *t, const char *bytes, size_t size, char why[CLI_WHY]);
/* The SQLite export of Nsight Systems; by its path, or its bytes, which are changed. */
bool trace_read_nsight(trace *t, const char *path, char why[CLI_WHY]);
bool trace_read_nsight_bytes(trace *t, unsigned char *bytes, size_t size, char why[CLI_WHY]);

typedef struct text_line {
    const char *p;
    size_t length;
} text_line;

/* The next line of [*at, end) without its newline; false at the end. */
bool trace_next_line(const char **at, const char *end, text_line *line);

#endif
