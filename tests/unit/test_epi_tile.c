/* SPDX-License-Identifier: Apache-2.0
 *
 * test_epi_tile.c - the tile appliers of every ISA level of this machine against rft__epi_reference: all ops, operand
 * and y types, ragged columns, GLU forms, batches; guard elements round y; equal bits on all levels.
 * Operands and y are allocated to the element, so that a sanitizer sees a read beyond them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/type.h"
#include "epilogue/epi_tile.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_M 40
#define MAX_N 256
#define GUARD 0xa5

typedef struct level {
    const char *name;
    rft__epi_tile_fn *tile;
} level;

static level levels[3] = {{"ref", rft__epi_tile_ref}};
static int n_level = 1;

static void find_levels(void) {
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
        levels[n_level++] = (level){"avx2", rft__epi_tile_avx2};
    }
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512dq")) {
        levels[n_level++] = (level){"avx512", rft__epi_tile_avx512};
    }
#endif
}

/* ---- data ---- */

static uint32_t seed = 1;

static float uniform(void) {
    seed = seed * 1664525u + 1013904223u;
    return (float)(seed >> 8) * 0x1p-23f - 1.0f;
}

static uint16_t bf16_of(float x) {
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    return (uint16_t)(u >> 16);
}

/* f16 bits of a value that is a multiple of 1/256 below 8. */
static uint16_t f16_of(float x) {
    int exponent;
    const float fraction = frexpf(fabsf(x), &exponent);
    const unsigned bits = x == 0 ? 0 : (unsigned)(exponent + 14) << 10 | ((unsigned)(fraction * 2048.0f) & 0x3ffu);
    return (uint16_t)(bits | (x < 0 ? 0x8000u : 0));
}

static void *new_operand(rft_type type, int64_t count) {
    unsigned char *data = malloc((size_t)count * (rft__type_size(type) ? rft__type_size(type) : 1));
    for (int64_t i = 0; i < count; i++) {
        const float value = nearbyintf(uniform() * 1000.0f) / 256.0f;
        if (type == RFT_F32) {
            ((float *)(void *)data)[i] = value;
        } else if (type == RFT_BF16) {
            ((uint16_t *)(void *)data)[i] = bf16_of(value);
        } else if (type == RFT_F16) {
            ((uint16_t *)(void *)data)[i] = f16_of(value);
        } else {
            data[i] = (unsigned char)(uniform() * 128.0f);
        }
    }
    return data;
}

/* ---- one product of b = 0..batch-1, tile by tile ---- */

typedef struct scene {
    rft_epi_op op[RFT_MAX_EPI];
    uint32_t n_op;
    int64_t m, n, batch;
    bool glu, interleaved;
    rft_type y;
    int rows, segments; /* of a tile */
} scene;

static float product[2][MAX_M][MAX_N];

static void fill_products(float scale) {
    for (int i = 0; i < 2 * MAX_M * MAX_N; i++) {
        (&product[0][0][0])[i] = uniform() * scale;
    }
}

/* Column of W that panel position (panel, c) holds, or -1 for padding. */
static int64_t packed_column(const scene *s, int64_t panel, int c) {
    const int64_t half = s->n / 2, h = panel / 2 * RFT__EPI_SEGMENT + c, up = panel % 2;
    if (!s->glu) {
        const int64_t column = panel * RFT__EPI_SEGMENT + c;
        return column < s->n ? column : -1;
    }
    return h >= half ? -1 : s->interleaved ? 2 * h + up : h + up * half;
}

static void run_tile(const scene *s, const rft__epi *epi, const rft_operand *operands, const level *l, int64_t b, int64_t m,
                     int64_t panel, void *y, int64_t ldy) {
    float acc[RFT__EPI_MAX_ROWS * RFT__EPI_MAX_SEGMENTS * RFT__EPI_SEGMENT];
    const int rows = s->m - m < s->rows ? (int)(s->m - m) : s->rows, width = s->segments * RFT__EPI_SEGMENT;
    for (int r = 0; r < rows; r++) {
        for (int c = 0; c < width; c++) {
            const int64_t column = packed_column(s, panel + c / RFT__EPI_SEGMENT, c % RFT__EPI_SEGMENT);
            acc[r * width + c] = column < 0 ? 0.0f : product[b][m + r][column];
        }
    }
    l->tile(&(rft__epi_tile){.acc = acc,
                             .rows = rows,
                             .segments = s->segments,
                             .b = b,
                             .m = m,
                             .panel = panel,
                             .glu_interleaved = s->interleaved,
                             .epi = epi,
                             .operands = operands,
                             .y = y,
                             .ldy = ldy,
                             .y_type = s->y});
}

