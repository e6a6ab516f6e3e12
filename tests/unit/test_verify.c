/* SPDX-License-Identifier: Apache-2.0
 *
 * test_verify.c - the verifier itself: right results pass, one wrong element or one just outside the bound does not, for
 * every order, type, stride, batch, GLU pairing and alpha; overflow and NaN; samples that hold all edges.
 *
 * The plans here have no kernels: a backend that only states error constants stands in, and y is computed in long double.
 * Every result is compared a second time as one of a device, whose pointers fault wherever one is followed from here.
 */
#define _POSIX_C_SOURCE 200809L
#include "api/api.h"
#include "probe/verify_compare.h"
#include "probe/verify_sample.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define C   (40 * 0x1p-24)
#define ETA 0x1p-130

static void state_errors(const rft__choice *choice, int64_t m, rft_plan_info *info) {
    (void)choice;
    (void)m;
    info->error_c = C;
    info->error_eta = ETA;
}

/* A device's address: no program can touch it. */
#define FAR ((uintptr_t)1 << 62)

static void *far(const void *p) { return p != NULL ? (void *)((uintptr_t)p + FAR) : NULL; }

static rft_status copy_far(rft__device *device, void *dst, const void *src, size_t bytes, rft__direction direction,
                           rft_error *err) {
    (void)device;
    (void)err;
    assert_int_equal(direction, RFT__TO_HOST);
    assert_true((uintptr_t)src >= FAR);
    memcpy(dst, (const void *)((uintptr_t)src - FAR), bytes);
    return RFT_OK;
}

static const rft__backend host_backend = {.name = "cpu", .choice_info = state_errors};
static const rft__backend device_backend = {.name = "device", .choice_info = state_errors, .memory_copy = copy_far};
static rft_ctx ctx = {.backend = &host_backend}, device_ctx = {.backend = &device_backend};

/* ---- a product of our own ---- */

typedef struct product {
    rft_linear_desc desc;
    rft_plan plan;
    rft_linear_args args;
    float *x, *w, *y; /* f32, bf16 or f16 in reality */
} product;

static double get(rft_type type, const void *data, int64_t i) {
    float value;
    if (type == RFT_F32) {
        memcpy(&value, (const float *)data + i, sizeof value);
        return (double)value;
    }
    const unsigned half = ((const uint16_t *)data)[i];
    if (type == RFT_BF16) {
        const uint32_t bits = half << 16;
        memcpy(&value, &bits, sizeof bits);
        return (double)value;
    }
    const int exponent = (int)(half >> 10 & 31), fraction = (int)(half & 1023);
    return ldexp(exponent ? 1024 + fraction : fraction, (exponent ? exponent : 1) - 25) * (half & 0x8000u ? -1 : 1);
}

/* Nearest value of a narrow type, for results well inside its range. */
static void put(rft_type type, void *data, int64_t i, double value) {
    if (type == RFT_F32) {
        ((float *)data)[i] = (float)value;
        return;
    }
    const int digits = type == RFT_BF16 ? 8 : 11, least = type == RFT_BF16 ? -126 : -14, bias = type == RFT_BF16 ? 127 : 15;
    const int exponent = value == 0.0 || ilogb(value) < least ? least : ilogb(value);
    const uint32_t significand = (uint32_t)nearbyint(ldexp(fabs(value), digits - 1 - exponent)); /* with the hidden one */
    const uint32_t code = significand + ((uint32_t)(exponent + bias - 1) << (digits - 1));
    ((uint16_t *)data)[i] = (uint16_t)(code | (signbit(value) ? 0x8000u : 0u));
}

static rft_linear_desc layer(rft_type x, rft_type w, rft_type y, int64_t m, int64_t n, int64_t k) {
    rft_linear_desc d = rft_linear_desc_init();
    d.x = x;
    d.y = y;
    d.w.elem = w;
    d.w.n = n;
    d.w.k = k;
    d.m_max = m;
    d.flags = RFT_W_DYNAMIC;
    return d;
}

