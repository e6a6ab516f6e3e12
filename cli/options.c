/* SPDX-License-Identifier: Apache-2.0
 *
 * options.c - the shared flags. Called by every command that runs, plans or checks a product.
 * Invariant: a bad value ends the tool here with one line that names the flag and the value.
 */
#define _GNU_SOURCE
#include "options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum key {
    KEY_DEVICE = 256, KEY_SHAPES, KEY_X, KEY_W, KEY_Y, KEY_LAYOUT, KEY_COMPUTE, KEY_EPI, KEY_UNFUSED, KEY_THREADS, KEY_COLD,
    KEY_WARM, KEY_VS, KEY_JSON, KEY_SEED, KEY_BATCH, KEY_DYNAMIC, KEY_VIEW, KEY_ISA, KEY_KERNEL, KEY_PROFILE, KEY_BETWEEN,
    KEY_TIME, KEY_MACHINE, KEY_ROUNDS
};

static const struct argp_option flags[] = {
    {NULL, 0, NULL, 0, "Shapes: Y[m][n] = X[m][k] * W[n][k]", 1},
    {NULL, 'm', "LIST", 0, "Rows, such as 1,16,512 or 1..64", 1},
    {NULL, 'n', "LIST", 0, "Out features", 1},
    {NULL, 'k', "LIST", 0, "In features", 1},
    {"shapes", KEY_SHAPES, "FILE", 0, "Lines of 'N K [M-LIST]' instead of -n and -k; 'm M-LIST', 'x TYPE' hold for more", 1},
    {"batch", KEY_BATCH, "N", 0, "Products at once, each with its own X and W", 1},
    {NULL, 0, NULL, 0, "Product", 2},
    {"x", KEY_X, "TYPE", 0,
     "f32 (default), bf16, f16; on the CPU i8 or e4m3 with a scale a row, i8:g128 with one for 128 k; f32:g0 is rounded by one "
     "scale a row with --compute i8", 2},
    {"w", KEY_W, "TYPE", 0,
     "Default: as --x; on the CPU also GGUF's q4_0, q4_k, q8_0, ..., and i8, u8, i4, u4, e2m1, e4m3, e5m2, nf4, fp4 with scales: "
     "i8 is one f32 a row, i4:g128:f16 one f16 for 128 k, u4:g32:zero with zero points, e2m1:g16:e4m3:over under a global scale, "
     "i4:g128:act with k in any order", 2},
    {"y", KEY_Y, "TYPE", 0, "Default: f32; i8 and e4m3 where --epi ends in quantize or quantize_rows", 2},
    {"layout", KEY_LAYOUT, "nt|nn|tn|tt", 0, "Of X and W; nt (default): both K-contiguous", 2},
    {"compute", KEY_COMPUTE, "auto|f32|tf32|16|i8", 0, "What multiplies; auto (default) keeps f32 accuracy", 2},
    {"epi", KEY_EPI, "LIST", 0, "Epilogue: bias:gelu_tanh, silu:mul, add, swiglu, scale=2, clamp=-1/6, bias@bf16", 2},
    {"dynamic", KEY_DYNAMIC, NULL, 0, "W is given unpacked at each run", 2},
    {"view", KEY_VIEW, NULL, 0, "W is used in place, without a packed copy", 2},
    {NULL, 0, NULL, 0, "Where and how", 3},
    {"device", KEY_DEVICE, "NAME", 0, "cpu (default), cuda or cuda:N", 3},
    {"threads", KEY_THREADS, "N", 0, "Default: all cores of this process", 3},
    {"isa", KEY_ISA, "LEVEL", 0, "Use no instructions above this level", 3},
    {"kernel", KEY_KERNEL, "NAME", 0, "Only this kernel may serve; info --kernels lists them", 3},
    {"profile", KEY_PROFILE, "FILE", 0, "Machine profile; default: this machine's, from rooftile roofline", 3},
    {"machine", KEY_MACHINE, "NAME", 0, "Not this machine but one of a data sheet, such as h100 or epyc-9654, or of a profile's "
     "FILE.json; explain, model, why and jit alone", 3},
    {"seed", KEY_SEED, "N", 0, "Of the random data (default 1)", 3},
    {"json", KEY_JSON, NULL, 0, "One JSON object a line", 3},
    {NULL, 0, NULL, 0, "Measuring", 4},
    {"cold", KEY_COLD, NULL, 0, "Weights come from memory at each call (default)", 4},
    {"warm", KEY_WARM, NULL, 0, "Show repeated calls on one W beside the cold ones", 4},
    {"unfused", KEY_UNFUSED, NULL, 0, "Show the epilogue as separate passes beside", 4},
    {"between", KEY_BETWEEN, NULL, 0, "On a GPU, a foreign kernel runs between calls; its own time is taken off", 4},
    {"vs", KEY_VS, "LIB[=PATH],...", 0, "Time openblas, blis, mkl, onednn, ggml or cublaslt in the same run; read: W is "
     "read alone", 4},
    {"time", KEY_TIME, "SECONDS", 0, "Of each contender for a row (default 0.3)", 4},
    {"rounds", KEY_ROUNDS, "N", 0, "In which contenders alternate (default 7)", 4},
    {0}
};

