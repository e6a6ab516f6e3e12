/* SPDX-License-Identifier: Apache-2.0
 *
 * test_problem.c - the canonical form of a layer: defaults, refusals, and when two layers are the same.
 */
#include "problem/backend.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <string.h>

static rft_linear_desc layer(void) {
    rft_linear_desc d = rft_linear_desc_init();
    d.x = RFT_BF16;
    d.y = RFT_F32;
    d.w.elem = RFT_BF16;
    d.w.n = 48;
    d.w.k = 100;
    d.m_min = 1;
    d.m_max = 16;
    return d;
}

static rft__problem made(const rft_linear_desc *d) {
    rft__problem p;
    rft_error err = {0};
    if (rft__problem_make(&p, d, &err) != RFT_OK) {
        fail_msg("%s", err.message);
    }
    return p;
}

static void refused(const rft_linear_desc *d, rft_status status, const char *part, int line) {
    rft__problem p;
    rft_error err = {0};
    const rft_status got = rft__problem_make(&p, d, &err);
    if (got != status || err.status != status || strstr(err.message, part) == NULL) {
        fail_msg("line %d: status %d, \"%s\", wanted %d with \"%s\"", line, (int)got, err.message, (int)status, part);
    }
}

#define REFUSED(status, part, change)                                                                                            \
    do {                                                                                                                         \
        rft_linear_desc bad = layer();                                                                                           \
        bad.change;                                                                                                              \
        refused(&bad, (status), (part), __LINE__);                                                                               \
    } while (0)

static void test_defaults(void **state) {
    (void)state;
    rft_linear_desc d = layer();
    rft__problem p = made(&d);
    assert_int_equal(p.w.n_stride, 100);
    assert_int_equal(p.w.k_stride, 1);
    assert_int_equal(p.w.batch_stride, 4800);
    assert_int_equal(p.w.batch, 1);
    assert_int_equal(p.batch, 1);
    assert_true(p.alpha == 1.0f);
    assert_int_equal(p.epi.n_op, 0);
    assert_int_equal(p.epi.n_out, 48);

    d.w.order = RFT_MN_CONTIGUOUS;
    d.w.ld = 50;
    d.w.batch = 3;
    p = made(&d);
    assert_int_equal(p.w.n_stride, 1);
    assert_int_equal(p.w.k_stride, 50);
    assert_int_equal(p.w.batch_stride, 5000);
    assert_int_equal(p.batch, 3);
}

static void test_alpha(void **state) {
    (void)state;
    rft_linear_desc d = layer();
    d.flags = RFT_ALPHA;
    d.alpha = 0.5f;
    rft__problem p = made(&d);
    assert_int_equal(p.epi.n_op, 1);
    assert_int_equal(p.epi.op[0].kind, RFT_EPI_SCALE);
    d.alpha = 0.0f; /* means 0, and is no op: neither X nor W is read */
    p = made(&d);
    assert_true(p.alpha == 0.0f);
    assert_int_equal(p.epi.n_op, 0);
    REFUSED(RFT_E_ARG, "desc.alpha = 0.5 does not count without RFT_ALPHA", alpha = 0.5f);
}

static void test_one_w_for_a_batch(void **state) {
    (void)state;
    rft_linear_desc d = layer();
    d.batch = 4;
    const rft__problem p = made(&d);
    assert_int_equal(p.batch, 4);
    assert_int_equal(p.w.batch, 1);
    d.w.batch = 2;
    refused(&d, RFT_E_ARG, "desc.batch = 4", __LINE__);
}

static void test_empty_sizes(void **state) {
    (void)state;
    rft_linear_desc d = layer();
    d.m_min = d.m_max = 0;
    made(&d);
    d.w.n = 0;
    made(&d);
    d.w.k = 0;
    made(&d);
}

