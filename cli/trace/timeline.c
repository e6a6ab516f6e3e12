/* SPDX-License-Identifier: Apache-2.0
 *
 * timeline.c - see timeline.h. Events of a thread lie within each other; sorted by their start, a stack holds those around.
 * Kernels find their op through the call that launched them, as ids of ops are those of launches in some versions' files.
 */
#define _GNU_SOURCE
#include "trace/timeline.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define MOST_EVENTS ((size_t)INT32_MAX)

enum { NOT_TOLD, DECODE, PREFILL, MIXED, BACKWARD };

static const char *const phase_names[] = {"", "decode", "prefill", "mixed", "backward"};

static void *room(void *list, size_t n, size_t *cap, size_t size) {
    if (n < *cap)
        return list;
    *cap = *cap ? 2 * *cap : 256;
    return cli_grow(list, *cap, size);
}

static bool sound(double start, double us) { return isfinite(start) && isfinite(us) && us >= 0 && us < 1e15; }

bool timeline_host(timeline *l, host_kind kind, uint64_t thread, double start, double us, int64_t id, uint32_t row) {
    if (!sound(start, us) || l->n_host == MOST_EVENTS)
        return false;
    l->host = room(l->host, l->n_host, &l->cap_host, sizeof *l->host);
    l->host[l->n_host++] = (host_event){
        .start = start, .end = start + us, .thread = thread, .id = id, .row = row, .op = -1, .owner = -1, .kind = kind};
    return true;
}

bool timeline_kernel(timeline *l, trace *t, const char *name, int64_t correlation, int64_t id, double us) {
    trace_call call = {.group = trace_group_of(name)};
    trace_set_name(&call, name);
    const uint32_t row = trace_intern(t, &call);
    if (!sound(0, us) || l->n_gpu == MOST_EVENTS)
        return false;
    l->gpu = room(l->gpu, l->n_gpu, &l->cap_gpu, sizeof *l->gpu);
    l->gpu[l->n_gpu++] = (gpu_event){correlation, id, us, row};
    return true;
}

void timeline_free(timeline *l) {
    free(l->host);
    free(l->gpu);
    *l = (timeline){0};
}

/* ---- who is within whom ---- */

/* What is around comes before what is within. */
static int by_thread_and_start(const void *a, const void *b) {
    const host_event *x = a, *y = b;
    if (x->thread != y->thread)
        return x->thread < y->thread ? -1 : 1;
    if (x->start != y->start)
        return x->start < y->start ? -1 : 1;
    return x->end != y->end ? (x->end > y->end ? -1 : 1) : (int)x->kind - (int)y->kind;
}

/* vLLM names its steps "execute_context_2(512)_generation_5(5)": requests and their new tokens, first those of prompts. */
static unsigned char phase_of_step(const char *name) {
    const char *step = strstr(name, "execute_context_");
    int prompts, generated;
    if (!step || sscanf(step, "execute_context_%*9d(%9d)_generation_%*9d(%9d)", &prompts, &generated) != 2)
        return NOT_TOLD;
    return prompts <= 0 ? DECODE : generated <= 0 ? PREFILL : MIXED;
}

static unsigned char phase_told_by(const char *name) {
    const unsigned char step = phase_of_step(name);
    if (step)
        return step;
    if (strncmp(name, "autograd::engine", 16) == 0)
        return BACKWARD;
    return strcasestr(name, "prefill") ? PREFILL : strcasestr(name, "decode") ? DECODE : NOT_TOLD;
}

static void place(timeline *l, const trace *t, int32_t index, int32_t around) {
    host_event *e = &l->host[index];
    const host_event *outer = around >= 0 ? &l->host[around] : NULL;
    const trace_call *call = &t->rows[e->row].call;
    const bool op = e->kind == HOST_OP;
    const unsigned char told = e->kind == HOST_LAUNCH ? NOT_TOLD : phase_told_by(call->name);
    e->phase = told ? told : outer ? outer->phase : NOT_TOLD;
    e->owner = outer && outer->owner >= 0 ? outer->owner : op && call->group != TRACE_OTHER ? index : -1;
    if (op && outer && outer->op >= 0)
        l->host[outer->op].inner += e->end - e->start;
    e->op = op ? index : outer ? outer->op : -1;
}