static int64_t extent(int64_t rows, int64_t ld, int64_t batch_stride, int64_t batch) {
    return rows * ld + batch_stride * (batch - 1) + 1;
}

static void open_product(product *t, const rft_linear_desc *d, const rft_linear_args *strides) {
    rft_error err = {0};
    memset(t, 0, sizeof *t);
    t->desc = *d;
    t->plan.ctx = &ctx;
    if (rft__problem_make(&t->plan.problem, d, &err) != RFT_OK) {
        fail_msg("%s", err.message);
    }
    const rft__problem *p = &t->plan.problem;
    t->args = strides != NULL ? *strides : rft_linear_args_init();
    rft_linear_args *a = &t->args;
    a->m = d->m_max;
    const int64_t x_rows = d->x_order == RFT_K_CONTIGUOUS ? a->m : d->w.k, x_row = d->x_order == RFT_K_CONTIGUOUS ? d->w.k : a->m;
    const int64_t w_rows = d->w.order == RFT_K_CONTIGUOUS ? d->w.n : d->w.k,
                  w_row = d->w.order == RFT_K_CONTIGUOUS ? d->w.k : d->w.n;
    a->ldx = a->ldx ? a->ldx : x_row;
    a->ldw = a->ldw ? a->ldw : w_row;
    a->ldy = a->ldy ? a->ldy : p->epi.n_out;
    a->x_batch_stride = a->x_batch_stride ? a->x_batch_stride : x_rows * a->ldx;
    a->w_batch_stride = a->w_batch_stride ? a->w_batch_stride : w_rows * a->ldw;
    a->y_batch_stride = a->y_batch_stride ? a->y_batch_stride : a->m * a->ldy;
    const int64_t x_count = extent(x_rows, a->ldx, a->x_batch_stride, p->batch),
                  w_count = extent(w_rows, a->ldw, a->w_batch_stride, p->batch);
    t->x = malloc((size_t)x_count * 4);
    t->w = malloc((size_t)w_count * 4);
    t->y = calloc((size_t)extent(a->m, a->ldy, a->y_batch_stride, p->batch), 4);
    assert_true(t->x != NULL && t->w != NULL && t->y != NULL);
    assert_int_equal(rft_fill_random(d->x, t->x, x_count, 1, NULL), RFT_OK);
    assert_int_equal(rft_fill_random(d->w.elem, t->w, w_count, 2, NULL), RFT_OK);
    a->x = t->x;
    a->w = t->w;
    a->y = t->y;
}

static void close_product(product *t) {
    free(t->x);
    free(t->w);
    free(t->y);
}

/* Sum of x * w and of |x||w| at one column of the product. */
static void sums_at(const product *t, int64_t b, int64_t m, int64_t n, double *dot, double *absolute) {
    const rft__problem *p = &t->plan.problem;
    const rft_linear_args *a = &t->args;
    long double sum = 0, magnitude = 0;
    for (int64_t k = 0; k < p->w.k && p->alpha != 0.0f; k++) {
        const int64_t xi = b * a->x_batch_stride + (p->x_order == RFT_K_CONTIGUOUS ? m * a->ldx + k : k * a->ldx + m);
        const int64_t wb = p->w.batch == 1 ? 0 : b * a->w_batch_stride;
        const int64_t wi = wb + (p->w.order == RFT_K_CONTIGUOUS ? n * a->ldw + k : k * a->ldw + n);
        const double one = get(p->x, t->x, xi) * get(p->w.elem, t->w, wi);
        sum += (long double)one;
        magnitude += (long double)fabs(one);
    }
    *dot = (double)sum;
    *absolute = (double)magnitude;
}

static double product_at(const product *t, int64_t b, int64_t m, int64_t n) {
    const double alpha = (double)t->plan.problem.alpha;
    double dot, absolute;
    sums_at(t, b, m, n, &dot, &absolute);
    return (alpha == 0.0 ? 1.0 : alpha) * dot;
}

static int64_t y_index(const product *t, int64_t b, int64_t m, int64_t n) {
    return b * t->args.y_batch_stride + m * t->args.ldy + n;
}