run_options options_default(void) {
    return (run_options){.device = "cpu", .layout = "nt", .epi = {.text = "none"},
                         .batch = 1, .seed = 1, .seconds = 0.3, .rounds = 7};
}

static const char *flag_name(int key) {
    static char letter[] = "-?";
    for (const struct argp_option *f = flags; f->name || f->key || f->doc; f++)
        if (f->key == key && f->name)
            return f->name;
    letter[1] = (char)key;
    return letter + 1;
}

static bool read_count(const char *text, int64_t max, int64_t *out, char why[CLI_WHY]) {
    return parse_int(text, 1, max, out, why);
}

static bool read_threads(const char *text, uint32_t *out, char why[CLI_WHY]) {
    int64_t value;
    bool good = read_count(text, CLI_MAX_THREADS, &value, why);
    *out = good ? (uint32_t)value : 0;
    return good;
}

static bool read_seed(const char *text, uint64_t *out, char why[CLI_WHY]) {
    int64_t value;
    bool good = parse_int(text, 0, INT64_MAX, &value, why);
    *out = good ? (uint64_t)value : 0;
    return good;
}

static bool read_layout(const char *text, run_options *o, char why[CLI_WHY]) {
    bool good = parse_layout(text, &o->x_order, &o->w_order, why);
    if (good)
        memcpy(o->layout, text, sizeof o->layout);
    return good;
}

/* Flags with a value that can be wrong. False: `why` says what is. */
static bool read_value(int key, char *arg, run_options *o, char why[CLI_WHY]) {
    switch (key) {
    case 'm': return parse_list(arg, 0, &o->m, why);
    case 'n': return parse_list(arg, 0, &o->n, why);
    case 'k': return parse_list(arg, 0, &o->k, why);
    case KEY_X: return parse_x(arg, &o->x, &o->x_groups, why);
    case KEY_W: return parse_weight(arg, &o->w, &o->w_scales, why);
    case KEY_Y: return parse_type(arg, &o->y, why);
    case KEY_LAYOUT: return read_layout(arg, o, why);
    case KEY_COMPUTE: return parse_compute(arg, &o->compute, why);
    case KEY_EPI: return parse_epilogue(arg, &o->epi, why);
    case KEY_THREADS: return read_threads(arg, &o->threads, why);
    case KEY_SEED: return read_seed(arg, &o->seed, why);
    case KEY_BATCH: return read_count(arg, 65536, &o->batch, why);
    case KEY_TIME: return parse_number(arg, 0.001, 3600, &o->seconds, why);
    case KEY_ROUNDS: return read_count(arg, 1000, &o->rounds, why);
    default: return false;
    }
}

/* Flags that any text suits, and switches. False: the key is not one of them. */
static bool set_plain(int key, char *arg, run_options *o) {
    switch (key) {
    case KEY_DEVICE: o->device = arg; return true;
    case KEY_SHAPES: o->shapes_file = arg; return true;
    case KEY_ISA: o->isa = arg; return true;
    case KEY_KERNEL: o->kernel = arg; return true;
    case KEY_PROFILE: o->profile = arg; return true;
    case KEY_MACHINE: o->machine = arg; return true;
    case KEY_VS: o->peers = arg; return true;
    case KEY_COLD: o->warm = false; return true;
    case KEY_WARM: o->warm = true; return true;
    case KEY_UNFUSED: o->unfused = true; return true;
    case KEY_BETWEEN: o->between = true; return true;
    case KEY_JSON: o->json = true; return true;
    case KEY_DYNAMIC: o->dynamic = true; return true;
    case KEY_VIEW: o->view = true; return true;
    default: return false;
    }
}

static bool is_flag(int key) {
    return key == 'm' || key == 'n' || key == 'k' || (key >= KEY_DEVICE && key <= KEY_ROUNDS);
}

