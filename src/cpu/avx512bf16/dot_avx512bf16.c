/* SPDX-License-Identifier: Apache-2.0
 *
 * dot_avx512bf16.c - rows of W times rows of x with vdpbf16ps; see cpu/dot_body.h. Tiles and registers as in dot_avx512.c, but
 * a vector is 32 k and nothing is widened.
 */
#include "cpu/avx512/dot_avx512_body.h"

enum { VECTOR_K = 32, X_SIZE = 2 };

RFT_INLINE vec load_x(const char *p, int64_t n) {
    return _mm512_castsi512_ps(n >= VECTOR_K ? _mm512_loadu_si512(p) : _mm512_maskz_loadu_epi16((1u << n) - 1, p));
}

RFT_INLINE vec load_w(rft_type type, const char *p, int64_t n) {
    (void)type;
    return load_x(p, n);
}

RFT_INLINE vec multiply_add(vec x, vec w, vec sum) {
    return _mm512_dpbf16_ps(sum, (__m512bh)_mm512_castps_si512(x), (__m512bh)_mm512_castps_si512(w));
}

#include "cpu/dot_body.h"

#define direct_bf16(...) dot(RFT_BF16, __VA_ARGS__)

RFT_DIRECT_FAMILY(rft__dot_bf16_bf16_avx512bf16, bf16, 6, 6, 0, 0)
