/* SPDX-License-Identifier: Apache-2.0
 *
 * check_rows.c - see check_rows.h. What a list of problems does not spell out (types, gaps, scale, epilogue) is drawn from the
 * seed and the problem's number. Each problem runs twice, with its operands against the other ends of their guard pages.
 */
#include "check_rows.h"

#include "cli/check_formats.h"

#include <string.h>

#define COUNT(a) (sizeof(a) / sizeof *(a))

static const rft_type types[] = {RFT_F32, RFT_BF16, RFT_F16};

/* Every op alone or first, and behind and before others. */
static const char *const epilogues[] = {
    "none",
    "bias",
    "bias@bf16:gelu_tanh",
    "bias:gelu:add@f16",
    "silu:mul@bf16",
    "relu:add=0.5",
    "clamp=-0.5/0.5",
    "row_scale@f16:col_scale",
    "mask:scale=3",
    "bias:dropout=0.25",
    "scale=-1:bias:silu:mul:add=2@bf16:clamp=-6/6",
    "swiglu",
    "bias@f16:geglu:add",
    "row_scale:geglu_tanh:mask:mul@f16",
};

/* A hash of the seed and a number: neighbours lie a step of the generator apart. */
static uint64_t draw(uint64_t seed, uint64_t number) {
    uint64_t state = seed + number * 0x9e3779b97f4a7c15u;
    return check_random_next(&state);
}

static uint64_t roll(uint64_t *bits, uint64_t sides) {
    const uint64_t result = *bits % sides;
    *bits /= sides;
    return result;
}

static void run_once(row_session *s, const check_problem *p, row_tally *tally) {
    check_result r;
    check_run(s->checker, p, &r);
    if (r.verdict == CHECK_REFUSED) {
        tally->refused++;
        return;
    }
    tally->run++;
    tally->worst = r.worst > tally->worst ? r.worst : tally->worst;
    if (r.verdict != CHECK_RIGHT) {
        tally->failed++;
        s->failure(p, &r);
    }
}

/* Seeds 2 i and 2 i + 1 differ in the ends of the guard pages alone. */
static void run_problem(row_session *s, check_problem *p, row_tally *tally) {
    uint64_t bits = draw(s->seed, (uint64_t)s->count);
    if (s->count++ % s->thin != 0) {
        return;
    }
    char why[CLI_WHY];
    parse_epilogue(epilogues[roll(&bits, COUNT(epilogues))], &p->epi, why);
    check_8bit(p, bits);
    p->n += epilogue_is_glu(&p->epi) ? p->n % 2 : 0;
    p->seed = bits & ~(uint64_t)1;
    run_once(s, p, tally);
    p->seed |= 1;
    run_once(s, p, tally);
}

/* The op of a row's name tells whether it reads W where it lies, and in which order. */
static bool in_place(const rft_kernel_info *row, rft_order *w_order) {
    const bool columns = row != NULL && strncmp(row->name, "axpy_", 5) == 0;
    *w_order = columns ? RFT_MN_CONTIGUOUS : RFT_K_CONTIGUOUS;
    return columns || (row != NULL && strncmp(row->name, "dot_", 4) == 0);
}

/* A row of codes takes formats that have them; what is chosen freely takes any now and then, as x and y do 8 bits. */
static void draw_codes(const rft_kernel_info *row, uint64_t bits, check_problem *p) {
    const rft_type w = row != NULL ? check_code_format(row, bits) : bits % 4 == 0 ? check_any_format(bits / 8) : (rft_type)0;
    if (w != 0) {
        p->w = w;
        p->compute = row == NULL ? (bits / 4 % 2 == 0 ? RFT_COMPUTE_I8 : RFT_COMPUTE_AUTO)
                                 : row->x == RFT_I8 ? RFT_COMPUTE_I8 : RFT_COMPUTE_AUTO;
    }
    check_low_bit(p);
    check_draw_8bit(p, row, bits / 64);
}

/* Types and orders that the row serves. */
static void draw_operands(const row_session *s, const rft_kernel_info *row, check_problem *p) {
    uint64_t bits = draw(~s->seed, (uint64_t)s->count);
    const bool dot = row != NULL && row->x == RFT_BF16, any_w = row == NULL || (!dot && row->w == RFT_F32);
    p->x = dot ? row->x : types[roll(&bits, COUNT(types))];
    p->w = any_w ? types[roll(&bits, COUNT(types))] : row->w;
    p->y = types[roll(&bits, COUNT(types))];
    p->x_order = (rft_order)roll(&bits, 2);
    p->w_order = (rft_order)roll(&bits, 2);
    const uint64_t way = roll(&bits, 4);
    p->dynamic = way == 1 && (any_w || dot);
    p->view = way == 2 && (any_w || dot);
    rft_order w_order;
    if (in_place(row, &w_order)) {
        p->w = row->w;
        p->w_order = w_order;
        p->dynamic = way % 2 == 1;
        p->view = !p->dynamic;
    }
    p->batch = roll(&bits, 6) == 0 ? 3 : 1;
    p->threads = roll(&bits, 3) == 0 ? 3 : 1;
    draw_codes(row, draw(s->seed ^ 0xc0de5, (uint64_t)s->count), p);
}

