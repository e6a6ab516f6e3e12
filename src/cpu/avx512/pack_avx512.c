/* SPDX-License-Identifier: Apache-2.0
 *
 * pack_avx512.c - packing by 16x16 transposes of 32-bit lanes, and widening of packed panels. See cpu_kernel.h.
 *
 * A transposed vector is stored whole at its row of the panel even where the panel is narrower than 16, or its rest is: what it
 * spills into the next row is overwritten by that row's own stores, and the last rows are stored masked.
 */
#include "cpu/avx512/pack_avx512.h"

#include "cpu/ref/pack_ref.h"
#include "cpu/tile_family.h"

#include <immintrin.h>

enum { LANES = 16 };

/* How many of n lie in the 16 from `first` on. */
RFT_INLINE int in_vector(int n, int first) { return n <= first ? 0 : n - first < LANES ? n - first : LANES; }

RFT_INLINE __mmask16 first_lanes(int n) { return (__mmask16)((1u << n) - 1); }

/* Elements of a row as 32-bit lanes: the first n <= 16 lanes from p, the rest zero. A pair lane is two bf16. */
typedef enum { LANE_F32, LANE_F16, LANE_BF16, LANE_PAIR } lane_kind;

RFT_INLINE __m512i load_lanes(lane_kind kind, const void *p, int n) {
    const __mmask16 m = first_lanes(n);
    switch (kind) {
    case LANE_F32:
    case LANE_PAIR:
        return _mm512_maskz_loadu_epi32(m, p);
    case LANE_F16:
        return _mm512_castps_si512(_mm512_cvtph_ps(_mm256_maskz_loadu_epi16(m, p)));
    default:
        return _mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(m, p)), 16);
    }
}

RFT_INLINE void transpose16(__m512i r[16]) {
    __m512i t[16];
    RFT_UNROLL
    for (int i = 0; i < 8; i++) {
        t[2 * i] = _mm512_unpacklo_epi32(r[2 * i], r[2 * i + 1]);
        t[2 * i + 1] = _mm512_unpackhi_epi32(r[2 * i], r[2 * i + 1]);
    }
    RFT_UNROLL
    for (int i = 0; i < 4; i++) {
        RFT_UNROLL
        for (int h = 0; h < 2; h++) {
            r[4 * i + 2 * h] = _mm512_unpacklo_epi64(t[4 * i + h], t[4 * i + 2 + h]);
            r[4 * i + 2 * h + 1] = _mm512_unpackhi_epi64(t[4 * i + h], t[4 * i + 2 + h]);
        }
    }
    /* r[4i + j] holds, in its four 128-bit quarters q, column 4q + j of rows 4i..4i+3. */
    RFT_UNROLL
    for (int j = 0; j < 4; j++) {
        const __m512i a = _mm512_shuffle_i32x4(r[j], r[4 + j], 0x88), b = _mm512_shuffle_i32x4(r[j], r[4 + j], 0xdd);
        const __m512i c = _mm512_shuffle_i32x4(r[8 + j], r[12 + j], 0x88), d = _mm512_shuffle_i32x4(r[8 + j], r[12 + j], 0xdd);
        t[j] = _mm512_shuffle_i32x4(a, c, 0x88);
        t[8 + j] = _mm512_shuffle_i32x4(a, c, 0xdd);
        t[4 + j] = _mm512_shuffle_i32x4(b, d, 0x88);
        t[12 + j] = _mm512_shuffle_i32x4(b, d, 0xdd);
    }
    RFT_UNROLL
    for (int i = 0; i < 16; i++) {
        r[i] = t[i];
    }
}

/* `lanes` lanes of k from `rows` rows into `columns` of a panel; whole stores unless it is the last block. */
RFT_INLINE void pack_16x16(lane_kind kind, const char *src, int64_t row_bytes, int rows, int columns, int width, int lanes,
                           uint32_t *dst, bool last) {
    __m512i r[16];
    RFT_UNROLL
    for (int i = 0; i < 16; i++) {
        r[i] = i < rows ? load_lanes(kind, src + i * row_bytes, lanes) : _mm512_setzero_si512();
    }
    transpose16(r);
    RFT_UNROLL
    for (int i = 0; i < 16; i++) {
        if (i < lanes) {
            if (last) {
                _mm512_mask_storeu_epi32(dst + i * width, first_lanes(columns), r[i]);
            } else {
                _mm512_storeu_si512(dst + i * width, r[i]);
            }
        }
    }
}

/* One block of 16 lanes of k from `rows` rows, the last with only `lanes` of them. Rows 16.. come first: they spill into the
 * first ones of the next k, never the other way. */
RFT_INLINE void pack_block(lane_kind kind, const char *src, int64_t row_bytes, int rows, int width, int lanes, uint32_t *dst,
                           bool last) {
    for (int row = width > LANES ? LANES : 0; row >= 0; row -= LANES) {
        pack_16x16(kind, src + row * row_bytes, row_bytes, in_vector(rows, row), in_vector(width, row), width, lanes, dst + row,
                   last);
    }
}

/* One row into a panel of one: lanes as they come. */
RFT_INLINE void pack_row(lane_kind kind, const char *src, int lane_bytes, int64_t lanes, uint32_t *dst) {
    int64_t i = 0;
    for (; i + 16 <= lanes; i += 16) {
        _mm512_storeu_si512(dst + i, load_lanes(kind, src + i * lane_bytes, 16));
    }
    if (i < lanes) {
        const int rest = (int)(lanes - i);
        _mm512_mask_storeu_epi32(dst + i, first_lanes(rest), load_lanes(kind, src + i * lane_bytes, rest));
    }
}

