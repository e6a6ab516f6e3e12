/* SPDX-License-Identifier: Apache-2.0
 *
 * pack_avx2.c - packing by 8x8 transposes of 32-bit lanes, and widening of packed panels. See cpu_kernel.h.
 *
 * Masked stores are slow on many parts, so vectors are stored whole: what they spill beyond a row of the panel is
 * overwritten by the rows after it, and the last rows go through a buffer on the stack. Loads are masked at the ends.
 */
#include "cpu/avx2/pack_avx2.h"

#include "cpu/ref/pack_ref.h"
#include "cpu/tile_family.h"

#include <immintrin.h>
#include <string.h>

/* What a 32-bit lane of a row holds: an element, widened if it has 16 bits, or two of them as they are. */
typedef enum { LANE_F32, LANE_F16, LANE_BF16, LANE_PAIR } lane_kind;

/* BLOCK: k lanes of one pass over the rows, a cache line of f32. SPILL: rows of a panel that a whole store can reach into. */
enum { LANES = 8, BLOCK = 16, SPILL = 8 };

RFT_INLINE int lane_bytes(lane_kind kind) { return kind == LANE_F32 || kind == LANE_PAIR ? 4 : 2; }

/* The first n of eight 16-bit elements: whole pairs by a masked load, an odd one alone. */
RFT_INLINE __m128i load_16(const uint16_t *p, int n) {
    if (n >= LANES) {
        return _mm_loadu_si128((const void *)p);
    }
    const __m128i pairs = _mm_set1_epi32(n / 2), lane = _mm_setr_epi32(0, 1, 2, 3);
    const __m128i v = _mm_maskload_epi32((const void *)p, _mm_cmpgt_epi32(pairs, lane));
    return n % 2 == 0 ? v : _mm_or_si128(v, _mm_and_si128(_mm_cmpeq_epi32(pairs, lane), _mm_set1_epi32(p[n - 1])));
}

RFT_INLINE __m256i load_32(const void *p, int n) {
    if (n >= LANES) {
        return _mm256_loadu_si256(p);
    }
    return _mm256_maskload_epi32(p, _mm256_cmpgt_epi32(_mm256_set1_epi32(n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7)));
}

/* The first n lanes from p, the rest zero; none if n <= 0. */
RFT_INLINE __m256i load_lanes(lane_kind kind, const void *p, int n) {
    switch (kind) {
    case LANE_F16:
        return n <= 0 ? _mm256_setzero_si256() : _mm256_castps_si256(_mm256_cvtph_ps(load_16(p, n)));
    case LANE_BF16:
        return n <= 0 ? _mm256_setzero_si256() : _mm256_slli_epi32(_mm256_cvtepu16_epi32(load_16(p, n)), 16);
    default:
        return load_32(p, n);
    }
}

RFT_INLINE void transpose8(__m256i r[LANES]) {
    __m256i pair[LANES], four[LANES];
    RFT_UNROLL
    for (int i = 0; i < LANES; i += 2) {
        pair[i] = _mm256_unpacklo_epi32(r[i], r[i + 1]);
        pair[i + 1] = _mm256_unpackhi_epi32(r[i], r[i + 1]);
    }
    RFT_UNROLL
    for (int i = 0; i < LANES; i += 4) {
        RFT_UNROLL
        for (int h = 0; h < 2; h++) {
            four[i + 2 * h] = _mm256_unpacklo_epi64(pair[i + h], pair[i + 2 + h]);
            four[i + 2 * h + 1] = _mm256_unpackhi_epi64(pair[i + h], pair[i + 2 + h]);
        }
    }
    /* four[4i + j] holds, in its two halves h, column 4h + j of rows 4i..4i+3. */
    RFT_UNROLL
    for (int j = 0; j < 4; j++) {
        r[j] = _mm256_permute2x128_si256(four[j], four[4 + j], 0x20);
        r[4 + j] = _mm256_permute2x128_si256(four[j], four[4 + j], 0x31);
    }
}

/* ---- K-contiguous rows ---- */

/* Up to 8 lanes of k of up to 8 rows. */
RFT_INLINE void pack_8x8(lane_kind kind, const char *src, int64_t row_bytes, int rows, int lanes, uint32_t *dst, int width) {
    __m256i r[LANES];
    RFT_UNROLL
    for (int i = 0; i < LANES; i++) {
        r[i] = i < rows ? load_lanes(kind, src + i * row_bytes, lanes) : _mm256_setzero_si256();
    }
    transpose8(r);
    RFT_UNROLL
    for (int i = 0; i < LANES; i++) {
        if (i < lanes) {
            _mm256_storeu_si256((void *)(dst + i * width), r[i]);
        }
    }
}

/* All rows over some lanes of k. The last rows come first: they spill into the first ones of the next k, never the other way. */
RFT_INLINE void pack_block(lane_kind kind, const char *src, int64_t row_bytes, int rows, int lanes, uint32_t *dst, int width) {
    for (int row = (width - 1) / LANES * LANES; row >= 0; row -= LANES) {
        for (int i = 0; i < lanes; i += LANES) {
            const char *first = src + row * row_bytes + i * lane_bytes(kind);
            pack_8x8(kind, first, row_bytes, rows - row, lanes - i, dst + i * width + row, width);
        }
    }
}

