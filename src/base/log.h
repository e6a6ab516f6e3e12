/* SPDX-License-Identifier: Apache-2.0
 *
 * log.h - events as CSV lines, to the context's callback or to RFT_VERBOSE's sink (stderr or RFT_LOG_FILE, %p = process id).
 * Format: one header line `rooftile,time_s,level,event,what,detail,us`, then a line an event. Called by plan and api.
 */
#ifndef RFT_BASE_LOG_H
#define RFT_BASE_LOG_H

#include "rooftile.h"

#include <stdbool.h>

typedef struct rft__log {
    void (*callback)(void *user, rft_log_level level, const char *line);
    void *user;
    rft_log_level level; /* of the callback; RFT_VERBOSE has its own */
} rft__log;

/* The cheap question before text is made: is anyone listening at this level? */
bool rft__log_enabled(const rft__log *log, rft_log_level level);
/* what and detail are quoted as CSV needs; us < 0: no time. */
void rft__log_event(const rft__log *log, rft_log_level level, const char *event, const char *what, double us,
                    const char *detail_format, ...) __attribute__((format(printf, 6, 7)));

#endif
