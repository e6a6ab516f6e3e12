/* SPDX-License-Identifier: Apache-2.0
 *
 * test_cuda_stream.c - stream_sm90: pieces of a tile and parts of k are covered once, rings fit into shared memory, and the
 * kernel's text, run on the CPU with late and shuffled copies, gives exact sums at every edge, split and pairing.
 */
#include "cuda_emulate_sm90.h"
#include "h200_facts.h"

#include "cuda/kernels/stream_layout.h"

static const rft__cuda_row rows[] = {
    {"8x64", &rft__cuda_stream_sm90, RFT_BF16, RFT_BF16, RFT__CUDA_BF16, 8, 64, 64, 5, 90, 4, 0},
    {"16x64", &rft__cuda_stream_sm90, RFT_F16, RFT_F16, RFT__CUDA_F16, 16, 64, 64, 5, 90, 4, 0},
    {"64x64", &rft__cuda_stream_sm90, RFT_BF16, RFT_BF16, RFT__CUDA_BF16, 64, 64, 64, 5, 90, 4, 0},
    {"32x128", &rft__cuda_stream_sm90, RFT_BF16, RFT_BF16, RFT__CUDA_BF16, 32, 128, 64, 9, 90, 4, 0},
    {"64x128", &rft__cuda_stream_sm90, RFT_BF16, RFT_BF16, RFT__CUDA_BF16, 64, 128, 64, 9, 90, 4, 0},
    {"16x64", &rft__cuda_stream_sm90, RFT_F32, RFT_F32, RFT__CUDA_TF32, 16, 64, 32, 5, 90, 4, 0},
    {"96x192", &rft__cuda_stream_sm90, RFT_BF16, RFT_BF16, RFT__CUDA_BF16, 96, 192, 64, 13, 90, 4, 0},
    {"48x128", &rft__cuda_stream_sm90, RFT_BF16, RFT_BF16, RFT__CUDA_BF16, 48, 128, 64, 9, 90, 4, 0},
    {"128x192", &rft__cuda_stream_sm90, RFT_BF16, RFT_BF16, RFT__CUDA_BF16, 128, 192, 64, 13, 90, 4, 0},
};

/* ---- arithmetic ---- */

static void each_fragment_has_one_owner(void **state) {
    (void)state;
    for (int groups = 8; groups <= 32; groups += 8) {
        for (int halves = 1; halves <= 2; halves++) {
            for (int split = 1; split <= 8; split++) {
                const rft__stream_share s = rft__stream_share_of(groups, halves, split);
                bool seen[8][32] = {{false}};
                for (int g = 0; g < groups; g++) {
                    const int owner = rft__stream_owner(s, g), slot = rft__stream_slot(s, g);
                    assert_true(owner < split && slot < halves * s.most && !seen[owner][slot]);
                    assert_true(g % s.run >= rft__stream_begin(s, owner) && g % s.run < rft__stream_begin(s, owner + 1));
                    assert_int_equal(rft__stream_begin(s, owner) + slot % s.most, g % s.run);
                    seen[owner][slot] = true;
                }
                assert_int_equal(rft__stream_begin(s, split), s.run);
            }
        }
    }
}

static void gate_meets_up(void **state) {
    (void)state;
    for (int groups = 8; groups <= 32; groups += 8) {
        for (int split = 1; split <= 8; split++) {
            const rft__stream_share s = rft__stream_share_of(groups, 2, split);
            for (int g = 0; g < groups / 2; g++) {
                assert_int_equal(rft__stream_owner(s, g), rft__stream_owner(s, g + groups / 2));
                assert_int_equal(rft__stream_slot(s, g) + s.most, rft__stream_slot(s, g + groups / 2));
            }
        }
    }
}

