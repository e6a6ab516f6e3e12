/* SPDX-License-Identifier: Apache-2.0
 *
 * test_epi.c - the list of an epilogue: what is refused and why, the canonical form, operands of a run, traffic, text.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "epilogue/epi.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define BIAS {.kind = RFT_EPI_BIAS, .type = RFT_F32}
#define SWIGLU {.kind = RFT_EPI_SWIGLU}

typedef struct refusal {
    rft_epi_op op[2];
    uint32_t count;
    int64_t n;
    bool glu;
    const char *reason; /* a part of the message */
} refusal;

static const refusal refusals[] = {
    {{{.kind = (rft_epi_kind)0}}, 1, 8, false, "epi[0].kind is 0"},
    {{BIAS, {.kind = (rft_epi_kind)99}}, 2, 8, false, "epi[1].kind is 99"},
    {{{.kind = (rft_epi_kind)-1}}, 1, 8, false, "epi[0].kind is -1"},
    {{BIAS}, RFT_MAX_EPI + 1, 8, false, "n_epi is 17"},
    {{{.kind = RFT_EPI_QUANTIZE}, BIAS}, 2, 8, false, "epi[0] is quantize, and epi[1] follows"},
    {{{.kind = RFT_EPI_QUANTIZE, .type = RFT_F32}}, 1, 8, false, "epi[0].type is 1"},
    {{{.kind = RFT_EPI_QUANTIZE_ROWS, .operand = 16}}, 1, 8, false, ".operand 16"},
    {{{.kind = RFT_EPI_QUANTIZE_ROWS, .alpha = 40}}, 1, 8, false, "epi[0].alpha is 40"},
    {{{.kind = RFT_EPI_QUANTIZE_ROWS, .alpha = -32}}, 1, 8, false, "epi[0].alpha is -32"},
    {{{.kind = RFT_EPI_QUANTIZE_ROWS, .alpha = 32.5f}}, 1, 8, false, "epi[0].alpha is 32.5"},
    {{{.kind = RFT_EPI_QUANTIZE_ROWS, .alpha = (float)NAN}}, 1, 8, false, "epi[0].alpha is "},
    {{{.kind = RFT_EPI_BIAS}}, 1, 8, false, "epi[0].type is 0; the operand of bias"},
    {{{.kind = RFT_EPI_MUL, .type = RFT_I8}}, 1, 8, false, "epi[0].type is 6; the operand of mul"},
    {{{.kind = RFT_EPI_RELU, .type = RFT_F32}}, 1, 8, false, "relu has no typed operand"},
    {{{.kind = RFT_EPI_MASK, .type = RFT_U8}}, 1, 8, false, "mask has no typed operand"},
    {{BIAS, {.kind = RFT_EPI_ADD, .type = RFT_F16, .operand = 16, .beta = 1}}, 2, 8, false, "epi[1].operand is 16"},
    {{{.kind = RFT_EPI_ADD, .type = RFT_F16, .operand = 16, .beta = 0}}, 1, 8, false, "epi[0].operand is 16"},
    {{{.kind = RFT_EPI_CLAMP, .alpha = 2, .beta = 1}}, 1, 8, false, "epi[0] clamps to 2..1"},
    {{{.kind = RFT_EPI_CLAMP, .alpha = (float)NAN, .beta = 1}}, 1, 8, false, "neither NaN"},
    {{{.kind = RFT_EPI_CLAMP, .alpha = 0, .beta = (float)NAN}}, 1, 8, false, "neither NaN"},
    {{{.kind = RFT_EPI_DROPOUT, .alpha = 1}}, 1, 8, false, "epi[0].alpha is 1"},
    {{{.kind = RFT_EPI_DROPOUT, .alpha = -0.5f}}, 1, 8, false, "epi[0].alpha is -0.5"},
    {{{.kind = RFT_EPI_DROPOUT, .alpha = (float)NAN}}, 1, 8, false, "epi[0].alpha is "},
    {{SWIGLU}, 1, 8, false, "holds swiglu, but the weight has neither"},
    {{BIAS}, 1, 8, true, "pairs gate and up"},
    {{SWIGLU}, 1, 7, true, "n is 7"},
    {{SWIGLU, {.kind = RFT_EPI_GEGLU}}, 2, 8, true, "epi[1] is geglu"},
};

