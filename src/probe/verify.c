/* SPDX-License-Identifier: Apache-2.0
 *
 * verify.c - compares a result with an f64 reference over the stored operands, epilogue included, within the plan's bound.
 * Called through rooftile_analysis.h. It shares no arithmetic with the kernels. Above the cost that the caller allows, rows
 * and columns are sampled: the same rows for each batch, other columns for each block of rows. Large comparisons take several
 * threads, each a range of the columns; the result is the same for any number of them.
 */
#include "api/api.h"
#include "base/pool.h"
#include "base/sized.h"
#include "probe/verify_compare.h"
#include "probe/verify_host.h"
#include "probe/verify_product.h"
#include "probe/verify_sample.h"

#include <float.h>
#include <math.h>
#include <string.h>

#define DEFAULT_GFLOP 10.0
#define LEAST_SIDE    64  /* rows and columns of the smallest sample */
#define THREAD_FLOP   2e7 /* that are worth a thread */
enum { MAX_WORKERS = 64 };

typedef struct worker { /* of one thread */
    double *w_block;
    float *w_row; /* of codes, as they are made numbers */
    rft__sums *sums; /* [lanes][RFT__VERIFY_ROWS] of one block of y */
    rft_verify_result result;
} worker;

typedef struct verifier {
    const rft__problem *p;
    rft_linear_args *args; /* checked, strides filled in; of this program's memory once fetched */
    rft__stored x, w;
    rft__stored_w codes; /* of a low-bit W */
    bool low_bit, rounds_x; /* the kernel multiplies x rounded to 8 bits */
    int64_t group_x;        /* by one scale for so many k */
    bool minimum_apart;     /* both parts of such a weight count, even where they cancel */
    double c, eta; /* of a product: |error| <= c * sum|x||w| + eta */
    int lanes;     /* products that an output needs: 2 with a GLU op, else 1 */
    uint64_t seed;
    int64_t count_b, count_m, count_n; /* batches, rows, columns that are compared */
    int64_t *batches, *rows, *columns;
    uint8_t *marks;
    float *x_block;
    int64_t *next;  /* of a W with g_idx, to sort k */
    int32_t *order; /* that they are in, or NULL */
    bool not_finite[RFT__VERIFY_ROWS]; /* something of that row of x_block */
    int64_t b, n_block; /* the batch and the rows of the block that is compared now */
    const int64_t *block;
    rft__pool *pool;
    int n_workers;
    worker workers[MAX_WORKERS];
} verifier;

/* ---- operands ---- */

static rft__stored stored_x(const rft__problem *p, const rft_linear_args *args) {
    const bool by_k = p->x_order == RFT_K_CONTIGUOUS;
    return (rft__stored){.data = args->x,
                         .type = p->x,
                         .stride = by_k ? args->ldx : 1,
                         .k_stride = by_k ? 1 : args->ldx,
                         .batch_stride = args->x_batch_stride,
                         .scale = rft__type_is_8bit(p->x) ? args->x_scale : NULL,
                         .k_scale = p->x_group_k,
                         .scale_stride = rft__problem_x_scales(p),
                         .scale_batch = rft__problem_x_scales(p) * args->m};
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
    if (v->p->w.sorted && v->rounds_x) {
        v->next = carve(a, rft__ceil_div(k, v->p->w.group_k), sizeof *v->next);
        v->order = carve(a, k, sizeof *v->order);
    }
    for (int i = 0; i < v->n_workers; i++) {
        v->workers[i].w_block = carve(a, k, RFT__VERIFY_COLUMNS * sizeof(double));
        v->workers[i].w_row = carve(a, k, sizeof(float));
        v->workers[i].sums = carve(a, (int64_t)v->lanes * RFT__VERIFY_ROWS, sizeof(rft__sums));
    }
}

/* ---- one block of y ---- */

/* Gate or up column of the product behind an output column. */
static int64_t source_column(const rft__problem *p, int64_t n, int lane) {
    return p->epi.glu_at < 0 ? n : p->w.glu == RFT__GLU_INTERLEAVED ? 2 * n + lane : n + lane * p->epi.n_out;
}

static void sum_rows(const verifier *v, const worker *at, rft__sums *sums) {
    const int64_t k = v->p->w.k;
    for (int64_t i = 0; i < v->n_block; i++) {
        rft__verify_sums(v->x_block + i * k, at->w_block, k, &sums[i]);
    }
}

/* By the weights' magnitudes in w_block, minima apart. */
static void widen_bounds(const verifier *v, const worker *at, rft__sums *sums) {
    const int64_t k = v->p->w.k;
    for (int64_t i = 0; i < v->n_block; i++) {
        rft__sums wide;
        rft__verify_sums(v->x_block + i * k, at->w_block, k, &wide);
        memcpy(sums[i].absolute, wide.absolute, sizeof wide.absolute);
    }
}

