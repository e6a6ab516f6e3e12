/* SPDX-License-Identifier: Apache-2.0
 *
 * test_roofline.c - least work of a call and its bound from a profile, against figures worked out by hand.
 */
#include "roofline/bound.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>
#include <string.h>

static rft_linear_desc layer(rft_type x, rft_type w, rft_type y, int64_t n, int64_t k) {
    rft_linear_desc d = rft_linear_desc_init();
    d.x = x;
    d.y = y;
    d.w.elem = w;
    d.w.n = n;
    d.w.k = k;
    d.m_max = 1024;
    return d;
}

static rft_work work_of(const rft_linear_desc *d, int64_t m) {
    rft_work work = {.struct_size = sizeof work};
    rft_error err = {0};
    if (rft_work_of(d, m, &work, &err) != RFT_OK) {
        fail_msg("%s", err.message);
    }
    return work;
}

static void assert_close(double value, double expected) {
    if (!(fabs(value - expected) <= 1e-12 * fabs(expected))) {
        fail_msg("%.17g is not %.17g", value, expected);
    }
}

static void test_work(void **state) {
    (void)state;
    const rft_linear_desc d = layer(RFT_F32, RFT_BF16, RFT_F16, 300, 50);
    const rft_work work = work_of(&d, 7);
    assert_close(work.flops, 2.0 * 7 * 300 * 50);
    assert_close(work.x_bytes, 7 * 50 * 4);
    assert_close(work.w_bytes, 300 * 50 * 2);
    assert_close(work.y_bytes, 7 * 300 * 2);
    assert_close(work.operand_bytes, 0);
    assert_close(work.bytes, 7 * 50 * 4 + 300 * 50 * 2 + 7 * 300 * 2);
    assert_close(work.intensity, work.flops / work.bytes);
}

/* A gate and an up half make one output; the bias has an element for each column of the product. */
static void test_work_of_glu(void **state) {
    (void)state;
    const rft_epi_op epi[] = {{.kind = RFT_EPI_SWIGLU}, {.kind = RFT_EPI_ADD, .type = RFT_F32, .operand = 0, .beta = 1.0f}};
    rft_linear_desc d = layer(RFT_BF16, RFT_BF16, RFT_BF16, 64, 32);
    d.w.flags = RFT_WEIGHT_GLU_HALVES;
    d.epi = epi;
    d.n_epi = 2;
    const rft_work work = work_of(&d, 3);
    assert_close(work.flops, 2.0 * 3 * 64 * 32);
    assert_close(work.y_bytes, 3 * 32 * 2);
    assert_close(work.operand_bytes, 3 * 32 * 4);
}

static void test_work_of_batch(void **state) {
    (void)state;
    rft_linear_desc d = layer(RFT_F32, RFT_F32, RFT_F32, 8, 4);
    d.batch = 5;
    assert_close(work_of(&d, 2).w_bytes, 8 * 4 * 4);
    assert_close(work_of(&d, 2).x_bytes, 5 * 2 * 4 * 4);
    assert_close(work_of(&d, 2).flops, 5 * 2.0 * 2 * 8 * 4);
    d.w.batch = 5;
    assert_close(work_of(&d, 2).w_bytes, 5 * 8 * 4 * 4);
}

static void test_no_work(void **state) {
    (void)state;
    rft_linear_desc d = layer(RFT_F32, RFT_F32, RFT_F32, 8, 4);
    assert_close(work_of(&d, 0).bytes, 0);
    assert_close(work_of(&d, 0).intensity, 0);
    d.flags = RFT_ALPHA;
    const rft_work work = work_of(&d, 2);
    assert_close(work.flops, 0);
    assert_close(work.bytes, 2 * 8 * 4);
    d = layer(RFT_F32, RFT_F32, RFT_F32, 8, 0);
    assert_close(work_of(&d, 2).bytes, 2 * 8 * 4);
}

