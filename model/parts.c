/* SPDX-License-Identifier: Apache-2.0
 *
 * parts.c - what a step does beside its linear layers: attention, cache, norms, embedding. See rft_part in rooftile_model.h.
 *
 * All in doubles: sizes are at most 2^22, blocks 2^12, tokens and context 2^30, so that nothing is lost that a reader would see.
 */
#include "model_object.h"

#include "base/error.h"
#include "base/sized.h"
#include "phase.h"

#include <inttypes.h>
#include <math.h>

#define VALUE_BYTES    2.0 /* of an activation, a norm's weight, a key or a value */
#define GRADIENT_BYTES 4.0 /* of a weight's gradient, which sums up over steps */

typedef struct step {
    const rft_model *model;
    double tokens, source;   /* of all sequences: new ones, and positions that the encoder reads in this step */
    double queries, outputs; /* values a token, of all heads */
    double keys, values;     /* values a position, as they are kept */
    bool train;              /* the way back too */
    /* Sums over blocks, in tokens and positions: that ask, that keys and values are made of, and that are read from the cache or
     * written to it; pairs of one that asks and one that it sees. */
    double asked, made, read, kept, pairs;
} step;

/* Absorbed latent attention: each head multiplies by the latent keys themselves, which are the values too. Training, which keeps
 * no cache, multiplies by the keys and values of each head. */
static void set_heads(const rft__hparams *h, step *s) {
    const double heads = (double)h->heads, kv_heads = (double)h->kv_heads, dim = (double)h->head_dim;
    if (h->arch->mla && s->train) {
        s->queries = s->keys = heads * dim;
        s->outputs = s->values = heads * (double)h->v_dim;
    } else if (h->arch->mla) {
        s->keys = (double)(h->kv_rank + h->rope);
        s->queries = heads * s->keys;
        s->outputs = heads * (double)h->kv_rank;
        s->values = 0;
    } else {
        s->queries = s->outputs = heads * dim;
        s->keys = s->values = kv_heads * dim;
    }
}

/* What t tokens behind a context see of it and of each other, at most `window` positions each. */
static double pairs_of(double t, double context, double window) {
    const double all = fmax(0, fmin(t, window - context)); /* those that see everything */
    return all * context + all * (all + 1) / 2 + (t - all) * window;
}

/* Tokens see what lies before them in their text, or in an encoder all of it. */
static void add_own(const rft__hparams *h, int64_t blocks, const rft_phase *phase, double context, double window, step *s) {
    const double b = (double)phase->batch * (double)blocks, t = (double)phase->tokens;
    s->asked += b * t;
    s->made += b * t;
    s->read += b * fmin(context, window - 1);
    s->kept += phase->kind < RFT_PHASE_OFFLINE && !h->arch->encoder ? b * fmin(t, window) : 0;
    s->pairs += b * (h->arch->encoder ? t * t : pairs_of(t, context, window));
}

/* An encoder sees all of the source, and so does each token; what the decoder sees of it is kept from the first step on. */
static void add_source(const rft__hparams *h, const rft_phase *phase, step *s) {
    const double b = (double)phase->batch, positions = b * (double)h->source, layers = (double)h->layers;
    s->asked += layers * s->tokens;
    s->pairs += layers * s->tokens * (double)h->source;
    if (rft__phase_begins(phase)) {
        s->source = positions;
        s->asked += (double)h->source_layers * positions;
        s->made += (double)h->source_layers * positions + layers * positions;
        s->kept += phase->kind == RFT_PHASE_PREFILL ? layers * positions : 0;
        s->pairs += (double)h->source_layers * positions * (double)h->source;
    } else {
        s->read += layers * positions;
    }
}

static step step_of(const rft_model *m, const rft_phase *phase, int64_t context) {
    const rft__hparams *h = &m->hparams;
    step s = {.model = m, .tokens = (double)phase->batch * (double)phase->tokens, .train = phase->kind == RFT_PHASE_TRAIN};
    set_heads(h, &s);
    add_own(h, h->layers - h->windowed, phase, (double)context, (double)context + (double)phase->tokens, &s);
    if (h->windowed > 0) {
        add_own(h, h->windowed, phase, (double)context, (double)h->window, &s);
    }
    if (h->arch->source) {
        add_source(h, phase, &s);
    }
    return s;
}

/* Back: scores once more, which nobody keeps, then the gradients of queries and of keys. */
static void attn_scores(const step *s, rft_part *out) {
    const double operands = (s->asked * s->queries + s->made * s->keys) * VALUE_BYTES;
    out->flops = 2 * s->pairs * s->queries * (s->train ? 4 : 1);
    out->read_bytes = operands * (s->train ? 2 : 1);
    out->write_bytes = s->train ? operands : 0;
}

/* Back: the gradients of weights and of values, from values, results and their gradients. */
static void attn_values(const step *s, rft_part *out) {
    const double values = s->made * s->values * VALUE_BYTES, results = s->asked * s->outputs * VALUE_BYTES;
    out->flops = 2 * s->pairs * s->outputs * (s->train ? 3 : 1);
    out->read_bytes = s->train ? 2 * values + 2 * results : values;
    out->write_bytes = s->train ? results + values : results;
}

