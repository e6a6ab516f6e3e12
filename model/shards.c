/* SPDX-License-Identifier: Apache-2.0
 *
 * shards.c - a linear layer on one rank: cut over its group, or of experts that are dealt out the rank's own. See rft_ranks and
 * rft_shard in rooftile_model.h; how tokens and experts meet stands in exchange.c.
 *
 * Which side is cut follows from what N and K of the product are: heads, hidden neurons and the vocabulary can be cut, the hidden
 * size and latent ranks cannot. K is cut where it can be (results are summed), else N, else each rank holds all of W.
 */
#include "ranks.h"

#include "base/error.h"
#include "base/sized.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

typedef struct cut { /* one side of W */
    const char *what; /* its units, NULL: it stays whole */
    int64_t units;
    int64_t shared; /* > 0: beside them so many kv heads, twice (keys and values) */
    bool repeats;   /* kv heads: a rank has those that its heads read, be they another's too */
} cut;

static cut cut_of(const rft__hparams *h, rft__extent extent, int64_t size) {
    switch (extent) {
    case RFT_EXT_Q:
    case RFT_EXT_Q_LATENT:
    case RFT_EXT_Q_DIRECT:
    case RFT_EXT_KV_HEADS:
    case RFT_EXT_V:
        return (cut){"heads", h->heads, 0, false};
    case RFT_EXT_KV:
        return (cut){"kv heads", h->kv_heads, 0, true};
    case RFT_EXT_QKV:
        return (cut){"heads", h->heads, h->kv_heads, false};
    case RFT_EXT_FFN:
    case RFT_EXT_EXPERT_FFN:
    case RFT_EXT_SHARED_FFN:
    case RFT_EXT_SOURCE_FFN:
        return (cut){"hidden neurons", size, 0, false};
    case RFT_EXT_FFN_PAIR:
    case RFT_EXT_EXPERT_PAIR:
        return (cut){"pairs of hidden neurons", size / 2, 0, false};
    case RFT_EXT_VOCAB:
        return (cut){"words", size, 0, false};
    default:
        return (cut){NULL, 1, 0, false};
    }
}

__attribute__((format(printf, 2, 3))) static void note(rft_shard *s, const char *format, ...) {
    const size_t used = strlen(s->note);
    va_list args;
    va_start(args, format);
    if (used > 0 && used + 2 < sizeof s->note) {
        memcpy(s->note + used, "; ", 3);
    }
    vsnprintf(s->note + strlen(s->note), sizeof s->note - strlen(s->note), format, args);
    va_end(args);
}

/* Most kv heads that the heads of one rank read: heads lie in order, those of a kv head side by side. */
static int64_t kv_of_rank(const rft__hparams *h, int64_t ranks) {
    const int64_t each = rft__ceil_div(h->heads, ranks), readers = h->heads / h->kv_heads;
    int64_t most = 0;
    for (int64_t first = 0; first < h->heads; first += each) {
        const int64_t last = rft__min(first + each, h->heads) - 1;
        most = rft__max(most, last / readers - first / readers + 1);
    }
    return most;
}

/* Units of the fullest rank, `fullest` where they do not divide. */
static int64_t units_of_rank(const char *what, int64_t units, bool repeats, int64_t fullest, int64_t ranks, rft_shard *s) {
    if (units % ranks == 0) {
        return units / ranks;
    }
    if (repeats && fullest == 1 && ranks % units == 0) {
        note(s, "%" PRId64 " %s: each on %" PRId64 " ranks", units, what, ranks / units);
        return 1;
    }
    s->divides = 0;
    note(s, "%" PRId64 " %s do not divide by %" PRId64, units, what, ranks);
    return fullest;
}

static int64_t size_of_rank(const rft__hparams *h, const cut *c, int64_t size, int64_t ranks, rft_shard *s) {
    const int64_t unit = size / (c->units + 2 * c->shared);
    const int64_t fullest = c->repeats ? kv_of_rank(h, ranks) : rft__ceil_div(c->units, ranks);
    int64_t units = units_of_rank(c->what, c->units, c->repeats, fullest, ranks, s);
    if (c->shared > 0) {
        units += 2 * units_of_rank("kv heads", c->shared, true, kv_of_rank(h, ranks), ranks, s);
    }
    return unit * units;
}

/* Weights along a side that are stored together or under one scale; 1: none, or a scale of the whole side, which ranks repeat. */
static int64_t block_of(const rft__tensor *t, bool along_k, int64_t whole) {
    if (!t || !t->import) {
        return t && along_k ? t->format->block_elements : 1;
    }
    const int64_t group = along_k ? t->import->group_k : t->import->group_n;
    return group > 0 && group < whole ? group : 1;
}

