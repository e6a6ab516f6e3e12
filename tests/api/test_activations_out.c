/* SPDX-License-Identifier: Apache-2.0
 *
 * test_activations_out.c - y in 8 bits: by a given scale and by scales of its own, against the reference on every ISA level and
 * bit for bit against the f32 plan followed by rft_quantize; MLPs in 8 bits; what is refused.
 */
#include "product.h"

enum { MOST = 20000 };

static float x[MOST], w[MOST], wide[MOST], scales[MOST], more_scales[MOST], bias[600];
static unsigned char y[MOST], want[MOST];

/* Y[batch][m][n], columns of a scale (0: a row; -1: one given), in a layer with a bias. */
typedef struct layer {
    rft_type y;
    int64_t m, n, k, batch, group;
} layer;

static const rft_epi_op tail[] = {{.kind = RFT_EPI_BIAS, .type = RFT_F32, .operand = 0}};

static product make(rft_ctx *ctx, const layer *l, rft_epi_op ops[2], rft_operand operands[2]) {
    product p = rft_test_dense(ctx, RFT_F32, l->m, l->n, l->k);
    ops[0] = tail[0];
    ops[1] = (rft_epi_op){.kind = l->group < 0 ? RFT_EPI_QUANTIZE : RFT_EPI_QUANTIZE_ROWS, .operand = 1};
    ops[1].alpha = l->group > 0 ? (float)l->group : 0.0f;
    const int64_t each = l->group > 0 ? l->group : l->n;
    operands[0] = (rft_operand){.ptr = bias};
    operands[1] = (rft_operand){.ptr = scales, .batch_stride = l->m * ((l->n + each - 1) / each)};
    p.desc.y = l->y;
    p.desc.batch = p.desc.w.batch = l->batch;
    p.desc.epi = ops;
    p.desc.n_epi = 2;
    p.args.x = x;
    p.args.y = y;
    p.args.operand = operands;
    p.args.n_operand = 2;
    p.w = w;
    return p;
}

static void fill(void) {
    rft_test_random(RFT_F32, x, MOST, 1);
    rft_test_random(RFT_F32, w, MOST, 2);
    rft_test_random(RFT_F32, bias, 600, 3);
}

static void test_against_reference(void **state) {
    (void)state;
    static const int64_t groups[] = {-1, 0, 32, 64}, ms[] = {1, 3, 17, 40}, ns[] = {1, 37, 100};
    levels l;
    rft_test_levels(&l);
    fill();
    for (int i = 0; i < l.count; i++) {
        rft_ctx *ctx = rft_test_context(l.name[i], i % 2 ? 3 : 1);
        for (int j = 0; j < 4 * 4 * 3 * 2; j++) {
            const layer one = {.y = j / 48 ? RFT_E4M3 : RFT_I8, .m = ms[j / 4 % 4], .n = ns[j / 16 % 3], .k = 50,
                               .batch = j % 5 == 0 ? 2 : 1, .group = groups[j % 4]};
            rft_epi_op ops[2];
            rft_operand operands[2];
            const product p = make(ctx, &one, ops, operands);
            for (int s = 0; s < MOST; s++) {
                scales[s] = one.group < 0 ? 0.02f : (float)NAN;
            }
            rft_test_prove(&p);
        }
        rft_ctx_free(ctx);
    }
}

/* With k split, and without: what leaves is what rft_quantize makes of the rows. */
static void test_as_quantised_apart(void **state) {
    (void)state;
    static const layer layers[] = {{RFT_I8, 2, 20, 900, 1, 0}, {RFT_E4M3, 5, 300, 60, 1, 128}, {RFT_I8, 1, 600, 30, 1, 32},
                                   {RFT_I8, 9, 70, 40, 1, -1}};
    rft_ctx *ctx = rft_test_context(NULL, 3);
    fill();
    for (int i = 0; i < 4; i++) {
        const layer *l = layers + i;
        rft_epi_op ops[2];
        rft_operand operands[2];
        product p = make(ctx, l, ops, operands);
        rft_quantize_args a = rft_quantize_args_init();
        scales[0] = 0.05f;
        rft_test_run(&p);
        p.desc.y = RFT_F32;
        p.desc.n_epi = 1;
        p.args.y = wide;
        rft_test_run(&p);
        a.from = RFT_F32;
        a.to = l->y;
        a.m = l->m;
        a.k = l->n;
        a.group_k = l->group > 0 ? l->group : 0;
        a.x = wide;
        a.q = want;
        a.static_scale = l->group < 0 ? scales : NULL;
        a.scale = l->group < 0 ? NULL : more_scales;
        OK(rft_quantize(ctx, &a, &test_err));
        assert_memory_equal(y, want, (size_t)(l->m * l->n));
        assert_true(l->group < 0 || memcmp(scales, more_scales, sizeof(float) * (size_t)operands[1].batch_stride) == 0);
    }
    rft_ctx_free(ctx);
}