static void run_all(const scene *s, const rft__epi *epi, const rft_operand *operands, const level *l, void *y, int64_t ldy) {
    const int64_t panels = (epi->n_out + RFT__EPI_SEGMENT - 1) / RFT__EPI_SEGMENT * (s->glu ? 2 : 1);
    for (int64_t b = 0; b < s->batch; b++) {
        for (int64_t m = 0; m < s->m; m += s->rows) {
            for (int64_t panel = 0; panel < panels; panel += s->segments) {
                run_tile(s, epi, operands, l, b, m, panel, (char *)y + (size_t)(b * s->m * ldy) * rft__type_size(s->y), ldy);
            }
        }
    }
}

/* ---- comparison ---- */

static double y_value(rft_type type, const void *y, int64_t i) {
    if (type == RFT_F32) {
        return (double)((const float *)y)[i];
    }
    const unsigned h = ((const uint16_t *)y)[i];
    if (type == RFT_BF16) {
        const uint32_t u = h << 16;
        float f;
        memcpy(&f, &u, sizeof f);
        return (double)f;
    }
    const int exponent = (int)(h >> 10 & 31u);
    const double magnitude = exponent == 31 ? (h & 0x3ffu ? (double)NAN : (double)INFINITY)
                             : exponent     ? ldexp(1024 + (h & 0x3ffu), exponent - 25)
                                            : ldexp(h & 0x3ffu, -24);
    return h & 0x8000u ? -magnitude : magnitude;
}

static double store_error(rft_type type, double value) {
    return type == RFT_F32 ? 0 : type == RFT_BF16 ? fabs(value) * 0x1p-8 : fabs(value) * 0x1p-11 + 0x1p-25;
}

static void check_element(const scene *s, const rft__epi *epi, const rft_operand *operands, const level *l, const void *y,
                          int64_t ldy, int64_t b, int64_t m, int64_t n) {
    const int64_t up = s->interleaved ? 2 * n + 1 : n + s->n / 2, gate = s->interleaved ? 2 * n : n;
    double value[2] = {(double)product[b][m][s->glu ? gate : n], s->glu ? (double)product[b][m][up] : 0}, error[2] = {0, 0};
    rft__epi_reference(epi, operands, b, m, n, s->interleaved, value, error);
    const double got = y_value(s->y, y, (b * s->m + m) * ldy + n),
                 limit = error[0] + store_error(s->y, fabs(value[0]) + error[0]);
    if (!(fabs(got - value[0]) <= limit)) {
        char text[200];
        rft__epi_text(epi, text, sizeof text);
        fail_msg("%s %s y=%s n=%lld rows=%d segments=%d at (%lld, %lld, %lld): %.9g, should be %.9g +- %.3g", l->name, text,
                 rft__type_name(s->y), (long long)s->n, s->rows, s->segments, (long long)b, (long long)m, (long long)n, got,
                 value[0], limit);
    }
}

static void check_guards(const scene *s, int64_t n_out, const unsigned char *y, int64_t ldy) {
    const size_t size = rft__type_size(s->y);
    for (int64_t row = 0; row < s->batch * s->m; row++) {
        for (size_t i = (size_t)(row * ldy + n_out) * size; i < (size_t)((row + 1) * ldy) * size; i++) {
            assert_int_equal(y[i], GUARD);
        }
    }
}