static void bad_lists_are_refused(void **state) {
    (void)state;
    for (unsigned i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        const refusal *r = &refusals[i];
        rft__epi epi;
        rft_error err = {0};
        assert_int_equal(rft__epi_make(&epi, r->op, r->count, r->n, r->glu, 1.0f, &err), RFT_E_ARG);
        assert_int_equal(err.status, RFT_E_ARG);
        if (strstr(err.message, r->reason) == NULL) {
            fail_msg("refusal %u says \"%s\", not \"%s\"", i, err.message, r->reason);
        }
        assert_int_equal(rft__epi_make(&epi, r->op, r->count, r->n, r->glu, 1.0f, NULL), RFT_E_ARG);
    }
    rft__epi epi;
    assert_int_equal(rft__epi_make(&epi, NULL, 1, 8, false, 1.0f, NULL), RFT_E_ARG);
}

static void canonical_form(void **state) {
    (void)state;
    const rft_epi_op ops[] = {
        {.kind = RFT_EPI_SCALE, .alpha = 1},
        {.kind = RFT_EPI_BIAS, .type = RFT_F16, .operand = 2, .alpha = 7, .beta = 8},
        {.kind = RFT_EPI_ADD, .type = RFT_F32, .operand = 9, .beta = 0},
        {.kind = RFT_EPI_RELU, .operand = 5, .alpha = 1},
        {.kind = RFT_EPI_SCALE, .alpha = (float)INFINITY},
    };
    rft__epi epi;
    assert_int_equal(rft__epi_make(&epi, ops, 5, 12, false, 0.5f, NULL), RFT_OK);
    assert_int_equal(epi.n_op, 4);
    assert_int_equal(epi.op[0].kind, RFT_EPI_SCALE);
    assert_true(epi.op[0].alpha == 0.5f);
    assert_true(epi.op[1].kind == RFT_EPI_BIAS && epi.op[1].operand == 2 && epi.op[1].alpha == 0 && epi.op[1].beta == 0);
    assert_true(epi.op[2].kind == RFT_EPI_RELU && epi.op[2].operand == 0 && epi.op[2].alpha == 0);
    assert_true(isinf(epi.op[3].alpha));
    assert_int_equal(epi.n_operand, 3);
    assert_int_equal(epi.glu_at, -1);
    assert_true(epi.n_in == 12 && epi.n_out == 12);
}

static void glu_halves_the_columns(void **state) {
    (void)state;
    const rft_epi_op ops[] = {BIAS, {.kind = RFT_EPI_GEGLU_TANH}};
    rft__epi epi;
    assert_int_equal(rft__epi_make(&epi, ops, 2, 12, true, 1.0f, NULL), RFT_OK);
    assert_true(epi.glu_at == 1 && epi.n_in == 12 && epi.n_out == 6);
    assert_true(rft__epi_is_glu(RFT_EPI_SWIGLU) && rft__epi_is_glu(RFT_EPI_GEGLU_TANH) && !rft__epi_is_glu(RFT_EPI_SILU));
}

/* A full list still has room for the plan's alpha. */
static void alpha_beside_a_full_list(void **state) {
    (void)state;
    rft_epi_op ops[RFT_MAX_EPI];
    rft__epi epi;
    for (int i = 0; i < RFT_MAX_EPI; i++) {
        ops[i] = (rft_epi_op){.kind = RFT_EPI_RELU};
    }
    assert_int_equal(rft__epi_make(&epi, ops, RFT_MAX_EPI, 4, false, 2.0f, NULL), RFT_OK);
    assert_int_equal(epi.n_op, RFT_MAX_EPI + 1);
}

