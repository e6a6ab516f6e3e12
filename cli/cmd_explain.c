/* SPDX-License-Identifier: Apache-2.0
 *
 * cmd_explain.c - rooftile explain: which kernel runs a shape here, or on the machine of a profile, and why.
 */
#include "machine_files.h"
#include "out_json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_BYTES ((size_t)1 << 16)

typedef struct explainer {
    const run_options *o;
    rft_ctx *ctx; /* NULL: the machine of the profile is asked */
    rft_machine machine;
    bool has_machine;
    uint32_t threads;
} explainer;

typedef struct answer {
    rft_linear_desc desc;
    int64_t m;
    rft_work work;
    rft_bound bound;
    bool has_bound;
    char kernel[ROW_NAME];
    char text[TEXT_BYTES];
} answer;

static int ask_here(const explainer *e, answer *a) {
    rft_error err = {0};
    rft_plan *plan;
    rft_plan_info info = rft_plan_info_init();
    if (options_plan(e->o, e->ctx, &a->desc, &plan, &err) != RFT_OK)
        return cli_failed(&err, "plan");
    rft_plan_explain(plan, a->m, a->text, sizeof a->text);
    if (rft_plan_get_info(plan, a->m, &info) == RFT_OK)
        snprintf(a->kernel, sizeof a->kernel, "%s", info.kernel);
    rft_plan_free(plan);
    return CLI_OK;
}

static int ask(const explainer *e, int64_t n, int64_t k, int64_t m, answer *a) {
    rft_error err = {0};
    a->desc = options_desc(e->o, n, k, m, m);
    a->m = m;
    a->work = (rft_work){.struct_size = sizeof a->work};
    a->bound = (rft_bound){.struct_size = sizeof a->bound};
    a->kernel[0] = a->text[0] = '\0';
    if (rft_work_of(&a->desc, m, &a->work, &err) != RFT_OK)
        return cli_failed(&err, "work");
    a->has_bound = e->has_machine && rft_machine_bound(&e->machine, &a->desc, m, e->threads, &a->bound, &err) == RFT_OK;
    if (e->ctx)
        return ask_here(e, a);
    rft_status status =
        machine_explain(&e->machine, &a->desc, m, e->threads, a->text, sizeof a->text, a->kernel, &err);
    return status == RFT_OK ? CLI_OK : cli_failed(&err, "explain");
}

/* The library's text says it all: problem, candidates, work and bound. */
static void print_text(const explainer *e, const answer *a) {
    (void)e;
    printf("%s%s\n", a->text, a->text[0] && a->text[strlen(a->text) - 1] == '\n' ? "" : "\n");
}

static json_t *lines_of(const char *text) {
    json_t *lines = json_array();
    while (*text) {
        size_t length = strcspn(text, "\n");
        if (length)
            json_array_append_new(lines, json_stringn(text, length));
        text += length + (text[length] == '\n');
    }
    return lines;
}

static void print_json(const explainer *e, const answer *a) {
    const run_options *o = e->o;
    char x[X_TEXT], w[WEIGHT_TEXT];
    x_text(o->x, &o->x_groups, x);
    weight_text(o->w, &o->w_scales, w);
    json_t *object = json_pack(
        "{s:s, s:I, s:I, s:I, s:s, s:s, s:s, s:s, s:s, s:f, s:f, s:f, s:s, s:o, s:i, s:o}", "kernel", a->kernel, "m",
        (json_int_t)a->m, "n", (json_int_t)a->desc.w.n, "k", (json_int_t)a->desc.w.k, "x", x, "w", w,
        "y", rft_type_name(o->y), "layout", o->layout, "epi", o->epi.text, "flops", a->work.flops,
        "min_bytes", a->work.bytes, "intensity", a->work.intensity, "bound", a->has_bound ? a->bound.what : "unknown", "bound_us",
        json_known(1e6 * a->bound.seconds, a->has_bound), "threads", (int)e->threads, "explain", lines_of(a->text));
    json_print(object);
}

static int explain_all(const explainer *e) {
    answer *a = cli_alloc(1, sizeof *a);
    int code = CLI_OK;
    for (size_t i = 0; i < e->o->shapes.n; i++)
        for (size_t j = 0; code == CLI_OK && j < e->o->shapes.v[i].m.n; j++) {
            const shape *s = &e->o->shapes.v[i];
            code = ask(e, s->n, s->k, s->m.v[j], a);
            if (code == CLI_OK)
                (e->o->json ? print_json : print_text)(e, a);
        }
    free(a);
    return code;
}

/* --machine and --profile ask for one that need not be here; without them the answer is about this one. */
static int open_explainer(explainer *e) {
    rft_error err = {0};
    rft_device_info device = {.struct_size = sizeof device};
    int code;
    e->machine.struct_size = sizeof e->machine;
    e->threads = e->o->threads;
    if (machine_described(e->o, &e->machine, &code)) {
        e->has_machine = code == CLI_OK;
        if (e->has_machine && e->threads == 0)
            e->threads = e->machine.counts[e->machine.n_counts - 1];
        return code;
    }
    code = options_context(e->o, NULL, NULL, &e->ctx);
    if (code == CLI_OK && rft_ctx_get_device(e->ctx, &device) == RFT_OK)
        e->threads = (uint32_t)device.threads;
    e->has_machine = code == CLI_OK && rft_ctx_get_machine(e->ctx, &e->machine, &err) == RFT_OK;
    return code;
}

static const char doc[] = "Shows what a product costs at least, what bounds it, and the candidates for it: the one taken and why "
                          "each other was refused.\v"
                          "With --machine or --profile the answer is about a machine that need not be here.\n\n"
                          "Example: rooftile explain -m 1,64 -n 4096 -k 4096 --x bf16";

int cmd_explain(int argc, char **argv) {
    run_options o = options_default();
    explainer *e = cli_alloc(1, sizeof *e);
    int code = options_parse(&o, argc, argv, doc);
    e->o = &o;
    if (code == CLI_OK)
        code = open_explainer(e);
    if (code == CLI_OK)
        code = explain_all(e);
    rft_ctx_free(e->ctx);
    free(e);
    options_free(&o);
    return code;
}
