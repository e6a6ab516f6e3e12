/* SPDX-License-Identifier: Apache-2.0
 *
 * test_cuda_gemm_sm90.c - the Hopper GEMM as far as no GPU is needed: each tile is some block's exactly once, the barriers of
 * ring and turns neither hang nor let a stage be read early or overwritten, staged accumulators come back where they belong
 * without bank conflicts, and every config fits the machine.
 */
#include "cuda/cuda_choice.h"
#include "cuda/kernels/gemm_sm90_layout.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "h200_facts.h"

/* ---- staging ---- */

static void staged_elements_have_places_of_their_own(void **state) {
    (void)state;
    unsigned char seen[RFT_CHUNK_BYTES] = {0};
    for (int row = 0; row < RFT_CHUNK_ROWS; row++) {
        for (int column = 0; column < RFT_CHUNK_COLUMNS; column++) {
            const int at = rft__chunk_at(row, column);
            assert_int_equal(at % 4, 0);
            assert_in_range(at, 0, RFT_CHUNK_BYTES - 4);
            assert_int_equal(seen[at]++, 0);
            assert_int_equal(rft__chunk_at(row, column / 4 * 4) + column % 4 * 4, at);
        }
    }
}

/* A half warp's 8-byte stores of one accumulator pair, and a quarter warp's 16-byte loads, touch each bank once. */
static void staging_meets_no_bank_conflict(void **state) {
    (void)state;
    for (int r = 0; r < 32; r += 2) {
        for (int half = 0; half < 32; half += 16) {
            unsigned banks = 0;
            for (int lane = half; lane < half + 16; lane++) {
                const int bank = rft__chunk_at(rft__wgmma_row(lane, r), rft__wgmma_column(lane, r)) / 4 % 32;
                assert_int_equal(banks >> bank & 3, 0);
                banks |= 3u << bank;
            }
        }
    }
    for (int spans = 4; spans <= 8; spans += 4) {
        for (int i = 0; i < spans / 2 * 8; i++) { /* step i / 8, quarter i % 4, first or second piece of the span */
            unsigned banks = 0;
            for (int lane = i % 4 * 8; lane < i % 4 * 8 + 8; lane++) {
                const int column = rft__chunk_span(lane, spans) * 8 + i / 4 % 2 * 4;
                const int bank = rft__chunk_at(rft__chunk_row(lane, i / 8, spans), column) / 4 % 32;
                assert_int_equal(banks >> bank & 15, 0);
                banks |= 15u << bank;
            }
        }
    }
}

static void spans_cover_a_chunk_row_by_row(void **state) {
    (void)state;
    for (int spans = 4; spans <= 8; spans += 4) {
        unsigned char seen[RFT_CHUNK_ROWS][8] = {{0}};
        for (int i = 0; i < spans / 2; i++) {
            int in_row[RFT_CHUNK_ROWS] = {0};
            for (int lane = 0; lane < 32; lane++) {
                const int row = rft__chunk_row(lane, i, spans), span = rft__chunk_span(lane, spans);
                assert_in_range(row, 0, RFT_CHUNK_ROWS - 1);
                assert_in_range(span, 0, spans - 1);
                assert_int_equal(seen[row][span]++, 0);
                in_row[row]++;
            }
            for (int row = 0; row < RFT_CHUNK_ROWS; row++) {
                assert_true(in_row[row] == 0 || in_row[row] == spans);
            }
        }
    }
}

/* ---- units ---- */

static void every_tile_is_one_blocks(void **state) {
    (void)state;
    static unsigned char seen[4 * 310 * 3];
    for (int count = 1; count <= 300; count++) {
        for (int share = 0; share < 4; share++) {
            const int down = share & 1 ? 2 : 1, across = share & 2 ? 2 : 1, m = count % 7 + 1, n = (count - 1) / m + 1;
            const int number[] = {m, n, count % 9 + 1, 3 * m * n}, width = n * across, blocks = down * across;
            memset(seen, 0, sizeof seen);
            for (int unit = 0; unit < number[3]; unit++) {
                for (int rank = 0; rank < blocks; rank++) {
                    const rft__unit u = rft__unit_at(unit, number, down, across, rank);
                    assert_in_range(u.tile_m, 0, m * down - 1);
                    assert_in_range(u.tile_n, 0, width - 1);
                    assert_int_equal(seen[(u.batch * m * down + u.tile_m) * width + u.tile_n]++, 0);
                }
            }
            assert_int_equal(memchr(seen, 0, (size_t)(number[3] * blocks)) == NULL, 1);
        }
    }
}

/* As work_at of the kernel: full units by their clusters, then a tile a cluster. */
static void a_tail_has_the_tiles_that_are_left(void **state) {
    (void)state;
    for (int units = 1; units <= 300; units++) {
        for (int clusters = 1; clusters <= 66; clusters++) {
            const int tail = rft__tail_units(units, clusters), full = units - tail;
            assert_true(tail == 0 || (full % clusters == 0 && tail == units % clusters));
            assert_true(2 * tail <= clusters);
        }
    }
}

