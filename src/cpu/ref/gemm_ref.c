/* SPDX-License-Identifier: Apache-2.0
 *
 * gemm_ref.c - register tiles in portable C: the meaning that faster levels are checked against, and the fallback of
 * machines without one. Each product is rounded before it is added (no FMA).
 */
#include "cpu/tile_family.h"
#include "format/decode/decode_scalar.h"

#include <string.h>

/* Column j of a panel at offset half (of a bf16 pair) of one step. */
RFT_INLINE float load_w(rft_type type, const char *w, int j, int half) {
    if (type == RFT_F32) {
        return ((const float *)w)[j];
    }
    const uint16_t bits = ((const uint16_t *)w)[type == RFT_F16 ? j : 2 * j + half];
    return type == RFT_F16 ? rft__f16_f32(bits) : rft__bf16_f32(bits);
}

RFT_INLINE void tile(rft_type type, int rows, int panels, int64_t k, const float *x, const char *w, size_t w_stride, float *acc, bool accumulate,
                     const rft__ahead *ahead) {
    const int kr = type == RFT_BF16 ? 2 : 1;
    (void)ahead;
    if (!accumulate) {
        memset(acc, 0, (size_t)(rows * panels) * RFT__PANEL * sizeof *acc);
    }
    for (int64_t i = 0; i < k; i++) {
        for (int p = 0; p < panels; p++) {
            const char *wk = w + (size_t)p * w_stride + i / kr * (type == RFT_F16 ? 32 : 64);
            for (int r = 0; r < rows; r++) {
                float *c = acc + (r * panels + p) * RFT__PANEL;
                for (int j = 0; j < RFT__PANEL; j++) {
                    c[j] += x[i * rows + r] * load_w(type, wk, j, (int)(i % kr));
                }
            }
        }
    }
}

#define tile_f32(...) tile(RFT_F32, __VA_ARGS__)
#define tile_f16(...) tile(RFT_F16, __VA_ARGS__)
#define tile_bf16(...) tile(RFT_BF16, __VA_ARGS__)

RFT_FAMILY(rft__family_f32_f32_ref, f32, 4, 4, 0, 0)
RFT_FAMILY(rft__family_f32_f16_ref, f16, 4, 4, 0, 0)
RFT_FAMILY(rft__family_f32_bf16_ref, bf16, 4, 4, 0, 0)
