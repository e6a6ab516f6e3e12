/* SPDX-License-Identifier: Apache-2.0
 *
 * check_random.c - see check_random.h. A problem is a style (types, orders, epilogue, flags: what reaches the text of a GPU's
 * kernel) and a size. On a GPU a style is compiled once for many sizes; on the CPU each problem has its own.
 * Invariant: what is drawn here is legal, so that an argument which the library calls wrong is a failure.
 */
#include "check_random.h"
#include "check_formats.h"
#include "check_grid.h"

#include <stdio.h>
#include <string.h>

#define AT_ONCE   512 /* problems in memory */
#define GPU_STYLE 256 /* sizes of a style where it is compiled */
#define MOST_WORK ((int64_t)1 << 24) /* products of one problem: its reference takes tens of milliseconds */

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* ---- sizes ---- */

/* A third small, a third round the edges of tiles, the rest anywhere below `most`; one in 50 is long. */
static int64_t any_size(check_dice *d, int64_t most) {
    static const int64_t tiles[] = {4, 6, 8, 12, 14, 16, 24, 32, 48, 64, 96, 128, 256};
    const uint64_t how = check_roll(d, 50);
    if (how == 0)
        return (int64_t)check_roll(d, (uint64_t)most * 20);
    if (how < 17)
        return (int64_t)check_roll(d, 20);
    if (how < 34)
        return tiles[check_roll(d, COUNT(tiles))] * (int64_t)(1 + check_roll(d, 3)) + (int64_t)check_roll(d, 3) - 1;
    return (int64_t)check_roll(d, (uint64_t)most);
}

static void halve_longest(check_problem *p) {
    int64_t *longest = p->m > p->n ? &p->m : &p->n;
    if (p->k > *longest)
        longest = &p->k;
    *longest /= 2;
}

static void draw_size(check_problem *p, check_dice *d) {
    p->m = any_size(d, 150);
    p->n = any_size(d, 500);
    p->k = any_size(d, 1200);
    while (p->m * p->n * p->k > MOST_WORK / p->batch)
        halve_longest(p);
    if (epilogue_is_glu(&p->epi))
        p->n += p->n % 2;
    check_low_bit(p);
}

/* ---- styles ---- */

/* Numbers that their text gives back to the bit. */
static float any_number(check_dice *d) {
    static const float numbers[] = {-2, -1, -0.5F, 0, 0.25F, 0.5F, 1, 1.5F};
    return numbers[check_roll(d, COUNT(numbers))];
}

static rft_epi_op any_op(check_dice *d, bool may_pair) {
    static const rft_epi_kind kinds[] = {
        RFT_EPI_SCALE, RFT_EPI_BIAS,      RFT_EPI_SILU,  RFT_EPI_GELU,      RFT_EPI_MUL,       RFT_EPI_ADD,
        RFT_EPI_RELU,  RFT_EPI_GELU_TANH, RFT_EPI_CLAMP, RFT_EPI_ROW_SCALE, RFT_EPI_COL_SCALE, RFT_EPI_MASK,
        RFT_EPI_DROPOUT, /* the last three pair columns */ RFT_EPI_SWIGLU, RFT_EPI_GEGLU, RFT_EPI_GEGLU_TANH};
    rft_epi_op op = {.kind = kinds[check_roll(d, COUNT(kinds) - (may_pair ? 0 : 3))]};
    switch (op.kind) {
    case RFT_EPI_SCALE: op.alpha = any_number(d); break;
    case RFT_EPI_CLAMP: op.alpha = any_number(d); op.beta = op.alpha + (float)check_roll(d, 4); break;
    case RFT_EPI_DROPOUT: op.alpha = (float)check_roll(d, 4) / 4; break;
    case RFT_EPI_ADD: op.beta = any_number(d); op.type = check_any_float(d); break;
    case RFT_EPI_BIAS: case RFT_EPI_MUL: case RFT_EPI_ROW_SCALE: case RFT_EPI_COL_SCALE: op.type = check_any_float(d); break;
    default: break;
    }
    return op;
}

