/* SPDX-License-Identifier: Apache-2.0
 *
 * test_cuda_gemm_sm90_text.c - the text of the Hopper GEMM, run on the CPU: exact sums at ragged edges in every tile, order,
 * cluster, turn, split and pairing of gate and up, with y staged and with y deferred.
 */
#include "cuda_emulate_sm90.h"
#include "h200_facts.h"

#define ROW(bm, bn, bk) {#bm "x" #bn, &rft__cuda_gemm_sm90, RFT_BF16, RFT_BF16, RFT__CUDA_BF16, bm, bn, bk, 12, 90, 1, 0}
static const rft__cuda_row rows[] = {
    ROW(128, 256, 64), ROW(256, 128, 64), ROW(128, 192, 64), ROW(128, 128, 64),
    ROW(64, 256, 64), ROW(64, 128, 64), ROW(128, 64, 64), ROW(128, 224, 64),
    ROW(128, 144, 64), ROW(128, 96, 64), ROW(64, 64, 64), ROW(64, 112, 64),
    ROW(128, 176, 64), ROW(128, 112, 64), ROW(256, 64, 64),
    {"tf32 128x128", &rft__cuda_gemm_sm90, RFT_F32, RFT_F32, RFT__CUDA_TF32, 128, 128, 32, 12, 90, 1, 0},
};
enum {
    R128X256, R256X128, R128X192, R128X128, R64X256, R64X128, R128X64, R128X224, R128X144, R128X96, R64X64, R64X112, R128X176,
    R128X112, R256X64, TF32
};

typedef struct trial {
    int row, share, turns, split, stages, sms; /* turns: 1 ping-pong, 2 a tail */
    product p;
} trial;

