/* SPDX-License-Identifier: Apache-2.0
 *
 * model_ranks.h - one of the ranks that share a phase: the flags that say how they do, what it has of each layer and what it
 * sends, as text and for programs. Called by model and why, and by the page of model.
 */
#ifndef MODEL_RANKS_H
#define MODEL_RANKS_H

#include "model_rows.h"
#include "out_text.h"

#include <jansson.h>

#define RANKS_TEXT 512

/* --tp, --ep and --dispatch, as a child of a command's argp; its input is the model_run. */
extern const struct argp ranks_argp;

/* What is known of the run's ranks before rows are planned. An exit code. */
int ranks_begin(const model_run *m, const rft_phase *phase, model_ranks *out);

/* Sums over a rank's rows and, where experts are dealt out, what it exchanges. */
typedef struct ranks_totals {
    double weight_bytes, flops;                        /* that it holds, that it does */
    double read_bytes, read_bytes_min, read_bytes_max; /* of W, as it is stored */
    double sent_bytes, sent_bytes_min, sent_bytes_max;
    double bound_us, us;
    bool bounded, timed; /* every row has one */
} ranks_totals;

ranks_totals ranks_sum_up(const model_report *r);
/* What a rank holds, reads and sends. */
void ranks_sentence(const model_report *r, char text[RANKS_TEXT]);
/* Whose tokens the phase has; "" where all ranks have the same. name: the phase as it was given. */
void ranks_tokens(const model_ranks *r, const char *name, const rft_phase *phase, char text[RANKS_TEXT]);
/* What stands before a rank's row i and behind it: tokens on their way to experts, and back. NULL: nothing. */
const rft_exchange *ranks_before(const model_report *r, int64_t i);
const rft_exchange *ranks_behind(const model_report *r, int64_t i);
/* "30.07 kB to 60.13 kB by routing" */
void ranks_spread(const rft_exchange *exchange, cell text);

void ranks_text(const model_report *r);
json_t *ranks_shard_json(const rft_shard *shard);
json_t *ranks_row_json(const model_row *row); /* of a rank's row: with its product, bound and times too */
void ranks_exchange_json(const model_ranks *r, const char *phase); /* a line each */
json_t *ranks_totals_json(const model_report *r);

#endif
