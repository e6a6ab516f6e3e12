/* SPDX-License-Identifier: Apache-2.0
 *
 * onednn_log.c - the lines of ONEDNN_VERBOSE=1, versions 1 to 3, between whatever else a program prints. See readers.h.
 *
 *     onednn_verbose,exec,cpu,matmul,brg:avx512_core,undef,src_f32::blocked:ab:f0 ...,attr-post-ops:...,,4x256:256x512:4x512,0.03
 *     onednn_verbose,v1,primitive,exec,cpu,matmul,brg_matmul:avx512_core,undef,src:f32::blocked:ab::f0 ...,,,4x256:256x512,0.03
 *
 * From `exec` on the fields are: engine, primitive, implementation, kind of pass, memory, attributes, further, sizes, ms.
 */
#define _GNU_SOURCE
#include "trace/readers.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_FIELDS 20
#define MOST_LINE   4096
#define MOST_DIMS   12

enum { ENGINE = 1, PRIMITIVE, IMPLEMENTATION, PASS, MEMORY, ATTRIBUTES, SIZES = 8, MILLISECONDS, FIELDS };

typedef struct memory { /* one tensor of a primitive */
    char name[16], type[16], tag[24];
} memory;

/* ---- sizes ---- */

/* "2x3x4", up to `stop`; how many, or 0. */
static int read_dims(const char **at, int64_t dims[MOST_DIMS]) {
    for (int n = 0; n < MOST_DIMS;) {
        char *end;
        if (!isdigit((unsigned char)**at))
            return 0;
        dims[n++] = strtoll(*at, &end, 10);
        *at = end;
        if (*end != 'x')
            return n;
        (*at)++;
    }
    return 0;
}

/* "4x256:256x512", what is in front of the last two sizes being a batch; in old versions y's follow. */
static bool read_matmul(const char *text, trace_call *call, int *rank) {
    int64_t x[MOST_DIMS], w[MOST_DIMS], batch = 1, rows = 1, in_w = 1;
    const int nx = read_dims(&text, x);
    if (nx < 2 || *text++ != ':' || read_dims(&text, w) != nx || x[nx - 1] != w[nx - 2])
        return false;
    *rank = nx;
    for (int i = 0; i < nx - 2; i++)
        if (!cli_product(in_w, w[i], 1, &in_w) || !cli_product(rows, x[i], 1, &rows))
            return false;
    if (in_w == 1) /* one W meets all rows */
        return cli_product(rows, x[nx - 2], 1, &rows) && trace_set_shape(call, 1, rows, w[nx - 1], x[nx - 1]);
    batch = rows > in_w ? rows : in_w;
    return trace_set_shape(call, batch, x[nx - 2], w[nx - 1], x[nx - 1]);
}

/* "mb16ic256oc512", images as "mb1ic512ih7iw7oc10": the sizes of X behind ic are all k. */
static bool read_inner_product(const char *text, const char *pass, trace_call *call) {
    int64_t mb = 0, ic = 1, oc = 0;
    while (*text) {
        char name[8] = "", *end;
        size_t length = 0;
        while (isalpha((unsigned char)text[length]) && length < sizeof name - 1)
            length++;
        memcpy(name, text, length);
        const int64_t value = strtoll(text + length, &end, 10);
        if (length == 0 || end == text + length)
            return false;
        if (name[0] == 'i' && !cli_product(ic, value, 1, &ic))
            return false;
        mb = strcmp(name, "mb") == 0 ? value : mb;
        oc = strcmp(name, "oc") == 0 ? value : oc;
        text = end;
    }
    if (strncmp(pass, "backward", 8) != 0)
        return trace_set_shape(call, 1, mb, oc, ic);
    strcpy(call->phase, "backward");
    return strcmp(pass, "backward_weights") == 0 ? trace_set_shape(call, 1, oc, ic, mb) : trace_set_shape(call, 1, mb, ic, oc);
}

/* ---- memory ---- */

/* "src_f32::blocked:ab:f0", "src:f32:a:blocked:ab::f0": name, type, then flags, kind, order of the indices. */
static bool read_memory(const char *token, memory *out) {
    static const char *const names[] = {"diff_src", "diff_wei", "diff_dst", "src", "wei", "bia", "dst"};
    *out = (memory){0};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const size_t length = strlen(names[i]);
        if (strncmp(token, names[i], length) != 0 || (token[length] != '_' && token[length] != ':'))
            continue;
        const char *type = token + length + 1, *tag = strstr(type, ":blocked:");
        snprintf(out->name, sizeof out->name, "%s", names[i]);
        snprintf(out->type, sizeof out->type, "%.*s", (int)(strchrnul(type, ':') - type), type);
        if (tag)
            snprintf(out->tag, sizeof out->tag, "%.*s", (int)(strchrnul(tag + 9, ':') - (tag + 9)), tag + 9);
        return true;
    }
    return false;
}

static memory find_memory(const char *list, const char *name) {
    char copy[MOST_LINE], *rest = copy, *token;
    memory m;
    snprintf(copy, sizeof copy, "%s", list);
    while ((token = strsep(&rest, " ")) != NULL)
        if (read_memory(token, &m) && strcmp(m.name, name) == 0)
            return m;
    return (memory){0};
}

