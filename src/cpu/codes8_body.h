/* SPDX-License-Identifier: Apache-2.0
 *
 * codes8_body.h - products of codes with X in 8 bits (codes8_x_body.h), and the strips of bytes that they read where many rows
 * share them; text for the codes8_<isa>.c of the ISA folders. Before it the includer defines what codes_panel_body.h asks, and
 *     words_store(p, v)
 *     bytes_look_up(p, v): of 16 bytes at p, by each byte of v, which is below 16
 *     dot_quad(wide, sum, q, x): sum + q's unsigned bytes (above 127 only where wide) times x's signed ones, four a word
 *     CODES8_PANEL, a macro, where dot_quad_at(wide, sum, q, x), with x in memory, costs no more, and registers hold 8 quads
 *
 *     panels   sums of all rows and panels in registers, each k of W unpacked once for them; totals in memory
 *     a panel  totals in registers; short sums row by row, 8 dot products of a block's quads in registers, scaling, FMA, so that
 *              scaling falls between the products of other rows; long ones as above
 *     strips   a panel of bytes, row by row
 *
 * A sum is of 16 to 256 k and needs one scale of W and one of X. It is exact in int32 and as float: |sum| <= 256 * 255 * 128 <
 * 2^23. The order of additions is that of ascending k, whatever the tile. Where both scales serve all k (one_sum) tiles add words
 * alone, modulo 2^32, of which the last is less than 2^31 once settle() has taken the bias off.
 */
#include "cpu/codes8_x_body.h"
#include "cpu/codes_panel_body.h"

#include <string.h>

/* ---- W ---- */

enum { STRIP_BLOCK = RFT__BLOCK * RFT__COLUMNS /* bytes of a block of a strip */ };

/* Codes 4 t .. 4 t + 3 of a block as bytes. Codes of four bits without offset go through a table, be it 0 to 15. */
RFT_INLINE ivec byte_quad(int bits, rft__offset_kind offset, const rft__packing *p, const char *block, int t) {
    const ivec q = quad(bits, block, t);
    return bits == 4 && offset == RFT__OFFSET_NONE ? bytes_look_up(p->i8_table, q) : q;
}

static __attribute__((noinline)) void scale_by(float factor, int64_t n, float *scale) {
    for (int64_t i = 0; i < n; i++) {
        scale[i] *= factor;
    }
}

/* A chunk's scales, with what the bytes of a table are more than its values. */
RFT_INLINE void expand8(int bits, const rft__packing *packing, const char *w, int64_t k, scales *s) {
    expand(packing, w, k, s);
    if (bits == 4 && packing->has_table) { /* other factors are 1 */
        scale_by(packing->i8_factor, rft__packing_scales(packing, k) * RFT__COLUMNS, s->scale);
    }
}

/* Where the scale of sum i stands among those of a chunk. */
RFT_INLINE int64_t scale_at(const rft__packing *p, int64_t i) {
    return (i * rft__packing_sum(p) / RFT__SLICE >> p->step_shift) * RFT__COLUMNS;
}

/* The head of a chunk of a strip. */
RFT_INLINE void unpack_head(int bits, rft__offset_kind offset, const rft__packing *p, const char *w, int64_t k, float *scale) {
    scales s;
    expand8(bits, p, w, k, &s);
    const int64_t sums = rft__packing_sums(p, k);
    float *shift = scale + sums * RFT__COLUMNS;
    for (int64_t i = 0; i < sums; i++) {
        vec_store(scale + i * RFT__COLUMNS, vec_load(s.scale + scale_at(p, i)));
        if (offset != RFT__OFFSET_NONE) {
            vec_store(shift + i * RFT__COLUMNS, vec_load(s.offset + scale_at(p, i)));
        }
    }
}

