/* SPDX-License-Identifier: Apache-2.0
 *
 * verify_product.c - f64 sums of products. See verify_product.h.
 */
#include "probe/verify_product.h"

#include "format/decode/decode_scalar.h"

#include <math.h>
#include <string.h>

double rft__stored_at(rft_type type, const void *data, int64_t i) {
    if (type == RFT_F32) {
        return (double)((const float *)data)[i];
    }
    if (type == RFT_I8) {
        return (double)((const signed char *)data)[i];
    }
    if (type == RFT_E4M3) {
        return (double)rft__e4m3_f32(((const unsigned char *)data)[i]);
    }
    const unsigned half = ((const uint16_t *)data)[i];
    return (double)(type == RFT_BF16 ? rft__bf16_f32(half) : rft__f16_f32(half));
}

/* A scale that is not finite makes NaN of all its codes. */
static float scale_at(const rft__stored *x, int64_t b, int64_t row, int64_t k) {
    if (x->scale == NULL) {
        return 1.0f;
    }
    const float scale = x->k_scale == 0 ? *x->scale : x->scale[b * x->scale_batch + row * x->scale_stride + k / x->k_scale];
    return isfinite(scale) ? scale : NAN;
}

void rft__verify_decode_x(const rft__stored *x, int64_t b, const int64_t *rows, int64_t n, int64_t k, float *out) {
    for (int64_t i = 0; i < n; i++, out += k) {
        const int64_t row = b * x->batch_stride + rows[i] * x->stride;
        for (int64_t j = 0; j < k; j++) {
            out[j] = (float)rft__stored_at(x->type, x->data, row + j * x->k_stride) * scale_at(x, b, rows[i], j);
        }
    }
}

void rft__verify_decode_w(const rft__stored *w, int64_t b, const int64_t *columns, int64_t n, int64_t k, double *out) {
    if (n < RFT__VERIFY_COLUMNS) {
        memset(out, 0, (size_t)k * RFT__VERIFY_COLUMNS * sizeof *out);
    }
    for (int64_t i = 0; i < n; i++) {
        const int64_t row = b * w->batch_stride + columns[i] * w->stride;
        for (int64_t j = 0; j < k; j++) {
            out[j * RFT__VERIFY_COLUMNS + i] = rft__stored_at(w->type, w->data, row + j * w->k_stride);
        }
    }
}

void rft__verify_decode_codes(const rft__matrix *w, const rft__stored_w *from, int64_t b, const int64_t *columns, int64_t n,
                              bool magnitude, float *row, double *out) {
    memset(out, 0, (size_t)w->k * RFT__VERIFY_COLUMNS * sizeof *out);
    for (int64_t i = 0; i < n; i++) {
        rft__stored_row(w, from, w->batch == 1 ? 0 : b, columns[i], magnitude, row);
        for (int64_t j = 0; j < w->k; j++) {
            out[j * RFT__VERIFY_COLUMNS + i] = (double)row[j];
        }
    }
}

/* Of k first .. last - 1 in that order. */
static void round_group(int64_t first, int64_t last, const int32_t *order, float *x) {
    float largest = 0.0f;
    bool finite = true;
    for (int64_t i = first; i < last; i++) {
        const float one = x[order != NULL ? order[i] : i];
        finite = finite && isfinite(one);
        largest = fmaxf(largest, fabsf(one));
    }
    const float inverse = 127.0f / largest, scale = largest / 127.0f;
    for (int64_t i = first; i < last; i++) {
        float *one = x + (order != NULL ? order[i] : i);
        *one = !finite ? NAN : largest < 0x1p-110f ? 0.0f : scale * nearbyintf(*one * inverse);
    }
}

void rft__verify_round_x(int64_t k, int64_t each, const int32_t *order, float *x) {
    for (int64_t i = 0; i < k; i += each) {
        round_group(i, k - i < each ? k : i + each, order, x);
    }
}

typedef double f64x2 __attribute__((vector_size(16))); /* what the baselines of x86-64 and aarch64 have */
typedef int64_t i64x2 __attribute__((vector_size(16)));

static inline void add_pair(f64x2 x, const double *w, f64x2 *dot, f64x2 *absolute) {
    const i64x2 magnitude = {INT64_MAX, INT64_MAX};
    f64x2 product;
    memcpy(&product, w, sizeof product);
    product *= x;
    *dot += product;
    *absolute += (f64x2)((i64x2)product & magnitude);
}

/* Written out, not a loop: gcc keeps an array of vectors in registers only where every index is a constant. */
void rft__verify_sums(const float *x, const double *w, int64_t k, rft__sums *sums) {
    f64x2 dot[4] = {{0}}, absolute[4] = {{0}};
    for (int64_t i = 0; i < k; i++, w += RFT__VERIFY_COLUMNS) {
        const f64x2 both = {(double)x[i], (double)x[i]};
        add_pair(both, w, &dot[0], &absolute[0]);
        add_pair(both, w + 2, &dot[1], &absolute[1]);
        add_pair(both, w + 4, &dot[2], &absolute[2]);
        add_pair(both, w + 6, &dot[3], &absolute[3]);
    }
    memcpy(sums->dot, dot, sizeof sums->dot);
    memcpy(sums->absolute, absolute, sizeof sums->absolute);
}
