/* SPDX-License-Identifier: Apache-2.0
 *
 * test_cuda_gemv.c - the GEMV: what its host half offers covers every unit and chunk once, fits the device, and its text, run on
 * the CPU, gives exact sums at every ragged edge, feed, cut of k and pairing of gate and up.
 */
#include "cuda_emulate.h"

enum { ROWS, LINES, FEED, FLAGS }; /* of option[], as in gemv.c */
enum { ELEMENT, REGISTERS, ASYNC, BULK };
enum { X16 = 1, LATE = 2, L2 = 4 };

#define ROW(x, w) {"gemv_" #x "_" #w, &rft__cuda_gemv, RFT_##x, RFT_##w, RFT__CUDA_F32, 8, 4, 256, 8, 80, 1, 0}
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
    const rft__cuda_config vectors = {.row = &row_16, .m = 2, .split = 1, .stages = 6, .option = {4, 1, BULK, X16}};
    rft__cuda_config scalar_x = vectors, any = vectors;
    scalar_x.option[FLAGS] = 0;
    any.option[FEED] = ELEMENT, any.option[FLAGS] = 0;
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
}

/* ---- the text ---- */

static bool no_compiler(void) {
    if (!emulate_have_compiler()) {
        print_message("no cc here: the kernel's text is not run\n");
        return true;
    }
    return false;
}

static void run_config(const rft__cuda_row *r, product p, int m, int split, int stages, const int option[4]) {
    char what[128];
    const rft__cuda_config c = {.row = r, .m = m, .split = split, .cluster = 1, .stages = stages,
                                .option = {option[0], option[1], option[2], option[3]}};
    p.x = r->x, p.w = r->w, p.y = RFT_F32;
    snprintf(what, sizeof what, "%s m%d split%d stages%d rows%d lines%d feed%d flags%d", r->name, m, split, stages, option[0],
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
    {&row_16, {.m = 1, .n = 67, .k = 1000, .batch = 1}, 1, 1, 3, {4, 1, BULK, X16 | LATE}},
    {&row_16, {.m = 1, .n = 67, .k = 1003, .batch = 1}, 1, 2, 2, {4, 2, BULK, X16 | LATE | L2}},
    {&row_16, {.m = 1, .n = 35, .k = 2104, .batch = 2}, 1, 8, 2, {4, 1, BULK, X16}},
    {&row_16, {.m = 1, .n = 9, .k = 2056, .batch = 1}, 1, 4, 2, {1, 2, BULK, X16 | LATE}},
    {&row_16, {.m = 1, .n = 1, .k = 5, .batch = 1}, 1, 1, 3, {4, 1, BULK, X16}},
    {&row_16, {.m = 1, .n = 130, .k = 520, .batch = 1}, 1, 2, 4, {4, 1, ASYNC, X16}},
    {&row_16, {.m = 1, .n = 33, .k = 777, .batch = 1}, 1, 1, 3, {4, 1, REGISTERS, X16}},
    /* more rows of x, some masked */
    {&row_16, {.m = 8, .n = 37, .k = 1032, .batch = 1}, 8, 4, 2, {4, 1, BULK, X16 | LATE}},
    {&row_16, {.m = 5, .n = 18, .k = 300, .batch = 3}, 5, 1, 2, {4, 1, BULK, X16}},
    {&row_16, {.m = 3, .n = 21, .k = 640, .batch = 1}, 3, 2, 2, {2, 2, ASYNC, X16}},
    {&row_16, {.m = 3, .n = 21, .k = 129, .batch = 1, .pad = 1, .offset = 1}, 0, 4, 8, {2, 1, ELEMENT, 0}},
    {&row_16, {.m = 2, .n = 21, .k = 29, .batch = 2, .pad = 3, .offset = 1}, 2, 1, 8, {4, 1, ELEMENT, 0}},
    /* x along m */
    {&row_16, {.m = 2, .n = 12, .k = 264, .batch = 1, .x_mn = true}, 2, 1, 2, {4, 1, BULK, 0}},
    {&row_16, {.m = 7, .n = 12, .k = 100, .batch = 1, .x_mn = true, .pad = 1, .offset = 1}, 7, 1, 8, {4, 1, ELEMENT, 0}},
    /* types */
    {&row_32, {.m = 1, .n = 41, .k = 1028, .batch = 1}, 1, 2, 3, {4, 1, BULK, X16}},
    {&row_32, {.m = 6, .n = 22, .k = 515, .batch = 1}, 6, 1, 3, {4, 1, ASYNC, X16}},
    {&row_wide_x, {.m = 2, .n = 30, .k = 523, .batch = 1}, 2, 2, 2, {2, 2, BULK, X16 | LATE}},
    {&row_wide_w, {.m = 4, .n = 30, .k = 523, .batch = 1}, 4, 4, 2, {4, 1, BULK, X16}},
    /* gate and up */
    {&row_16, {.m = 1, .n = 58, .k = 808, .batch = 1, .glu = RFT__GLU_HALVES}, 1, 1, 3, {4, 1, BULK, X16 | LATE}},
    {&row_16, {.m = 1, .n = 58, .k = 808, .batch = 1, .glu = RFT__GLU_INTERLEAVED}, 1, 2, 2, {4, 1, BULK, X16}},
    {&row_16, {.m = 8, .n = 30, .k = 264, .batch = 2, .glu = RFT__GLU_HALVES}, 8, 1, 2, {4, 1, ASYNC, X16}},
    {&row_16, {.m = 3, .n = 10, .k = 70, .batch = 1, .glu = RFT__GLU_INTERLEAVED, .pad = 1}, 3, 1, 8, {2, 1, ELEMENT, 0}},
    /* w along n */
    {&row_16, {.m = 1, .n = 77, .k = 131, .batch = 1, .w_mn = true, .pad = 1, .offset = 1}, 1, 8, 0, {1, 1, ELEMENT, 0}},
    {&row_32, {.m = 5, .n = 40, .k = 70, .batch = 2, .w_mn = true, .x_mn = true}, 0, 8, 0, {1, 1, ELEMENT, 0}},
    {&row_16, {.m = 2, .n = 70, .k = 65, .batch = 1, .w_mn = true, .glu = RFT__GLU_HALVES}, 2, 8, 0, {1, 1, ELEMENT, 0}},
    {&row_16, {.m = 2, .n = 70, .k = 3, .batch = 1, .w_mn = true, .glu = RFT__GLU_INTERLEAVED}, 2, 8, 0, {1, 1, ELEMENT, 0}},
};

static void every_feed_and_edge(void **state) {
    (void)state;
    if (no_compiler()) {
        skip();
    }
    for (size_t i = 0; i < sizeof scenes / sizeof *scenes; i++) {
        run_config(scenes[i].row, scenes[i].p, scenes[i].m, scenes[i].split, scenes[i].stages, scenes[i].option);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_unit_and_line_once),
        cmocka_unit_test(too_many_rows_are_refused),
        cmocka_unit_test(operands_off_16_bytes_are_unsuited),
        cmocka_unit_test(every_feed_and_edge),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