static void a_skipped_tile_is_as_one_worked_on(void **state) {
    (void)state;
    for (int stages = 2; stages <= 8; stages++) {
        for (int uses = 0; uses < 40; uses++) {
            rft__ring walked = {uses % stages, (unsigned)uses & 1u}, skipped = walked;
            for (int i = 0; i < uses; i++) {
                rft__ring_next(&walked, stages);
            }
            rft__ring_skip(&skipped, stages, uses);
            assert_int_equal(walked.stage, skipped.stage);
            assert_int_equal(walked.parity, skipped.parity);
        }
    }
}

/* ---- the protocol: barriers as the hardware has them, roles that take steps in random order ---- */

enum { STAGES = 8, BLOCKS = 4, GROUPS = 2, PIECES = 4 /* of a stage: halves of X, halves of W */ };

typedef struct barrier {
    int phase, pending, count, bytes;
} barrier;

typedef struct walker { /* of the loader or of a warpgroup that multiplies */
    int unit, step, held; /* held: a stage read but not released yet, or -1 */
    bool entered;
    rft__ring ring;
    bool ending; /* all steps of the tile are under way, the last is held */
} walker;

typedef struct flight {
    int stage, piece, tag;
    unsigned to; /* blocks */
} flight;

typedef struct machine {
    int blocks, groups, stages, steps, units, share; /* share: 0, 1: W, 2: X, 3: both */
    bool turns;
    barrier full[BLOCKS][STAGES], empty[BLOCKS][STAGES];
    int content[BLOCKS][STAGES][PIECES], turn[BLOCKS][GROUPS], used[BLOCKS];
    walker load[BLOCKS], multiply[BLOCKS][GROUPS];
    flight flying[BLOCKS * STAGES * PIECES];
    int n_flying;
} machine;

static void settle(barrier *b) {
    if (b->pending == 0 && b->bytes == 0) {
        b->phase++;
        b->pending = b->count;
    }
}

static bool passed(const barrier *b, unsigned parity) { return ((unsigned)b->phase & 1u) != parity; }

static void arrive(barrier *b, int bytes) {
    assert_true(b->pending > 0);
    b->pending--;
    b->bytes += bytes;
    settle(b);
}

static bool load_step(machine *m, int block) {
    walker *const w = &m->load[block];
    const int stage = w->ring.stage;
    if (w->unit >= m->units || !passed(&m->empty[block][stage], w->ring.parity ^ 1u)) {
        return false;
    }
    arrive(&m->full[block][stage], PIECES);
    for (int piece = 0; piece < PIECES; piece++) {
        const bool x = piece < 2, shared = m->share & (x ? 2 : 1);
        const int across = m->share & 2 ? 2 : 1, place = x ? block % across : block / across;
        const unsigned with = x ? 3u << block / 2 * 2 : across == 2 ? 5u << block % 2 : 3u;
        if (!shared || piece % 2 == place) {
            const unsigned to = shared ? with : 1u << block;
            m->flying[m->n_flying++] = (flight){stage, piece, w->unit * m->steps + w->step, to};
        }
    }
    rft__ring_next(&w->ring, m->stages);
    if (++w->step == m->steps) {
        w->step = 0;
        w->unit++;
    }
    return true;
}

static bool land_step(machine *m) {
    if (m->n_flying == 0) {
        return false;
    }
    const int i = rand() % m->n_flying;
    const flight f = m->flying[i];
    m->flying[i] = m->flying[--m->n_flying];
    for (int block = 0; block < m->blocks; block++) {
        if (f.to >> block & 1u) {
            m->content[block][f.stage][f.piece] = f.tag;
            m->full[block][f.stage].bytes--;
            settle(&m->full[block][f.stage]);
        }
    }
    return true;
}

static void release(machine *m, int block, walker *w) {
    const int releases = m->share == 3 ? 3 : m->share ? 2 : 1;
    for (int i = 0; w->held >= 0 && i < releases; i++) {
        arrive(&m->empty[block ^ i][w->held], 0);
    }
    w->held = -1;
}

