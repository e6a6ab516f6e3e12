/* SPDX-License-Identifier: Apache-2.0
 *
 * test_cuda_gemv.c - the GEMV: what its host half offers covers every unit and chunk once, fits the device, and its text, run on
 * the CPU, gives exact sums at every ragged edge, feed, cut of k and pairing of gate and up.
 */
#include "cuda_emulate.h"

#include <math.h>

enum { ROWS, LINES, FEED, X_VECTORS }; /* of option[], as in gemv.c */
enum { ELEMENT, ASYNC, BULK };
enum { SCALAR, VECTORS };

#define ROW(x, w) {"gemv_" #x "_" #w, &rft__cuda_gemv, RFT_##x, RFT_##w, RFT__CUDA_F32, 8, 8, 256, 8, 80, 1, 0}
static const rft__cuda_row row_16 = ROW(BF16, BF16), row_32 = ROW(F32, F32);
static const rft__cuda_row row_wide_x = ROW(F32, F16), row_wide_w = ROW(F16, F32);

static rft__cuda_facts device(int arch, int sms) {
    return (rft__cuda_facts){.arch = arch, .sms = sms, .shared_block = arch == 89 ? 101376 : 232448,
                             .shared_sm = arch == 89 ? 102400 : 233472, .l2 = 60 << 20, .read_bps = 4.3e12, .l2_bps = 7e12,
                             .flops_16 = 8e14, .flops_tf32 = 4e14, .flops_f32 = 5.1e13};
}

static rft__problem problem_of(int64_t n, int64_t k, int64_t batch, rft__glu glu, const rft__cuda_row *row) {
    const product p = {.m = 8, .n = n, .k = k, .batch = batch, .x = row->x, .w = row->w, .y = RFT_F32, .glu = glu};
    return emulate_problem(&p);
}

/* ---- the host half ---- */

/* The walk of gemv_rows.cuh: unit = slot, slot + slots, ...; chunks of a part: lines begin..end. */
static void visit(const rft__problem *p, const rft__cuda_config *c, const rft__cuda_launch *l, unsigned char *units,
                  unsigned char *lines) {
    const int groups = c->row->warps / c->split;
    const int64_t total = (int64_t)l->number[0] * p->batch, slots = (int64_t)groups * l->grid[0];
    for (int64_t slot = 0; slot < slots; slot++) {
        for (int64_t u = slot; u < total; u += slots) {
            units[u]++;
        }
    }
    const int64_t per_chunk = c->option[FEED] == ELEMENT ? 1 : 16 / rft__cuda_size(c->row->w), n = (p->w.k / per_chunk + 31) / 32;
    for (int part = 0; part < c->split; part++) {
        for (int64_t i = n * part / c->split; i < n * (part + 1) / c->split; i++) {
            lines[i]++;
        }
    }
}

static void check_config(const rft__cuda_facts *f, const rft__problem *p, const rft__cuda_config *c) {
    static unsigned char units[1 << 16], lines[1 << 16];
    rft__cuda_launch l;
    memset(units, 0, sizeof units);
    memset(lines, 0, sizeof lines);
    rft__cuda_gemv.launch(f, p, c, 1, &l);
    assert_true(l.grid[0] >= 1 && l.grid[1] == 1 && l.grid[2] == 1 && l.block == 256);
    assert_true(l.shared <= (unsigned)f->shared_block);
    assert_true(f->arch < 90 || 2 * (l.shared + 1024) <= (unsigned)f->shared_sm);
    visit(p, c, &l, units, lines);
    const int columns = c->option[ROWS] / (p->epi.n_out < p->w.n ? 2 : 1);
    assert_true((int64_t)l.number[0] * columns >= p->epi.n_out && ((int64_t)l.number[0] - 1) * columns < p->epi.n_out);
    for (int64_t u = 0; u < (int64_t)l.number[0] * p->batch; u++) {
        assert_int_equal(units[u], 1);
    }
    const int64_t per_chunk = c->option[FEED] == ELEMENT ? 1 : 16 / rft__cuda_size(c->row->w);
    for (int64_t i = 0; i < (p->w.k / per_chunk + 31) / 32; i++) {
        assert_int_equal(lines[i], 1);
    }
}