static void test_refusals(void **state) {
    (void)state;
    REFUSED(RFT_E_ARG, "desc.m_min = -1", m_min = -1);
    REFUSED(RFT_E_ARG, "desc.m_max = 0 is less than desc.m_min = 1", m_max = 0);
    REFUSED(RFT_E_ARG, "desc.batch = -2", batch = -2);
    REFUSED(RFT_E_ARG, "desc.x = 999", x = (rft_type)999);
    REFUSED(RFT_E_ARG, "desc.y = 0", y = (rft_type)0);
    REFUSED(RFT_E_UNSUPPORTED, "desc.x = e5m2", x = RFT_E5M2);
    REFUSED(RFT_E_UNSUPPORTED, "desc.y = u8", y = RFT_U8);
    REFUSED(RFT_E_ARG, "desc.x_order = 7", x_order = (rft_order)7);
    REFUSED(RFT_E_ARG, "desc.compute = 99", compute = (rft_compute)99);
    REFUSED(RFT_E_ARG, "desc.compute = -1", compute = (rft_compute)-1);
    REFUSED(RFT_E_UNSUPPORTED, "desc.compute = RFT_COMPUTE_I8", compute = RFT_COMPUTE_I8);
    REFUSED(RFT_E_UNSUPPORTED, "desc.compute = 5", compute = RFT_COMPUTE_FP8);
    REFUSED(RFT_E_UNSUPPORTED, "desc.n_group = 8", n_group = 8);
    REFUSED(RFT_E_ARG, "desc.n_group = -8", n_group = -8);
    REFUSED(RFT_E_ARG, "desc.x_group_k = 128", x_group_k = 128);
    REFUSED(RFT_E_ARG, "beside RFT_X_SCALED", flags = RFT_X_SCALED);
    REFUSED(RFT_E_ARG, "RFT_X_STATIC set", flags = RFT_X_STATIC);
    REFUSED(RFT_E_ARG, "desc.flags = 0x80000000", flags = 1u << 31);
    REFUSED(RFT_E_ARG, "desc.epi is NULL", n_epi = 1);
    REFUSED(RFT_E_ARG, "overflow", m_max = INT64_MAX);
    REFUSED(RFT_E_ARG, "overflow", m_max = INT64_MAX / 4096);
}

/* Floats that are rounded have the plan's groups or one scale a row. */
static void test_rounding(void **state) {
    (void)state;
    rft_linear_desc good = layer();
    rft__problem p;
    good.w.elem = RFT_I8;
    good.w.scale = RFT_F32;
    good.compute = RFT_COMPUTE_I8;
    assert_int_equal(rft__problem_make(&p, &good, NULL), RFT_OK);
    assert_false(rft__problem_rounds_rows(&p));
    for (int more = 0; more < 2; more++) {
        good.x_group_k = good.w.k + more;
        assert_int_equal(rft__problem_make(&p, &good, NULL), RFT_OK);
        assert_true(rft__problem_rounds_rows(&p));
        assert_int_equal(p.x_group_k, good.w.k);
        assert_int_equal(rft__problem_x_scales(&p), 0);
    }
    good.x_group_k = good.w.k - 1;
    refused(&good, RFT_E_ARG, "RFT_COMPUTE_I8 rounds x of type", __LINE__);
    good.x_group_k = good.w.k;
    good.compute = RFT_COMPUTE_AUTO;
    refused(&good, RFT_E_ARG, "has no scales", __LINE__);
}

/* Activations in 8 bits have scales, others none. */
static void test_8bit_refusals(void **state) {
    (void)state;
    rft_linear_desc good = layer();
    const rft_epi_op ops[] = {{.kind = RFT_EPI_QUANTIZE_ROWS, .alpha = 64}};
    good.x = RFT_I8;
    good.y = RFT_E4M3;
    good.flags = RFT_X_SCALED;
    good.x_group_k = 96;
    good.epi = ops;
    good.n_epi = 1;
    rft__problem p;
    assert_int_equal(rft__problem_make(&p, &good, NULL), RFT_OK);
    assert_int_equal(p.x_group_k, 96);
    good.x_group_k = 0;
    assert_int_equal(rft__problem_make(&p, &good, NULL), RFT_OK);
    assert_int_equal(rft__problem_x_scales(&p), 1);
#define REFUSED_8BIT(status, part, change)                                                                                       \
    do {                                                                                                                         \
        rft_linear_desc bad = good;                                                                                              \
        bad.change;                                                                                                              \
        refused(&bad, (status), (part), __LINE__);                                                                               \
    } while (0)
    REFUSED_8BIT(RFT_E_ARG, "desc.x = i8 without RFT_X_SCALED", flags = 0);
    REFUSED_8BIT(RFT_E_ARG, "desc.x_group_k = 48 is no multiple of 32", x_group_k = 48);
    REFUSED_8BIT(RFT_E_ARG, "desc.x_group_k = -32", x_group_k = -32);
    REFUSED_8BIT(RFT_E_ARG, "desc.x_group_k = 32, and RFT_X_STATIC", flags = (bad.x_group_k = 32, RFT_X_SCALED | RFT_X_STATIC));
    REFUSED_8BIT(RFT_E_UNSUPPORTED, "desc.x_order = 1", x_order = RFT_MN_CONTIGUOUS);
    REFUSED_8BIT(RFT_E_ARG, "desc.y = e4m3 needs a scale", n_epi = 0);
    REFUSED_8BIT(RFT_E_ARG, "desc.y = bf16 has no scale, and desc.epi ends in quantize_rows", y = RFT_BF16);
}