static bool multiply_step(machine *m, int block, int group) {
    walker *const w = &m->multiply[block][group];
    const int stage = w->ring.stage, stride = m->turns ? 2 : 1;
    if (w->unit >= m->units) {
        return false;
    }
    if (w->ending) {
        release(m, block, w);
        rft__ring_skip(&w->ring, m->stages, m->turns ? m->steps : 0);
        *w = (walker){w->unit + stride, 0, -1, false, w->ring, false};
        return true;
    }
    if (m->turns && !w->entered) {
        w->entered = m->turn[block][group] > 0;
        m->turn[block][group] -= w->entered;
        return w->entered;
    }
    if (!passed(&m->full[block][stage], w->ring.parity)) {
        return false;
    }
    for (int piece = 0; piece < PIECES; piece++) {
        assert_int_equal(m->content[block][stage][piece], w->unit * m->steps + w->step);
    }
    m->used[block]++;
    release(m, block, w);
    w->held = stage;
    rft__ring_next(&w->ring, m->stages);
    w->ending = ++w->step == m->steps;
    if (w->ending && m->turns && w->unit + 1 < m->units) {
        m->turn[block][1 - group]++;
    }
    return true;
}

static void start(machine *m) {
    const int releases = (m->share == 3 ? 3 : m->share ? 2 : 1) * (m->turns ? 1 : m->groups);
    for (int block = 0; block < m->blocks; block++) {
        for (int s = 0; s < m->stages; s++) {
            m->full[block][s] = (barrier){0, 1, 1, 0};
            m->empty[block][s] = (barrier){0, releases, releases, 0};
        }
        m->turn[block][0] = 1;
        for (int g = 0; g < m->groups; g++) {
            m->multiply[block][g] = (walker){.unit = m->turns ? g : 0, .held = -1};
            rft__ring_skip(&m->multiply[block][g].ring, m->stages, m->turns ? g * m->steps : 0);
        }
    }
}

static void play(machine *m) {
    start(m);
    int idle = 0;
    while (idle < 200) {
        const int role = rand() % (2 + m->groups), block = rand() % m->blocks;
        const bool moved = role == 0 ? load_step(m, block) : role == 1 ? land_step(m) : multiply_step(m, block, role - 2);
        idle = moved ? 0 : idle + 1;
    }
    for (int block = 0; block < m->blocks; block++) {
        assert_int_equal(m->used[block], m->units * m->steps * (m->turns ? 1 : m->groups));
    }
}

static void barriers_neither_hang_nor_lie(void **state) {
    (void)state;
    srand(1);
    for (int stages = 2; stages <= STAGES; stages++) {
        for (int steps = 1; steps <= 2 * stages + 1; steps += stages > 4 ? 3 : 1) {
            for (int units = 1; units <= 9; units += 2) {
                for (int kind = 0; kind < 8; kind++) {
                    const int share = kind / 2;
                    machine m = {.blocks = share == 3 ? 4 : share ? 2 : 1, .groups = 2, .stages = stages, .steps = steps,
                                 .units = units, .share = share, .turns = kind % 2};
                    play(&m);
                }
            }
        }
    }
}

/* ---- configs ---- */

static rft__problem layer(const rft__cuda_row *r, rft_type y, int64_t n, int64_t k, uint32_t glu, rft_order x_order,
                          rft_order w_order) {
    static const rft_epi_op swiglu[] = {{.kind = RFT_EPI_SWIGLU}};
    rft_linear_desc d = rft_linear_desc_init();
    rft__problem p;
    rft_error err = {.message = ""};
    d.x = d.w.elem = r->x;
    d.y = y;
    d.x_order = x_order;
    d.w.order = w_order;
    d.w.flags = glu | RFT_WEIGHT_VIEW;
    d.w.n = n;
    d.w.k = k;
    d.m_max = 1 << 20;
    d.epi = swiglu;
    d.n_epi = glu != 0;
    d.compute = r->compute == RFT__CUDA_TF32 ? RFT_COMPUTE_TF32 : RFT_COMPUTE_AUTO;
    if (rft__problem_make(&p, &d, &err) != RFT_OK) {
        fail_msg("%s", err.message);
    }
    return p;
}

static void check_config(const rft__problem *p, int64_t m, const rft__cuda_config *c) {
    const rft__cuda_family *const f = c->row->family;
    const rft__cuda_args a = {
        .x = p, .w = p, .m = (int)m, .n = (int)p->w.n, .k = (int)p->w.k, .batch = 1, .ldx = 8192, .ldw = 8192};
    rft__cuda_launch l;
    rft__cuda_map_spec map[RFT_CUDA_MAPS] = {{0}};
    f->launch(&h200, p, c, m, &l);
    f->maps(p, c, &a, map);
    assert_true(l.shared <= (unsigned)h200.shared_block);
    assert_int_equal(l.grid[0] % l.cluster, 0);
    assert_true(l.grid[0] <= (unsigned)h200.sms);
    assert_int_equal(l.number[0] * l.number[1], l.number[3]);
    assert_in_range(l.number[2], 1, l.number[0]);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(map[i].rank, 2);
        assert_in_range(map[i].box[1], 1, 256);
        assert_int_equal(map[i].box[0] * (unsigned)(p->x == RFT_F32 ? 4 : 2), 128);
    }
    for (int i = 3; i < 5; i++) { /* boxes of the last tile: no larger, and as many rows as the kernel is told */
        assert_int_equal(l.number[i + 1], map[i].rank > 0 ? (int)map[i].box[1] : 0);
        assert_true(map[i].box[1] % 8 == 0 && map[i].box[1] <= map[i - 3].box[1]);
    }
    if (map[2].rank > 0) { /* of y: 16 rows of a warp, or 64 of a warpgroup */
        assert_true(p->y != RFT_F32 && map[2].box[0] == 64 && (map[2].box[1] == 16 || map[2].box[1] == 64));
    }
    assert_true(f->seconds(&h200, p, m, c) > 0);
}