/* A chunk of k of a panel as one of a strip. */
RFT_INLINE void unpack_chunk(int bits, rft__offset_kind offset, const rft__packing *p, const char *w, int64_t k, char *dst) {
    const int64_t blocks = rft__ceil_div(k, RFT__BLOCK);
    unpack_head(bits, offset, p, w, k, (float *)(void *)dst);
    w += rft__packing_head_bytes(p, k);
    dst += rft__strip_head_bytes(p, k);
    for (int64_t b = 0; b < blocks; b++, w += 64 * bits, dst += STRIP_BLOCK) {
        fetch_block(bits, 1, w, 0);
        RFT_UNROLL
        for (int t = 0; t < 8; t++) {
            words_store((int32_t *)(void *)(dst + 64 * t), byte_quad(bits, offset, p, w, t));
        }
    }
}

#define CODES8_NAMES(F) F(q2m) F(q3) F(q4) F(q4m) F(q4z) F(q5) F(q5m) F(q6) F(q8) F(q8z)

#define UNPACK_FUNCTION(name)                                                                          \
    static void unpack_##name(const rft__packing *p, const char *w, int64_t k, char *dst) {            \
        unpack_chunk(CODES_BITS_##name, CODES_OFFSET_##name, p, w, k, dst);                            \
    }
CODES8_NAMES(UNPACK_FUNCTION)
#undef UNPACK_FUNCTION

static void unpack(const rft__packing *packing, const char *w, int64_t k, char *dst) {
    for (int64_t at = 0; at < k; at += RFT__CHUNK) {
        const int64_t chunk = rft__min(RFT__CHUNK, k - at);
#define UNPACK_CASE(name)                                                                       \
    if (packing->bits == CODES_BITS_##name && packing->offset == CODES_OFFSET_##name) {         \
        unpack_##name(packing, w, chunk, dst);                                                  \
    }
        CODES8_NAMES(UNPACK_CASE)
#undef UNPACK_CASE
        w += rft__packing_chunk_bytes(packing, chunk);
        dst += rft__strip_chunk_bytes(packing, chunk);
    }
}

/* ---- tiles ---- */

typedef ivec sums_of[RFT__MAX_ROWS][RFT__MAX_PANELS];

RFT_INLINE int32_t four_codes(const signed char *p) {
    int32_t four;
    memcpy(&four, p, sizeof four);
    return four;
}

#ifdef CODES8_PANEL
enum { ONE_PANEL = 1 };
#else
enum { ONE_PANEL = 0 };
RFT_INLINE ivec dot_quad_at(bool wide, ivec sum, ivec q, const signed char *x) {
    return dot_quad(wide, sum, q, words_set(four_codes(x)));
}
#endif

/* Scales and offsets of a chunk, of each panel. */
typedef struct panel_scales {
    const float *scale[RFT__MAX_PANELS], *offset[RFT__MAX_PANELS];
} panel_scales;

/* Are scales used as they lie in the head of a chunk? Not where half a block beyond k asks for one. */
RFT_INLINE bool scales_in_place(rft__offset_kind offset, const rft__packing *packing) {
    return packing->scale == RFT__SCALE_F32 && offset == RFT__OFFSET_NONE && !packing->has_table;
}

/* Where the scales of a chunk of a panel lie, in its head or widened. */
RFT_INLINE const float *find_scales(int bits, const rft__packing *packing, bool in_place, const char *w, int64_t k, scales *s) {
    if (in_place) {
        return (const float *)(const void *)w;
    }
    expand8(bits, packing, w, k, s);
    return s->scale;
}

/* Sum i of a chunk begins. */
RFT_INLINE void start_sums(rft__offset_kind offset, int rows, int panels, const rft__x8 *x, int64_t i, sums_of s) {
    RFT_UNROLL
    for (int n = 0; n < rows * panels; n++) {
        s[n / panels][n % panels] = words_set(offset == RFT__OFFSET_NONE ? x[n / panels].sum[i].word : 0);
    }
}

