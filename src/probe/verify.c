/* SPDX-License-Identifier: Apache-2.0
 *
 * verify.c - compares a result with an f64 reference over the stored operands, epilogue included, within the plan's bound.
 * Called through rooftile_analysis.h. It shares no arithmetic with the kernels. Above the cost that the caller allows, rows
 * and columns are sampled: the same rows for each batch, other columns for each block of rows.
 */
#include "api/api.h"
#include "base/sized.h"
#include "probe/verify_compare.h"
#include "probe/verify_product.h"
#include "probe/verify_sample.h"

#include <float.h>
#include <math.h>

#define DEFAULT_GFLOP 10.0
#define LEAST_SIDE    64 /* rows and columns of the smallest sample */

typedef struct verifier {
    const rft__problem *p;
    const rft_linear_args *args; /* checked, strides filled in */
    rft__stored x, w;
    double c, eta; /* of a product: |error| <= c * sum|x||w| + eta */
    int lanes;     /* products that an output needs: 2 with a GLU op, else 1 */
    uint64_t seed;
    int64_t count_b, count_m, count_n; /* batches, rows, columns that are compared */
    int64_t *batches, *rows, *columns;
    uint8_t *marks;
    float *x_block;
    double *w_block;
    rft__sums *sums; /* [lanes][RFT__VERIFY_ROWS] of one block of y */
    rft_verify_result result;
} verifier;

/* ---- operands ---- */

static rft__stored stored_x(const rft__problem *p, const rft_linear_args *args) {
    const bool by_k = p->x_order == RFT_K_CONTIGUOUS;
    return (rft__stored){.data = args->x,
                         .type = p->x,
                         .stride = by_k ? args->ldx : 1,
                         .k_stride = by_k ? 1 : args->ldx,
                         .batch_stride = args->x_batch_stride};
}

/* The descriptor says how w lies; where W is given at each run, that run's args do. */
static rft__stored stored_w(const rft__problem *p, const rft_linear_args *args, const void *data) {
    const bool by_k = p->w.order == RFT_K_CONTIGUOUS;
    rft__stored w = {
        .data = data, .type = p->w.elem, .stride = p->w.n_stride, .k_stride = p->w.k_stride, .batch_stride = p->w.batch_stride};
    if (p->w_dynamic) {
        *(by_k ? &w.stride : &w.k_stride) = args->ldw;
        w.batch_stride = args->w_batch_stride;
    }
    if (p->w.batch < p->batch) {
        w.batch_stride = 0;
    }
    return w;
}

static bool multiplies(const rft__problem *p) { return p->alpha != 0.0f && p->w.k > 0; }

static rft_status check_operands(const verifier *v, rft_error *err) {
    if (multiplies(v->p) && v->w.data == NULL) {
        RFT_FAIL(err, RFT_E_ARG, "w is NULL; it must be the W of the descriptor, as it was before it was packed");
    }
    for (uint32_t i = 0; i < v->p->epi.n_operand; i++) {
        if (v->args->operand[i].ptr == v->args->y) {
            RFT_FAIL(err, RFT_E_ARG,
                     "args.operand[%u] is y, so the run has overwritten it; compare with a copy from before the run", i);
        }
    }
    return RFT_OK;
}

/* ---- how much is compared ---- */

static int64_t clamp_count(double count, int64_t least, int64_t total) {
    return count >= (double)total ? total : rft__max(rft__min(least, total), (int64_t)count);
}

/* Rows are given up first, then columns, then batches. */
static void choose_counts(verifier *v, double max_gflop) {
    const rft__problem *p = v->p;
    const double batch = (double)p->batch, flops = 2.0 * (double)rft__max(p->w.k, 1) * v->lanes,
                 elements = max_gflop * 1e9 / flops;
    v->count_m = clamp_count(elements / ((double)p->epi.n_out * batch), LEAST_SIDE, v->args->m);
    v->count_n = clamp_count(elements / ((double)v->count_m * batch), LEAST_SIDE, p->epi.n_out);
    v->count_b = clamp_count(elements / ((double)v->count_m * (double)v->count_n), 2, p->batch);
}

