/* SPDX-License-Identifier: Apache-2.0
 *
 * replay_list.c - see replay_list.h.
 */
#include "replay_list.h"

#include "trace_product.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void write_line(replay_item *item) {
    const run_options *o = &item->options;
    char x[X_TEXT], w[WEIGHT_TEXT], rest[CLI_EPI_TEXT + 64] = "";
    size_t at = 0;
    x_text(o->x, &o->x_groups, x);
    weight_text(o->w, &o->w_scales, w);
    if (strcmp(o->layout, "nt") != 0)
        at += (size_t)snprintf(rest + at, sizeof rest - at, " --layout %s", o->layout);
    if (o->epi.n_op)
        at += (size_t)snprintf(rest + at, sizeof rest - at, " --epi %s", o->epi.text);
    if (o->batch != 1)
        at += (size_t)snprintf(rest + at, sizeof rest - at, " --batch %lld", (long long)o->batch);
    if (o->compute != RFT_COMPUTE_AUTO)
        snprintf(rest + at, sizeof rest - at, " --compute %s", compute_name(o->compute));
    snprintf(item->line, sizeof item->line, "-n %lld -k %lld --x %s --w %s --y %s%s", (long long)item->n, (long long)item->k, x,
             w, rft_type_name(o->y), rest);
}

static void leave_out(replay_list *list, const trace_row *row, const char *why) {
    if (list->left_out == 0) /* rows come with the most time first */
        snprintf(list->why, sizeof list->why, "%s", why);
    list->left_out += row->calls;
    list->left_out_us += row->us;
}

/* A product of bench on the device, of sizes that are work: the library says what it takes. */
static bool is_run_here(const run_options *o, const trace_call *c, char why[CLI_WHY]) {
    rft_work work = {.struct_size = sizeof work};
    rft_error err = {0};
    const rft_linear_desc desc = options_desc(o, c->n, c->k, c->m, c->m);
    if (!options_device_takes(o, why))
        return false;
    const bool good = rft_work_of(&desc, c->m, &work, &err) == RFT_OK;
    snprintf(why, CLI_WHY, "%.150s", err.message);
    return good;
}

static void add_row(const trace_row *row, const run_options *base, replay_list *list) {
    char why[CLI_WHY] = "";
    replay_item *item = &list->items[list->n];
    *item = (replay_item){.m = row->call.m, .n = row->call.n, .k = row->call.k, .calls = row->calls, .us = row->us};
    if (!trace_product(&row->call, base, &item->options, why) || !is_run_here(&item->options, &row->call, why)) {
        leave_out(list, row, why);
        return;
    }
    write_line(item);
    list->n++;
}

static int by_line(const void *a, const void *b) {
    const replay_item *x = a, *y = b;
    const int order = strcmp(x->line, y->line);
    return order ? order : (x->m > y->m) - (x->m < y->m);
}

/* Ops of other names may be the same product. */
static void merge_equal(replay_list *list) {
    size_t kept = 0;
    for (size_t i = 0; i < list->n; i++) {
        if (kept && by_line(&list->items[kept - 1], &list->items[i]) == 0) {
            list->items[kept - 1].calls += list->items[i].calls;
            list->items[kept - 1].us += list->items[i].us;
        } else {
            list->items[kept++] = list->items[i];
        }
    }
    list->n = kept;
}

size_t replay_line_end(const replay_list *list, size_t from) {
    size_t end = from;
    while (end < list->n && strcmp(list->items[end].line, list->items[from].line) == 0)
        end++;
    return end;
}

typedef struct line_span {
    size_t from, end;
    double us;
} line_span;

static int by_time(const void *a, const void *b) {
    const line_span *x = a, *y = b;
    return x->us < y->us ? 1 : x->us > y->us ? -1 : (x->from > y->from) - (x->from < y->from);
}

static void order_lines(replay_list *list) {
    line_span *spans = cli_alloc(list->n, sizeof *spans);
    replay_item *ordered = cli_alloc(list->n, sizeof *ordered);
    size_t lines = 0, at = 0;
    for (size_t i = 0; i < list->n; i = spans[lines++].end) {
        spans[lines] = (line_span){i, replay_line_end(list, i), 0};
        for (size_t j = i; j < spans[lines].end; j++)
            spans[lines].us += list->items[j].us;
    }
    if (lines)
        qsort(spans, lines, sizeof *spans, by_time);
    for (size_t i = 0; i < lines; i++)
        for (size_t j = spans[i].from; j < spans[i].end; j++)
            ordered[at++] = list->items[j];
    free(list->items);
    free(spans);
    list->items = ordered;
}

void replay_list_make(const trace *t, const run_options *base, replay_list *list) {
    *list = (replay_list){.items = cli_alloc(t->n, sizeof *list->items)};
    for (size_t i = 0; i < t->n; i++)
        if (t->rows[i].call.group == TRACE_GEMM)
            add_row(&t->rows[i], base, list);
    if (list->n)
        qsort(list->items, list->n, sizeof *list->items, by_line);
    merge_equal(list);
    order_lines(list);
}

void replay_list_cut(replay_list *list, int64_t lines) {
    size_t end = 0;
    for (int64_t i = 0; i < lines && end < list->n; i++)
        end = replay_line_end(list, end);
    list->n = end;
}

void replay_list_free(replay_list *list) {
    free(list->items);
    *list = (replay_list){0};
}