/* The last letter of the order is the contiguous index. 'n': that is the tensor's last one, 't': the one before, 0: a format of
 * blocks, or none of the two. */
static char order_of(const char *tag, int rank) {
    const size_t length = strlen(tag);
    for (size_t i = 0; i < length; i++)
        if (!islower((unsigned char)tag[i]))
            return 0;
    if (length != (size_t)rank || rank < 2)
        return 0;
    return tag[length - 1] == 'a' + rank - 1 ? 'n' : tag[length - 1] == 'a' + rank - 2 ? 't' : 0;
}

static const char *type_name(const char *type) {
    static const char *const names[][2] = {{"s8", "i8"},        {"s4", "i4"},        {"s32", "i32"},
                                           {"f8_e4m3", "e4m3"}, {"f8_e5m2", "e5m2"}, {"f4_e2m1", "e2m1"}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(type, names[i][0]) == 0)
            return names[i][1];
    return type;
}

/* ---- attributes ---- */

/* The value of "attr-NAME:VALUE" among others; "" where there is none. */
static void find_attribute(const char *attributes, const char *name, char *out, size_t cap) {
    const char *at = strstr(attributes, name);
    out[0] = '\0';
    if (at)
        snprintf(out, cap, "%.*s", (int)strcspn(at + strlen(name), " "), at + strlen(name));
}

static const char *eltwise_op(const char *name) {
    static const char *const ops[][2] = {{"eltwise_gelu_erf", "gelu"},  {"eltwise_gelu_tanh", "gelu_tanh"},
                                         {"eltwise_gelu", "gelu_tanh"}, {"eltwise_relu", "relu"},
                                         {"eltwise_swish", "silu"},     {"sum", "add"}};
    const size_t length = strcspn(name, ":");
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        if (strlen(ops[i][0]) == length && strncmp(name, ops[i][0], length) == 0)
            return ops[i][1];
    return name; /* what has no name here stays visible, and cannot be replayed */
}

/* "binary_add:f32:3:ab": bit i of the number is set where the operand has index i. */
static void add_binary(trace_call *call, const char *text, int rank) {
    char kind[8] = "", type[16] = "", op[48];
    int mask = 0;
    const bool read = sscanf(text, "binary_%7[a-z]:%15[a-z0-9]:%d", kind, type, &mask) == 3;
    const bool add = strcmp(kind, "add") == 0, all = mask == (1 << rank) - 1, last = mask == 1 << (rank - 1);
    if (!read || (!add && strcmp(kind, "mul") != 0) || (!all && !last)) {
        trace_add_epi(call, text);
        return;
    }
    snprintf(op, sizeof op, "%s%s%s",
             add   ? (all ? "add" : "bias")
             : all ? "mul"
                   : "col_scale",
             strcmp(type, "f32") ? "@" : "", strcmp(type, "f32") ? type : "");
    trace_add_epi(call, op);
}

static void read_post_ops(const char *attributes, trace_call *call, int rank) {
    char list[256], *rest = list, *op;
    find_attribute(attributes, "attr-post-ops:", list, sizeof list);
    while ((op = strsep(&rest, "+;'")) != NULL)
        if (strncmp(op, "binary_", 7) == 0)
            add_binary(call, op, rank);
        else if (*op)
            trace_add_epi(call, eltwise_op(op));
}

/* Scales of a W of codes: "wei:3:f32:128x1" has one for 128 of k, without sizes there is one a row. */
static void add_scales(const char *attributes, trace_call *call) {
    char list[160], zeros[160], type[8] = "", group[24] = "", *at;
    long long k = 0;
    int mask;
    find_attribute(attributes, "attr-scales:", list, sizeof list);
    find_attribute(attributes, "attr-zero-points:", zeros, sizeof zeros);
    at = strstr(list, "wei:");
    if (!at || sscanf(at, "wei:%d:%7[a-z0-9]:%lldx", &mask, type, &k) < 2)
        return;
    if (k > 1)
        snprintf(group, sizeof group, ":g%lld", k);
    const size_t length = strlen(call->w);
    snprintf(call->w + length, sizeof call->w - length, "%s%s%s%s", group, strcmp(type, "f32") ? ":" : "",
             strcmp(type, "f32") ? type : "", strstr(zeros, "wei:") ? ":zero" : "");
}

/* ---- lines ---- */

