/* SPDX-License-Identifier: Apache-2.0
 *
 * problem.c - checks and defaults of a weight's and of a whole layer's description. See problem.h.
 */
#include "problem/problem.h"

#include "base/alloc.h"
#include "base/sized.h"
#include "format/format.h"
#include "format/quant.h"

#include <string.h>

double rft__matrix_bytes(const rft__matrix *w) {
    const rft__format *const f = rft__format_find(w->elem);
    double bytes = (double)w->n * (double)w->k * (double)w->batch * (double)f->block_bytes / (double)f->block_elements;
    if (w->scale != 0 && w->n > 0 && w->k > 0) {
        const double groups = (double)rft__ceil_div(w->n, w->group_n) * (double)rft__ceil_div(w->k, w->group_k);
        const double index = w->sorted ? 4.0 * (double)w->k : 0.0, global = w->global != RFT__GLOBAL_NONE ? 4.0 : 0.0;
        bytes += (groups * (double)(rft__type_size(w->scale) + rft__type_size(w->zero)) + index + global) * (double)w->batch;
    }
    return bytes;
}

bool rft__matrix_is_low_bit(const rft__matrix *w) { return rft__quant_find(w->elem) != NULL; }

static rft_status check_shape(const rft_weight_desc *d, const char *which, rft_error *err) {
    if (d->n < 0 || d->k < 0 || d->batch < 0 || d->ld < 0 || d->batch_stride < 0) {
        RFT_FAIL(err, RFT_E_ARG, "%s: n = %lld, k = %lld, ld = %lld, batch = %lld, batch_stride = %lld: none may be negative",
                 which, (long long)d->n, (long long)d->k, (long long)d->ld, (long long)d->batch, (long long)d->batch_stride);
    }
    if (d->order != RFT_K_CONTIGUOUS && d->order != RFT_MN_CONTIGUOUS) {
        RFT_FAIL(err, RFT_E_ARG, "%s.order = %d is not an rft_order", which, (int)d->order);
    }
    const int64_t row = d->order == RFT_K_CONTIGUOUS ? d->k : d->n;
    if (d->ld != 0 && d->ld < row) {
        RFT_FAIL(err, RFT_E_ARG, "%s.ld = %lld is less than the row length %s = %lld", which, (long long)d->ld,
                 d->order == RFT_K_CONTIGUOUS ? "k" : "n", (long long)row);
    }
    return RFT_OK;
}

static rft_status check_flags(const rft_weight_desc *d, const char *which, rft_error *err) {
    const uint32_t both = RFT_WEIGHT_GLU_HALVES | RFT_WEIGHT_GLU_INTERLEAVED;
    if (d->flags & ~(RFT_WEIGHT_VIEW | both | RFT_WEIGHT_GLOBAL_TIMES | RFT_WEIGHT_GLOBAL_OVER | RFT_WEIGHT_G_IDX)) {
        RFT_FAIL(err, RFT_E_ARG, "%s.flags = 0x%x has bits that are no RFT_WEIGHT_ flag", which, d->flags);
    }
    if ((d->flags & both) == both) {
        RFT_FAIL(err, RFT_E_ARG, "%s.flags names both GLU pairings; a weight has one", which);
    }
    if ((d->flags & both) && d->n % 2 != 0) {
        RFT_FAIL(err, RFT_E_ARG, "%s.n = %lld is odd; a GLU weight pairs gate and up rows", which, (long long)d->n);
    }
    return RFT_OK;
}

/* Blocks carry their own scales. */
static rft_status check_no_scales(const rft_weight_desc *d, const char *which, rft_error *err) {
    const uint32_t of_scales = RFT_WEIGHT_GLOBAL_TIMES | RFT_WEIGHT_GLOBAL_OVER | RFT_WEIGHT_G_IDX;
    if (d->flags & of_scales) {
        RFT_FAIL(err, RFT_E_ARG, "%s.flags = 0x%x says more of scales that lie apart, and elem %s has none", which, d->flags,
                 rft__format_name(d->elem));
    }
    if (d->scale != 0 || d->zero != 0 || d->group_n != 0 || d->group_k != 0) {
        RFT_FAIL(err, RFT_E_ARG, "%s: scale, zero, group_n and group_k must be 0 for elem %s, which has no scales", which,
                 rft__format_name(d->elem));
    }
    return RFT_OK;
}

