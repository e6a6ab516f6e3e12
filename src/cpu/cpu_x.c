/* SPDX-License-Identifier: Apache-2.0
 *
 * cpu_x.c - see cpu_x.h.
 */
#include "cpu/cpu_x.h"

#include <math.h>
#include <string.h>

rft__x_source rft__x_source_of(const rft__choice *c, const rft__cpu_kernel *kernel, const rft_linear_args *args) {
    const rft__problem *p = &c->p;
    const rft__isa_ops *ops = &c->device->ops;
    const bool scaled = rft__type_is_8bit(p->x), by_k = p->x_order == RFT_K_CONTIGUOUS;
    const int64_t scales = rft__problem_x_scales(p);
    return (rft__x_source){.ops = ops,
                           .packing = c->low_bit ? &c->packing : NULL,
                           .pack = kernel->x == RFT_BF16 ? ops->to_same[p->x] : ops->to_f32[scaled ? RFT_F32 : p->x],
                           .type = p->x,
                           .scaled = scaled,
                           .x = args->x,
                           .size = (int64_t)rft__type_size(p->x),
                           .row = by_k ? args->ldx : 1,
                           .k = by_k ? 1 : args->ldx,
                           .batch = args->x_batch_stride,
                           .scale = args->x_scale,
                           .group = p->x_group_k,
                           .scale_row = scales,
                           .scale_batch = scales * args->m,
                           .sorted = p->w.sorted ? args->weight : NULL,
                           .rounded_k = rft__problem_rounds_rows(p) ? p->w.k : 0};
}

/* ---- X in 8 bits ---- */

/* Of that k. An infinite scale counts as NaN, so that sums of codes need not tell which of them met it. */
static float scale_at(const rft__x_source *x, int64_t b, int64_t row, int64_t k) {
    const float scale = x->group == 0 ? *x->scale : x->scale[b * x->scale_batch + row * x->scale_row + k / x->group];
    return isfinite(scale) ? scale : NAN;
}

static void widen_row(const rft__x_source *x, int64_t b, int64_t row, int64_t k0, int64_t n, float *out) {
    const int64_t last = k0 + n;
    for (int64_t k = k0, end; k < last; k = end) {
        end = x->group == 0 ? last : rft__min((k / x->group + 1) * x->group, last);
        x->ops->x8->widen(x->type, rft__x_at(x, b, row, k), scale_at(x, b, row, k), end - k, out + (k - k0));
    }
}

/* A record, up to a chunk of k. */
static void given_record(const rft__x_source *x, int64_t b, int64_t row, int64_t k0, int64_t n, rft__x8 *dst) {
    float scale[RFT__CHUNK / RFT__BLOCK];
    const int64_t each = x->packing->x_group;
    for (int64_t k = 0; k < n; k += each) {
        scale[k / each] = scale_at(x, b, row, k0 + k);
    }
    x->ops->record(x->packing, (const signed char *)rft__x_at(x, b, row, k0), scale, n, dst);
}

/* ---- X beside a W that is sorted: up to a chunk of k in the order of W ---- */

static void gather(const rft__x_source *x, int64_t b, int64_t row, int64_t k0, int64_t n, char *to) {
    const rft__matrix *w = &x->sorted->w;
    const int32_t *order = rft__cpu_order(w, x->sorted->data, w->batch == 1 ? 0 : b);
    const char *from = rft__x_at(x, b, row, 0);
    const int64_t step = x->k * x->size;
    for (int64_t i = 0; i < n && x->size == 4; i++) {
        memcpy(to + 4 * i, from + rft__cpu_order_at(order, k0 + i, w->k) * step, 4);
    }
    for (int64_t i = 0; i < n && x->size == 2; i++) {
        memcpy(to + 2 * i, from + rft__cpu_order_at(order, k0 + i, w->k) * step, 2);
    }
}

/* Each by its own scale, as neighbours here may be of different groups. */
static void gather_scaled(const rft__x_source *x, int64_t b, int64_t row, int64_t k0, int64_t n, float *out) {
    const rft__matrix *w = &x->sorted->w;
    const int32_t *order = rft__cpu_order(w, x->sorted->data, w->batch == 1 ? 0 : b);
    for (int64_t i = 0; i < n; i++) {
        const int64_t k = rft__cpu_order_at(order, k0 + i, w->k);
        x->ops->x8->widen(x->type, rft__x_at(x, b, row, k), scale_at(x, b, row, k), 1, out + i);
    }
}

