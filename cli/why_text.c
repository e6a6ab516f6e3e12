/* SPDX-License-Identifier: Apache-2.0
 *
 * why_text.c - the facts of why_facts.h as one screen for people, and as an object for programs.
 */
#include "model_ranks.h"
#include "out_json.h"
#include "out_text.h"
#include "why_facts.h"

#include <stdio.h>
#include <string.h>

static void question(const char *name) { printf("%s%-10s%s", text_bold(), name, text_plain()); }

static void indent(void) { printf("%-10s", ""); }

static void print_head(const why_facts *f) {
    const model_session *s = f->s;
    printf("%s%s%s of %s%s(%s) · %s · ", text_bold(), f->row->layer.name, text_plain(), s->m.info.name,
           s->m.info.name[0] ? " " : "", s->m.info.architecture, s->m.job->has_machine ? s->m.job->machine.name : "no profile");
    const bool on_cpu = strncmp(s->m.run.device, "cpu", 3) == 0;
    if (s->m.run.machine)
        printf("%d %s (%s)\n\n", s->m.job->context_threads, on_cpu ? "threads" : "SMs", s->m.job->machine.source);
    else if (on_cpu)
        printf("%d thread%s\n\n", s->m.job->context_threads, s->m.job->context_threads == 1 ? "" : "s");
    else
        printf("%s\n\n", s->m.run.device);
}

static void print_phase(const why_facts *f) {
    static const char *const what[] = {[RFT_PHASE_DECODE] = "a new token for each sequence",
                                       [RFT_PHASE_PREFILL] = "all tokens of new texts",
                                       [RFT_PHASE_VERIFY] = "some speculated tokens for each sequence",
                                       [RFT_PHASE_OFFLINE] = "all tokens of whole texts"};
    const int64_t m = f->row->layer.m;
    const int kind = (int)f->s->phase.kind;
    const bool known = kind >= 0 && kind < (int)(sizeof what / sizeof *what) && what[kind];
    question("phase");
    printf("%s: %s, so %lld row%s of X meet%s each W\n", f->s->phase_text, known ? what[kind] : "tokens", (long long)m,
           m == 1 ? "" : "s", m == 1 ? "s" : "");
    indent();
    if (f->has_bound && f->turn_m)
        printf("arithmetic takes as long as the reading of W from M = %lld on\n", (long long)f->turn_m);
    else
        printf("FLOP/byte %.3g\n", f->row->bench.intensity);
}

static void print_sends(const rft_exchange *e) {
    cell sent, spread;
    format_si(sent, e->sent_bytes, "B");
    ranks_spread(e, spread);
    printf("; %s sends %s, %s", e->name, sent, spread);
}

static const char *split_text(const rft_shard *s) {
    return strcmp(s->split, "heads") == 0     ? "those of its heads"
           : strcmp(s->split, "experts") == 0 ? "dealt out whole"
           : s->split[0] == 'N'               ? "each cut along N"
           : s->split[0] == 'K'               ? "each cut along K"
                                              : "each whole";
}

/* What is sent is that of all its runs in the step. */
static void print_rank(const why_facts *f) {
    const rft_shard *s = &f->row->shard;
    const model_ranks *r = &f->s->ranks;
    char text[RANKS_TEXT];
    cell sent;
    if (r->sizes.tp == 0)
        return;
    ranks_tokens(r, f->s->phase_text, &f->s->phase, text);
    question("a rank");
    printf("has %lld of them, %s%s%s", (long long)s->count, split_text(s), s->note[0] ? "; " : "", s->note);
    if (s->collective[0]) {
        format_si(sent, s->sent_bytes, "B");
        printf("; %s behind them sends %s", s->collective, sent);
    }
    for (int i = 0; i < r->n_exchanges && f->row->layer.experts > 0; i++)
        print_sends(&r->exchange[i]);
    putchar('\n');
    if (text[0]) {
        indent();
        printf("%s\n", text);
    }
}

static void print_sizes(const why_facts *f) {
    const rft_layer *layer = &f->row->layer;
    cell flops, bytes;
    format_si(flops, f->row->bench.flops, "FLOP");
    format_si(bytes, f->row->bench.min_bytes, "B");
    question("M, N, K");
    printf("%lld x %lld x %lld, %.4g time%s: %s and %s each, %.3g FLOP/byte\n", (long long)layer->m, (long long)layer->n,
           (long long)layer->k, layer->runs, layer->runs == 1 ? "" : "s", flops, bytes, f->row->bench.intensity);
    if (f->has_bound) {
        indent();
        printf("bound by %s%s%s: memory %.4g us, arithmetic %.4g us\n", text_bold(), f->row->bench.bound, text_plain(),
               f->memory_us, f->compute_us);
    }
}

static void print_layout(const why_facts *f) {
    const rft_layer *layer = &f->row->layer;
    const run_options *o = &f->row->options;
    question("layout");
    printf("W stored %s, %s; X %s\n", layer->order == RFT_MN_CONTIGUOUS ? "[in, out]" : "[out, in]",
           o->view      ? "used in place"
           : o->dynamic ? "given at each run"
                        : "packed once for the kernel, so its order costs no time",
           o->x_order == RFT_K_CONTIGUOUS ? "in rows, each read from end to end" : "in columns, copied to rows in each run");
}

