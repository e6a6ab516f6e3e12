/* SPDX-License-Identifier: Apache-2.0
 *
 * test_epi_cuda.c - the epilogue of CUDA kernels without a GPU: the macros of a list, and kernels/epilogue.cuh compiled as C,
 * which must give the bits of the CPU's tiles (activations are the CPU's here; the device's: test_fast_math.c): random lists,
 * types, strides, alignments, pairings, ragged spans of every length.
 * Operands and y are allocated to the element, so that a sanitizer sees an access beyond them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/type.h"
#include "cuda/cuda_epilogue.h"
#include "device_words.h"
#include "epilogue/epi_tile.h"

#include <stdlib.h>

/* ---- the device text, with a list that changes at run time ---- */

static rft__epi list;
static int glu, y_type;

#define RFT_GLU       glu
#define RFT_BATCHED   1
#define RFT_Y_TYPE    y_type
#define RFT_EPI_COUNT (RFT_MAX_EPI + 1)
#define CASE(OP, KIND, ACCESS)                                                                                                   \
    if (list.op[at].kind == RFT_EPI_##KIND) {                                                                                    \
        OP(KIND, ACCESS, (int)list.op[at].type, (int)list.op[at].operand, list.op[at].alpha, list.op[at].beta)                   \
    }
#define RFT_EPI(OP)                                                                                                              \
    for (int at = 0; at < list.n_op; at++) {                                                                                     \
        CASE(OP, SCALE, NONE) CASE(OP, BIAS, COLUMN) CASE(OP, SILU, NONE) CASE(OP, GELU, NONE) CASE(OP, MUL, MATRIX)             \
        CASE(OP, ADD, MATRIX) CASE(OP, RELU, NONE) CASE(OP, GELU_TANH, NONE) CASE(OP, CLAMP, NONE) CASE(OP, SWIGLU, PAIR)        \
        CASE(OP, GEGLU, PAIR) CASE(OP, GEGLU_TANH, PAIR) CASE(OP, ROW_SCALE, ROW) CASE(OP, COL_SCALE, COLUMN)                    \
        CASE(OP, MASK, BITS) CASE(OP, DROPOUT, SEED)                                                                             \
    }

#include "cuda/kernels/epilogue.cuh"

/* ---- the macros ---- */

static void check_text(const rft_epi_op *ops, uint32_t count, bool paired, const char *expected) {
    char text[2048];
    rft__text t = {text, sizeof text, 0};
    rft__epi epi;
    assert_int_equal(rft__epi_make(&epi, ops, count, 8, paired, 1.0f, NULL), RFT_OK);
    rft__cuda_epilogue_text(&epi, &t);
    assert_string_equal(text, expected);
}

static void lists_become_macros(void **state) {
    (void)state;
    const rft_epi_op plain[] = {{.kind = RFT_EPI_BIAS, .type = RFT_BF16, .operand = 2},
                                {.kind = RFT_EPI_GELU_TANH},
                                {.kind = RFT_EPI_ADD, .type = RFT_F32, .operand = 15, .beta = -1.5f}};
    check_text(NULL, 0, false, "#define RFT_EPI_COUNT 0\n#define RFT_EPI(OP)\n");
    check_text(plain, 3, false,
               "#define RFT_EPI_COUNT 3\n#define RFT_EPI(OP) OP(BIAS, COLUMN, 3, 2, 0x0p+0f, 0x0p+0f)"
               " OP(GELU_TANH, NONE, 0, 0, 0x0p+0f, 0x0p+0f) OP(ADD, MATRIX, 1, 15, 0x0p+0f, -0x1.8p+0f)\n");
    check_text(&(rft_epi_op){.kind = RFT_EPI_SWIGLU}, 1, true,
               "#define RFT_EPI_COUNT 1\n#define RFT_EPI(OP) OP(SWIGLU, PAIR, 0, 0, 0x0p+0f, 0x0p+0f)\n");
}