/* Operand i belongs to op i; seeds are {seed, offset}. */
static void make_operands(const scene *s, rft_operand *operands) {
    bool before = s->glu;
    for (uint32_t i = 0; i < s->n_op; i++) {
        const rft_epi_op *op = &s->op[i];
        const int64_t columns = before || !s->glu ? s->n : s->n / 2, ld = columns + 3;
        const rft__epi_access access = rft__epi_access_of(op->kind);
        before = before && !rft__epi_is_glu(op->kind);
        memset(&operands[i], 0, sizeof operands[i]);
        if (access == RFT__EPI_MATRIX) {
            operands[i] = (rft_operand){new_operand(op->type, ld * s->m * s->batch - 3), ld, s->m * ld};
        } else if (access == RFT__EPI_ROW) {
            operands[i] = (rft_operand){new_operand(op->type, s->m * s->batch), 0, s->m};
        } else if (access == RFT__EPI_COLUMN) {
            operands[i] = (rft_operand){new_operand(op->type, columns), 0, 0};
        } else if (access == RFT__EPI_BITS) {
            operands[i] = (rft_operand){new_operand(0, (ld * s->m * s->batch - 3 + 7) / 8), ld, s->m * ld};
        } else if (access == RFT__EPI_SEED) {
            uint64_t *pair = malloc(2 * sizeof *pair);
            pair[0] = 0x123456789abcdef0u;
            pair[1] = 0xfedcba9876543210u;
            operands[i].ptr = pair;
        }
    }
}

static bool same_bits(const scene *s, const void *a, const void *b, int64_t i) {
    const size_t size = rft__type_size(s->y);
    return memcmp((const char *)a + (size_t)i * size, (const char *)b + (size_t)i * size, size) == 0 ||
           (isnan(y_value(s->y, a, i)) && isnan(y_value(s->y, b, i)));
}

static void assert_same_on_all_levels(const scene *s, const rft__epi *epi, const rft_operand *operands, const void *y,
                                      int64_t ldy) {
    const size_t bytes = (size_t)(s->batch * s->m * ldy) * rft__type_size(s->y);
    unsigned char *other = malloc(bytes);
    for (int i = 1; i < n_level; i++) {
        memset(other, GUARD, bytes);
        run_all(s, epi, operands, &levels[i], other, ldy);
        for (int64_t j = 0; j < s->batch * s->m * ldy; j++) {
            if (!same_bits(s, y, other, j)) {
                fail_msg("%s and %s differ at element %lld: %.9g, %.9g", levels[0].name, levels[i].name, (long long)j,
                         y_value(s->y, y, j), y_value(s->y, other, j));
            }
        }
    }
    free(other);
}

static void check_scene(const scene *s) {
    rft__epi epi;
    rft_operand operands[RFT_MAX_EPI];
    const int64_t ldy = (s->glu ? s->n / 2 : s->n) + 5;
    const size_t bytes = (size_t)(s->batch * s->m * ldy) * rft__type_size(s->y);
    unsigned char *y = malloc(bytes);
    assert_int_equal(rft__epi_make(&epi, s->op, s->n_op, s->n, s->glu, 1.0f, NULL), RFT_OK);
    make_operands(s, operands);
    assert_int_equal(rft__epi_check_operands(&epi, operands, s->n_op, s->m, s->batch, NULL), RFT_OK);
    memset(y, GUARD, bytes);
    run_all(s, &epi, operands, &levels[0], y, ldy);
    for (int64_t i = 0; i < s->batch * s->m * epi.n_out; i++) {
        check_element(s, &epi, operands, &levels[0], y, ldy, i / epi.n_out / s->m, i / epi.n_out % s->m, i % epi.n_out);
    }
    check_guards(s, epi.n_out, y, ldy);
    assert_same_on_all_levels(s, &epi, operands, y, ldy);
    for (uint32_t i = 0; i < s->n_op; i++) {
        free(operands[i].ptr);
    }
    free(y);
}

/* ---- tests ---- */

static const rft_type types[] = {RFT_F32, RFT_BF16, RFT_F16};
static const int64_t ragged[] = {1, 15, 16, 17, 32, 45, 64, 100};

static rft_epi_op op_of(rft_epi_kind kind, rft_type type, uint32_t operand) {
    const rft__epi_access access = rft__epi_access_of(kind);
    const bool typed = access == RFT__EPI_MATRIX || access == RFT__EPI_ROW || access == RFT__EPI_COLUMN;
    const bool clamp = kind == RFT_EPI_CLAMP;
    return (rft_epi_op){.kind = kind,
                        .type = typed ? type : 0,
                        .operand = operand,
                        .alpha = clamp ? -0.75f : 0.375f,
                        .beta = clamp ? 0.5f : -1.5f};
}

