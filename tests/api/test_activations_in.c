/* SPDX-License-Identifier: Apache-2.0
 *
 * test_activations_in.c - rft_quantize by its definition, and plans whose x is given in 8 bits: against the reference on every
 * ISA level, and bit for bit against the plan that quantises x itself; what is refused.
 */
#include "product.h"

enum { MOST_M = 40, MOST_K = 1030, N = 37 };

static float x[MOST_M * MOST_K], scales[MOST_M * MOST_K / 8], y[MOST_M * 64], want[MOST_M * 64];
static unsigned char q[MOST_M * MOST_K], q_more[MOST_M * MOST_K];

static rft_ctx *any_context(void) { return rft_test_context(NULL, 2); }

static rft_quantize_args quantize_args(rft_type from, rft_type to, int64_t m, int64_t k, int64_t group) {
    rft_quantize_args a = rft_quantize_args_init();
    a.from = from;
    a.to = to;
    a.m = m;
    a.k = k;
    a.group_k = group;
    a.x = x;
    a.q = q;
    a.scale = scales;
    return a;
}

/* ---- the quantiser ---- */

/* E4M3 by search: the nearest number, of two the even code. */
static double nearest_e4m3(double v) {
    double best = 0;
    for (unsigned code = 0; code < 127; code++) {
        const double number = ldexp((code & 7) + (code >> 3 ? 8 : 0), (int)(code >> 3 ? code >> 3 : 1) - 10);
        const double off = fabs(fabs(v) - number), least = fabs(fabs(v) - best);
        best = off < least || (off == least && code % 2 == 0) ? number : best;
    }
    return copysign(best, v);
}

static double code_at(rft_type to, const unsigned char *codes, int64_t i) {
    const unsigned code = codes[i];
    if (to == RFT_I8) {
        return (signed char)code;
    }
    const double number = ldexp((code & 7) + (code >> 3 & 15 ? 8 : 0), (int)(code >> 3 & 15 ? code >> 3 & 15 : 1) - 10);
    return (code & 127) == 127 ? (double)NAN : code & 128 ? -number : number;
}

static double rounded(rft_type to, float v) { return to == RFT_I8 ? nearbyint((double)v) : nearest_e4m3((double)v); }

static void check_group(rft_type from, rft_type to, const void *data, int64_t at, int64_t n, int64_t q_at, float scale) {
    const float top = to == RFT_I8 ? 127.0f : 448.0f;
    float largest = 0.0f;
    for (int64_t i = 0; i < n; i++) {
        largest = fmaxf(largest, fabsf(rft_test_get(from, data, at + i)));
    }
    assert_true(scale == largest / top);
    for (int64_t i = 0; i < n && largest > 0; i++) {
        const double code = code_at(to, q, q_at + i), right = rounded(to, rft_test_get(from, data, at + i) * (top / largest));
        if (code != right) {
            fail_msg("code %lld is %g, not %g", (long long)i, code, right);
        }
    }
}

static void test_definition(void **state) {
    (void)state;
    static const int64_t groups[] = {0, 32, 64, 128}, ks[] = {1, 31, 32, 33, 200, 515, 1030};
    rft_ctx *ctx = any_context();
    for (unsigned i = 0; i < 3 * 2 * 4 * 7; i++) {
        const rft_type from = test_types[i % 3], to = i / 3 % 2 ? RFT_E4M3 : RFT_I8;
        const int64_t group = groups[i / 6 % 4], k = ks[i / 24], m = 7, ldx = k + i % 3, ldq = k + i % 2;
        rft_quantize_args a = quantize_args(from, to, m, k, group);
        a.ldx = ldx;
        a.ldq = ldq;
        rft_test_random(from, x, m * ldx, i);
        OK(rft_quantize(ctx, &a, &test_err));
        const int64_t each = group != 0 ? group : k, count = (k + each - 1) / each;
        for (int64_t g = 0; g < m * count; g++) {
            const int64_t row = g / count, first = g % count * each, n = first + each < k ? each : k - first;
            check_group(from, to, x, row * ldx + first, n, row * ldq + first, scales[g]);
        }
    }
    rft_ctx_free(ctx);
}