/* Quads first .. first + 3 of block b. */
RFT_INLINE void add_quads(int bits, rft__offset_kind offset, int rows, int panels, const rft__packing *packing, int first,
                          const rft__x8 *x, int64_t b, const char *block, size_t w_stride, sums_of s) {
    RFT_UNROLL
    for (int t = first; t < first + 4; t++) {
        ivec q[RFT__MAX_PANELS];
        RFT_UNROLL
        for (int p = 0; p < panels; p++) {
            q[p] = byte_quad(bits, offset, packing, block + (size_t)p * w_stride, t);
        }
        RFT_UNROLL
        for (int r = 0; r < rows; r++) {
            const signed char *four = x[r].code + RFT__BLOCK * b + 4 * t;
            if (panels == 1) {
                s[r][0] = dot_quad_at(packing->i8_wide, s[r][0], q[0], four);
                continue;
            }
            const ivec all = words_set(four_codes(four));
            RFT_UNROLL
            for (int p = 0; p < panels; p++) {
                s[r][p] = dot_quad(packing->i8_wide, s[r][p], q[p], all);
            }
        }
    }
}

/* A complete sum, scaled, onto the row's. */
RFT_INLINE vec add_sum(rft__offset_kind offset, ivec sum, vec scale, vec shift, float x_scale, float x_sum, vec total) {
    vec real = vec_from_words(sum);
    if (offset == RFT__OFFSET_ZERO) {
        real = vec_fma(shift, vec_set(x_sum), real);
    }
    total = vec_fma(real, vec_mul(scale, vec_set(x_scale)), total);
    return offset == RFT__OFFSET_MINIMUM ? vec_fma(shift, vec_set(x_sum), total) : total;
}

/* Sum i of all is complete: scaled by what stands at `at` of W's, and group g of X's. */
RFT_INLINE void end_sums(rft__offset_kind offset, int rows, int panels, const rft__x8 *x, int64_t i, int64_t g,
                         const panel_scales *w, int64_t at, sums_of s, float *acc, int acc_stride) {
    RFT_NO_HOIST(); /* loads among the dot products would take their registers: 8 % */
    RFT_UNROLL
    for (int n = 0; n < rows * panels; n++) {
        const int r = n / panels, p = n % panels;
        float *total = acc + r * acc_stride + p * RFT__COLUMNS;
        const vec scale = vec_load(w->scale[p] + at), shift = offset != RFT__OFFSET_NONE ? vec_load(w->offset[p] + at) : scale;
        vec_store(total, add_sum(offset, s[r][p], scale, shift, x[r].scale[g], x[r].sum[i].real, vec_load(total)));
    }
}

RFT_INLINE void fetch_lines(int panels, int first, int last, const rft__fetch *next) {
    RFT_UNROLL
    for (int p = 0; p < panels; p++) {
        for (int line = first; line < last; line++) {
            __builtin_prefetch(next->w + (size_t)p * next->stride + 64 * line, 0, 2);
        }
    }
}

RFT_INLINE void fetch_of_head(int panels, int64_t bytes, rft__fetch *next) {
    fetch_lines(panels, 0, next->first == 0 && next->lines > 0 ? (int)(bytes / 64) : 0, next);
    next->w += bytes;
}

RFT_INLINE void fetch_of_block(int bits, int panels, rft__fetch *next) {
    fetch_lines(panels, next->first, next->first + next->lines, next);
    next->w += 64 * bits;
}

/* Blocks b .. end - 1 of a chunk, w at the first of them; returns what is behind. */
RFT_INLINE const char *add_blocks(int bits, rft__offset_kind offset, int rows, int panels, const rft__packing *packing, int64_t b,
                                  int64_t end, const rft__x8 *x, const char *w, size_t w_stride, rft__fetch *next, sums_of s) {
    for (; b < end; b++, w += 64 * bits) {
        fetch_of_block(bits, panels, next);
        add_quads(bits, offset, rows, panels, packing, 0, x, b, w, w_stride, s);
        add_quads(bits, offset, rows, panels, packing, 4, x, b, w, w_stride, s);
    }
    return w;
}