/* Where a verifier's buffers lie in one piece of memory; the same walk measures it and hands it out. */
typedef struct arena {
    char *base; /* NULL: only measure */
    size_t used;
    bool overflow;
} arena;

static void *carve(arena *a, int64_t count, size_t size) {
    size_t bytes = 0;
    void *const p = a->base != NULL ? a->base + a->used : NULL;
    a->overflow = a->overflow || rft__mul_size((size_t)count, size, &bytes) || rft__add_size(bytes, 63, &bytes) ||
                  rft__add_size(a->used, bytes / 64 * 64, &a->used);
    return p;
}

static void place_buffers(verifier *v, arena *a) {
    const int64_t k = v->p->w.k;
    v->batches = carve(a, v->count_b, sizeof *v->batches);
    v->rows = carve(a, v->count_m, sizeof *v->rows);
    v->columns = carve(a, v->count_n, sizeof *v->columns);
    v->marks = carve(a, rft__max(v->p->batch, rft__max(v->args->m, v->p->epi.n_out)), 1);
    v->x_block = carve(a, k, RFT__VERIFY_ROWS * sizeof *v->x_block);
    v->w_block = carve(a, k, RFT__VERIFY_COLUMNS * sizeof *v->w_block);
    v->sums = carve(a, (int64_t)v->lanes * RFT__VERIFY_ROWS, sizeof *v->sums);
}

/* ---- one block of y ---- */

/* Gate or up column of the product behind an output column. */
static int64_t source_column(const rft__problem *p, int64_t n, int lane) {
    return p->epi.glu_at < 0 ? n : p->w.glu == RFT__GLU_INTERLEAVED ? 2 * n + lane : n + lane * p->epi.n_out;
}

static void compute_sums(verifier *v, int64_t b, int64_t n_rows, const int64_t *columns, int64_t n_columns) {
    const int64_t k = v->p->w.k;
    for (int lane = 0; lane < v->lanes; lane++) {
        int64_t source[RFT__VERIFY_COLUMNS];
        for (int64_t j = 0; j < n_columns; j++) {
            source[j] = source_column(v->p, columns[j], lane);
        }
        rft__verify_decode_w(&v->w, b, source, n_columns, k, v->w_block);
        for (int64_t i = 0; i < n_rows; i++) {
            rft__verify_sums(v->x_block + i * k, v->w_block, k, &v->sums[lane * RFT__VERIFY_ROWS + i]);
        }
    }
}

/* The bound of one product. Non-finite inputs make the sum NaN or Inf exactly, in any arithmetic. Where finite ones may
 * overflow f32 on the way, whatever their sum, nothing can be said. */
static double product_error(const verifier *v, double dot, double absolute) {
    if (!isfinite(dot)) {
        return 0.0;
    }
    const double reference_error = 0x1p-53 * (double)v->p->w.k;
    return absolute < (double)FLT_MAX ? (v->c + reference_error) * absolute + v->eta : (double)INFINITY;
}

static void record(rft_verify_result *r, rft__deviation d, const int64_t at[3], double y, double reference) {
    if (r->checked == 0 || d.error > r->max_error) {
        r->max_error = d.error;
        r->limit = d.limit;
    }
    if (r->checked == 0 || d.ratio > r->worst) {
        r->worst = d.ratio;
        r->worst_b = at[0];
        r->worst_m = at[1];
        r->worst_n = at[2];
        r->worst_y = y;
        r->worst_ref = reference;
    }
    r->checked++;
}

static void compare_one(verifier *v, const int64_t at[3], const rft__sums *const sums[2], int64_t column) {
    const rft_linear_args *args = v->args;
    double value[2] = {0.0, 0.0}, error[2] = {0.0, 0.0};
    for (int lane = 0; lane < v->lanes && multiplies(v->p); lane++) {
        value[lane] = sums[lane]->dot[column];
        error[lane] = product_error(v, value[lane], sums[lane]->absolute[column]);
    }
    rft__epi_reference(&v->p->epi, args->operand, at[0], at[1], at[2], v->p->w.glu == RFT__GLU_INTERLEAVED, value, error);
    const double y = rft__stored_at(v->p->y, args->y, at[0] * args->y_batch_stride + at[1] * args->ldy + at[2]);
    record(&v->result, rft__verify_compare(v->p->y, y, value[0], error[0]), at, y, value[0]);
}

