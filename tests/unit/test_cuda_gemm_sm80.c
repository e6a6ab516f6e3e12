/* SPDX-License-Identifier: Apache-2.0
 *
 * test_cuda_gemm_sm80.c - the mma.sync GEMM: its swizzle is a permutation without bank conflicts, gate and up rows meet, stages
 * fit each device, and its text, run on the CPU, gives exact sums at every ragged edge, order, alignment and pairing.
 */
#include "cuda_emulate.h"

#include "cuda/kernels/gemm_sm80_layout.h"

/* ---- layout ---- */

static void chunks_are_permuted(void **state) {
    (void)state;
    static unsigned char seen[256 * 64];
    for (int words = 0; words < 2; words++) {
        for (unsigned chunks = 2; chunks <= 64; chunks *= 2) {
            for (unsigned rows = 16; rows <= 256 && rows * chunks <= 256 * 64; rows *= 2) {
                memset(seen, 0, sizeof seen);
                for (unsigned i = 0; i < rows * chunks; i++) {
                    const unsigned at = rft__sm80_offset(i / chunks, i % chunks, chunks, words);
                    assert_true(at % 16 == 0 && at < rows * chunks * 16);
                    assert_int_equal(seen[at / 16]++, 0);
                }
            }
        }
    }
}

/* The 8 rows of one matrix of ldmatrix. */
static void matrices_meet_all_banks(void **state) {
    (void)state;
    for (unsigned chunks = 2; chunks <= 64; chunks *= 2) {
        for (unsigned row = 0; row < 64; row += 8) {
            for (unsigned chunk = 0; chunk < chunks; chunk++) {
                unsigned banks = 0;
                for (unsigned i = 0; i < 8; i++) {
                    banks |= 1u << rft__sm80_offset(row + i, chunk, chunks, 0) / 16 % 8;
                }
                assert_int_equal(banks, 0xff);
            }
        }
    }
}

/* f32 along M or N: 4 rows of k by 8 neighbours, one word a lane. */
static void words_meet_all_banks(void **state) {
    (void)state;
    for (unsigned chunks = 4; chunks <= 64; chunks *= 2) {
        for (unsigned k = 0; k < 32; k += 4) {
            for (unsigned first = 0; first < 4 * chunks; first += 8) {
                unsigned banks = 0;
                for (unsigned lane = 0; lane < 32; lane++) {
                    const unsigned column = first + lane / 4;
                    banks |= 1u << (rft__sm80_offset(k + lane % 4, column / 4, chunks, 1) / 4 + column % 4) % 32;
                }
                assert_int_equal(banks, 0xffffffffu);
            }
        }
    }
}

/* Where a lane's fragments lie, said without shortcuts: element (row, k) of the operand, as PTX gives them to lanes. */
static unsigned place(unsigned row, unsigned byte_of_k, unsigned chunks, int mn, int words) {
    if (!mn) {
        return rft__sm80_offset(row, byte_of_k / 16, chunks, 0) + byte_of_k % 16;
    }
    const unsigned size = words ? 4 : 2, k = byte_of_k / size, column = row * size;
    return rft__sm80_offset(k, column / 16, chunks, words) + column % 16;
}

/* Matrix i of a block: rows 8..15 where i is odd for x, or 2 and 3 for w; the second 16 bytes of k for the others. */
static void lanes_read_their_fragments(void **state) {
    (void)state;
    for (int form = 0; form < 12; form++) {
        const int is_w = form & 1, mn = form >> 1 & 1, words = form >= 8 || (form & 4 && mn), wide = form & 4;
        const unsigned rows = wide ? 64 : 32, chunks = !mn ? 8 : words ? 16 : 16, row0 = wide ? 64 : 32;
        if (words && !mn) {
            continue;
        }
        for (unsigned i = 0; i < rows / 16 * 4 * 128; i++) {
            const unsigned lane = i % 32, matrix = i / 32 % 4, block = i / 128 % (rows / 16), step = i / 128 / (rows / 16) % 4;
            const unsigned beside = is_w ? matrix / 2 : matrix % 2, further = is_w ? matrix % 2 : matrix / 2;
            if (!words && lane / 8 != matrix) {
                continue; /* a lane names one row of one matrix */
            }
            const unsigned row = row0 + 16 * block + 8 * beside, k = 32 * step + 16 * further, at = lane % 8;
            const unsigned want = words ? place(row + lane / 4, k + lane % 4 * 4, chunks, 1, 1)
                                  : mn  ? place(row, k + 2 * at, chunks, 1, 0)
                                        : place(row + at, k, chunks, 0, 0);
            const unsigned first = rft__sm80_first(lane, row0, chunks, mn, words, is_w);
            assert_int_equal((first ^ rft__sm80_flip(block, step, mn, words, words && beside)) +
                                 rft__sm80_add(block, step, chunks, mn, words, words && further),
                             want);
        }
    }
}

