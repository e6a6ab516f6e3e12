/* SPDX-License-Identifier: Apache-2.0
 *
 * test_cuda_choose.c - which CUDA kernel serves what, judged on described GPUs: types, architectures, compute, layouts, batch
 * invariance, the table over m, the fallback for awkward operands, a limit of multiprocessors, explanations. Needs neither a GPU
 * nor a compiler.
 */
#include "cuda/cuda_choice.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "h200_facts.h"

static rft__cuda_device gpu(int arch) {
    rft__cuda_device d = {.allocator = rft__allocator_default()};
    d.facts = h200;
    if (arch != 90) {
        d.facts.arch = arch, d.facts.sms = 108, d.facts.shared_block = 166912, d.facts.shared_sm = 167936;
    }
    return d;
}

static rft_linear_desc layer(rft_type x, rft_type w, int64_t n, int64_t k, int64_t m_max) {
    rft_linear_desc d = rft_linear_desc_init();
    d.x = x;
    d.y = x;
    d.w.elem = w;
    d.w.n = n;
    d.w.k = k;
    d.m_min = 1;
    d.m_max = m_max;
    return d;
}

static rft__cuda_choice *choose(rft__cuda_device *d, const rft_linear_desc *desc) {
    rft__problem p;
    rft_error err = {.message = ""};
    rft__choice *c = NULL;
    if (rft__problem_make(&p, desc, &err) != RFT_OK || rft__cuda_choose((rft__device *)(void *)d, &p, NULL, &c, &err) != RFT_OK) {
        fail_msg("%s", err.message);
    }
    return (rft__cuda_choice *)(void *)c;
}

static void drop(rft__cuda_choice *c) { rft__cuda_choice_free((rft__device *)(void *)c->device, (rft__choice *)(void *)c); }

static const rft__cuda_row *row_at(const rft__cuda_choice *c, int64_t m) { return rft__cuda_pick_at(c, m)->config.row; }

static void ranges_cover_every_m(void **state) {
    (void)state;
    rft__cuda_device d = gpu(90);
    const rft_linear_desc desc = layer(RFT_BF16, RFT_BF16, 4096, 4096, 8192);
    rft__cuda_choice *const c = choose(&d, &desc);
    int64_t last = 0;
    for (int i = 0; i < c->n_range; i++) {
        assert_true(c->range[i].m_last > last);
        last = c->range[i].m_last;
    }
    assert_int_equal(last, 8192);
    for (int64_t m = 1; m <= 8192; m++) {
        const rft__cuda_config *const config = &rft__cuda_pick_at(c, m)->config;
        assert_true(config->m == 0 || config->m == m);
    }
    drop(c);
}

static void architectures_decide(void **state) {
    (void)state;
    const rft_linear_desc desc = layer(RFT_F16, RFT_F16, 4096, 4096, 4096);
    for (int arch = 80; arch <= 120; arch += 10) {
        rft__cuda_device d = gpu(arch);
        rft__cuda_choice *const c = choose(&d, &desc);
        for (int i = 0; i < c->n_range; i++) {
            assert_true(c->range[i].pick.config.row->arch != 90 || arch == 90);
        }
        drop(c);
    }
}

/* Why no plan calls a kernel on FMA units a fallback: whatever the layout, the alignment and the size, 16-bit operands have a row
 * on tensor cores beside it. One may still be slower, as where k is 1. */
static void tensor_cores_take_all_of_16_bits(void **state) {
    (void)state;
    static const rft_type types[] = {RFT_F16, RFT_BF16};
    static const int64_t ks[] = {1, 17, 4096};
    static rft__cuda_candidate list[256];
    for (int i = 0; i < 2 * 2 * 2 * 2 * 2 * 3; i++) {
        rft__cuda_device d = gpu(i % 2 ? 80 : 90);
        rft_linear_desc desc = layer(types[i / 2 % 2], types[i / 4 % 2], 2047, ks[i / 32], 4096);
        desc.x_order = i / 8 % 2 ? RFT_MN_CONTIGUOUS : RFT_K_CONTIGUOUS;
        desc.w.order = i / 16 % 2 ? RFT_MN_CONTIGUOUS : RFT_K_CONTIGUOUS;
        desc.w.flags = RFT_WEIGHT_VIEW;
        desc.w.ld = 4097;
        desc.flags = i % 3 ? 0 : RFT_BATCH_INVARIANT;
        rft__problem p;
        assert_int_equal(rft__problem_make(&p, &desc, NULL), RFT_OK);
        const int n = rft__cuda_judge(&d, &p, NULL, 4096, list, 256);
        int tensor = 0;
        for (int j = 0; j < n; j++) {
            tensor += list[j].seconds >= 0 && list[j].config.row->compute != RFT__CUDA_F32;
        }
        assert_true(tensor > 0);
    }
}