/* A chunk whose sums are of half a block. */
RFT_INLINE void chunk_of_halves(int bits, rft__offset_kind offset, int rows, int panels, const rft__packing *packing, int64_t k,
                                const rft__x8 *x, const char *w, size_t w_stride, const panel_scales *scale, float *acc,
                                int acc_stride, rft__fetch *next) {
    sums_of s;
    for (int64_t b = 0; b * RFT__BLOCK < k; b++, w += 64 * bits) {
        fetch_of_block(bits, panels, next);
        RFT_UNROLL
        for (int half = 0; half < 2; half++) {
            start_sums(offset, rows, panels, x, 2 * b + half, s);
            add_quads(bits, offset, rows, panels, packing, 4 * half, x, b, w, w_stride, s);
            end_sums(offset, rows, panels, x, 2 * b + half, b, scale, scale_at(packing, 2 * b + half), s, acc, acc_stride);
        }
    }
}

/* A chunk whose sums are of whole blocks. */
RFT_INLINE void chunk_of_blocks(int bits, rft__offset_kind offset, int rows, int panels, const rft__packing *packing, int64_t k,
                                const rft__x8 *x, const char *w, size_t w_stride, const panel_scales *scale, float *acc,
                                int acc_stride, rft__fetch *next) {
    sums_of s;
    const int64_t blocks = rft__ceil_div(k, RFT__BLOCK), each = packing->x_group / RFT__BLOCK;
    for (int64_t b = 0, i = 0; b < blocks; b += each, i++) {
        start_sums(offset, rows, panels, x, i, s);
        w = add_blocks(bits, offset, rows, panels, packing, b, rft__min(blocks, b + each), x, w, w_stride, next, s);
        end_sums(offset, rows, panels, x, i, i, scale, scale_at(packing, i), s, acc, acc_stride);
    }
}

RFT_INLINE void clear_sums(int rows, int panels, float *acc, int acc_stride) {
    RFT_UNROLL
    for (int n = 0; n < rows * panels; n++) {
        vec_store(acc + n / panels * acc_stride + n % panels * RFT__COLUMNS, vec_zero());
    }
}

/* Are there such codes with a scale for more than 32 k? */
RFT_INLINE bool may_be_long(int bits, rft__offset_kind offset) {
    return (bits == 4 || bits == 8) && offset != RFT__OFFSET_MINIMUM;
}

/* ---- one sum over all k, words in registers and in acc; scales are for settle() alone ---- */

RFT_INLINE void codes8_words(int bits, rft__offset_kind offset, int rows, int panels, const rft__packing *packing, int64_t k,
                             const rft__x8 *x, int64_t x_stride, const char *w, size_t w_stride, float *acc, int acc_stride,
                             bool accumulate, rft__fetch next) {
    sums_of s;
    RFT_UNROLL
    for (int n = 0; n < rows * panels; n++) {
        const float *from = acc + n / panels * acc_stride + n % panels * RFT__COLUMNS;
        s[n / panels][n % panels] = accumulate ? words_load(from) : words_set(0);
    }
    for (; k > 0; k -= RFT__CHUNK, x += x_stride) {
        const int64_t chunk = rft__min(k, RFT__CHUNK), head = rft__packing_head_bytes(packing, chunk);
        fetch_of_head(panels, head, &next);
        w = add_blocks(bits, offset, rows, panels, packing, 0, rft__ceil_div(chunk, RFT__BLOCK), x, w + head, w_stride, &next, s);
    }
    RFT_UNROLL
    for (int n = 0; n < rows * panels; n++) {
        words_store((int32_t *)(void *)(acc + n / panels * acc_stride + n % panels * RFT__COLUMNS), s[n / panels][n % panels]);
    }
}

/* See rft__settle_fn. The product of scales is added to 0, as FMAs add those of shorter sums, so that none is -0. */
static void settle(const rft__packing *packing, const char *head, int rows, const rft__x8 *x, const rft__x8 *before, float *acc,
                   int acc_stride) {
    scales s;
    uint32_t zero[RFT__COLUMNS], word[RFT__COLUMNS];
    expand8(packing->bits, packing, head, RFT__CHUNK, &s);
    for (int i = 0; i < RFT__COLUMNS; i++) {
        zero[i] = (uint32_t)(packing->offset == RFT__OFFSET_NONE ? packing->i8_bias : (int32_t)s.offset[i]);
    }
    for (int r = 0; r < rows; r++, acc += acc_stride) {
        const uint32_t codes = (uint32_t)(x[r].sum[0].word - (before != NULL ? before[r].sum[0].word : 0));
        const float x_scale = x[r].scale[0];
        memcpy(word, acc, sizeof word);
        for (int i = 0; i < RFT__COLUMNS; i++) {
            acc[i] = (float)(int32_t)(word[i] - zero[i] * codes) * (s.scale[i] * x_scale) + 0.0f;
        }
    }
}