static rft_status check_scale_type(const rft_weight_desc *d, const char *which, rft_error *err) {
    const bool four = d->elem == RFT_E2M1, powers = four || d->elem == RFT_E4M3 || d->elem == RFT_E5M2;
    if (!rft__type_is_float(d->scale) && !(powers && d->scale == RFT_E8M0) && !(four && d->scale == RFT_E4M3)) {
        RFT_FAIL(err, RFT_E_ARG, "%s.scale = %d (%s): scales of elem %s are f32, f16 or bf16%s", which, (int)d->scale,
                 rft__format_name(d->scale), rft__format_name(d->elem), four ? ", e8m0 or e4m3" : powers ? ", or e8m0" : "");
    }
    const uint32_t global = d->flags & (RFT_WEIGHT_GLOBAL_TIMES | RFT_WEIGHT_GLOBAL_OVER);
    if (global != 0 && (d->scale != RFT_E4M3 || (global & (global - 1)) != 0)) {
        RFT_FAIL(err, RFT_E_ARG, "%s.flags = 0x%x: one of RFT_WEIGHT_GLOBAL_TIMES and _OVER beside scales of e4m3; scale = %s",
                 which, d->flags, rft__format_name(d->scale));
    }
    return RFT_OK;
}

static rft_status check_zero_type(const rft_weight_desc *d, const char *which, rft_error *err) {
    const bool is_signed = d->elem == RFT_I8 || d->elem == RFT_I4, is_unsigned = d->elem == RFT_U8 || d->elem == RFT_U4;
    const rft_type zero = is_signed ? RFT_I8 : is_unsigned ? RFT_U8 : (rft_type)0;
    if (d->zero != 0 && d->zero != zero) {
        RFT_FAIL(err, RFT_E_ARG, "%s.zero = %d (%s): zero points of elem %s are %s", which, (int)d->zero,
                 rft__format_name(d->zero), rft__format_name(d->elem), zero != 0 ? rft__format_name(zero) : "0, it has none");
    }
    return RFT_OK;
}

static rft_status check_groups(const rft_weight_desc *d, const char *which, rft_error *err) {
    enum { GRANULE = 8 };
    if (d->group_n < 0 || d->group_k < 0) {
        RFT_FAIL(err, RFT_E_ARG, "%s.group_n = %lld, group_k = %lld: neither may be negative", which, (long long)d->group_n,
                 (long long)d->group_k);
    }
    if ((d->flags & RFT_WEIGHT_G_IDX) && d->k > INT32_MAX) {
        RFT_FAIL(err, RFT_E_ARG, "%s.k = %lld is above 2^31 - 1, the most that RFT_WEIGHT_G_IDX sorts", which, (long long)d->k);
    }
    if (d->group_k % GRANULE != 0 && d->group_k < d->k) {
        RFT_FAIL(err, RFT_E_ARG, "%s.group_k = %lld is not a multiple of %d and less than k = %lld", which, (long long)d->group_k,
                 GRANULE, (long long)d->k);
    }
    return RFT_OK;
}

/* Codes lie along k, in whole blocks, two of four bits a byte; row after row. */
static rft_status check_codes(const rft_weight_desc *d, const char *which, rft_error *err) {
    const rft__format *const f = rft__format_find(d->elem);
    const bool plain = rft__quant_find(d->elem)->group == 0;
    const int64_t whole = f->block_elements;
    if (d->order != RFT_K_CONTIGUOUS || (d->flags & RFT_WEIGHT_VIEW) != 0) {
        RFT_FAIL(err, RFT_E_UNSUPPORTED, "%s: elem %s must be K-contiguous and packed; order = %d, flags = 0x%x", which, f->name,
                 (int)d->order, d->flags);
    }
    if ((!plain && d->k % whole != 0) || d->ld % whole != 0 || d->batch_stride % whole != 0) {
        RFT_FAIL(err, RFT_E_ARG, "%s: k = %lld, ld = %lld, batch_stride = %lld: not all are multiples of %lld, the block of %s",
                 which, (long long)d->k, (long long)d->ld, (long long)d->batch_stride, (long long)whole, f->name);
    }
    if (!plain) {
        return check_no_scales(d, which, err);
    }
    RFT_TRY(check_scale_type(d, which, err));
    RFT_TRY(check_zero_type(d, which, err));
    return check_groups(d, which, err);
}