/* Writes of a warp (a fragment: 32 pairs) and reads of one (8 tokens of 4 neighbouring fragments) meet each bank evenly. */
static void fragments_do_not_overlap(void **state) {
    (void)state;
    static unsigned char seen[64 * 1024];
    for (int token_groups = 1; token_groups <= 16; token_groups++) {
        for (int slots = 1; slots <= 32; slots++) {
            const int floats = rft__stream_parcel_bytes(8 * token_groups, slots) / 4;
            memset(seen, 0, sizeof seen);
            for (int i = 0; i < token_groups * slots; i++) {
                const int at = rft__stream_place(i / slots, i % slots, slots);
                for (int e = 0; e < 64; e++) {
                    assert_true(at + e < floats && floats <= (int)sizeof seen);
                    assert_int_equal(seen[at + e]++, 0);
                }
            }
        }
    }
    for (int lane = 0, banks[32] = {0}; lane < 32; lane++) {
        assert_int_equal(banks[(rft__stream_place(0, lane / 8, 8) + lane % 8) % 32]++, 0);
    }
}

/* What a block has for itself comes first, by part; each other block's has a place of its own. */
static void parcels_do_not_overlap(void **state) {
    (void)state;
    for (int split = 1; split <= 8; split++) {
        for (int part = 0; part < split; part++) {
            bool seen[16] = {false};
            for (int owner = 0; owner < split; owner++) {
                const int i = rft__stream_parcel(split, part, owner);
                assert_true(i < rft__stream_parcels(split) && !seen[i] && (i < split) == (owner == part));
                assert_true(owner != part || i == part);
                seen[i] = true;
            }
        }
    }
}

static void parts_of_k_are_cut_evenly(void **state) {
    (void)state;
    for (int steps = 0; steps <= 300; steps++) {
        for (int parts = 1; parts <= 8; parts++) {
            assert_int_equal(rft__part_begin(steps, parts, 0), 0);
            assert_int_equal(rft__part_begin(steps, parts, parts), steps);
            for (int r = 0; r < parts; r++) {
                const int size = rft__part_begin(steps, parts, r + 1) - rft__part_begin(steps, parts, r);
                assert_true(size >= steps / parts && size <= steps / parts + 1);
            }
        }
    }
}

static rft__problem problem_of(int64_t n, int64_t k, int64_t batch, rft__glu glu) {
    rft__problem p = {.x = RFT_BF16, .y = RFT_BF16, .m_min = 1, .m_max = 128, .batch = batch, .alpha = 1};
    p.w = (rft__matrix){.elem = RFT_BF16, .glu = glu, .n = n, .k = k, .batch = batch, .n_stride = k, .k_stride = 1};
    p.epi.glu_at = glu == RFT__GLU_NONE ? -1 : 0;
    p.epi.n_in = n;
    p.epi.n_out = glu == RFT__GLU_NONE ? n : n / 2;
    return p;
}

/* Each tile belongs to one cluster of the launch, and no cluster is without. */
static void check_launch(const rft__cuda_facts *f, const rft__problem *p, const rft__cuda_config *c) {
    const int64_t width = p->epi.glu_at < 0 ? c->row->bn : c->row->bn / 2, all = rft__ceil_div(p->epi.n_out, width) * p->batch;
    rft__cuda_launch l;
    int64_t covered = 0;
    rft__cuda_stream_sm90.launch(f, p, c, 1, &l);
    const int64_t clusters = l.grid[0] / (unsigned)c->split;
    assert_true(l.grid[0] % (unsigned)c->split == 0 && clusters >= 1 && clusters <= all);
    assert_true((int)l.shared <= f->shared_block && (2 * c->stages + 2) * 8 <= RFT_STREAM_BARRIERS);
    assert_true(c->row->bm % c->option[1] == 0 && c->option[1] % 8 == 0);
    assert_true(!c->option[2] || (clusters == all && c->option[1] == c->row->bm)); /* sums over the ring */
    for (int64_t i = 0; i < clusters; i++) {
        const int64_t mine = rft__ceil_div(all - i, clusters);
        covered += mine;
        assert_true(mine >= all / clusters && mine <= rft__ceil_div(all, clusters));
    }
    assert_int_equal(covered, all);
}