static void kv_cache(const step *s, rft_part *out) {
    const double position = (s->keys + s->values) * VALUE_BYTES;
    out->read_bytes = s->read * position;
    out->write_bytes = s->kept * position;
}

/* Back: x, the gradient of y and the vectors make the gradients of x and of the vectors. */
static void norms(const step *s, rft_part *out) {
    const rft__hparams *h = &s->model->hparams;
    const rft__arch *a = h->arch;
    const double blocks = (double)h->layers, hidden = (double)h->hidden;
    const double outer = (a->norms * blocks + a->end_norms) * hidden; /* weights and biases */
    const double source = s->source > 0 ? (a->source_norms * (double)h->source_layers + a->source_end_norms) * hidden : 0;
    double block = a->mla ? (double)(h->q_rank + h->kv_rank) : 0, inner = block; /* inside of attention */
    if (a->qk_norm) {
        block = (double)((h->heads + h->kv_heads) * h->head_dim);
        inner = 2 * (double)h->head_dim;
    }
    const double vectors = outer + source + inner * blocks, each = a->norm_bias ? 2 : 1;
    const double values = s->tokens * (outer / each + block * blocks) + s->source * source / each;
    out->read_bytes = (values + vectors) * VALUE_BYTES;
    out->write_bytes = values * VALUE_BYTES;
    if (s->train) {
        out->read_bytes += (2 * values + vectors) * VALUE_BYTES + vectors * GRADIENT_BYTES;
        out->write_bytes += values * VALUE_BYTES + vectors * GRADIENT_BYTES;
    }
}

static double embedding_row(const rft_model *m) {
    const rft__hparams *h = &m->hparams;
    const int64_t at = rft__layers_embedding(m->tensors, m->format == RFT_MODEL_GGUF, h->arch);
    if (at >= 0) {
        return (double)m->tensors->list[at].bytes / (double)m->tensors->list[at].rows;
    }
    return (double)h->hidden * (h->type == RFT_F32 ? 4 : 2);
}

/* Rows of the tables of positions and of token types beside it are of the same type. Back: each row's gradient is added to. */
static void embedding(const step *s, rft_part *out) {
    const rft__hparams *h = &s->model->hparams;
    const double tables = 1 + (h->arch->positions ? 1 : 0) + (h->types > 0 ? 1 : 0);
    out->read_bytes = s->tokens * tables * embedding_row(s->model);
    out->write_bytes = s->tokens * (double)h->hidden * VALUE_BYTES;
    if (s->train) {
        const double gradients = s->tokens * tables * (double)h->hidden * GRADIENT_BYTES;
        out->read_bytes += s->tokens * (double)h->hidden * VALUE_BYTES + gradients;
        out->write_bytes += gradients;
    }
}

static const struct {
    const char *name;
    void (*fill)(const step *s, rft_part *out);
} parts[] = {{"attn_scores", attn_scores}, {"attn_values", attn_values}, {"kv_cache", kv_cache}, {"norms", norms},
             {"embedding", embedding}};

enum { N_PARTS = sizeof parts / sizeof parts[0] };

int64_t rft_model_part_count(const rft_model *m) { return m && !rft__hparams_unknown(&m->hparams) ? N_PARTS : 0; }

static rft_status check_context(const rft_model *m, const rft_phase *phase, int64_t context, rft_error *err) {
    const bool none = phase->kind >= RFT_PHASE_OFFLINE || m->hparams.arch->encoder;
    if (context < 0 || context > RFT_MAX_ROWS) {
        RFT_FAIL(err, RFT_E_ARG, "context = %" PRId64 " is not in 0..%" PRId64, context, RFT_MAX_ROWS);
    }
    if (none && context > 0) {
        RFT_FAIL(err, RFT_E_ARG, "context = %" PRId64 ": %s has no cache", context,
                 m->hparams.arch->encoder           ? "an encoder"
                 : phase->kind == RFT_PHASE_OFFLINE ? "phase offline"
                                                    : "phase train");
    }
    return RFT_OK;
}

rft_status rft_model_get_part(const rft_model *m, int64_t index, const rft_phase *phase, int64_t context, rft_part *part,
                              rft_error *err) {
    if (!m || !part) {
        RFT_FAIL(err, RFT_E_ARG, "%s is NULL", m ? "part" : "model");
    }
    RFT_TRY(rft__sized_check(part, "part", err));
    RFT_TRY(rft__phase_check(phase, err));
    if (index < 0 || index >= rft_model_part_count(m)) {
        RFT_FAIL(err, RFT_E_ARG, "index = %" PRId64 ": the model has %" PRId64 " parts", index, rft_model_part_count(m));
    }
    RFT_TRY(check_context(m, phase, context, err));
    const step s = step_of(m, phase, context);
    rft_part result = rft_part_init();
    result.name = parts[index].name;
    parts[index].fill(&s, &result);
    rft__sized_write(part, &result, sizeof result);
    return RFT_OK;
}