RFT_INLINE void pack_rows(lane_kind kind, const char *src, int64_t row_bytes, int rows, int width, int64_t lanes, uint32_t *dst) {
    int64_t i = 0;
    for (; i + BLOCK + SPILL <= lanes; i += BLOCK) {
        pack_block(kind, src + i * lane_bytes(kind), row_bytes, rows, BLOCK, dst + i * width, width);
    }
    uint32_t tail[(BLOCK + SPILL) * RFT__MAX_ROWS];
    const int rest = (int)(lanes - i);
    pack_block(kind, src + i * lane_bytes(kind), row_bytes, rows, rest, tail, width);
    memcpy(dst + i * width, tail, sizeof *tail * (size_t)(rest * width));
}

/* ---- MN-contiguous rows ---- */

/* One k of all rows. */
RFT_INLINE void pack_column(lane_kind kind, const char *src, int rows, int width, uint32_t *dst) {
    for (int row = (width - 1) / LANES * LANES; row >= 0; row -= LANES) {
        _mm256_storeu_si256((void *)(dst + row), load_lanes(kind, src + row * lane_bytes(kind), rows - row));
    }
}

RFT_INLINE void pack_columns(lane_kind kind, const char *src, int64_t k_bytes, int rows, int width, int64_t k, uint32_t *dst) {
    int64_t i = 0;
    for (; i + SPILL <= k; i++) {
        pack_column(kind, src + i * k_bytes, rows, width, dst + i * width);
    }
    uint32_t tail[SPILL * RFT__MAX_ROWS];
    const int rest = (int)(k - i);
    for (int t = 0; t < rest; t++) {
        pack_column(kind, src + (i + t) * k_bytes, rows, width, tail + t * width);
    }
    memcpy(dst + i * width, tail, sizeof *tail * (size_t)(rest * width));
}

/* ---- to f32 ---- */

/* One row is a vector to widen. */
RFT_INLINE void widen_row(lane_kind kind, const char *src, int64_t k, uint32_t *dst) {
    int64_t i = 0;
    for (; i + LANES <= k; i += LANES) {
        _mm256_storeu_si256((void *)(dst + i), load_lanes(kind, src + i * lane_bytes(kind), LANES));
    }
    uint32_t tail[LANES];
    _mm256_storeu_si256((void *)tail, load_lanes(kind, src + i * lane_bytes(kind), (int)(k - i)));
    memcpy(dst + i, tail, sizeof *tail * (size_t)(k - i));
}

RFT_INLINE void to_f32(lane_kind kind, rft__pack_fn *otherwise, const void *src, int64_t row_stride, int64_t k_stride, int rows,
                       int width, int64_t k, void *dst) {
    if (k_stride == 1 && rows == 1 && width == 1) {
        widen_row(kind, src, k, dst);
    } else if (k_stride == 1) {
        pack_rows(kind, src, row_stride * lane_bytes(kind), rows, width, k, dst);
    } else if (row_stride == 1) {
        pack_columns(kind, src, k_stride * lane_bytes(kind), rows, width, k, dst);
    } else {
        otherwise(src, row_stride, k_stride, rows, width, k, dst);
    }
}

void rft__pack_f32_avx2(const void *src, int64_t row_stride, int64_t k_stride, int rows, int width, int64_t k, void *dst) {
    to_f32(LANE_F32, rft__pack_f32_ref, src, row_stride, k_stride, rows, width, k, dst);
}

void rft__pack_f16_avx2(const void *src, int64_t row_stride, int64_t k_stride, int rows, int width, int64_t k, void *dst) {
    to_f32(LANE_F16, rft__pack_f16_ref, src, row_stride, k_stride, rows, width, k, dst);
}

void rft__pack_bf16_avx2(const void *src, int64_t row_stride, int64_t k_stride, int rows, int width, int64_t k, void *dst) {
    to_f32(LANE_BF16, rft__pack_bf16_ref, src, row_stride, k_stride, rows, width, k, dst);
}

/* ---- 16-bit types kept ---- */

/* 16 columns of 16 bits, the first n from p. */
RFT_INLINE void load_columns(const uint16_t *p, int n, __m128i v[2]) {
    v[0] = n > 0 ? load_16(p, n) : _mm_setzero_si128();
    v[1] = n > LANES ? load_16(p + LANES, n - LANES) : _mm_setzero_si128();
}

/* Panels of W, MN-contiguous: two k become one row of pairs. */
static void pair_columns(const uint16_t *src, int64_t k_stride, int rows, int64_t k, __m128i *dst) {
    for (int64_t i = 0; i < k; i += 2) {
        __m128i low[2], high[2];
        load_columns(src + i * k_stride, rows, low);
        load_columns(src + (i + 1) * k_stride, i + 1 < k ? rows : 0, high);
        RFT_UNROLL
        for (int h = 0; h < 2; h++) {
            _mm_storeu_si128(dst + 2 * i + 2 * h, _mm_unpacklo_epi16(low[h], high[h]));
            _mm_storeu_si128(dst + 2 * i + 2 * h + 1, _mm_unpackhi_epi16(low[h], high[h]));
        }
    }
}

