/* SPDX-License-Identifier: Apache-2.0
 *
 * test_cuda_hopper.c - hopper_layout.h against what NVIDIA's documents say of descriptors, swizzle and accumulators, and the
 * ring's phases against a model of mbarriers for 1 to 300 uses and 2 to 8 stages.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cuda/kernels/hopper_layout.h"

#include <stdbool.h>
#include <string.h>

static unsigned long long bits(unsigned long long v, int from, int to) { return v >> from & ((1ull << (to - from + 1)) - 1); }

static void descriptor_fields_are_where_they_belong(void **state) {
    (void)state;
    const unsigned long long d = rft__descriptor(0x1c400, 4096, 1024, 1);
    assert_int_equal(bits(d, 0, 13), 0x1c400 >> 4);
    assert_int_equal(bits(d, 14, 15), 0);
    assert_int_equal(bits(d, 16, 29), 4096 >> 4);
    assert_int_equal(bits(d, 30, 31), 0);
    assert_int_equal(bits(d, 32, 45), 1024 >> 4);
    assert_int_equal(bits(d, 46, 48), 0);
    assert_int_equal(bits(d, 49, 51), 0);
    assert_int_equal(bits(d, 52, 61), 0);
    assert_int_equal(bits(d, 62, 63), 1);
}

static void majors_have_their_strides(void **state) {
    (void)state;
    const unsigned long long k = rft__descriptor_k_major(2048), mn = rft__descriptor_mn_major(2048, 8192);
    assert_int_equal(bits(k, 32, 45) << 4, 1024);
    assert_int_equal(bits(mn, 16, 29) << 4, 8192);
    assert_int_equal(bits(mn, 32, 45) << 4, 1024);
    assert_int_equal(bits(k, 62, 63), 1);
    assert_int_equal(bits(mn, 62, 63), 1);
}

/* Every step of every tile of the 227 KB: only the address changes, and it stays in its field. */
static void steps_change_the_address_alone(void **state) {
    (void)state;
    for (unsigned base = 0; base + 1024 <= 232448; base += 1024) {
        const unsigned long long d = rft__descriptor_k_major(base);
        for (unsigned step = 0; step < 4; step++) {
            const unsigned long long moved = rft__descriptor_add(d, step * RFT_DESCRIPTOR_STEP_K);
            assert_int_equal(bits(moved, 0, 13) << 4, base + step * 32);
            assert_int_equal(moved >> 14, d >> 14);
        }
        const unsigned long long far = rft__descriptor_add(rft__descriptor_mn_major(base, 8192), RFT_DESCRIPTOR_STEP_MN);
        assert_true(bits(far, 0, 13) << 4 == base + 2048);
    }
}

static void swizzle_is_its_own_inverse(void **state) {
    (void)state;
    bool seen[16 * 1024 / 16] = {false};
    for (unsigned offset = 0; offset < 16 * 1024; offset += 16) {
        const unsigned to = rft__swizzle_128(offset);
        assert_int_equal(rft__swizzle_128(to), offset);
        assert_int_equal(to / 128, offset / 128);
        assert_int_equal(to / 16 % 8, (offset / 16 % 8) ^ (offset / 128 % 8));
        assert_false(seen[to / 16]);
        seen[to / 16] = true;
    }
}

/* A column of 16-byte pieces, as wgmma's 8-row core matrices read it, lies in 8 different groups of banks. */
static void swizzle_spreads_a_column_over_the_banks(void **state) {
    (void)state;
    for (unsigned piece = 0; piece < 8; piece++) {
        unsigned groups = 0;
        for (unsigned row = 0; row < 8; row++) {
            groups |= 1u << rft__swizzle_128(row * 128 + piece * 16) / 16 % 8;
        }
        assert_int_equal(groups, 0xff);
    }
}

/* PTX ISA, figure of the accumulator of wgmma m64nNk16: a thread has pairs of columns, rows 8 apart. */
static void accumulators_cover_the_tile_once(void **state) {
    (void)state;
    for (int n = 8; n <= 256; n += 8) {
        static bool seen[64][256];
        memset(seen, 0, sizeof seen);
        for (int t = 0; t < 128; t++) {
            for (int r = 0; r < n / 2; r++) {
                const int row = rft__wgmma_row(t, r), column = rft__wgmma_column(t, r);
                assert_true(0 <= row && row < 64 && 0 <= column && column < n);
                assert_false(seen[row][column]);
                seen[row][column] = true;
            }
        }
    }
    assert_int_equal(rft__wgmma_row(0, 0), 0);
    assert_int_equal(rft__wgmma_column(0, 1), 1);
    assert_int_equal(rft__wgmma_row(0, 2), 8);
    assert_int_equal(rft__wgmma_column(0, 4), 8);
    assert_int_equal(rft__wgmma_row(37, 0), 17);
    assert_int_equal(rft__wgmma_column(37, 0), 2);
}

/* ---- phases ---- */

typedef struct model {  /* an mbarrier of count 1 */
    unsigned completed; /* phases */
} model;

static bool passes(const model *m, unsigned parity) { return (m->completed & 1u) != (parity & 1u); }

typedef struct machine {
    model full[8], empty[8];
    int holds[8]; /* the use whose data a stage has; -1: none */
    rft__ring in, out;
    int put, got;
} machine;

static bool produce(machine *m, int stages) {
    const int s = m->in.stage;
    if (!passes(&m->empty[s], m->in.parity ^ 1)) {
        return false;
    }
    assert_int_equal(m->holds[s], -1); /* nothing that is not read yet is overwritten */
    m->holds[s] = m->put++;
    m->full[s].completed++;
    rft__ring_next(&m->in, stages);
    return true;
}

static bool consume(machine *m, int stages) {
    const int s = m->out.stage;
    if (!passes(&m->full[s], m->out.parity)) {
        return false;
    }
    assert_int_equal(m->holds[s], m->got++);
    m->holds[s] = -1;
    m->empty[s].completed++;
    rft__ring_next(&m->out, stages);
    return true;
}

/* Whoever can go goes, in an order of the seed's choice. */
static void rings_neither_overrun_nor_hang(void **state) {
    (void)state;
    for (int stages = 2; stages <= 8; stages++) {
        for (int uses = 1; uses <= 300; uses++) {
            machine m = {.put = 0};
            uint32_t seed = (uint32_t)(uses * 31 + stages);
            memset(m.holds, 0xff, sizeof m.holds);
            while (m.got < uses) {
                seed = seed * 1664525u + 1013904223u;
                const bool first = seed >> 31;
                const bool moved = (first && m.put < uses && produce(&m, stages)) || consume(&m, stages) ||
                                   (m.put < uses && produce(&m, stages));
                assert_true(moved);
            }
            assert_int_equal(m.put, uses);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(descriptor_fields_are_where_they_belong), cmocka_unit_test(majors_have_their_strides),
        cmocka_unit_test(steps_change_the_address_alone),          cmocka_unit_test(swizzle_is_its_own_inverse),
        cmocka_unit_test(swizzle_spreads_a_column_over_the_banks), cmocka_unit_test(accumulators_cover_the_tile_once),
        cmocka_unit_test(rings_neither_overrun_nor_hang),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