static void compute_decides(void **state) {
    (void)state;
    rft__cuda_device d = gpu(90);
    rft_linear_desc desc = layer(RFT_F32, RFT_F32, 1024, 1024, 1024);
    rft__cuda_choice *c = choose(&d, &desc);
    for (int i = 0; i < c->n_range; i++) {
        assert_int_equal(c->range[i].pick.config.row->compute, RFT__CUDA_F32);
    }
    drop(c);
    desc.compute = RFT_COMPUTE_TF32;
    c = choose(&d, &desc);
    assert_int_equal(row_at(c, 1024)->compute, RFT__CUDA_TF32);
    drop(c);
    desc = layer(RFT_BF16, RFT_BF16, 1024, 1024, 1024);
    desc.compute = RFT_COMPUTE_F32;
    c = choose(&d, &desc);
    for (int i = 0; i < c->n_range; i++) {
        assert_int_equal(c->range[i].pick.config.row->compute, RFT__CUDA_F32);
    }
    drop(c);
}

static void nothing_to_multiply(void **state) {
    (void)state;
    rft__cuda_device d = gpu(90);
    rft_linear_desc desc = layer(RFT_BF16, RFT_BF16, 64, 0, 64);
    rft__cuda_choice *c = choose(&d, &desc);
    assert_ptr_equal(row_at(c, 1)->family, &rft__cuda_gemm_simt);
    drop(c);
    desc = layer(RFT_BF16, RFT_BF16, 64, 64, 64);
    desc.flags = RFT_ALPHA;
    c = choose(&d, &desc);
    assert_ptr_equal(row_at(c, 64)->family, &rft__cuda_gemm_simt);
    drop(c);
}

static void batch_invariance_takes_one_config(void **state) {
    (void)state;
    rft__cuda_device d = gpu(90);
    rft_linear_desc desc = layer(RFT_BF16, RFT_BF16, 4096, 4096, 4096);
    desc.flags = RFT_BATCH_INVARIANT;
    rft__cuda_choice *const many = choose(&d, &desc);
    desc.m_max = 1;
    rft__cuda_choice *const one = choose(&d, &desc);
    assert_int_equal(many->n_range, 1);
    assert_memory_equal(&many->range[0].pick.config, &one->range[0].pick.config, sizeof(rft__cuda_config));
    assert_int_equal(many->range[0].pick.config.m, 0);
    drop(many);
    drop(one);
}

/* A plan whose best kernel wants 16-byte rows keeps one that does not; a view that can never have them goes there at once. */
static void awkward_operands_have_a_kernel(void **state) {
    (void)state;
    rft__cuda_device d = gpu(90);
    rft_linear_desc desc = layer(RFT_BF16, RFT_BF16, 4096, 4096, 4096);
    rft__cuda_choice *c = choose(&d, &desc);
    assert_int_equal(row_at(c, 4096)->arch, 90);
    assert_true(c->has_any);
    assert_int_not_equal(c->any.config.row->arch, 90);
    drop(c);
    desc.w.ld = 4097;
    desc.w.flags = RFT_WEIGHT_VIEW;
    c = choose(&d, &desc);
    assert_int_not_equal(row_at(c, 4096)->arch, 90);
    drop(c);
}

/* The bound is that of both kernels that a plan may run. */
static void bound_covers_the_kernel_for_awkward_operands(void **state) {
    (void)state;
    rft__cuda_device d = gpu(90);
    rft_linear_desc desc = layer(RFT_F32, RFT_F32, 1, 251, 9);
    desc.m_min = 9;
    desc.x_order = RFT_MN_CONTIGUOUS;
    desc.compute = RFT_COMPUTE_TF32;
    rft__cuda_choice *const c = choose(&d, &desc);
    rft_plan_info info = {0};
    rft__cuda_choice_info((const rft__choice *)(const void *)c, 9, &info);
    assert_int_equal(row_at(c, 9)->compute, RFT__CUDA_F32);
    assert_int_equal(c->any.config.row->compute, RFT__CUDA_TF32);
    assert_true(info.error_c >= 2 * 0x1p-10);
    drop(c);
}

static void explanations_name_every_row(void **state) {
    (void)state;
    rft__cuda_device d = gpu(90);
    const rft_linear_desc desc = layer(RFT_BF16, RFT_BF16, 4096, 4096, 4096);
    rft__cuda_choice *const c = choose(&d, &desc);
    static char buf[65536];
    rft__text t = {buf, sizeof buf, 0};
    rft__cuda_explain((const rft__choice *)(const void *)c, 512, &t);
    assert_true(t.length < sizeof buf);
    assert_memory_equal(buf, "taken    ", 9);
    for (int i = 0; i < rft__cuda_row_count; i++) {
        if (strstr(buf, rft__cuda_rows[i].name) == NULL) {
            fail_msg("%s is missing", rft__cuda_rows[i].name);
        }
    }
    drop(c);
}

