/* SPDX-License-Identifier: Apache-2.0
 *
 * epi_tile_body.h - applies an epilogue to one tile and stores it. cpu/<isa>/epi_tile_<isa>.c defines RFT_EPI_TILE_NAME,
 * includes this text and compiles it with the level's flags; see epi_tile.h for the contract.
 *
 * Op by op over the whole tile: the operand is brought to f32 (a view of segments of 16), then one loop of the op's own
 * expression (epi_ops.def) runs over all segments. Ragged segments are computed in full, but only their own columns are
 * read and stored. The compiler vectorises every loop: ops over segments of constant length, the rest over a row.
 */
#include "base/type.h"
#include "epilogue/epi_math.h"
#include "epilogue/epi_tile.h"
#include "epilogue/narrow8.h"

#include <string.h>
#if defined(__F16C__)
#include <immintrin.h>
#endif

#define SEGMENT RFT__EPI_SEGMENT
#define MAX_WIDTH (RFT__EPI_MAX_SEGMENTS * SEGMENT)

/* Columns first, first + step, ... of a row: `count` of them exist, `width` positions of the tile hold them. */
typedef struct window {
    int64_t first;
    int step, count, width;
} window;

typedef struct state {
    const rft__epi_tile *tile;
    float *acc;
    int rows, segments;
    int64_t columns; /* of the whole row: n_in, then n_out */
    int windows;     /* one for the tile's width; before a GLU op one a segment */
    window window[RFT__EPI_MAX_SEGMENTS];
    float operand[RFT__EPI_MAX_ROWS * MAX_WIDTH];
} state;

/* An operand in f32: segment s of row r lies at data + r * row + s * segment. */
typedef struct view {
    const float *data;
    int64_t row, segment;
} view;

/* ---- conversions; width is a multiple of SEGMENT ---- */

static void widen_f32(const float *in, int width, float *out) { memcpy(out, in, (size_t)width * sizeof(float)); }

static void widen_bf16(const uint16_t *restrict in, int width, float *restrict out) {
    for (int c = 0; c < width; c++) {
        out[c] = rft__as_float((unsigned)in[c] << 16);
    }
}

static void narrow_f32(const float *in, int width, void *out) { memcpy(out, in, (size_t)width * sizeof(float)); }

/* Round to nearest even; the carry of the largest finite values gives Inf; NaN is kept and quietened. */
static void narrow_bf16(const float *restrict in, int width, void *y) {
    uint16_t *restrict out = y;
    for (int c = 0; c < width; c++) {
        const unsigned u = rft__as_bits(in[c]), rounded = u + 0x7fffu + (u >> 16 & 1u), quiet = u | 0x400000u;
        out[c] = (uint16_t)(((u & 0x7fffffffu) > 0x7f800000u ? quiet : rounded) >> 16);
    }
}

#if defined(__AVX512F__)
static void widen_f16(const uint16_t *restrict in, int width, float *restrict out) {
    for (int c = 0; c < width; c += SEGMENT) {
        _mm512_storeu_ps(out + c, _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(const void *)(in + c))));
    }
}

static void narrow_f16(const float *restrict in, int width, void *y) {
    __m256i *out = y;
    for (int c = 0; c < width; c += SEGMENT) {
        _mm256_storeu_si256(out++, _mm512_cvtps_ph(_mm512_loadu_ps(in + c), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
    }
}
#elif defined(__F16C__)
static void widen_f16(const uint16_t *restrict in, int width, float *restrict out) {
    for (int c = 0; c < width; c += 8) {
        _mm256_storeu_ps(out + c, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)(in + c))));
    }
}

static void narrow_f16(const float *restrict in, int width, void *y) {
    __m128i *out = y;
    for (int c = 0; c < width; c += 8) {
        _mm_storeu_si128(out++, _mm256_cvtps_ph(_mm256_loadu_ps(in + c), _MM_FROUND_TO_NEAREST_INT));
    }
}
#else
/* 112 = 127 - 15, the difference of the exponents' biases. Denormals are fraction * 2^-24; NaN is quietened, as F16C does. */
static void widen_f16(const uint16_t *restrict in, int width, float *restrict out) {
    for (int c = 0; c < width; c++) {
        const unsigned h = in[c], magnitude = h & 0x7fffu;
        const unsigned normal = (magnitude << 13) + (112u << 23), denormal = rft__as_bits((float)(int)magnitude * 0x1p-24f);
        const unsigned special = ((magnitude << 13) + (224u << 23)) | (magnitude > 0x7c00u ? 0x400000u : 0u);
        out[c] = rft__as_float((h & 0x8000u) << 16 | (magnitude < 0x400u ? denormal : magnitude < 0x7c00u ? normal : special));
    }
}