static void for_shapes(scene *s, rft_type operand_type) {
    for (unsigned i = 0; i < sizeof ragged / sizeof *ragged; i++) {
        for (int y = 0; y < 3; y++) {
            s->n = s->glu ? 2 * ragged[i] : ragged[i];
            s->y = types[y];
            s->rows = i % 3 == 0 ? 14 : i % 3 == 1 ? 4 : RFT__EPI_MAX_ROWS;
            s->segments = s->glu ? (i % 2 ? 2 : 4) : 1 + (int)(i % 4);
            for (uint32_t j = 0; j < s->n_op; j++) {
                s->op[j].type = s->op[j].type ? operand_type : 0;
            }
            check_scene(s);
        }
    }
}

static void every_op_alone(void **state) {
    (void)state;
    fill_products(6.0f);
    for (int kind = 1; kind < RFT_EPI_QUANTIZE; kind++) {
        for (int type = 0; type < 3; type++) {
            scene s = {.op = {op_of((rft_epi_kind)kind, types[type], 0)}, .n_op = 1, .m = 17, .batch = 2};
            s.glu = rft__epi_is_glu((rft_epi_kind)kind);
            for_shapes(&s, types[type]);
            s.interleaved = s.glu;
            if (s.glu) {
                for_shapes(&s, types[type]);
            }
        }
    }
}

static void empty_list(void **state) {
    (void)state;
    scene s = {.m = 15, .batch = 1};
    fill_products(100.0f);
    for_shapes(&s, RFT_F32);
}

/* Ops with operands on both sides of a GLU op: gate and up columns before it, outputs behind it. */
static void ops_round_glu(void **state) {
    (void)state;
    static const rft_epi_kind kinds[] = {RFT_EPI_BIAS,    RFT_EPI_ADD,     RFT_EPI_MASK,      RFT_EPI_ROW_SCALE,
                                         RFT_EPI_DROPOUT, RFT_EPI_GEGLU,   RFT_EPI_COL_SCALE, RFT_EPI_MUL,
                                         RFT_EPI_MASK,    RFT_EPI_DROPOUT, RFT_EPI_ADD};
    scene s = {.n_op = sizeof kinds / sizeof *kinds, .m = 9, .batch = 2, .glu = true};
    fill_products(2.0f);
    for (int type = 0; type < 3; type++) {
        for (uint32_t i = 0; i < s.n_op; i++) {
            s.op[i] = op_of(kinds[i], types[type], i);
        }
        s.interleaved = type == 1;
        for_shapes(&s, types[type]);
        s.interleaved = !s.interleaved;
        for_shapes(&s, types[type]);
    }
}

static void long_list(void **state) {
    (void)state;
    static const rft_epi_kind kinds[RFT_MAX_EPI] = {RFT_EPI_SCALE, RFT_EPI_BIAS,      RFT_EPI_GELU_TANH, RFT_EPI_MUL,
                                                    RFT_EPI_ADD,   RFT_EPI_ROW_SCALE, RFT_EPI_COL_SCALE, RFT_EPI_SILU,
                                                    RFT_EPI_MASK,  RFT_EPI_DROPOUT,   RFT_EPI_BIAS,      RFT_EPI_GELU,
                                                    RFT_EPI_ADD,   RFT_EPI_CLAMP,     RFT_EPI_RELU,      RFT_EPI_SCALE};
    scene s = {.n_op = RFT_MAX_EPI, .m = 33, .batch = 1};
    fill_products(3.0f);
    for (uint32_t i = 0; i < s.n_op; i++) {
        s.op[i] = op_of(kinds[i], RFT_F32, i);
    }
    for_shapes(&s, RFT_F32);
    for_shapes(&s, RFT_BF16);
}