static void text_and_names(void **state) {
    (void)state;
    const rft_epi_op ops[] = {BIAS, {.kind = RFT_EPI_GELU_TANH}, {.kind = RFT_EPI_ADD, .type = RFT_F32, .beta = 1}};
    char buf[64];
    rft__epi epi;
    assert_int_equal(rft__epi_make(&epi, ops, 3, 4, false, 1.0f, NULL), RFT_OK);
    assert_int_equal(rft__epi_text(&epi, buf, sizeof buf), 18);
    assert_string_equal(buf, "bias:gelu_tanh:add");
    assert_int_equal(rft__epi_text(&epi, buf, 7), 18);
    assert_string_equal(buf, "bias:g");
    assert_int_equal(rft__epi_text(&epi, NULL, 0), 18);
    assert_int_equal(rft__epi_make(&epi, NULL, 0, 4, false, 1.0f, NULL), RFT_OK);
    assert_int_equal(rft__epi_text(&epi, buf, sizeof buf), 4);
    assert_string_equal(buf, "none");
    assert_null(rft__epi_name((rft_epi_kind)0));
    assert_null(rft__epi_name((rft_epi_kind)(RFT_EPI_QUANTIZE_ROWS + 1)));
    assert_string_equal(rft__epi_name(RFT_EPI_DROPOUT), "dropout");
    const rft_epi_op last[] = {BIAS, {.kind = RFT_EPI_QUANTIZE, .operand = 3}};
    assert_int_equal(rft__epi_make(&epi, last, 2, 4, false, 1.0f, NULL), RFT_OK);
    assert_int_equal(rft__epi_text(&epi, buf, sizeof buf), 13);
    assert_string_equal(buf, "bias:quantize");
    assert_int_equal(epi.n_operand, 4);
}

/* ---- operands ---- */

static float data[4096] __attribute__((aligned(64)));

typedef struct bad_operand {
    rft_epi_op op;
    rft_operand operand;
    int64_t m, batch;
    const char *reason;
} bad_operand;

#define HUGE_STRIDE ((int64_t)1 << 60)

static const bad_operand bad_operands[] = {
    {BIAS, {NULL, 0, 0}, 4, 1, "operand[0].ptr is NULL"},
    {BIAS, {(char *)data + 2, 0, 0}, 4, 1, "aligned to 4 bytes"},
    {{.kind = RFT_EPI_BIAS, .type = RFT_BF16}, {(char *)data + 1, 0, 0}, 4, 1, "aligned to 2 bytes"},
    {{.kind = RFT_EPI_DROPOUT}, {(char *)data + 4, 0, 0}, 4, 1, "aligned to 8 bytes"},
    {{.kind = RFT_EPI_DROPOUT}, {data, 0, 0}, HUGE_STRIDE, 1, "at most 2^46 elements"},
    {{.kind = RFT_EPI_DROPOUT}, {data, 0, 0}, 4, 1 << 17, "at most 2^16 matrices"},
    {{.kind = RFT_EPI_MUL, .type = RFT_F32}, {data, 9, 0}, 4, 1, "operand[0].ld is 9; mul reads rows of 10"},
    {{.kind = RFT_EPI_MUL, .type = RFT_F32}, {data, -10, 0}, 4, 1, "operand[0].ld is -10"},
    {{.kind = RFT_EPI_MASK}, {data, 9, 0}, 4, 1, "operand[0].ld is 9"},
    {{.kind = RFT_EPI_MUL, .type = RFT_F32}, {data, HUGE_STRIDE, 0}, 100, 1, "more than 2^63 bytes"},
    {{.kind = RFT_EPI_MUL, .type = RFT_F32}, {data, 10, HUGE_STRIDE}, 4, 100, "more than 2^63 bytes"},
    {BIAS, {data, 0, -1}, 4, 2, "batch_stride is -1"},
    {{.kind = RFT_EPI_QUANTIZE}, {NULL, 0, 0}, 4, 1, "quantize needs f32 scales there"},
    {{.kind = RFT_EPI_QUANTIZE_ROWS}, {(char *)data + 2, 0, 0}, 4, 1, "quantize_rows needs f32 scales there"},
    {{.kind = RFT_EPI_QUANTIZE_ROWS}, {data, -1, 0}, 4, 1, "operand[0].ld is -1"},
    {{.kind = RFT_EPI_QUANTIZE_ROWS}, {data, 1, 3}, 4, 2, "scales of 2 batches over each other"},
    {{.kind = RFT_EPI_QUANTIZE_ROWS}, {data, HUGE_STRIDE, 0}, 100, 1, "more than 2^63 bytes"},
};