/* Adding 0.5 makes the f32 addition itself round a magnitude below 2^-14 to a multiple of 2^-24. */
static void narrow_f16(const float *restrict in, int width, void *y) {
    uint16_t *restrict out = y;
    for (int c = 0; c < width; c++) {
        const unsigned u = rft__as_bits(in[c]), a = u & 0x7fffffffu;
        const unsigned normal = (a - (112u << 23) + 0xfffu + (a >> 13 & 1u)) >> 13;
        const unsigned denormal = rft__as_bits(rft__as_float(a) + 0.5f) - rft__as_bits(0.5f);
        const unsigned special = a > 0x7f800000u ? 0x7e00u | (a >> 13 & 0x3ffu) : 0x7c00u;
        out[c] = (uint16_t)((u >> 16 & 0x8000u) | (a < 0x38800000u ? denormal : a < 0x47800000u ? normal : special));
    }
}
#endif

static void narrow_i8(const float *restrict in, int width, void *y) {
    signed char *restrict out = y;
    for (int c = 0; c < width; c++) {
        out[c] = rft__narrow_i8(in[c]);
    }
}

static void narrow_e4m3(const float *restrict in, int width, void *y) {
    unsigned char *restrict out = y;
    for (int c = 0; c < width; c++) {
        out[c] = rft__narrow_e4m3(in[c]);
    }
}

/* ---- operands ---- */

/* Loads the columns of a window; `index` is that of its first in the operand. Positions beyond its count become 0. */
typedef void load_fn(const void *base, int64_t index, window w, float *out);

#define DEFINE_LOAD(type, element)                                                        \
    static void load_##type(const void *base, int64_t index, window w, float *out) {      \
        const element *p = (const element *)base + index;                                 \
        if (w.step == 1 && w.count == w.width) {                                          \
            widen_##type(p, w.width, out);                                                \
            return;                                                                       \
        }                                                                                 \
        element part[MAX_WIDTH] = {0};                                                    \
        for (int c = 0; c < w.count; c++) {                                               \
            part[c] = p[c * w.step];                                                      \
        }                                                                                 \
        widen_##type(part, w.width, out);                                                 \
    }
DEFINE_LOAD(f32, float)
DEFINE_LOAD(bf16, uint16_t)
DEFINE_LOAD(f16, uint16_t)
#undef DEFINE_LOAD

/* Eight bits from bit i on; they span two bytes where i is odd to 8. */
static unsigned eight_bits(const unsigned char *p, int64_t i) {
    const unsigned low = (unsigned)p[i >> 3] >> (i & 7);
    return i & 7 ? low | (unsigned)p[(i >> 3) + 1] << (8 - (i & 7)) : low;
}

static void load_bits(const void *base, int64_t index, window w, float *out) {
    const unsigned char *p = base;
    const int whole = w.step == 1 ? w.count & ~7 : 0;
    for (int c = 0; c < whole; c += 8) {
        const unsigned bits = eight_bits(p, index + c);
        for (int j = 0; j < 8; j++) {
            out[c + j] = (float)(int)(bits >> j & 1u);
        }
    }
    for (int c = whole; c < w.width; c++) {
        const int64_t i = index + (int64_t)c * w.step;
        out[c] = c < w.count && (p[i >> 3] >> (i & 7) & 1) ? 1.0f : 0.0f;
    }
}

/* Uniform numbers in [0, 1) for the elements of one row, one Philox word each. Positions beyond the row draw, too: nothing
 * is read for them. */
static void load_uniform(const void *base, int64_t index, window w, float *out) {
    const uint64_t *seed = base, first = (uint64_t)index / 4;
    const int skip = (int)(index % 4), blocks = (skip + (w.width - 1) * w.step) / 4 + 1;
    unsigned words[2 * MAX_WIDTH / 4 + 1][4];
    for (int i = 0; i < blocks; i++) {
        const uint64_t counter = first + (uint64_t)i;
        words[i][0] = (unsigned)seed[1];
        words[i][1] = (unsigned)(seed[1] >> 32);
        words[i][2] = (unsigned)counter;
        words[i][3] = (unsigned)(counter >> 32);
        rft__philox(words[i], (unsigned)seed[0], (unsigned)(seed[0] >> 32));
    }
    for (int c = 0; c < w.width; c++) {
        const int at = skip + c * w.step;
        out[c] = (float)(int)(words[at / 4][at % 4] >> 8) * 0x1p-24f;
    }
}