static void parameters_keep_every_bit(void **state) {
    (void)state;
    const rft_epi_op ops[] = {{.kind = RFT_EPI_CLAMP, .alpha = -INFINITY, .beta = INFINITY},
                              {.kind = RFT_EPI_SCALE, .alpha = -0.0f},
                              {.kind = RFT_EPI_SCALE, .alpha = 0x1p-149f},
                              {.kind = RFT_EPI_SCALE, .alpha = 0x1.fffffep127f},
                              {.kind = RFT_EPI_SCALE, .alpha = __uint_as_float(0x7fc00001u)}};
    check_text(ops, 5, false,
               "#define RFT_EPI_COUNT 5\n#define RFT_EPI(OP)"
               " OP(CLAMP, NONE, 0, 0, rft__as_float(0xff800000u), rft__as_float(0x7f800000u))"
               " OP(SCALE, NONE, 0, 0, -0x0p+0f, 0x0p+0f) OP(SCALE, NONE, 0, 0, 0x1p-149f, 0x0p+0f)"
               " OP(SCALE, NONE, 0, 0, 0x1.fffffep+127f, 0x0p+0f) OP(SCALE, NONE, 0, 0, rft__as_float(0x7fc00001u), 0x0p+0f)\n");
}

/* ---- random scenes ---- */

#define MAX_ROWS    5
#define MAX_COLUMNS 70
#define GUARD       0xa5

static uint64_t random_state = 1;

static unsigned draw(unsigned below) {
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(random_state >> 33) % below;
}

/* Mostly of magnitude 1, now and then of any bits: denormals, NaN, Inf. */
static float draw_float(void) {
    return draw(40) == 0 ? __uint_as_float(draw(1u << 16) << 16 | draw(1u << 16))
                         : (float)((int)draw(1u << 20) - (1 << 19)) * 0x1p-17f;
}

typedef struct scene {
    int rows, batch;
    int64_t columns;                        /* of y */
    float value[MAX_ROWS][2 * MAX_COLUMNS]; /* of the product, in W's order */
    char *memory[RFT_MAX_OPERANDS];
    rft_operand operand[RFT_MAX_OPERANDS];
    rft__cuda_args args;
} scene;

static rft_epi_op draw_op(uint32_t index) {
    rft_epi_op op = {.kind = (rft_epi_kind)(1 + draw(16)), .operand = index};
    while (rft__epi_is_glu(op.kind)) {
        op.kind = (rft_epi_kind)(1 + draw(16));
    }
    const rft__epi_access access = rft__epi_access_of(op.kind);
    if (access == RFT__EPI_MATRIX || access == RFT__EPI_ROW || access == RFT__EPI_COLUMN) {
        op.type = (rft_type)(1 + draw(3));
    }
    op.alpha = op.kind == RFT_EPI_DROPOUT ? 0.3f : op.kind == RFT_EPI_CLAMP ? -0.7f : draw_float();
    op.beta = op.kind == RFT_EPI_CLAMP ? 0.9f : draw_float();
    return op;
}

static void draw_list(int64_t columns) {
    static const rft_epi_kind pairs[] = {RFT_EPI_SWIGLU, RFT_EPI_GEGLU, RFT_EPI_GEGLU_TANH};
    rft_epi_op ops[8];
    const uint32_t count = draw(7), pair_at = draw(count + 1);
    for (uint32_t i = 0; i < count; i++) {
        ops[i] = draw_op(i);
    }
    if (glu != 0) {
        memmove(ops + pair_at + 1, ops + pair_at, (count - pair_at) * sizeof *ops);
        ops[pair_at] = (rft_epi_op){.kind = pairs[draw(3)]};
    }
    assert_int_equal(rft__epi_make(&list, ops, count + (glu != 0), glu != 0 ? 2 * columns : columns, glu != 0, 1.0f, NULL),
                     RFT_OK);
}