/* ---- tiles of one panel ---- */

RFT_INLINE ivec row_quads(const rft__packing *packing, int first, int n, const ivec q[8], const signed char *x, ivec sum) {
    RFT_UNROLL
    for (int t = first; t < first + n; t++) {
        sum = dot_quad_at(packing->i8_wide, sum, q[t], x + 4 * t);
    }
    return sum;
}

/* A block of one or two sums, with a scale and a shift each; a row's total is in a register. */
RFT_INLINE void block_in_turn(rft__offset_kind offset, int sums, int rows, const rft__packing *packing, const ivec q[8],
                              const rft__x8 *x, int64_t b, const float *const scale[2], const float *const shift[2],
                              vec total[RFT__MAX_ROWS]) {
    RFT_UNROLL
    for (int r = 0; r < rows; r++) {
        RFT_UNROLL
        for (int i = 0; i < sums; i++) {
            const int64_t at = sums * b + i;
            const vec one = vec_load(scale[i]), other = vec_load(shift[i]);
            ivec sum = words_set(offset == RFT__OFFSET_NONE ? x[r].sum[at].word : 0);
            sum = row_quads(packing, 4 * i, 8 / sums, q, x[r].code + RFT__BLOCK * b, sum);
            total[r] = add_sum(offset, sum, one, other, x[r].scale[b], x[r].sum[at].real, total[r]);
        }
    }
}

RFT_INLINE void load_totals(int rows, const float *acc, int acc_stride, bool accumulate, vec total[RFT__MAX_ROWS]) {
    RFT_UNROLL
    for (int r = 0; r < rows; r++) {
        total[r] = accumulate ? vec_load(acc + r * acc_stride) : vec_zero();
    }
}

RFT_INLINE void store_totals(int rows, const vec total[RFT__MAX_ROWS], float *acc, int acc_stride) {
    RFT_UNROLL
    for (int r = 0; r < rows; r++) {
        vec_store(acc + r * acc_stride, total[r]);
    }
}

/* A chunk with sums of at most 32 k. */
RFT_INLINE void chunk_in_turn(int bits, rft__offset_kind offset, int sums, int rows, const rft__packing *packing, int64_t k,
                              const rft__x8 *x, const scales *s, const char *w, rft__fetch *next, vec total[RFT__MAX_ROWS]) {
    const float *const shift = offset != RFT__OFFSET_NONE ? s->offset : s->scale;
    for (int64_t b = 0; b * RFT__BLOCK < k; b++, w += 64 * bits) {
        const int64_t first = scale_at(packing, sums * b), second = scale_at(packing, sums * b + sums - 1);
        ivec q[8];
        RFT_UNROLL
        for (int t = 0; t < 8; t++) {
            q[t] = byte_quad(bits, offset, packing, w, t);
        }
        fetch_of_block(bits, 1, next);
        block_in_turn(offset, sums, rows, packing, q, x, b, (const float *[2]){s->scale + first, s->scale + second},
                      (const float *[2]){shift + first, shift + second}, total);
    }
}