static rft_status check_type(const rft_weight_desc *d, const char *which, rft_error *err) {
    if (rft__format_find(d->elem) == NULL && (int)d->elem < RFT_GGUF_Q4_0 - 2) {
        RFT_FAIL(err, RFT_E_ARG, "%s.elem = %d is not an rft_type", which, (int)d->elem);
    }
    if (rft__type_is_float(d->elem)) {
        return check_no_scales(d, which, err);
    }
    if (rft__quant_find(d->elem) == NULL) {
        RFT_FAIL(err, RFT_E_UNSUPPORTED,
                 "%s.elem = %d (%s): weights here are f32, bf16, f16, i8, u8, i4, u4, e4m3, e5m2, e2m1, nf4, fp4 or GGUF blocks",
                 which, (int)d->elem, rft__format_name(d->elem));
    }
    return check_codes(d, which, err);
}

/* The span of one operand in bytes must fit in int64 so that no later offset can overflow. */
static rft_status check_span(const rft__matrix *w, const char *which, rft_error *err) {
    const int64_t rows = w->order == RFT_K_CONTIGUOUS ? w->n : w->k;
    const int64_t ld = w->order == RFT_K_CONTIGUOUS ? w->n_stride : w->k_stride;
    int64_t matrix = 0, all = 0, bytes = 0, padded = 0;
    if (rft__mul_overflows(rows, ld, &matrix) || rft__mul_overflows(w->batch_stride, w->batch, &all) ||
        rft__add_overflows(all, matrix, &all) || rft__mul_overflows(all, 16, &bytes) || rft__add_overflows(w->n, 256, &padded) ||
        rft__add_overflows(w->k, 256, &bytes) || rft__mul_overflows(padded, bytes, &bytes) ||
        rft__mul_overflows(bytes, rft__max(w->batch, 1), &bytes) || rft__mul_overflows(bytes, 16, &bytes)) {
        RFT_FAIL(err, RFT_E_ARG, "%s: n = %lld, k = %lld, ld = %lld, batch = %lld overflow 2^63 bytes", which, (long long)w->n,
                 (long long)w->k, (long long)ld, (long long)w->batch);
    }
    return RFT_OK;
}

/* Of scales that lie apart: at least 1 and at most the extent, unless that is 0. */
static int64_t group_of(const rft_weight_desc *d, int64_t group, int64_t extent) {
    const int64_t all = rft__max(1, extent);
    return d->scale == 0 ? 0 : group == 0 ? all : rft__min(group, all);
}

rft_status rft__matrix_make(rft__matrix *w, const rft_weight_desc *d, const char *which, rft_error *err) {
    RFT_TRY(check_shape(d, which, err));
    RFT_TRY(check_flags(d, which, err));
    RFT_TRY(check_type(d, which, err));
    const bool k_contiguous = d->order == RFT_K_CONTIGUOUS;
    const int64_t whole = rft__format_find(d->elem)->block_elements, row = rft__max(1, k_contiguous ? d->k : d->n);
    const int64_t ld = d->ld != 0 ? d->ld : d->k < INT64_MAX - whole ? rft__round_up(row, whole) : row;
    *w = (rft__matrix){.elem = d->elem,
                       .scale = d->scale,
                       .zero = d->zero,
                       .group_n = group_of(d, d->group_n, d->n),
                       .group_k = group_of(d, d->group_k, d->k),
                       .global = d->flags & RFT_WEIGHT_GLOBAL_TIMES  ? RFT__GLOBAL_TIMES
                                 : d->flags & RFT_WEIGHT_GLOBAL_OVER ? RFT__GLOBAL_OVER
                                                                     : RFT__GLOBAL_NONE,
                       .sorted = (d->flags & RFT_WEIGHT_G_IDX) != 0,
                       .order = d->order,
                       .glu = d->flags & RFT_WEIGHT_GLU_HALVES        ? RFT__GLU_HALVES
                              : d->flags & RFT_WEIGHT_GLU_INTERLEAVED ? RFT__GLU_INTERLEAVED
                                                                      : RFT__GLU_NONE,
                       .view = (d->flags & RFT_WEIGHT_VIEW) != 0,
                       .n = d->n,
                       .k = d->k,
                       .batch = d->batch != 0 ? d->batch : 1,
                       .n_stride = k_contiguous ? ld : 1,
                       .k_stride = k_contiguous ? 1 : ld};
    int64_t dense = 0;
    if (rft__mul_overflows(k_contiguous ? d->n : d->k, ld, &dense)) {
        RFT_FAIL(err, RFT_E_ARG, "%s: n = %lld, k = %lld, ld = %lld overflow 2^63 elements", which, (long long)d->n,
                 (long long)d->k, (long long)ld);
    }
    w->batch_stride = d->batch_stride != 0 ? d->batch_stride : dense;
    return check_span(w, which, err);
}