static rft_machine machine(void) {
    rft_machine m = {.struct_size = sizeof m, .n_counts = 3, .n_levels = 2, .n_peaks = 3, .counts = {1, 2, 8}};
    strcpy(m.name, "test");
    strcpy(m.device, "cpu");
    strcpy(m.isa, "avx512bf16");
    strcpy(m.date, "2026-01-01T00:00:00Z");
    strcpy(m.source, "spec");
    m.levels[0] = (rft_machine_level){.name = "L3", .read_gbps = {1000, 1000, 1000}};
    m.levels[1] = (rft_machine_level){.name = "DRAM", .read_gbps = {16, 32, 80}};
    m.peaks[0] = (rft_machine_peak){.isa = "avx2", .op = "fma_f32", .type = RFT_F32, .gflops = {50, 100, 400}};
    m.peaks[1] = (rft_machine_peak){.isa = "avx512", .op = "fma_f32", .type = RFT_F32, .gflops = {100, 200, 800}};
    m.peaks[2] = (rft_machine_peak){.isa = "avx512bf16", .op = "dot_bf16", .type = RFT_BF16, .gflops = {150, 300, 700}};
    return m;
}

static rft_bound bound_of(const rft_machine *m, const rft_linear_desc *d, int64_t rows, uint32_t threads) {
    rft_bound bound = {.struct_size = sizeof bound};
    rft_error err = {0};
    if (rft_machine_bound(m, d, rows, threads, &bound, &err) != RFT_OK) {
        fail_msg("%s", err.message);
    }
    return bound;
}

static void test_roof_at_threads(void **state) {
    (void)state;
    rft_machine m = machine();
    const double *dram = m.levels[1].read_gbps, *avx512 = m.peaks[1].gflops;
    assert_close(rft_machine_roof(&m, dram, 1), 16);
    assert_close(rft_machine_roof(&m, dram, 5), 32 + 0.5 * (80 - 32));
    assert_close(rft_machine_roof(&m, avx512, 99), 800);
    assert_close(rft_machine_roof(&m, avx512, 0), 800);
    assert_close(rft_machine_roof(NULL, avx512, 1), 0);
    assert_close(rft_machine_roof(&m, NULL, 1), 0);
    m.n_counts = RFT_MACHINE_COUNTS + 1;
    assert_close(rft_machine_roof(&m, dram, 99), 0);
}

static void test_bound(void **state) {
    (void)state;
    const rft_machine m = machine();
    const rft_linear_desc d = layer(RFT_F32, RFT_F32, RFT_F32, 1024, 1024);
    const rft_bound decode = bound_of(&m, &d, 1, 2), prefill = bound_of(&m, &d, 1024, 2);
    assert_string_equal(decode.what, "memory");
    assert_close(decode.memory_seconds, (1024.0 * 1024 + 2048) * 4 / 32e9);
    assert_close(decode.seconds, decode.memory_seconds);
    assert_string_equal(prefill.what, "compute");
    assert_close(prefill.compute_seconds, 2.0 * 1024 * 1024 * 1024 / 200e9);
    assert_close(prefill.seconds, prefill.compute_seconds);
}

/* The bf16 dot product serves bf16 x bf16 alone, and only where it is the faster one. */
static double peak_of(const rft_machine *m, rft_type x, rft_type w, rft_compute compute, uint32_t threads) {
    const rft__problem p = {.x = x, .w.elem = w, .compute = compute};
    return rft__peak_at(m, &p, threads);
}

static void test_peak(void **state) {
    (void)state;
    const rft_machine m = machine();
    assert_close(peak_of(&m, RFT_BF16, RFT_BF16, RFT_COMPUTE_AUTO, 2), 300);
    assert_close(peak_of(&m, RFT_F32, RFT_BF16, RFT_COMPUTE_AUTO, 2), 200);
    assert_close(peak_of(&m, RFT_F16, RFT_F16, RFT_COMPUTE_AUTO, 2), 200);
    assert_close(peak_of(&m, RFT_BF16, RFT_BF16, RFT_COMPUTE_AUTO, 8), 800);
    assert_close(peak_of(&m, RFT_BF16, RFT_BF16, RFT_COMPUTE_F32, 2), 200);
}

