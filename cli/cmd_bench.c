/* SPDX-License-Identifier: Apache-2.0
 *
 * cmd_bench.c - rooftile bench: time shapes against the roof and other libraries.
 */
#include "bench_run.h"
#include "out_text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MEANS 256

typedef struct mean { /* of the ratios at one m against one peer */
    int64_t m;
    char name[32];
    double log_sum;
    int n;
} mean;

typedef struct output {
    const run_options *o;
    int peers_shown; /* in the last header; -1: no header yet */
    mean means[MEANS];
    int n_mean;
} output;

static mean *find_mean(output *out, int64_t m, const char *name) {
    for (int i = 0; i < out->n_mean; i++)
        if (out->means[i].m == m && strcmp(out->means[i].name, name) == 0)
            return &out->means[i];
    if (out->n_mean == MEANS)
        return NULL;
    mean *fresh = &out->means[out->n_mean++];
    *fresh = (mean){.m = m};
    snprintf(fresh->name, sizeof fresh->name, "%s", name);
    return fresh;
}

static void add_means(output *out, const bench_row *row) {
    for (int i = 0; i < row->n_peer; i++) {
        mean *a = find_mean(out, row->m, row->peer[i].name);
        if (!a || row->peer[i].ratio <= 0)
            continue;
        a->log_sum += log(row->peer[i].ratio);
        a->n++;
    }
}

static void emit(void *user, const bench_row *row) {
    output *out = user;
    add_means(out, row);
    if (out->o->json) {
        json_bench_row(row);
        return;
    }
    if (out->peers_shown != row->n_peer && !row->beside) {
        text_bench_header(row);
        out->peers_shown = row->n_peer;
    }
    text_bench_row(row);
}

static void print_means(const output *out) {
    if (out->n_mean == 0)
        return;
    printf("\n%sgeometric mean of ratios%s\n", text_bold(), text_plain());
    for (int i = 0; i < out->n_mean; i++)
        printf("  m %-6lld %-12s %.3f  (%d shape%s)\n", (long long)out->means[i].m, out->means[i].name,
               exp(out->means[i].log_sum / out->means[i].n), out->means[i].n, out->means[i].n == 1 ? "" : "s");
}

static int run_shape(bench_job *job, const shape *s) {
    weight_set set = {0};
    int code = bench_weights(job, s->n, s->k, NULL, &set);
    for (size_t i = 0; code != CLI_LIBRARY && code != CLI_USAGE && i < s->m.n; i++)
        code = cli_worse(code, bench_one(job, &set, s->m.v[i]));
    weight_set_free(&set);
    return code;
}

static int run_all(const run_options *o) {
    output *out = cli_alloc(1, sizeof *out);
    bench_job *job = cli_alloc(1, sizeof *job);
    *out = (output){.o = o, .peers_shown = -1};
    job->phase = "";
    job->emit = emit;
    job->user = out;
    int code = bench_open(job, o);
    for (size_t i = 0; cli_goes_on(code) && i < o->shapes.n; i++)
        code = cli_worse(code, run_shape(job, &o->shapes.v[i]));
    cli_progress_end();
    if (!o->json)
        print_means(out);
    bench_close(job);
    free(job);
    free(out);
    return code;
}

static const char doc[] =
    "Times matrix products on random data, proven right first.\n\n"
    "A row shows the median and the least time, the spread (p90 - p10)/median, what bounds the product on this machine and how "
    "much of that roof was reached, and the error as a share of its bound. Of weights that are codes it also shows their packed "
    "bytes, scales included, and what share of the read bandwidth and of the arithmetic peak the call reached.\v"
    "Exit codes: 0 success, 1 a wrong result or one above 103 % of its roof, 2 usage, 3 the library failed, 4 a file failed.\n\n"
    "Example: rooftile bench -n 4096 -k 4096 -m 1,16,512 --x bf16 --vs onednn";

int cmd_bench(int argc, char **argv) {
    run_options o = options_default();
    int code = options_parse(&o, argc, argv, doc);
    if (code == CLI_OK)
        code = run_all(&o);
    options_free(&o);
    return code;
}