static void every_launch_covers_the_tiles(void **state) {
    (void)state;
    char reason[RFT__CUDA_REASON];
    rft__cuda_config list[RFT__CUDA_CONFIGS];
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        for (int sms = 1; sms <= 200; sms += sms < 10 ? 1 : 13) {
            rft__cuda_facts f = h200;
            f.sms = sms;
            for (int64_t n = 2; n <= 40000; n += n / 3 + 2) {
                const rft__problem p = problem_of(n - n % 2, 4096, n % 3 + 1, (rft__glu)(n % 3));
                reason[0] = 0;
                const int count = rft__cuda_stream_sm90.configs(&f, &p, rows[r].bm, &rows[r], list, reason);
                assert_true(count > 0 || (rows[r].bm * rows[r].bn > 128 * 128 && strlen(reason) > 0));
                for (int i = 0; i < count; i++) {
                    check_launch(&f, &p, &list[i]);
                    assert_true(rft__cuda_stream_sm90.seconds(&f, &p, rows[r].bm, &list[i]) > 0.0);
                }
            }
        }
    }
}

/* The splits of k that an H200 ran fastest, by much; the last columns are a row of rows[] and its split. */
static void splits_are_those_measured(void **state) {
    (void)state;
    static const struct {
        int64_t n, k, m;
        int row, split;
    } best[] = {
        {4096, 4096, 8, 0, 2},  {24576, 1536, 8, 0, 1}, {2112, 7168, 8, 0, 3},    {4096, 14336, 64, 2, 2},
        {7168, 2048, 64, 2, 1}, {6144, 4096, 64, 4, 2}, {7168, 16384, 128, 8, 3}, {24576, 1536, 128, 8, 1},
    };
    for (size_t i = 0; i < sizeof best / sizeof *best; i++) {
        const rft__problem p = problem_of(best[i].n, best[i].k, 1, RFT__GLU_NONE);
        rft__cuda_config list[RFT__CUDA_CONFIGS];
        char reason[RFT__CUDA_REASON];
        const int n = rft__cuda_stream_sm90.configs(&h200, &p, best[i].m, &rows[best[i].row], list, reason);
        int least = 0;
        for (int c = 1; c < n; c++) {
            const double s = rft__cuda_stream_sm90.seconds(&h200, &p, best[i].m, &list[c]);
            least = s < rft__cuda_stream_sm90.seconds(&h200, &p, best[i].m, &list[least]) ? c : least;
        }
        assert_int_equal(list[least].split, best[i].split);
    }
}

static void refusals_say_why(void **state) {
    (void)state;
    rft__cuda_config list[RFT__CUDA_CONFIGS];
    char reason[RFT__CUDA_REASON];
    rft__problem p = problem_of(4096, 4096, 1, RFT__GLU_NONE);
    assert_int_equal(rft__cuda_stream_sm90.configs(&h200, &p, 17, &rows[1], list, reason), 0);
    assert_string_equal(reason, "takes fewer tokens");
    p.x_order = RFT_MN_CONTIGUOUS;
    assert_int_equal(rft__cuda_stream_sm90.configs(&h200, &p, 4, &rows[1], list, reason), 0);
    assert_string_equal(reason, "streams K-contiguous x and w only");
}

static void odd_operands_do_not_suit(void **state) {
    (void)state;
    const rft__problem p = problem_of(4096, 4096, 1, RFT__GLU_NONE);
    const rft__cuda_config c = {.row = &rows[0], .split = 1, .cluster = 1, .option = {1, 8}};
    rft__cuda_args a = {.x = (void *)4096, .w = (void *)4096, .ldx = 4096, .ldw = 4096};
    assert_null(rft__cuda_stream_sm90.unsuited(&p, &c, &a));
    a.x = (void *)4098;
    assert_non_null(rft__cuda_stream_sm90.unsuited(&p, &c, &a));
    a.x = (void *)4096, a.ldw = 4097;
    assert_non_null(rft__cuda_stream_sm90.unsuited(&p, &c, &a));
}

/* ---- the text ---- */

typedef struct trial {
    int row, split, stages, chunks, slab, sms; /* slab 0: all tokens of the tile's only sums, over the ring */
    bool early;
    product p;
} trial;