/* A chunk with longer sums. */
RFT_INLINE void chunk_at_once(int bits, rft__offset_kind offset, int rows, const rft__packing *packing, int64_t k,
                              const rft__x8 *x, const float *scale, const float *shift, const char *w, rft__fetch *next,
                              vec total[RFT__MAX_ROWS]) {
    sums_of s;
    const int64_t blocks = rft__ceil_div(k, RFT__BLOCK), each = packing->x_group / RFT__BLOCK;
    for (int64_t b = 0, i = 0; b < blocks; b += each, i++) {
        start_sums(offset, rows, 1, x, i, s);
        w = add_blocks(bits, offset, rows, 1, packing, b, rft__min(blocks, b + each), x, w, 0, next, s);
        const int64_t at = scale_at(packing, i);
        const vec one = vec_load(scale + at), other = offset != RFT__OFFSET_NONE ? vec_load(shift + at) : one;
        RFT_UNROLL
        for (int r = 0; r < rows; r++) {
            total[r] = add_sum(offset, s[r][0], one, other, x[r].scale[i], x[r].sum[i].real, total[r]);
        }
    }
}

RFT_INLINE void codes8_panel(int bits, rft__offset_kind offset, bool halves, int rows, const rft__packing *packing, int64_t k,
                             const rft__x8 *x, int64_t x_stride, const char *w, float *acc, int acc_stride, bool accumulate,
                             rft__fetch next) {
    const bool at_once = may_be_long(bits, offset) && rft__packing_sum(packing) > RFT__BLOCK;
    const bool in_place = at_once && scales_in_place(offset, packing);
    scales s;
    vec total[RFT__MAX_ROWS];
    load_totals(rows, acc, acc_stride, accumulate, total);
    for (; k > 0; k -= RFT__CHUNK, x += x_stride) {
        const int64_t chunk = rft__min(k, RFT__CHUNK), head = rft__packing_head_bytes(packing, chunk);
        const float *const scale = find_scales(bits, packing, in_place, w, chunk, &s);
        fetch_of_head(1, head, &next);
        w += head;
        if (at_once) {
            chunk_at_once(bits, offset, rows, packing, chunk, x, scale, s.offset, w, &next, total);
        } else if (halves) {
            chunk_in_turn(bits, offset, 2, rows, packing, chunk, x, &s, w, &next, total);
        } else {
            chunk_in_turn(bits, offset, 1, rows, packing, chunk, x, &s, w, &next, total);
        }
        w += rft__ceil_div(chunk, RFT__BLOCK) * 64 * bits;
    }
    store_totals(rows, total, acc, acc_stride);
}

RFT_INLINE void codes8_tile(int bits, rft__offset_kind offset, int rows, int panels, const rft__packing *packing, int64_t k,
                            const rft__x8 *x, int64_t x_stride, const char *w, size_t w_stride, float *acc, int acc_stride,
                            bool accumulate, rft__fetch next) {
    /* Formats of 2, 3 and 6 bits have a scale for 16 k, others with a minimum and those of 5 bits none so short. */
    const bool always = bits == 2 || bits == 3 || bits == 6, never = !always && (offset == RFT__OFFSET_MINIMUM || bits == 5);
    const bool halves = always || (!never && packing->step < RFT__BLOCK);
    if (may_be_long(bits, offset) && packing->one_sum) {
        codes8_words(bits, offset, rows, panels, packing, k, x, x_stride, w, w_stride, acc, acc_stride, accumulate, next);
        return;
    }
    if (ONE_PANEL && panels == 1) {
        codes8_panel(bits, offset, halves, rows, packing, k, x, x_stride, w, acc, acc_stride, accumulate, next);
        return;
    }
    const bool in_place = !halves && scales_in_place(offset, packing);
    scales s[RFT__MAX_PANELS];
    panel_scales scale;
    if (!accumulate) {
        clear_sums(rows, panels, acc, acc_stride);
    }
    for (; k > 0; k -= RFT__CHUNK, x += x_stride) {
        const int64_t chunk = rft__min(k, RFT__CHUNK);
        RFT_UNROLL
        for (int p = 0; p < panels; p++) {
            scale.scale[p] = find_scales(bits, packing, in_place, w + (size_t)p * w_stride, chunk, &s[p]);
            scale.offset[p] = s[p].offset;
        }
        const int64_t head = rft__packing_head_bytes(packing, chunk);
        fetch_of_head(panels, head, &next);
        w += head;
        if (halves) {
            chunk_of_halves(bits, offset, rows, panels, packing, chunk, x, w, w_stride, &scale, acc, acc_stride, &next);
        } else {
            chunk_of_blocks(bits, offset, rows, panels, packing, chunk, x, w, w_stride, &scale, acc, acc_stride, &next);
        }
        w += rft__ceil_div(chunk, RFT__BLOCK) * 64 * bits;
    }
}