/* Random bytes are random numbers of 16 bits, too; f32 gets better ones. */
static void fill(char *at, size_t bytes, rft_type type) {
    for (size_t i = 0; i < bytes; i++) {
        at[i] = (char)draw(256);
    }
    for (size_t i = 0; type == RFT_F32 && i + 4 <= bytes; i += 4) {
        const float f = draw_float();
        memcpy(at + i, &f, sizeof f);
    }
}

/* Aligned to its element alone, and with nothing behind its last element. */
static void make_operand(scene *s, int i) {
    const rft_epi_op *op = &list.op[i];
    const int64_t columns = i < list.glu_at ? list.n_in : list.n_out, ld = columns + draw(2) * draw(9), rows = s->rows;
    const rft__epi_access access = rft__epi_access_of(op->kind);
    const int64_t elements = access == RFT__EPI_MATRIX || access == RFT__EPI_BITS ? (rows - 1) * ld + columns
                             : access == RFT__EPI_ROW                             ? rows
                                                                                  : columns;
    const int64_t batch_stride = draw(2) * (unsigned)(elements + draw(8)), all = s->batch * batch_stride + elements;
    const size_t size = rft__type_size(op->type);
    const size_t bytes = access == RFT__EPI_BITS ? (size_t)(all + 7) / 8 : access == RFT__EPI_SEED ? 16 : (size_t)all * size;
    const size_t skip = access == RFT__EPI_SEED ? 8 * draw(2) : draw(2) * draw(5) * size;
    s->memory[op->operand] = malloc(skip + bytes);
    assert_non_null(s->memory[op->operand]);
    fill(s->memory[op->operand] + skip, bytes, op->type);
    s->operand[op->operand] = (rft_operand){s->memory[op->operand] + skip, ld, access == RFT__EPI_SEED ? 0 : batch_stride};
    s->args.operand[op->operand] = (rft__cuda_operand){s->memory[op->operand] + skip, ld, s->operand[op->operand].batch_stride};
}

static void make_scene(scene *s) {
    memset(s, 0, sizeof *s);
    glu = (int)draw(3);
    y_type = (int)(1 + draw(3));
    s->rows = (int)(1 + draw(MAX_ROWS));
    s->columns = 1 + draw(MAX_COLUMNS);
    s->batch = (int)draw(3);
    draw_list(s->columns);
    for (int i = 0; i < list.n_op; i++) {
        const rft__epi_access access = rft__epi_access_of(list.op[i].kind);
        if (access != RFT__EPI_NONE && access != RFT__EPI_PAIR) {
            make_operand(s, i);
        }
    }
    for (int m = 0; m < s->rows; m++) {
        for (int64_t n = 0; n < list.n_in; n++) {
            s->value[m][n] = draw_float();
        }
    }
    s->args.m = s->rows;
    s->args.n = (int)list.n_in;
    s->args.batch = s->batch + 1;
}

static void free_scene(scene *s) {
    for (int i = 0; i < RFT_MAX_OPERANDS; i++) {
        free(s->memory[i]);
    }
}

static int64_t source_column(const scene *s, int64_t n, int up) {
    return glu == 0 ? n : glu == 1 ? n + up * s->columns : 2 * n + up;
}

/* ---- both ways ---- */

/* A panel of 16 columns of y at a time, with its up columns where they are paired. */
static void run_cpu(const scene *s, char *y, int64_t ldy) {
    const int segments = glu != 0 ? 2 : 1;
    for (int64_t panel = 0; panel * RFT__EPI_SEGMENT < s->columns; panel++) {
        float acc[MAX_ROWS * 2 * RFT__EPI_SEGMENT] = {0};
        for (int i = 0; i < s->rows * segments * RFT__EPI_SEGMENT; i++) {
            const int64_t n = panel * RFT__EPI_SEGMENT + i % RFT__EPI_SEGMENT;
            const int up = i / RFT__EPI_SEGMENT % segments, m = i / RFT__EPI_SEGMENT / segments;
            acc[i] = n < s->columns ? s->value[m][source_column(s, n, up)] : 0;
        }
        rft__epi_tile_ref(&(rft__epi_tile){.acc = acc,
                                           .rows = s->rows,
                                           .segments = segments,
                                           .b = s->batch,
                                           .panel = panel * segments,
                                           .glu_interleaved = glu == 2,
                                           .epi = &list,
                                           .operands = s->operand,
                                           .y = y,
                                           .ldy = ldy,
                                           .y_type = (rft_type)y_type});
    }
}

