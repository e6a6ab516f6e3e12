/* SPDX-License-Identifier: Apache-2.0
 *
 * stored.c - see stored.h.
 */
#include "problem/stored.h"

#include "base/alloc.h"
#include "base/error.h"
#include "format/decode/decode_scalar.h"
#include "format/format.h"
#include "format/quant.h"

#include <math.h>

static int64_t scale_index(const rft__matrix *w, int64_t b, int64_t n, int64_t g) {
    const int64_t rows = rft__ceil_div(w->n, w->group_n), columns = rft__ceil_div(w->k, w->group_k);
    return (b * rows + n / w->group_n) * columns + g;
}

float rft__stored_scale(const rft__matrix *w, const rft__stored_w *from, int64_t b, int64_t n, int64_t g) {
    const rft__format *f = rft__format_find(w->scale);
    float scale = 0.0f;
    f->decode_blocks((const unsigned char *)from->scale + scale_index(w, b, n, g) * f->block_bytes, 1, &scale);
    return w->global == RFT__GLOBAL_TIMES  ? scale * from->global[b]
           : w->global == RFT__GLOBAL_OVER ? scale / from->global[b]
                                           : scale;
}

int rft__stored_zero(const rft__matrix *w, const rft__stored_w *from, int64_t b, int64_t n, int64_t g) {
    if (w->zero == 0) {
        return 0;
    }
    const unsigned char *zero = (const unsigned char *)from->zero + scale_index(w, b, n, g);
    return w->zero == RFT_I8 ? rft__load_i8(zero) : *zero;
}

rft_status rft__stored_check_groups(const rft__matrix *w, const rft__stored_w *from, rft_error *err) {
    const int64_t groups = w->sorted ? rft__ceil_div(w->k, w->group_k) : 0, all = w->n == 0 ? 0 : w->batch * w->k;
    for (int64_t i = 0; w->sorted && i < all; i++) {
        if (from->g_idx[i] < 0 || from->g_idx[i] >= groups) {
            RFT_FAIL(err, RFT_E_ARG, "src.g_idx[%lld] = %d is not in 0..%lld, the groups of %lld of k = %lld", (long long)i,
                     (int)from->g_idx[i], (long long)groups - 1, (long long)w->group_k, (long long)w->k);
        }
    }
    return RFT_OK;
}

rft_status rft__stored_order(const rft__matrix *w, const rft__stored_w *from, int64_t b, int64_t *next, int32_t *order,
                             rft_error *err) {
    for (int64_t g = 0; g * w->group_k < w->k; g++) {
        next[g] = g * w->group_k;
    }
    for (int64_t k = 0; k < w->k; k++) {
        const int64_t g = rft__stored_group(w, from, b, k), end = rft__min(w->k, (g + 1) * w->group_k);
        if (next[g] == end) {
            RFT_FAIL(err, RFT_E_ARG, "src.g_idx: more than %lld of batch %lld's k = %lld are in group %lld",
                     (long long)(end - g * w->group_k), (long long)b, (long long)w->k, (long long)g);
        }
        order[next[g]++] = (int32_t)k;
    }
    return RFT_OK;
}

int64_t rft__stored_group(const rft__matrix *w, const rft__stored_w *from, int64_t b, int64_t k) {
    return w->sorted ? from->g_idx[b * w->k + k] : k / w->group_k;
}

const unsigned char *rft__stored_block(const rft__matrix *w, const rft__stored_w *from, int64_t b, int64_t n, int64_t k) {
    const rft__format *f = rft__format_find(w->elem);
    const int64_t element = b * w->batch_stride + n * w->n_stride + k;
    return (const unsigned char *)from->q + element / f->block_elements * f->block_bytes;
}

/* Codes whose scales lie apart. */
static void scaled_row(const rft__matrix *w, const rft__stored_w *from, int64_t b, int64_t n, float *out) {
    const rft__quant *q = rft__quant_find(w->elem);
    const unsigned char *codes = rft__stored_block(w, from, b, n, 0);
    float scale = 0.0f, zero = 0.0f;
    int64_t group = -1;
    for (int64_t k = 0; k < w->k; k++) {
        if (rft__stored_group(w, from, b, k) != group) {
            group = rft__stored_group(w, from, b, k);
            scale = rft__stored_scale(w, from, b, n, group);
            zero = (float)rft__stored_zero(w, from, b, n, group);
        }
        const int64_t whole = q->bits == 4 ? k & ~(int64_t)1 : k;
        const unsigned code = q->code(codes + (q->bits == 4 ? whole / 2 : whole), (unsigned)(k - whole));
        out[k] = (rft__quant_value(q, code) - zero) * scale;
    }
}

/* What a minimum hides: w = p + m, and |p| + |m| where w itself is small. */
static void block_magnitudes(const rft__quant *q, const unsigned char *block, unsigned elements, float *out) {
    for (unsigned i = 0; i < elements; i++) {
        const unsigned group = i / (unsigned)q->group;
        float minimum = rft__f16_f32(rft__load_u16(block + q->minimum_at));
        minimum *= q->minimum_part != NULL ? -(float)q->minimum_part(block, group) : 1.0f;
        out[i] = fabsf(out[i] - minimum) + fabsf(minimum);
    }
}

void rft__stored_row(const rft__matrix *w, const rft__stored_w *from, int64_t b, int64_t n, bool magnitude, float *out) {
    const rft__quant *q = rft__quant_find(w->elem);
    if (q->group == 0) {
        scaled_row(w, from, b, n, out);
        return;
    }
    const rft__format *f = rft__format_find(w->elem);
    const unsigned char *row = rft__stored_block(w, from, b, n, 0);
    f->decode_blocks(row, w->k / f->block_elements, out);
    for (int64_t k = 0; magnitude && q->offset == RFT__OFFSET_MINIMUM && k < w->k; k += f->block_elements) {
        block_magnitudes(q, row + k / f->block_elements * f->block_bytes, f->block_elements, out + k);
    }
}