static void fill_y(product *t, double (*value)(const product *, int64_t, int64_t, int64_t)) {
    const rft__problem *p = &t->plan.problem;
    for (int64_t b = 0; b < p->batch; b++) {
        for (int64_t m = 0; m < t->args.m; m++) {
            for (int64_t n = 0; n < p->epi.n_out; n++) {
                put(p->y, t->y, y_index(t, b, m, n), value(t, b, m, n));
            }
        }
    }
}

static void verify_far(const product *t, double max_gflop, rft_verify_result *result) {
    rft_error err = {0};
    rft_plan plan = t->plan;
    rft_linear_args args = t->args;
    rft_operand operand[RFT_MAX_OPERANDS] = {{0}};
    plan.ctx = &device_ctx;
    args.x = far(args.x);
    args.w = far(args.w);
    args.y = far(args.y);
    args.operand = operand;
    for (uint32_t i = 0; i < args.n_operand; i++) {
        operand[i] = t->args.operand[i];
        operand[i].ptr = far(operand[i].ptr);
    }
    if (rft_verify(&plan, &args, NULL, max_gflop, 5, result, &err) != RFT_OK) {
        fail_msg("%s", err.message);
    }
}

static void assert_same(const rft_verify_result *a, const rft_verify_result *b) {
    assert_int_equal(a->checked, b->checked);
    assert_memory_equal(&a->max_error, &b->max_error, sizeof a->max_error);
    assert_memory_equal(&a->worst, &b->worst, sizeof a->worst);
    assert_int_equal(a->worst_b, b->worst_b);
    assert_int_equal(a->worst_m, b->worst_m);
    assert_int_equal(a->worst_n, b->worst_n);
    assert_memory_equal(&a->worst_y, &b->worst_y, sizeof a->worst_y);
}

static rft_verify_result verify(const product *t, double max_gflop) {
    rft_verify_result result = {.struct_size = sizeof result}, remote = {.struct_size = sizeof remote};
    rft_error err = {0};
    if (rft_verify(&t->plan, &t->args, NULL, max_gflop, 5, &result, &err) != RFT_OK) {
        fail_msg("%s", err.message);
    }
    verify_far(t, max_gflop, &remote);
    assert_same(&result, &remote);
    return result;
}

/* Right as it is; wrong with any one of a few elements replaced by its neighbour's value or moved just outside the bound. */
static void check_product(product *t) {
    const rft__problem *p = &t->plan.problem;
    const int64_t at[][3] = {
        {0, 0, 0}, {p->batch - 1, t->args.m - 1, p->epi.n_out - 1}, {p->batch / 2, t->args.m / 2, p->epi.n_out / 3}};
    rft_verify_result result = verify(t, 0);
    assert_int_equal(result.checked, p->batch * t->args.m * p->epi.n_out);
    assert_true(result.worst <= 1.0);
    for (size_t i = 0; i < sizeof at / sizeof *at; i++) {
        const int64_t index = y_index(t, at[i][0], at[i][1], at[i][2]);
        const double right = get(p->y, t->y, index);
        put(p->y, t->y, index, right * 1.25 + 0.5);
        result = verify(t, 0);
        assert_true(result.worst > 1.0);
        assert_true(result.max_error > result.limit);
        assert_int_equal(result.worst_b, at[i][0]);
        assert_int_equal(result.worst_m, at[i][1]);
        assert_int_equal(result.worst_n, at[i][2]);
        put(p->y, t->y, index, right);
    }
    assert_true(verify(t, 0).worst <= 1.0);
}

/* ---- tests ---- */

static void test_orders_and_types(void **state) {
    (void)state;
    static const rft_type types[] = {RFT_F32, RFT_F16, RFT_BF16};
    for (int i = 0; i < 27 * 4; i++) {
        product t;
        rft_linear_desc d = layer(types[i % 3], types[i / 3 % 3], types[i / 9 % 3], 9, 17, 21);
        d.x_order = i / 27 % 2 ? RFT_MN_CONTIGUOUS : RFT_K_CONTIGUOUS;
        d.w.order = i / 54 % 2 ? RFT_MN_CONTIGUOUS : RFT_K_CONTIGUOUS;
        open_product(&t, &d, NULL);
        fill_y(&t, product_at);
        check_product(&t);
        close_product(&t);
    }
}