/* ---- tiles, a chunk of k at a time ---- */

void rft__x_row(const rft__x_source *x, int64_t b, int64_t row, int64_t k0, int64_t n, void *dst) {
    char room[RFT__CHUNK * sizeof(float)];
    if (x->scaled && x->sorted != NULL) {
        gather_scaled(x, b, row, k0, n, dst);
    } else if (x->scaled) {
        widen_row(x, b, row, k0, n, dst);
    } else if (x->sorted != NULL) {
        gather(x, b, row, k0, n, room);
        x->pack(room, n, 1, 1, 1, n, dst);
    } else {
        x->pack(rft__x_at(x, b, row, k0), x->row, x->k, 1, 1, n, dst);
    }
}

static void load_chunk(const rft__x_source *x, int64_t b, int64_t row0, int rows, int64_t k0, int64_t n, float *wide) {
    for (int r = 0; r < rows; r++) {
        rft__x_row(x, b, row0 + r, k0, n, wide + r * RFT__CHUNK);
    }
}

static void row_by_row(const rft__x_source *x, int64_t b, int64_t row0, int rows, int64_t k0, int64_t k, char *dst) {
    float wide[RFT__MAX_ROWS * RFT__CHUNK];
    for (int64_t at = 0; at < k; at += RFT__CHUNK) {
        const int64_t n = rft__min(RFT__CHUNK, k - at);
        load_chunk(x, b, row0, rows, k0 + at, n, wide);
        x->ops->to_f32[RFT_F32](wide, RFT__CHUNK, 1, rows, rows, n, dst + rft__panel_bytes(RFT_F32, rows, at));
    }
}

void rft__x_tile(const rft__x_source *x, int64_t b, int64_t row0, int rows, int64_t k0, int64_t k, char *dst) {
    if (x->scaled || x->sorted != NULL) {
        row_by_row(x, b, row0, rows, k0, k, dst);
    } else {
        x->pack(rft__x_at(x, b, row0, k0), x->row, x->k, rows, rows, k, dst);
    }
}

/* ---- floats rounded to 8 bits, up to a chunk of k ---- */

/* n of a row in f32: where they are, or in `wide`. */
static const float *floats_at(const rft__x_source *x, int64_t b, int64_t row, int64_t k0, int64_t n, float *wide) {
    if (x->type == RFT_F32 && x->k == 1 && x->sorted == NULL) {
        return (const float *)(const void *)rft__x_at(x, b, row, k0);
    }
    rft__x_row(x, b, row, k0, n, wide);
    return wide;
}

/* |x|; not finite where one of them is not. */
static float largest_of_row(const rft__x_source *x, int64_t b, int64_t row) {
    float wide[RFT__CHUNK], largest;
    uint32_t most = 0;
    for (int64_t k = 0; k < x->rounded_k; k += RFT__CHUNK) {
        const int64_t n = rft__min(RFT__CHUNK, x->rounded_k - k);
        const uint32_t one = x->ops->x8->largest(floats_at(x, b, row, k, n, wide), n);
        most = one > most ? one : most;
    }
    memcpy(&largest, &most, sizeof largest);
    return largest;
}

void rft__x_rows_8bit(const rft__x_source *x, int64_t b, int64_t row0, int64_t rows, int64_t k0, int64_t k, rft__x8 *dst,
                      int64_t stride) {
    float wide[RFT__CHUNK];
    for (int64_t row = 0; row < rows; row++) {
        const float largest = x->rounded_k > 0 ? largest_of_row(x, b, row0 + row) : 0.0f;
        for (int64_t at = 0; at < k; at += RFT__CHUNK) {
            const int64_t n = rft__min(RFT__CHUNK, k - at);
            rft__x8 *to = dst + at / RFT__CHUNK * stride + row;
            if (x->type == RFT_I8) {
                given_record(x, b, row0 + row, k0 + at, n, to);
            } else {
                const float *from = floats_at(x, b, row0 + row, k0 + at, n, wide);
                x->ops->quantise(x->packing, from, x->rounded_k > 0 ? &largest : NULL, n, to);
            }
            to->sum[0].word += x->packing->one_sum && at > 0 ? to[-stride].sum[0].word : 0;
        }
    }
}