/* ---- the whole layer ---- */

static rft_status check_activations(rft_type type, const char *which, rft_error *err) {
    if (rft__type_is_float(type) || rft__type_is_8bit(type)) {
        return RFT_OK;
    }
    if (rft__type_name(type)[0] == '?') {
        RFT_FAIL(err, RFT_E_ARG, "%s = %d is not an rft_type", which, (int)type);
    }
    RFT_FAIL(err, RFT_E_UNSUPPORTED, "%s = %s: activations here are f32, bf16, f16, i8 or e4m3", which,
             rft__type_name(type));
}

static rft_status check_rows(const rft_linear_desc *d, rft_error *err) {
    if (d->m_min < 0) {
        RFT_FAIL(err, RFT_E_ARG, "desc.m_min = %lld is negative", (long long)d->m_min);
    }
    if (d->m_max < d->m_min) {
        RFT_FAIL(err, RFT_E_ARG, "desc.m_max = %lld is less than desc.m_min = %lld", (long long)d->m_max, (long long)d->m_min);
    }
    if (d->batch < 0) {
        RFT_FAIL(err, RFT_E_ARG, "desc.batch = %lld is negative", (long long)d->batch);
    }
    return RFT_OK;
}

static rft_status check_x_groups(const rft_linear_desc *d, rft_error *err) {
    if (d->x_order != RFT_K_CONTIGUOUS) {
        RFT_FAIL(err, RFT_E_UNSUPPORTED, "desc.x_order = %d: x of type %s must be K-contiguous", (int)d->x_order,
                 rft__type_name(d->x));
    }
    if (d->x_group_k % RFT__X_GRANULE != 0) {
        RFT_FAIL(err, RFT_E_ARG, "desc.x_group_k = %lld is no multiple of %d", (long long)d->x_group_k, RFT__X_GRANULE);
    }
    if ((d->flags & RFT_X_STATIC) && d->x_group_k != 0) {
        RFT_FAIL(err, RFT_E_ARG, "desc.x_group_k = %lld, and RFT_X_STATIC gives all of x one scale; it must be 0",
                 (long long)d->x_group_k);
    }
    return RFT_OK;
}

/* Floats that RFT_COMPUTE_I8 rounds may ask for one scale a row. */
static rft_status check_rounding(const rft_linear_desc *d, rft_error *err) {
    const bool rounds = d->compute == RFT_COMPUTE_I8 && !(d->flags & RFT_X_STATIC);
    if (!rounds && (d->x_group_k != 0 || (d->flags & RFT_X_STATIC))) {
        RFT_FAIL(err, RFT_E_ARG, "desc.x_group_k = %lld, RFT_X_STATIC %s: x of type %s has no scales", (long long)d->x_group_k,
                 d->flags & RFT_X_STATIC ? "set" : "clear", rft__type_name(d->x));
    }
    if (d->x_group_k != 0 && d->x_group_k < d->w.k) {
        RFT_FAIL(err, RFT_E_ARG, "desc.x_group_k = %lld: RFT_COMPUTE_I8 rounds x of type %s in the plan's groups (0) or by one "
                 "scale a row (k = %lld or more)", (long long)d->x_group_k, rft__type_name(d->x), (long long)d->w.k);
    }
    return RFT_OK;
}

/* x has scales where, and only where, it is of 8 bits. */
static rft_status check_x_scales(const rft_linear_desc *d, rft_error *err) {
    const bool scaled = (d->flags & RFT_X_SCALED) != 0;
    if (scaled != rft__type_is_8bit(d->x)) {
        RFT_FAIL(err, RFT_E_ARG, "desc.x = %s %s RFT_X_SCALED in desc.flags: i8 and e4m3 have scales, others none",
                 rft__type_name(d->x), scaled ? "beside" : "without");
    }
    return scaled ? check_x_groups(d, err) : check_rounding(d, err);
}

