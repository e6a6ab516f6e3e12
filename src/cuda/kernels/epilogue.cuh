/* SPDX-License-Identifier: Apache-2.0
 *
 * epilogue.cuh - the epilogue list of config.h (RFT_EPI) applied to accumulators, and the store of y. The expressions are those
 * of epi_ops.def, so a CPU gives the same bits for the same accumulators, except for activations (fast_math.cuh). Called by every
 * kernel behind rft__pdl_wait; m exists, and of a span's `count` columns n, n + 1, ... the first `valid` do: nothing is read or
 * written for the others, nor at all where valid <= 0. count is a constant: 1, 2, 4 or 8. valid may be larger: a clamp to
 * 0..count that is then compared with count is one VIMNMX.RELU to ptxas 13.0, and the predicate it takes from it is not the
 * comparison.
 *
 * n counts columns of y. Where a gated unit closes the product (RFT_GLU), v holds gate columns and up their up columns; ops
 * before that op see both, with the operand's columns of the product itself.
 * A kernel that finishes several spans hides the latency of operands by fetching for the next before it applies this one.
 */
#ifndef RFT_EPILOGUE_CUH
#define RFT_EPILOGUE_CUH

#ifndef RFT_EPI /* a test has its own */
#include "config.h"
#endif
#include "convert.cuh"
#include "debug.cuh"
#include "fast_math.cuh"
#include "epilogue/epi_math.h"

enum { RFT_ACCESS_NONE, RFT_ACCESS_MATRIX, RFT_ACCESS_ROW, RFT_ACCESS_COLUMN, RFT_ACCESS_BITS, RFT_ACCESS_SEED, RFT_ACCESS_PAIR };
enum { RFT_SPAN = 8, RFT_SPAN_WORDS = 2 * RFT_SPAN }; /* longest span; words of one operand of gate and up */

typedef struct rft__span { /* columns of an operand or of y */
    const rft__cuda_args *args;
    int batch, m, column, count, valid;
    int columns; /* of the whole row */
} rft__span;

/* The operands of a list at one span, as they lie in memory; in registers. */
typedef struct rft__epi_operands {
    unsigned word[RFT_EPI_COUNT + 1][RFT_SPAN_WORDS];
} rft__epi_operands;

/* ---- the ops ---- */

#define FN(f) rft__##f
#define RFT_EPI_OP(kind, name, access, parameters, value, ...)                                                                   \
    RFT_FN float rft__op_##kind(float y, float o, float alpha, float beta) {                                                     \
        (void)o, (void)alpha, (void)beta;                                                                                        \
        return (value);                                                                                                          \
    }
#include "epilogue/epi_ops.def"
#undef RFT_EPI_OP
#undef FN

/* ---- memory ---- */

RFT_FN bool rft__vectors_fit(const char *p, int bytes, const rft__span *s) {
    const unsigned long long align = bytes < 16 ? bytes : 16;
    return bytes >= 4 && s->valid >= s->count && ((unsigned long long)p & (align - 1)) == 0;
}

RFT_FN void rft__read_words(const char *p, int words, unsigned *word) {
    if (words == 1) {
        word[0] = *(const unsigned *)p;
    } else if (words == 2) {
        const uint2 v = *(const uint2 *)p;
        word[0] = v.x, word[1] = v.y;
    } else {
        RFT_UNROLL
        for (int i = 0; i < words; i += 4) {
            const uint4 v = *(const uint4 *)(p + 4 * i);
            word[i] = v.x, word[i + 1] = v.y, word[i + 2] = v.z, word[i + 3] = v.w;
        }
    }
}

RFT_FN void rft__write_words(char *p, int words, const unsigned *word) {
    if (words == 1) {
        *(unsigned *)p = word[0];
    } else if (words == 2) {
        *(uint2 *)p = make_uint2(word[0], word[1]);
    } else {
        RFT_UNROLL
        for (int i = 0; i < words; i += 4) {
            *(uint4 *)(p + 4 * i) = make_uint4(word[i], word[i + 1], word[i + 2], word[i + 3]);
        }
    }
}

/* Elements of `size` bytes from p on, packed into words. */
RFT_FN void rft__read_span(const char *p, int size, const rft__span *s, unsigned *word) {
    if (rft__vectors_fit(p, size * s->count, s)) {
        rft__read_words(p, size * s->count / 4, word);
        return;
    }
    RFT_UNROLL
    for (int j = 0; j < s->count; j++) {
        if (size == 4) {
            word[j] = j < s->valid ? ((const unsigned *)p)[j] : 0;
        } else {
            const unsigned half = j < s->valid ? ((const unsigned short *)p)[j] : 0;
            word[j / 2] = j % 2 ? word[j / 2] | half << 16 : half;
        }
    }
}

