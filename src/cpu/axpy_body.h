/* SPDX-License-Identifier: Apache-2.0
 *
 * axpy_body.h - register tiles that read the columns of an MN-contiguous W where they lie; text for the axpy_<isa>.c of the ISA
 * folders. As in the gemm kernels one k is panels * rows FMAs, but the next k lies a row of W further.
 *
 * The loops give a tile only a few k of each strip, so that W is read along its rows, and `ahead` the rows after them in one
 * long run (f32, 2048 x 2048, one Zen 4 core, loops alone, GB/s: all k of 64 columns 14.1; 8 k of each strip 23.7; with the
 * fetch 32.5). One k over all strips reads W in the order of its bytes and needs no fetch (bf16: 25.9 -> 30.9), but where rows
 * are longer than the sums that fit in L1 it falls to half (f32, 14336 columns: 24.1 -> 13.8), so it was dropped.
 *
 * The includer defines vec, VECTOR_N (columns of a vector), and load_w(type, p), load_acc(p), store_acc(p, v), broadcast(p),
 * multiply_add(x, w, sum), zero().
 */
#include "cpu/tile_family.h"

enum { PANEL_VECTORS = RFT__PANEL / VECTOR_N, MOST_VECTORS = RFT__MAX_PANELS * PANEL_VECTORS };

RFT_INLINE void axpy(rft_type type, int rows, int panels, int64_t k, const float *x, const rft__w_lines *w,
                     const rft__w_lines *ahead, float *acc, bool accumulate) {
    const int vectors = panels * PANEL_VECTORS, bytes = VECTOR_N * (type == RFT_F32 ? 4 : 2);
    vec c[RFT__MAX_ROWS][MOST_VECTORS];
    RFT_UNROLL
    for (int i = 0; i < rows * vectors; i++) {
        c[i / vectors][i % vectors] = accumulate ? load_acc(acc + i * VECTOR_N) : zero();
    }
    int64_t at = 0, fetch_at = 0;
    for (int64_t i = 0; i < k; i++) {
        RFT_UNROLL
        for (int p = 0; p < panels; p++) {
            _mm_prefetch(ahead->panel[p] + fetch_at, _MM_HINT_T1);
        }
        RFT_UNROLL
        for (int v = 0; v < vectors; v++) {
            const vec wk = load_w(type, w->panel[v / PANEL_VECTORS] + at + v % PANEL_VECTORS * bytes);
            RFT_UNROLL
            for (int r = 0; r < rows; r++) {
                c[r][v] = multiply_add(broadcast(x + r), wk, c[r][v]);
            }
        }
        x += rows;
        at += w->stride;
        fetch_at += ahead->stride;
    }
    RFT_UNROLL
    for (int i = 0; i < rows * vectors; i++) {
        store_acc(acc + i * VECTOR_N, c[i / vectors][i % vectors]);
    }
}

#define RFT_AXPY(type, rows, panels, k, x, x_stride, w, ahead, acc, accumulate)                                                  \
    ((void)(x_stride), axpy(type, rows, panels, k, x, w, ahead, acc, accumulate))
#define direct_f32(...)  RFT_AXPY(RFT_F32, __VA_ARGS__)
#define direct_f16(...)  RFT_AXPY(RFT_F16, __VA_ARGS__)
#define direct_bf16(...) RFT_AXPY(RFT_BF16, __VA_ARGS__)