static error_t parse_flag(int key, char *arg, struct argp_state *state) {
    run_options *o = state->input;
    char why[CLI_WHY] = "";
    if (!is_flag(key))
        return ARGP_ERR_UNKNOWN;
    if (set_plain(key, arg, o) || read_value(key, arg, o, why))
        return 0;
    argp_error(state, "%s%s: %s", key < 256 ? "-" : "--", flag_name(key), why);
    return EINVAL;
}

const struct argp options_argp = {flags, parse_flag, NULL, NULL, NULL, NULL, NULL};

static void add_shapes(run_options *o, const int_list *m) {
    for (size_t i = 0; i < o->n.n; i++)
        for (size_t j = 0; j < o->k.n; j++) {
            o->shapes.v = cli_grow(o->shapes.v, o->shapes.n + 1, sizeof *o->shapes.v);
            o->shapes.v[o->shapes.n++] = (shape){o->n.v[i], o->k.v[j], list_copy(m)};
        }
}

static int load_shapes(run_options *o, const int_list *m_default) {
    char why[CLI_WHY];
    int code = read_shapes(o->shapes_file, o->m.n ? &o->m : NULL, m_default, &o->shapes, why);
    if (code != CLI_OK)
        cli_message("--shapes: %s", why);
    return code;
}

static int check_pairs(const run_options *o) {
    if (o->shapes_file && (o->n.n || o->k.n)) {
        cli_message("--shapes %s: -n and -k come from the file and cannot be given too", o->shapes_file);
        return CLI_USAGE;
    }
    if (!o->n.n != !o->k.n) {
        cli_message("%s is missing: a shape needs both -n and -k", o->n.n ? "-k" : "-n");
        return CLI_USAGE;
    }
    if (o->dynamic && o->view) {
        cli_message("--dynamic --view: a W that is given at each run has no weight to view");
        return CLI_USAGE;
    }
    return CLI_OK;
}

static rft_type first_given(rft_type flag, rft_type file, rft_type otherwise) {
    return flag ? flag : file ? file : otherwise;
}

static void settle_types(run_options *o) {
    if (!o->x)
        o->x_groups = o->shapes.x_groups;
    o->x = first_given(o->x, o->shapes.x, RFT_F32);
    if (!o->w && o->shapes.w) {
        o->w = o->shapes.w;
        o->w_scales = o->shapes.w_scales;
    } else if (!o->w) {
        o->w = o->x;
        o->w_scales = scales_apart(o->w) ? scales_by_row() : (weight_scales){0};
    }
    o->y = first_given(o->y, o->shapes.y, RFT_F32);
}

bool options_device_takes(const run_options *o, char why[CLI_WHY]) {
    const bool x = cli_8bit(o->x);
    if (strncmp(o->device, "cpu", 3) == 0)
        return true;
    if (x || cli_8bit(o->y))
        snprintf(why, CLI_WHY, "--%s %s --device %.20s: activations in 8 bits run on the CPU alone", x ? "x" : "y",
                 rft_type_name(x ? o->x : o->y), o->device);
    else if (cli_low_bit(o->w))
        snprintf(why, CLI_WHY, "--w %s --device %.20s: low-bit weights run on the CPU alone", rft_type_name(o->w), o->device);
    else
        return true;
    return false;
}

/* What the library would refuse, in the words of the command line. */
static int check_types(const run_options *o) {
    char why[CLI_WHY];
    if (!options_device_takes(o, why))
        cli_message("%s", why);
    else if (o->x_groups.given && !cli_8bit(o->x) && o->compute != RFT_COMPUTE_I8)
        cli_message("--x %s:g0: floats are rounded by one scale a row with --compute i8 alone", rft_type_name(o->x));
    else if (cli_8bit(o->x) && o->x_order != RFT_K_CONTIGUOUS)
        cli_message("--x %s --layout %s: an x in 8 bits is K-contiguous, as in nt and nn", rft_type_name(o->x), o->layout);
    else
        return CLI_OK;
    return CLI_USAGE;
}

/* The same of y, where shapes are given. */
static int check_8bit_y(const run_options *o) {
    const bool quantizes = o->epi.n_op && op_quantizes(&o->epi.op[o->epi.n_op - 1]);
    if (cli_8bit(o->y) && !quantizes)
        cli_message("--y %s --epi %s: a y in 8 bits needs a list that ends in quantize or quantize_rows", rft_type_name(o->y),
                    o->epi.text);
    else if (!cli_8bit(o->y) && quantizes)
        cli_message("--y %s --epi %s: what that makes is a y of i8 or e4m3", rft_type_name(o->y), o->epi.text);
    else
        return CLI_OK;
    return CLI_USAGE;
}