static void sizes_beyond_int_are_refused(void **state) {
    (void)state;
    rft__cuda_device d = gpu(90);
    const rft_linear_desc desc = layer(RFT_BF16, RFT_BF16, 64, 64, (int64_t)1 << 31);
    rft__problem p;
    rft_error err;
    rft__choice *c = NULL;
    assert_int_equal(rft__problem_make(&p, &desc, &err), RFT_OK);
    assert_int_equal(rft__cuda_choose((rft__device *)(void *)&d, &p, NULL, &c, &err), RFT_E_UNSUPPORTED);
    assert_non_null(strstr(err.message, "desc.m_max = 2147483648"));
    assert_null(c);
}

static void activations_in_8_bits_are_refused(void **state) {
    (void)state;
    rft__cuda_device d = gpu(90);
    rft_linear_desc desc = layer(RFT_I8, RFT_BF16, 64, 64, 8);
    rft__problem p;
    rft_error err;
    rft__choice *c = NULL;
    desc.y = RFT_F32;
    desc.flags |= RFT_X_SCALED;
    assert_int_equal(rft__problem_make(&p, &desc, &err), RFT_OK);
    assert_int_equal(rft__cuda_choose((rft__device *)(void *)&d, &p, NULL, &c, &err), RFT_E_UNSUPPORTED);
    assert_non_null(strstr(err.message, "desc.x = i8, desc.y = f32: activations in 8 bits have no kernel on a GPU"));
    assert_null(c);
}

static void names_are_unique(void **state) {
    (void)state;
    for (int i = 0; i < rft__cuda_row_count; i++) {
        for (int j = 0; j < i; j++) {
            assert_string_not_equal(rft__cuda_rows[i].name, rft__cuda_rows[j].name);
        }
    }
}

/* Grids of all configs that this row has on a part of a GPU: no block more than multiprocessors, as it spreads them. */
static int limited_grids(const rft__cuda_device *d, const rft__cuda_row *r, const rft_linear_desc *desc, int64_t m) {
    rft__problem p;
    rft__cuda_config list[RFT__CUDA_CONFIGS];
    assert_int_equal(rft__problem_make(&p, desc, NULL), RFT_OK);
    const int n = r->family->configs(&d->facts, &p, m, r, list, NULL);
    for (int i = 0; i < n; i++) {
        rft__cuda_launch l = {.cluster = 1};
        r->family->launch(&d->facts, &p, &list[i], m, &l);
        const int64_t blocks = (int64_t)l.grid[0] * l.grid[1] * l.grid[2];
        if (blocks == 0 || (blocks > d->facts.sms && list[i].cluster <= d->facts.sms)) {
            fail_msg("%s at m=%lld: %lld blocks on %d multiprocessors", r->name, (long long)m, (long long)blocks, d->facts.sms);
        }
    }
    return n;
}

static void no_row_starts_more_blocks_than_a_limit(void **state) {
    (void)state;
    static const int limits[] = {1, 7, 66, 131};
    static const int64_t ms[] = {1, 8, 64, 128, 1000, 8192};
    for (int i = 0; i < rft__cuda_row_count; i++) {
        const rft__cuda_row *const r = &rft__cuda_rows[i];
        int served = 0;
        for (int j = 0; j < 24; j++) {
            rft__cuda_device d = gpu(r->arch);
            rft_linear_desc desc = layer(r->x, r->w, 4096, 4096, 8192);
            desc.compute = r->compute == RFT__CUDA_TF32 ? RFT_COMPUTE_TF32 : RFT_COMPUTE_AUTO;
            desc.batch = 1 + j / 4 % 3;
            d.facts.sms = limits[j % 4], d.facts.limited = true;
            served += limited_grids(&d, r, &desc, ms[j / 4]);
        }
        assert_true(served > 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_row_starts_more_blocks_than_a_limit), cmocka_unit_test(bound_covers_the_kernel_for_awkward_operands),
        cmocka_unit_test(ranges_cover_every_m),        cmocka_unit_test(architectures_decide),
        cmocka_unit_test(tensor_cores_take_all_of_16_bits),
        cmocka_unit_test(compute_decides),             cmocka_unit_test(nothing_to_multiply),
        cmocka_unit_test(batch_invariance_takes_one_config), cmocka_unit_test(awkward_operands_have_a_kernel),
        cmocka_unit_test(explanations_name_every_row), cmocka_unit_test(sizes_beyond_int_are_refused),
        cmocka_unit_test(activations_in_8_bits_are_refused), cmocka_unit_test(names_are_unique),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