static load_fn *loader(const rft_epi_op *op, rft__epi_access access) {
    switch (access) {
    case RFT__EPI_BITS:
        return load_bits;
    case RFT__EPI_SEED:
        return load_uniform;
    default:
        return op->type == RFT_F32 ? load_f32 : op->type == RFT_BF16 ? load_bf16 : load_f16;
    }
}

/* Where row 0 of a tile begins in an operand, and how far its rows are apart. */
typedef struct origin {
    const void *base;
    int64_t index, ld;
} origin;

static origin origin_of(const state *s, const rft_epi_op *op, rft__epi_access access) {
    const rft_operand *o = &s->tile->operands[op->operand];
    const int64_t b = s->tile->b, m = s->tile->m, ld = o->ld ? o->ld : s->columns, batch = b * o->batch_stride;
    switch (access) {
    case RFT__EPI_ROW:
        return (origin){o->ptr, batch + m, 1};
    case RFT__EPI_COLUMN:
        return (origin){o->ptr, batch, 0};
    case RFT__EPI_SEED: /* b * 2^44 in the counter, which is element / 4 */
        return (origin){o->ptr, b * ((int64_t)1 << 46) + m * s->columns, s->columns};
    default:
        return (origin){o->ptr, batch + m * ld, ld};
    }
}

static view load_rows(state *s, load_fn *load, origin from, int rows) {
    for (int r = 0; r < rows; r++) {
        for (int i = 0; i < s->windows; i++) {
            float *out = s->operand + (r * s->segments + i) * SEGMENT;
            load(from.base, from.index + r * from.ld + s->window[i].first, s->window[i], out);
        }
    }
    return (view){s->operand, rows > 1 ? s->segments * SEGMENT : 0, SEGMENT};
}

/* One value a row: broadcast over one segment, which serves all. */
static view load_scalars(state *s, load_fn *load, origin from) {
    float value[RFT__EPI_MAX_ROWS];
    load(from.base, from.index, (window){0, 1, s->rows, RFT__EPI_MAX_ROWS}, value);
    for (int r = 0; r < s->rows; r++) {
        for (int c = 0; c < SEGMENT; c++) {
            s->operand[r * SEGMENT + c] = value[r];
        }
    }
    return (view){s->operand, SEGMENT, 0};
}

static int clipped(int64_t left, int width) { return left < 0 ? 0 : left < width ? (int)left : width; }

/* Panels 2 j and 2 j + 1 hold the gate and up columns of outputs 16 j to 16 j + 15. */
static void set_paired_windows(state *s) {
    const rft__epi_tile *t = s->tile;
    s->windows = s->segments;
    for (int i = 0; i < s->segments; i++) {
        const int64_t column = (t->panel / 2 + i / 2) * SEGMENT, up = i % 2, n_out = t->epi->n_out;
        s->window[i] = (window){
            .first = t->glu_interleaved ? 2 * column + up : column + up * n_out,
            .step = t->glu_interleaved ? 2 : 1,
            .count = clipped(n_out - column, SEGMENT),
            .width = SEGMENT,
        };
    }
}

static void set_window(state *s, int64_t panel) {
    const int width = s->segments * SEGMENT;
    s->windows = 1;
    s->window[0] = (window){panel * SEGMENT, 1, clipped(s->columns - panel * SEGMENT, width), width};
}

/* Gate columns stay in the tile, up columns become the operand; from here on the row has n_out columns. */
static view split_pairs(state *s) {
    const int pairs = s->rows * s->segments / 2;
    for (int i = 0; i < pairs; i++) {
        memcpy(s->operand + i * SEGMENT, s->acc + (2 * i + 1) * SEGMENT, SEGMENT * sizeof(float));
        memmove(s->acc + i * SEGMENT, s->acc + 2 * i * SEGMENT, SEGMENT * sizeof(float));
    }
    s->segments /= 2;
    s->columns = s->tile->epi->n_out;
    set_window(s, s->tile->panel / 2);
    return (view){s->operand, s->segments * SEGMENT, SEGMENT};
}