static void test_strides_and_batch(void **state) {
    (void)state;
    for (int i = 0; i < 8; i++) {
        product t;
        rft_linear_desc d = layer(RFT_BF16, RFT_F32, RFT_F32, 35, 10, 12);
        rft_linear_args strides = rft_linear_args_init();
        d.batch = 3;
        d.w.batch = i & 1 ? 3 : 1;
        d.x_order = i & 2 ? RFT_MN_CONTIGUOUS : RFT_K_CONTIGUOUS;
        d.w.order = i & 4 ? RFT_MN_CONTIGUOUS : RFT_K_CONTIGUOUS;
        strides.ldx = 40;
        strides.ldw = 19;
        strides.ldy = 13;
        strides.x_batch_stride = 40 * 40;
        strides.w_batch_stride = 19 * 12 + 7;
        strides.y_batch_stride = 13 * 35 + 1;
        open_product(&t, &d, &strides);
        fill_y(&t, product_at);
        check_product(&t);
        close_product(&t);
    }
}

static void test_alpha(void **state) {
    (void)state;
    static const float alphas[] = {0.0f, -0.375f};
    for (int i = 0; i < 2; i++) {
        product t;
        rft_linear_desc d = layer(RFT_F32, RFT_F32, RFT_F32, 5, 11, 30);
        d.flags |= RFT_ALPHA;
        d.alpha = alphas[i];
        open_product(&t, &d, NULL);
        fill_y(&t, product_at);
        if (i == 0) {
            t.args.x = t.args.w = NULL; /* not read */
        }
        check_product(&t);
        close_product(&t);
    }
}

static double swiglu_at(const product *t, int64_t b, int64_t m, int64_t n) {
    const bool interleaved = t->plan.problem.w.glu == RFT__GLU_INTERLEAVED;
    const double gate = product_at(t, b, m, interleaved ? 2 * n : n);
    const double up = product_at(t, b, m, interleaved ? 2 * n + 1 : n + t->plan.problem.epi.n_out);
    const double residual = (double)((const float *)t->args.operand[0].ptr)[m * t->plan.problem.epi.n_out + n];
    return gate / (1 + exp(-gate)) * up + 0.5 * residual;
}

static void test_glu(void **state) {
    (void)state;
    const rft_epi_op epi[] = {{.kind = RFT_EPI_SWIGLU}, {.kind = RFT_EPI_ADD, .type = RFT_F32, .operand = 0, .beta = 0.5f}};
    float residual[6 * 13];
    assert_int_equal(rft_fill_random(RFT_F32, residual, 6 * 13, 9, NULL), RFT_OK);
    const rft_operand operand = {.ptr = residual};
    for (int i = 0; i < 2; i++) {
        product t;
        rft_linear_desc d = layer(RFT_F32, RFT_F32, RFT_F32, 6, 26, 15);
        d.w.flags = i ? RFT_WEIGHT_GLU_INTERLEAVED : RFT_WEIGHT_GLU_HALVES;
        d.epi = epi;
        d.n_epi = 2;
        open_product(&t, &d, NULL);
        t.args.operand = &operand;
        t.args.n_operand = 1;
        fill_y(&t, swiglu_at);
        check_product(&t);
        close_product(&t);
    }
}

