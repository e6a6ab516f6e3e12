/* SPDX-License-Identifier: Apache-2.0
 *
 * test_measure.c - the loops behind the roofs touch every byte they claim, and a short measurement makes a sound profile.
 * How fast the machine is is nothing that a test may judge.
 */
#include "cpu/cpuid.h"
#include "cpu/peak.h"
#include "probe/probe_team.h"
#include "roofline/machine.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>
#include <stdatomic.h>
#include <string.h>

#define BYTES (24 * RFT_STREAM_STEP)

static _Alignas(64) unsigned char from[BYTES], to[BYTES + 64];

static uint64_t sum_of(const unsigned char *p) {
    uint64_t sum = 0, word;
    for (int i = 0; i < BYTES; i += 8) {
        memcpy(&word, p + i, sizeof word);
        sum ^= word;
    }
    return sum;
}

/* The checksum takes every word once, however many streams there are. */
static void test_reads(void **state) {
    (void)state;
    const rft__stream *row;
    assert_int_equal(rft_fill_random(RFT_U8, from, BYTES, 1, NULL), RFT_OK);
    for (int i = 0; (row = rft__stream_row(i)) != NULL; i++) {
        for (int streams = 1; streams <= 8 && rft__isa_available(row->isa); streams *= 2) {
            assert_true(row->read(from, BYTES, streams, 0) == sum_of(from));
            assert_true(row->read(from, BYTES, streams, 4096) == sum_of(from));
        }
    }
}

static void test_copies(void **state) {
    (void)state;
    const rft__stream *row;
    for (int i = 0; (row = rft__stream_row(i)) != NULL; i++) {
        for (int bypass = 0; bypass < 2 && rft__isa_available(row->isa); bypass++) {
            memset(to, 0xee, sizeof to);
            row->copy(to, from, BYTES, bypass != 0);
            assert_memory_equal(to, from, BYTES);
            assert_int_equal(to[BYTES], 0xee);
        }
    }
}

/* FLOPs are counted, each call's on top, in proportion to the iterations. */
static void test_peaks(void **state) {
    (void)state;
    const rft__peak *row;
    for (int i = 0; (row = rft__peak_row(i)) != NULL; i++) {
        if (rft__isa_available(row->isa)) {
            double one = 0.0, many = 0.0;
            row->run(1, &one);
            row->run(100, &many);
            row->run(11, &many);
            assert_true(one >= 96.0);
            assert_true(many == 111.0 * one);
        }
    }
}

typedef struct roll {
    atomic_int present;
    int most[4];
} roll;

/* Everyone is here before anyone has gone on: the barrier let them start together. */
static void call_roll(void *arg, int i) {
    roll *r = arg;
    atomic_fetch_add(&r->present, 1);
    while (atomic_load(&r->present) < 3) {
    }
    r->most[i] = atomic_load(&r->present);
}

static void test_team(void **state) {
    (void)state;
    const rft__allocator heap = rft__allocator_default();
    rft__team team = {.n = 3};
    roll r = {0};
    assert_int_equal(rft__pool_create(&heap, 4, NULL, NULL, &team.pool, NULL), RFT_OK);
    const double seconds = rft__team_time(&team, call_roll, &r);
    assert_true(seconds > 0.0 && seconds < 60.0);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(r.most[i], 3);
    }
    assert_int_equal(r.most[3], 0);
    rft__pool_free(team.pool);
}

static void count_lines(void *user, const char *what) {
    ++*(int *)user;
    assert_non_null(strstr(what, "thread"));
}

/* A level whose kernels multiply in 8 bits has that peak beside the one of f32. */
static void check_i8_peak(const rft_machine *m, const char *isa) {
    bool f32 = false, i8 = false;
    for (uint32_t i = 0; i < m->n_peaks; i++) {
        const bool here = strcmp(m->peaks[i].isa, isa) == 0;
        f32 = f32 || (here && m->peaks[i].type == RFT_F32);
        i8 = i8 || (here && m->peaks[i].type == RFT_I8);
    }
    assert_true(f32 == i8);
}

static void test_measure(void **state) {
    (void)state;
    rft_ctx_options options = rft_ctx_options_init();
    options.threads = 3;
    rft_ctx *ctx;
    rft_machine m = {.struct_size = sizeof m};
    rft_error err = {0};
    int lines = 0;
    assert_int_equal(rft_ctx_create("cpu", &options, &ctx, &err), RFT_OK);
    assert_int_equal(rft_machine_measure(ctx, 0.05, count_lines, &lines, &m, &err), RFT_OK);
    assert_int_equal(rft__machine_check(&m, "measured", RFT_E_ARG, &err), RFT_OK);
    assert_string_equal(m.source, "measured");
    assert_int_equal(m.n_counts, 3);
    assert_int_equal(m.counts[1], 2);
    assert_int_equal(m.counts[2], 3);
    assert_string_equal(m.levels[m.n_levels - 1].name, "DRAM");
    assert_string_equal(m.peaks[0].op, "fma_f32");
    for (uint32_t c = 0; c < 3; c++) {
        for (uint32_t i = 0; i < m.n_levels; i++) {
            assert_true(m.levels[i].read_gbps[c] > 0.01 && m.levels[i].copy_gbps[c] > 0.01);
        }
        for (uint32_t i = 0; i < m.n_peaks; i++) {
            assert_true(m.peaks[i].gflops[c] > 0.01);
        }
    }
    check_i8_peak(&m, "avx2");
    check_i8_peak(&m, "avx512");
    assert_true(lines >= 9);
    rft_ctx_free(ctx);
}

/* A capped context measures what it would use. */
static void test_capped(void **state) {
    (void)state;
    rft_ctx_options options = rft_ctx_options_init();
    options.threads = 1;
    options.max_isa = "ref";
    rft_ctx *ctx;
    rft_machine m = {.struct_size = sizeof m};
    assert_int_equal(rft_ctx_create("cpu", &options, &ctx, NULL), RFT_OK);
    assert_int_equal(rft_machine_measure(ctx, 0.01, NULL, NULL, &m, NULL), RFT_OK);
    assert_int_equal(m.n_peaks, 1);
    assert_string_equal(m.peaks[0].isa, "ref");
    assert_string_equal(m.isa, "ref");
    rft_ctx_free(ctx);
}

static void test_arguments(void **state) {
    (void)state;
    rft_ctx *ctx;
    rft_machine m = {.struct_size = sizeof m};
    rft_error err = {0};
    assert_int_equal(rft_ctx_create("cpu", NULL, &ctx, NULL), RFT_OK);
    assert_int_equal(rft_machine_measure(NULL, 1, NULL, NULL, &m, &err), RFT_E_ARG);
    assert_int_equal(rft_machine_measure(ctx, 1, NULL, NULL, NULL, &err), RFT_E_ARG);
    assert_int_equal(rft_machine_measure(ctx, -1, NULL, NULL, &m, &err), RFT_E_ARG);
    assert_non_null(strstr(err.message, "seconds = -1"));
    assert_int_equal(rft_machine_measure(ctx, (double)NAN, NULL, NULL, &m, &err), RFT_E_ARG);
    assert_int_equal(rft_machine_measure(ctx, 1e9, NULL, NULL, &m, &err), RFT_E_ARG);
    rft_ctx_free(ctx);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reads),     cmocka_unit_test(test_copies),  cmocka_unit_test(test_peaks),
        cmocka_unit_test(test_team),      cmocka_unit_test(test_measure), cmocka_unit_test(test_capped),
        cmocka_unit_test(test_arguments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