/* Any number of threads, any level. */
static void test_same_everywhere(void **state) {
    (void)state;
    levels l;
    rft_test_levels(&l);
    rft_test_random(RFT_F32, x, MOST_M * MOST_K, 3);
    for (int to = 0; to < 2; to++) {
        rft_quantize_args a = quantize_args(RFT_F32, to ? RFT_E4M3 : RFT_I8, MOST_M, MOST_K, 64);
        for (int i = 0; i <= l.count; i++) {
            rft_ctx *ctx = rft_test_context(i < l.count ? l.name[i] : NULL, i < l.count ? 1 : 5);
            a.q = i == 0 ? q : q_more;
            memset(a.q, 0x55, sizeof q);
            OK(rft_quantize(ctx, &a, &test_err));
            assert_memory_equal(a.q, q, MOST_M * MOST_K);
            rft_ctx_free(ctx);
        }
    }
}

static void test_specials(void **state) {
    (void)state;
    rft_ctx *ctx = any_context();
    rft_quantize_args a = quantize_args(RFT_F32, RFT_I8, 4, 64, 32);
    memset(x, 0, sizeof x);
    x[0] = 0x1p-111f;                   /* too small to count */
    x[32] = 0x1p-110f;                  /* not */
    x[64 + 3] = (float)NAN;             /* its group alone */
    x[64 + 40] = -2.0f;
    x[128 + 63] = -(float)INFINITY;
    x[192] = 3e38f;
    OK(rft_quantize(ctx, &a, &test_err));
    assert_true(scales[0] == 0.0f && scales[1] == 0x1p-110f / 127.0f);
    assert_true(isnan(scales[2]) && scales[3] == 2.0f / 127.0f && isnan(scales[5]) && scales[6] == 3e38f / 127.0f);
    assert_true(q[0] == 0 && q[32] == 127 && q[64 + 3] == 0 && (signed char)q[64 + 40] == -127 && q[128 + 63] == 0);
    assert_int_equal(q[192], 127);
    a = quantize_args(RFT_F32, RFT_E4M3, 1, 64, 0);
    x[0] = (float)NAN;
    OK(rft_quantize(ctx, &a, &test_err));
    assert_true(isnan(scales[0]) && q[0] == 0);
    rft_ctx_free(ctx);
}

static void test_static(void **state) {
    (void)state;
    static const float in[] = {0.25f, 0.75f, 1.25f, -0.25f, 63.9f, 70.0f, -64.0f, -1e30f, (float)INFINITY, (float)NAN, 0.0f};
    static const int codes[] = {0, 2, 2, 0, 127, 127, -128, -128, 127, 0, 0};
    enum { COUNT = sizeof in / sizeof *in };
    rft_ctx *ctx = any_context();
    const float scale = 0.5f, zero = 0.0f;
    rft_quantize_args a = quantize_args(RFT_F32, RFT_I8, 1, COUNT, 0);
    memcpy(x, in, sizeof in);
    a.scale = NULL;
    a.static_scale = &scale;
    OK(rft_quantize(ctx, &a, &test_err));
    for (int i = 0; i < COUNT; i++) {
        assert_int_equal((signed char)q[i], codes[i]);
    }
    a.to = RFT_E4M3;
    x[5] = 1000.0f;
    OK(rft_quantize(ctx, &a, &test_err));
    assert_true(q[0] == 0x30 && q[5] == 0x7e && q[7] == 0xfe && q[8] == 0x7e && (q[9] & 127) == 127);
    a.to = RFT_I8;
    a.static_scale = &zero;
    OK(rft_quantize(ctx, &a, &test_err));
    assert_true(q[0] == 127 && (signed char)q[3] == -128 && q[10] == 0);
    rft_ctx_free(ctx);
}