/* The bound itself: an element off by 0.9 of it passes, by 1.5 does not, above and below, without any slack elsewhere. */
static void test_bound_is_tight(void **state) {
    (void)state;
    static const rft_type types[] = {RFT_F32, RFT_F16, RFT_BF16};
    static const double ulps[] = {0x1p-24, 0x1p-11, 0x1p-8};
    for (int i = 0; i < 3; i++) {
        product t;
        const rft_linear_desc d = layer(RFT_F32, RFT_F32, types[i], 4, 9, 4000);
        open_product(&t, &d, NULL);
        fill_y(&t, product_at);
        for (int side = -1; side <= 1; side += 2) {
            double dot, absolute;
            sums_at(&t, 0, 2, 5, &dot, &absolute);
            const double half_ulp = ulps[i] * exp2(floor(log2(fabs(dot)))), limit = C * absolute + half_ulp;
            const double value = get(types[i], t.y, 2 * 9 + 5);
            put(types[i], t.y, 2 * 9 + 5, dot + side * 1.5 * (limit + half_ulp));
            const rft_verify_result result = verify(&t, 0);
            assert_true(result.worst > 1.0 && result.worst < 4.0);
            assert_true(fabs(result.limit - limit) < 1e-3 * limit + half_ulp);
            assert_int_equal(result.worst_n, 5);
            put(types[i], t.y, 2 * 9 + 5, dot + side * 0.9 * C * absolute);
            assert_true(verify(&t, 0).worst <= 1.0);
            put(types[i], t.y, 2 * 9 + 5, value);
        }
        close_product(&t);
    }
}

/* x = 1 and w given: y is w, whatever it is. */
static rft_verify_result verify_one(rft_type type, float x, float w, double y) {
    product t;
    const rft_linear_desc d = layer(RFT_F32, RFT_F32, type, 1, 1, 1);
    open_product(&t, &d, NULL);
    t.x[0] = x;
    t.w[0] = w;
    if (type == RFT_F32 || isfinite(y)) {
        put(type, t.y, 0, y);
    } else {
        const unsigned infinity = type == RFT_BF16 ? 0x7f80u : 0x7c00u;
        *(uint16_t *)(void *)t.y = (uint16_t)(infinity | (isnan(y) ? 1u : 0u) | (signbit(y) ? 0x8000u : 0u));
    }
    const rft_verify_result result = verify(&t, 0);
    close_product(&t);
    return result;
}

static void test_special_values(void **state) {
    (void)state;
    const double inf = (double)INFINITY, nan = (double)NAN;
    assert_true(verify_one(RFT_F32, NAN, 1.0f, nan).worst <= 1.0);
    assert_true(verify_one(RFT_F32, NAN, 1.0f, 1.0).worst > 1.0);
    assert_true(verify_one(RFT_F32, INFINITY, 0.0f, nan).worst <= 1.0);
    assert_true(verify_one(RFT_F32, INFINITY, -2.0f, -inf).worst <= 1.0);
    assert_true(verify_one(RFT_F32, INFINITY, -2.0f, inf).worst > 1.0);
    assert_true(verify_one(RFT_F32, INFINITY, -2.0f, nan).worst > 1.0);
    assert_true(verify_one(RFT_F32, 1.0f, 2.0f, nan).worst > 1.0);
    assert_true(verify_one(RFT_F32, 1.0f, 2.0f, inf).worst > 1.0);
    assert_true(isinf(verify_one(RFT_F32, 1.0f, 2.0f, inf).worst));
    assert_true(verify_one(RFT_F32, 1.0f, 1e-38f, 0.0).worst > 1.0);
    assert_true(verify_one(RFT_F32, 1.0f, 1e-42f, 0.0).worst <= 1.0); /* ETA allows it to be flushed */
    assert_true(verify_one(RFT_F32, 1.0f, 1e-42f, (double)1e-42f).worst <= 1.0);
}

static void test_overflow(void **state) {
    (void)state;
    const double inf = (double)INFINITY;
    assert_true(verify_one(RFT_F16, 1.0f, 65519.0f, 65504.0).worst <= 1.0);
    assert_true(verify_one(RFT_F16, 1.0f, 65520.0f, inf).worst <= 1.0);
    assert_true(verify_one(RFT_F16, 1.0f, 65520.0f, -inf).worst > 1.0);
    assert_true(verify_one(RFT_F16, 1.0f, 65000.0f, inf).worst > 1.0);
    assert_true(verify_one(RFT_F16, 1.0f, 70000.0f, 65504.0).worst > 1.0);
    assert_true(verify_one(RFT_BF16, 1.0f, FLT_MAX, inf).worst <= 1.0);
    assert_true(verify_one(RFT_BF16, 1.0f, 0x1p127f, inf).worst > 1.0);
    assert_true(verify_one(RFT_F32, 1e30f, 1e30f, inf).worst <= 1.0);
}