static void test_weight_refusals(void **state) {
    (void)state;
    REFUSED(RFT_E_ARG, "desc.w: n = -1", w.n = -1);
    REFUSED(RFT_E_ARG, "k = -1", w.k = -1);
    REFUSED(RFT_E_ARG, "ld = -1", w.ld = -1);
    REFUSED(RFT_E_ARG, "desc.w.ld = 99 is less than the row length k = 100", w.ld = 99);
    REFUSED(RFT_E_ARG, "batch_stride = -1", w.batch_stride = -1);
    REFUSED(RFT_E_ARG, "desc.w.order = 2", w.order = (rft_order)2);
    REFUSED(RFT_E_ARG, "desc.w.elem = 99", w.elem = (rft_type)99);
    REFUSED(RFT_E_UNSUPPORTED, "desc.w.elem = 13 (i32)", w.elem = RFT_I32);
    REFUSED(RFT_E_UNSUPPORTED, "desc.w.elem = 272", w.elem = (rft_type)(256 + 16));
    REFUSED(RFT_E_ARG, "multiples of 32, the block of q4_0", w.elem = RFT_GGUF_Q4_0);
    REFUSED(RFT_E_ARG, "scale", w.scale = RFT_F32);
    REFUSED(RFT_E_ARG, "group_k", w.group_k = 32);
    REFUSED(RFT_E_ARG, "desc.w.flags = 0x100", w.flags = 0x100);
    REFUSED(RFT_E_ARG, "both GLU pairings", w.flags = RFT_WEIGHT_GLU_HALVES | RFT_WEIGHT_GLU_INTERLEAVED);
    REFUSED(RFT_E_ARG, "overflow", w.n = INT64_MAX);
    REFUSED(RFT_E_ARG, "overflow", w.k = INT64_MAX);
    REFUSED(RFT_E_ARG, "overflow", w.ld = INT64_MAX);
    REFUSED(RFT_E_ARG, "overflow", w.batch = INT64_MAX / 64);
    REFUSED(RFT_E_ARG, "overflow", w.batch_stride = INT64_MAX);
    rft_linear_desc d = layer();
    d.w.flags = RFT_WEIGHT_GLU_HALVES;
    d.w.n = 47;
    refused(&d, RFT_E_ARG, "desc.w.n = 47 is odd", __LINE__);
}

/* ---- identity ---- */

/* Each change of one field makes another problem. */
#define DIFFERS(change)                                                                                                          \
    do {                                                                                                                         \
        const rft_linear_desc base = layer();                                                                                    \
        rft_linear_desc d = layer();                                                                                             \
        d.change;                                                                                                                \
        const rft__problem a = made(&base), b = made(&d);                                                                        \
        assert_false(rft__problem_equal(&a, &b));                                                                                \
        assert_int_not_equal(rft__problem_hash(&a), rft__problem_hash(&b));                                                      \
    } while (0)

