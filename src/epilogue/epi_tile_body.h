/* SPDX-License-Identifier: Apache-2.0
 *
 * epi_tile_body.h - applies an epilogue to one tile and stores it. cpu/<isa>/epi_tile_<isa>.c defines RFT_EPI_TILE_NAME,
 * includes this text and compiles it with the level's flags; see epi_tile.h for the contract.
 *
 * Op by op over the whole tile: the operand is brought to f32 (a view of segments of 16), then one loop of the op's own
 * expression (epi_ops.def) runs over all segments. Ragged segments are computed in full, but only their own columns are
 * read and stored. Invariant: loops over a segment have the constant length 16, which is one or a few vectors.
 */
#include "epilogue/epi_math.h"
#include "epilogue/epi_tile.h"

#include <string.h>
#if defined(__F16C__)
#include <immintrin.h>
#endif

#define SEGMENT RFT__EPI_SEGMENT

/* The columns of y or of an operand that a segment holds: first, first + step, ... */
typedef struct window {
    int64_t first;
    int step, count;
} window;

typedef struct state {
    const rft__epi_tile *tile;
    float *acc;
    int rows, segments;
    int64_t columns; /* of the whole row: n_in, then n_out */
    window window[RFT__EPI_MAX_SEGMENTS];
    float operand[RFT__EPI_MAX_ROWS * RFT__EPI_MAX_SEGMENTS * SEGMENT];
} state;

/* An operand in f32: segment s of row r lies at data + r * row + s * segment. */
typedef struct view {
    const float *data;
    int64_t row, segment;
} view;

/* ---- conversions of 16 elements ---- */

static inline void widen_f32(const void *p, float *restrict out) { memcpy(out, p, SEGMENT * sizeof(float)); }

static inline void widen_bf16(const void *p, float *restrict out) {
    const uint16_t *in = p;
    for (int c = 0; c < SEGMENT; c++) {
        out[c] = rft__as_float((unsigned)in[c] << 16);
    }
}

static inline void narrow_f32(const float *in, void *p) { memcpy(p, in, SEGMENT * sizeof(float)); }

/* Round to nearest even; the carry of the largest finite values gives Inf; NaN is kept and quietened. */
static inline void narrow_bf16(const float *restrict in, void *p) {
    uint16_t *restrict out = p;
    for (int c = 0; c < SEGMENT; c++) {
        const unsigned u = rft__as_bits(in[c]), rounded = (u + 0x7fffu + (u >> 16 & 1u)) >> 16;
        out[c] = (uint16_t)((u & 0x7fffffffu) > 0x7f800000u ? u >> 16 | 0x40u : rounded);
    }
}

#if defined(__AVX512F__)
static inline void widen_f16(const void *p, float *restrict out) {
    _mm512_storeu_ps(out, _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)p)));
}