static void test_bad_quantize(void **state) {
    (void)state;
    rft_ctx *ctx = any_context();
    const rft_quantize_args good = quantize_args(RFT_F32, RFT_I8, 3, 64, 32);
    REFUSED(RFT_E_ARG, "ctx is NULL", rft_quantize(NULL, &good, &test_err));
    REFUSED(RFT_E_ARG, "args is NULL", rft_quantize(ctx, NULL, &test_err));
#define BAD(part, change)                                                                                                        \
    do {                                                                                                                         \
        rft_quantize_args bad = good;                                                                                            \
        bad.change;                                                                                                              \
        REFUSED(RFT_E_ARG, part, rft_quantize(ctx, &bad, &test_err));                                                            \
    } while (0)
    BAD("args.struct_size = 0", struct_size = 0);
    BAD("args.from = 6 (i8)", from = RFT_I8);
    BAD("args.to = 5 (e5m2)", to = RFT_E5M2);
    BAD("args.m = -1", m = -1);
    BAD("args.k = -1", k = -1);
    BAD("args.ldx = 63 is less than args.k = 64", ldx = 63);
    BAD("args.ldq = -1", ldq = -1);
    BAD("overflows 2^63", m = INT64_MAX / 100);
    BAD("args.group_k = 48", group_k = 48);
    BAD("args.group_k = -32", group_k = -32);
    BAD("args.x = ", x = NULL);
    BAD("args.x = ", x = (const char *)x + 2);
    BAD("args.q = ", q = NULL);
    BAD("args.scale = ", scale = NULL);
    BAD("args.static_scale is set", static_scale = scales);
    BAD("args.static_scale is set", static_scale = (bad.scale = NULL, scales));
    BAD("args.static_scale = ", static_scale = (bad.scale = NULL, bad.group_k = 0, (const float *)(const void *)(q + 1)));
    rft_quantize_args nothing = good;
    nothing.m = 0;
    nothing.x = nothing.q = nothing.scale = NULL;
    OK(rft_quantize(ctx, &nothing, &test_err));
    rft_ctx_free(ctx);
}

/* ---- plans with such an x ---- */

typedef struct given {
    rft_type type, w;
    int64_t m, k, group; /* group -1: one scale for all */
    rft_compute compute;
} given;

static void *weight_bytes(rft_type type, int64_t k) {
    void *w = malloc(rft_type_bytes(type, k) * N);
    for (int64_t i = 0; i < N; i++) {
        OK(rft_fill_random(type, (char *)w + i * (int64_t)rft_type_bytes(type, k), k, (uint64_t)i, &test_err));
    }
    return w;
}

static product given_product(rft_ctx *ctx, const given *g, const void *w) {
    product p = rft_test_dense(ctx, RFT_F32, g->m, N, g->k);
    p.desc.x = g->type;
    p.desc.w.elem = g->w;
    p.desc.compute = g->compute;
    p.desc.flags = RFT_X_SCALED | (g->group < 0 ? RFT_X_STATIC : 0);
    p.desc.x_group_k = g->group > 0 ? g->group : 0;
    p.w = w;
    p.args.x = q;
    p.args.x_scale = scales;
    p.args.y = y;
    return p;
}

static void prove(rft_ctx *ctx, const given *g) {
    void *w = weight_bytes(g->w, g->k);
    const product p = given_product(ctx, g, w);
    rft_test_random(g->type, q, g->m * g->k, 11);
    rft_test_random(RFT_F32, scales, (int64_t)(sizeof scales / sizeof *scales), 12);
    rft_test_prove(&p);
    free(w);
}

static void test_given(void **state) {
    (void)state;
    static const rft_type weights[] = {RFT_F32, RFT_BF16, RFT_GGUF_Q4_0, (rft_type)264 /* q8_0 */, (rft_type)268 /* q4_k */};
    static const int64_t groups[] = {0, -1, 32, 96, 128}, ms[] = {1, 2, 5, 17, 33};
    levels l;
    rft_test_levels(&l);
    for (int i = 0; i < l.count; i++) {
        rft_ctx *ctx = rft_test_context(l.name[i], i % 2 ? 3 : 1);
        for (unsigned j = 0; j < 5 * 5 * 4; j++) {
            given g = {.type = j % 4 == 3 ? RFT_E4M3 : RFT_I8, .w = weights[j % 5], .m = ms[j / 5 % 5]};
            g.group = groups[j / 7 % 5];
            g.k = (int)g.w < 256 ? 77 : g.w == (rft_type)268 ? 768 : 160;
            g.compute = j % 3 == 0 ? RFT_COMPUTE_F32 : (int)g.w >= 256 && j % 3 == 1 ? RFT_COMPUTE_I8 : RFT_COMPUTE_AUTO;
            prove(ctx, &g);
        }
        rft_ctx_free(ctx);
    }
}

