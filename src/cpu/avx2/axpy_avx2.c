/* SPDX-License-Identifier: Apache-2.0
 *
 * axpy_avx2.c - columns of W times x with f32 FMA on AVX2 (with F16C), W of f32, bf16 and f16; see cpu/axpy_body.h.
 *
 *     a panel of 16 columns is two ymm; 3x32: 12 sums + 3 x + 1 w of 16 registers, 1x64: 8 + 1 + 1
 *
 * A k at 3x32 is 7 loads, 128 bytes of f32 W and 192 FLOPs.
 */
#include "cpu/tile_family.h"

#include <immintrin.h>

enum { VECTOR_N = 8 };
typedef __m256 vec;

RFT_INLINE vec zero(void) { return _mm256_setzero_ps(); }
RFT_INLINE vec load_acc(const float *p) { return _mm256_loadu_ps(p); }
RFT_INLINE void store_acc(float *p, vec v) { _mm256_storeu_ps(p, v); }
RFT_INLINE vec broadcast(const float *p) { return _mm256_broadcast_ss(p); }
RFT_INLINE vec multiply_add(vec x, vec w, vec sum) { return _mm256_fmadd_ps(x, w, sum); }

RFT_INLINE vec load_w(rft_type type, const char *p) {
    if (type == RFT_F32) {
        return _mm256_loadu_ps((const float *)(const void *)p);
    }
    const __m128i v = _mm_loadu_si128((const __m128i *)(const void *)p);
    return type == RFT_F16 ? _mm256_cvtph_ps(v) : _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(v), 16));
}

#include "cpu/axpy_body.h"

RFT_DIRECT_FAMILY(rft__axpy_f32_f32_avx2, f32, 3, 3, 1, 1)
RFT_DIRECT_FAMILY(rft__axpy_f32_f16_avx2, f16, 3, 3, 1, 1)
RFT_DIRECT_FAMILY(rft__axpy_f32_bf16_avx2, bf16, 3, 3, 1, 1)
