/* SPDX-License-Identifier: Apache-2.0
 *
 * pack_ref.c - packing and widening of panels in portable C; see cpu_kernel.h for the layouts. Called by cpu_pack.c and
 * cpu_gemm.c where no faster level has its own.
 */
#include "cpu/ref/pack_ref.h"

#include "cpu/tile_family.h"
#include "format/decode/decode_scalar.h"

#include <string.h>

RFT_INLINE float load(rft_type type, const void *src, int64_t i) {
    switch (type) {
    case RFT_F32:
        return ((const float *)src)[i];
    case RFT_F16:
        return rft__f16_f32(((const uint16_t *)src)[i]);
    default:
        return rft__bf16_f32(((const uint16_t *)src)[i]);
    }
}

RFT_INLINE void to_f32(rft_type type, const void *src, int64_t row_stride, int64_t k_stride, int rows, int width, int64_t k,
                       float *dst) {
    for (int64_t i = 0; i < k; i++) {
        for (int r = 0; r < width; r++) {
            dst[i * width + r] = r < rows ? load(type, src, r * row_stride + i * k_stride) : 0.0f;
        }
    }
}

RFT_INLINE void same_16(int kr, const uint16_t *src, int64_t row_stride, int64_t k_stride, int rows, int width, int64_t k,
                        uint16_t *dst) {
    for (int64_t i = 0; i < k + k % kr; i++) {
        for (int r = 0; r < width; r++) {
            dst[(i / kr * width + r) * kr + i % kr] = r < rows && i < k ? src[r * row_stride + i * k_stride] : 0;
        }
    }
}

#define RFT_PACK(name, body)                                                                                                     \
    void rft__pack_##name##_ref(const void *src, int64_t row_stride, int64_t k_stride, int rows, int width, int64_t k,           \
                                void *dst) {                                                                                     \
        body;                                                                                                                    \
    }
RFT_PACK(f32, to_f32(RFT_F32, src, row_stride, k_stride, rows, width, k, dst))
RFT_PACK(f16, to_f32(RFT_F16, src, row_stride, k_stride, rows, width, k, dst))
RFT_PACK(bf16, to_f32(RFT_BF16, src, row_stride, k_stride, rows, width, k, dst))
RFT_PACK(same_f16, same_16(1, src, row_stride, k_stride, rows, width, k, dst))
RFT_PACK(same_bf16, same_16(2, src, row_stride, k_stride, rows, width, k, dst))

void rft__decode_f32_ref(const void *panel, int64_t k, float *dst) { memcpy(dst, panel, (size_t)k * RFT__PANEL * sizeof *dst); }

void rft__decode_f16_ref(const void *panel, int64_t k, float *dst) {
    for (int64_t i = 0; i < k * RFT__PANEL; i++) {
        dst[i] = load(RFT_F16, panel, i);
    }
}

void rft__decode_bf16_ref(const void *panel, int64_t k, float *dst) {
    for (int64_t i = 0; i < k; i++) {
        for (int j = 0; j < RFT__PANEL; j++) {
            dst[i * RFT__PANEL + j] = load(RFT_BF16, panel, (i / 2 * RFT__PANEL + j) * 2 + i % 2);
        }
    }
}