/* What the plan rounds itself, in groups that it tells, is what rft_quantize makes. */
static void test_as_rounded_within(void **state) {
    (void)state;
    enum { K = 768 };
    static const rft_type weights[] = {RFT_GGUF_Q4_0, (rft_type)259 /* q4_1 */, (rft_type)264, (rft_type)266 /* q2_k */};
    rft_ctx *ctx = any_context();
    rft_test_random(RFT_F32, x, MOST_M * K, 5);
    x[40] = (float)NAN;
    for (unsigned i = 0; i < 4 * 3; i++) {
        const given g = {.type = RFT_I8, .w = weights[i % 4], .m = i / 4 == 0 ? 1 : i / 4 == 1 ? 3 : MOST_M, .k = K, .group = 32};
        void *w = weight_bytes(g.w, K);
        product p = given_product(ctx, &g, w);
        const rft_quantize_args a = quantize_args(RFT_F32, RFT_I8, g.m, K, 32);
        OK(rft_quantize(ctx, &a, &test_err));
        rft_test_run(&p);
        p.desc.x = RFT_F32;
        p.desc.flags = 0;
        p.desc.x_group_k = 0;
        p.desc.compute = RFT_COMPUTE_I8;
        p.args.x = x;
        p.args.x_scale = NULL;
        p.args.y = want;
        rft_test_run(&p);
        for (int64_t j = 0; j < g.m * N; j++) {
            assert_true(isnan(want[j]) ? isnan(y[j]) : y[j] == want[j]);
        }
        assert_true(isnan(y[0]));
        free(w);
    }
    rft_ctx_free(ctx);
}

/* Runs a product in 8 bits with a W whose scales lie apart; returns the k of x that the plan rounds by one scale. */
static int64_t run_apart(product *p, const void *codes, const float *scale) {
    rft_weight_src src = rft_weight_src_init();
    rft_plan *plan = NULL;
    rft_weight *weight = NULL;
    rft_plan_info info = rft_plan_info_init();
    size_t bytes = 0;
    p->desc.m_min = p->desc.m_max = p->args.m;
    p->desc.w.elem = RFT_I8;
    p->desc.w.scale = RFT_F32;
    src.q = codes;
    src.scale = scale;
    OK(rft_plan_create(p->ctx, &p->desc, &plan, &test_err));
    OK(rft_plan_get_info(plan, p->args.m, &info));
    assert_non_null(strstr(info.kernel, "_i8_"));
    assert_true((info.error_x != 0.0) == (p->desc.x != RFT_I8) && (info.group_x != 0) == (p->desc.x != RFT_I8));
    OK(rft_weight_bytes(p->ctx, &p->desc.w, &bytes, &test_err));
    void *storage = rft_test_storage(bytes), *work = rft_test_storage(info.workspace);
    OK(rft_weight_pack(p->ctx, &p->desc.w, &src, storage, NULL, &weight, &test_err));
    p->args.weight = weight;
    p->args.workspace = work;
    p->args.workspace_bytes = info.workspace;
    OK(rft_linear_run(plan, &p->args, &test_err));
    rft_weight_free(weight);
    rft_plan_free(plan);
    free(storage);
    free(work);
    return info.group_x;
}

/* Groups of x beside those of W, any with any: small whole numbers times powers of two, so that y is exact. */
static void test_groups_of_both(void **state) {
    (void)state;
    enum { K = 300, STATIC = -1 };
    static const int64_t of_w[] = {0, 16, 32, 64, 96, 128}, of_x[] = {STATIC, 0, 32, 64, 96, 128, 160, 256};
    static const int64_t ms[] = {1, 3, 9, MOST_M};
    static signed char codes[N * K];
    static float w_scale[N * 19];
    levels l;
    rft_test_levels(&l);
    for (int64_t i = 0; i < N * K; i++) {
        codes[i] = (signed char)(i * 7 % 17 - 8);
    }
    for (int64_t i = 0; i < N * 19; i++) {
        w_scale[i] = ldexpf(1.0f, (int)(i % 3) - 1);
    }
    for (int64_t i = 0; i < MOST_M * K; i++) {
        q[i] = (unsigned char)(i * 5 % 13 - 6);
        scales[i % (MOST_M * 10)] = ldexpf(1.0f, (int)(i % (MOST_M * 10) % 3) - 1);
    }
    for (unsigned i = 0; i < (unsigned)l.count * 6 * 8 * 4; i++) {
        const int64_t gw = of_w[i % 6], gx = of_x[i / 6 % 8], m = ms[i / 48 % 4];
        rft_ctx *ctx = rft_test_context(l.name[i / 192], 1 + i % 2);
        const given g = {.type = RFT_I8, .w = RFT_I8, .m = m, .k = K, .group = gx};
        product p = given_product(ctx, &g, NULL);
        p.desc.w.group_n = 1;
        p.desc.w.group_k = gw;
        run_apart(&p, codes, w_scale);
        const int64_t each_w = gw == 0 ? K : gw, each_x = gx <= 0 ? K : gx, row_w = (K + each_w - 1) / each_w;
        const int64_t row_x = gx == STATIC ? 0 : (K + each_x - 1) / each_x;
        for (int64_t at = 0; at < m * N; at++) {
            const int64_t r = at / N, n = at % N;
            double sum = 0;
            for (int64_t k = 0; k < K; k++) {
                const double scale = (double)w_scale[n * row_w + k / each_w] * (double)scales[r * row_x + k / each_x];
                sum += scale * (signed char)q[r * K + k] * codes[n * K + k];
            }
            assert_true((double)y[at] == sum);
        }
        rft_ctx_free(ctx);
    }
}