static void nest(timeline *l, const trace *t) {
    int32_t *stack = cli_alloc(l->n_host, sizeof *stack);
    size_t depth = 0;
    if (l->n_host)
        qsort(l->host, l->n_host, sizeof *l->host, by_thread_and_start);
    for (size_t i = 0; i < l->n_host; i++) {
        const host_event *e = &l->host[i];
        while (depth && (l->host[stack[depth - 1]].thread != e->thread || l->host[stack[depth - 1]].end <= e->start))
            depth--;
        place(l, t, (int32_t)i, depth ? stack[depth - 1] : -1);
        stack[depth++] = (int32_t)i;
    }
    free(stack);
}

/* ---- counting ---- */

/* Once for each run of an op, however many kernels that launches. */
static void count(trace *t, uint32_t row, unsigned char phase, int64_t calls, double us) {
    trace_call call = t->rows[row].call;
    if (call.group == TRACE_GEMM || call.group == TRACE_ATTENTION) /* the others' time is that of their bytes in any phase */
        memcpy(call.phase, phase_names[phase], strlen(phase_names[phase]) + 1);
    trace_count(t, trace_intern(t, &call), calls, us);
}

static void count_ops(const timeline *l, trace *t) {
    for (size_t i = 0; i < l->n_host; i++) {
        const host_event *e = &l->host[i];
        const double us = e->end - e->start, self = us > e->inner ? us - e->inner : 0;
        if (e->kind == HOST_OP && (e->owner < 0 || e->owner == (int32_t)i))
            count(t, e->row, e->phase, 1, e->owner < 0 ? self : us);
    }
}

typedef struct key {
    int64_t id;
    int32_t index;
} key;

typedef struct keys {
    key *v;
    size_t n;
} keys;

static int by_id(const void *a, const void *b) {
    const key *x = a, *y = b;
    return x->id != y->id ? (x->id < y->id ? -1 : 1) : x->index - y->index;
}

static keys keys_of(const timeline *l, host_kind kind) {
    keys k = {cli_alloc(l->n_host, sizeof *k.v), 0};
    for (size_t i = 0; i < l->n_host; i++)
        if (l->host[i].kind == kind && l->host[i].id != 0)
            k.v[k.n++] = (key){l->host[i].id, (int32_t)i};
    if (k.n)
        qsort(k.v, k.n, sizeof *k.v, by_id);
    return k;
}

/* The first event of that id, or -1. */
static int32_t find(const keys *k, int64_t id) {
    size_t low = 0, high = k->n;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (k->v[middle].id < id)
            low = middle + 1;
        else
            high = middle;
    }
    return id != 0 && low < k->n && k->v[low].id == id ? k->v[low].index : -1;
}

static void count_kernel(timeline *l, trace *t, const gpu_event *g, int32_t around) {
    const host_event *e = around >= 0 ? &l->host[around] : NULL;
    if (!e || e->owner < 0) {
        count(t, g->row, e ? e->phase : NOT_TOLD, 1, g->us);
        return;
    }
    host_event *owner = &l->host[e->owner];
    count(t, owner->row, owner->phase, !owner->counted, g->us);
    owner->counted = true;
}

static void count_kernels(timeline *l, trace *t) {
    keys launches = keys_of(l, HOST_LAUNCH), ops = keys_of(l, HOST_OP);
    for (size_t i = 0; i < l->n_gpu; i++) {
        const gpu_event *g = &l->gpu[i];
        const int32_t launch = find(&launches, g->correlation);
        count_kernel(l, t, g, launch >= 0 ? launch : find(&ops, g->id));
    }
    free(launches.v);
    free(ops.v);
}

void timeline_settle(timeline *l, trace *t) {
    nest(l, t);
    t->on_gpu = l->n_gpu > 0;
    if (t->on_gpu)
        count_kernels(l, t);
    else
        count_ops(l, t);
}
