/* SPDX-License-Identifier: Apache-2.0
 *
 * check_grid.c - see check_grid.h. Every m, n and k of the grid meet; types, layout, epilogue, batch and way of giving W
 * are drawn for each, so that all of them meet every edge in a few runs without their whole product.
 */
#include "check_grid.h"
#include "check_formats.h"

#include <stdio.h>
#include <string.h>

#define SIZES 10

static const int64_t grid_m[] = {1, 2, 3, 4, 7, 8, 13, 14, 15, 16, 17, 28, 31, 33, 64, 65};
static const int64_t grid_k[] = {0, 1, 2, 3, 7, 16, 31, 65, 130, 257};

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* Round the tiles of a GPU's kernels: rows of X, and what is added to multiples of a kernel's columns and step of k. */
static const int64_t gpu_m[] = {1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 33, 63, 64, 65, 127, 128, 129, 255, 257, 1088};

/* Lists that meet each op, alone and behind others. */
static const char *const grid_epilogues[] = {
    "none",           "none",
    "none",           "bias",
    "bias:gelu_tanh", "bias@bf16:gelu",
    "silu:mul",       "add",
    "add=0.5@f16",    "bias:add=0:add",
    "relu",           "clamp=-0.5/0.5",
    "scale=2:bias",   "row_scale:col_scale",
    "mask",           "bias:dropout=0.25",
    "swiglu",         "geglu:add",
    "geglu_tanh",     "scale=-1:bias:silu:mul@bf16:add=2:clamp=-6/6",
    "mask:swiglu",    "add:geglu:mask:mul",
};

/* Kernels that read W where it lies say so in their op, and serve one order of it. */
static void read_in_place(check_problem *p, const rft_kernel_info *native, uint64_t how) {
    bool rows = native && strncmp(native->name, "dot_", 4) == 0, columns = native && strncmp(native->name, "axpy_", 5) == 0;
    if (!rows && !columns)
        return;
    p->w = native->w;
    p->w_order = rows ? RFT_K_CONTIGUOUS : RFT_MN_CONTIGUOUS;
    p->dynamic = how % 2;
    p->view = !p->dynamic;
}

/* Problem number `index`; `native`: mostly the types that the kernel's loop reads. */
static void vary(check_problem *p, const rft_kernel_info *native, check_dice *d) {
    char why[CLI_WHY];
    bool keep = native && check_roll(d, 4);
    p->x = keep ? native->x : check_any_float(d);
    p->w = keep ? native->w : check_any_float(d);
    p->y = check_roll(d, 2) ? RFT_F32 : check_any_float(d);
    p->x_order = check_roll(d, 4) ? RFT_K_CONTIGUOUS : RFT_MN_CONTIGUOUS;
    p->w_order = check_roll(d, 3) ? RFT_K_CONTIGUOUS : RFT_MN_CONTIGUOUS;
    p->batch = check_roll(d, 8) ? 1 : 2;
    uint64_t how = check_roll(d, 8);
    p->dynamic = how == 0;
    p->view = how == 1;
    read_in_place(p, native, how);
    uint64_t low_bit = check_roll(d, 1024);
    if (check_code_format(native, low_bit)) {
        p->w = check_code_format(native, low_bit);
        p->x = keep && native->x != RFT_I8 ? native->x : check_any_float(d);
        p->compute = native->x == RFT_I8 ? RFT_COMPUTE_I8 : RFT_COMPUTE_AUTO;
    } else if (!native) {
        p->w = low_bit % 3 == 0 ? check_any_format(low_bit / 3) : p->w;
        p->compute = low_bit % 6 == 0 ? RFT_COMPUTE_I8 : RFT_COMPUTE_AUTO;
    }
    check_low_bit(p);
    p->threads = check_roll(d, 3) ? 3 : 1;
    parse_epilogue(grid_epilogues[check_roll(d, COUNT(grid_epilogues))], &p->epi, why);
    if (epilogue_is_glu(&p->epi))
        p->n += p->n % 2;
    p->seed = check_roll(d, (uint64_t)1 << 40);
    uint64_t in_8_bits = check_roll(d, 4096);
    check_draw_8bit(p, native, in_8_bits);
    check_8bit(p, in_8_bits / 16);
}

static check_problem plain_of(const check_problem *p, int64_t n, const rft_kernel_info *native) {
    check_problem q = *p;
    q.n = n;
    q.batch = 1;
    q.x = native->x == RFT_I8 ? RFT_F32 : native->x;
    q.w = native->w;
    q.y = RFT_F32;
    q.x_order = q.w_order = RFT_K_CONTIGUOUS;
    q.dynamic = q.view = false;
    q.epi = (epilogue){.text = "none"};
    check_low_bit(&q);
    return q;
}

