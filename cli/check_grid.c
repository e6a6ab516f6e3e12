/* SPDX-License-Identifier: Apache-2.0
 *
 * check_grid.c - see check_grid.h. Every m, n and k of the grid meet; types, layout, epilogue, batch and way of giving W
 * are drawn for each, so that all of them meet every edge in a few runs without their whole product.
 */
#include "check_grid.h"

#include <stdio.h>
#include <string.h>

#define SIZES 10

static const int64_t grid_m[] = {1, 2, 3, 4, 7, 8, 13, 14, 15, 16, 17, 28, 31, 33, 64, 65};
static const int64_t grid_k[] = {0, 1, 2, 3, 7, 16, 31, 65, 130, 257};

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* Lists that meet each op, alone and behind others. */
static const char *const grid_epilogues[] = {
    "none",           "none",
    "none",           "bias",
    "bias:gelu_tanh", "bias@bf16:gelu",
    "silu:mul",       "add",
    "add=0.5@f16",    "bias:add",
    "relu",           "clamp=-0.5/0.5",
    "scale=2:bias",   "row_scale:col_scale",
    "mask",           "bias:dropout=0.25",
    "swiglu",         "geglu:add",
    "geglu_tanh",     "scale=-1:bias:silu:mul@bf16:add=2:clamp=-6/6",
};

typedef struct dice {
    uint64_t state;
} dice;

static uint64_t roll(dice *d, uint64_t sides) { return check_random_next(&d->state) % sides; }

static rft_type any_type(dice *d) {
    static const rft_type types[] = {RFT_F32, RFT_BF16, RFT_F16};
    return types[roll(d, 3)];
}

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
static void vary(check_problem *p, const rft_kernel_info *native, dice *d) {
    char why[CLI_WHY];
    bool keep = native && roll(d, 4);
    p->x = keep ? native->x : any_type(d);
    p->w = keep ? native->w : any_type(d);
    p->y = roll(d, 2) ? RFT_F32 : any_type(d);
    p->x_order = roll(d, 4) ? RFT_K_CONTIGUOUS : RFT_MN_CONTIGUOUS;
    p->w_order = roll(d, 3) ? RFT_K_CONTIGUOUS : RFT_MN_CONTIGUOUS;
    p->batch = roll(d, 8) ? 1 : 2;
    uint64_t how = roll(d, 8);
    p->dynamic = how == 0;
    p->view = how == 1;
    read_in_place(p, native, how);
    p->threads = roll(d, 3) ? 3 : 1;
    parse_epilogue(grid_epilogues[roll(d, COUNT(grid_epilogues))], &p->epi, why);
    if (epilogue_is_glu(&p->epi))
        p->n += p->n % 2;
    p->seed = roll(d, (uint64_t)1 << 40);
}

void check_one(const check_session *s, const check_problem *p, check_tally *tally) {
    check_result r;
    check_run(s->c, p, &r);
    if (r.verdict == CHECK_REFUSED) {
        tally->refused++;
        return;
    }
    tally->run++;
    if (r.verdict == CHECK_RIGHT) {
        tally->worst = r.worst > tally->worst ? r.worst : tally->worst;
        return;
    }
    tally->failed++;
    s->failure(s->user, p, &r);
}

/* A refused variation still leaves the shape to be proven in the plainest way. */
static void check_shape(const check_session *s, check_problem *p, const rft_kernel_info *native, dice *d, check_tally *tally) {
    int64_t n = p->n, refused = tally->refused;
    vary(p, native, d);
    check_one(s, p, tally);
    if (tally->refused == refused || !native)
        return;
    p->n = n;
    p->batch = 1;
    p->x = native->x;
    p->w = native->w;
    p->y = RFT_F32;
    p->x_order = p->w_order = RFT_K_CONTIGUOUS;
    p->dynamic = p->view = false;
    p->epi = (epilogue){.text = "none"};
    check_one(s, p, tally);
}

static void check_sizes(const check_session *s, check_problem *p, const int64_t *n, const rft_kernel_info *native,
                        check_tally *tally) {
    dice d = {s->seed}, pick = {~s->seed};
    for (size_t i = 0; i < COUNT(grid_m); i++)
        for (int j = 0; j < SIZES; j++)
            for (size_t l = 0; l < COUNT(grid_k); l++) {
                p->m = grid_m[i];
                p->n = n[j];
                p->k = grid_k[l];
                if (roll(&pick, (uint64_t)s->thin) == 0)
                    check_shape(s, p, native, &d, tally);
            }
}

void check_kernel(const check_session *s, const rft_kernel_info *kernel, check_tally *tally) {
    int64_t nr = kernel->nr > 1 ? kernel->nr : 16;
    const int64_t n[SIZES] = {1, 3, nr - 1, nr, nr + 1, 2 * nr - 1, 2 * nr, 2 * nr + 5, 3 * nr + 1, 17};
    check_problem p = {.kernel = kernel->name};
    check_result r = {.verdict = CHECK_REFUSED, .message = "the kernel served none of the problems"};
    check_sizes(s, &p, n, kernel, tally);
    if (tally->run > 0)
        return;
    tally->failed++;
    s->failure(s->user, &p, &r);
}

void check_level(const check_session *s, const char *isa, check_tally *tally) {
    const int64_t n[SIZES] = {0, 1, 2, 15, 16, 17, 31, 33, 64, 97};
    check_problem p = {.isa = isa};
    check_sizes(s, &p, n, NULL, tally);
}

void check_random(const check_session *s, int64_t count, const char *isa, const char *kernel, check_tally *tally) {
    dice d = {s->seed ^ 0x5eed};
    for (int64_t i = 0; i < count; i++) {
        check_problem p = {.isa = isa, .kernel = kernel};
        p.m = (int64_t)roll(&d, roll(&d, 4) ? 40 : 200);
        p.n = (int64_t)roll(&d, roll(&d, 4) ? 100 : 600);
        p.k = (int64_t)roll(&d, roll(&d, 4) ? 150 : 1500);
        vary(&p, NULL, &d);
        check_one(s, &p, tally);
    }
}