static void configs_fit_the_machine(void **state) {
    (void)state;
    static const int64_t ms[] = {1, 65, 128, 129, 257, 1088, 8192};
    static const uint32_t glus[] = {0, RFT_WEIGHT_GLU_HALVES, RFT_WEIGHT_GLU_INTERLEAVED};
    int total = 0;
    for (int i = 0; i < rft__cuda_row_count; i++) {
        const rft__cuda_row *const r = &rft__cuda_rows[i];
        for (int kind = 0; r->family == &rft__cuda_gemm_sm90 && kind < 24; kind++) {
            const rft_order x = kind % 2 ? RFT_MN_CONTIGUOUS : RFT_K_CONTIGUOUS;
            const rft_order w = kind / 2 % 2 ? RFT_MN_CONTIGUOUS : RFT_K_CONTIGUOUS;
            const rft__problem p = layer(r, kind < 12 ? RFT_F32 : RFT_BF16, 2112, 7168, glus[kind / 4 % 3], x, w);
            for (size_t j = 0; j < sizeof ms / sizeof ms[0]; j++) {
                rft__cuda_config list[RFT__CUDA_CONFIGS];
                char reason[RFT__CUDA_REASON] = "";
                const int n = r->family->configs(&h200, &p, ms[j], r, list, reason);
                assert_int_equal(n == 0 && reason[0] == '\0' && kind == 0, 0);
                for (int c = 0; c < n; c++) {
                    check_config(&p, ms[j], &list[c]);
                }
                total += n;
            }
        }
    }
    assert_true(total > 1000);
}

static void operands_that_tma_cannot_take_are_refused(void **state) {
    (void)state;
    const rft__cuda_row row = {.family = &rft__cuda_gemm_sm90, .x = RFT_BF16, .w = RFT_BF16, .compute = RFT__CUDA_BF16,
                               .bm = 128, .bn = 256, .bk = 64, .warps = 12};
    const rft__cuda_config c = {.row = &row, .split = 1, .cluster = 1, .stages = 4};
    const rft__problem p = layer(&row, RFT_F32, 256, 256, 0, RFT_K_CONTIGUOUS, RFT_K_CONTIGUOUS);
    rft__cuda_args a = {.x = (void *)4096, .w = (void *)4096, .ldx = 256, .ldw = 264};
    assert_null(row.family->unsuited(&p, &c, &a));
    a.ldx = 260;
    assert_non_null(row.family->unsuited(&p, &c, &a));
    a.ldx = 256, a.w = (void *)4104;
    assert_non_null(row.family->unsuited(&p, &c, &a));
}

static void an_up_half_between_pieces_is_refused(void **state) {
    (void)state;
    const rft__cuda_row row = {.family = &rft__cuda_gemm_sm90, .x = RFT_F16, .w = RFT_F16, .compute = RFT__CUDA_F16,
                               .bm = 64, .bn = 128, .bk = 64, .warps = 12};
    for (int64_t n = 200; n <= 224; n += 2) {
        rft__cuda_config list[RFT__CUDA_CONFIGS];
        char reason[RFT__CUDA_REASON] = "";
        const rft__problem p = layer(&row, RFT_F32, n, 384, RFT_WEIGHT_GLU_HALVES, RFT_K_CONTIGUOUS, RFT_MN_CONTIGUOUS);
        assert_int_equal(row.family->configs(&h200, &p, 8, &row, list, reason) > 0, n / 2 % 8 == 0);
        assert_int_equal(reason[0] == '\0', n / 2 % 8 == 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(staged_elements_have_places_of_their_own),
        cmocka_unit_test(staging_meets_no_bank_conflict),
        cmocka_unit_test(spans_cover_a_chunk_row_by_row),
        cmocka_unit_test(every_tile_is_one_blocks),
        cmocka_unit_test(a_tail_has_the_tiles_that_are_left),
        cmocka_unit_test(a_skipped_tile_is_as_one_worked_on),
        cmocka_unit_test(barriers_neither_hang_nor_lie),
        cmocka_unit_test(configs_fit_the_machine),
        cmocka_unit_test(operands_that_tma_cannot_take_are_refused),
        cmocka_unit_test(an_up_half_between_pieces_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
