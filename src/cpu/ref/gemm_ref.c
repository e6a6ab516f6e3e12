/* SPDX-License-Identifier: Apache-2.0
 *
 * gemm_ref.c - register tiles in portable C: the meaning that faster levels are checked against, and the fallback of
 * machines without one. Each product is rounded before it is added (no FMA). Panels of 16 bits are widened first.
 *
 * Vectors of 4, as the baselines of x86-64 and aarch64 have; a pass of 8 columns holds 4x8 sums in 8 of 16 registers.
 */
#include "cpu/tile_family.h"

enum { REF_ROWS = 4, LANES = 4, COLUMNS = 2 * LANES };

typedef float vector __attribute__((vector_size(sizeof(float) * LANES), aligned(sizeof(float)), may_alias));

/* Columns of one panel; acc_stride: from row to row. */
RFT_INLINE void tile_columns(int rows, int64_t k, const float *x, const float *w, float *acc, int acc_stride, bool accumulate) {
    vector c[REF_ROWS][2];
    RFT_UNROLL
    for (int r = 0; r < rows; r++) {
        const vector *row = (const vector *)(acc + r * acc_stride);
        c[r][0] = accumulate ? row[0] : (vector){0};
        c[r][1] = accumulate ? row[1] : (vector){0};
    }
    for (int64_t i = 0; i < k; i++) {
        const vector *wk = (const vector *)(w + i * RFT__PANEL);
        RFT_UNROLL
        for (int r = 0; r < rows; r++) {
            c[r][0] += x[i * rows + r] * wk[0];
            c[r][1] += x[i * rows + r] * wk[1];
        }
    }
    RFT_UNROLL
    for (int r = 0; r < rows; r++) {
        vector *row = (vector *)(acc + r * acc_stride);
        row[0] = c[r][0];
        row[1] = c[r][1];
    }
}

RFT_INLINE void tile_f32(int rows, int panels, int64_t k, const float *x, const char *w, size_t w_stride, float *acc,
                         bool accumulate, const rft__ahead *ahead) {
    (void)ahead; /* the hardware's own prefetching does here */
    for (int p = 0; p < panels; p++) {
        const float *panel = (const float *)(w + (size_t)p * w_stride);
        for (int column = 0; column < RFT__PANEL; column += COLUMNS) {
            tile_columns(rows, k, x, panel + column, acc + p * RFT__PANEL + column, panels * RFT__PANEL, accumulate);
        }
    }
}

RFT_FAMILY(rft__family_f32_f32_ref, f32, 4, 4, 0, 0)