RFT_FN void rft__write_span(char *p, int size, const rft__span *s, const unsigned *word) {
    if (rft__vectors_fit(p, size * s->count, s)) {
        rft__write_words(p, size * s->count / 4, word);
        return;
    }
    RFT_UNROLL
    for (int j = 0; j < s->count; j++) {
        if (j < s->valid && size == 4) {
            ((unsigned *)p)[j] = word[j];
        } else if (j < s->valid) {
            ((unsigned short *)p)[j] = (unsigned short)(word[j / 2] >> 16 * (j % 2));
        }
    }
}

/* The bits i, i + 1, ...; a byte is read only if one of them is in it. */
RFT_FN unsigned rft__read_bits(const unsigned char *p, long long i, const rft__span *s) {
    const int shift = (int)(i & 7), bits = shift + s->valid;
    unsigned word = 0;
    p += i >> 3;
    RFT_UNROLL
    for (int j = 0; 8 * j < s->count + 7; j++) {
        word |= s->valid > 0 && 8 * j < bits ? (unsigned)p[j] << 8 * j : 0;
    }
    return word >> shift;
}

/* ---- operands: fetched as words, decoded to f32 ---- */

/* A debug build: whether the operand has what the span is about to read. */
RFT_FN void rft__check_operand(int access, int index, const rft__span *s) {
    const int count = s->valid < s->count ? s->valid : s->count, what = RFT_AT_OPERAND + index;
    if (access == RFT_ACCESS_MATRIX || access == RFT_ACCESS_BITS) {
        RFT_CHECK(s->args, what, s->batch, s->m, s->column, count, s->args->m, s->columns);
    } else if (access == RFT_ACCESS_COLUMN) {
        RFT_CHECK(s->args, what, s->batch, 0, s->column, count, 1, s->columns);
    } else if (access == RFT_ACCESS_ROW) {
        RFT_CHECK(s->args, what, s->batch, 0, s->m, s->valid > 0, 1, s->args->m);
    }
    (void)count, (void)what;
}

RFT_FN void rft__fetch(int access, int type, int index, const rft__span *s, unsigned *word) {
    const rft__cuda_operand *o = &s->args->operand[index];
    const long long base = RFT_BATCHED ? s->batch * o->batch_stride : 0, row = base + s->m * o->ld;
    const char *p = (const char *)o->ptr;
    const int size = rft__size_of(type);
    rft__check_operand(access, index, s);
    if (access == RFT_ACCESS_MATRIX) {
        rft__read_span(p + (row + s->column) * size, size, s, word);
    } else if (access == RFT_ACCESS_COLUMN) {
        rft__read_span(p + (base + s->column) * size, size, s, word);
    } else if (access == RFT_ACCESS_ROW) {
        const rft__span one = {s->args, s->batch, s->m, 0, 1, s->valid > 0, 1};
        rft__read_span(p + (base + s->m) * size, size, &one, word);
    } else if (access == RFT_ACCESS_BITS) {
        word[0] = rft__read_bits((const unsigned char *)p, row + s->column, s);
    } else if (access == RFT_ACCESS_SEED) {
        const rft__span seed = {s->args, s->batch, s->m, 0, 4, s->valid > 0 ? 4 : 0, 4};
        rft__read_span(p, 4, &seed, word);
    }
}

/* out[j] = word[j + skip], 0 <= skip < 4, without an index that registers lack. */
RFT_FN void rft__shift_down(const unsigned *word, int skip, int count, unsigned *out) {
    RFT_UNROLL
    for (int j = 0; j < count; j++) {
        const unsigned even = skip & 2 ? word[j + 2] : word[j], odd = skip & 2 ? word[j + 3] : word[j + 1];
        out[j] = skip & 1 ? odd : even;
    }
}

/* Uniform numbers in [0, 1): element e of a batch has word e % 4 of counter e / 4, whose bits from 44 on hold the batch. */
RFT_FN void rft__uniform(const unsigned *seed, const rft__span *s, float *out) {
    const unsigned long long element = (unsigned long long)s->m * s->columns + s->column;
    unsigned long long counter = element / 4 + ((unsigned long long)s->batch << 44);
    unsigned word[RFT_SPAN_WORDS + 4], drawn[RFT_SPAN_WORDS];
    RFT_UNROLL
    for (int i = 0; i < s->count + 3; i += 4, counter++) {
        word[i] = seed[2], word[i + 1] = seed[3], word[i + 2] = (unsigned)counter, word[i + 3] = (unsigned)(counter >> 32);
        rft__philox(word + i, seed[0], seed[1]);
    }
    rft__shift_down(word, (int)(element % 4), s->count, drawn);
    RFT_UNROLL
    for (int j = 0; j < s->count; j++) {
        out[j] = (float)(int)(drawn[j] >> 8) * 0x1p-24f;
    }
}