static view operand_view(state *s, const rft_epi_op *op) {
    const rft__epi_access access = rft__epi_access_of(op->kind);
    if (access == RFT__EPI_NONE) {
        return (view){s->operand, 0, 0};
    }
    if (access == RFT__EPI_PAIR) {
        return split_pairs(s);
    }
    const origin from = origin_of(s, op, access);
    load_fn *load = loader(op, access);
    if (access == RFT__EPI_ROW) {
        return load_scalars(s, load, from);
    }
    if (access == RFT__EPI_MATRIX && op->type == RFT_F32 && s->windows == 1 && s->window[0].count == s->window[0].width) {
        return (view){(const float *)from.base + from.index + s->window[0].first, from.ld, SEGMENT};
    }
    return load_rows(s, load, from, access == RFT__EPI_COLUMN ? 1 : s->rows);
}

/* ---- ops: one loop each ---- */

#define FN(f) rft__##f
#define RFT_EPI_OP(kind, name, access, parameters, value, ...)                                                              \
    static inline void segment_##name(float *restrict acc, const float *restrict operand, float alpha, float beta) {        \
        (void)operand, (void)alpha, (void)beta;                                                                             \
        for (int c = 0; c < SEGMENT; c++) {                                                                                 \
            const float y = acc[c], o = operand[c];                                                                         \
            (void)o;                                                                                                        \
            acc[c] = (value);                                                                                               \
        }                                                                                                                   \
    }                                                                                                                       \
    static void apply_##name(const state *s, view v, const rft_epi_op *op) {                                                \
        const float alpha = op->alpha, beta = op->beta;                                                                     \
        for (int r = 0; r < s->rows; r++) {                                                                                 \
            for (int i = 0; i < s->segments; i++) {                                                                         \
                segment_##name(s->acc + (r * s->segments + i) * SEGMENT, v.data + r * v.row + i * v.segment, alpha, beta);  \
            }                                                                                                               \
        }                                                                                                                   \
    }
#include "epilogue/epi_ops.def"
#undef RFT_EPI_OP
#undef FN

typedef void apply_fn(const state *s, view v, const rft_epi_op *op);

static apply_fn *const apply[] = {
#define RFT_EPI_OP(kind, name, ...) [RFT_EPI_##kind] = apply_##name,
#include "epilogue/epi_ops.def"
#undef RFT_EPI_OP
};

/* ---- the one store ---- */

typedef void narrow_fn(const float *in, int width, void *out);

static void store(const state *s, narrow_fn *narrow, size_t size) {
    const rft__epi_tile *t = s->tile;
    const window w = s->window[0];
    char *row = (char *)t->y + (size_t)(t->m * t->ldy + w.first) * size;
    for (int r = 0; r < s->rows; r++, row += (size_t)t->ldy * size) {
        const float *acc = s->acc + r * w.width;
        if (w.count == w.width) {
            narrow(acc, w.width, row);
        } else {
            uint32_t part[MAX_WIDTH];
            narrow(acc, w.width, part);
            memcpy(row, part, (size_t)w.count * size);
        }
    }
}

static narrow_fn *narrow_to(rft_type type) {
    return type == RFT_F32    ? narrow_f32
           : type == RFT_BF16 ? narrow_bf16
           : type == RFT_F16  ? narrow_f16
           : type == RFT_I8   ? narrow_i8
                              : narrow_e4m3;
}

/* Codes are y over its scale. */
static void divide_by_scale(const state *s) {
    const rft__epi_tile *t = s->tile;
    const float scale = *(const float *)t->operands[t->epi->quantize.operand].ptr;
    for (int i = 0; i < s->rows * s->segments * SEGMENT; i++) {
        s->acc[i] /= scale;
    }
}

void RFT_EPI_TILE_NAME(const rft__epi_tile *tile) {
    state s;
    s.tile = tile;
    s.acc = tile->acc;
    s.rows = tile->rows;
    s.segments = tile->segments;
    s.columns = tile->epi->n_in;
    if (tile->epi->glu_at < 0) {
        set_window(&s, tile->panel);
    } else {
        set_paired_windows(&s);
    }
    for (int i = 0; i < tile->epi->n_op; i++) {
        const rft_epi_op *op = &tile->epi->op[i];
        const view v = operand_view(&s, op);
        apply[op->kind](&s, v, op);
    }
    const rft_type type = tile->y_type;
    if (rft__type_is_8bit(type)) {
        divide_by_scale(&s);
    }
    store(&s, narrow_to(type), rft__type_size(type));
}

#undef SEGMENT
#undef MAX_WIDTH