/* The worst element is told in units of y, as its reference is. */
static void test_worst_in_units_of_y(void **state) {
    (void)state;
    rft_ctx *ctx = rft_test_context(NULL, 1);
    fill();
    for (int i = 0; i < 2; i++) {
        const layer l = {i ? RFT_E4M3 : RFT_I8, 3, 70, 50, 2, i ? 32 : 0};
        rft_epi_op ops[2];
        rft_operand operands[2];
        const product p = make(ctx, &l, ops, operands);
        rft_verify_result v = {.struct_size = sizeof v};
        prepared r = rft_test_prepare(&p);
        OK(rft_linear_run(r.plan, &r.args, &test_err));
        OK(rft_verify(r.plan, &r.args, p.w, 0, 1, &v, &test_err));
        rft_test_discard(&r);
        assert_true(v.worst > 0 && v.worst <= 1);
        assert_true(fabs(v.worst_y - v.worst_ref) <= v.max_error * 1.0001);
    }
    rft_ctx_free(ctx);
}

/* Strides of y and of the scales; nothing between them is written. */
static void test_strides(void **state) {
    (void)state;
    enum { M = 4, Y = 40, LD = 43, SCALES = 2, LD_SCALES = 5 };
    rft_ctx *ctx = rft_test_context(NULL, 2);
    const layer l = {RFT_I8, M, Y, 30, 2, 32};
    rft_epi_op ops[2];
    rft_operand operands[2];
    product p = make(ctx, &l, ops, operands);
    fill();
    p.args.ldy = LD;
    operands[1].ld = LD_SCALES;
    operands[1].batch_stride = M * LD_SCALES + 1;
    memset(y, 0xa5, sizeof y);
    memset(scales, 0xa5, sizeof scales);
    rft_test_prove(&p);
    for (int64_t i = 0; i < 2 * M * LD; i++) {
        assert_true(i % LD < Y || y[i] == 0xa5);
    }
    for (int64_t i = 0; i < 2 * (M * LD_SCALES + 1); i++) {
        const unsigned char *byte = (const unsigned char *)(scales + i);
        assert_true(i % (M * LD_SCALES + 1) % LD_SCALES < SCALES || *byte == 0xa5);
    }
    rft_ctx_free(ctx);
}

static void test_specials(void **state) {
    (void)state;
    rft_ctx *ctx = rft_test_context(NULL, 1);
    rft_epi_op ops[2];
    rft_operand operands[2];
    const layer l = {RFT_I8, 3, 64, 1, 1, 32}, given = {RFT_I8, 3, 64, 1, 1, -1}, fp8 = {RFT_E4M3, 3, 64, 1, 1, -1};
    for (int i = 0; i < 64; i++) {
        w[i] = (float)(i % 8);
        bias[i] = 0.0f;
    }
    x[0] = (float)INFINITY; /* 0 * Inf makes NaN */
    x[1] = 0.0f;
    x[2] = -1e30f;
    product p = make(ctx, &l, ops, operands);
    rft_test_run(&p);
    assert_true(isnan(scales[0]) && isnan(scales[1]) && scales[2] == 0.0f && scales[4] == 7e30f / 127.0f);
    assert_true(y[0] == 0 && y[63] == 0 && y[64] == 0 && y[128] == 0 && (signed char)y[128 + 7] == -127);
    p = make(ctx, &given, ops, operands);
    scales[0] = 1.0f;
    rft_test_run(&p);
    assert_true(y[0] == 0 && y[1] == 127 && y[64] == 0 && (signed char)y[128 + 7] == -128);
    p = make(ctx, &fp8, ops, operands);
    rft_test_run(&p);
    assert_true((y[0] & 127) == 127 && y[1] == 0x7e && y[128 + 7] == 0xfe);
    rft_ctx_free(ctx);
}