static inline void narrow_f16(const float *restrict in, void *p) {
    _mm256_storeu_si256((__m256i *)p, _mm512_cvtps_ph(_mm512_loadu_ps(in), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}
#elif defined(__F16C__)
static inline void widen_f16(const void *p, float *restrict out) {
    const __m128i *in = p;
    _mm256_storeu_ps(out, _mm256_cvtph_ps(_mm_loadu_si128(in)));
    _mm256_storeu_ps(out + 8, _mm256_cvtph_ps(_mm_loadu_si128(in + 1)));
}

static inline void narrow_f16(const float *restrict in, void *p) {
    __m128i *out = p;
    _mm_storeu_si128(out, _mm256_cvtps_ph(_mm256_loadu_ps(in), _MM_FROUND_TO_NEAREST_INT));
    _mm_storeu_si128(out + 1, _mm256_cvtps_ph(_mm256_loadu_ps(in + 8), _MM_FROUND_TO_NEAREST_INT));
}
#else
/* 112 = 127 - 15, the difference of the exponents' biases. Denormals are fraction * 2^-24; NaN is quietened, as F16C does. */
static inline void widen_f16(const void *p, float *restrict out) {
    const uint16_t *in = p;
    for (int c = 0; c < SEGMENT; c++) {
        const unsigned h = in[c], magnitude = h & 0x7fffu;
        const unsigned normal = (magnitude << 13) + (112u << 23), denormal = rft__as_bits((float)(int)magnitude * 0x1p-24f);
        const unsigned special = ((magnitude << 13) + (224u << 23)) | (magnitude > 0x7c00u ? 0x400000u : 0u);
        out[c] = rft__as_float((h & 0x8000u) << 16 | (magnitude < 0x400u ? denormal : magnitude < 0x7c00u ? normal : special));
    }
}

/* Adding 0.5 makes the f32 addition itself round a magnitude below 2^-14 to a multiple of 2^-24. */
static inline void narrow_f16(const float *restrict in, void *p) {
    uint16_t *restrict out = p;
    for (int c = 0; c < SEGMENT; c++) {
        const unsigned u = rft__as_bits(in[c]), a = u & 0x7fffffffu;
        const unsigned normal = (a - (112u << 23) + 0xfffu + (a >> 13 & 1u)) >> 13;
        const unsigned denormal = rft__as_bits(rft__as_float(a) + 0.5f) - rft__as_bits(0.5f);
        const unsigned special = a > 0x7f800000u ? 0x7e00u | (a >> 13 & 0x3ffu) : 0x7c00u;
        out[c] = (uint16_t)(u >> 16 & 0x8000u) | (uint16_t)(a < 0x38800000u ? denormal : a < 0x47800000u ? normal : special);
    }
}
#endif

/* ---- operands ---- */

/* Loads the columns of a window, which begin at element `index` of an operand; columns beyond the window give 0. */
typedef void load_fn(const void *base, int64_t index, window w, float *out);

#define DEFINE_LOAD(type, element)                                                        \
    static void load_##type(const void *base, int64_t index, window w, float *out) {      \
        element part[SEGMENT] = {0};                                                      \
        const element *p = (const element *)base + index;                                 \
        if (w.step == 1 && w.count == SEGMENT) {                                          \
            widen_##type(p, out);                                                         \
            return;                                                                       \
        }                                                                                 \
        for (int c = 0; c < w.count; c++) {                                               \
            part[c] = p[c * w.step];                                                      \
        }                                                                                 \
        widen_##type(part, out);                                                          \
    }
DEFINE_LOAD(f32, float)
DEFINE_LOAD(bf16, uint16_t)
DEFINE_LOAD(f16, uint16_t)
#undef DEFINE_LOAD

static void load_bits(const void *base, int64_t index, window w, float *out) {
    const unsigned char *p = base;
    for (int c = 0; c < SEGMENT; c++) {
        const int64_t i = index + (int64_t)c * w.step;
        out[c] = c < w.count && (p[i >> 3] >> (i & 7) & 1) ? 1.0f : 0.0f;
    }
}

/* Uniform numbers in [0, 1) for 16 elements of one row: one Philox block for each group of four. */
static void load_uniform(const void *base, int64_t index, window w, float *out) {
    const uint64_t *seed = base;
    const uint64_t first = (uint64_t)index / 4;
    const int blocks = (int)((uint64_t)(index + (SEGMENT - 1) * w.step) / 4 - first) + 1;
    unsigned words[4 * (2 * SEGMENT / 4 + 1)];
    for (int i = 0; i < blocks; i++) {
        const uint64_t counter = first + (uint64_t)i;
        unsigned *x = words + 4 * i;
        x[0] = (unsigned)seed[1];
        x[1] = (unsigned)(seed[1] >> 32);
        x[2] = (unsigned)counter;
        x[3] = (unsigned)(counter >> 32);
        rft__philox(x, (unsigned)seed[0], (unsigned)(seed[0] >> 32));
    }
    for (int c = 0; c < SEGMENT; c++) {
        out[c] = (float)(int)(words[index % 4 + c * w.step] >> 8) * 0x1p-24f;
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
        for (int i = 0; i < s->segments; i++) {
            load(from.base, from.index + r * from.ld + s->window[i].first, s->window[i], s->operand + (r * s->segments + i) * SEGMENT);
        }
    }
    return (view){s->operand, rows > 1 ? s->segments * SEGMENT : 0, SEGMENT};
}

/* One value a row: broadcast over one segment, which serves all. */
static view load_scalars(state *s, load_fn *load, origin from) {
    for (int r = 0; r < s->rows; r++) {
        float value[SEGMENT];
        load(from.base, from.index + r, (window){0, 1, 1}, value);
        for (int c = 0; c < SEGMENT; c++) {
            s->operand[r * SEGMENT + c] = value[0];
        }
    }
    return (view){s->operand, SEGMENT, 0};
}

static bool is_contiguous(const state *s) {
    for (int i = 0; i < s->segments; i++) {
        const window *w = &s->window[i];
        if (w->step != 1 || w->count != SEGMENT || w->first != s->window[0].first + i * SEGMENT) {
            return false;
        }
    }
    return true;
}

static void set_windows(state *s) {
    const rft__epi_tile *t = s->tile;
    const bool paired = t->epi->glu_at >= 0, before = paired && s->columns == t->epi->n_in;
    const int64_t panel = paired ? t->panel / 2 : t->panel, n_out = t->epi->n_out;
    for (int i = 0; i < s->segments; i++) {
        const int64_t column = (panel + (before ? i / 2 : i)) * SEGMENT, left = n_out - column;
        const int up = before ? i % 2 : 0;
        s->window[i] = (window){
            .first = !before ? column : t->glu_interleaved ? 2 * column + up : column + up * n_out,
            .step = before && t->glu_interleaved ? 2 : 1,
            .count = left < 0 ? 0 : left < SEGMENT ? (int)left : SEGMENT,
        };
    }
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
    set_windows(s);
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
    if (access == RFT__EPI_MATRIX && op->type == RFT_F32 && is_contiguous(s)) {
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

#define DEFINE_STORE(type, element)                                                                     \
    static void store_##type(const state *s) {                                                          \
        element *y = (element *)s->tile->y + s->tile->m * s->tile->ldy;                                 \
        for (int r = 0; r < s->rows; r++, y += s->tile->ldy) {                                          \
            for (int i = 0; i < s->segments; i++) {                                                     \
                const float *acc = s->acc + (r * s->segments + i) * SEGMENT;                            \
                const window w = s->window[i];                                                          \
                element part[SEGMENT];                                                                  \
                if (w.count == SEGMENT) {                                                               \
                    narrow_##type(acc, y + w.first);                                                    \
                } else if (w.count > 0) {                                                               \
                    narrow_##type(acc, part);                                                           \
                    memcpy(y + w.first, part, (size_t)w.count * sizeof(element));                       \
                }                                                                                       \
            }                                                                                           \
        }                                                                                               \
    }
DEFINE_STORE(f32, float)
DEFINE_STORE(bf16, uint16_t)
DEFINE_STORE(f16, uint16_t)
#undef DEFINE_STORE

void RFT_EPI_TILE_NAME(const rft__epi_tile *tile) {
    state s;
    s.tile = tile;
    s.acc = tile->acc;
    s.rows = tile->rows;
    s.segments = tile->segments;
    s.columns = tile->epi->n_in;
    set_windows(&s);
    for (int i = 0; i < tile->epi->n_op; i++) {
        const rft_epi_op *op = &tile->epi->op[i];
        const view v = operand_view(&s, op);
        apply[op->kind](&s, v, op);
    }
    if (tile->y_type == RFT_F32) {
        store_f32(&s);
    } else if (tile->y_type == RFT_BF16) {
        store_bf16(&s);
    } else {
        store_f16(&s);
    }
}

#undef SEGMENT
