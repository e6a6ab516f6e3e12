/* SPDX-License-Identifier: Apache-2.0
 *
 * test_linear.c - the ways to hand over X, W and Y give the same product: orders, strides, batches, views, W at run time.
 * Kernels and shapes are tested row by row in tests/check; here it is about what each argument means.
 */
#include "api_test.h"

#include <math.h>

enum { M = 5, N = 35, K = 29, BATCH = 3, PAD = 6 };

static rft_ctx *ctx;
static float x[BATCH * M * K], w[BATCH * N * K], want[BATCH * M * N];

static int make_all(void **state) {
    (void)state;
    const rft_ctx_options o = rft_test_options(NULL);
    rft_test_fill(x, BATCH * M * K, 1);
    rft_test_fill(w, BATCH * N * K, 2);
    return rft_ctx_create(NULL, &o, &ctx, NULL) == RFT_OK ? 0 : -1;
}

static int free_all(void **state) {
    (void)state;
    rft_ctx_free(ctx);
    return 0;
}

/* How one operand lies in memory: rows x columns, batch of them, all with gaps of NaN. */
typedef struct matrix {
    float *data;
    rft_order order;
    int64_t ld, batch_stride;
} matrix;

static matrix lay_out(const float *dense, int64_t rows, int64_t columns, int64_t batch, rft_order order) {
    const int64_t row = order == RFT_K_CONTIGUOUS ? columns : rows, count = order == RFT_K_CONTIGUOUS ? rows : columns;
    matrix m = {.order = order, .ld = row + PAD};
    m.batch_stride = m.ld * count + PAD;
    const size_t size = (size_t)(m.batch_stride * batch + PAD);
    m.data = malloc(size * sizeof(float));
    for (size_t i = 0; i < size; i++) {
        m.data[i] = NAN; /* whoever reads a gap spoils the result */
    }
    for (int64_t b = 0; b < batch; b++) {
        for (int64_t r = 0; r < rows; r++) {
            for (int64_t c = 0; c < columns; c++) {
                const int64_t at = order == RFT_K_CONTIGUOUS ? r * m.ld + c : c * m.ld + r;
                m.data[b * m.batch_stride + at] = dense ? dense[(b * rows + r) * columns + c] : NAN;
            }
        }
    }
    return m;
}

typedef enum way { PACKED, VIEW, DYNAMIC } way;

typedef struct variant {
    way w;
    rft_order x_order, w_order;
    int64_t batch, w_batch;
} variant;

static void describe(const variant *v, const matrix *mw, rft_linear_desc *d) {
    *d = rft_test_desc();
    d->x_order = v->x_order;
    d->batch = v->batch;
    d->w.n = N;
    d->w.k = K;
    d->w.batch = v->w_batch;
    d->w.order = v->w_order;
    if (v->w != DYNAMIC) {
        d->w.ld = mw->ld;
        d->w.batch_stride = mw->batch_stride;
    }
    d->w.flags = v->w == VIEW ? RFT_WEIGHT_VIEW : 0;
    d->flags = v->w == DYNAMIC ? RFT_W_DYNAMIC : 0;
}

static void run(const rft_linear_desc *d, rft_linear_args *a) {
    rft_plan *plan = NULL;
    OK(rft_plan_create(ctx, d, &plan, &test_err));
    rft_plan_info info = rft_plan_info_init();
    assert_int_equal(rft_plan_get_info(plan, a->m, &info), RFT_OK);
    a->workspace = rft_test_storage(info.workspace);
    a->workspace_bytes = info.workspace;
    memset(a->workspace, 0xff, info.workspace);
    OK(rft_linear_run(plan, a, &test_err));
    free(a->workspace);
    rft_plan_free(plan);
}

static void assert_result(const matrix *y, int64_t batch) {
    for (int64_t b = 0; b < batch; b++) {
        for (int64_t m = 0; m < M; m++) {
            const float *const row = y->data + b * y->batch_stride + m * y->ld;
            rft_test_equal(row, want + (b * M + m) * N, N);
            for (int i = 0; i < PAD; i++) {
                assert_true(isnan(row[N + i])); /* nothing beyond the row is written */
            }
        }
    }
}

static void check(const variant *v) {
    matrix mx = lay_out(x, M, K, v->batch, v->x_order), mw = lay_out(w, N, K, v->w_batch, v->w_order);
    matrix my = lay_out(NULL, M, N, v->batch, RFT_K_CONTIGUOUS);
    for (int64_t b = 0; b < v->batch; b++) {
        rft_test_product(x + b * M * K, w + (v->w_batch == 1 ? 0 : b) * N * K, want + b * M * N, M, N, K);
    }
    rft_linear_desc d;
    describe(v, &mw, &d);
    rft_linear_args a = rft_linear_args_init();
    a.m = M;
    a.x = mx.data;
    a.ldx = mx.ld;
    a.x_batch_stride = mx.batch_stride;
    a.y = my.data;
    a.ldy = my.ld;
    a.y_batch_stride = my.batch_stride;
    rft_test_packed packed = {0};
    if (v->w == DYNAMIC) {
        a.w = mw.data;
        a.ldw = mw.ld;
        a.w_batch_stride = mw.batch_stride;
    } else {
        packed = rft_test_pack(ctx, &d.w, mw.data);
        a.weight = packed.weight;
    }
    run(&d, &a);
    assert_result(&my, v->batch);
    rft_test_unpack(&packed);
    free(mx.data);
    free(mw.data);
    free(my.data);
}