int options_finish(run_options *o, const char *m_default) {
    char why[CLI_WHY];
    int_list fallback;
    int code = check_pairs(o);
    if (code != CLI_OK || !parse_list(m_default, 0, &fallback, why))
        return code;
    if (o->shapes_file)
        code = load_shapes(o, &fallback);
    else
        add_shapes(o, o->m.n ? &o->m : &fallback);
    list_free(&fallback);
    settle_types(o);
    if (code == CLI_OK)
        code = check_types(o);
    return code == CLI_OK && o->shapes.n ? check_8bit_y(o) : code;
}

static error_t hand_down(int key, char *arg, struct argp_state *state) {
    (void)arg;
    if (key == ARGP_KEY_INIT)
        state->child_inputs[0] = state->input;
    return key == ARGP_KEY_INIT ? 0 : ARGP_ERR_UNKNOWN;
}

int options_parse(run_options *o, int argc, char **argv, const char *doc) {
    static const struct argp_child children[] = {{&options_argp, 0, NULL, 0}, {0}};
    const struct argp argp = {NULL, hand_down, NULL, doc, children, NULL, NULL};
    argp_parse(&argp, argc, argv, 0, NULL, o);
    int code = options_finish(o, "1,16,512");
    if (code == CLI_OK && o->shapes.n == 0) {
        cli_message("no shape: give -n and -k, or --shapes FILE");
        code = CLI_USAGE;
    }
    return code;
}

void options_free(run_options *o) {
    shapes_free(&o->shapes);
    list_free(&o->m);
    list_free(&o->n);
    list_free(&o->k);
}

const char *options_shape_flag(const run_options *o) {
    const bool ordered = o->x_order != RFT_K_CONTIGUOUS || o->w_order != RFT_K_CONTIGUOUS;
    return o->m.n           ? "-m"
           : o->n.n         ? "-n"
           : o->k.n         ? "-k"
           : o->shapes_file ? "--shapes"
           : o->w           ? "--w"
           : o->epi.n_op    ? "--epi"
           : o->batch != 1  ? "--batch"
           : ordered        ? "--layout"
                            : NULL;
}

bool options_are_here(const run_options *o) {
    if (o->machine)
        cli_message("--machine %s: nothing runs on a machine that is not here", o->machine);
    return !o->machine;
}

int options_context(const run_options *o, cli_parallel_for *parallel_for, void *user, rft_ctx **out) {
    rft_ctx_options options = rft_ctx_options_init();
    rft_error err = {0};
    if (!options_are_here(o))
        return CLI_USAGE;
    options.threads = o->threads;
    options.profile = o->profile;
    options.max_isa = o->isa;
    options.flags = RFT_CTX_HUGE_PAGES;
    options.parallel_for = parallel_for;
    options.user = user;
    if (rft_ctx_create(o->device, &options, out, &err) != RFT_OK)
        return cli_failed(&err, "context");
    return CLI_OK;
}

rft_linear_desc options_desc(const run_options *o, int64_t n, int64_t k, int64_t m_min, int64_t m_max) {
    rft_linear_desc d = rft_linear_desc_init();
    d.x = o->x;
    d.y = o->y;
    d.x_order = o->x_order;
    d.x_group_k = cli_8bit(o->x) ? o->x_groups.k : o->x_groups.given ? k : 0;
    d.compute = o->compute;
    d.w.elem = o->w;
    scales_describe(&o->w_scales, &d.w);
    d.w.order = o->w_order;
    d.w.n = n;
    d.w.k = k;
    d.w.batch = d.batch = o->batch;
    d.w.flags |= (o->view ? RFT_WEIGHT_VIEW : 0) | (epilogue_is_glu(&o->epi) ? RFT_WEIGHT_GLU_HALVES : 0);
    d.flags = (o->dynamic ? RFT_W_DYNAMIC : 0) | (cli_8bit(o->x) ? RFT_X_SCALED : 0);
    d.m_min = m_min;
    d.m_max = m_max;
    d.epi = o->epi.n_op ? o->epi.op : NULL;
    d.n_epi = o->epi.n_op;
    return d;
}

rft_status options_plan(const run_options *o, rft_ctx *ctx, const rft_linear_desc *desc, rft_plan **out, rft_error *err) {
    return o->kernel ? rft_plan_create_forced(ctx, desc, o->kernel, out, err) : rft_plan_create(ctx, desc, out, err);
}

int64_t options_columns(const run_options *o, int64_t n) {
    return epilogue_is_glu(&o->epi) ? n / 2 : n;
}