static void compute_sums(verifier *v, worker *at, const int64_t *columns, int64_t n_columns) {
    for (int lane = 0; lane < v->lanes; lane++) {
        int64_t source[RFT__VERIFY_COLUMNS];
        for (int64_t j = 0; j < n_columns; j++) {
            source[j] = source_column(v->p, columns[j], lane);
        }
        rft__sums *const sums = &at->sums[lane * RFT__VERIFY_ROWS];
        if (!v->low_bit) {
            rft__verify_decode_w(&v->w, v->b, source, n_columns, v->p->w.k, at->w_block);
            sum_rows(v, at, sums);
            continue;
        }
        rft__verify_decode_codes(&v->p->w, &v->codes, v->b, source, n_columns, false, at->w_row, at->w_block);
        sum_rows(v, at, sums);
        if (v->minimum_apart) {
            rft__verify_decode_codes(&v->p->w, &v->codes, v->b, source, n_columns, true, at->w_row, at->w_block);
            widen_bounds(v, at, sums);
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

/* Whether a worst element is b's: the worse one, of equal ones the first in order of batch, row, column. */
static bool is_worse(const rft_verify_result *a, const rft_verify_result *b) {
    if (a->checked == 0 || b->worst > a->worst) {
        return true;
    }
    if (b->worst < a->worst) {
        return false;
    }
    return b->worst_b != a->worst_b   ? b->worst_b < a->worst_b
           : b->worst_m != a->worst_m ? b->worst_m < a->worst_m
                                      : b->worst_n < a->worst_n;
}

static void merge(rft_verify_result *r, const rft_verify_result *one) {
    const int64_t checked = r->checked + one->checked;
    double error = r->max_error, limit = r->limit;
    if (one->checked == 0) {
        return;
    }
    if (r->checked == 0 || one->max_error > error || (one->max_error >= error && one->limit > limit)) {
        error = one->max_error;
        limit = one->limit;
    }
    *r = is_worse(r, one) ? *one : *r;
    r->max_error = error;
    r->limit = limit;
    r->checked = checked;
}

static void record(rft_verify_result *r, rft__deviation d, const int64_t at[3], double y, double reference) {
    const rft_verify_result one = {.struct_size = r->struct_size,
                                   .checked = 1,
                                   .max_error = d.error,
                                   .limit = d.limit,
                                   .worst = d.ratio,
                                   .worst_b = at[0],
                                   .worst_m = at[1],
                                   .worst_n = at[2],
                                   .worst_y = y,
                                   .worst_ref = reference};
    merge(r, &one);
}

/* Columns first to last of the row of y that begins at `row` hold the largest code of their type. */
static bool reaches_top(const verifier *v, int64_t row, int64_t first, int64_t last) {
    bool reaches = false;
    for (int64_t n = first; n < last && !reaches; n++) {
        reaches = fabs(rft__stored_at(v->p->y, v->args->y, row + n)) >= rft__codes_top(v->p->y);
    }
    return reaches;
}

static bool may_be_nan(const verifier *v, int64_t row) {
    int64_t i = 0;
    while (v->block[i] != row) {
        i++;
    }
    return v->not_finite[i];
}

/* Of y: 1 where it is of floats. */
static double scale_at(const verifier *v, const int64_t at[3]) {
    const rft__epi_quantize *q = &v->p->epi.quantize;
    if (!rft__type_is_8bit(v->p->y)) {
        return 1.0;
    }
    const rft_operand *o = v->args->operand + q->operand;
    if (q->kind == RFT_EPI_QUANTIZE) {
        return (double)*(const float *)o->ptr;
    }
    const int64_t row = at[0] * o->batch_stride + at[1] * rft__epi_row_scales_ld(&v->p->epi, v->args->operand);
    return (double)((const float *)o->ptr)[row + at[2] / q->group];
}

/* y in 8 bits. look: at the whole group's codes too, once for some columns of it. */
static rft__deviation compare_codes(const verifier *v, const int64_t at[3], bool look, double code, double value, double error) {
    const rft__epi_quantize *q = &v->p->epi.quantize;
    rft__codes_scale s = {.scale = scale_at(v, at), .found = q->kind == RFT_EPI_QUANTIZE_ROWS, .reaches = true};
    if (s.found && look && s.scale > 0.0) {
        const int64_t group = at[2] / q->group, row = at[0] * v->args->y_batch_stride + at[1] * v->args->ldy;
        s.reaches = reaches_top(v, row, group * q->group, rft__min((group + 1) * q->group, v->p->epi.n_out));
    }
    s.may_be_nan = s.found && isnan(s.scale) && may_be_nan(v, at[1]);
    return rft__verify_compare_codes(v->p->y, &s, code, value, error);
}

static void compare_one(const verifier *v, rft_verify_result *result, const int64_t at[3], const rft__sums *const sums[2],
                        int64_t column) {
    const rft_linear_args *args = v->args;
    double value[2] = {0.0, 0.0}, error[2] = {0.0, 0.0};
    for (int lane = 0; lane < v->lanes && multiplies(v->p); lane++) {
        value[lane] = sums[lane]->dot[column];
        error[lane] = product_error(v, value[lane], sums[lane]->absolute[column]);
    }
    rft__epi_reference(&v->p->epi, args->operand, at[0], at[1], at[2], v->p->w.glu == RFT__GLU_INTERLEAVED, value, error);
    const double y = rft__stored_at(v->p->y, args->y, at[0] * args->y_batch_stride + at[1] * args->ldy + at[2]);
    record(result,
           rft__type_is_8bit(v->p->y) ? compare_codes(v, at, column == 0, y, value[0], error[0])
                                      : rft__verify_compare(v->p->y, y, value[0], error[0]),
           at, y * scale_at(v, at), value[0]);
}

static void compare_block(verifier *v, worker *w, const int64_t *columns, int64_t n_columns) {
    if (multiplies(v->p)) {
        compute_sums(v, w, columns, n_columns);
    }
    for (int64_t i = 0; i < v->n_block; i++) {
        const rft__sums *const sums[2] = {&w->sums[i], &w->sums[(v->lanes - 1) * RFT__VERIFY_ROWS + i]};
        for (int64_t j = 0; j < n_columns; j++) {
            compare_one(v, &w->result, (const int64_t[3]){v->b, v->block[i], columns[j]}, sums, j);
        }
    }
}

/* A worker's blocks of columns. */
static void compare_columns(void *arg, int i) {
    verifier *v = arg;
    const int64_t blocks = rft__ceil_div(v->count_n, RFT__VERIFY_COLUMNS), end = blocks * (i + 1) / v->n_workers;
    for (int64_t block = blocks * i / v->n_workers; block < end; block++) {
        const int64_t j = block * RFT__VERIFY_COLUMNS;
        compare_block(v, &v->workers[i], v->columns + j, rft__min(v->count_n - j, RFT__VERIFY_COLUMNS));
    }
}

static void find_not_finite(verifier *v) {
    for (int64_t i = 0; i < v->n_block; i++) {
        v->not_finite[i] = false;
        for (int64_t k = 0; k < v->p->w.k; k++) {
            v->not_finite[i] = v->not_finite[i] || !isfinite(v->x_block[i * v->p->w.k + k]);
        }
    }
}

static void compare_rows(verifier *v, int64_t b, const int64_t *rows, int64_t n_rows) {
    v->b = b;
    v->block = rows;
    v->n_block = n_rows;
    if (multiplies(v->p)) {
        rft__verify_decode_x(&v->x, b, rows, n_rows, v->p->w.k, v->x_block);
        if (v->order != NULL) {
            rft__stored_order(&v->p->w, &v->codes, v->p->w.batch == 1 ? 0 : b, v->next, v->order, NULL);
        }
        for (int64_t i = 0; v->rounds_x && i < n_rows; i++) {
            rft__verify_round_x(v->p->w.k, v->group_x, v->order, v->x_block + i * v->p->w.k);
        }
        find_not_finite(v);
    }
    rft__verify_sample(v->p->epi.n_out, v->count_n, v->seed + (uint64_t)(b * v->args->m + rows[0]) + 1, v->columns, v->marks);
    rft__pool_run(v->pool, v->n_workers, compare_columns, v);
}

static void compare_all(verifier *v) {
    for (int64_t b = 0; b < v->count_b; b++) {
        for (int64_t i = 0; i < v->count_m; i += RFT__VERIFY_ROWS) {
            compare_rows(v, v->batches[b], v->rows + i, rft__min(v->count_m - i, RFT__VERIFY_ROWS));
        }
    }
}

static rft_verify_result gather(const verifier *v) {
    rft_verify_result all = {0};
    for (int i = 0; i < v->n_workers; i++) {
        merge(&all, &v->workers[i].result);
    }
    return all;
}

/* ---- all of it ---- */

static int count_workers(const verifier *v) {
    const double flops = 2.0 * (double)v->p->w.k * v->lanes * (double)v->count_b * (double)v->count_m * (double)v->count_n;
    const int64_t blocks = rft__ceil_div(v->count_n, RFT__VERIFY_COLUMNS),
                  most = rft__min(rft__min(rft__pool_default_threads(), MAX_WORKERS), blocks);
    return (int)clamp_count(flops / THREAD_FLOP, 1, most);
}

static rft_status compare(verifier *v, rft_ctx *ctx, rft_error *err) {
    for (int64_t b = 0; v->order != NULL && multiplies(v->p) && b < v->p->w.batch; b++) {
        RFT_TRY(rft__stored_order(&v->p->w, &v->codes, b, v->next, v->order, err));
    }
    rft__verify_sample(v->p->batch, v->count_b, v->seed, v->batches, v->marks);
    rft__verify_sample(v->args->m, v->count_m, v->seed, v->rows, v->marks);
    rft__verify_host host = {.ctx = ctx, .batches = v->batches, .n_batches = v->count_b, .rows = v->rows, .n_rows = v->count_m};
    const int64_t w_row_stride = v->p->w.order == RFT_K_CONTIGUOUS ? v->w.stride : v->w.k_stride;
    const rft_status status = rft__verify_host_make(&host, v->p, v->args, &v->w.data, w_row_stride, v->w.batch_stride, err);
    if (status == RFT_OK) {
        v->x = stored_x(v->p, v->args);
        compare_all(v);
    }
    rft__verify_host_free(&host);
    return status;
}

static rft_status run(verifier *v, rft_ctx *ctx, rft_error *err) {
    const rft__allocator *const allocator = &ctx->allocator;
    arena need = {0};
    v->n_workers = count_workers(v);
    place_buffers(v, &need);
    arena memory = {.base = need.overflow ? NULL : rft__alloc(allocator, need.used, 64)};
    if (memory.base == NULL) {
        RFT_FAIL(err, RFT_E_NOMEM, "no memory for the reference (%zu bytes)", need.used);
    }
    place_buffers(v, &memory);
    rft_status status = rft__pool_create(allocator, v->n_workers, NULL, NULL, &v->pool, err);
    if (status == RFT_OK) {
        status = compare(v, ctx, err);
        rft__pool_free(v->pool);
    }
    rft__release(allocator, memory.base, need.used);
    return status;
}

rft_status rft_verify(const rft_plan *plan, const rft_linear_args *args, const void *w, double max_gflop, uint64_t seed,
                      rft_verify_result *result, rft_error *err) {
    rft_weight_src src = rft_weight_src_init();
    src.q = w;
    return rft_verify_source(plan, args, &src, max_gflop, seed, result, err);
}

/* Scales that the codes need to be numbers. */
static rft_status check_scales(const rft__problem *p, const rft_weight_src *src, rft_error *err) {
    const bool lacks_scale = p->w.scale != 0 && src->scale == NULL, lacks_zero = p->w.zero != 0 && src->zero == NULL;
    if (!multiplies(p)) {
        return RFT_OK;
    }
    if (lacks_scale || lacks_zero) {
        RFT_FAIL(err, RFT_E_ARG, "src.%s is NULL, and desc.w.%s is set; rft_verify_source takes both",
                 lacks_scale ? "scale" : "zero", lacks_scale ? "scale" : "zero");
    }
    const bool lacks_global = p->w.global != RFT__GLOBAL_NONE && src->global_scale == NULL;
    if (lacks_global || (p->w.sorted && src->g_idx == NULL)) {
        RFT_FAIL(err, RFT_E_ARG, "src.%s is NULL, and desc.w.flags tells of it; rft_verify_source takes it",
                 lacks_global ? "global_scale" : "g_idx");
    }
    const rft__stored_w from = {.g_idx = src->g_idx};
    return rft__stored_check_groups(&p->w, &from, err);
}

rft_status rft_verify_source(const rft_plan *plan, const rft_linear_args *args, const rft_weight_src *src, double max_gflop,
                             uint64_t seed, rft_verify_result *result, rft_error *err) {
    rft_weight_src own;
    RFT_TRY(rft__sized_read(&own, sizeof own, src, "src", err));
    const void *const w = own.q;
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
                  .w = stored_w(p, &call.args, w != NULL || !p->w_dynamic ? w : call.args.w),
                  .codes = {w, own.scale, own.zero, own.global_scale, own.g_idx},
                  .low_bit = rft__matrix_is_low_bit(&p->w),
                  .rounds_x = info.error_x > 0.0,
                  .group_x = info.group_x,
                  .minimum_apart = info.minimum_apart != 0,
                  .c = info.error_c,
                  .eta = info.error_eta,
                  .lanes = p->epi.glu_at >= 0 ? 2 : 1,
                  .seed = seed};
    if (!call.nothing) {
        RFT_TRY(check_scales(p, &own, err));
        RFT_TRY(check_operands(&v, err));
        choose_counts(&v, max_gflop > 0.0 ? max_gflop : DEFAULT_GFLOP);
        RFT_TRY(run(&v, plan->ctx, err));
    }
    const rft_verify_result all = gather(&v);
    rft__sized_write(result, &all, sizeof all);
    return RFT_OK;
}