static const trial trials[] = {
    {R128X256, 1, 0, 1, 2, 2, {.m = 140, .n = 270, .k = 72, .batch = 1}},
    {R256X128, 2, 0, 1, 2, 2, {.m = 260, .n = 140, .k = 72, .batch = 1}},
    {R128X192, 0, 0, 1, 2, 1, {.m = 66, .n = 200, .k = 72, .batch = 1}},
    {R128X128, 1, 0, 1, 3, 2, {.m = 150, .n = 136, .k = 200, .batch = 2}},
    {R64X256, 0, 0, 1, 2, 1, {.m = 66, .n = 276, .k = 72, .batch = 1, .glu = RFT__GLU_HALVES}},
    {R64X128, 0, 0, 1, 3, 1, {.m = 70, .n = 150, .k = 264, .batch = 1}},
    {R128X64, 0, 0, 1, 2, 1, {.m = 66, .n = 70, .k = 136, .batch = 1}},
    {TF32, 0, 0, 1, 3, 1, {.m = 70, .n = 136, .k = 68, .batch = 1}},
    {R128X224, 1, 0, 1, 2, 2, {.m = 130, .n = 230, .k = 72, .batch = 1}},
    {R128X96, 0, 0, 1, 3, 1, {.m = 66, .n = 200, .k = 72, .batch = 1}},
    /* both operands shared, by blocks of which some have no tile */
    {R128X128, 3, 0, 1, 3, 4, {.m = 250, .n = 400, .k = 200, .batch = 2}},
    {R128X144, 3, 0, 1, 3, 4, {.m = 250, .n = 500, .k = 400, .batch = 1, .y = RFT_BF16}},
    {R128X128, 3, 0, 1, 2, 8, {.m = 500, .n = 250, .k = 136, .batch = 1, .x_mn = true, .w_mn = true}},
    {R64X128, 3, 0, 1, 3, 4, {.m = 100, .n = 250, .k = 400, .batch = 1, .y = RFT_BF16, .glu = RFT__GLU_HALVES}},
    {R128X64, 3, 0, 1, 3, 4, {.m = 200, .n = 250, .k = 264, .batch = 1, .y = RFT_BF16}},
    /* orders */
    {R128X128, 0, 0, 1, 3, 1, {.m = 136, .n = 72, .k = 130, .batch = 1, .x_mn = true}},
    {R128X128, 0, 0, 1, 3, 1, {.m = 136, .n = 136, .k = 70, .batch = 2, .x_mn = true, .w_mn = true}},
    {R128X128, 1, 0, 1, 3, 2, {.m = 136, .n = 136, .k = 70, .batch = 1, .w_mn = true}},
    {R64X128, 0, 0, 1, 2, 1, {.m = 64, .n = 136, .k = 150, .batch = 1, .w_mn = true}},
    /* gate and up */
    {R128X128, 1, 0, 1, 3, 2, {.m = 165, .n = 200, .k = 136, .batch = 1, .glu = RFT__GLU_HALVES}},
    {R128X128, 0, 0, 1, 3, 1, {.m = 65, .n = 200, .k = 136, .batch = 1, .glu = RFT__GLU_INTERLEAVED}},
    /* turns, split */
    {R128X128, 1, 1, 1, 2, 2, {.m = 260, .n = 200, .k = 136, .batch = 1}},
    {R128X128, 0, 1, 1, 3, 1, {.m = 260, .n = 200, .k = 72, .batch = 1}},
    {R128X128, 0, 0, 2, 3, 8, {.m = 130, .n = 136, .k = 520, .batch = 1}},
    {R128X128, 0, 0, 3, 3, 8, {.m = 65, .n = 100, .k = 840, .batch = 1, .glu = RFT__GLU_HALVES}},
    {R64X128, 0, 0, 2, 2, 4, {.m = 64, .n = 150, .k = 1100, .batch = 1}},
    /* tails: behind one wave, of an all but empty grid, of a grid without one */
    {R128X128, 1, 2, 1, 3, 6, {.m = 500, .n = 200, .k = 600, .batch = 1}},
    {R128X128, 2, 2, 1, 3, 132, {.m = 100, .n = 200, .k = 520, .batch = 1}},
    {R128X128, 1, 2, 1, 2, 6, {.m = 250, .n = 700, .k = 600, .batch = 1, .y = RFT_BF16}},
    {R64X128, 1, 2, 1, 3, 4, {.m = 180, .n = 300, .k = 1100, .batch = 1, .y = RFT_BF16, .glu = RFT__GLU_HALVES}},
    {R128X128, 1, 2, 1, 3, 4, {.m = 250, .n = 350, .k = 300, .batch = 1}},
    /* deferred */
    {R128X256, 0, 0, 1, 3, 1, {.m = 300, .n = 300, .k = 264, .batch = 1, .y = RFT_BF16}},
    {R256X128, 0, 0, 1, 3, 1, {.m = 300, .n = 300, .k = 264, .batch = 1, .y = RFT_BF16}},
    {R128X128, 1, 0, 1, 3, 2, {.m = 450, .n = 266, .k = 200, .batch = 1, .y = RFT_BF16}},
    {R128X128, 2, 0, 1, 3, 2, {.m = 270, .n = 500, .k = 136, .batch = 2, .y = RFT_BF16}},
    {R128X128, 0, 0, 1, 3, 1, {.m = 265, .n = 400, .k = 136, .batch = 1, .y = RFT_BF16, .glu = RFT__GLU_HALVES}},
    {R64X128, 0, 0, 1, 3, 1, {.m = 130, .n = 300, .k = 264, .batch = 1, .y = RFT_BF16}},
    {R128X224, 1, 2, 1, 3, 2, {.m = 260, .n = 500, .k = 600, .batch = 1, .y = RFT_BF16}},
    {R128X128, 1, 0, 1, 3, 2, {.m = 450, .n = 266, .k = 200, .batch = 2, .y = RFT_BF16}},
    {R64X64, 0, 0, 1, 2, 1, {.m = 130, .n = 200, .k = 264, .batch = 1, .y = RFT_BF16}},
    {R64X112, 1, 0, 1, 3, 2, {.m = 130, .n = 300, .k = 264, .batch = 1, .y = RFT_BF16}},
    {R128X224, 0, 0, 1, 3, 1, {.m = 130, .n = 500, .k = 264, .batch = 1, .y = RFT_BF16, .glu = RFT__GLU_HALVES}},
    {R128X96, 1, 0, 1, 3, 2, {.m = 330, .n = 300, .k = 264, .batch = 1, .y = RFT_BF16, .glu = RFT__GLU_HALVES}},
    {R128X256, 0, 0, 1, 3, 1, {.m = 130, .n = 301, .k = 264, .batch = 1, .y = RFT_BF16}}, /* odd n: staged */
    /* a residual: through the ring in one slot or two, beside tails, behind k of one step; where TMA does not take it */
    {R128X256, 1, 0, 1, 3, 2, {.m = 270, .n = 330, .k = 264, .batch = 1, .y = RFT_BF16, .residual = true}},
    {R256X128, 2, 0, 1, 2, 2, {.m = 300, .n = 500, .k = 264, .batch = 2, .y = RFT_BF16, .residual = true}},
    {R128X128, 3, 0, 1, 3, 4, {.m = 250, .n = 400, .k = 200, .batch = 1, .y = RFT_BF16, .residual = true, .curve = true}},
    {R64X256, 0, 0, 1, 2, 1, {.m = 66, .n = 300, .k = 72, .batch = 1, .y = RFT_BF16, .residual = true}},
    {R128X176, 1, 2, 1, 3, 4, {.m = 500, .n = 530, .k = 600, .batch = 1, .y = RFT_BF16, .residual = true}},
    {R64X112, 0, 0, 1, 3, 1, {.m = 70, .n = 230, .k = 264, .batch = 1, .y = RFT_BF16, .residual = true}},
    {R128X224, 0, 0, 1, 3, 1, {.m = 130, .n = 230, .k = 8, .batch = 1, .y = RFT_BF16, .residual = true, .curve = true}},
    {R128X192, 0, 1, 1, 3, 1, {.m = 260, .n = 400, .k = 72, .batch = 1, .y = RFT_BF16, .residual = true}},
    {R128X128, 1, 0, 1, 3, 2, {.m = 270, .n = 330, .k = 264, .batch = 1, .y = RFT_BF16, .residual = true, .residual_pad = 1}},
    {R64X128, 0, 0, 2, 2, 4, {.m = 64, .n = 150, .k = 1100, .batch = 1, .y = RFT_BF16, .residual = true}},
    /* an activation: packed behind the last product, or behind another warpgroup's; y staged where it is f32 */
    {R128X256, 1, 0, 1, 3, 2, {.m = 270, .n = 296, .k = 264, .batch = 1, .y = RFT_BF16, .curve = true}},
    {R128X112, 0, 0, 1, 2, 1, {.m = 130, .n = 232, .k = 72, .batch = 2, .y = RFT_BF16, .curve = true}},
    {R128X128, 1, 2, 1, 3, 6, {.m = 500, .n = 200, .k = 600, .batch = 1, .y = RFT_BF16, .curve = true}},
    {R128X128, 0, 0, 1, 3, 1, {.m = 130, .n = 200, .k = 72, .batch = 1, .curve = true}},
    {R128X176, 1, 1, 1, 3, 2, {.m = 400, .n = 504, .k = 136, .batch = 1, .y = RFT_BF16, .curve = true}},
    {R128X192, 0, 1, 1, 3, 1, {.m = 260, .n = 400, .k = 72, .batch = 1, .y = RFT_BF16}},
    {R128X192, 2, 1, 1, 2, 2, {.m = 270, .n = 704, .k = 136, .batch = 2, .y = RFT_BF16, .curve = true}},
    {R128X176, 1, 1, 1, 3, 2, {.m = 500, .n = 528, .k = 130, .batch = 1, .y = RFT_BF16, .glu = RFT__GLU_HALVES}},
    {R128X128, 0, 1, 1, 3, 1, {.m = 260, .n = 200, .k = 72, .batch = 1, .y = RFT_BF16, .x_mn = true, .w_mn = true}},
    /* turned */
    {R256X64, 0, 0, 1, 3, 1, {.m = 300, .n = 136, .k = 136, .batch = 1, .y = RFT_BF16}},
    {R256X64, 1, 0, 1, 3, 2, {.m = 520, .n = 136, .k = 72, .batch = 1, .y = RFT_BF16, .curve = true}},
    {R256X64, 2, 0, 1, 2, 2, {.m = 200, .n = 296, .k = 200, .batch = 2, .y = RFT_BF16}},
    {R256X64, 0, 1, 1, 3, 1, {.m = 520, .n = 150, .k = 136, .batch = 1, .y = RFT_BF16, .curve = true}},
    {R256X64, 1, 1, 1, 2, 2, {.m = 700, .n = 200, .k = 136, .batch = 1, .y = RFT_BF16}},
    {R256X64, 0, 0, 1, 3, 1, {.m = 264, .n = 72, .k = 130, .batch = 1, .y = RFT_BF16, .x_mn = true, .w_mn = true}},
    {R256X64, 0, 1, 1, 3, 1, {.m = 520, .n = 72, .k = 72, .batch = 2, .y = RFT_BF16, .w_mn = true}},
    {R256X64, 1, 2, 1, 3, 4, {.m = 500, .n = 130, .k = 600, .batch = 1}}, /* y of f32: as any other row */
    {R256X64, 0, 0, 1, 3, 1, {.m = 300, .n = 200, .k = 136, .batch = 1, .y = RFT_BF16, .glu = RFT__GLU_HALVES}},
    /* the most stages, of which one is used; y of no whole chunk, and of one and a half in each half of a gated unit */
    {R64X64, 0, 0, 1, 12, 1, {.m = 1, .n = 200, .k = 8, .batch = 3, .y = RFT_BF16}},
    {R128X112, 1, 0, 1, 3, 2, {.m = 300, .n = 250, .k = 72, .batch = 1, .y = RFT_BF16, .glu = RFT__GLU_HALVES}},
    {R128X192, 1, 0, 1, 2, 2, {.m = 385, .n = 400, .k = 100, .batch = 2, .y = RFT_BF16, .glu = RFT__GLU_HALVES}},
    {R128X176, 2, 0, 1, 3, 2, {.m = 140, .n = 530, .k = 130, .batch = 1, .y = RFT_BF16, .glu = RFT__GLU_HALVES}},
    {R128X192, 0, 0, 1, 3, 1, {.m = 260, .n = 400, .k = 190, .batch = 1, .y = RFT_BF16}}, /* three chunks in two places */
    /* tiles that are not there beside whole ones; as many boxes as they share; columns of a warpgroup less than a box */
    {R128X144, 3, 0, 1, 2, 4, {.m = 128, .n = 434, .k = 264, .batch = 2, .y = RFT_BF16}},
    {R128X128, 2, 2, 1, 3, 6, {.m = 256, .n = 128, .k = 520, .batch = 3, .x_mn = true, .w_mn = true}},
    {R64X112, 1, 2, 1, 3, 6, {.m = 64, .n = 225, .k = 1025, .batch = 2, .y = RFT_BF16}},
    {R128X144, 1, 2, 1, 3, 4, {.m = 129, .n = 281, .k = 577, .batch = 1}},
    {TF32, 3, 0, 1, 3, 4, {.m = 257, .n = 385, .k = 33, .batch = 2}},
    {TF32, 1, 2, 1, 4, 2, {.m = 300, .n = 136, .k = 280, .batch = 1}},
    {R64X64, 0, 0, 8, 4, 132, {.m = 65, .n = 66, .k = 2049, .batch = 2}},
};

