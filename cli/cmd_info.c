/* SPDX-License-Identifier: Apache-2.0
 *
 * cmd_info.c - rooftile info: the build, this machine and its GPUs, the kernel table and the environment variables.
 */
#include "cli.h"
#include "out_json.h"
#include "out_text.h"

#include <argp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct info_options {
    bool kernels, env, json;
} info_options;

typedef struct variable {
    const char *name, *what;
} variable;

static const variable variables[] = {
    {"RFT_NUM_THREADS", "threads of a context; default: OMP_NUM_THREADS, else all cores of this process"},
    {"OMP_NUM_THREADS", "the same where RFT_NUM_THREADS is not set"},
    {"RFT_MAX_ISA", "use no instructions above this level: ref, avx2, avx512, avx512bf16, amx"},
    {"RFT_STRICT", "1: a plan that would run a fallback kernel is an error"},
    {"RFT_CACHE_DIR", "profiles and compiled kernels; default: $XDG_CACHE_HOME/rooftile, else ~/.cache/rooftile"},
    {"RFT_NVRTC", "path of libnvrtc, the compiler of GPU kernels; default: found by its name"},
    {"RFT_KERNEL_DEBUG", "1: GPU kernels are compiled with checks"},
    {"RFT_KERNEL_DUMP", "with it: acc or part0 to part7, sums that runs write to their workspace"},
    {"RFT_VERBOSE", "log: none, error, warn, hint, dispatch, exec, all; one CSV line an event"},
    {"RFT_LOG_FILE", "where the log goes; default: stderr"},
    {"NO_COLOR", "not empty: the tool prints no colours"},
};

#define N_VARIABLES (sizeof variables / sizeof variables[0])

static void print_env(bool json) {
    for (size_t i = 0; i < N_VARIABLES; i++) {
        const char *value = getenv(variables[i].name);
        if (json)
            json_print(json_pack("{s:s, s:s, s:o}", "env", variables[i].name, "what", variables[i].what, "value",
                                 json_text(value)));
        else
            printf("  %-16s %-12s %s\n", variables[i].name, value ? value : "-", variables[i].what);
    }
}

static bool get_kernel(uint32_t i, rft_kernel_info *info) {
    *info = (rft_kernel_info){.struct_size = sizeof *info};
    return rft_kernel_get(i, info) == RFT_OK;
}

static void kernel_json(const rft_kernel_info *k) {
    json_print(json_pack("{s:s, s:s, s:s, s:s, s:s, s:i, s:i, s:i, s:b, s:f, s:f}", "kernel", k->name, "isa", k->isa, "x",
                         rft_type_name(k->x), "w", rft_type_name(k->w), "acc", rft_type_name(k->acc), "mr", k->mr, "nr", k->nr,
                         "kr", k->kr, "available", k->available, "error_gamma", k->error_gamma, "error_eta", k->error_eta));
}

static void kernel_cells(cell *c, const rft_kernel_info *k) {
    snprintf(c[0], CELL, "%s", k->name);
    snprintf(c[1], CELL, "%s", k->isa);
    snprintf(c[2], CELL, "%s", rft_type_name(k->x));
    snprintf(c[3], CELL, "%s", rft_type_name(k->w));
    snprintf(c[4], CELL, "%s", rft_type_name(k->acc));
    snprintf(c[5], CELL, "%dx%d", k->mr, k->nr);
    snprintf(c[6], CELL, "%d", k->kr);
    snprintf(c[7], CELL, "%s", k->available ? "yes" : "no");
}

static void print_kernels(bool json) {
    enum { COLUMNS = 8 };
    column columns[COLUMNS] = {{"kernel", 0, true}, {"isa", 0, true},   {"x", 0, true},       {"w", 0, true},
                               {"acc", 0, true},    {"tile", 0, false}, {"k step", 0, false}, {"runs here", 0, true}};
    uint32_t n = rft_kernel_count();
    cell *cells = cli_alloc((size_t)n * COLUMNS, sizeof *cells);
    rft_kernel_info k;
    for (uint32_t i = 0; i < n; i++) {
        if (!get_kernel(i, &k))
            continue;
        if (json)
            kernel_json(&k);
        else
            kernel_cells(cells + (size_t)i * COLUMNS, &k);
    }
    if (!json)
        text_table(columns, COLUMNS, cells, n);
    free(cells);
}

static void count_kernels(uint32_t *here, uint32_t *all) {
    rft_kernel_info k;
    *here = 0;
    *all = rft_kernel_count();
    for (uint32_t i = 0; i < *all; i++)
        if (get_kernel(i, &k) && k.available)
            (*here)++;
}

static void print_summary(const rft_build_info *b, const rft_device_info *d, const rft_machine *machine) {
    cell l1, l2, l3, memory;
    uint32_t here, all;
    count_kernels(&here, &all);
    format_bytes(l1, (double)d->l1d);
    format_bytes(l2, (double)d->l2);
    format_bytes(l3, (double)d->l3);
    format_bytes(memory, (double)d->memory);
    printf("%srooftile %s%s  commit %s\n", text_bold(), b->version, text_plain(), b->commit);
    printf("  build     %s, %s\n", b->compiler, b->build_type);
    printf("  levels    built %s; here %s\n", b->isa_built, b->isa_here);
    if (b->isa_missing[0])
        printf("  not used  %s\n", b->isa_missing);
    printf("  kernels   %u, %u run here (rooftile info --kernels)\n", all, here);
    printf("%scpu%s       %s\n", text_bold(), text_plain(), d->name);
    printf("  threads   %d on %d NUMA node%s\n", d->threads, d->nodes, d->nodes == 1 ? "" : "s");
    printf("  caches    L1d %s and L2 %s a core, L3 %s shared\n", l1, l2, l3);
    printf("  memory    %s\n", memory);
    if (machine)
        printf("  profile   %s, %s (%s)\n", machine->name, machine->date, machine->source);
    else
        printf("  profile   none; `rooftile roofline` measures this machine\n");
}