static void describe(char *const *field, trace_call *call, int rank) {
    const char *pass = field[PASS], *list = field[MEMORY];
    const bool product = strcmp(field[PRIMITIVE], "inner_product") != 0; /* its W is [out, in], else [in, out] */
    const bool of_weights = strcmp(pass, "backward_weights") == 0, of_data = strncmp(pass, "backward_data", 13) == 0;
    const memory x = find_memory(list, of_data ? "diff_dst" : "src"), w = find_memory(list, of_weights ? "diff_dst" : "wei");
    const memory y = find_memory(list, of_weights ? "diff_wei" : of_data ? "diff_src" : "dst"), bias = find_memory(list, "bia");
    snprintf(call->x, sizeof call->x, "%s", type_name(x.type));
    snprintf(call->w, sizeof call->w, "%s", type_name(w.type));
    snprintf(call->y, sizeof call->y, "%s", type_name(y.type));
    strcpy(call->epi, "none");
    if (bias.type[0] && strcmp(bias.type, "undef") != 0) {
        trace_add_epi(call, strcmp(bias.type, "bf16") == 0 ? "bias@bf16" : strcmp(bias.type, "f16") == 0 ? "bias@f16" : "bias");
    }
    read_post_ops(field[ATTRIBUTES], call, rank);
    add_scales(field[ATTRIBUTES], call);
    const char of_x = order_of(x.tag, rank), of_w = order_of(w.tag, rank);
    call->packed = w.tag[0] && !of_w;
    if (!call->phase[0] && of_x && (of_w || call->packed)) {
        call->layout[0] = of_x;
        call->layout[1] = call->packed ? 't' : product ? of_w : of_w == 'n' ? 't' : 'n';
    }
}

static bool is_product(const char *primitive) {
    return strcmp(primitive, "matmul") == 0 || strcmp(primitive, "inner_product") == 0 || strcmp(primitive, "gemm_api") == 0;
}

/* What a line of `exec` timed. */
static trace_call call_of(char *const *field) {
    trace_call call = {.group = is_product(field[PRIMITIVE]) ? TRACE_GEMM : trace_group_of(field[PRIMITIVE])};
    char name[TRACE_NAME];
    int rank = 2;
    if (call.group != TRACE_GEMM) {
        trace_set_name(&call, field[PRIMITIVE]);
        return call;
    }
    snprintf(name, sizeof name, "%s %.60s", field[PRIMITIVE], field[IMPLEMENTATION]); /* of a product, so a short word */
    trace_set_name(&call, name);
    const bool shaped = strcmp(field[PRIMITIVE], "inner_product") == 0 ? read_inner_product(field[SIZES], field[PASS], &call)
                                                                       : read_matmul(field[SIZES], &call, &rank);
    if (shaped)
        describe(field, &call, rank);
    return call;
}

/* The fields from `exec` on, or NULL: the line says something else. */
static char **find_exec(char **field, int n) {
    for (int i = 1; i < n && i < 5; i++) {
        if (strcmp(field[i], "exec") == 0)
            return n - i >= FIELDS ? field + i : NULL;
        if (strcmp(field[i], "graph") == 0) /* the primitives within have lines of their own */
            return NULL;
    }
    return NULL;
}

static void read_threads(trace *t, const text_line *line) {
    const char *at = memmem(line->p, line->length, ",nthr:", 6);
    const int64_t room = at ? line->p + line->length - (at + 6) : 0;
    char digits[8] = "";
    snprintf(digits, sizeof digits, "%.*s", room < 7 ? (int)room : 7, at ? at + 6 : "");
    const int threads = atoi(digits);
    if (threads > 0 && threads <= CLI_MAX_THREADS)
        t->threads = (uint32_t)threads;
}

static int split(char *text, char **field) {
    int n = 0;
    while (n < MOST_FIELDS && (field[n] = strsep(&text, ",")) != NULL)
        n++;
    return n;
}

static bool has_word(const text_line *line, const char *word) { return memmem(line->p, line->length, word, strlen(word)); }

static void read_line(trace *t, const text_line *line) {
    char copy[MOST_LINE], *field[MOST_FIELDS], *end;
    if (has_word(line, ",info,"))
        read_threads(t, line);
    if (!has_word(line, ",exec,") || has_word(line, ",info,"))
        return;
    snprintf(copy, sizeof copy, "%.*s", (int)(line->length < MOST_LINE ? line->length : MOST_LINE - 1), line->p);
    char **from = find_exec(field, split(copy, field));
    const double ms = from ? strtod(from[MILLISECONDS], &end) : -1;
    if (!from || end == from[MILLISECONDS] || !(ms >= 0 && ms < 1e12)) {
        t->skipped += !has_word(line, ",graph,");
        return;
    }
    const trace_call call = call_of(from);
    t->on_gpu = t->on_gpu || strncmp(from[ENGINE], "gpu", 3) == 0;
    trace_count(t, trace_intern(t, &call), 1, 1e3 * ms);
}

bool trace_is_onednn_line(const char *line, size_t length) {
    static const char *const prefixes[] = {"onednn_verbose,", "dnnl_verbose,", "mkldnn_verbose,"};
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
        if (length > strlen(prefixes[i]) && memcmp(line, prefixes[i], strlen(prefixes[i])) == 0)
            return true;
    return false;
}

bool trace_read_onednn(trace *t, const char *bytes, size_t size, char why[CLI_WHY]) {
    const char *at = bytes;
    text_line line;
    (void)why;
    t->format = "oneDNN verbose log";
    while (trace_next_line(&at, bytes + size, &line))
        if (trace_is_onednn_line(line.p, line.length))
            read_line(t, &line);
    return true;
}
