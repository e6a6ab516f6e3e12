/* SPDX-License-Identifier: Apache-2.0
 *
 * verify_product.h - sums of x * w and of |x| * |w| in f64 for a block of a product, from the stored operands.
 * Called by verify.c. Every product of two stored elements is exact in f64; a sum's own error is k * 2^-53 of sum|x||w|.
 */
#ifndef RFT_PROBE_VERIFY_PRODUCT_H
#define RFT_PROBE_VERIFY_PRODUCT_H

#include "problem/stored.h"

enum { RFT__VERIFY_ROWS = 32, RFT__VERIFY_COLUMNS = 8 };

/* A stored operand: element (i, k) of batch b at b * batch_stride + i * stride + k * k_stride. */
typedef struct rft__stored {
    const void *data;
    rft_type type;
    int64_t stride, k_stride, batch_stride;
    const float *scale; /* NULL, or of an X in 8 bits: one for k_scale of a row's k, or with k_scale 0 one for all */
    int64_t k_scale, scale_stride, scale_batch;
} rft__stored;

typedef struct rft__sums {
    double dot[RFT__VERIFY_COLUMNS], absolute[RFT__VERIFY_COLUMNS];
} rft__sums;

double rft__stored_at(rft_type type, const void *data, int64_t i);
/* n rows of X, each k floats long; code * scale is rounded to f32. */
void rft__verify_decode_x(const rft__stored *x, int64_t b, const int64_t *rows, int64_t n, int64_t k, float *out);
/* n columns of the product (rows of W) side by side: [k][RFT__VERIFY_COLUMNS], missing ones zero. */
void rft__verify_decode_w(const rft__stored *w, int64_t b, const int64_t *columns, int64_t n, int64_t k, double *out);
/* The same of a low-bit W; row: k floats to work in. magnitude: see stored.h. */
void rft__verify_decode_codes(const rft__matrix *w, const rft__stored_w *from, int64_t b, const int64_t *columns, int64_t n,
                              bool magnitude, float *row, double *out);
/* What a kernel that multiplies in 8 bits makes of a row of x: groups of `each` with their largest |x| / 127 as scale. order: in
 * which W has its k, or NULL. */
void rft__verify_round_x(int64_t k, int64_t each, const int32_t *order, float *x);
void rft__verify_sums(const float *x, const double *w, int64_t k, rft__sums *sums);

#endif