static void test_given_scale(void **state) {
    (void)state;
    const rft__codes_scale given = {.scale = 0.5};
    assert_true(rft__verify_compare_codes(RFT_I8, &given, 3, 1.75, 0.0).ratio <= 1.0);
    assert_true(rft__verify_compare_codes(RFT_I8, &given, 3, 1.76, 0.0).ratio > 1.0);
    assert_true(rft__verify_compare_codes(RFT_I8, &given, 3, 1.76, 0.01).ratio <= 1.0);
    assert_true(rft__verify_compare_codes(RFT_I8, &given, -128, -1e9, 0.0).ratio <= 1.0);
    assert_true(rft__verify_compare_codes(RFT_I8, &given, 127, (double)INFINITY, 0.0).ratio <= 1.0);
    assert_true(rft__verify_compare_codes(RFT_I8, &given, 0, (double)NAN, 0.0).ratio <= 1.0);
    assert_true(rft__verify_compare_codes(RFT_I8, &given, 1, (double)NAN, 0.0).ratio > 1.0);
    assert_true(rft__verify_compare_codes(RFT_E4M3, &given, (double)NAN, (double)NAN, 0.0).ratio <= 1.0);
    assert_true(rft__verify_compare_codes(RFT_E4M3, &given, (double)NAN, 1.0, 0.0).ratio > 1.0);
    assert_true(rft__verify_compare_codes(RFT_E4M3, &given, 448, 1e9, 0.0).ratio <= 1.0);
    assert_true(rft__verify_compare_codes(RFT_E4M3, &given, 16, 8.5, 0.0).ratio <= 1.0);
    assert_true(rft__verify_compare_codes(RFT_E4M3, &given, 16, 8.51, 0.0).ratio > 1.0);
}

/* Scales that were found for their group of codes. */
static void test_found_scales(void **state) {
    (void)state;
    rft__codes_scale s = {.scale = 2.0, .found = true, .reaches = true};
    assert_true(rft__verify_compare_codes(RFT_I8, &s, 127, 254.0, 0.0).ratio <= 1.0);
    assert_true(rft__verify_compare_codes(RFT_I8, &s, 100, 203.0, 0.0).ratio > 1.0);
    assert_true(rft__verify_compare_codes(RFT_I8, &s, 127, (double)INFINITY, 0.0).ratio > 1.0);
    s.reaches = false; /* the scale is larger than it need be */
    assert_true(rft__verify_compare_codes(RFT_I8, &s, 100, 200.0, 0.0).ratio > 1.0);
    s = (rft__codes_scale){.scale = 0.0, .found = true, .reaches = true};
    assert_true(rft__verify_compare_codes(RFT_I8, &s, 0, 0x1p-111, 0.0).ratio <= 1.0);
    assert_true(rft__verify_compare_codes(RFT_I8, &s, 0, 0x1p-109, 0.0).ratio > 1.0);
    assert_true(rft__verify_compare_codes(RFT_I8, &s, 1, 0.0, 0.0).ratio > 1.0);
    s.scale = (double)NAN;
    assert_true(rft__verify_compare_codes(RFT_I8, &s, 0, 1.0, 0.0).ratio > 1.0);
    assert_true(rft__verify_compare_codes(RFT_I8, &s, 0, (double)NAN, 0.0).ratio <= 1.0);
    s.may_be_nan = true;
    assert_true(rft__verify_compare_codes(RFT_I8, &s, 0, 1.0, 0.0).ratio <= 1.0);
    assert_true(rft__verify_compare_codes(RFT_I8, &s, 1, 1.0, 0.0).ratio > 1.0);
}