static void add_shape(check_list *l, check_problem *p, const rft_kernel_info *native, check_dice *d) {
    int64_t n = p->n;
    vary(p, native, d);
    if (native) {
        check_problem plain = plain_of(p, n, native);
        check_list_add(l, p, &plain);
    } else {
        check_list_add(l, p, NULL);
    }
}

static void add_sizes(const check_session *s, check_list *l, check_problem *p, const int64_t *n, const rft_kernel_info *native) {
    check_dice d = {s->seed}, pick = {~s->seed};
    for (size_t i = 0; i < COUNT(grid_m); i++)
        for (int j = 0; j < SIZES; j++)
            for (size_t k = 0; k < COUNT(grid_k); k++) {
                p->m = grid_m[i];
                p->n = n[j];
                p->k = grid_k[k];
                if (check_roll(&pick, (uint64_t)s->thin) == 0)
                    add_shape(l, p, native, &d);
            }
}

/* ---- a GPU: few styles, each compiled once, over many sizes ---- */

#define STYLES   5  /* of one kernel */
#define CHOSEN   24 /* of the library's choice */
#define GPU_KEEP 8  /* one size of so many is taken where nothing thins the set further */

bool check_on_gpu(const rft_kernel_info *kernel) { return strncmp(kernel->isa, "sm_", 3) == 0; }

/* What reaches a kernel's text. Style 0 is the plainest. */
static check_problem make_style(const check_problem *base, const rft_kernel_info *native, int style, check_dice *d) {
    check_problem p = *base;
    vary(&p, native, d);
    if (cli_low_bit(p.w))
        p.w = check_any_float(d);
    if (cli_8bit(p.x))
        p.x = check_any_float(d);
    if (cli_8bit(p.y)) {
        p.y = RFT_F32;
        p.epi.n_op--;
        epilogue_text(&p.epi);
    }
    p.compute = RFT_COMPUTE_AUTO;
    p.x_groups = (x_groups){0};
    p.threads = 0;
    p.seed = check_roll(d, (uint64_t)1 << 16) << CHECK_STYLE;
    if (native) {
        p.x = native->x;
        p.w = native->w;
        p.compute = strstr(native->name, "_tf32_") ? RFT_COMPUTE_TF32 : RFT_COMPUTE_AUTO;
    }
    if (style == 0 && native) {
        p = plain_of(&p, p.n, native);
        p.seed = 0;
    }
    return p;
}

/* A style's problem of a size, and the plainest one's for where that is refused. Three of four are aligned, as data mostly is. */
static void add_sized(check_list *l, const check_problem *style, const check_problem *plainest, int64_t m, int64_t n, int64_t k,
                      check_dice *d) {
    check_problem p = *style, plain = *plainest;
    uint64_t seed = check_roll(d, CHECK_ALIGNED);
    p.m = plain.m = m;
    plain.n = n;
    p.n = epilogue_is_glu(&p.epi) ? n + n % 2 : n;
    p.k = plain.k = k;
    p.seed |= seed | (check_roll(d, 4) ? CHECK_ALIGNED : 0);
    plain.seed |= seed | CHECK_ALIGNED;
    check_list_add(l, &p, plainest->kernel ? &plain : NULL);
}

/* So that kernels differ in the styles and sizes that they are given. */
static uint64_t hash_of(const rft_kernel_info *kernel) {
    uint64_t h = 0;
    for (const char *c = kernel ? kernel->name : ""; *c; c++)
        h = (h ^ (unsigned char)*c) * 0x100000001b3U;
    return h;
}

/* The most rows that a kernel takes; 0: any number. */
static int64_t most_rows(const rft_kernel_info *kernel) {
    bool capped = kernel && (strncmp(kernel->name, "gemv_", 5) == 0 || strncmp(kernel->name, "stream_", 7) == 0);
    return capped ? kernel->mr : 0;
}

/* Numbers of rows round tiles, of a kernel that takes few each of them. */
static size_t list_rows(const rft_kernel_info *native, int64_t out[COUNT(gpu_m)]) {
    int64_t most = most_rows(native);
    size_t n = 0;
    for (int64_t m = 1; m <= most && most <= 8; m++)
        out[n++] = m;
    for (size_t i = 0; i < COUNT(gpu_m) && (most == 0 || most > 8); i++)
        if (most == 0 || gpu_m[i] <= most)
            out[n++] = gpu_m[i];
    return n;
}

