/* SPDX-License-Identifier: Apache-2.0
 *
 * model_ranks.c - see model_ranks.h.
 */
#include "model_ranks.h"
#include "out_json.h"
#include "out_text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_RANKS 1024

/* ---- flags ---- */

static error_t parse_flag(int key, char *arg, struct argp_state *state) {
    model_run *m = state->input;
    char why[CLI_WHY];
    switch (key) {
    case 'T':
        if (!parse_int(arg, 1, MAX_RANKS, &m->ranks.tp, why))
            argp_error(state, "--tp: %s", why);
        return 0;
    case 'E':
        if (!parse_int(arg, 1, MAX_RANKS, &m->ranks.ep, why))
            argp_error(state, "--ep: %s", why);
        return 0;
    case 'D':
        if (!parse_x(arg, &m->dispatch, &m->dispatch_groups, why))
            argp_error(state, "--dispatch: %s", why);
        if (cli_low_bit(m->dispatch) && !cli_8bit(m->dispatch))
            argp_error(state, "--dispatch: '%.40s' is none of f32, f16, bf16, i8 and e4m3", arg);
        if (m->dispatch_groups.given && !cli_8bit(m->dispatch))
            argp_error(state, "--dispatch: '%.40s': %s has no scales", arg, rft_type_name(m->dispatch));
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp_option flags[] = {
    {"tp", 'T', "N", 0, "Cut each layer over N ranks, and show what one of them has too", 0},
    {"ep", 'E', "N", 0, "Deal experts out over N ranks with tokens of their own; beside --tp T each T of them have the same", 0},
    {"dispatch", 'D', "TYPE", 0, "How tokens are sent to experts: bf16 (default), or codes with scales, such as e4m3:g128", 0},
    {0}};
const struct argp ranks_argp = {flags, parse_flag, NULL, NULL, NULL, NULL, NULL};

/* ---- facts ---- */

int ranks_begin(const model_run *m, const rft_phase *phase, model_ranks *out) {
    rft_error err = {0};
    const rft_ranks *sizes = &m->ranks;
    *out = (model_ranks){.sizes = *sizes, .n_exchanges = sizes->ep > 0 ? MODEL_EXCHANGES : 0};
    if (sizes->tp == 0)
        return CLI_OK;
    rft_status status = rft_model_cache_share(m->model, phase, sizes, &out->cache_share, &err);
    for (int i = 0; i < out->n_exchanges && status == RFT_OK; i++) {
        const rft_exchange_kind kind = (rft_exchange_kind)(RFT_EXCHANGE_DISPATCH + i);
        out->exchange[i] = rft_exchange_init();
        status = rft_model_get_exchange(m->model, kind, phase, sizes, &out->exchange[i], &err);
    }
    return status == RFT_OK ? CLI_OK : cli_failed(&err, sizes->ep > 0 ? "--ep" : "--tp");
}

static int64_t rank_count(const rft_ranks *r) { return r->ep > 0 ? r->ep : r->tp; }

static void add_row(ranks_totals *t, const model_row *row) {
    const rft_shard *s = &row->shard;
    t->weight_bytes += row->layer.pass == RFT_PASS_FORWARD ? (double)s->count * s->weight_bytes : 0;
    t->read_bytes += s->runs * s->weight_bytes;
    t->read_bytes_min += s->runs_min * s->weight_bytes;
    t->read_bytes_max += s->runs_max * s->weight_bytes;
    t->sent_bytes += s->sent_bytes;
    t->flops += s->flops;
    t->bound_us += s->runs * row->bench.bound_us;
    t->us += s->runs * row->bench.us;
    t->bounded = t->bounded && (s->runs == 0 || row->bench.bound_us > 0);
    t->timed = t->timed && (s->runs == 0 || row->bench.us > 0);
}

ranks_totals ranks_sum_up(const model_report *r) {
    ranks_totals t = {.bounded = true, .timed = r->ranks_measured};
    for (int64_t i = 0; i < r->n; i++)
        add_row(&t, &r->shards[i]);
    t.sent_bytes_min = t.sent_bytes_max = t.sent_bytes;
    for (int i = 0; i < r->ranks.n_exchanges; i++) {
        const rft_exchange *e = &r->ranks.exchange[i];
        t.sent_bytes += e->sent_bytes;
        t.sent_bytes_min += e->sent_bytes_min;
        t.sent_bytes_max += e->sent_bytes_max;
    }
    return t;
}

/* ---- text ---- */

static void amount(cell out, double value) {
    if (value > 0)
        format_si(out, value, "B");
    else
        strcpy(out, "-");
}

static void range(cell out, double least, double most) {
    cell from = "0", to = "0";
    if (least > 0)
        format_si(from, least, "B");
    if (most > 0)
        format_si(to, most, "B");
    snprintf(out, CELL, "%.32s to %.32s by routing", from, to);
}

void ranks_spread(const rft_exchange *e, cell text) { range(text, e->sent_bytes_min, e->sent_bytes_max); }

/* Writes on behind what stands in a text of RANKS_TEXT bytes. */
__attribute__((format(printf, 2, 3))) static void add(char *text, const char *format, ...) {
    const size_t at = strlen(text);
    va_list args;
    va_start(args, format);
    vsnprintf(text + at, RANKS_TEXT - at, format, args);
    va_end(args);
}

void ranks_tokens(const model_ranks *r, const char *name, const rft_phase *phase, char text[RANKS_TEXT]) {
    const int64_t groups = r->sizes.ep / r->sizes.tp, batch = phase->batch;
    text[0] = '\0';
    if (groups == 0)
        return;
    add(text, "%s is the step of all %lld ranks: each ", name, (long long)r->sizes.ep);
    if (r->sizes.tp > 1)
        add(text, "group of %lld ", (long long)r->sizes.tp);
    add(text, "has %s%lld of %lld sequence%s; experts meet the tokens of all", batch % groups ? "at most " : "",
        (long long)((batch + groups - 1) / groups), (long long)batch, batch == 1 ? "" : "s");
}

void ranks_sentence(const model_report *r, char text[RANKS_TEXT]) {
    const ranks_totals t = ranks_sum_up(r);
    cell held, read, sent, spread;
    amount(held, t.weight_bytes);
    amount(read, t.read_bytes);
    amount(sent, t.sent_bytes);
    text[0] = '\0';
    add(text, "each of %lld ranks holds %s of W", (long long)rank_count(&r->ranks.sizes), held);
    if (r->kind.kind < RFT_PHASE_OFFLINE)
        add(text, " and %.3g %% of the cache", 100 * r->ranks.cache_share);
    if (t.read_bytes_min < t.read_bytes_max) {
        range(spread, t.read_bytes_min, t.read_bytes_max);
        add(text, ", reads %s of it as expected (%s)", read, spread);
    }
    add(text, ", and sends %s", sent);
    if (t.sent_bytes_min < t.sent_bytes_max) {
        range(spread, t.sent_bytes_min, t.sent_bytes_max);
        add(text, " (%s)", spread);
    }
    add(text, " in a step");
}

enum { COLUMNS = 11 };

static void shard_cells(cell *c, const model_row *row) {
    const rft_shard *s = &row->shard;
    format_text(c[0], row->name, CELL);
    strcpy(c[1], s->split[0] ? s->split : "-");
    snprintf(c[2], CELL, row->layer.experts == 0 && s->runs > 0 ? "%.0f" : "%.4g of %lld", s->runs, (long long)s->count);
    snprintf(c[3], CELL, "%lld", (long long)s->m);
    snprintf(c[4], CELL, "%lld", (long long)s->n);
    snprintf(c[5], CELL, "%lld", (long long)s->k);
    snprintf(c[6], CELL, "%.0f", 1e-3 * s->weight_bytes);
    if (row->bench.bound_us > 0)
        format_us(c[7], row->bench.bound_us);
    else
        strcpy(c[7], "-");
    strcpy(c[8], s->collective[0] ? s->collective : "-");
    amount(c[9], s->sent_bytes);
    _Static_assert(CELL >= sizeof s->note, "a note is shown whole");
    strcpy(c[10], s->note);
}

static void exchange_cells(cell *c, const rft_exchange *e) {
    for (int i = 1; i < COLUMNS; i++)
        strcpy(c[i], "-");
    strcpy(c[0], e->name);
    strcpy(c[8], "all-to-all");
    amount(c[9], e->sent_bytes);
    ranks_spread(e, c[10]);
}

const rft_exchange *ranks_before(const model_report *r, int64_t i) {
    const bool first = r->shards[i].layer.experts > 0 && (i == 0 || r->shards[i - 1].layer.experts == 0);
    return first && r->ranks.n_exchanges > 0 ? &r->ranks.exchange[0] : NULL;
}

const rft_exchange *ranks_behind(const model_report *r, int64_t i) {
    const bool last = r->shards[i].layer.experts > 0 && (i + 1 == r->n || r->shards[i + 1].layer.experts == 0);
    return last && r->ranks.n_exchanges > 0 ? &r->ranks.exchange[1] : NULL;
}

/* The number of rows. */
static size_t rank_cells(const model_report *r, cell *cells) {
    size_t at = 0;
    for (int64_t i = 0; i < r->n; i++) {
        if (ranks_before(r, i))
            exchange_cells(cells + COLUMNS * at++, ranks_before(r, i));
        shard_cells(cells + COLUMNS * at++, &r->shards[i]);
        if (ranks_behind(r, i))
            exchange_cells(cells + COLUMNS * at++, ranks_behind(r, i));
    }
    return at;
}

static void text_times(const model_report *r) {
    const ranks_totals t = ranks_sum_up(r);
    if (t.bounded)
        printf("its products take %.4g ms at their bound", 1e-3 * t.bound_us);
    if (t.timed)
        printf("%s%.4g ms measured", t.bounded ? ", " : "its products take ", 1e-3 * t.us);
    if (t.bounded || t.timed)
        putchar('\n');
}

void ranks_text(const model_report *r) {
    column columns[COLUMNS] = {{"a rank", 0, true},  {"cut", 0, true},        {"count", 0, false}, {"M", 0, false},
                               {"N", 0, false},      {"K", 0, false},         {"W, kB", 0, false}, {"bound, us", 0, false},
                               {"behind", 0, true},  {"sends", 0, false},     {"note", 0, true}};
    cell *cells = cli_alloc((size_t)r->n * (1 + MODEL_EXCHANGES) * COLUMNS, sizeof *cells);
    char text[RANKS_TEXT];
    putchar('\n');
    text_table(columns, COLUMNS, cells, rank_cells(r, cells));
    free(cells);
    model_text_runs(r->shards, r->n, r->ranks_measured);
    model_text_peers(r->shards, r->n);
    ranks_tokens(&r->ranks, r->phase, &r->kind, text);
    printf("\n%s%s", text, text[0] ? "\n" : "");
    ranks_sentence(r, text);
    printf("%s\n", text);
    text_times(r);
    if (r->kind.kind == RFT_PHASE_TRAIN && r->ranks.sizes.ep > r->ranks.sizes.tp)
        printf("%sWhat ranks with tokens of their own sum of the gradients of W is not shown.%s\n", text_dim(), text_plain());
}

/* ---- for programs ---- */

json_t *ranks_shard_json(const rft_shard *s) {
    json_t *object = json_pack("{s:s, s:I, s:I, s:I, s:I, s:f, s:f, s:f, s:f}", "split", s->split, "m", (json_int_t)s->m, "n",
                               (json_int_t)s->n, "k", (json_int_t)s->k, "count", (json_int_t)s->count, "runs", s->runs,
                               "runs_min", s->runs_min, "runs_max", s->runs_max, "weight_bytes", s->weight_bytes);
    json_extend(object, json_pack("{s:s, s:f, s:f, s:b, s:s}", "collective", s->collective, "collective_bytes",
                                  s->collective_bytes, "sent_bytes", s->sent_bytes, "divides", (int)s->divides, "note", s->note));
    return object;
}

json_t *ranks_row_json(const model_row *row) {
    json_t *object = row->amiss ? json_object() : json_of_row(&row->bench);
    json_extend(object, ranks_shard_json(&row->shard));
    return object;
}

void ranks_exchange_json(const model_ranks *r, const char *phase) {
    for (int i = 0; i < r->n_exchanges; i++) {
        const rft_exchange *e = &r->exchange[i];
        json_print(json_pack("{s:s, s:s, s:s, s:f, s:f, s:f, s:f}", "exchange", e->name, "phase", phase, "collective",
                             "all-to-all", "bytes", e->bytes, "sent_bytes", e->sent_bytes, "sent_bytes_min", e->sent_bytes_min,
                             "sent_bytes_max", e->sent_bytes_max));
    }
}

json_t *ranks_totals_json(const model_report *r) {
    const ranks_totals t = ranks_sum_up(r);
    const rft_ranks *sizes = &r->ranks.sizes;
    json_t *object = json_pack("{s:I, s:I, s:I, s:f, s:f, s:f, s:f, s:f}", "ranks", (json_int_t)rank_count(sizes), "tp",
                               (json_int_t)sizes->tp, "ep", (json_int_t)sizes->ep, "rank_weight_bytes", t.weight_bytes,
                               "rank_cache_share", r->ranks.cache_share, "rank_read_bytes", t.read_bytes, "rank_read_bytes_min",
                               t.read_bytes_min, "rank_read_bytes_max", t.read_bytes_max);
    json_extend(object, json_pack("{s:f, s:f, s:f, s:f, s:o, s:o}", "rank_flops", t.flops, "rank_sent_bytes", t.sent_bytes,
                                  "rank_sent_bytes_min", t.sent_bytes_min, "rank_sent_bytes_max", t.sent_bytes_max,
                                  "rank_bound_us", json_known(t.bound_us, t.bounded), "rank_us", json_known(t.us, t.timed)));
    return object;
}