static void summary_json(const rft_build_info *b, const rft_device_info *d, const rft_machine *machine) {
    uint32_t here, all;
    count_kernels(&here, &all);
    json_print(json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:i, s:i, s:s, s:i, s:i, s:I, s:I, s:I, s:I, s:s?}", "version",
                         b->version, "commit", b->commit, "compiler", b->compiler, "build_type", b->build_type, "isa_built",
                         b->isa_built, "isa_here", b->isa_here, "isa_missing", b->isa_missing, "kernels", (int)all,
                         "kernels_here", (int)here, "cpu", d->name, "threads", d->threads, "nodes", d->nodes, "l1d_bytes",
                         (json_int_t)d->l1d, "l2_bytes", (json_int_t)d->l2, "l3_bytes", (json_int_t)d->l3, "memory_bytes",
                         (json_int_t)d->memory, "profile_date", machine ? machine->date : NULL));
}

/* ---- GPUs ---- */

typedef struct gpu {
    rft_device_info device;
    rft_machine machine;
    bool has_machine;
} gpu;

/* False: there is no such GPU, or it cannot be used; err says why. */
static bool get_gpu(int ordinal, gpu *g, rft_error *err) {
    char name[16];
    rft_ctx *ctx;
    snprintf(name, sizeof name, "cuda:%d", ordinal);
    if (rft_ctx_create(name, NULL, &ctx, err) != RFT_OK)
        return false;
    g->device = (rft_device_info){.struct_size = sizeof g->device};
    g->machine.struct_size = sizeof g->machine;
    rft_ctx_get_device(ctx, &g->device);
    g->has_machine = rft_ctx_get_machine(ctx, &g->machine, NULL) == RFT_OK;
    rft_ctx_free(ctx);
    return true;
}

static void print_gpu(int ordinal, const gpu *g) {
    cell l2, memory;
    format_bytes(l2, (double)g->device.l2);
    format_bytes(memory, (double)g->device.memory);
    printf("%scuda:%d%s    %s\n", text_bold(), ordinal, text_plain(), g->device.name);
    printf("  sms       %d, %s, L2 %s\n", g->device.sms, g->device.isa, l2);
    printf("  memory    %s\n", memory);
    if (g->has_machine)
        printf("  profile   %s, %s (%s)\n", g->machine.name, g->machine.date, g->machine.source);
    else
        printf("  profile   none; `rooftile roofline --device cuda:%d` measures it\n", ordinal);
}

static void gpu_json(int ordinal, const gpu *g) {
    json_print(json_pack("{s:i, s:s, s:i, s:i, s:I, s:I, s:s?}", "cuda", ordinal, "name", g->device.name, "sms", g->device.sms,
                         "arch", g->device.arch, "l2_bytes", (json_int_t)g->device.l2, "memory_bytes",
                         (json_int_t)g->device.memory, "profile_date", g->has_machine ? g->machine.date : NULL));
}

static void print_gpus(bool json) {
    gpu *g = cli_alloc(1, sizeof *g);
    rft_error err = {0};
    int n = 0;
    for (; get_gpu(n, g, &err); n++)
        (json ? gpu_json : print_gpu)(n, g);
    if (n == 0 && !json)
        printf("%sgpu%s       none: %s\n", text_bold(), text_plain(), err.message);
    free(g);
}

static int print_info(bool json) {
    rft_build_info build = rft_build_info_init();
    rft_device_info device = {.struct_size = sizeof device};
    rft_machine *machine = cli_alloc(1, sizeof *machine);
    rft_error err = {0};
    rft_ctx *ctx;
    if (rft_get_build_info(&build) != RFT_OK || rft_ctx_create("cpu", NULL, &ctx, &err) != RFT_OK) {
        free(machine);
        return cli_failed(&err, "context");
    }
    machine->struct_size = sizeof *machine;
    bool has_machine = rft_ctx_get_machine(ctx, machine, &err) == RFT_OK;
    rft_ctx_get_device(ctx, &device);
    (json ? summary_json : print_summary)(&build, &device, has_machine ? machine : NULL);
    rft_ctx_free(ctx);
    free(machine);
    print_gpus(json);
    return CLI_OK;
}

static error_t parse(int key, char *arg, struct argp_state *state) {
    info_options *o = state->input;
    (void)arg;
    switch (key) {
    case 'K':
        o->kernels = true;
        return 0;
    case 'E':
        o->env = true;
        return 0;
    case 'J':
        o->json = true;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

int cmd_info(int argc, char **argv) {
    static const struct argp_option flags[] = {{"kernels", 'K', NULL, 0, "The kernel table, one line a row", 0},
                                               {"env", 'E', NULL, 0, "Environment variables and their values", 0},
                                               {"json", 'J', NULL, 0, "One JSON object a line", 0},
                                               {0}};
    static const struct argp argp = {flags, parse, NULL, "Shows the build, this machine and what runs on it.", NULL, NULL, NULL};
    info_options o = {0};
    argp_parse(&argp, argc, argv, 0, NULL, &o);
    if (o.kernels)
        print_kernels(o.json);
    if (o.env)
        print_env(o.json);
    return o.kernels || o.env ? CLI_OK : print_info(o.json);
}