static rft_status check_features(const rft_linear_desc *d, rft_error *err) {
    const uint32_t known = RFT_W_DYNAMIC | RFT_BATCH_INVARIANT | RFT_X_SCALED | RFT_ALPHA | RFT_X_STATIC;
    if (d->flags & ~known) {
        RFT_FAIL(err, RFT_E_ARG, "desc.flags = 0x%x has bits that mean nothing for a layer", d->flags);
    }
    if (d->n_group < 0 || d->x_group_k < 0) {
        RFT_FAIL(err, RFT_E_ARG, "desc.n_group = %lld, desc.x_group_k = %lld: neither may be negative", (long long)d->n_group,
                 (long long)d->x_group_k);
    }
    if (d->n_group != 0) {
        RFT_FAIL(err, RFT_E_UNSUPPORTED, "desc.n_group = %lld: grouped products have no kernel here", (long long)d->n_group);
    }
    RFT_TRY(check_x_scales(d, err));
    if (!(d->flags & RFT_ALPHA) && d->alpha != 0.0f && d->alpha != 1.0f) {
        RFT_FAIL(err, RFT_E_ARG, "desc.alpha = %g does not count without RFT_ALPHA in desc.flags", (double)d->alpha);
    }
    return RFT_OK;
}

static rft_status check_enums(const rft_linear_desc *d, rft_error *err) {
    RFT_TRY(check_activations(d->x, "desc.x", err));
    RFT_TRY(check_activations(d->y, "desc.y", err));
    if (d->x_order != RFT_K_CONTIGUOUS && d->x_order != RFT_MN_CONTIGUOUS) {
        RFT_FAIL(err, RFT_E_ARG, "desc.x_order = %d is not an rft_order", (int)d->x_order);
    }
    if ((int)d->compute < RFT_COMPUTE_AUTO || d->compute > RFT_COMPUTE_FP8_FAST) {
        RFT_FAIL(err, RFT_E_ARG, "desc.compute = %d is not an rft_compute", (int)d->compute);
    }
    if (d->compute > RFT_COMPUTE_I8) {
        RFT_FAIL(err, RFT_E_UNSUPPORTED,
                 "desc.compute = %d: kernels here multiply in f32, tf32, 16 or 8 bits (AUTO, F32, TF32, 16, I8)",
                 (int)d->compute);
    }
    if (d->n_epi > 0 && d->epi == NULL) {
        RFT_FAIL(err, RFT_E_ARG, "desc.epi is NULL and desc.n_epi = %u", d->n_epi);
    }
    return RFT_OK;
}

/* x and y at m_max must have an extent in bytes below 2^63, with room for tiles that round it up. */
static rft_status check_extent(const rft__problem *p, rft_error *err) {
    int64_t rows = 0, row = 0, elements = 0, bytes = 0;
    if (rft__add_overflows(p->m_max, 256, &rows) || rft__add_overflows(rft__max(p->w.n, p->w.k), 256, &row) ||
        rft__mul_overflows(rows, row, &elements) || rft__mul_overflows(elements, rft__max(p->batch, 1), &elements) ||
        rft__mul_overflows(elements, 16, &bytes)) {
        RFT_FAIL(err, RFT_E_ARG, "desc.m_max = %lld, n = %lld, k = %lld, batch = %lld overflow 2^63 bytes", (long long)p->m_max,
                 (long long)p->w.n, (long long)p->w.k, (long long)p->batch);
    }
    return RFT_OK;
}

/* k of a scale in rft__problem. */
static int64_t x_group(const rft_linear_desc *d) {
    const int64_t row = rft__max(d->w.k, 1), none = d->flags & RFT_X_SCALED && !(d->flags & RFT_X_STATIC) ? row : 0;
    return d->x_group_k == 0 ? none : rft__min(d->x_group_k, row);
}

int64_t rft__problem_x_scales(const rft__problem *p) {
    return !rft__type_is_8bit(p->x) || p->x_group_k == 0 ? 0 : rft__ceil_div(p->w.k, p->x_group_k);
}