RFT_FN void rft__decode(int access, int type, const unsigned *word, const rft__span *s, float *out) {
    if (access == RFT_ACCESS_SEED) {
        rft__uniform(word, s, out);
        return;
    }
    RFT_UNROLL
    for (int j = 0; j < s->count; j++) {
        if (access == RFT_ACCESS_ROW) {
            out[j] = rft__widen(type, word[0]);
        } else if (access == RFT_ACCESS_BITS) {
            out[j] = (float)(int)(word[0] >> j & 1u);
        } else if (type == RFT_TYPE_F32) {
            out[j] = rft__widen(type, word[j]);
        } else {
            out[j] = j % 2 ? rft__widen_high(type, word[j / 2]) : rft__widen_low(type, word[j / 2]);
        }
    }
}

/* ---- gate and up: the columns of the product that belong to a span of y ---- */

RFT_FN rft__span rft__gate_span(rft__span s) {
    s.columns = s.args->n;
    return s;
}

RFT_FN rft__span rft__up_span(rft__span s) {
    s.column += s.columns;
    return rft__gate_span(s);
}

RFT_FN rft__span rft__both_span(rft__span s) {
    s.column *= 2, s.count *= 2, s.valid *= 2;
    return rft__gate_span(s);
}

RFT_FN void rft__fetch_both(int access, int type, int index, rft__span s, unsigned *word) {
    const rft__span gate = rft__gate_span(s), up = rft__up_span(s), both = rft__both_span(s);
    if (RFT_GLU == 2) {
        rft__fetch(access, type, index, &both, word);
    } else {
        rft__fetch(access, type, index, &gate, word);
        rft__fetch(access, type, index, &up, word + RFT_SPAN);
    }
}

RFT_FN void rft__decode_both(int access, int type, const unsigned *word, rft__span s, float *gate_out, float *up_out) {
    const rft__span gate = rft__gate_span(s), up = rft__up_span(s), both = rft__both_span(s);
    if (RFT_GLU != 2) {
        rft__decode(access, type, word, &gate, gate_out);
        rft__decode(access, type, word + RFT_SPAN, &up, up_out);
        return;
    }
    float out[2 * RFT_SPAN];
    rft__decode(access, type, word, &both, out);
    RFT_UNROLL
    for (int j = 0; j < s.count; j++) {
        gate_out[j] = out[2 * j], up_out[j] = out[2 * j + 1];
    }
}

/* ---- spans ---- */

RFT_FN rft__span rft__span_of(const rft__cuda_args *a, int batch, int m, int n, int count, int valid) {
    const rft__span s = {a, batch, m, n, count, valid, RFT_GLU ? a->n / 2 : a->n};
    return s;
}

RFT_FN bool rft__is_loaded(int access) { return access != RFT_ACCESS_NONE && access != RFT_ACCESS_PAIR; }

/* The first half of rft__epi_span: reads the operands. matrix: the words of the list's one matrix if the caller has them, or
 * null; not for a gated unit's two spans. */