/* As test_as_rounded_within, beside a W whose scales allow longer groups. */
static void test_long_groups_as_within(void **state) {
    (void)state;
    enum { K = 700 };
    static const int64_t groups[][2] = {{32, 32}, {64, 64}, {128, 128}, {0, 256}};
    static float w_scale[N * 22];
    rft_ctx *ctx = any_context();
    void *codes = weight_bytes(RFT_I8, K);
    rft_test_random(RFT_F32, x, MOST_M * K, 5);
    rft_test_random(RFT_F32, w_scale, N * 22, 6);
    for (unsigned i = 0; i < 4 * 3; i++) {
        product p = rft_test_dense(ctx, RFT_F32, i / 4 == 0 ? 1 : i / 4 == 1 ? 3 : MOST_M, N, K);
        p.desc.w.group_n = 1;
        p.desc.w.group_k = groups[i % 4][0];
        p.desc.compute = RFT_COMPUTE_I8;
        p.args.x = x;
        p.args.y = want;
        const int64_t group = run_apart(&p, codes, w_scale);
        assert_int_equal(group, groups[i % 4][1]);
        const rft_quantize_args a = quantize_args(RFT_F32, RFT_I8, p.args.m, K, group);
        OK(rft_quantize(ctx, &a, &test_err));
        p.desc.x = RFT_I8;
        p.desc.flags = RFT_X_SCALED;
        p.desc.x_group_k = group;
        p.args.x = q;
        p.args.x_scale = scales;
        p.args.y = y;
        run_apart(&p, codes, w_scale);
        assert_memory_equal(y, want, (size_t)(p.args.m * N) * sizeof *y);
    }
    free(codes);
    rft_ctx_free(ctx);
}

/* -128 is the one code that rft_quantize never makes. */
static void test_extremes(void **state) {
    (void)state;
    enum { K = 1024 };
    static signed char codes[N * K];
    levels l;
    rft_test_levels(&l);
    for (int i = 0; i < l.count * 2; i++) {
        rft_ctx *ctx = rft_test_context(l.name[i / 2], 1);
        product p = rft_test_dense(ctx, RFT_I8, 2, N, K);
        const float one = 1.0f;
        memset(codes, i % 2 ? 127 : -128, sizeof codes);
        memset(q, 0x80, 2 * K);
        p.desc.flags = RFT_X_SCALED | RFT_X_STATIC;
        p.args.x = q;
        p.args.x_scale = &one;
        p.args.y = y;
        run_apart(&p, codes, &one);
        for (int j = 0; j < 2 * N; j++) {
            assert_true(y[j] == (i % 2 ? -128.0f * 127 * K : 128.0f * 128 * K));
        }
        rft_ctx_free(ctx);
    }
}

static void test_scales_not_finite(void **state) {
    (void)state;
    rft_ctx *ctx = any_context();
    for (int compute = 0; compute < 2; compute++) {
        const given g = {.type = RFT_I8, .w = RFT_GGUF_Q4_0, .m = 3, .k = 64, .group = 32,
                         .compute = compute ? RFT_COMPUTE_F32 : RFT_COMPUTE_AUTO};
        void *w = weight_bytes(g.w, g.k);
        const product p = given_product(ctx, &g, w);
        memset(q, 1, sizeof q);
        for (int i = 0; i < 6; i++) {
            scales[i] = 1.0f;
        }
        scales[1] = (float)INFINITY;
        scales[4] = (float)NAN;
        rft_test_run(&p);
        assert_true(isnan(y[0]) && isfinite(y[N]) && isnan(y[2 * N]));
        free(w);
    }
    rft_ctx_free(ctx);
}