/* Half of the lists have one op or two; one in 16 is long. */
static void draw_epilogue(epilogue *e, check_dice *d) {
    const uint64_t how = check_roll(d, 16), most = how == 0 ? 12 : how < 8 ? 5 : 3;
    *e = (epilogue){0};
    for (uint64_t n = check_roll(d, most); n > 0; n--)
        epilogue_add(e, any_op(d, !epilogue_is_glu(e)));
    epilogue_text(e);
}

/* Codes and activations in 8 bits, which the CPU alone runs. */
static void draw_codes(check_problem *p, check_dice *d) {
    static const rft_type x[] = {RFT_I8, RFT_I8, RFT_E4M3};
    if (check_roll(d, 2)) {
        p->w = check_any_format(check_roll(d, 1024));
        p->compute = check_roll(d, 3) ? p->compute : RFT_COMPUTE_I8;
    }
    if (check_roll(d, 5) == 0)
        p->x = x[check_roll(d, COUNT(x))];
    if (check_roll(d, 6) == 0)
        p->y = check_roll(d, 2) ? RFT_I8 : RFT_E4M3;
    check_8bit(p, check_roll(d, 4096));
}

static void draw_free(check_problem *p, bool gpu, check_dice *d) {
    static const rft_compute computes[] = {RFT_COMPUTE_AUTO, RFT_COMPUTE_AUTO, RFT_COMPUTE_F32, RFT_COMPUTE_TF32,
                                           RFT_COMPUTE_16};
    const uint64_t how = check_roll(d, 8);
    const bool alike = check_roll(d, 2);
    p->x = check_any_float(d);
    p->w = alike ? p->x : check_any_float(d);
    p->y = check_any_float(d);
    p->x_order = check_roll(d, 4) ? RFT_K_CONTIGUOUS : RFT_MN_CONTIGUOUS;
    p->w_order = check_roll(d, 3) ? RFT_K_CONTIGUOUS : RFT_MN_CONTIGUOUS;
    p->dynamic = how == 0;
    p->view = how == 1;
    p->compute = computes[check_roll(d, COUNT(computes))];
    draw_epilogue(&p->epi, d);
    if (!gpu)
        draw_codes(p, d);
}

static void draw_style(check_problem *p, const random_space *space, bool gpu, check_dice *d) {
    static const uint32_t threads[] = {1, 1, 2, 3, 6};
    *p = (check_problem){.n = 2}; /* of which no list makes another */
    if (space->kernel)
        check_vary(p, space->kernel, d);
    else
        draw_free(p, gpu, d);
    p->kernel = space->kernel ? space->kernel->name : NULL;
    p->isa = space->levels ? space->level[check_roll(d, (uint64_t)space->levels)] : NULL;
    p->batch = check_roll(d, 6) ? 1 : 2 + (int64_t)check_roll(d, 4);
    p->threads = gpu ? 0 : space->threads ? space->threads : threads[check_roll(d, COUNT(threads))];
    p->seed = check_roll(d, (uint64_t)1 << 16) << CHECK_STYLE;
}

void check_random(check_session *s, int64_t count, const random_space *space, check_tally *tally) {
    const int64_t sizes = s->gpu ? GPU_STYLE : 1;
    check_dice d = {s->seed ^ 0x5eed};
    check_problem style;
    check_list list = {0};
    for (int64_t i = 0; i < count && !s->cut; i++) {
        if (i % sizes == 0)
            draw_style(&style, space, s->gpu, &d);
        check_problem p = style;
        p.seed |= check_roll(&d, (uint64_t)1 << CHECK_STYLE);
        draw_size(&p, &d);
        check_list_add(&list, &p, NULL);
        if (list.n == AT_ONCE || i == count - 1) {
            check_list_run(s, &list, tally);
            cli_progress("check: %lld of %lld random problems", (long long)(i + 1), (long long)count);
        }
    }
}