static void run(const trial *t) {
    const rft__cuda_row *const r = &rows[t->row];
    static const int sharing[] = {1, 2, 2, 4};
    const int cluster = t->split > 1 ? t->split : sharing[t->share];
    const int staged = t->p.y == RFT_BF16 && t->stages == 2 ? 1 : 2;
    const rft__cuda_config c = {.row = r,
                                .split = t->split,
                                .cluster = cluster,
                                .stages = t->stages,
                                .option = {t->share, t->turns == 1, t->turns == 2, staged}};
    rft__cuda_facts f = h200;
    product p = t->p;
    f.sms = t->sms;
    p.x = r->x, p.w = r->w, p.y = p.y == RFT_BF16 ? RFT_BF16 : RFT_F32;
    emulate_product_sm90(&rft__cuda_gemm_sm90, &p, &c, &(run_sm90){&f, t->stages % 2 == 1, 1, false});
    if (p.y == RFT_BF16) { /* stored by TMA where it is deferred */
        emulate_product_sm90(&rft__cuda_gemm_sm90, &p, &c, &(run_sm90){&f, t->stages % 2 == 0, 1, true});
    }
}

static void sums_are_exact_on_the_cpu(void **state) {
    (void)state;
    need_compiler();
    for (size_t i = 0; i < sizeof trials / sizeof *trials; i++) {
        run(&trials[i]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(sums_are_exact_on_the_cpu)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