RFT_FN void rft__epi_fetch_beside(const rft__cuda_args *a, int batch, int m, int n, int count, int valid, const unsigned *matrix,
                                  rft__epi_operands *o) {
    const rft__span s = rft__span_of(a, batch, m, n, count, valid);
    bool paired = RFT_GLU != 0;
    int i = 0;
#define RFT_STEP(KIND, ACCESS, TYPE, INDEX, ALPHA, BETA)                                                                         \
    if (RFT_ACCESS_##ACCESS == RFT_ACCESS_MATRIX && matrix != 0) {                                                               \
        RFT_UNROLL                                                                                                               \
        for (int j = 0; 4 * j < count * rft__size_of(TYPE); j++) {                                                               \
            o->word[i][j] = matrix[j];                                                                                           \
        }                                                                                                                        \
    } else if (rft__is_loaded(RFT_ACCESS_##ACCESS) && paired) {                                                                  \
        rft__fetch_both(RFT_ACCESS_##ACCESS, TYPE, INDEX, s, o->word[i]);                                                        \
    } else if (rft__is_loaded(RFT_ACCESS_##ACCESS)) {                                                                            \
        rft__fetch(RFT_ACCESS_##ACCESS, TYPE, INDEX, &s, o->word[i]);                                                            \
    }                                                                                                                            \
    paired = paired && RFT_ACCESS_##ACCESS != RFT_ACCESS_PAIR;                                                                   \
    i++;
    RFT_EPI(RFT_STEP)
#undef RFT_STEP
    (void)s, (void)paired, (void)i, (void)o;
}

RFT_FN void rft__epi_fetch(const rft__cuda_args *a, int batch, int m, int n, int count, int valid, rft__epi_operands *o) {
    rft__epi_fetch_beside(a, batch, m, n, count, valid, 0, o);
}

/* The second half: applies the list to v. */
RFT_FN void rft__epi_apply(const rft__cuda_args *a, int batch, int m, int n, const rft__epi_operands *o, float *v,
                           const float *up, int count, int valid) {
    const rft__span s = rft__span_of(a, batch, m, n, count, valid);
    bool paired = RFT_GLU != 0;
    int i = 0;
    float u[RFT_SPAN], own[RFT_SPAN] = {0}, other[RFT_SPAN] = {0};
    RFT_UNROLL
    for (int j = 0; j < count; j++) {
        u[j] = RFT_GLU ? up[j] : 0;
    }
#define RFT_STEP(KIND, ACCESS, TYPE, INDEX, ALPHA, BETA)                                                                         \
    if (rft__is_loaded(RFT_ACCESS_##ACCESS) && paired) {                                                                         \
        rft__decode_both(RFT_ACCESS_##ACCESS, TYPE, o->word[i], s, own, other);                                                  \
    } else if (rft__is_loaded(RFT_ACCESS_##ACCESS)) {                                                                            \
        rft__decode(RFT_ACCESS_##ACCESS, TYPE, o->word[i], &s, own);                                                             \
    }                                                                                                                            \
    RFT_UNROLL                                                                                                                   \
    for (int j = 0; j < count; j++) {                                                                                            \
        const bool pair = RFT_ACCESS_##ACCESS == RFT_ACCESS_PAIR;                                                                \
        v[j] = rft__op_##KIND(v[j], pair ? u[j] : own[j], ALPHA, BETA);                                                          \
        u[j] = paired && !pair ? rft__op_##KIND(u[j], other[j], ALPHA, BETA) : u[j];                                             \
    }                                                                                                                            \
    paired = paired && RFT_ACCESS_##ACCESS != RFT_ACCESS_PAIR;                                                                   \
    i++;
    RFT_EPI(RFT_STEP)
#undef RFT_STEP
    (void)s, (void)paired, (void)i, (void)o, (void)u, (void)own, (void)other;
}

/* Both halves; matrix: as for rft__epi_fetch_beside. */
RFT_FN void rft__epi_span_beside(const rft__cuda_args *a, int batch, int m, int n, const unsigned *matrix, float *v,
                                 const float *up, int count, int valid) {
    rft__epi_operands o;
    rft__epi_fetch_beside(a, batch, m, n, count, valid, matrix, &o);
    rft__epi_apply(a, batch, m, n, &o, v, up, count, valid);
}

RFT_FN void rft__epi_span(const rft__cuda_args *a, int batch, int m, int n, float *v, const float *up, int count, int valid) {
    rft__epi_span_beside(a, batch, m, n, 0, v, up, count, valid);
}

/* Rounds to y's type and stores: vectors where y's address allows. */
RFT_FN void rft__store_span(const rft__cuda_args *a, int batch, int m, int n, const float *v, int count, int valid) {
    const rft__span s = rft__span_of(a, batch, m, n, count, valid);
    const int size = rft__size_of(RFT_Y_TYPE);
    const long long index = (RFT_BATCHED ? batch * a->y_batch_stride : 0) + m * a->ldy + n;
    unsigned word[RFT_SPAN];
    if (size == 4 || count == 1) {
        RFT_UNROLL
        for (int j = 0; j < count; j++) {
            word[j] = rft__narrow(RFT_Y_TYPE, v[j]);
        }
    } else {
        RFT_UNROLL
        for (int j = 0; j < count / 2; j++) {
            word[j] = rft__narrow_pair(RFT_Y_TYPE, v[2 * j], v[2 * j + 1]);
        }
    }
    RFT_CHECK_Y(a, batch, m, n, valid < count ? valid : count);
    rft__write_span((char *)a->y + index * size, size, &s, word);
}

RFT_FN void rft__finish_span(const rft__cuda_args *a, int batch, int m, int n, float *v, const float *up, int count, int valid) {
    if (RFT_DUMPS(RFT_DUMP_ACC)) {
        RFT_DUMP_SPAN(a, batch, m, n, v, up, count, valid);
    }
    rft__epi_span(a, batch, m, n, v, up, count, valid);
    rft__store_span(a, batch, m, n, v, count, valid);
}

#endif