static void bad_operands_are_refused(void **state) {
    (void)state;
    for (unsigned i = 0; i < sizeof bad_operands / sizeof *bad_operands; i++) {
        const bad_operand *b = &bad_operands[i];
        rft__epi epi;
        rft_error err = {0};
        assert_int_equal(rft__epi_make(&epi, &b->op, 1, 10, false, 1.0f, NULL), RFT_OK);
        assert_int_equal(rft__epi_check_operands(&epi, &b->operand, 1, b->m, b->batch, &err), RFT_E_ARG);
        if (strstr(err.message, b->reason) == NULL) {
            fail_msg("operand %u: \"%s\", not \"%s\"", i, err.message, b->reason);
        }
    }
}

static void operand_counts(void **state) {
    (void)state;
    const rft_epi_op op = {.kind = RFT_EPI_BIAS, .type = RFT_F32, .operand = 1};
    const rft_operand operands[2] = {{NULL, 0, 0}, {data, 0, 0}}, nothing[2] = {{NULL, 0, 0}, {NULL, 0, 0}};
    rft__epi epi;
    assert_int_equal(rft__epi_make(&epi, &op, 1, 10, false, 1.0f, NULL), RFT_OK);
    assert_int_equal(rft__epi_check_operands(&epi, operands, 1, 4, 1, NULL), RFT_E_ARG);
    assert_int_equal(rft__epi_check_operands(&epi, NULL, 2, 4, 1, NULL), RFT_E_ARG);
    assert_int_equal(rft__epi_check_operands(&epi, operands, 2, 4, 1, NULL), RFT_OK);
    assert_int_equal(rft__epi_check_operands(&epi, nothing, 2, 0, 1, NULL), RFT_OK); /* an empty product reads nothing */
    assert_int_equal(rft__epi_make(&epi, NULL, 0, 10, false, 1.0f, NULL), RFT_OK);
    assert_int_equal(rft__epi_check_operands(&epi, NULL, 0, 4, 1, NULL), RFT_OK);
}

/* Rows are n_in long before a GLU op and n_out behind it. */
static void row_length_by_position(void **state) {
    (void)state;
    const rft_epi_op ops[] = {{.kind = RFT_EPI_ADD, .type = RFT_F32, .beta = 1},
                              SWIGLU,
                              {.kind = RFT_EPI_ADD, .type = RFT_F32, .operand = 1, .beta = 1}};
    const rft_operand good[] = {{data, 20, 0}, {data, 10, 0}}, bad[] = {{data, 10, 0}, {data, 10, 0}};
    rft__epi epi;
    assert_int_equal(rft__epi_make(&epi, ops, 3, 20, true, 1.0f, NULL), RFT_OK);
    assert_int_equal(rft__epi_check_operands(&epi, good, 2, 4, 1, NULL), RFT_OK);
    assert_int_equal(rft__epi_check_operands(&epi, bad, 2, 4, 1, NULL), RFT_E_ARG);
    assert_int_equal(rft__epi_row_columns(&epi, 0), 20);
    assert_int_equal(rft__epi_row_columns(&epi, 1), 10);
}