static void add_gpu_sizes(const check_session *s, check_list *l, const rft_kernel_info *native, const check_problem *style,
                          int styles, uint64_t seed) {
    int64_t nr = native && native->nr > 1 ? native->nr : 64, kr = native && native->kr > 1 ? native->kr : 32;
    const int64_t n[] = {1, 2, 7, nr - 1, nr, nr + 1, 2 * nr + 8, 3 * nr + 5, 300};
    const int64_t k[] = {0, 1, 3, kr - 1, kr, kr + 8, 2 * kr + 1, 5 * kr, 136, 300, 777};
    int64_t m[COUNT(gpu_m)];
    size_t rows = list_rows(native, m);
    check_dice d = {seed}, pick = {~seed};
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < COUNT(n); j++)
            for (size_t o = 0; o < COUNT(k); o++)
                if (check_roll(&pick, (uint64_t)(s->thin * GPU_KEEP)) == 0)
                    add_sized(l, &style[check_roll(&pick, (uint64_t)styles)], &style[0], m[i], n[j], k[o], &d);
}

/* Long k, where it is split; more tiles than multiprocessors, where blocks take several, in turn or together. The plainest style
 * and another, each twice. */
static void add_gpu_large(const check_session *s, check_list *l, const rft_kernel_info *native, const check_problem *style,
                          uint64_t seed) {
    static const int64_t sizes[][3] = {{1, 65, 8200},     {2, 20000, 512},    {5, 130, 5000},   {16, 1000, 2056},
                                       {40, 96, 9000},    {64, 3000, 264},    {130, 640, 2048}, {300, 520, 1030},
                                       {1088, 3000, 264}, {1088, 2056, 1032}, {520, 1160, 4104}};
    int64_t most = most_rows(native);
    check_dice d = {~seed ^ 0x1a96e};
    for (size_t i = 0; i < COUNT(sizes); i++)
        for (int j = 0; j < 4; j++) {
            int64_t m = most > 0 && sizes[i][0] > most ? most - (int64_t)(i % 2) : sizes[i][0];
            if (check_roll(&d, (uint64_t)s->thin) == 0)
                add_sized(l, &style[j / 2], &style[0], m < 1 ? 1 : m, sizes[i][1], sizes[i][2], &d);
        }
}

static void add_gpu(const check_session *s, check_list *l, const check_problem *base, const rft_kernel_info *native) {
    int styles = native ? STYLES : CHOSEN;
    uint64_t seed = s->seed ^ hash_of(native);
    check_dice d = {seed ^ 0x57e1e};
    check_problem style[CHOSEN];
    for (int i = 0; i < styles; i++)
        style[i] = make_style(base, native, i, &d);
    add_gpu_sizes(s, l, native, style, styles, seed);
    add_gpu_large(s, l, native, style, seed);
}

void check_vary(check_problem *p, const rft_kernel_info *native, check_dice *d) {
    if (check_on_gpu(native))
        *p = make_style(p, native, 1, d);
    else
        vary(p, native, d);
}

/* ---- all of one kernel, or of the library's choice ---- */

static void add_all(check_session *s, check_list *l, check_problem *p, const int64_t n[SIZES], const rft_kernel_info *native) {
    if (!s->gpu) {
        add_sizes(s, l, p, n, native);
        return;
    }
    add_gpu(s, l, p, native);
}

void check_kernel(check_session *s, const rft_kernel_info *kernel, check_tally *tally) {
    int64_t nr = kernel->nr > 1 ? kernel->nr : 16;
    const int64_t n[SIZES] = {1, 3, nr - 1, nr, nr + 1, 2 * nr - 1, 2 * nr, 2 * nr + 5, 3 * nr + 1, 17};
    check_problem p = {.kernel = kernel->name};
    check_result r = {.verdict = CHECK_REFUSED, .message = "the kernel served none of the problems"};
    check_list list = {0};
    add_all(s, &list, &p, n, kernel);
    check_list_run(s, &list, tally);
    if (tally->run > 0 || s->cut || s->thin > 1) /* of few problems a kernel may refuse all */
        return;
    tally->failed++;
    s->failure(s->user, &p, &r);
}

void check_level(check_session *s, const char *isa, check_tally *tally) {
    const int64_t n[SIZES] = {0, 1, 2, 15, 16, 17, 31, 33, 64, 97};
    check_problem p = {.isa = isa};
    check_list list = {0};
    add_all(s, &list, &p, n, NULL);
    check_list_run(s, &list, tally);
}
