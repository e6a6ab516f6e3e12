/* SPDX-License-Identifier: Apache-2.0
 *
 * exchange.c - what ranks with experts dealt out send each other, and the rules of ranks. See rft_exchange in rooftile_model.h.
 *
 * Experts and tokens are dealt out as evenly as can be, so that two ranks differ by one of them at most.
 */
#include "ranks.h"

#include "base/error.h"
#include "base/sized.h"
#include "phase.h"

#include <inttypes.h>
#include <math.h>

static rft_status check_sizes(const rft_ranks *r, rft_error *err) {
    if (r->tp < 1 || r->tp > RFT_MAX_RANKS) {
        RFT_FAIL(err, RFT_E_ARG, "ranks.tp = %" PRId64 " is not in 1..%d", r->tp, RFT_MAX_RANKS);
    }
    if (r->ep < 0 || r->ep > RFT_MAX_RANKS) {
        RFT_FAIL(err, RFT_E_ARG, "ranks.ep = %" PRId64 " is not in 0..%d", r->ep, RFT_MAX_RANKS);
    }
    if (r->ep % r->tp != 0) {
        RFT_FAIL(err, RFT_E_ARG, "ranks.ep = %" PRId64 " is no multiple of ranks.tp = %" PRId64 ", the ranks of a group", r->ep,
                 r->tp);
    }
    if (!(r->dispatch_bytes >= 0 && r->dispatch_bytes <= 8)) {
        RFT_FAIL(err, RFT_E_ARG, "ranks.dispatch_bytes = %g is not in 0..8", r->dispatch_bytes);
    }
    return RFT_OK;
}

rft_status rft__ranks_check(const rft_model *m, const rft_phase *phase, const rft_ranks *ranks, const char *what,
                            rft_error *err) {
    RFT_TRY(rft__phase_check(phase, err));
    if (!ranks) {
        RFT_FAIL(err, RFT_E_ARG, "ranks is NULL");
    }
    RFT_TRY(check_sizes(ranks, err));
    if (rft__hparams_unknown(&m->hparams)) {
        RFT_FAIL(err, RFT_E_UNSUPPORTED, "the role of '%.99s' is not known, nor how it is cut", what);
    }
    if (ranks->ep > 0 && m->hparams.experts == 0) {
        RFT_FAIL(err, RFT_E_UNSUPPORTED, "ranks.ep = %" PRId64 ": %s has no experts to deal out", ranks->ep,
                 m->hparams.arch->name);
    }
    return RFT_OK;
}

typedef struct deal { /* of a step */
    double ranks, tokens, own_most, own_least; /* of all, of the rank with the most and the fewest */
    double experts, used, held_most, held_least;
    double values; /* of one copy of a token, in all blocks */
} deal;

static deal deal_of(const rft__hparams *h, const rft_phase *phase, const rft_ranks *r) {
    const int64_t groups = rft__ranks_groups(r), most = rft__ceil_div(phase->batch, groups) * phase->tokens;
    const int64_t least = phase->batch / groups * phase->tokens;
    return (deal){
        .ranks = (double)r->ep,
        .tokens = (double)(phase->batch * phase->tokens),
        .own_most = (double)rft__ceil_div(most, r->tp),
        .own_least = (double)(least / r->tp),
        .experts = (double)h->experts,
        .used = (double)h->used,
        .held_most = (double)rft__ceil_div(h->experts, r->ep),
        .held_least = (double)(h->experts / r->ep),
        .values = (double)h->hidden * (double)(h->layers - h->dense_first),
    };
}

static void fill_dispatch(const deal *d, rft_exchange *out) {
    out->name = "dispatch";
    out->sent_bytes = d->own_most * d->used * (d->ranks - 1) / d->ranks;
    out->sent_bytes_min = d->own_most * fmax(0, d->used - d->held_most);
    out->sent_bytes_max = d->own_most * fmin(d->used, d->experts - d->held_least);
}

static void fill_combine(const deal *d, rft_exchange *out) {
    out->name = "combine";
    out->sent_bytes = d->tokens * d->used * d->held_most / d->experts * (d->ranks - 1) / d->ranks;
    out->sent_bytes_min = (d->tokens - d->own_most) * fmax(0, d->used - (d->experts - d->held_most));
    out->sent_bytes_max = (d->tokens - d->own_least) * fmin(d->used, d->held_most);
}

rft_status rft_model_get_exchange(const rft_model *m, rft_exchange_kind kind, const rft_phase *phase, const rft_ranks *ranks,
                                  rft_exchange *exchange, rft_error *err) {
    if (!m || !exchange) {
        RFT_FAIL(err, RFT_E_ARG, "%s is NULL", m ? "exchange" : "model");
    }
    RFT_TRY(rft__sized_check(exchange, "exchange", err));
    RFT_TRY(rft__ranks_check(m, phase, ranks, "experts", err));
    if (ranks->ep == 0) {
        RFT_FAIL(err, RFT_E_ARG, "ranks.ep = 0: experts are not dealt out, so there is nothing to exchange");
    }
    if (kind != RFT_EXCHANGE_DISPATCH && kind != RFT_EXCHANGE_COMBINE) {
        RFT_FAIL(err, RFT_E_ARG, "kind = %d is neither RFT_EXCHANGE_DISPATCH nor RFT_EXCHANGE_COMBINE", (int)kind);
    }
    const deal d = deal_of(&m->hparams, phase, ranks);
    const bool narrow = kind == RFT_EXCHANGE_DISPATCH && ranks->dispatch_bytes > 0;
    const double back = phase->kind == RFT_PHASE_TRAIN ? RFT_RESULT_BYTES : 0; /* the gradients of what the other way brought */
    const double token = d.values * ((narrow ? ranks->dispatch_bytes : RFT_RESULT_BYTES) + back);
    rft_exchange result = rft_exchange_init();
    (kind == RFT_EXCHANGE_DISPATCH ? fill_dispatch : fill_combine)(&d, &result);
    result.bytes = d.tokens * d.used * token;
    result.sent_bytes *= token;
    result.sent_bytes_min *= token;
    result.sent_bytes_max *= token;
    rft__sized_write(exchange, &result, sizeof result);
    return RFT_OK;
}