static void gate_and_up_are_neighbours(void **state) {
    (void)state;
    for (int c = 0; c < 256; c++) {
        const int other = c ^ 8;
        assert_int_equal(rft__sm80_half_row(c), rft__sm80_half_row(other));
        assert_int_not_equal(rft__sm80_is_up(c), rft__sm80_is_up(other));
    }
}

/* ---- host half ---- */

#define ROW(x, compute, bm, bn, bk, warps)                                                                                       \
    { #compute " " #bm "x" #bn, &rft__cuda_gemm_sm80, x, x, compute, bm, bn, bk, warps, 80, 1, 0 }

static const rft__cuda_row rows[] = {
    ROW(RFT_BF16, RFT__CUDA_BF16, 128, 128, 32, 4),
    ROW(RFT_F16, RFT__CUDA_F16, 64, 64, 64, 4),
    ROW(RFT_F16, RFT__CUDA_F16, 16, 128, 64, 4),
    ROW(RFT_BF16, RFT__CUDA_BF16, 128, 64, 64, 4),
    ROW(RFT_F32, RFT__CUDA_TF32, 64, 64, 32, 4),
    ROW(RFT_F32, RFT__CUDA_TF32, 32, 128, 32, 4),
    ROW(RFT_BF16, RFT__CUDA_BF16, 16, 32, 64, 4),
    ROW(RFT_F32, RFT__CUDA_TF32, 32, 64, 32, 4),
    {"mixed 32x128", &rft__cuda_gemm_sm80, RFT_F16, RFT_BF16, RFT__CUDA_TF32, 32, 128, 64, 4, 80, 1, 0},
    ROW(RFT_BF16, RFT__CUDA_BF16, 128, 256, 32, 8),
    ROW(RFT_F32, RFT__CUDA_TF32, 256, 128, 16, 8),
};
enum { ROWS = sizeof rows / sizeof *rows };

static const rft__cuda_facts devices[] = {
    {.arch = 80,
     .sms = 108,
     .shared_block = 166912,
     .shared_sm = 167936,
     .l2 = 40 << 20,
     .read_bps = 1.8e12,
     .l2_bps = 4e12,
     .flops_16 = 2.8e14,
     .flops_tf32 = 1.4e14,
     .flops_f32 = 1.8e13},
    {.arch = 89,
     .sms = 128,
     .shared_block = 101376,
     .shared_sm = 102400,
     .l2 = 72 << 20,
     .read_bps = 0.95e12,
     .l2_bps = 4e12,
     .flops_16 = 1.6e14,
     .flops_tf32 = 8e13,
     .flops_f32 = 7e13},
    {.arch = 90,
     .sms = 132,
     .shared_block = 232448,
     .shared_sm = 233472,
     .l2 = 50 << 20,
     .read_bps = 4.3e12,
     .l2_bps = 5.5e12,
     .flops_16 = 7.2e14,
     .flops_tf32 = 3.7e14,
     .flops_f32 = 5.1e13},
};

static void configs_fit_devices(void **state) {
    (void)state;
    const product asked = {.m = 512, .n = 4096, .k = 4096, .batch = 1};
    for (size_t d = 0; d < sizeof devices / sizeof *devices; d++) {
        for (int i = 0; i < ROWS; i++) {
            product p = asked;
            p.x = rows[i].x, p.w = rows[i].w, p.y = RFT_F32;
            const rft__problem q = emulate_problem(&p);
            rft__cuda_config c[RFT__CUDA_CONFIGS];
            char reason[RFT__CUDA_REASON] = "";
            const int n = rft__cuda_gemm_sm80.configs(&devices[d], &q, p.m, &rows[i], c, reason);
            assert_int_equal(n, p.x == RFT_F32 ? 2 : 3);
            for (int j = 0; j < n; j++) {
                rft__cuda_launch l;
                rft__cuda_gemm_sm80.launch(&devices[d], &q, &c[j], p.m, &l);
                assert_true(c[j].stages >= 2 && l.shared <= (unsigned)devices[d].shared_block);
                const int64_t tiles = rft__ceil_div(p.m, rows[i].bm) * rft__ceil_div(p.n, rows[i].bn);
                assert_true(l.grid[0] == tiles || (c[j].option[2] && l.grid[0] < tiles && (int)l.grid[0] % devices[d].sms == 0));
                const double s = rft__cuda_gemm_sm80.seconds(&devices[d], &q, p.m, &c[j]);
                assert_true(s > 1e-6 && s < 1e-2);
                assert_true(j == 0 || s > rft__cuda_gemm_sm80.seconds(&devices[d], &q, p.m, &c[j - 1]) * 0.999);
            }
        }
    }
}

static void run_turns(const rft__cuda_row *r, product p, int align, int turns) {
    const int depth = r->bk * rft__cuda_size(r->x) < 128 ? 2 : 1; /* rows of whole lines */
    const int whole = align == 16 && !p.x_mn && !p.w_mn && p.k * rft__cuda_size(r->x) % 16 == 0;
    const rft__cuda_config c = {.row = r, .split = 1, .cluster = 1, .stages = 3, .option = {align, depth, turns, whole}};
    p.x = r->x, p.w = r->w, p.y = RFT_F32;
    emulate_product(&rft__cuda_gemm_sm80, &p, &c, r->name);
}

static void run(const rft__cuda_row *r, product p, int align) { run_turns(r, p, align, 0); }

/* One order with the edges of a plain product, and with what else may come. */
static void small_rows(const rft__cuda_row *r, int order, bool more) {
    const bool x_mn = order & 1, w_mn = order >> 1;
    const int odd = r->x == RFT_F32 ? 4 : 2;
    product p = {.m = r->bm + 5, .n = r->bn + 10, .k = 3 * r->bk + 5, .batch = 1, .x_mn = x_mn, .w_mn = w_mn};
    run(r, p, 16);
    if (!more) {
        return;
    }
    switch (order) {
    case 0:
        p.m = r->bm - 7, p.n = 67, p.k = r->bk + 11, p.batch = 2, p.pad = 1, p.offset = 1;
        run(r, p, odd);
        break;
    case 1:
    case 2:
        p.m = 13, p.n = 144, p.k = r->bk * 2 - 8, p.glu = RFT__GLU_HALVES;
        run(r, p, 16);
        break;
    default:
        p.m = 2, p.n = 134, p.k = r->bk, p.batch = 2, p.glu = RFT__GLU_INTERLEAVED;
        run(r, p, 4);
    }
}

/* RFT_TEST_ALL in the environment: every row in every order. */
static void every_order_and_edge(void **state) {
    (void)state;
    need_compiler();
    const bool all = getenv("RFT_TEST_ALL") != NULL;
    for (int i = 0; i < ROWS - 2; i++) {
        for (int order = 0; order < 4; order++) {
            if (all || (order - i) % 4 == 0 || (order - i) % 4 == 1) {
                small_rows(&rows[i], order, all || (order - i) % 4 == 0);
            }
        }
    }
}

static void large_tiles(void **state) {
    (void)state;
    need_compiler();
    run(&rows[ROWS - 2], (product){.m = 123, .n = 244, .k = 100, .batch = 1, .w_mn = true}, 16);
    run(&rows[ROWS - 2], (product){.m = 123, .n = 244, .k = 136, .batch = 1, .glu = RFT__GLU_HALVES}, 16); /* whole chunks */
    run(&rows[ROWS - 1], (product){.m = 251, .n = 116, .k = 41, .batch = 1, .x_mn = true}, 16);
    run(&rows[ROWS - 1], (product){.m = 251, .n = 116, .k = 75, .batch = 1}, 4); /* without the fragments of two steps */
}

/* Tiles that a block takes in turn, of a k that just fills the ring and of more; emulated devices have 4 SMs. */
static void blocks_take_tiles_in_turn(void **state) {
    (void)state;
    need_compiler();
    const rft__cuda_row *const r = &rows[1];
    run_turns(r, (product){.m = 3 * 64 - 7, .n = 3 * 64 + 5, .k = 2 * 64, .batch = 1}, 16, 1);
    run_turns(r, (product){.m = 65, .n = 5 * 64, .k = 3 * 64 + 9, .batch = 2, .w_mn = true, .glu = RFT__GLU_HALVES}, 16, 1);
    run_turns(&rows[ROWS - 2], (product){.m = 129, .n = 3 * 256 - 40, .k = 131, .batch = 1}, 16, 1);
}

/* As a device of which a part may be used would run them: no more blocks than that, of any row, and of batches too. */
static void few_blocks_take_all_tiles(void **state) {
    (void)state;
    need_compiler();
    static const int row[] = {1, 6, ROWS - 2}, limit[] = {3, 5, 2};
    for (int i = 0; i < 3; i++) {
        const rft__cuda_row *const r = &rows[row[i]];
        product p = {.m = 3 * r->bm - 1, .n = 2 * r->bn + 6, .k = 200, .batch = 2, .y = RFT_F32, .limit = limit[i]};
        rft__cuda_facts f = devices[2];
        rft__cuda_config c[RFT__CUDA_CONFIGS];
        p.x = r->x, p.w = r->w;
        f.sms = limit[i], f.limited = true;
        const rft__problem q = emulate_problem(&p);
        assert_int_equal(rft__cuda_gemm_sm80.configs(&f, &q, p.m, r, c, NULL), 3);
        assert_int_equal(c[0].option[2], 1);
        emulate_product(&rft__cuda_gemm_sm80, &p, &c[0], r->name);
        emulate_product(&rft__cuda_gemm_sm80, &p, &c[1], r->name);
    }
}

/* Large tiles as a device would run them, when k is less than rings are long. */
static void little_k(void **state) {
    (void)state;
    need_compiler();
    for (int64_t k = 0; k <= 96; k += 48) {
        product p = {.m = 140, .n = 300, .k = k, .batch = 1, .x = RFT_BF16, .w = RFT_BF16, .y = RFT_F32};
        const rft__problem q = emulate_problem(&p);
        rft__cuda_config c[RFT__CUDA_CONFIGS];
        char reason[RFT__CUDA_REASON] = "";
        assert_int_equal(rft__cuda_gemm_sm80.configs(&devices[2], &q, p.m, &rows[ROWS - 2], c, reason), 3);
        assert_true(c[0].option[2] == 1 && c[0].stages == (k > 64 ? 3 : 2));
        emulate_product(&rft__cuda_gemm_sm80, &p, &c[0], "little k");
    }
}

static void no_k_is_zero(void **state) {
    (void)state;
    need_compiler();
    run(&rows[0], (product){.m = 9, .n = 17, .k = 0, .batch = 1}, 16);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chunks_are_permuted),        cmocka_unit_test(matrices_meet_all_banks),
        cmocka_unit_test(words_meet_all_banks),       cmocka_unit_test(lanes_read_their_fragments),
        cmocka_unit_test(gate_and_up_are_neighbours), cmocka_unit_test(configs_fit_devices),
        cmocka_unit_test(every_order_and_edge),       cmocka_unit_test(large_tiles),
        cmocka_unit_test(blocks_take_tiles_in_turn),  cmocka_unit_test(few_blocks_take_all_tiles),
        cmocka_unit_test(little_k),                   cmocka_unit_test(no_k_is_zero),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