/* ---- tiles of strips, rows in turn too ---- */

RFT_INLINE void fetch_next(rft__fetch *next) {
    for (int line = 0; line < next->lines; line++, next->w += 64) {
        __builtin_prefetch(next->w, 0, 2);
    }
}

/* scale, shift: of the chunk's first sum. */
RFT_INLINE void strip_chunk(rft__offset_kind offset, int sums, int rows, const rft__packing *packing, int64_t k, const rft__x8 *x,
                            const float *scale, const float *shift, const char *w, rft__fetch *next, vec total[RFT__MAX_ROWS]) {
    for (int64_t b = 0; b * RFT__BLOCK < k; b++, w += STRIP_BLOCK, scale += sums * RFT__COLUMNS, shift += sums * RFT__COLUMNS) {
        ivec q[8];
        RFT_UNROLL
        for (int t = 0; t < 8; t++) {
            q[t] = words_load(w + 64 * t);
        }
        fetch_next(next);
        block_in_turn(offset, sums, rows, packing, q, x, b, (const float *[2]){scale, scale + RFT__COLUMNS},
                      (const float *[2]){shift, shift + RFT__COLUMNS}, total);
    }
}

RFT_INLINE void strip_tile(rft__offset_kind offset, int rows, const rft__packing *packing, int64_t k, const rft__x8 *x,
                           int64_t x_stride, const char *w, float *acc, int acc_stride, bool accumulate, rft__fetch next) {
    vec total[RFT__MAX_ROWS];
    load_totals(rows, acc, acc_stride, accumulate, total);
    for (; k > 0; k -= RFT__CHUNK, x += x_stride) {
        const int64_t chunk = rft__min(k, RFT__CHUNK), sums = rft__packing_sums(packing, chunk);
        const float *scale = (const float *)(const void *)w;
        const float *shift = offset != RFT__OFFSET_NONE ? scale + sums * RFT__COLUMNS : scale;
        w += rft__strip_head_bytes(packing, chunk);
        if (packing->step < RFT__BLOCK) {
            strip_chunk(offset, 2, rows, packing, chunk, x, scale, shift, w, &next, total);
        } else {
            strip_chunk(offset, 1, rows, packing, chunk, x, scale, shift, w, &next, total);
        }
        w += RFT__CHUNK * RFT__COLUMNS;
    }
    store_totals(rows, total, acc, acc_stride);
}

/* ---- families: rows1, rows2, rows4 the most beside so many panels ---- */

#define CODES8_ARGUMENTS                                                                                                    \
    const rft__packing *packing, int64_t k, const rft__x8 *x, int64_t x_stride, const char *w, size_t w_stride, float *acc, \
        int acc_stride, bool accumulate, const rft__fetch *next

#define CODES8_FUNCTION(name, p, r)                                                                                            \
    static void codes8_##name##_##r##x##p(CODES8_ARGUMENTS) {                                                                  \
        codes8_tile(CODES_BITS_##name, CODES_OFFSET_##name, r, p, packing, k, x, x_stride, w, w_stride, acc, acc_stride,       \
                    accumulate, *next);                                                                                        \
    }