static const trial trials[] = {
    {0, 1, 3, 1, 0, 132, true, {.m = 1, .n = 64, .k = 64, .batch = 1}},
    {0, 1, 3, 1, 8, 1, true, {.m = 5, .n = 203, .k = 424, .batch = 1}},
    {0, 2, 3, 2, 8, 2, true, {.m = 8, .n = 150, .k = 1000, .batch = 1}},
    {0, 4, 2, 1, 8, 8, false, {.m = 7, .n = 300, .k = 520, .batch = 1}},
    {0, 8, 3, 1, 8, 8, true, {.m = 3, .n = 130, .k = 72, .batch = 1}},
    {0, 5, 4, 1, 0, 40, true, {.m = 6, .n = 190, .k = 904, .batch = 1}},
    {1, 1, 4, 2, 16, 2, false, {.m = 16, .n = 129, .k = 136, .batch = 2}},
    {1, 2, 4, 1, 16, 132, true, {.m = 13, .n = 100, .k = 320, .batch = 1, .glu = RFT__GLU_HALVES}},
    {1, 3, 4, 1, 0, 40, true, {.m = 13, .n = 100, .k = 720, .batch = 1, .glu = RFT__GLU_HALVES}},
    {1, 4, 3, 2, 16, 4, true, {.m = 9, .n = 134, .k = 1160, .batch = 1, .glu = RFT__GLU_HALVES}},
    {1, 2, 3, 1, 16, 4, true, {.m = 15, .n = 210, .k = 192, .batch = 2, .glu = RFT__GLU_INTERLEAVED}},
    {2, 1, 3, 1, 32, 2, true, {.m = 37, .n = 131, .k = 200, .batch = 1}},
    {2, 2, 3, 1, 64, 2, true, {.m = 64, .n = 140, .k = 264, .batch = 1}},
    {3, 2, 3, 1, 16, 2, true, {.m = 11, .n = 387, .k = 200, .batch = 1}},
    {3, 1, 2, 1, 16, 1, true, {.m = 16, .n = 258, .k = 136, .batch = 1, .glu = RFT__GLU_HALVES}},
    {4, 2, 2, 1, 16, 2, true, {.m = 33, .n = 300, .k = 136, .batch = 1}},
    {5, 2, 3, 2, 16, 2, true, {.m = 10, .n = 99, .k = 204, .batch = 1}},
    {6, 3, 3, 1, 16, 3, true, {.m = 75, .n = 230, .k = 328, .batch = 1}},
    {6, 1, 4, 1, 0, 40, true, {.m = 96, .n = 202, .k = 200, .batch = 1, .glu = RFT__GLU_HALVES}},
    {6, 3, 4, 1, 0, 40, true, {.m = 81, .n = 180, .k = 392, .batch = 1, .glu = RFT__GLU_INTERLEAVED}},
    {7, 2, 3, 1, 24, 2, true, {.m = 41, .n = 300, .k = 264, .batch = 1}},
    {8, 2, 4, 1, 0, 40, true, {.m = 109, .n = 252, .k = 264, .batch = 1}},
};

static void run(const trial *t) {
    const rft__cuda_row *const r = &rows[t->row];
    const int slab = t->slab ? t->slab : r->bm;
    const rft__cuda_config c = {
        .row = r, .split = t->split, .cluster = t->split, .stages = t->stages, .option = {t->chunks, slab, t->slab == 0}};
    rft__cuda_facts f = h200;
    product p = t->p;
    f.sms = t->sms;
    p.x = r->x, p.w = r->w, p.y = RFT_F32;
    emulate_product_sm90(&rft__cuda_stream_sm90, &p, &c, &(run_sm90){&f, t->early, 3, false});
}

static void sums_are_exact_on_the_cpu(void **state) {
    (void)state;
    need_compiler();
    for (size_t i = 0; i < sizeof trials / sizeof *trials; i++) {
        run(&trials[i]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_fragment_has_one_owner), cmocka_unit_test(gate_meets_up),
        cmocka_unit_test(fragments_do_not_overlap),    cmocka_unit_test(parcels_do_not_overlap),
        cmocka_unit_test(parts_of_k_are_cut_evenly),   cmocka_unit_test(every_launch_covers_the_tiles),
        cmocka_unit_test(splits_are_those_measured),   cmocka_unit_test(refusals_say_why),
        cmocka_unit_test(odd_operands_do_not_suit),    cmocka_unit_test(sums_are_exact_on_the_cpu),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