/* K-contiguous rows: lanes of 32 bits hold one element, or a pair. Blocks but the last are stored whole. */
RFT_INLINE void pack_rows(lane_kind kind, const char *src, int64_t row_bytes, int lane_bytes, int rows, int width, int64_t lanes,
                          uint32_t *dst) {
    if (rows == 1 && width == 1) {
        pack_row(kind, src, lane_bytes, lanes, dst);
        return;
    }
    int64_t i = 0;
    for (; i + 32 <= lanes; i += 16) {
        pack_block(kind, src + i * lane_bytes, row_bytes, rows, width, 16, dst + i * width, false);
    }
    for (; i < lanes; i += 16) {
        pack_block(kind, src + i * lane_bytes, row_bytes, rows, width, lanes - i < 16 ? (int)(lanes - i) : 16, dst + i * width,
                   true);
    }
}

/* MN-contiguous rows: one load, one store for 16 of a k. */
RFT_INLINE void pack_columns(lane_kind kind, int size, const char *src, int64_t k_bytes, int rows, int width, int64_t k,
                             uint32_t *dst) {
    for (int64_t i = 0; i < k; i++) {
        for (int row = 0; row < width; row += LANES) {
            _mm512_mask_storeu_epi32(dst + i * width + row, first_lanes(in_vector(width, row)),
                                     load_lanes(kind, src + i * k_bytes + row * size, in_vector(rows, row)));
        }
    }
}

RFT_INLINE void pack_f32(lane_kind kind, int size, rft__pack_fn *otherwise, const void *src, int64_t row_stride, int64_t k_stride,
                         int rows, int width, int64_t k, void *dst) {
    if (k_stride == 1) {
        pack_rows(kind, src, row_stride * size, size, rows, width, k, dst);
    } else if (row_stride == 1) {
        pack_columns(kind, size, src, k_stride * size, rows, width, k, dst);
    } else {
        otherwise(src, row_stride, k_stride, rows, width, k, dst);
    }
}

void rft__pack_f32_avx512(const void *src, int64_t row_stride, int64_t k_stride, int rows, int width, int64_t k, void *dst) {
    pack_f32(LANE_F32, 4, rft__pack_f32_ref, src, row_stride, k_stride, rows, width, k, dst);
}

void rft__pack_f16_avx512(const void *src, int64_t row_stride, int64_t k_stride, int rows, int width, int64_t k, void *dst) {
    pack_f32(LANE_F16, 2, rft__pack_f16_ref, src, row_stride, k_stride, rows, width, k, dst);
}

void rft__pack_bf16_avx512(const void *src, int64_t row_stride, int64_t k_stride, int rows, int width, int64_t k, void *dst) {
    pack_f32(LANE_BF16, 2, rft__pack_bf16_ref, src, row_stride, k_stride, rows, width, k, dst);
}

/* Two k rows of up to 16 elements of 16 bits become one row of pairs. */
RFT_INLINE __m512i pair_lanes(const char *src, int64_t k_bytes, int n, bool second) {
    const __m512i low = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(first_lanes(n), src));
    const __m256i next = second ? _mm256_maskz_loadu_epi16(first_lanes(n), src + k_bytes) : _mm256_setzero_si256();
    return _mm512_or_si512(low, _mm512_slli_epi32(_mm512_cvtepu16_epi32(next), 16));
}

static void pair_columns(const char *src, int64_t k_bytes, int rows, int width, int64_t k, uint32_t *dst) {
    for (int64_t i = 0; i < k; i += 2, dst += width) {
        for (int row = 0; row < width; row += LANES) {
            _mm512_mask_storeu_epi32(dst + row, first_lanes(in_vector(width, row)),
                                     pair_lanes(src + i * k_bytes + row * 2, k_bytes, in_vector(rows, row), i + 1 < k));
        }
    }
}

void rft__pack_same_bf16_avx512(const void *src, int64_t row_stride, int64_t k_stride, int rows, int width, int64_t k,
                                void *dst) {
    if (k_stride == 1) {
        pack_rows(LANE_PAIR, src, row_stride * 2, 4, rows, width, k / 2, dst);
        if (k % 2 != 0) {
            rft__pack_same_bf16_ref((const uint16_t *)src + (k - 1), row_stride, k_stride, rows, width, 1,
                                    (uint32_t *)dst + k / 2 * width);
        }
    } else if (row_stride == 1) {
        pair_columns(src, k_stride * 2, rows, width, k, dst);
    } else {
        rft__pack_same_bf16_ref(src, row_stride, k_stride, rows, width, k, dst);
    }
}

void rft__decode_f16_avx512(const void *panel, int64_t k, float *dst) {
    for (int64_t i = 0; i < k; i++) {
        _mm512_storeu_ps(dst + i * 16, _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)panel + i)));
    }
}

void rft__decode_bf16_avx512(const void *panel, int64_t k, float *dst) {
    const __m512i *pair = panel;
    for (int64_t i = 0; i < k / 2; i++) {
        const __m512i v = _mm512_loadu_si512(pair + i);
        _mm512_storeu_si512(dst + i * 32, _mm512_slli_epi32(v, 16));
        _mm512_storeu_si512(dst + i * 32 + 16, _mm512_and_si512(v, _mm512_set1_epi32((int)0xffff0000u)));
    }
    if (k % 2 != 0) {
        _mm512_storeu_si512(dst + (k - 1) * 16, _mm512_slli_epi32(_mm512_loadu_si512(pair + k / 2), 16));
    }
}