static void compare_block(verifier *v, int64_t b, const int64_t *rows, int64_t n_rows, const int64_t *columns,
                          int64_t n_columns) {
    if (multiplies(v->p)) {
        compute_sums(v, b, n_rows, columns, n_columns);
    }
    for (int64_t i = 0; i < n_rows; i++) {
        const rft__sums *const sums[2] = {&v->sums[i], &v->sums[(v->lanes - 1) * RFT__VERIFY_ROWS + i]};
        for (int64_t j = 0; j < n_columns; j++) {
            compare_one(v, (const int64_t[3]){b, rows[i], columns[j]}, sums, j);
        }
    }
}

static void compare_rows(verifier *v, int64_t b, const int64_t *rows, int64_t n_rows) {
    if (multiplies(v->p)) {
        rft__verify_decode_x(&v->x, b, rows, n_rows, v->p->w.k, v->x_block);
    }
    rft__verify_sample(v->p->epi.n_out, v->count_n, v->seed + (uint64_t)(b * v->args->m + rows[0]) + 1, v->columns, v->marks);
    for (int64_t j = 0; j < v->count_n; j += RFT__VERIFY_COLUMNS) {
        compare_block(v, b, rows, n_rows, v->columns + j, rft__min(v->count_n - j, RFT__VERIFY_COLUMNS));
    }
}

static void compare_all(verifier *v) {
    rft__verify_sample(v->p->batch, v->count_b, v->seed, v->batches, v->marks);
    rft__verify_sample(v->args->m, v->count_m, v->seed, v->rows, v->marks);
    for (int64_t b = 0; b < v->count_b; b++) {
        for (int64_t i = 0; i < v->count_m; i += RFT__VERIFY_ROWS) {
            compare_rows(v, v->batches[b], v->rows + i, rft__min(v->count_m - i, RFT__VERIFY_ROWS));
        }
    }
}

static rft_status run(verifier *v, const rft__allocator *allocator, rft_error *err) {
    arena need = {0};
    place_buffers(v, &need);
    arena memory = {.base = need.overflow ? NULL : rft__alloc(allocator, need.used, 64)};
    if (memory.base == NULL) {
        RFT_FAIL(err, RFT_E_NOMEM, "no memory for the reference (%zu bytes)", need.used);
    }
    place_buffers(v, &memory);
    compare_all(v);
    rft__release(allocator, memory.base, need.used);
    return RFT_OK;
}

rft_status rft_verify(const rft_plan *plan, const rft_linear_args *args, const void *w, double max_gflop, uint64_t seed,
                      rft_verify_result *result, rft_error *err) {
    rft__call call;
    RFT_TRY(rft__call_make(&call, plan, args, err));
    RFT_TRY(rft__sized_check(result, "result", err));
    if (!(max_gflop >= 0.0)) {
        RFT_FAIL(err, RFT_E_ARG, "max_gflop = %g: 0 (for %g) or a positive number is needed", max_gflop, DEFAULT_GFLOP);
    }
    const rft__problem *const p = &plan->problem;
    rft_plan_info info;
    rft__plan_info(plan, call.args.m, &info);
    verifier v = {.p = p,
                  .args = &call.args,
                  .x = stored_x(p, &call.args),
                  .w = stored_w(p, &call.args, w != NULL || !p->w_dynamic ? w : call.args.w),
                  .c = info.error_c,
                  .eta = info.error_eta,
                  .lanes = p->epi.glu_at >= 0 ? 2 : 1,
                  .seed = seed};
    if (!call.nothing) {
        RFT_TRY(check_operands(&v, err));
        choose_counts(&v, max_gflop > 0.0 ? max_gflop : DEFAULT_GFLOP);
        RFT_TRY(run(&v, &plan->ctx->allocator, err));
    }
    rft__sized_write(result, &v.result, sizeof v.result);
    return RFT_OK;
}