/* A residual may be y itself. */
static void operand_aliases_y(void **state) {
    (void)state;
    float y[14 * 40], residual[14 * 40];
    const scene s = {
        .op = {op_of(RFT_EPI_ADD, RFT_F32, 0)}, .n_op = 1, .m = 14, .n = 37, .batch = 1, .y = RFT_F32, .rows = 14, .segments = 2};
    rft__epi epi;
    fill_products(1.0f);
    assert_int_equal(rft__epi_make(&epi, s.op, 1, s.n, false, 1.0f, NULL), RFT_OK);
    for (int i = 0; i < n_level; i++) {
        for (int j = 0; j < 14 * 40; j++) {
            residual[j] = y[j] = uniform();
        }
        run_all(&s, &epi, &(rft_operand){y, 40, 0}, &levels[i], y, 40);
        for (int64_t j = 0; j < 14 * 37; j++) {
            check_element(&s, &epi, &(rft_operand){residual, 40, 0}, &levels[i], y, 40, 0, j / 37, j % 37);
        }
    }
}

/* Every f16 goes in as an operand and comes out as y unchanged; every rounding case of bf16 and f16 is met by sums. */
static void conversions(void **state) {
    (void)state;
    static uint16_t in[0x10000], out[0x10000];
    rft__epi epi;
    for (unsigned type = 1; type < 3; type++) {
        const rft_epi_op op = {.kind = RFT_EPI_ADD, .type = types[type], .beta = 1.0f};
        assert_int_equal(rft__epi_make(&epi, &op, 1, 16, false, 1.0f, NULL), RFT_OK);
        for (int l = 0; l < n_level; l++) {
            for (unsigned i = 0; i < 0x10000u; i++) {
                in[i] = (uint16_t)i;
            }
            for (int64_t m = 0; m < 0x1000; m++) {
                float acc[16];
                for (int c = 0; c < 16; c++) {
                    acc[c] = -0.0f;
                }
                levels[l].tile(&(rft__epi_tile){.acc = acc, .rows = 1, .segments = 1, .m = m, .epi = &epi, .y_type = types[type],
                                                .operands = &(rft_operand){in, 16, 0}, .y = out, .ldy = 16});
            }
            for (unsigned i = 0; i < 0x10000u; i++) {
                const bool nan = (i & 0x7fffu) > (types[type] == RFT_F16 ? 0x7c00u : 0x7f80u);
                assert_int_equal(out[i], nan ? i | (types[type] == RFT_F16 ? 0x200u : 0x40u) : i);
            }
        }
    }
}

/* Value halfway between, just below and just above two neighbours, and at the ends of the range. */
static void rounding_of_y(void **state) {
    (void)state;
    static const struct {
        float value;
        uint16_t bf16, f16;
    } cases[] = {
        {1.0f, 0x3f80, 0x3c00},          {0x1.01p0f, 0x3f80, 0x3c04},          {0x1.010002p0f, 0x3f81, 0x3c04},
        {0x1.03p0f, 0x3f82, 0x3c0c},     {0x1.002p0f, 0x3f80, 0x3c00},         {0x1.002002p0f, 0x3f80, 0x3c01},
        {0x1.006p0f, 0x3f80, 0x3c02},    {65519.0f, 0x4780, 0x7bff},           {65520.0f, 0x4780, 0x7c00},
        {-1.0e6f, 0xc974, 0xfc00},       {FLT_MAX, 0x7f80, 0x7c00},            {0x1.fep127f, 0x7f7f, 0x7c00},
        {(float)INFINITY, 0x7f80, 0x7c00}, {-(float)INFINITY, 0xff80, 0xfc00}, {0x1p-24f, 0x3380, 0x0001},
        {0x1p-25f, 0x3300, 0x0000},      {0x1.000002p-25f, 0x3300, 0x0001},    {0x1.8p-24f, 0x33c0, 0x0002},
        {0x1.ffbp-15f, 0x3880, 0x03ff},  {0x1.ffcp-15f, 0x3880, 0x0400},       {0x1p-149f, 0x0000, 0x0000},
        {-0.0f, 0x8000, 0x8000},         {0x1p-133f, 0x0001, 0x0000},          {0x1.8p-133f, 0x0002, 0x0000},
    };
    rft__epi epi;
    assert_int_equal(rft__epi_make(&epi, NULL, 0, 16, false, 1.0f, NULL), RFT_OK);
    for (int i = 0; i < (int)(sizeof cases / sizeof *cases) * n_level * 2; i++) {
        const int l = i % n_level, type = 1 + i / n_level % 2, at = i / n_level / 2;
        float acc[16] = {cases[at].value};
        uint16_t y[16];
        levels[l].tile(
            &(rft__epi_tile){.acc = acc, .rows = 1, .segments = 1, .epi = &epi, .y = y, .ldy = 16, .y_type = types[type]});
        if (y[0] != (type == 1 ? cases[at].bf16 : cases[at].f16)) {
            fail_msg("%s: %a as %s is %04x", levels[l].name, (double)cases[at].value, rft__type_name(types[type]), y[0]);
        }
    }
}

