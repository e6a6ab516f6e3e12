/* SPDX-License-Identifier: Apache-2.0
 *
 * model_session.c - see model_session.h.
 */
#include "model_session.h"
#include "model_ranks.h"

#include <stdlib.h>

model_session model_session_make(void) { return (model_session){.m = model_run_make(), .phase_text = "decode:1"}; }

static error_t parse_flag(int key, char *arg, struct argp_state *state) {
    model_session *s = state->input;
    char why[CLI_WHY];
    switch (key) {
    case ARGP_KEY_INIT: state->child_inputs[0] = &s->m.run; return 0;
    case 'P': s->phase_text = arg; return 0;
    case 'C':
        if (!parse_int(arg, 0, MODEL_MOST_CONTEXT, &s->m.context, why))
            argp_error(state, "--context: %s", why);
        return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp_option flags[] = {
    {"phase", 'P', "PHASE", 0, "decode:B (default decode:1), prefill:BxT, verify:BxK or offline:BxT", 0},
    {"context", 'C', "N", 0, "Tokens of a sequence in the cache before (1024 in decode, verify)", 0},
    {0}};
static const struct argp_child children[] = {{&options_argp, 0, NULL, 0}, {0}};
const struct argp model_session_argp = {flags, parse_flag, NULL, NULL, children, NULL, NULL};

static int choose_phase(model_session *s) {
    int code = model_run_phase(s->phase_text, &s->phase);
    if (code != CLI_OK || s->phase.kind != RFT_PHASE_TRAIN)
        return code;
    cli_message("--phase %s: `rooftile model` lists the products of a step of training", s->phase_text);
    return CLI_USAGE;
}

static int add_rest(model_session *s) {
    rft_part *parts;
    int64_t n;
    int code = model_run_parts(&s->m, &s->phase, &s->context, &parts, &n);
    for (int64_t i = 0; i < n && code == CLI_OK && s->m.ranks.tp == 0; i++)
        model_add_part(&s->rest, &parts[i]);
    free(parts);
    return code;
}

static int plan_layers(model_session *s) {
    const int64_t n = rft_model_layer_count(s->m.model);
    int code = CLI_OK;
    s->m.job->phase = s->phase_text;
    s->rows = cli_alloc((size_t)n, sizeof *s->rows);
    for (int64_t i = 0; i < n && code == CLI_OK; i++) {
        code = s->m.ranks.tp > 0 ? model_shard_plan(&s->m, &s->phase, i, RFT_PASS_FORWARD, &s->rows[i])
                                 : model_row_plan(&s->m, &s->phase, i, RFT_PASS_FORWARD, &s->rows[i]);
        s->n = i + 1;
    }
    return code;
}

int model_session_open(model_session *s) {
    int code = model_run_flags(&s->m);
    if (code == CLI_OK)
        code = choose_phase(s);
    if (code == CLI_OK)
        code = model_run_open(&s->m);
    if (code == CLI_OK)
        code = ranks_begin(&s->m, &s->phase, &s->ranks);
    if (code == CLI_OK)
        code = add_rest(s);
    if (code == CLI_OK)
        code = model_run_device(&s->m);
    return code == CLI_OK ? plan_layers(s) : code;
}

void model_session_close(model_session *s) {
    model_run_close(&s->m);
    free(s->rows);
}