static void every_unit_and_line_once(void **state) {
    (void)state;
    for (int sms = 1; sms <= 200; sms += 7) {
        for (int64_t n = 1; n <= 3000; n += 331 + sms) {
            for (int64_t k = 1; k <= 20000; k = k * 3 + 5) {
                const int64_t glu = n % 2 == 0 ? n % 3 : 0, batch = 1 + n % 3;
                const rft__cuda_row *const row = k % 2 ? &row_16 : &row_wide_w;
                const rft__cuda_facts f = device(n % 5 == 0 ? 89 : 90, sms);
                const rft__problem p = problem_of(n, k, batch, (rft__glu)glu, row);
                rft__cuda_config c[RFT__CUDA_CONFIGS];
                char reason[RFT__CUDA_REASON] = "";
                const int count = rft__cuda_gemv.configs(&f, &p, 1 + n % 8, row, c, reason);
                assert_true(count > 0 && count <= RFT__CUDA_CONFIGS);
                for (int i = 0; i < count; i++) {
                    check_config(&f, &p, &c[i]);
                    assert_true(rft__cuda_gemv.seconds(&f, &p, 1, &c[i]) > 1e-6);
                }
            }
        }
    }
}

static void too_many_rows_are_refused(void **state) {
    (void)state;
    const rft__cuda_facts f = device(90, 132);
    const rft__problem p = problem_of(4096, 4096, 1, RFT__GLU_NONE, &row_16);
    rft__cuda_config c[RFT__CUDA_CONFIGS];
    char reason[RFT__CUDA_REASON] = "";
    assert_int_equal(rft__cuda_gemv.configs(&f, &p, 9, &row_16, c, reason), 0);
    assert_non_null(strstr(reason, "m = 9"));
}

static void operands_off_16_bytes_are_unsuited(void **state) {
    (void)state;
    const rft__problem p = problem_of(64, 64, 1, RFT__GLU_NONE, &row_16);
    const rft__cuda_config vectors = {.row = &row_16, .m = 2, .split = 1, .stages = 6, .option = {8, 1, BULK, VECTORS}};
    rft__cuda_config scalar_x = vectors, any = vectors;
    scalar_x.option[X_VECTORS] = SCALAR;
    any.option[FEED] = ELEMENT, any.option[X_VECTORS] = SCALAR;
    const rft__cuda_args good = {.x = (void *)4096, .w = (void *)4096, .ldx = 64, .ldw = 64, .m = 2, .n = 64, .k = 64};
    rft__cuda_args bad_x = good, bad_w = good;
    bad_x.ldx = 65, bad_w.w = (void *)4098;
    assert_null(rft__cuda_gemv.unsuited(&p, &vectors, &good));
    assert_non_null(rft__cuda_gemv.unsuited(&p, &vectors, &bad_x));
    assert_null(rft__cuda_gemv.unsuited(&p, &scalar_x, &bad_x));
    assert_non_null(rft__cuda_gemv.unsuited(&p, &scalar_x, &bad_w));
    assert_null(rft__cuda_gemv.unsuited(&p, &any, &bad_w));
    bad_x.m = 1;
    assert_null(rft__cuda_gemv.unsuited(&p, &vectors, &bad_x));
    rft__problem packed = p;
    packed.w_dynamic = false;
    assert_null(rft__cuda_gemv.unsuited(&packed, &scalar_x, &bad_w));
}

/* Of a plan of few rows the cheapest config for operands off 16 bytes has no rows compiled in, as cuda_choose.c wants it; with
 * a packed W it still reads W in lines. */
static void any_operand_is_served(void **state) {
    (void)state;
    const rft__cuda_facts f = device(90, 132);
    const rft__cuda_args odd = {.x = (void *)4098, .w = (void *)4098, .ldx = 4097, .ldw = 4097, .m = 8, .n = 4096, .k = 4096};
    for (int dynamic = 0; dynamic < 2; dynamic++) {
        rft__problem p = problem_of(4096, 4096, 1, RFT__GLU_NONE, &row_16);
        p.w_dynamic = dynamic;
        rft__cuda_config c[RFT__CUDA_CONFIGS];
        char reason[RFT__CUDA_REASON] = "";
        const int count = rft__cuda_gemv.configs(&f, &p, p.m_max, &row_16, c, reason);
        int best = -1;
        double least = 1.0;
        for (int i = 0; i < count; i++) {
            const double seconds = rft__cuda_gemv.seconds(&f, &p, p.m_max, &c[i]);
            if (rft__cuda_gemv.unsuited(&p, &c[i], &odd) == NULL && seconds < least) {
                best = i, least = seconds;
            }
        }
        assert_true(best >= 0);
        assert_int_equal(c[best].m, 0);
        assert_int_equal(c[best].option[FEED], dynamic ? ELEMENT : BULK);
    }
}