/* An ld of 0 would be two lengths. */
static void rows_on_both_sides_need_a_stride(void **state) {
    (void)state;
    const rft_epi_op ops[] = {{.kind = RFT_EPI_MASK}, SWIGLU, {.kind = RFT_EPI_MASK}};
    const rft_operand dense = {data, 0, 0}, strided = {data, 20, 0};
    rft_error err = {0};
    rft__epi epi;
    assert_int_equal(rft__epi_make(&epi, ops, 3, 20, true, 1.0f, NULL), RFT_OK);
    assert_int_equal(rft__epi_check_operands(&epi, &strided, 1, 4, 1, NULL), RFT_OK);
    assert_int_equal(rft__epi_check_operands(&epi, &dense, 1, 4, 1, &err), RFT_E_ARG);
    assert_non_null(strstr(err.message, "operand[0].ld is 0"));
}

static void bytes_of_operands(void **state) {
    (void)state;
    const rft_epi_op ops[] = {{.kind = RFT_EPI_ADD, .type = RFT_F32, .beta = 1},
                              {.kind = RFT_EPI_MUL, .type = RFT_F32}, /* the same operand again: once */
                              {.kind = RFT_EPI_BIAS, .type = RFT_BF16, .operand = 1},
                              {.kind = RFT_EPI_ROW_SCALE, .type = RFT_F16, .operand = 2},
                              {.kind = RFT_EPI_MASK, .operand = 3},
                              {.kind = RFT_EPI_DROPOUT, .operand = 4}};
    rft__epi epi;
    assert_int_equal(rft__epi_make(&epi, ops, 6, 10, false, 1.0f, NULL), RFT_OK);
    assert_true(rft__epi_bytes(&epi, 3, 2) == 6 * 10 * 4 + 10 * 2 + 6 * 2 + 6 * 2 + 16);
}

/* Each op at one point, against values worked out by hand (the row of an op is its meaning, so nothing else can check it). */
typedef struct point {
    rft_epi_kind kind;
    float alpha, beta;
    double y, o, want;
} point;

static const point points[] = {
    {RFT_EPI_SCALE, -0.5f, 9, 2, 0, -1},
    {RFT_EPI_BIAS, 9, 9, 2, 3, 5},
    {RFT_EPI_SILU, 9, 9, 2, 0, 1.7615941559557649},
    {RFT_EPI_GELU, 9, 9, 2, 0, 1.9544997361036416},
    {RFT_EPI_GELU, 9, 9, -1, 0, -0.15865525393145707},
    {RFT_EPI_MUL, 9, 9, 2, 3, 6},
    {RFT_EPI_ADD, 9, -2, 2, 3, -4},
    {RFT_EPI_RELU, 9, 9, 2, 0, 2},
    {RFT_EPI_RELU, 9, 9, -2, 0, 0},
    {RFT_EPI_GELU_TANH, 9, 9, 2, 0, 1.9545976940877750},
    {RFT_EPI_CLAMP, -1, 0.5f, 2, 0, 0.5},
    {RFT_EPI_CLAMP, -1, 0.5f, -2, 0, -1},
    {RFT_EPI_CLAMP, -1, 0.5f, 0.25, 0, 0.25},
    {RFT_EPI_SWIGLU, 9, 9, 2, 3, 5.2847824678672947},
    {RFT_EPI_GEGLU, 9, 9, 2, 3, 5.8634992083109248},
    {RFT_EPI_GEGLU_TANH, 9, 9, 2, 3, 5.8637930822633250},
    {RFT_EPI_ROW_SCALE, 9, 9, 2, 3, 6},
    {RFT_EPI_COL_SCALE, 9, 9, 2, 3, 6},
};

static bool has_type(rft_epi_kind kind) {
    const rft__epi_access access = rft__epi_access_of(kind);
    return access == RFT__EPI_MATRIX || access == RFT__EPI_ROW || access == RFT__EPI_COLUMN;
}