static void test_nothing_multiplied(void **state) {
    (void)state;
    rft_ctx *ctx = rft_test_context(NULL, 1);
    rft_epi_op ops[2];
    rft_operand operands[2];
    const layer l = {RFT_I8, 2, 32, 8, 1, 0};
    product p = make(ctx, &l, ops, operands);
    fill();
    p.desc.flags = RFT_ALPHA;
    p.args.x = NULL;
    rft_test_run(&p);
    float largest = 0.0f;
    for (int i = 0; i < 32; i++) {
        largest = fmaxf(largest, fabsf(bias[i]));
    }
    assert_true(scales[0] == largest / 127.0f && scales[1] == scales[0]);
    rft_ctx_free(ctx);
}

/* ---- MLPs ---- */

enum { M = 6, X = 64, HIDDEN = 96, OUT = 32 };

static rft_mlp_desc describe_mlp(rft_type hidden, int64_t group) {
    rft_mlp_desc d = rft_mlp_desc_init();
    d.x = d.y = RFT_F32;
    d.hidden = hidden;
    d.hidden_group_k = group;
    d.up = d.down = rft_weight_desc_init();
    d.up.elem = d.down.elem = RFT_F32;
    d.up.n = d.down.k = HIDDEN;
    d.up.k = X;
    d.down.n = OUT;
    d.activation = RFT_EPI_SILU;
    d.m_max = M;
    return d;
}

static rft_mlp_args ready_mlp(rft_mlp *mlp, const rft_test_packed *up, const rft_test_packed *down) {
    rft_plan_info info = rft_plan_info_init();
    rft_mlp_args a = rft_mlp_args_init();
    OK(rft_mlp_get_info(mlp, M, &info));
    a.m = M;
    a.x = x;
    a.up = up->weight;
    a.down = down->weight;
    a.y = wide;
    a.workspace = rft_test_storage(info.workspace);
    a.workspace_bytes = info.workspace;
    memset(a.workspace, 0xff, info.workspace);
    return a;
}

/* The two layers apart, into `wide` behind the MLP's y. */
static void run_apart(rft_ctx *ctx, const rft_mlp_desc *d) {
    const rft_epi_op ops[] = {{.kind = RFT_EPI_SILU}, {.kind = RFT_EPI_QUANTIZE_ROWS, .alpha = (float)d->hidden_group_k}};
    const rft_operand operand = {.ptr = scales};
    product up = rft_test_dense(ctx, RFT_F32, M, HIDDEN, X), down = rft_test_dense(ctx, RFT_F32, M, OUT, HIDDEN);
    up.desc.y = d->hidden;
    up.desc.epi = ops;
    up.desc.n_epi = 2;
    up.args.x = x;
    up.args.y = y;
    up.args.operand = &operand;
    up.args.n_operand = 1;
    up.w = w;
    rft_test_run(&up);
    down.desc.x = d->hidden;
    down.desc.flags = RFT_X_SCALED;
    down.desc.x_group_k = d->hidden_group_k;
    down.args.x = y;
    down.args.x_scale = scales;
    down.args.y = wide + M * OUT;
    down.w = w + HIDDEN * X;
    rft_test_prove(&down);
}

static void test_mlp(void **state) {
    (void)state;
    rft_ctx *ctx = rft_test_context(NULL, 2);
    fill();
    for (int i = 0; i < 4; i++) {
        const rft_mlp_desc d = describe_mlp(i % 2 ? RFT_E4M3 : RFT_I8, i / 2 ? 32 : 0);
        rft_mlp *mlp = NULL;
        OK(rft_mlp_create(ctx, &d, &mlp, &test_err));
        rft_test_packed up = rft_test_pack(ctx, &d.up, w), down = rft_test_pack(ctx, &d.down, w + HIDDEN * X);
        const rft_mlp_args a = ready_mlp(mlp, &up, &down);
        OK(rft_mlp_run(mlp, &a, &test_err));
        run_apart(ctx, &d);
        assert_memory_equal(wide, wide + M * OUT, M * OUT * sizeof *wide);
        rft_test_unpack(&up);
        rft_test_unpack(&down);
        free(a.workspace);
        rft_mlp_free(mlp);
    }
    rft_ctx_free(ctx);
}

