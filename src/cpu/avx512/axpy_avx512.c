/* SPDX-License-Identifier: Apache-2.0
 *
 * axpy_avx512.c - columns of W times x with f32 FMA on AVX-512, W of f32, bf16 and f16; see cpu/axpy_body.h.
 *
 *     6x64: 24 sums + 6 x + 1 w of 32 registers; a k is 10 loads, 256 bytes of f32 W and 768 FLOPs
 */
#include "cpu/tile_family.h"

#include <immintrin.h>

enum { VECTOR_N = 16 };
typedef __m512 vec;

RFT_INLINE vec zero(void) { return _mm512_setzero_ps(); }
RFT_INLINE vec load_acc(const float *p) { return _mm512_loadu_ps(p); }
RFT_INLINE void store_acc(float *p, vec v) { _mm512_storeu_ps(p, v); }
RFT_INLINE vec broadcast(const float *p) { return _mm512_set1_ps(*p); }
RFT_INLINE vec multiply_add(vec x, vec w, vec sum) { return _mm512_fmadd_ps(x, w, sum); }

RFT_INLINE vec load_w(rft_type type, const char *p) {
    if (type == RFT_F32) {
        return _mm512_loadu_ps(p);
    }
    const __m256i v = _mm256_loadu_si256((const __m256i *)p);
    return type == RFT_F16 ? _mm512_cvtph_ps(v) : _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(v), 16));
}

#include "cpu/axpy_body.h"

RFT_DIRECT_FAMILY(rft__axpy_f32_f32_avx512, f32, 6, 6, 6, 6)
RFT_DIRECT_FAMILY(rft__axpy_f32_f16_avx512, f16, 6, 6, 6, 6)
RFT_DIRECT_FAMILY(rft__axpy_f32_bf16_avx512, bf16, 6, 6, 6, 6)