static void test_identity(void **state) {
    (void)state;
    static const rft_epi_op silu = {.kind = RFT_EPI_SILU};
    DIFFERS(x = RFT_F16);
    DIFFERS(y = RFT_BF16);
    DIFFERS(x_order = RFT_MN_CONTIGUOUS);
    DIFFERS(m_min = 2);
    DIFFERS(m_max = 17);
    DIFFERS(batch = 2);
    DIFFERS(compute = RFT_COMPUTE_F32);
    DIFFERS(flags = RFT_W_DYNAMIC);
    DIFFERS(flags = RFT_BATCH_INVARIANT);
    DIFFERS(flags = RFT_ALPHA);
    DIFFERS(w.elem = RFT_F32);
    DIFFERS(w.n = 49);
    DIFFERS(w.k = 99);
    DIFFERS(w.ld = 101);
    DIFFERS(w.batch_stride = 6000);
    DIFFERS(w.order = RFT_MN_CONTIGUOUS);
    DIFFERS(w.flags = RFT_WEIGHT_VIEW);
    DIFFERS(n_epi = (d.epi = &silu, 1));
}

static void test_equal_where_defaults_say_so(void **state) {
    (void)state;
    rft_linear_desc a = layer(), b = layer();
    b.batch = 1;
    b.w.ld = 100;
    b.w.batch_stride = 4800;
    b.flags = RFT_ALPHA;
    b.alpha = 1.0f;
    const rft__problem pa = made(&a), pb = made(&b);
    assert_true(rft__problem_equal(&pa, &pb));
    assert_int_equal(rft__problem_hash(&pa), rft__problem_hash(&pb));
}

static void test_longest_list_has_a_key(void **state) {
    (void)state;
    rft_epi_op ops[RFT_MAX_EPI];
    for (int i = 0; i < RFT_MAX_EPI; i++) {
        ops[i] = (rft_epi_op){.kind = RFT_EPI_SCALE, .alpha = 2.0f + (float)i};
    }
    rft_linear_desc d = layer();
    d.epi = ops;
    d.n_epi = RFT_MAX_EPI;
    d.flags = RFT_ALPHA;
    d.alpha = 3.0f;
    const rft__problem a = made(&d);
    ops[RFT_MAX_EPI - 1].alpha = 1000.0f;
    const rft__problem b = made(&d);
    assert_false(rft__problem_equal(&a, &b));
}

/* ---- text ---- */

static void says(const rft_linear_desc *d, const char *want) {
    char text[512];
    const rft__problem p = made(d);
    assert_int_equal(rft__problem_text(&p, text, sizeof text), strlen(want));
    assert_string_equal(text, want);
}

static void test_text(void **state) {
    (void)state;
    rft_linear_desc d = layer();
    says(&d, "m=1..16 n=48 k=100 x=bf16 w=bf16 y=f32 layout=nt epi=none");
    const rft_epi_op ops[] = {{.kind = RFT_EPI_BIAS, .type = RFT_F32}, {.kind = RFT_EPI_GELU}};
    d.epi = ops;
    d.n_epi = 2;
    d.m_min = 16;
    d.x_order = d.w.order = RFT_MN_CONTIGUOUS;
    d.w.flags = RFT_WEIGHT_VIEW;
    d.batch = 2;
    says(&d, "m=16 n=48 k=100 x=bf16 w=bf16 y=f32 layout=tn epi=bias:gelu batch=2 w.batch=1 view");
    d = layer();
    d.x = RFT_I8;
    d.flags = RFT_X_SCALED | RFT_X_STATIC | RFT_ALPHA;
    says(&d, "m=1..16 n=48 k=100 x=i8 w=bf16 y=f32 layout=nt epi=none x_scale=static alpha=0");
}

static void test_text_in_a_short_buffer(void **state) {
    (void)state;
    char buf[8] = "#######";
    rft__text t = {buf, 6, 0};
    rft__text_add(&t, "%s", "abc");
    rft__text_add(&t, "%s", "defgh");
    rft__text_add(&t, "%d", 12345);
    assert_int_equal(t.length, 13);
    assert_string_equal(buf, "abcde");
    assert_int_equal(buf[6], '#');
    rft__text none = {NULL, 0, 0};
    rft__text_add(&none, "%s", "abc");
    assert_int_equal(none.length, 3);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_alpha),
        cmocka_unit_test(test_one_w_for_a_batch),
        cmocka_unit_test(test_empty_sizes),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_rounding),
        cmocka_unit_test(test_8bit_refusals),
        cmocka_unit_test(test_weight_refusals),
        cmocka_unit_test(test_identity),
        cmocka_unit_test(test_equal_where_defaults_say_so),
        cmocka_unit_test(test_longest_list_has_a_key),
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_text_in_a_short_buffer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
