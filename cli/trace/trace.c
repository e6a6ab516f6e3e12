/* SPDX-License-Identifier: Apache-2.0
 *
 * trace.c - the rows of a trace, and which reader a file is for. See trace.h.
 */
#define _GNU_SOURCE
#include "trace/trace.h"

#include "trace/readers.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define MOST_ROWS ((size_t)1 << 16)
#define MOST_SIZE ((int64_t)1 << 40)

/* ---- groups ---- */

static const char *const group_names[TRACE_GROUPS] = {"GEMM", "attention", "norm", "collective", "other"};

const char *trace_group_name(trace_group group) { return group_names[group]; }

/* In turn: the first group with a word that a name holds, in either case. */
static const struct {
    trace_group group;
    const char *words;
} groups[] = {
    {TRACE_OTHER, "autograd::engine multi_head_attention"}, /* run others, whose own names tell */
    {TRACE_COLLECTIVE, "nccl c10d:: record_param_comms allreduce all_reduce cross_device_reduce allgather all_gather "
                       "reducescatter reduce_scatter alltoall all_to_all"},
    {TRACE_ATTENTION, "attention attn scaled_dot_product flash fmha sdpa"},
    {TRACE_NORM, "layer_norm layernorm rms_norm rmsnorm group_norm batch_norm batchnorm _normalization rowwisemoments"},
    {TRACE_OTHER, "fbgemm implicit_gemm cudnn"}, /* tables of embeddings, convolutions */
    {TRACE_GEMM, "gemm gemv cublas cutlass nvjet cijk_ xmma wgmma splitkreduce matmul scaled_mm marlin machete stream_sm90"},
};

static bool has_word_of(const char *name, const char *words) {
    char word[32];
    for (size_t length; *words; words += length + (words[length] == ' ')) {
        length = strcspn(words, " ");
        snprintf(word, sizeof word, "%.*s", (int)length, words);
        if (strcasestr(name, word))
            return true;
    }
    return false;
}

trace_group trace_group_of(const char *name) {
    for (size_t i = 0; i < sizeof groups / sizeof *groups; i++)
        if (has_word_of(name, groups[i].words))
            return groups[i].group;
    return TRACE_OTHER;
}

const char *trace_phase(const trace_call *c) {
    const int64_t few = 64; /* rows: sequences that decode together, seldom a prompt */
    return c->phase[0] || c->batch == 0 ? c->phase : c->m <= few ? "decode?" : "prefill?";
}

/* ---- rows ---- */

static uint64_t mix(uint64_t hash, const void *data, size_t size) {
    const unsigned char *p = data;
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ p[i]) * 0x100000001b3u; /* FNV-1a */
    return hash;
}

static uint64_t hash_of(const trace_call *c) {
    const int64_t numbers[] = {(int64_t)c->group, c->m, c->n, c->k, c->batch};
    uint64_t hash = mix(0xcbf29ce484222325u, numbers, sizeof numbers);
    hash = mix(hash, c->name, strlen(c->name));
    hash = mix(hash, c->epi, strlen(c->epi));
    return mix(hash, c->phase, strlen(c->phase)); /* types and layouts seldom tell two rows apart */
}

static bool same_call(const trace_call *a, const trace_call *b) {
    return a->group == b->group && a->m == b->m && a->n == b->n && a->k == b->k && a->batch == b->batch &&
           a->packed == b->packed && strcmp(a->name, b->name) == 0 && strcmp(a->x, b->x) == 0 && strcmp(a->w, b->w) == 0 &&
           strcmp(a->y, b->y) == 0 && strcmp(a->layout, b->layout) == 0 && strcmp(a->epi, b->epi) == 0 &&
           strcmp(a->compute, b->compute) == 0 && strcmp(a->phase, b->phase) == 0;
}

/* The slot of the call, or the free one where it belongs. */
static size_t find_slot(const trace *t, const trace_call *call) {
    size_t i = (size_t)hash_of(call) & (t->n_slot - 1);
    while (t->slots[i] && !same_call(&t->rows[t->slots[i] - 1].call, call))
        i = (i + 1) & (t->n_slot - 1);
    return i;
}

static void grow_table(trace *t) {
    t->cap = t->cap ? 2 * t->cap : 64;
    t->rows = cli_grow(t->rows, t->cap, sizeof *t->rows);
    free(t->slots);
    t->n_slot = 4 * t->cap;
    t->slots = cli_alloc(t->n_slot, sizeof *t->slots);
    for (size_t i = 0; i < t->n; i++)
        t->slots[find_slot(t, &t->rows[i].call)] = (uint32_t)i + 1;
}

/* What a terminal would act on becomes blanks: control characters, in UTF-8 those from U+0080 on too. */
static void clean(char *text) {
    for (unsigned char *c = (unsigned char *)text; *c; c++) {
        if (*c == 0xc2 && c[1] >= 0x80 && c[1] < 0xa0)
            c[0] = c[1] = ' ';
        if (*c < ' ' || *c == 0x7f)
            *c = ' ';
    }
}

uint32_t trace_intern(trace *t, const trace_call *told) {
    trace_call cleaned = *told, rest = {.group = told->group, .name = "(more kinds)"};
    char *const texts[] = {cleaned.name, cleaned.x, cleaned.w, cleaned.y, cleaned.layout, cleaned.compute, cleaned.epi};
    const trace_call *call = &cleaned;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        clean(texts[i]);
    if (t->n == t->cap)
        grow_table(t);
    size_t slot = find_slot(t, call);
    if (!t->slots[slot] && t->n >= MOST_ROWS) {
        call = &rest;
        slot = find_slot(t, call);
    }
    if (!t->slots[slot]) {
        t->rows[t->n] = (trace_row){.call = *call};
        t->slots[slot] = (uint32_t)++t->n;
    }
    return t->slots[slot] - 1;
}