/* Narrow results keep half an ulp of their subnormals. */
static void test_compare_subnormals(void **state) {
    (void)state;
    assert_true(rft__verify_compare(RFT_F16, 0x1p-24, 0x1.7p-24, 0.0).ratio <= 1.0);
    assert_true(rft__verify_compare(RFT_F16, 0x1p-24, 0x1.9p-24, 0.0).ratio > 1.0);
    assert_true(rft__verify_compare(RFT_F16, 0.0, 0x1p-25, 0.0).ratio <= 1.0);
    assert_true(rft__verify_compare(RFT_BF16, 0.0, 0x1p-134, 0.0).ratio <= 1.0);
    assert_true(rft__verify_compare(RFT_BF16, 0.0, 0x1.1p-134, 0.0).ratio > 1.0);
    assert_true(rft__verify_compare(RFT_F32, 0x1p-149, 0x1.8p-149, 0.0).ratio <= 1.0);
    assert_true(rft__verify_compare(RFT_F32, 0.0, 0.0, 0.0).ratio == 0.0);
}

static void test_sample(void **state) {
    (void)state;
    enum { TOTAL = 5000, COUNT = 600 };
    static int64_t index[TOTAL];
    static uint8_t marks[TOTAL], seen[TOTAL];
    rft__verify_sample(TOTAL, COUNT, 3, index, marks);
    for (int i = 0; i < COUNT; i++) {
        assert_true(index[i] >= 0 && index[i] < TOTAL && (i == 0 || index[i] > index[i - 1]));
        seen[index[i]] = 1;
    }
    static const int must[] = {0, 13, 14, 15, 16, 31, 32, 47, 48, 63, 64, 4991, 4992, 4997, 4998, 4999};
    for (size_t i = 0; i < sizeof must / sizeof *must; i++) {
        assert_int_equal(seen[must[i]], 1);
    }
    for (int i = 0; i < TOTAL; i++) {
        assert_int_equal(marks[i], 0);
    }
    rft__verify_sample(10, 10, 3, index, marks);
    for (int i = 0; i < 10; i++) {
        assert_int_equal(index[i], i);
    }
    rft__verify_sample(100, 99, 3, index, marks);
    assert_int_equal(index[98], 99);
}

/* Under a small budget a wrong tile edge is found, and a wrong row of columns somewhere is, by chance and many elements. */
static void test_sampled_verify(void **state) {
    (void)state;
    product t;
    const rft_linear_desc d = layer(RFT_F32, RFT_F32, RFT_F32, 300, 400, 16);
    open_product(&t, &d, NULL);
    fill_y(&t, product_at);
    const double gflop = 2.0 * 300 * 400 * 16 / 1e9 / 4;
    rft_verify_result result = verify(&t, gflop);
    assert_in_range(result.checked, 300 * 400 / 8, 300 * 400 / 2);
    assert_true(result.worst <= 1.0);
    const double right = get(RFT_F32, t.y, 299 * 400 + 399);
    put(RFT_F32, t.y, 299 * 400 + 399, right + 1);
    assert_true(verify(&t, gflop).worst > 1.0);
    put(RFT_F32, t.y, 299 * 400 + 399, right);
    for (int64_t m = 0; m < 300; m++) {
        t.y[m * 400 + 203] += 1.0f;
    }
    result = verify(&t, gflop);
    assert_true(result.worst > 1.0);
    assert_int_equal(result.worst_n, 203);
    close_product(&t);
}

/* y is all zeros, so every element is wrong and many errors are alike. */
static void test_any_number_of_threads(void **state) {
    (void)state;
    product t;
    const rft_linear_desc d = layer(RFT_F32, RFT_F32, RFT_F32, 70, 300, 2500);
    open_product(&t, &d, NULL);
    memset(t.x, 0, 70 * 2500 * sizeof(float));
    t.x[40 * 2500] = 1;
    for (int n = 0; n < 300; n++) {
        t.w[n * 2500] = (float)(1 + n % 3);
    }
    assert_int_equal(setenv("RFT_NUM_THREADS", "1", 1), 0);
    const rft_verify_result one = verify(&t, 0);
    assert_int_equal(setenv("RFT_NUM_THREADS", "5", 1), 0);
    const rft_verify_result five = verify(&t, 0);
    assert_int_equal(unsetenv("RFT_NUM_THREADS"), 0);
    assert_same(&one, &five);
    assert_int_equal(one.checked, 70 * 300);
    assert_int_equal(one.worst_m, 40);
    close_product(&t);
}

