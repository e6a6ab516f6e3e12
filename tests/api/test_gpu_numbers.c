/* SPDX-License-Identifier: Apache-2.0
 *
 * test_gpu_numbers.c - what the numerics page promises of a GPU beyond the grid of `rooftile check`: batch invariance over m and
 * over plans; what is never read or written; y of more than 2^31 elements; lists of plans and the MLP in device memory.
 */
#include "gpu_test.h"

/* ---- RFT_BATCH_INVARIANT ---- */

static const int64_t rows[] = {1, 2, 3, 7, 8, 9, 16, 17, 33, 64, 65, 128, 129, 257, 1088};
enum { MANY = sizeof rows / sizeof rows[0], MOST = 1088 };

static void assert_row_0(const gpu_layer *l, const void *want, size_t row_bytes) {
    gpu_fill(l->args.y, 0xff, l->y_bytes);
    gpu_run(l);
    void *const got = gpu_fetch(l->args.y, row_bytes);
    const int differs = memcmp(want, got, row_bytes);
    free(got);
    if (differs != 0) {
        fail_msg("row 0 has other bits at m = %lld", (long long)l->args.m);
    }
}

/* At each m: the plan of all, a plan for m alone, one for up to 4 m; x aligned to `offset` elements. */
static void invariant(const rft_linear_desc *common, int64_t offset) {
    const size_t row_bytes = (size_t)common->w.n * rft_test_size(common->y);
    rft_linear_desc d = *common;
    d.m_min = 1;
    d.m_max = MOST;
    gpu_layer all = gpu_make(&d, NULL, MOST, 1);
    void *const x = gpu_random(d.x, MOST * d.w.k + offset, 1);
    all.args.x = rft_test_at(d.x, x, offset);
    gpu_run(&all);
    gpu_prove(&all, 0.1);
    void *const want = gpu_fetch(all.args.y, row_bytes);
    for (int i = 0; i < MANY; i++) {
        for (int scale = 0; scale <= 4; scale += 4) {
            gpu_watch(0, "invariance of %s at m=%lld", rft_type_name(d.x), (long long)rows[i]);
            gpu_layer one = all;
            one.args.m = rows[i];
            assert_row_0(&one, want, row_bytes);
            d.m_min = scale == 0 ? rows[i] : 0;
            d.m_max = scale == 0 ? rows[i] : scale * rows[i];
            OK(rft_plan_create(gpu, &d, &one.plan, &test_err));
            assert_row_0(&one, want, row_bytes);
            rft_plan_free(one.plan);
        }
    }
    free(want);
    gpu_free(&all);
    gpu_drop(NULL);
}

static void test_invariance(void **state) {
    (void)state;
    gpu_needed();
    for (int t = 0; t < TEST_TYPES; t++) {
        rft_linear_desc d = gpu_desc(test_types[t], MOST, 392, 520);
        d.flags = RFT_BATCH_INVARIANT;
        invariant(&d, 0);
        invariant(&d, 1);
    }
    rft_linear_desc mixed = gpu_desc(RFT_F16, MOST, 131, 1031);
    mixed.w.elem = RFT_BF16;
    mixed.y = RFT_F32;
    mixed.flags = RFT_BATCH_INVARIANT;
    invariant(&mixed, 0);
}

/* ---- what is neither read nor written ---- */

enum { N = 72, K = 136, M = 19 };

static void assert_untouched(const gpu_layer *l) {
    unsigned char *const y = gpu_fetch(l->args.y, l->y_bytes);
    for (size_t i = 0; i < l->y_bytes; i++) {
        assert_int_equal(y[i], 0xff);
    }
    free(y);
}

static void test_beta_zero(void **state) {
    const rft_epi_op add = {.kind = RFT_EPI_ADD, .type = RFT_BF16, .beta = 0};
    rft_linear_desc d = gpu_desc(RFT_BF16, M, N, K);
    (void)state;
    gpu_needed();
    gpu_layer plain = gpu_make(&d, NULL, M, 1);
    gpu_run(&plain);
    d.epi = &add;
    d.n_epi = 1;
    gpu_layer l = gpu_make(&d, NULL, M, 1);
    const rft_operand nowhere = {.ptr = gpu_filled(0xff, M * N * 2)};
    l.args.operand = &nowhere;
    l.args.n_operand = 1;
    gpu_run(&l);
    gpu_assert_equal(l.args.y, plain.args.y, l.y_bytes);
    gpu_free(&plain);
    gpu_free(&l);
}