void trace_count(trace *t, uint32_t row, int64_t calls, double us) {
    t->rows[row].calls += calls;
    t->rows[row].us += us;
}

void trace_set_name(trace_call *call, const char *name) {
    const size_t n = cli_whole(name, TRACE_NAME - 1);
    memcpy(call->name, name, n);
    call->name[n] = '\0';
}

bool trace_set_shape(trace_call *call, int64_t batch, int64_t m, int64_t n, int64_t k) {
    const int64_t sizes[] = {batch, m, n, k};
    for (size_t i = 0; i < 4; i++)
        if (sizes[i] < (i == 0) || sizes[i] > MOST_SIZE)
            return false;
    call->batch = batch;
    call->m = m;
    call->n = n;
    call->k = k;
    return true;
}

bool trace_add_epi(trace_call *call, const char *op) {
    const size_t at = strcmp(call->epi, "none") == 0 ? 0 : strlen(call->epi);
    return (size_t)snprintf(call->epi + at, sizeof call->epi - at, "%s%s", at ? ":" : "", op) < sizeof call->epi - at;
}

static int by_time(const void *a, const void *b) {
    const trace_row *x = a, *y = b;
    return x->us < y->us ? 1 : x->us > y->us ? -1 : strcmp(x->call.name, y->call.name);
}

/* Rows that were never counted go, sums are made; no row can be added from here on. */
static void settle(trace *t) {
    size_t kept = 0;
    t->device[cli_whole(t->device, TRACE_DEVICE - 1)] = '\0'; /* its readers keep what fits */
    clean(t->device);
    for (size_t i = 0; i < t->n; i++) {
        const trace_row *r = &t->rows[i];
        if (r->calls == 0)
            continue;
        t->us += r->us;
        t->group_us[r->call.group] += r->us;
        t->group_calls[r->call.group] += r->calls;
        t->shapes_missing = t->shapes_missing || (r->call.group == TRACE_GEMM && r->call.batch == 0);
        t->rows[kept++] = *r;
    }
    t->n = kept;
    if (t->n)
        qsort(t->rows, t->n, sizeof *t->rows, by_time);
}

void trace_free(trace *t) {
    free(t->rows);
    free(t->slots);
    *t = (trace){0};
}

/* ---- files ---- */

bool trace_next_line(const char **at, const char *end, text_line *line) {
    if (*at >= end)
        return false;
    const char *newline = memchr(*at, '\n', (size_t)(end - *at));
    const char *stop = newline ? newline : end;
    *line = (text_line){*at, (size_t)(stop - *at)};
    if (line->length && line->p[line->length - 1] == '\r')
        line->length--;
    *at = newline ? newline + 1 : end;
    return true;
}

typedef bool reader(trace *t, const char *bytes, size_t size, char why[CLI_WHY]);

/* The first line of a log that is one of ours or oneDNN's: programs print their own between them. */
static reader *find_log(const char *bytes, size_t size) {
    const char *at = bytes;
    text_line line;
    while (trace_next_line(&at, bytes + size, &line)) {
        if (trace_is_onednn_line(line.p, line.length))
            return trace_read_onednn;
        if (trace_is_own_line(line.p, line.length))
            return trace_read_own;
    }
    return NULL;
}

static reader *find_reader(const char *bytes, size_t size, char why[CLI_WHY]) {
    size_t at = 0;
    while (at < size && strchr(" \t\r\n", bytes[at]) && bytes[at])
        at++;
    reader *r = at < size && (bytes[at] == '{' || bytes[at] == '[') ? trace_read_kineto : find_log(bytes, size);
    if (!r && size > 2 && memcmp(bytes, "\x1f\x8b", 2) == 0)
        snprintf(why, CLI_WHY, "it is compressed; unpack it first (gunzip)");
    else if (!r)
        snprintf(why, CLI_WHY,
                 "it is no JSON of torch.profiler, no SQLite export of Nsight Systems, and has no line of "
                 "ONEDNN_VERBOSE=1 or RFT_VERBOSE=exec");
    return r;
}

static bool finish(trace *t, char why[CLI_WHY]) {
    settle(t);
    if (t->n == 0)
        snprintf(why, CLI_WHY, "%s, in which nothing that was timed is found", t->format);
    return t->n > 0;
}

bool trace_read(trace *t, const char *bytes, size_t size, char why[CLI_WHY]) {
    reader *r = find_reader(bytes, size, why);
    return r && r(t, bytes, size, why) && finish(t, why);
}

static bool is_database(const char *bytes, size_t size) { return size >= 16 && memcmp(bytes, "SQLite format 3", 16) == 0; }

static int open_mapped(const char *path, int fd, trace *t) {
    struct stat info;
    char why[CLI_WHY] = "";
    if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
        cli_message("'%s' is no plain file", path);
        return CLI_IO;
    }
    const size_t size = (size_t)info.st_size;
    char *bytes = size ? mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0) : NULL;
    if (bytes == MAP_FAILED) {
        cli_message("cannot read '%s': %s", path, strerror(errno));
        return CLI_IO;
    }
    bool good = is_database(bytes, size) ? trace_read_nsight(t, path, why) && finish(t, why) : trace_read(t, bytes, size, why);
    if (bytes)
        munmap(bytes, size);
    if (!good)
        cli_message("%s: %s", path, why);
    return good ? CLI_OK : CLI_IO;
}

int trace_open(const char *path, trace *t) {
    *t = (trace){.format = ""};
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a FIFO without a writer must not hang us */
    if (fd < 0) {
        cli_message("cannot read '%s': %s", path, strerror(errno));
        return CLI_IO;
    }
    int code = open_mapped(path, fd, t);
    close(fd);
    return code;
}