static void ops_at_known_points(void **state) {
    (void)state;
    for (unsigned i = 0; i < sizeof points / sizeof *points; i++) {
        const point *p = &points[i];
        const rft_epi_op op = {.kind = p->kind, .type = has_type(p->kind) ? RFT_F32 : 0, .alpha = p->alpha, .beta = p->beta};
        float o = (float)p->o;
        double value[2] = {p->y, p->o}, error[2] = {0, 0};
        rft__epi epi;
        assert_int_equal(rft__epi_make(&epi, &op, 1, 2, rft__epi_is_glu(p->kind), 1.0f, NULL), RFT_OK);
        rft__epi_reference(&epi, &(rft_operand){&o, 0, 0}, 0, 0, 0, false, value, error);
        if (!(fabs(value[0] - p->want) <= 1e-14)) {
            fail_msg("%s of %g, %g is %.17g, should be %.17g", rft__epi_name(p->kind), p->y, p->o, value[0], p->want);
        }
    }
}

/* Bits 0, 1, 1 of a mask; Philox words 0x6627e8d5, 0xe169c58d of key 0 and counter 0, which are 0.399 and 0.881 of 2^32. */
static void mask_and_dropout_at_known_points(void **state) {
    (void)state;
    const rft_epi_op ops[] = {{.kind = RFT_EPI_MASK}, {.kind = RFT_EPI_DROPOUT, .alpha = 0.5f}};
    static const double want[2][2] = {{0, 2}, {0, 4}};
    unsigned char bits = 6;
    uint64_t seed[2] = {0, 0};
    for (int i = 0; i < 4; i++) {
        double value[2] = {2, 0}, error[2] = {0, 0};
        rft__epi epi;
        assert_int_equal(rft__epi_make(&epi, &ops[i / 2], 1, 4, false, 1.0f, NULL), RFT_OK);
        rft__epi_reference(&epi, &(rft_operand){i / 2 ? (void *)seed : &bits, 0, 0}, 0, 0, i % 2, false, value, error);
        assert_true(value[0] == want[i / 2][i % 2]);
    }
}

/* The bound of a long chain holds for inputs that are off by their whole error. */
static void reference_bounds_moved_inputs(void **state) {
    (void)state;
    static const rft_epi_kind kinds[] = {RFT_EPI_SILU, RFT_EPI_GELU, RFT_EPI_GELU_TANH, RFT_EPI_RELU, RFT_EPI_CLAMP};
    for (int i = 0; i < 5; i++) {
        const rft_epi_op op = {.kind = kinds[i], .alpha = -1, .beta = 2};
        rft__epi epi;
        assert_int_equal(rft__epi_make(&epi, &op, 1, 1, false, 3.0f, NULL), RFT_OK);
        for (int j = -60; j <= 60; j++) {
            double a[2] = {j / 10.0, 0}, ea[2] = {0.7, 0}, b[2] = {j / 10.0 + 0.7, 0}, eb[2] = {0, 0};
            rft__epi_reference(&epi, NULL, 0, 0, 0, false, a, ea);
            rft__epi_reference(&epi, NULL, 0, 0, 0, false, b, eb);
            assert_true(fabs(a[0] - b[0]) <= ea[0]);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bad_lists_are_refused),
        cmocka_unit_test(canonical_form),
        cmocka_unit_test(glu_halves_the_columns),
        cmocka_unit_test(alpha_beside_a_full_list),
        cmocka_unit_test(text_and_names),
        cmocka_unit_test(bad_operands_are_refused),
        cmocka_unit_test(operand_counts),
        cmocka_unit_test(row_length_by_position), cmocka_unit_test(rows_on_both_sides_need_a_stride),
        cmocka_unit_test(bytes_of_operands),
        cmocka_unit_test(ops_at_known_points),
        cmocka_unit_test(mask_and_dropout_at_known_points),
        cmocka_unit_test(reference_bounds_moved_inputs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