/* What each op makes of NaN, infinities and large values: NaN goes through, the activations do not invent one. */
static void special_values(void **state) {
    (void)state;
    const float inputs[16] = {(float)NAN, (float)INFINITY, -(float)INFINITY, FLT_MAX, -FLT_MAX, 0.0f, -0.0f, FLT_MIN, -FLT_MIN,
                              0x1p-149f, 1.0e20f, -1.0e20f, 88.0f, -88.0f, 104.0f, -104.0f};
    static const rft_epi_kind kinds[] = {RFT_EPI_SILU, RFT_EPI_GELU, RFT_EPI_GELU_TANH, RFT_EPI_RELU, RFT_EPI_CLAMP};
    for (int i = 0; i < 5 * n_level; i++) {
        const rft_epi_kind kind = kinds[i / n_level];
        const rft_epi_op op = {.kind = kind, .alpha = -2.0f, .beta = 3.0f};
        rft__epi epi;
        float acc[16], y[16];
        memcpy(acc, inputs, sizeof acc);
        assert_int_equal(rft__epi_make(&epi, &op, 1, 16, false, 1.0f, NULL), RFT_OK);
        levels[i % n_level].tile(
            &(rft__epi_tile){.acc = acc, .rows = 1, .segments = 1, .epi = &epi, .y = y, .ldy = 16, .y_type = RFT_F32});
        assert_true(isnan(y[0]));
        for (int c = 1; c < 16; c++) {
            double value[2] = {(double)inputs[c], 0}, error[2] = {0, 0};
            rft__epi_reference(&epi, NULL, 0, 0, c, false, value, error);
            assert_true(isinf(value[0]) ? (double)y[c] == value[0] : fabs((double)y[c] - value[0]) <= error[0]);
        }
    }
}

/* About alpha of the elements fall, scaled survivors keep their value, and batches draw different numbers. */
static void dropout_rate(void **state) {
    (void)state;
    const scene s = {.op = {op_of(RFT_EPI_DROPOUT, 0, 0)},
                     .n_op = 1,
                     .m = MAX_M,
                     .n = MAX_N,
                     .batch = 2,
                     .y = RFT_F32,
                     .rows = 14,
                     .segments = 4};
    static float y[2][MAX_M][MAX_N];
    uint64_t seeds[2] = {7, 0};
    rft__epi epi;
    int dropped = 0, same = 0;
    fill_products(1.0f);
    assert_int_equal(rft__epi_make(&epi, s.op, 1, s.n, false, 1.0f, NULL), RFT_OK);
    run_all(&s, &epi, &(rft_operand){seeds, 0, 0}, &levels[0], y, MAX_N);
    for (int i = 0; i < MAX_M * MAX_N; i++) {
        const float a = (&y[0][0][0])[i], b = (&y[1][0][0])[i];
        dropped += a == 0.0f;
        same += (a == 0.0f) == (b == 0.0f);
    }
    assert_in_range(dropped, (int)(0.36 * MAX_M * MAX_N), (int)(0.39 * MAX_M * MAX_N));
    assert_in_range(same, (int)(0.50 * MAX_M * MAX_N), (int)(0.56 * MAX_M * MAX_N)); /* p^2 + (1 - p)^2 = 0.53 */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_op_alone), cmocka_unit_test(empty_list),        cmocka_unit_test(ops_round_glu),
        cmocka_unit_test(long_list),      cmocka_unit_test(operand_aliases_y), cmocka_unit_test(conversions),
        cmocka_unit_test(rounding_of_y),  cmocka_unit_test(special_values),    cmocka_unit_test(dropout_rate),
    };
    find_levels();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