/* Measured on one H200, launches in a graph, weights cold: what the cheapest config is said to take is what it takes. */
static void seconds_are_those_of_an_h200(void **state) {
    (void)state;
    static const struct {
        const rft__cuda_row *row;
        int m;
        int64_t n, k;
        double us;
    } measured[] = {
        {&row_16, 1, 256, 7168, 2.12},   {&row_16, 1, 1024, 4096, 3.01},  {&row_16, 1, 2112, 7168, 8.09},
        {&row_16, 1, 4096, 4096, 8.34},  {&row_16, 1, 28672, 4096, 53.3}, {&row_16, 2, 24576, 1536, 18.96},
        {&row_16, 4, 4096, 4096, 9.32},  {&row_16, 8, 4096, 4096, 16.3},  {&row_32, 1, 4096, 4096, 15.6},
        {&row_32, 4, 28672, 4096, 110.1}, {&row_32, 8, 4096, 4096, 21.9},
    };
    const rft__cuda_facts f = device(90, 132);
    for (size_t i = 0; i < sizeof measured / sizeof *measured; i++) {
        const rft__problem p = problem_of(measured[i].n, measured[i].k, 1, RFT__GLU_NONE, measured[i].row);
        rft__cuda_config c[RFT__CUDA_CONFIGS];
        char reason[RFT__CUDA_REASON] = "";
        const int count = rft__cuda_gemv.configs(&f, &p, measured[i].m, measured[i].row, c, reason);
        double least = 1.0;
        for (int j = 0; j < count; j++) {
            const double seconds = rft__cuda_gemv.seconds(&f, &p, measured[i].m, &c[j]);
            least = seconds < least ? seconds : least;
        }
        if (fabs(least * 1e6 / measured[i].us - 1.0) > 0.1) {
            fail_msg("n=%lld k=%lld m=%d: %.2f us, measured %.2f", (long long)p.w.n, (long long)p.w.k, measured[i].m, least * 1e6,
                     measured[i].us);
        }
    }
}

/* ---- the text ---- */

static void run_config(const rft__cuda_row *r, product p, int m, int split, int stages, const int option[4]) {
    char what[128];
    const rft__cuda_config c = {.row = r, .m = m, .split = split, .cluster = 1, .stages = stages,
                                .option = {option[0], option[1], option[2], option[3]}};
    p.x = r->x, p.w = r->w, p.y = RFT_F32;
    snprintf(what, sizeof what, "%s m%d split%d stages%d rows%d lines%d feed%d vectors%d", r->name, m, split, stages, option[0],
             option[1], option[2], option[3]);
    emulate_product(&rft__cuda_gemv, &p, &c, what);
}

typedef struct scene {
    const rft__cuda_row *row;
    product p;
    int m, split, stages, option[4];
} scene;