/* y is the bias alone; x is NaN, then neither x nor a weight is given. */
static void only_bias(rft_linear_desc *d) {
    const rft_epi_op bias = {.kind = RFT_EPI_BIAS, .type = RFT_F32};
    float b[N];
    rft_test_fill(b, N, 3);
    d->epi = &bias;
    d->n_epi = 1;
    d->y = RFT_F32;
    const rft_operand operand = {.ptr = gpu_upload(b, sizeof b)};
    gpu_layer l = gpu_make(d, NULL, M, 1);
    l.args.operand = &operand;
    l.args.n_operand = 1;
    l.args.x = gpu_filled(0xff, M * K * 4);
    for (int given = 1; given >= 0; given--) {
        gpu_fill(l.args.y, 0xff, l.y_bytes);
        gpu_run(&l);
        float *const y = gpu_fetch(l.args.y, l.y_bytes);
        for (int i = 0; i < M; i++) {
            assert_memory_equal(y + i * N, b, sizeof b);
        }
        free(y);
        l.args.x = NULL;
        l.args.weight = NULL;
    }
    gpu_free(&l);
}

static void test_no_product(void **state) {
    (void)state;
    gpu_needed();
    for (int t = 0; t < TEST_TYPES; t++) {
        rft_linear_desc d = gpu_desc(test_types[t], M, N, K);
        d.flags = RFT_ALPHA; /* alpha = 0 */
        only_bias(&d);
        d = gpu_desc(test_types[t], M, N, 0);
        only_bias(&d);
    }
}

static void test_nothing_to_write(void **state) {
    (void)state;
    gpu_needed();
    rft_linear_desc d = gpu_desc(RFT_BF16, M, N, K);
    d.m_min = 0;
    gpu_layer l = gpu_make(&d, NULL, M, 1);
    l.args.m = 0;
    gpu_run(&l);
    assert_untouched(&l);
    gpu_free(&l);
    d.w.n = 0;
    gpu_layer empty = gpu_make(&d, NULL, M, 1);
    empty.args.y = l.args.y;
    empty.y_bytes = l.y_bytes;
    gpu_run(&empty);
    assert_untouched(&empty);
    gpu_free(&empty);
}

/* ---- offsets beyond 2^31 elements ---- */

enum { TALL = 70000, WIDE = 32768, SHORT_K = 64 };

static void tall_and_wide(const char *kernel) {
    gpu_watch(0, "y of more than 2^31 elements, kernel %s", kernel != NULL ? kernel : "chosen");
    const rft_linear_desc d = gpu_desc(RFT_BF16, TALL, WIDE, SHORT_K);
    gpu_layer l = gpu_make(&d, kernel, TALL, 1);
    gpu_run(&l);
    gpu_prove(&l, 0.25);
    void *const tail = gpu_fetch((char *)l.args.y + l.y_bytes - WIDE * 2, WIDE * 2); /* no NaN is left in the last row */
    for (int64_t i = 0; i < WIDE; i++) {
        assert_false(isnan(rft_test_get(RFT_BF16, tail, i)));
    }
    free(tail);
    gpu_free(&l);
    gpu_drop(NULL);
}

static void test_beyond_2_31(void **state) {
    (void)state;
    gpu_driver_needed();
    if (gpu_memory_free() < (size_t)12 << 30) {
        print_message("skipped: less than 12 GiB of the GPU's memory are free\n");
        skip();
    }
    tall_and_wide(NULL);
    tall_and_wide("gemm_sm80_bf16_bf16_bf16_128x128");
    tall_and_wide("gemm_simt_bf16_bf16_f32_128x128");
}

/* ---- several plans in one call ---- */

static void test_run_list(void **state) {
    enum { LIST = 3 };
    static const int64_t widths[LIST] = {256, 64, 63}, counts[] = {1, 5, 40};
    (void)state;
    gpu_needed();
    for (int c = 0; c < 3; c++) {
        gpu_layer l[LIST];
        const rft_plan *plans[LIST];
        rft_linear_args args[LIST];
        for (int i = 0; i < LIST; i++) {
            const rft_linear_desc d = gpu_desc(RFT_BF16, counts[c], widths[i], K);
            l[i] = gpu_make(&d, NULL, counts[c], 1);
            l[i].args.x = l[0].args.x;
            plans[i] = l[i].plan;
            args[i] = l[i].args;
            args[i].y = gpu_filled(0xff, l[i].y_bytes);
            gpu_run(&l[i]);
            gpu_prove(&l[i], 0);
        }
        OK(rft_run_list(plans, args, LIST, &test_err));
        gpu_sync(NULL);
        for (int i = 0; i < LIST; i++) {
            gpu_assert_equal(args[i].y, l[i].args.y, l[i].y_bytes);
            gpu_free(&l[i]);
        }
        gpu_drop(NULL);
    }
}