static void test_thread_counts(void **state) {
    (void)state;
    rft_machine m = machine();
    const double *dram = m.levels[1].read_gbps;
    assert_close(rft__roof_at(&m, dram, 1), 16);
    assert_close(rft__roof_at(&m, dram, 2), 32);
    assert_close(rft__roof_at(&m, dram, 5), 56);
    assert_close(rft__roof_at(&m, dram, 8), 80);
    assert_close(rft__roof_at(&m, dram, 64), 80);
    assert_close(rft__roof_at(&m, dram, 0), 80);
    m.counts[0] = 4;
    m.n_counts = 1;
    assert_close(rft__roof_at(&m, dram, 1), 4);
    assert_close(rft__roof_at(&m, dram, 5), 16);
}

/* A roof that nobody knows bounds nothing; it must not divide. */
static void test_unknown_roofs(void **state) {
    (void)state;
    rft_machine m = machine();
    const rft_linear_desc d = layer(RFT_F32, RFT_F32, RFT_F32, 1024, 1024);
    memset(m.levels[1].read_gbps, 0, sizeof m.levels[1].read_gbps);
    const rft_bound bound = bound_of(&m, &d, 1, 2);
    assert_close(bound.memory_seconds, 0);
    assert_string_equal(bound.what, "compute");
    m.n_peaks = 1;
    strcpy(m.peaks[0].op, "dot_i8");
    assert_close(bound_of(&m, &d, 1, 2).seconds, 0);
}

static void test_arguments(void **state) {
    (void)state;
    rft_machine m = machine();
    rft_linear_desc d = layer(RFT_F32, RFT_F32, RFT_F32, 8, 8);
    rft_work work = {.struct_size = sizeof work};
    rft_bound bound = {.struct_size = sizeof bound};
    rft_error err = {0};
    assert_int_equal(rft_work_of(NULL, 1, &work, &err), RFT_E_ARG);
    assert_int_equal(rft_work_of(&d, -1, &work, &err), RFT_E_ARG);
    assert_non_null(strstr(err.message, "m = -1"));
    assert_int_equal(rft_work_of(&d, 1, NULL, &err), RFT_E_ARG);
    work.struct_size = 0;
    assert_int_equal(rft_work_of(&d, 1, &work, &err), RFT_E_ARG);
    d.struct_size = 0;
    assert_int_equal(rft_machine_bound(&m, &d, 1, 1, &bound, &err), RFT_E_ARG);
    d = layer(RFT_F32, RFT_F32, RFT_F32, -8, 8);
    assert_int_equal(rft_machine_bound(&m, &d, 1, 1, &bound, &err), RFT_E_ARG);
    d = layer(RFT_F32, RFT_F32, RFT_F32, 8, 8);
    assert_int_equal(rft_machine_bound(NULL, &d, 1, 1, &bound, &err), RFT_E_ARG);
    assert_int_equal(rft_machine_bound(&m, &d, 1, 1, NULL, &err), RFT_E_ARG);
    m.n_levels = 0;
    assert_int_equal(rft_machine_bound(&m, &d, 1, 1, &bound, &err), RFT_E_ARG);
    assert_non_null(strstr(err.message, "levels"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_work),          cmocka_unit_test(test_work_of_glu),   cmocka_unit_test(test_work_of_batch),
        cmocka_unit_test(test_no_work),       cmocka_unit_test(test_bound),         cmocka_unit_test(test_peak),
        cmocka_unit_test(test_thread_counts), cmocka_unit_test(test_unknown_roofs), cmocka_unit_test(test_arguments),
        cmocka_unit_test(test_roof_at_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