static const scene scenes[] = {
    /* one row of x; units beyond the last row, lines beyond the last chunk, elements behind it */
    {&row_16, {.m = 1, .n = 67, .k = 1000, .batch = 1}, 1, 1, 2, {8, 1, BULK, VECTORS}},
    {&row_16, {.m = 1, .n = 67, .k = 1003, .batch = 1}, 1, 2, 2, {4, 2, BULK, VECTORS}},
    {&row_16, {.m = 1, .n = 35, .k = 2104, .batch = 2}, 1, 8, 3, {8, 1, BULK, VECTORS}},
    {&row_16, {.m = 1, .n = 9, .k = 2056, .batch = 1}, 1, 4, 2, {2, 4, BULK, VECTORS}},
    {&row_16, {.m = 1, .n = 5, .k = 2600, .batch = 1}, 1, 1, 2, {1, 8, BULK, VECTORS}},
    {&row_16, {.m = 1, .n = 1, .k = 5, .batch = 1}, 1, 1, 3, {4, 1, BULK, VECTORS}},
    {&row_16, {.m = 1, .n = 130, .k = 520, .batch = 1}, 1, 2, 4, {4, 1, ASYNC, VECTORS}},
    {&row_16, {.m = 1, .n = 33, .k = 777, .batch = 1}, 1, 1, 2, {8, 1, ASYNC, VECTORS}},
    /* more rows of x, some masked */
    {&row_16, {.m = 8, .n = 37, .k = 1032, .batch = 1}, 8, 4, 2, {4, 1, BULK, VECTORS}},
    {&row_16, {.m = 5, .n = 18, .k = 300, .batch = 3}, 5, 1, 2, {4, 1, BULK, VECTORS}},
    {&row_16, {.m = 3, .n = 21, .k = 640, .batch = 1}, 3, 2, 2, {8, 1, ASYNC, VECTORS}},
    {&row_16, {.m = 3, .n = 21, .k = 129, .batch = 1, .m_max = 7, .pad = 1, .offset = 1}, 0, 4, 8, {2, 1, ELEMENT, SCALAR}},
    {&row_16, {.m = 2, .n = 21, .k = 29, .batch = 2, .pad = 3, .offset = 1}, 2, 1, 8, {4, 1, ELEMENT, SCALAR}},
    /* x along m, or in no vectors */
    {&row_16, {.m = 2, .n = 12, .k = 264, .batch = 1, .x_mn = true}, 2, 1, 2, {8, 1, BULK, SCALAR}},
    {&row_16, {.m = 2, .n = 12, .k = 527, .batch = 1, .m_max = 8}, 0, 2, 4, {4, 1, BULK, SCALAR}},
    {&row_16, {.m = 7, .n = 12, .k = 100, .batch = 1, .x_mn = true, .pad = 1, .offset = 1}, 7, 1, 8, {4, 1, ELEMENT, SCALAR}},
    /* types */
    {&row_32, {.m = 1, .n = 41, .k = 1028, .batch = 1}, 1, 2, 3, {8, 1, BULK, VECTORS}},
    {&row_32, {.m = 6, .n = 22, .k = 515, .batch = 1}, 6, 1, 3, {4, 1, ASYNC, VECTORS}},
    {&row_wide_x, {.m = 2, .n = 30, .k = 523, .batch = 1}, 2, 2, 2, {4, 2, BULK, VECTORS}},
    {&row_wide_w, {.m = 4, .n = 30, .k = 523, .batch = 1}, 4, 4, 2, {8, 1, BULK, VECTORS}},
    /* gate and up */
    {&row_16, {.m = 1, .n = 58, .k = 808, .batch = 1, .glu = RFT__GLU_HALVES}, 1, 1, 3, {8, 1, BULK, VECTORS}},
    {&row_16, {.m = 1, .n = 58, .k = 808, .batch = 1, .glu = RFT__GLU_INTERLEAVED}, 1, 2, 2, {4, 1, BULK, VECTORS}},
    {&row_16, {.m = 8, .n = 30, .k = 264, .batch = 2, .glu = RFT__GLU_HALVES}, 8, 1, 2, {4, 1, ASYNC, VECTORS}},
    {&row_16, {.m = 3, .n = 10, .k = 70, .batch = 1, .glu = RFT__GLU_INTERLEAVED, .pad = 1}, 3, 1, 8, {2, 1, ELEMENT, SCALAR}},
    /* w along n */
    {&row_16, {.m = 1, .n = 77, .k = 131, .batch = 1, .w_mn = true, .pad = 1, .offset = 1}, 1, 8, 0, {1, 1, ELEMENT, SCALAR}},
    {&row_32, {.m = 5, .n = 40, .k = 70, .batch = 2, .m_max = 6, .w_mn = true, .x_mn = true}, 0, 8, 0, {1, 1, ELEMENT, SCALAR}},
    {&row_16, {.m = 2, .n = 70, .k = 65, .batch = 1, .w_mn = true, .glu = RFT__GLU_HALVES}, 2, 8, 0, {1, 1, ELEMENT, SCALAR}},
    {&row_16, {.m = 2, .n = 70, .k = 3, .batch = 1, .w_mn = true, .glu = RFT__GLU_INTERLEAVED}, 2, 8, 0, {1, 1, ELEMENT, SCALAR}},
};

static void every_feed_and_edge(void **state) {
    (void)state;
    need_compiler();
    for (size_t i = 0; i < sizeof scenes / sizeof *scenes; i++) {
        run_config(scenes[i].row, scenes[i].p, scenes[i].m, scenes[i].split, scenes[i].stages, scenes[i].option);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_unit_and_line_once),
        cmocka_unit_test(too_many_rows_are_refused),
        cmocka_unit_test(operands_off_16_bytes_are_unsuited),
        cmocka_unit_test(any_operand_is_served),
        cmocka_unit_test(seconds_are_those_of_an_h200),
        cmocka_unit_test(every_feed_and_edge),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
