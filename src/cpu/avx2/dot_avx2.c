/* SPDX-License-Identifier: Apache-2.0
 *
 * dot_avx2.c - rows of W times rows of x with f32 FMA on AVX2 (with F16C), W of f32, bf16 and f16; see cpu/dot_body.h.
 *
 *     rows x columns at once: 1 x 8, 2 x 4, 3 x 4: at most 12 sums + 3 x + 1 w of 16 registers
 *
 * A line of each column at 3x4 is 14 loads, 256 bytes of f32 W and 384 FLOPs.
 */
#include "cpu/tile_family.h"

#include <immintrin.h>
#include <string.h>

enum { VECTOR_K = 8, X_SIZE = 4 };
typedef __m256 vec;

RFT_INLINE int columns_at_once(int rows) { return rows == 1 ? 8 : 4; }
RFT_INLINE vec zero(void) { return _mm256_setzero_ps(); }
RFT_INLINE vec multiply_add(vec x, vec w, vec sum) { return _mm256_fmadd_ps(x, w, sum); }

/* Pairs, quadruples within each half, then the halves. */
RFT_INLINE __m128 sum_4(const vec v[4]) {
    const __m256 a = _mm256_add_ps(_mm256_unpacklo_ps(v[0], v[1]), _mm256_unpackhi_ps(v[0], v[1]));
    const __m256 b = _mm256_add_ps(_mm256_unpacklo_ps(v[2], v[3]), _mm256_unpackhi_ps(v[2], v[3]));
    const __m256 c = _mm256_add_ps(_mm256_shuffle_ps(a, b, 0x44), _mm256_shuffle_ps(a, b, 0xee));
    return _mm_add_ps(_mm256_castps256_ps128(c), _mm256_extractf128_ps(c, 1));
}

RFT_INLINE float sum_1(vec v) {
    const vec all[4] = {v, zero(), zero(), zero()};
    return _mm_cvtss_f32(sum_4(all));
}

/* There is no masked load of 16-bit elements: the end of a row goes through the stack. */
RFT_INLINE vec load_x(const char *p, int64_t n) {
    float end[VECTOR_K] = {0};
    if (n < VECTOR_K) {
        memcpy(end, p, (size_t)n * sizeof *end);
        p = (const char *)end;
    }
    return _mm256_loadu_ps((const float *)(const void *)p);
}

RFT_INLINE vec load_w(rft_type type, const char *p, int64_t n) {
    if (type == RFT_F32) {
        return load_x(p, n);
    }
    uint16_t end[VECTOR_K] = {0};
    if (n < VECTOR_K) {
        memcpy(end, p, (size_t)n * sizeof *end);
        p = (const char *)end;
    }
    const __m128i v = _mm_loadu_si128((const __m128i *)(const void *)p);
    return type == RFT_F16 ? _mm256_cvtph_ps(v) : _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(v), 16));
}

#include "cpu/dot_body.h"

#define direct_f32(...)  dot(RFT_F32, __VA_ARGS__)
#define direct_f16(...)  dot(RFT_F16, __VA_ARGS__)
#define direct_bf16(...) dot(RFT_BF16, __VA_ARGS__)

RFT_DIRECT_FAMILY(rft__dot_f32_f32_avx2, f32, 3, 3, 0, 0)
RFT_DIRECT_FAMILY(rft__dot_f32_f16_avx2, f16, 3, 3, 0, 0)
RFT_DIRECT_FAMILY(rft__dot_f32_bf16_avx2, bf16, 3, 3, 0, 0)