/* nr: of the row. Every m round the heights of tiles, every n round the widths of strips, every k round K granules. */
static void check_sizes(row_session *s, const rft_kernel_info *row, const char *isa, int64_t nr, row_tally *tally) {
    static const int64_t rows[] = {1, 2, 3, 5, 7, 8, 9, 13, 14, 15, 16, 17, 27, 28, 29, 31, 33, 63, 64, 65, 129};
    static const int64_t depths[] = {0, 1, 2, 3, 4, 5, 31, 64, 257};
    const int64_t columns[] = {1, 15, nr - 1, nr, nr + 1, 2 * nr - 15, 2 * nr + 17};
    for (size_t m = 0; m < COUNT(rows); m++) {
        for (size_t n = 0; n < COUNT(columns); n++) {
            for (size_t k = 0; k < COUNT(depths); k++) {
                check_problem p = {
                    .kernel = row != NULL ? row->name : NULL, .isa = isa, .m = rows[m], .n = columns[n], .k = depths[k]};
                draw_operands(s, row, &p);
                run_problem(s, &p, tally);
            }
        }
    }
}

/* Three ways to give W, both orders of X and W, all types; number: 0..WAYS-1. */
enum { WAYS = 3 * 2 * 2 * 3 * 3 * 3 };

static void set_way(uint64_t number, check_problem *p) {
    const uint64_t way = roll(&number, 3);
    p->dynamic = way == 1;
    p->view = way == 2;
    p->x_order = (rft_order)roll(&number, 2);
    p->w_order = (rft_order)roll(&number, 2);
    p->x = types[roll(&number, 3)];
    p->w = types[roll(&number, 3)];
    p->y = types[roll(&number, 3)];
}

static void check_ways(row_session *s, const rft_kernel_info *row, const char *isa, row_tally *tally) {
    static const int64_t rows[] = {1, 3, 16, 19, 41}, columns[] = {33, 77, 66}, depths[] = {37, 70};
    for (uint64_t i = 0; i < WAYS; i++) {
        check_problem p = {.kernel = row != NULL ? row->name : NULL,
                           .isa = isa,
                           .m = rows[i % COUNT(rows)],
                           .n = columns[i / 2 % COUNT(columns)],
                           .k = depths[i / 5 % COUNT(depths)],
                           .batch = i % 7 == 0 ? 2 : 1,
                           .threads = i % 2 == 0 ? 1 : 3};
        set_way(i, &p);
        draw_codes(row, draw(s->seed ^ 0x3a75, i), &p);
        run_problem(s, &p, tally);
    }
}

/* Several passes over K; more rows than are packed at a time; more columns than have their sums in cache; K over threads; rows
 * that lie pages apart. */
static void check_deep(row_session *s, const rft_kernel_info *row, const char *isa, row_tally *tally) {
    static const struct {
        int64_t m, n, k;
        uint32_t threads;
    } sizes[] = {{1, 65, 3001, 1},  {29, 130, 1603, 2}, {3, 17, 4099, 8},
                 {15, 16, 2050, 7}, {301, 797, 421, 1}, {130, 40, 1111, 3}, {161, 50, 2048, 2}};
    for (size_t i = 0; i < COUNT(sizes); i++) {
        check_problem p = {
            .kernel = row != NULL ? row->name : NULL, .isa = isa, .m = sizes[i].m, .n = sizes[i].n, .k = sizes[i].k};
        draw_operands(s, row, &p);
        p.batch = 1;
        p.threads = sizes[i].threads;
        run_problem(s, &p, tally);
    }
}

void check_row(row_session *s, const rft_kernel_info *row, const char *isa, row_tally *tally) {
    check_sizes(s, row, isa, row->nr, tally);
    check_ways(s, row, isa, tally);
    check_deep(s, row, isa, tally);
}

void check_row_ways(row_session *s, const rft_kernel_info *row, const char *isa, row_tally *tally) {
    check_ways(s, row, isa, tally);
}

void check_chosen(row_session *s, const char *isa, row_tally *tally) {
    check_sizes(s, NULL, isa, 48, tally);
    check_ways(s, NULL, isa, tally);
    check_deep(s, NULL, isa, tally);
}