bool rft__problem_rounds_rows(const rft__problem *p) { return !rft__type_is_8bit(p->x) && p->x_group_k != 0; }

bool rft__problem_takes_i8(const rft__problem *p) {
    return p->compute == RFT_COMPUTE_I8 || (p->x == RFT_I8 && p->compute == RFT_COMPUTE_AUTO);
}

/* The epilogue of a y in 8 bits ends in how its scale is found. */
static rft_status check_y(const rft__problem *p, rft_error *err) {
    const rft_epi_kind kind = p->epi.quantize.kind;
    if (rft__type_is_8bit(p->y) && kind == 0) {
        RFT_FAIL(err, RFT_E_ARG, "desc.y = %s needs a scale: desc.epi must end in RFT_EPI_QUANTIZE or RFT_EPI_QUANTIZE_ROWS",
                 rft__type_name(p->y));
    }
    if (!rft__type_is_8bit(p->y) && kind != 0) {
        RFT_FAIL(err, RFT_E_ARG, "desc.y = %s has no scale, and desc.epi ends in %s; y must be i8 or e4m3", rft__type_name(p->y),
                 rft__epi_name(kind));
    }
    return RFT_OK;
}

rft_status rft__problem_make(rft__problem *p, const rft_linear_desc *d, rft_error *err) {
    RFT_TRY(check_rows(d, err));
    RFT_TRY(check_enums(d, err));
    RFT_TRY(check_features(d, err));
    *p = (rft__problem){.x = d->x,
                        .y = d->y,
                        .x_order = d->x_order,
                        .x_group_k = x_group(d),
                        .m_min = d->m_min,
                        .m_max = d->m_max,
                        .alpha = d->flags & RFT_ALPHA ? d->alpha : 1.0f,
                        .w_dynamic = (d->flags & RFT_W_DYNAMIC) != 0,
                        .batch_invariant = (d->flags & RFT_BATCH_INVARIANT) != 0,
                        .compute = d->compute};
    RFT_TRY(rft__matrix_make(&p->w, &d->w, "desc.w", err));
    p->w.view = p->w.view && !p->w_dynamic;
    if (p->w_dynamic && rft__matrix_is_low_bit(&p->w)) {
        RFT_FAIL(err, RFT_E_UNSUPPORTED, "desc.flags has RFT_W_DYNAMIC, and desc.w.elem = %s must be packed",
                 rft__format_name(p->w.elem));
    }
    if (p->compute == RFT_COMPUTE_I8 && !rft__matrix_is_low_bit(&p->w)) {
        RFT_FAIL(err, RFT_E_UNSUPPORTED, "desc.compute = RFT_COMPUTE_I8: desc.w.elem = %s has no codes to multiply in 8 bits",
                 rft__format_name(p->w.elem));
    }
    p->batch = d->batch != 0 ? d->batch : p->w.batch;
    if (p->w.batch != p->batch && p->w.batch != 1) {
        RFT_FAIL(err, RFT_E_ARG, "desc.batch = %lld differs from desc.w.batch = %lld, which may only be 1 or the same",
                 (long long)p->batch, (long long)p->w.batch);
    }
    RFT_TRY(check_extent(p, err));
    const float alpha = p->alpha == 0.0f ? 1.0f : p->alpha;
    RFT_TRY(rft__epi_make(&p->epi, d->epi, d->n_epi, p->w.n, p->w.glu != RFT__GLU_NONE, alpha, err));
    return check_y(p, err);
}

rft_status rft__weight_desc_nested(rft_weight_desc *desc, const char *name, rft_error *err) {
    RFT_TRY(rft__sized_check(desc, name, err));
    const size_t size = desc->struct_size;
    if (size > sizeof *desc) {
        RFT_FAIL(err, RFT_E_ARG, "%s.struct_size = %zu, and only %zu bytes lie there", name, size, sizeof *desc);
    }
    memset((unsigned char *)desc + size, 0, sizeof *desc - size);
    return RFT_OK;
}

rft_status rft__problem_read(rft__problem *p, const rft_linear_desc *desc, rft_error *err) {
    rft_linear_desc own;
    RFT_TRY(rft__sized_read(&own, sizeof own, desc, "desc", err));
    RFT_TRY(rft__weight_desc_nested(&own.w, "desc.w", err));
    return rft__problem_make(p, &own, err);
}