static void check_block(const rft__tensor *t, bool along_k, int64_t whole, int64_t size, rft_shard *s) {
    const int64_t block = block_of(t, along_k, whole);
    if (size < whole && size % block != 0) {
        s->divides = 0;
        note(s, "%s = %" PRId64 " is no multiple of blocks of %" PRId64, along_k ? "K" : "N", size, block);
    }
}

/* `width` values of each row of X, or of experts of each token, in all blocks. */
static void collect(const char *collective, const rft__layer *row, const rft_phase *own, int64_t width, int64_t ranks,
                    rft_shard *s) {
    const double rows = row->experts > 0 ? (double)(own->batch * own->tokens) : (double)s->m;
    const double times = row->experts > 0 ? (double)row->count / (double)row->experts : s->runs;
    const double others = (double)(ranks - 1) / (double)ranks;
    s->collective = collective;
    s->collective_bytes = rows * (double)width * times * RFT_RESULT_BYTES;
    s->sent_bytes = s->collective_bytes * others * (strcmp(collective, "all-reduce") == 0 ? 2 : 1);
}

/* What experts that are cut and those beside them give, or give back, is summed once. */
static bool joins_experts(const rft__layer *row, const rft_ranks *ranks) {
    return ranks->ep == 0 && row->product->where == RFT_IN_SPARSE && !row->product->routed;
}

/* Ranks sum what each has of K; logits are put together, but in training, where losses are made of their parts. */
static void exchange_forward(const rft__layer *row, const rft_phase *own, const rft_ranks *ranks, rft_shard *s) {
    const bool sums = s->k < row->k;
    const bool logits = s->n < row->n && row->product->n == RFT_EXT_VOCAB && own->kind != RFT_PHASE_TRAIN;
    if (sums && joins_experts(row, ranks)) {
        note(s, "summed with the experts");
    } else if (sums || logits) {
        collect(sums ? "all-reduce" : "all-gather", row, own, row->n, ranks->tp, s);
    }
}

/* The product before a row's that has the same X and is cut along N too, as k before v; NULL: there is none. */
static const rft__product *beside_of(const rft_model *m, int64_t row) {
    const rft__layer *rows = m->layers.rows;
    const rft__product *p = rows[row].product, *q = p;
    for (int64_t i = row - 1; i >= 0 && q == p; i--) {
        q = rows[i].product;
    }
    const bool same = q != p && q->k == p->k && q->where == p->where && q->source == p->source;
    return same && cut_of(&m->hparams, q->n, 1).what ? q : NULL;
}

/* The gradient of X is summed over ranks that have other columns of Y, once for all products of that X. */
static void exchange_back(const rft_model *m, int64_t row, const rft_phase *own, const rft_ranks *ranks, rft_shard *s) {
    const rft__layer *layer = &m->layers.rows[row];
    const rft__product *before = beside_of(m, row);
    if (s->n == layer->n) {
        return;
    }
    if (joins_experts(layer, ranks)) {
        note(s, "summed with the experts");
    } else if (before) {
        note(s, "summed with %s", before->name);
    } else {
        collect("all-reduce", layer, own, layer->k, ranks->tp, s);
    }
}

/* From the forward product to that of another pass. */
static void turn(const rft__layer *row, rft_pass pass, rft_shard *s) {
    rft_layer layer = {.m = s->m, .n = s->n, .k = s->k, .order = row->order, .x_order = row->x_order};
    rft__layer_turn(&layer, pass);
    s->m = layer.m;
    s->n = layer.n;
    s->k = layer.k;
    s->weight_bytes = pass == RFT_PASS_WGRAD ? 0 : s->weight_bytes;
}

static void take_runs(const rft_layer *layer, double share, rft_shard *s) {
    s->m = layer->m;
    s->runs = layer->runs;
    s->runs_min = layer->runs_min;
    s->runs_max = layer->runs_max;
    s->flops = layer->flops * share;
}

/* Its W are whole, and meet the tokens of all ranks. */
static void deal_layer(const rft__layer *row, const rft_phase *phase, int64_t ranks, rft_shard *s) {
    const int64_t fullest = rft__ceil_div(row->experts, ranks);
    const int64_t mine = units_of_rank("experts", row->experts, false, fullest, ranks, s);
    rft_layer layer;
    rft__layer_route(row, phase->batch * phase->tokens, mine, &layer);
    take_runs(&layer, 1, s);
    s->split = ranks > 1 ? "experts" : "";
    s->count = rft__ceil_div(row->count * mine, row->experts);
}