#define CODES8_ENTRY(name, p, r) codes8_##name##_##r##x##p,
#define CODES8_FAMILY(symbol, name, rows1, rows2, rows4)                                                     \
    RFT_ROWS_##rows1(CODES8_FUNCTION, name, 1)                                                               \
    RFT_ROWS_##rows2(CODES8_FUNCTION, name, 2)                                                               \
    RFT_ROWS_##rows4(CODES8_FUNCTION, name, 4)                                                               \
    const rft__codes8_family symbol = {{{RFT_ROWS_##rows1(CODES8_ENTRY, name, 1)},                           \
                                        {RFT_ROWS_##rows2(CODES8_ENTRY, name, 2)},                           \
                                        {NULL},                                                              \
                                        {RFT_ROWS_##rows4(CODES8_ENTRY, name, 4)}}};

#define STRIP8_FUNCTION(kind, p, r)                                                                                     \
    static void strip8_##kind##_##r##x##p(CODES8_ARGUMENTS) {                                                           \
        (void)w_stride;                                                                                                 \
        strip_tile(RFT__OFFSET_##kind, r, packing, k, x, x_stride, w, acc, acc_stride, accumulate, *next);              \
    }
#define STRIP8_ENTRY(kind, p, r) strip8_##kind##_##r##x##p,
/* One of each kind of offset. */
#define STRIP8_FAMILIES(symbol, rows)                                                  \
    RFT_ROWS_##rows(STRIP8_FUNCTION, NONE, 1)                                          \
    RFT_ROWS_##rows(STRIP8_FUNCTION, MINIMUM, 1)                                       \
    RFT_ROWS_##rows(STRIP8_FUNCTION, ZERO, 1)                                          \
    const rft__codes8_family symbol[] = {                                              \
        [RFT__OFFSET_NONE] = {{{RFT_ROWS_##rows(STRIP8_ENTRY, NONE, 1)}}},             \
        [RFT__OFFSET_MINIMUM] = {{{RFT_ROWS_##rows(STRIP8_ENTRY, MINIMUM, 1)}}},       \
        [RFT__OFFSET_ZERO] = {{{RFT_ROWS_##rows(STRIP8_ENTRY, ZERO, 1)}}},             \
    };

/* All that a level has of this text: the heights beside 1, 2 and 4 panels, and of strips. */
#define CODES8_LEVEL(isa, rows1, rows2, rows4, strip_rows)                                                                 \
    CODES8_FAMILY(rft__codes_i8_q2m_##isa, q2m, rows1, rows2, rows4)                                                       \
    CODES8_FAMILY(rft__codes_i8_q3_##isa, q3, rows1, rows2, rows4)                                                         \
    CODES8_FAMILY(rft__codes_i8_q4_##isa, q4, rows1, rows2, rows4)                                                         \
    CODES8_FAMILY(rft__codes_i8_q4m_##isa, q4m, rows1, rows2, rows4)                                                       \
    CODES8_FAMILY(rft__codes_i8_q4z_##isa, q4z, rows1, rows2, rows4)                                                       \
    CODES8_FAMILY(rft__codes_i8_q5_##isa, q5, rows1, rows2, rows4)                                                         \
    CODES8_FAMILY(rft__codes_i8_q5m_##isa, q5m, rows1, rows2, rows4)                                                       \
    CODES8_FAMILY(rft__codes_i8_q6_##isa, q6, rows1, rows2, rows4)                                                         \
    CODES8_FAMILY(rft__codes_i8_q8_##isa, q8, rows1, rows2, rows4)                                                         \
    CODES8_FAMILY(rft__codes_i8_q8z_##isa, q8z, rows1, rows2, rows4)                                                       \
    STRIP8_FAMILIES(rft__strip_i8_##isa, strip_rows)                                                                       \
    void rft__quantise_##isa(const rft__packing *packing, const float *x, const float *largest, int64_t k, rft__x8 *dst) { \
        quantise(packing, x, largest, k, dst);                                                                             \
    }                                                                                                                      \
    void rft__record_##isa(const rft__packing *packing, const signed char *x, const float *scale, int64_t k, rft__x8 *dst) { \
        record(packing, x, scale, k, dst);                                                                                 \
    }                                                                                                                      \
    void rft__settle_##isa(const rft__packing *packing, const char *head, int rows, const rft__x8 *x, const rft__x8 *before,  \
                           float *acc, int acc_stride) {                                                                       \
        settle(packing, head, rows, x, before, acc, acc_stride);                                                               \
    }                                                                                                                          \
    void rft__unpack_##isa(const rft__packing *packing, const char *w, int64_t k, char *dst) { unpack(packing, w, k, dst); }