/* Whether operands are fetched ahead must not matter. */
static void run_device(const scene *s, char *y, int64_t ldy, int64_t y_batch_stride, int count, bool ahead) {
    rft__cuda_args args = s->args;
    args.y = y;
    args.ldy = ldy;
    args.y_batch_stride = y_batch_stride;
    for (int m = 0; m < s->rows; m++) {
        for (int n = 0; n < s->columns + count; n += count) { /* the last span lies beyond */
            const int valid = (int)s->columns - n < count ? (int)s->columns - n : count;
            float v[RFT_SPAN] = {0}, up[RFT_SPAN] = {0};
            for (int j = 0; j < valid; j++) {
                v[j] = s->value[m][source_column(s, n + j, 0)];
                up[j] = glu != 0 ? s->value[m][source_column(s, n + j, 1)] : 0;
            }
            if (ahead) {
                rft__epi_operands o;
                rft__epi_fetch(&args, s->batch, m, n, count, valid, &o);
                rft__epi_apply(&args, s->batch, m, n, &o, v, up, count, valid);
                rft__store_span(&args, s->batch, m, n, v, count, valid);
            } else {
                rft__finish_span(&args, s->batch, m, n, v, up, count, valid);
            }
        }
    }
}

static bool same(const char *a, const char *b) {
    unsigned u = 0, v = 0;
    memcpy(&u, a, rft__type_size((rft_type)y_type));
    memcpy(&v, b, rft__type_size((rft_type)y_type));
    return u == v || (isnan(rft__widen(y_type, u)) && isnan(rft__widen(y_type, v)));
}

static void compare(const scene *s, const char *y, const char *expected, int64_t elements, int count) {
    const size_t size = rft__type_size((rft_type)y_type);
    for (int64_t i = 0; i < elements; i++) {
        if (!same(y + (size_t)i * size, expected + (size_t)i * size)) {
            char text[256];
            rft__epi_text(&list, text, sizeof text);
            fail_msg("%s, glu %d, %s, span %d, %d x %lld: element %lld of y differs", text, glu, rft__type_name((rft_type)y_type),
                     count, s->rows, (long long)s->columns, (long long)i);
        }
    }
}

static void check_scene(const scene *s) {
    static const int counts[] = {1, 2, 4, 8};
    const size_t size = rft__type_size((rft_type)y_type), skip = draw(2) * draw(4) * size;
    const int64_t ldy = s->columns + draw(2) * draw(9), matrix = (s->rows - 1) * ldy + s->columns,
                  y_batch_stride = matrix + draw(5);
    const int64_t before = s->batch * y_batch_stride, elements = before + matrix;
    char *expected = malloc((size_t)elements * size), *y = malloc(skip + (size_t)elements * size);
    assert_true(expected != NULL && y != NULL);
    memset(expected, GUARD, (size_t)elements * size);
    run_cpu(s, expected + (size_t)before * size, ldy);
    for (int i = 0; i < 4; i++) {
        memset(y, GUARD, skip + (size_t)elements * size);
        run_device(s, y + skip, ldy, y_batch_stride, counts[i], draw(2) != 0);
        compare(s, y + skip, expected, elements, counts[i]);
    }
    free(expected);
    free(y);
}

static void bits_are_those_of_the_cpu(void **state) {
    (void)state;
    enum { SCENES = 4000 };
    for (int i = 0; i < SCENES; i++) {
        static scene s;
        make_scene(&s);
        check_scene(&s);
        free_scene(&s);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_become_macros),
        cmocka_unit_test(parameters_keep_every_bit),
        cmocka_unit_test(bits_are_those_of_the_cpu),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
