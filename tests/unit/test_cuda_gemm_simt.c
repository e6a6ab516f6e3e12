/* SPDX-License-Identifier: Apache-2.0
 *
 * test_cuda_gemm_simt.c - the FMA GEMM: its raster visits each tile once, and its text, run on the CPU, gives exact sums at every
 * ragged edge, order, alignment and pairing of gate and up, also by few blocks that take tiles in turn.
 */
#include "cuda_emulate.h"

#include "cuda/kernels/gemm_tile.h"

enum { MOST_TILES = 4096 };

static void raster_visits_each_tile_once(void **state) {
    (void)state;
    static unsigned char seen[MOST_TILES];
    for (int tiles_m = 1; tiles_m <= 40; tiles_m++) {
        for (int tiles_n = 1; tiles_n <= 40; tiles_n += 3) {
            for (int group = 1; group <= 16; group *= 2) {
                memset(seen, 0, sizeof seen);
                for (int i = 0; i < tiles_m * tiles_n; i++) {
                    const rft__tile t = rft__tile_at(i, tiles_m, tiles_n, group);
                    assert_true(0 <= t.m && t.m < tiles_m && 0 <= t.n && t.n < tiles_n);
                    assert_int_equal(seen[t.m * tiles_n + t.n]++, 0);
                }
            }
        }
    }
}

static void halves_pair_gate_and_up(void **state) {
    (void)state;
    for (int n = 2; n <= 300; n += 2) {
        for (int n0 = 0; n0 < n; n0 += 64) {
            for (int c = 0; c < 32 && n0 / 2 + c < n / 2; c++) {
                const int gate = rft__tile_w_row(n0, c, 64, n, 1), up = rft__tile_w_row(n0, c + 32, 64, n, 1);
                assert_int_equal(gate, n0 / 2 + c);
                assert_int_equal(up, gate + n / 2);
            }
        }
    }
}

static const rft__cuda_row rows[] = {
    {"128x128", &rft__cuda_gemm_simt, RFT_F32, RFT_F32, RFT__CUDA_F32, 128, 128, 8, 4, 80, 1, 0},
    {"256x128", &rft__cuda_gemm_simt, RFT_F32, RFT_F32, RFT__CUDA_F32, 256, 128, 8, 8, 80, 1, 0},
    {"64x64", &rft__cuda_gemm_simt, RFT_BF16, RFT_F32, RFT__CUDA_F32, 64, 64, 32, 8, 80, 1, 0},
    {"32x64", &rft__cuda_gemm_simt, RFT_F16, RFT_BF16, RFT__CUDA_F32, 32, 64, 32, 8, 80, 1, 0},
    {"16x64", &rft__cuda_gemm_simt, RFT_F32, RFT_F16, RFT__CUDA_F32, 16, 64, 64, 8, 80, 1, 0},
};

static const rft__cuda_facts hopper = {.arch = 90, .sms = 132, .shared_block = 232448, .shared_sm = 233472};

/* With the first config for operands like these. */
static void run(const rft__cuda_row *r, product p, int aligned) {
    rft__cuda_config c[RFT__CUDA_CONFIGS];
    char reason[RFT__CUDA_REASON];
    rft__cuda_facts facts = hopper;
    p.x = r->x, p.w = r->w, p.y = RFT_F32;
    facts.limited = p.limit != 0;
    const rft__problem q = emulate_problem(&p);
    const int n = rft__cuda_gemm_simt.configs(&facts, &q, p.m, r, c, reason);
    int i = 0;
    while (i < n && c[i].option[0] != aligned) {
        i++;
    }
    assert_true(i < n);
    emulate_product(&rft__cuda_gemm_simt, &p, &c[i], r->name);
}

static void every_order_and_edge(void **state) {
    (void)state;
    need_compiler();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        for (int order = 0; order < 4; order++) {
            const bool x_mn = order & 1, w_mn = order >> 1;
            const int64_t bm = rows[i].bm;
            product p = {.m = bm + 5, .n = 131, .k = 3 * rows[i].bk + 3, .batch = 1, .x_mn = x_mn, .w_mn = w_mn};
            run(&rows[i], p, 1);
            switch ((i + (size_t)order) % 3) {
            case 0:
                p.m = bm - 7, p.n = 66, p.k = rows[i].bk + 5, p.batch = 2, p.pad = 1, p.offset = 1;
                run(&rows[i], p, 0);
                break;
            case 1:
                p.m = 3, p.n = 144, p.k = 3 * rows[i].bk, p.glu = RFT__GLU_HALVES;
                run(&rows[i], p, 1);
                break;
            default:
                p.m = 2, p.n = 134, p.k = 9, p.glu = RFT__GLU_INTERLEAVED;
                run(&rows[i], p, 1);
            }
        }
    }
}

/* 12 tiles a batch. */
static void few_blocks_take_tiles_in_turn(void **state) {
    (void)state;
    need_compiler();
    run(&rows[2], (product){.m = 130, .n = 250, .k = 70, .batch = 1, .limit = 5}, 1);
    run(&rows[3], (product){.m = 70, .n = 250, .k = 40, .batch = 3, .limit = 29}, 1);
    run(&rows[3], (product){.m = 70, .n = 250, .k = 40, .batch = 2, .pad = 1, .offset = 1, .limit = 1}, 0);
    run(&rows[4], (product){.m = 33, .n = 250, .k = 67, .batch = 2, .glu = RFT__GLU_HALVES, .limit = 7}, 1);
}

static void no_k_is_zero(void **state) {
    (void)state;
    need_compiler();
    run(&rows[0], (product){.m = 9, .n = 17, .k = 0, .batch = 1}, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(raster_visits_each_tile_once),
        cmocka_unit_test(halves_pair_gate_and_up),
        cmocka_unit_test(every_order_and_edge),
        cmocka_unit_test(few_blocks_take_tiles_in_turn),
        cmocka_unit_test(no_k_is_zero),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
