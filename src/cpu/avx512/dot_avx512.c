/* SPDX-License-Identifier: Apache-2.0
 *
 * dot_avx512.c - rows of W times rows of x with f32 FMA on AVX-512, W of f32, bf16 and f16; see cpu/dot_body.h.
 *
 *     rows x columns at once: 1..3 x 8, 4..6 x 4: at most 24 sums + 6 x + 1 w of 32 registers
 *
 * A line of each column at 6x4 is 10 loads, 256 bytes of f32 W and 768 FLOPs.
 */
#include "cpu/avx512/dot_avx512_body.h"

enum { VECTOR_K = 16, X_SIZE = 4 };

RFT_INLINE __mmask16 first(int64_t n) { return (__mmask16)((1u << n) - 1); }

RFT_INLINE vec load_x(const char *p, int64_t n) {
    return n >= VECTOR_K ? _mm512_loadu_ps(p) : _mm512_maskz_loadu_ps(first(n), p);
}

RFT_INLINE vec load_w(rft_type type, const char *p, int64_t n) {
    if (type == RFT_F32) {
        return load_x(p, n);
    }
    const __m256i v = n >= VECTOR_K ? _mm256_loadu_si256((const __m256i *)p) : _mm256_maskz_loadu_epi16(first(n), p);
    return type == RFT_F16 ? _mm512_cvtph_ps(v) : _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(v), 16));
}

RFT_INLINE vec multiply_add(vec x, vec w, vec sum) { return _mm512_fmadd_ps(x, w, sum); }

#include "cpu/dot_body.h"

#define direct_f32(...)  dot(RFT_F32, __VA_ARGS__)
#define direct_f16(...)  dot(RFT_F16, __VA_ARGS__)
#define direct_bf16(...) dot(RFT_BF16, __VA_ARGS__)

RFT_DIRECT_FAMILY(rft__dot_f32_f32_avx512, f32, 6, 6, 0, 0)
RFT_DIRECT_FAMILY(rft__dot_f32_f16_avx512, f16, 6, 6, 0, 0)
RFT_DIRECT_FAMILY(rft__dot_f32_bf16_avx512, bf16, 6, 6, 0, 0)