/* ---- MLP ---- */

typedef struct mlp_case {
    rft_epi_kind activation;
    uint32_t flags;
    int64_t m, hidden;
} mlp_case;

static rft_mlp_desc mlp_desc(const mlp_case *c) {
    rft_mlp_desc d = rft_mlp_desc_init();
    d.x = d.hidden = d.y = RFT_BF16;
    d.up = d.down = rft_weight_desc_init();
    d.up.elem = d.down.elem = RFT_BF16;
    d.up.n = c->flags != 0 ? 2 * c->hidden : c->hidden;
    d.up.k = K;
    d.up.flags = c->flags;
    d.down.n = N;
    d.down.k = c->hidden;
    d.activation = c->activation;
    d.m_min = 1;
    d.m_max = c->m;
    return d;
}

/* The two products one after the other, as plans of their own, each proved. */
static void by_hand(const mlp_case *c, const rft_mlp_desc *m, gpu_layer *up, gpu_layer *down) {
    const rft_epi_op act = {.kind = c->activation};
    rft_linear_desc d = gpu_desc(RFT_BF16, c->m, m->up.n, K);
    d.m_min = 1;
    d.w = m->up;
    d.epi = &act;
    d.n_epi = 1;
    *up = gpu_make(&d, NULL, c->m, 1);
    gpu_run(up);
    gpu_prove(up, 0);
    d = gpu_desc(RFT_BF16, c->m, N, c->hidden);
    d.m_min = 1;
    *down = gpu_make(&d, NULL, c->m, 3);
    down->args.x = up->args.y;
    gpu_run(down);
    gpu_prove(down, 0);
}

static void one_mlp(const mlp_case *c) {
    const rft_mlp_desc d = mlp_desc(c);
    rft_mlp *mlp = NULL;
    rft_plan_info info = rft_plan_info_init();
    gpu_layer up, down;
    by_hand(c, &d, &up, &down);
    OK(rft_mlp_create(gpu, &d, &mlp, &test_err));
    OK(rft_mlp_get_info(mlp, c->m, &info));
    rft_mlp_args a = rft_mlp_args_init();
    a.m = c->m;
    a.x = up.args.x;
    a.up = up.weight;
    a.down = down.weight;
    a.y = gpu_filled(0xff, down.y_bytes);
    a.workspace = gpu_filled(0xff, info.workspace);
    a.workspace_bytes = info.workspace;
    for (int i = 0; i < 3; i++) { /* the later ones overwrite what the earlier still read */
        OK(rft_mlp_run(mlp, &a, &test_err));
    }
    gpu_sync(NULL);
    gpu_assert_equal(a.y, down.args.y, down.y_bytes);
    a.workspace_bytes = info.workspace - 1;
    REFUSED(RFT_E_ARG, "args.workspace_bytes = ", rft_mlp_run(mlp, &a, &test_err));
    a.workspace_bytes = info.workspace;
    a.workspace = (char *)a.workspace + 2;
    REFUSED(RFT_E_ARG, "args.workspace = ", rft_mlp_run(mlp, &a, &test_err));
    a.workspace = NULL;
    REFUSED(RFT_E_ARG, "args.workspace = ", rft_mlp_run(mlp, &a, &test_err));
    rft_mlp_free(mlp);
    gpu_free(&up);
    gpu_free(&down);
    gpu_drop(NULL);
}

static void test_mlp(void **state) {
    static const mlp_case cases[] = {{RFT_EPI_SWIGLU, RFT_WEIGHT_GLU_HALVES, 1, 120},
                                     {RFT_EPI_SWIGLU, RFT_WEIGHT_GLU_HALVES, 33, 120},
                                     {RFT_EPI_GEGLU_TANH, RFT_WEIGHT_GLU_INTERLEAVED, 200, 128},
                                     {RFT_EPI_GELU, 0, 17, 61}, /* rows of the hidden activations that no copy engine takes */
                                     {RFT_EPI_SILU, 0, 5, 96}};
    (void)state;
    gpu_needed();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        gpu_watch(0, "MLP %zu", i);
        one_mlp(&cases[i]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_invariance, gpu_drop),
        cmocka_unit_test_teardown(test_beta_zero, gpu_drop),
        cmocka_unit_test_teardown(test_no_product, gpu_drop),
        cmocka_unit_test_teardown(test_nothing_to_write, gpu_drop),
        cmocka_unit_test_teardown(test_beyond_2_31, gpu_drop),
        cmocka_unit_test_teardown(test_run_list, gpu_drop),
        cmocka_unit_test_teardown(test_mlp, gpu_drop),
    };
    return cmocka_run_group_tests(tests, gpu_open, gpu_close);
}