static void test_every_way(void **state) {
    (void)state;
    for (int i = 0; i < 3 * 2 * 2 * 3; i++) {
        const int batches = i / 12;
        const variant v = {.w = (way)(i % 3),
                           .x_order = (rft_order)(i / 3 % 2),
                           .w_order = (rft_order)(i / 6 % 2),
                           .batch = batches == 0 ? 1 : BATCH,
                           .w_batch = batches == 1 ? BATCH : 1};
        check(&v);
    }
}

static void test_defaults_are_dense(void **state) {
    (void)state;
    static float y[BATCH * M * N];
    rft_linear_desc d = rft_test_desc();
    d.w.n = N;
    d.w.k = K;
    d.w.batch = BATCH;
    for (int b = 0; b < BATCH; b++) {
        rft_test_product(x + b * M * K, w + b * N * K, want + b * M * N, M, N, K);
    }
    rft_test_packed packed = rft_test_pack(ctx, &d.w, w);
    rft_linear_args a = rft_linear_args_init();
    a.m = M;
    a.x = x;
    a.y = y;
    a.weight = packed.weight;
    run(&d, &a);
    rft_test_equal(y, want, BATCH * M * N);
    rft_test_unpack(&packed);
}

/* Heads side by side: y[m][b][n]. */
static void test_batches_of_y_side_by_side(void **state) {
    (void)state;
    static float y[M * BATCH * N];
    rft_linear_desc d = rft_test_desc();
    d.w.n = N;
    d.w.k = K;
    d.batch = BATCH;
    rft_test_packed packed = rft_test_pack(ctx, &d.w, w);
    rft_linear_args a = rft_linear_args_init();
    a.m = M;
    a.x = x;
    a.y = y;
    a.ldy = BATCH * N;
    a.y_batch_stride = N;
    a.weight = packed.weight;
    run(&d, &a);
    for (int b = 0; b < BATCH; b++) {
        rft_test_product(x + b * M * K, w, want, M, N, K);
        for (int m = 0; m < M; m++) {
            rft_test_equal(y + (m * BATCH + b) * N, want + m * N, N);
        }
    }
    rft_plan *plan = NULL;
    OK(rft_plan_create(ctx, &d, &plan, &test_err));
    a.y_batch_stride = N - 1;
    REFUSED(RFT_E_ARG, "args.y_batch_stride = 34", rft_linear_run(plan, &a, &test_err));
    rft_plan_free(plan);
    rft_test_unpack(&packed);
}

static void test_alpha_and_epilogue(void **state) {
    (void)state;
    static float y[M * N], residual[M * N], bias[N];
    rft_test_fill(residual, M * N, 4);
    rft_test_fill(bias, N, 5);
    const rft_epi_op ops[] = {{.kind = RFT_EPI_BIAS, .type = RFT_F32, .operand = 0},
                              {.kind = RFT_EPI_RELU},
                              {.kind = RFT_EPI_ADD, .type = RFT_F32, .operand = 1, .beta = -2}};
    rft_linear_desc d = rft_test_desc();
    d.w.n = N;
    d.w.k = K;
    d.epi = ops;
    d.n_epi = 3;
    d.flags = RFT_ALPHA;
    d.alpha = 0.5f;
    rft_test_packed packed = rft_test_pack(ctx, &d.w, w);
    const rft_operand operand[] = {{.ptr = bias}, {.ptr = residual}};
    rft_linear_args a = rft_linear_args_init();
    a.m = M;
    a.x = x;
    a.y = y;
    a.weight = packed.weight;
    a.operand = operand;
    a.n_operand = 2;
    run(&d, &a);
    rft_test_product(x, w, want, M, N, K);
    for (int i = 0; i < M * N; i++) {
        const float v = 0.5f * want[i] + bias[i % N];
        want[i] = (v < 0 ? 0 : v) - 2 * residual[i];
    }
    rft_test_equal(y, want, M * N);
    rft_test_unpack(&packed);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_way),
        cmocka_unit_test(test_defaults_are_dense),
        cmocka_unit_test(test_batches_of_y_side_by_side),
        cmocka_unit_test(test_alpha_and_epilogue),
    };
    return cmocka_run_group_tests(tests, make_all, free_all);
}