/* One W a head: a rank has those of its heads. */
static void deal_heads(const rft_model *m, const rft_layer *layer, int64_t ranks, rft_shard *s) {
    const int64_t heads = m->hparams.heads;
    const int64_t mine = units_of_rank("heads", heads, false, rft__ceil_div(heads, ranks), ranks, s);
    const double share = (double)mine / (double)heads;
    take_runs(layer, share, s);
    s->split = ranks > 1 ? "heads" : "";
    s->count = s->count / heads * mine;
    s->runs *= share;
    s->runs_min *= share;
    s->runs_max *= share;
}

static void cut_layer(const rft_model *m, const rft__layer *row, const rft_layer *layer, int64_t ranks, rft_shard *s) {
    const rft__tensor *t = row->tensor >= 0 ? &m->tensors->list[row->tensor] : NULL;
    const cut k = cut_of(&m->hparams, row->product->k, row->k), n = cut_of(&m->hparams, row->product->n, row->n);
    if (ranks > 1 && k.what) {
        s->split = "K";
        s->k = size_of_rank(&m->hparams, &k, row->k, ranks, s);
    } else if (ranks > 1 && n.what) {
        s->split = "N";
        s->n = size_of_rank(&m->hparams, &n, row->n, ranks, s);
    }
    check_block(t, true, row->k, s->k, s);
    check_block(t, false, row->n, s->n, s);
    const double share = ((double)s->n / (double)row->n) * ((double)s->k / (double)row->k);
    take_runs(layer, share, s);
    s->weight_bytes *= share;
}

static void place_layer(const rft_model *m, const rft__layer *row, const rft_phase *phase, const rft_phase *own,
                        const rft_ranks *ranks, rft_shard *s) {
    rft_layer layer;
    if (row->experts > 0 && ranks->ep > 0) {
        deal_layer(row, phase, ranks->ep, s);
        return;
    }
    rft__layer_describe(row, own, &layer);
    if (row->product->heads) {
        deal_heads(m, &layer, ranks->tp, s);
    } else {
        cut_layer(m, row, &layer, ranks->tp, s);
    }
}

rft_status rft_model_cache_share(const rft_model *m, const rft_phase *phase, const rft_ranks *ranks, double *share,
                                 rft_error *err) {
    if (!m || !share) {
        RFT_FAIL(err, RFT_E_ARG, "%s is NULL", m ? "share" : "model");
    }
    RFT_TRY(rft__ranks_check(m, phase, ranks, "the cache", err));
    const rft__hparams *h = &m->hparams;
    const double heads = h->arch->mla ? 1 : (double)kv_of_rank(h, ranks->tp) / (double)h->kv_heads;
    *share = heads * (double)rft__ranks_phase(ranks, phase).batch / (double)phase->batch;
    return RFT_OK;
}

rft_status rft_model_get_pass_shard(const rft_model *m, int64_t row, const rft_phase *phase, rft_pass pass,
                                    const rft_ranks *ranks, rft_shard *shard, rft_error *err) {
    if (!m || !shard) {
        RFT_FAIL(err, RFT_E_ARG, "%s is NULL", m ? "shard" : "model");
    }
    RFT_TRY(rft__sized_check(shard, "shard", err));
    rft_layer layer = rft_layer_init();
    RFT_TRY(rft_model_get_pass(m, row, phase, pass, &layer, err)); /* checks row, phase and pass */
    const rft__layer *whole = &m->layers.rows[row];
    RFT_TRY(rft__ranks_check(m, phase, ranks, whole->name, err));
    const rft_phase own = rft__ranks_phase(ranks, phase);
    rft_shard result = rft_shard_init();
    result.split = result.collective = "";
    result.divides = 1;
    result.n = whole->n;
    result.k = whole->k;
    result.count = whole->count;
    result.weight_bytes = (double)whole->bytes;
    place_layer(m, whole, phase, &own, ranks, &result);
    if (pass == RFT_PASS_FORWARD) {
        exchange_forward(whole, &own, ranks, &result);
    } else if (pass == RFT_PASS_DGRAD) {
        exchange_back(m, row, &own, ranks, &result);
    }
    turn(whole, pass, &result);
    rft__sized_write(shard, &result, sizeof result);
    return RFT_OK;
}

rft_status rft_model_get_shard(const rft_model *m, int64_t row, const rft_phase *phase, const rft_ranks *ranks, rft_shard *shard,
                               rft_error *err) {
    return rft_model_get_pass_shard(m, row, phase, RFT_PASS_FORWARD, ranks, shard, err);
}