/* x and hidden in 8 bits, weights in 4: all of it in integers. */
static void test_mlp_in_8_bits(void **state) {
    (void)state;
    rft_ctx *ctx = rft_test_context(NULL, 2);
    static unsigned char up_blocks[HIDDEN * X], down_blocks[OUT * HIDDEN];
    rft_mlp_desc d = describe_mlp(RFT_I8, 0);
    d.x = RFT_I8;
    d.up.elem = d.down.elem = RFT_GGUF_Q4_0;
    d.flags = RFT_X_SCALED;
    d.x_group_k = 32;
    rft_mlp *mlp = NULL;
    OK(rft_mlp_create(ctx, &d, &mlp, &test_err));
    rft_plan_info info = rft_plan_info_init();
    OK(rft_mlp_get_info(mlp, M, &info));
    assert_true(info.error_x == 0.0 && strstr(info.kernel, "_i8_") != NULL);
    rft_test_random(RFT_GGUF_Q4_0, up_blocks, HIDDEN * X, 1);
    rft_test_random(RFT_GGUF_Q4_0, down_blocks, OUT * HIDDEN, 2);
    rft_test_packed up = rft_test_pack(ctx, &d.up, up_blocks), down = rft_test_pack(ctx, &d.down, down_blocks);
    fill();
    rft_quantize_args qa = rft_quantize_args_init();
    qa.from = RFT_F32;
    qa.to = RFT_I8;
    qa.m = M;
    qa.k = X;
    qa.group_k = 32;
    qa.x = x;
    qa.q = y;
    qa.scale = scales;
    OK(rft_quantize(ctx, &qa, &test_err));
    rft_mlp_args a = ready_mlp(mlp, &up, &down);
    a.x = y;
    REFUSED(RFT_E_ARG, "up projection: args.x_scale is NULL", rft_mlp_run(mlp, &a, &test_err));
    a.x_scale = scales;
    OK(rft_mlp_run(mlp, &a, &test_err));
    for (int i = 0; i < M * OUT; i++) {
        assert_true(isfinite(wide[i]));
    }
    rft_test_unpack(&up);
    rft_test_unpack(&down);
    free(a.workspace);
    rft_mlp_free(mlp);
    rft_ctx_free(ctx);
}

static void test_bad(void **state) {
    (void)state;
    rft_ctx *ctx = rft_test_context(NULL, 1);
    rft_epi_op ops[2];
    rft_operand operands[2];
    const layer l = {RFT_I8, 3, 64, 10, 2, 32};
    const product p = make(ctx, &l, ops, operands);
    prepared r = rft_test_prepare(&p);
    operands[1].ptr = NULL;
    REFUSED(RFT_E_ARG, "operand[1].ptr is (nil); quantize_rows", rft_linear_run(r.plan, &r.args, &test_err));
    operands[1].ptr = scales;
    operands[1].batch_stride = 5;
    REFUSED(RFT_E_ARG, "over each other", rft_linear_run(r.plan, &r.args, &test_err));
    operands[1].batch_stride = 6;
    operands[1].ld = 1;
    REFUSED(RFT_E_ARG, "operand[1].ld is 1", rft_linear_run(r.plan, &r.args, &test_err));
    r.args.n_operand = 1;
    REFUSED(RFT_E_ARG, "n_operand is 1", rft_linear_run(r.plan, &r.args, &test_err));
    rft_test_discard(&r);
    rft_ctx_free(ctx);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_against_reference),  cmocka_unit_test(test_as_quantised_apart), cmocka_unit_test(test_strides),
        cmocka_unit_test(test_specials),           cmocka_unit_test(test_nothing_multiplied), cmocka_unit_test(test_mlp),
        cmocka_unit_test(test_mlp_in_8_bits),      cmocka_unit_test(test_bad),
        cmocka_unit_test(test_worst_in_units_of_y),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