void rft__pack_same_bf16_avx2(const void *src, int64_t row_stride, int64_t k_stride, int rows, int width, int64_t k, void *dst) {
    if (k_stride == 1) {
        pack_rows(LANE_PAIR, src, row_stride * 2, rows, width, k / 2, dst);
        if (k % 2 != 0) {
            const uint16_t *last = (const uint16_t *)src + (k - 1);
            rft__pack_same_bf16_ref(last, row_stride, k_stride, rows, width, 1, (uint32_t *)dst + k / 2 * width);
        }
    } else if (row_stride == 1 && width == RFT__PANEL) {
        pair_columns(src, k_stride, rows, k, dst);
    } else {
        rft__pack_same_bf16_ref(src, row_stride, k_stride, rows, width, k, dst);
    }
}

/* 8 columns of pairs from each of a and b to the 16 elements of the pairs' first k or, shifted, of their second. */
RFT_INLINE __m256i narrow(__m256i a, __m256i b) { return _mm256_permute4x64_epi64(_mm256_packus_epi32(a, b), 0xd8); }

/* A row of 16 pairs becomes the rows of two k. */
RFT_INLINE void split_pairs(const uint32_t *pairs, uint16_t *dst) {
    const __m256i a = _mm256_loadu_si256((const void *)pairs), b = _mm256_loadu_si256((const void *)(pairs + LANES));
    const __m256i low = _mm256_set1_epi32(0xffff);
    _mm256_storeu_si256((void *)dst, narrow(_mm256_and_si256(a, low), _mm256_and_si256(b, low)));
    _mm256_storeu_si256((void *)(dst + RFT__PANEL), narrow(_mm256_srli_epi32(a, 16), _mm256_srli_epi32(b, 16)));
}

/* Panels of W, K-contiguous. */
static void split_rows(const uint16_t *src, int64_t row_stride, int rows, int64_t k, uint16_t *dst) {
    for (int64_t i = 0; i + 1 < k; i += 2 * BLOCK) {
        const int lanes = (int)((k - i < 2 * BLOCK ? k - i : 2 * BLOCK) / 2);
        uint32_t pairs[BLOCK * RFT__PANEL];
        pack_block(LANE_PAIR, (const char *)(src + i), row_stride * 2, rows, lanes, pairs, RFT__PANEL);
        for (int l = 0; l < lanes; l++) {
            split_pairs(pairs + l * RFT__PANEL, dst + (i + 2 * l) * RFT__PANEL);
        }
    }
    if (k % 2 != 0) {
        rft__pack_same_f16_ref(src + (k - 1), row_stride, 1, rows, RFT__PANEL, 1, dst + (k - 1) * RFT__PANEL);
    }
}

static void copy_columns(const uint16_t *src, int64_t k_stride, int rows, int64_t k, __m128i *dst) {
    for (int64_t i = 0; i < k; i++) {
        __m128i v[2];
        load_columns(src + i * k_stride, rows, v);
        _mm_storeu_si128(dst + 2 * i, v[0]);
        _mm_storeu_si128(dst + 2 * i + 1, v[1]);
    }
}

void rft__pack_same_f16_avx2(const void *src, int64_t row_stride, int64_t k_stride, int rows, int width, int64_t k, void *dst) {
    if (k_stride == 1 && width == RFT__PANEL) {
        split_rows(src, row_stride, rows, k, dst);
    } else if (row_stride == 1 && width == RFT__PANEL) {
        copy_columns(src, k_stride, rows, k, dst);
    } else {
        rft__pack_same_f16_ref(src, row_stride, k_stride, rows, width, k, dst);
    }
}

/* ---- packed panels to f32 ---- */

void rft__decode_f16_avx2(const void *panel, int64_t k, float *dst) {
    widen_row(LANE_F16, panel, k * RFT__PANEL, (uint32_t *)(void *)dst);
}

/* The 16 columns of a pair's first k, and of its second. */
RFT_INLINE void decode_half(const __m256i *pairs, bool second, float *dst) {
    RFT_UNROLL
    for (int h = 0; h < 2; h++) {
        const __m256i v = _mm256_loadu_si256(pairs + h);
        const __m256i wide = second ? _mm256_and_si256(v, _mm256_set1_epi32((int)0xffff0000u)) : _mm256_slli_epi32(v, 16);
        _mm256_storeu_si256((void *)(dst + h * LANES), wide);
    }
}

void rft__decode_bf16_avx2(const void *panel, int64_t k, float *dst) {
    const __m256i *pairs = panel;
    for (int64_t i = 0; i < k; i++) {
        decode_half(pairs + i / 2 * 2, i % 2 != 0, dst + i * RFT__PANEL);
    }
}
