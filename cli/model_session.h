/* SPDX-License-Identifier: Apache-2.0
 *
 * model_session.h - a model file opened for one phase of inference, each of its layers planned on one device. Called by why and
 * regret, which measure some or all of them.
 */
#ifndef MODEL_SESSION_H
#define MODEL_SESSION_H

#include "model_rows.h"

typedef struct model_session {
    model_run m;
    const char *phase_text;
    rft_phase phase;
    int64_t context; /* tokens in the cache */
    model_ranks ranks;
    model_row *rows; /* all planned, in the order of execution; of one rank where there are any */
    int64_t n;
    rft_part rest; /* of a step, all that its linear layers are not; zeroed where that is not known, as of one rank */
} model_session;

/* A session for the flags of a command line. */
model_session model_session_make(void);
/* The flags --phase and --context with those of options_argp, as a child of a command's argp; its input is the session. */
extern const struct argp model_session_argp;

/* Opens the file and the device, and plans all layers. An exit code; close it in any case. */
int model_session_open(model_session *s);
void model_session_close(model_session *s);

#endif
