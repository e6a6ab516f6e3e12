/* SPDX-License-Identifier: Apache-2.0
 *
 * dot_body.h - kernels that read the rows of a K-contiguous W where they lie; text for the dot_<isa>.c of the ISA folders.
 *
 *     x[r] |<- k ->|   .   w[c] |<- k ->|   =   acc[r][c], each a vector of partial sums over k, added up at the end
 *
 * Some columns at once share the loads of x. They would be that many streams a power of two apart, which banks of DRAM bear
 * badly: so the strip to come is fetched to L2 row after row, and the streams find their lines there (f32, 2048 x 2048, one
 * Zen 4 core, GB/s: one column 34.7; eight columns 24.5, with the fetch 33.9; small pages 24.3, 23.6, 26.4). Where W is widened
 * for few rows every second line is fetched, as the hardware brings its neighbour (bf16, m = 1: 25.9 -> 27.6; m = 4: 24.7 ->
 * 18.5; f32: 32.0 -> 30.0).
 *
 * The includer defines vec, VECTOR_K (k of a vector), X_SIZE (bytes of an x) and
 *     load_x(p, n), load_w(type, p, n)   the first n >= 1 of VECTOR_K elements, the rest zero
 *     multiply_add(x, w, sum), sum_1(v), sum_4(v): a __m128 of the sums of four vectors
 *     columns_at_once(rows): 4 or 8
 */
#include "cpu/tile_family.h"

enum { LINE_BYTES = 64 };

RFT_INLINE int w_size(rft_type type) { return type == RFT_F32 ? 4 : 2; }

/* A line of each row of W, or its first n elements. */
RFT_INLINE void dot_line(rft_type type, int rows, int columns, const char *x, int64_t x_stride, const char *w, int64_t w_stride,
                         int64_t n, vec sum[RFT__MAX_ROWS][8]) {
    RFT_UNROLL
    for (int v = 0; v < LINE_BYTES / (VECTOR_K * w_size(type)); v++) {
        const int64_t left = n - v * VECTOR_K;
        if (left <= 0) {
            return;
        }
        vec xv[RFT__MAX_ROWS];
        RFT_UNROLL
        for (int r = 0; r < rows; r++) {
            xv[r] = load_x(x + r * x_stride + v * VECTOR_K * X_SIZE, left);
        }
        RFT_UNROLL
        for (int c = 0; c < columns; c++) {
            const vec wv = load_w(type, w + c * w_stride + v * VECTOR_K * w_size(type), left);
            RFT_UNROLL
            for (int r = 0; r < rows; r++) {
                sum[r][c] = multiply_add(xv[r], wv, sum[r][c]);
            }
        }
    }
}

RFT_INLINE void keep_sums(int rows, int columns, vec sum[RFT__MAX_ROWS][8], float *acc, int acc_stride, bool accumulate) {
    RFT_UNROLL
    for (int r = 0; r < rows; r++) {
        float *a = acc + r * acc_stride;
        if (columns == 1) {
            *a = sum_1(sum[r][0]) + (accumulate ? *a : 0.0f);
            continue;
        }
        RFT_UNROLL
        for (int c = 0; c < columns; c += 4) {
            const __m128 s = sum_4(sum[r] + c);
            _mm_storeu_ps(a + c, accumulate ? _mm_add_ps(s, _mm_loadu_ps(a + c)) : s);
        }
    }
}

/* Some columns over all of k. While a part of the lines is multiplied, as many lines of one row of `ahead` are fetched. */
RFT_INLINE void dot_group(rft_type type, int rows, int columns, int64_t k, const char *x, int64_t x_stride, const char *w,
                          int64_t w_stride, const char *ahead, float *acc, int acc_stride, bool accumulate) {
    const int line_k = LINE_BYTES / w_size(type), each = w_size(type) < X_SIZE && rows <= 2 && columns > 1 ? 2 : 1;
    const int64_t lines = k / line_k;
    vec sum[RFT__MAX_ROWS][8];
    RFT_UNROLL
    for (int i = 0; i < rows * columns; i++) {
        sum[i / columns][i % columns] = zero();
    }
    int64_t line = 0;
    for (int row = 1; row <= columns; row++, ahead += w_stride) {
        const char *next = ahead;
        for (const int64_t end = lines * row / columns; line < end; line++) {
            dot_line(type, rows, columns, x, x_stride, w, w_stride, line_k, sum);
            RFT_UNROLL
            for (int c = 0; c < columns; c += each) {
                _mm_prefetch(next + c * LINE_BYTES, _MM_HINT_T1);
            }
            x += line_k * X_SIZE;
            w += LINE_BYTES;
            next += columns * LINE_BYTES;
        }
    }
    if (k % line_k != 0) {
        dot_line(type, rows, columns, x, x_stride, w, w_stride, k % line_k, sum);
    }
    keep_sums(rows, columns, sum, acc, acc_stride, accumulate);
}

RFT_INLINE void dot(rft_type type, int rows, int panels, int64_t k, const char *x, int64_t x_stride, const rft__w_lines *w,
                    const rft__w_lines *ahead, float *acc, bool accumulate) {
    const int stride = panels * RFT__PANEL, step = columns_at_once(rows);
    for (int p = 0; p < panels; p++) {
        int c = 0;
        for (; c + step <= w->columns[p]; c += step) {
            dot_group(type, rows, step, k, x, x_stride, w->panel[p] + c * w->stride, w->stride, ahead->panel[p] + c * w->stride,
                      acc + p * RFT__PANEL + c, stride, accumulate);
        }
        for (; c < w->columns[p]; c++) {
            dot_group(type, rows, 1, k, x, x_stride, w->panel[p] + c * w->stride, w->stride, ahead->panel[p] + c * w->stride,
                      acc + p * RFT__PANEL + c, stride, accumulate);
        }
        for (; c < RFT__PANEL; c++) {
            for (int r = 0; r < rows; r++) {
                acc[r * stride + p * RFT__PANEL + c] = 0.0f;
            }
        }
    }
}