static void test_empty_and_k0(void **state) {
    (void)state;
    static const int64_t shapes[][3] = {{0, 5, 5}, {5, 0, 5}, {3, 5, 0}};
    for (int i = 0; i < 3; i++) {
        product t;
        const rft_linear_desc d = layer(RFT_F32, RFT_F32, RFT_F32, shapes[i][0], shapes[i][1], shapes[i][2]);
        open_product(&t, &d, NULL);
        rft_verify_result result = verify(&t, 0);
        assert_int_equal(result.checked, shapes[i][0] * shapes[i][1]);
        assert_true(result.worst == 0.0);
        if (i == 2) {
            t.y[7] = 1e-30f;
            assert_true(verify(&t, 0).worst > 1.0);
        }
        close_product(&t);
    }
}

static void test_arguments(void **state) {
    (void)state;
    const rft_epi_op bias = {.kind = RFT_EPI_ADD, .type = RFT_F32, .beta = 1.0f};
    product t;
    rft_linear_desc d = layer(RFT_F32, RFT_F32, RFT_F32, 4, 4, 4);
    d.epi = &bias;
    d.n_epi = 1;
    open_product(&t, &d, NULL);
    rft_verify_result result = {.struct_size = sizeof result};
    rft_error err = {0};
    const rft_operand operand = {.ptr = t.y};
    assert_int_equal(rft_verify(NULL, &t.args, NULL, 0, 0, &result, &err), RFT_E_ARG);
    assert_int_equal(rft_verify(&t.plan, NULL, NULL, 0, 0, &result, &err), RFT_E_ARG);
    assert_int_equal(rft_verify(&t.plan, &t.args, NULL, 0, 0, &result, &err), RFT_E_ARG);
    t.args.operand = &operand;
    t.args.n_operand = 1;
    assert_int_equal(rft_verify(&t.plan, &t.args, NULL, 0, 0, &result, &err), RFT_E_ARG);
    assert_non_null(strstr(err.message, "operand[0] is y"));
    t.plan.problem.epi.n_op = 0;
    t.plan.problem.epi.n_operand = 0;
    t.args.n_operand = 0;
    assert_int_equal(rft_verify(&t.plan, &t.args, NULL, -1, 0, &result, &err), RFT_E_ARG);
    assert_int_equal(rft_verify(&t.plan, &t.args, NULL, (double)NAN, 0, &result, &err), RFT_E_ARG);
    assert_int_equal(rft_verify(&t.plan, &t.args, NULL, 0, 0, NULL, &err), RFT_E_ARG);
    t.args.m = 5;
    assert_int_equal(rft_verify(&t.plan, &t.args, NULL, 0, 0, &result, &err), RFT_E_ARG);
    assert_non_null(strstr(err.message, "m = 5"));
    close_product(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_orders_and_types),
        cmocka_unit_test(test_strides_and_batch),
        cmocka_unit_test(test_alpha),
        cmocka_unit_test(test_glu),
        cmocka_unit_test(test_bound_is_tight),
        cmocka_unit_test(test_special_values),
        cmocka_unit_test(test_overflow),
        cmocka_unit_test(test_compare_subnormals),
        cmocka_unit_test(test_sample),
        cmocka_unit_test(test_sampled_verify),
        cmocka_unit_test(test_any_number_of_threads),
        cmocka_unit_test(test_given_scale),
        cmocka_unit_test(test_found_scales),
        cmocka_unit_test(test_empty_and_k0),
        cmocka_unit_test(test_arguments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