/* q, k and v take one x; two of them in 8 bits, one in f32. */
static void test_shared_by_a_list(void **state) {
    (void)state;
    enum { LIST = 3, M = 5, K = 256 };
    static float out[LIST][M * N];
    static const rft_type weights[LIST] = {RFT_GGUF_Q4_0, (rft_type)264, RFT_BF16};
    rft_ctx *ctx = any_context();
    prepared r[LIST];
    const rft_plan *plans[LIST];
    rft_linear_args args[LIST];
    const rft_quantize_args a = quantize_args(RFT_F32, RFT_I8, M, K, 0);
    rft_test_random(RFT_F32, x, M * K, 8);
    OK(rft_quantize(ctx, &a, &test_err));
    for (int i = 0; i < LIST; i++) {
        const given g = {.type = RFT_I8, .w = weights[i], .m = M, .k = K};
        void *w = weight_bytes(g.w, K);
        const product p = given_product(ctx, &g, w);
        r[i] = rft_test_prepare(&p);
        plans[i] = r[i].plan;
        args[i] = r[i].args;
        args[i].y = out[i];
        free(w);
    }
    OK(rft_run_list(plans, args, LIST, &test_err));
    for (int i = 0; i < LIST; i++) {
        args[i].y = y;
        OK(rft_linear_run(plans[i], args + i, &test_err));
        assert_memory_equal(y, out[i], sizeof out[i]);
        rft_test_discard(r + i);
    }
    rft_ctx_free(ctx);
}

static void test_bad_args(void **state) {
    (void)state;
    rft_ctx *ctx = any_context();
    const given g = {.type = RFT_I8, .w = RFT_GGUF_Q4_0, .m = 2, .k = 64};
    void *w = weight_bytes(g.w, g.k);
    const product p = given_product(ctx, &g, w);
    prepared r = rft_test_prepare(&p);
    rft_linear_args bad = r.args;
    bad.x_scale = NULL;
    REFUSED(RFT_E_ARG, "args.x_scale is NULL", rft_linear_run(r.plan, &bad, &test_err));
    bad.x_scale = (const char *)scales + 1;
    REFUSED(RFT_E_ARG, "args.x_scale = ", rft_linear_run(r.plan, &bad, &test_err));
    bad.x_scale = scales;
    bad.x = NULL;
    REFUSED(RFT_E_ARG, "args.x is NULL", rft_linear_run(r.plan, &bad, &test_err));
    rft_test_discard(&r);
    free(w);
    rft_ctx_free(ctx);
}

static void test_explained(void **state) {
    (void)state;
    rft_ctx *ctx = any_context();
    const given g = {.type = RFT_I8, .w = RFT_GGUF_Q4_0, .m = 2, .k = 256, .group = 128};
    void *w = weight_bytes(g.w, g.k);
    product p = given_product(ctx, &g, w);
    char text[8192];
    for (int i = 0; i < 2; i++) {
        p.desc.compute = i ? RFT_COMPUTE_F32 : RFT_COMPUTE_AUTO;
        prepared r = rft_test_prepare(&p);
        assert_true(rft_plan_explain(r.plan, 2, text, sizeof text) < sizeof text);
        assert_non_null(strstr(text, "x=i8"));
        assert_non_null(strstr(text, "x_scale=f32/128"));
        assert_non_null(strstr(text, i ? "x of i8 is widened to f32" : "x of i8 as given"));
        rft_test_discard(&r);
    }
    free(w);
    rft_ctx_free(ctx);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_definition),     cmocka_unit_test(test_same_everywhere), cmocka_unit_test(test_specials),
        cmocka_unit_test(test_static),         cmocka_unit_test(test_bad_quantize),    cmocka_unit_test(test_given),
        cmocka_unit_test(test_groups_of_both), cmocka_unit_test(test_long_groups_as_within),
        cmocka_unit_test(test_as_rounded_within), cmocka_unit_test(test_extremes),     cmocka_unit_test(test_scales_not_finite),
        cmocka_unit_test(test_shared_by_a_list), cmocka_unit_test(test_bad_args),      cmocka_unit_test(test_explained),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