static void print_type(const why_facts *f) {
    const model_row *row = f->row;
    const double weights = (double)row->layer.n * (double)row->layer.k;
    question("type");
    printf("X %s, W %s, Y %s, compute %s; W is read at %.3g bits a weight\n", row->bench.x, row->type, row->bench.y,
           row->bench.compute, weights > 0 ? 8 * row->run_bytes / weights : 0);
    if (f->n_other)
        indent();
    for (int i = 0; i < f->n_other; i++)
        printf("%s%s %.4g us%s", i ? ", " : "bound with W as ", f->other[i].type, f->other[i].bound_us,
               i + 1 == f->n_other ? "\n" : "");
}

static void print_fused(const why_facts *f) {
    const rft_layer *layer = &f->row->layer;
    cell bytes;
    question("fused");
    if (layer->n_epi) {
        format_si(bytes, f->apart_bytes, "B");
        printf("%s, within the product's own store; as passes of their own they would move %s more\n", layer->epilogue, bytes);
    } else {
        printf("nothing follows the product\n");
    }
    if (layer->parts[0]) {
        indent();
        printf("W joins %s: one product, X is read once\n", layer->parts);
    }
}

static void print_hotspot(const why_facts *f) {
    question("hot spot");
    if (f->share > 0)
        printf("%.1f %% of the linear layers' bound time, place %d of %lld", 100 * f->share, f->rank, (long long)f->s->n);
    else
        printf("not known without a profile of the machine");
    if (f->linear_share > 0)
        printf("; they have %.1f %% of a step's %s (context %lld)", 100 * f->linear_share,
               strcmp(f->row->bench.bound, "memory") == 0 ? "bytes" : "FLOPs", (long long)f->s->context);
    putchar('\n');
}

static void print_time(const why_facts *f) {
    const bench_row *b = &f->row->bench;
    putchar('\n');
    question("kernel");
    printf("%s\n", b->kernel[0] ? b->kernel : "-");
    if (b->us > 0) {
        question("measured");
        printf("%.4g us (spread %.1f %%), %.4g GFLOP/s, %.4g GB/s", b->us, 100 * b->spread, 1e3 * b->tflops, b->gbps);
        if (b->bound_us > 0)
            printf(", %.1f %% of the bound", b->pct_roof);
        putchar('\n');
    }
    for (int i = 0; i < b->n_peer; i++)
        printf("%-10s%s %s: %.4g us, %.2f times ours\n", "", b->peer[i].name, b->peer[i].version, b->peer[i].us,
               b->peer[i].ratio);
    for (int i = 0; i < f->n_advice; i++) {
        if (i == 0)
            question("to do");
        else
            indent();
        printf("%s\n", f->advice[i]);
    }
}

void why_text(const why_facts *f) {
    print_head(f);
    print_phase(f);
    print_rank(f);
    print_sizes(f);
    print_layout(f);
    print_type(f);
    print_fused(f);
    print_hotspot(f);
    print_time(f);
}

static json_t *others_of(const why_facts *f) {
    json_t *list = json_array();
    for (int i = 0; i < f->n_other; i++)
        json_array_append_new(list, json_pack("{s:s, s:f}", "w", f->other[i].type, "bound_us", f->other[i].bound_us));
    return list;
}

static json_t *advice_of(const why_facts *f) {
    json_t *list = json_array();
    for (int i = 0; i < f->n_advice; i++)
        json_array_append_new(list, json_text(f->advice[i]));
    return list;
}

void why_json(const why_facts *f) {
    const rft_layer *layer = &f->row->layer;
    json_t *object = json_of_row(&f->row->bench);
    json_t *more = json_pack(
        "{s:o, s:I, s:f, s:s, s:o, s:s, s:o, s:o, s:o}", "layer", json_text(layer->name), "count", (json_int_t)layer->count,
        "runs", layer->runs, "stored", layer->scheme[0] ? layer->scheme : rft_type_name(layer->type), "parts",
        json_text(layer->parts), "w_order", layer->order == RFT_MN_CONTIGUOUS ? "[in, out]" : "[out, in]", "compute_us",
        json_known(f->compute_us, f->has_bound), "memory_us", json_known(f->memory_us, f->has_bound), "turn_m",
        f->turn_m ? json_integer(f->turn_m) : json_null());
    json_t *rest = json_pack("{s:f, s:o, s:i, s:o, s:I, s:o, s:o}", "apart_bytes", f->apart_bytes, "share",
                             json_known(f->share, f->share > 0), "place", f->rank, "linear_share",
                             json_known(f->linear_share, f->linear_share > 0), "context", (json_int_t)f->s->context, "others",
                             others_of(f), "to_do", advice_of(f));
    json_extend(object, more);
    json_extend(object, rest);
    if (f->s->ranks.sizes.tp > 0)
        json_object_set_new(object, "rank", ranks_shard_json(&f->row->shard));
    json_print(object);
    ranks_exchange_json(&f->s->ranks, f->s->phase_text);
}
