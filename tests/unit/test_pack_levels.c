/* SPDX-License-Identifier: Apache-2.0
 *
 * test_pack_levels.c - packing and widening of panels at every ISA level of this machine against the portable level, bit
 * for bit: all heights and widths, short k, odd strides. Source and panel lie against inaccessible pages, at their end and
 * at their start in turn, so that one byte read or written outside them ends the test. And the number of their kernels.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cpu/cpu_choice.h"
#include "cpu/cpuid.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MAX_K = 70, ARENA = 1 << 17 };

static const rft_type types[] = {RFT_F32, RFT_F16, RFT_BF16};

/* ---- memory between two inaccessible pages ---- */

typedef struct arena {
    char *begin;
} arena;

static arena source_memory, panel_memory;

static arena arena_make(void) {
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *p = mmap(NULL, ARENA + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(p != MAP_FAILED);
    assert_int_equal(mprotect(p + page, ARENA, PROT_READ | PROT_WRITE), 0);
    return (arena){p + page};
}

static char *arena_place(arena a, size_t bytes, bool at_end) {
    assert_true(bytes <= ARENA);
    return at_end ? a.begin + ARENA - bytes : a.begin;
}

/* ---- data ---- */

static uint32_t seed = 1;

static uint32_t next_random(void) {
    seed = seed * 1664525u + 1013904223u;
    return seed >> 16;
}

/* Any bits, but f16 NaNs are quiet: an instruction makes them so, which the portable text does not. */
static void fill(rft_type type, char *p, size_t bytes) {
    for (size_t i = 0; i + 2 <= bytes; i += 2) {
        uint16_t bits = (uint16_t)next_random();
        if (type == RFT_F16 && (bits & 0x7c00u) == 0x7c00u && (bits & 0x3ffu) != 0) {
            bits |= 0x200u;
        }
        memcpy(p + i, &bits, sizeof bits);
    }
}

/* ---- packing ---- */

typedef struct pack_case {
    const char *level, *op;
    rft_type type;
    rft__pack_fn *got, *want;
    bool widens, at_end;
    int64_t row_stride, k_stride, k;
    int rows, width;
} pack_case;

static void check_pack(const pack_case *c) {
    static char want[ARENA];
    const size_t size = c->type == RFT_F32 ? 4 : 2;
    const int64_t last = (c->rows - 1) * c->row_stride + (c->k - 1) * c->k_stride;
    const size_t source_bytes = c->rows == 0 || c->k == 0 ? 0 : (size_t)(last + 1) * size;
    const size_t panel_bytes = (size_t)rft__panel_bytes(c->widens ? RFT_F32 : c->type, c->width, c->k);
    char *source = arena_place(source_memory, source_bytes, c->at_end);
    char *panel = arena_place(panel_memory, panel_bytes, c->at_end);
    fill(c->type, source, source_bytes);
    memset(panel, 0xa5, panel_bytes);
    memset(want, 0x5a, panel_bytes);
    c->want(source, c->row_stride, c->k_stride, c->rows, c->width, c->k, want);
    c->got(source, c->row_stride, c->k_stride, c->rows, c->width, c->k, panel);
    if (memcmp(panel, want, panel_bytes) != 0) {
        fail_msg("%s %s of type %d differs: rows %d width %d k %lld strides %lld, %lld", c->level, c->op, (int)c->type, c->rows,
                 c->width, (long long)c->k, (long long)c->row_stride, (long long)c->k_stride);
    }
}

/* K-contiguous, MN-contiguous and neither, rows close together and apart. */
static void check_strides(pack_case c) {
    const int64_t strides[][2] = {{c.k, 1},        {c.k + 3, 1}, {1, c.rows}, {1, c.rows + 5},
                                  {2, 2 * c.rows}, {2 * c.k, 2}};
    for (size_t i = 0; i < sizeof strides / sizeof *strides; i++) {
        c.row_stride = strides[i][0];
        c.k_stride = strides[i][1];
        c.at_end = true;
        check_pack(&c);
        c.at_end = false;
        check_pack(&c);
    }
}

static void check_sizes(pack_case c) {
    for (c.rows = 0; c.rows <= RFT__MAX_ROWS; c.rows++) {
        for (c.width = c.rows > 0 ? c.rows : 1; c.width <= RFT__MAX_ROWS; c.width += c.width < c.rows + 2 ? 1 : 5) {
            for (c.k = 0; c.k <= MAX_K; c.k += c.k < 34 ? 1 : 3) {
                check_strides(c);
            }
        }
        c.k = MAX_K - 1;
        for (c.width = RFT__PANEL; c.width <= RFT__MAX_ROWS; c.width += RFT__PANEL) {
            if (c.rows <= c.width) {
                check_strides(c);
            }
        }
    }
}

static void check_op(int level, const char *op, bool widens, rft_type type, rft__pack_fn *got, rft__pack_fn *want) {
    if (got != NULL && got != want) {
        const char *name = rft__isa_at(level)->name;
        check_sizes((pack_case){.level = name, .op = op, .type = type, .got = got, .want = want, .widens = widens});
    }
}

static void packs_like_ref(void **state) {
    (void)state;
    const rft__isa_ops *ref = &rft__isa_at(0)->ops;
    for (int level = 1; level <= rft__isa_here(); level++) {
        const rft__isa_ops *ops = &rft__isa_at(level)->ops;
        for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
            check_op(level, "to_f32", true, types[t], ops->to_f32[types[t]], ref->to_f32[types[t]]);
            check_op(level, "to_same", false, types[t], ops->to_same[types[t]], ref->to_same[types[t]]);
        }
    }
}

/* ---- widening ---- */

static void check_decode(const char *level, rft_type type, rft__decode_fn *got, rft__decode_fn *want, int64_t k, bool at_end) {
    static float expected[(MAX_K + 1) * RFT__PANEL];
    const size_t packed = (size_t)rft__panel_bytes(type, RFT__PANEL, k), wide = sizeof(float) * (size_t)k * RFT__PANEL;
    char *source = arena_place(source_memory, packed, at_end), *panel = arena_place(panel_memory, wide, at_end);
    fill(type, source, packed);
    memset(panel, 0xa5, wide);
    want(source, k, expected);
    got(source, k, (float *)(void *)panel);
    if (memcmp(panel, expected, wide) != 0) {
        fail_msg("%s decode of type %d differs at k %lld", level, (int)type, (long long)k);
    }
}

static void decodes_like_ref(void **state) {
    (void)state;
    for (int level = 1; level <= rft__isa_here(); level++) {
        const rft__isa *isa = rft__isa_at(level);
        for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
            rft__decode_fn *got = isa->ops.decode[types[t]], *want = rft__isa_at(0)->ops.decode[types[t]];
            for (int64_t k = 0; got != NULL && k <= MAX_K; k++) {
                check_decode(isa->name, types[t], got, want, k, true);
                check_decode(isa->name, types[t], got, want, k, false);
            }
        }
    }
}

/* ---- the portable level, against the layout as cpu_kernel.h states it ---- */

static void ref_packs_the_layout(void **state) {
    (void)state;
    enum { ROWS = 3, WIDTH = 4, K = 5 };
    const rft__isa_ops *ref = &rft__isa_at(0)->ops;
    uint16_t source[ROWS * K], pairs[(K + 1) / 2][WIDTH][2];
    float wide[K][WIDTH];
    for (int i = 0; i < ROWS * K; i++) {
        source[i] = (uint16_t)(0x3f80 + i);
    }
    ref->to_same[RFT_BF16](source, K, 1, ROWS, WIDTH, K, pairs);
    ref->to_f32[RFT_BF16](source, K, 1, ROWS, WIDTH, K, wide);
    for (int k = 0; k < K + 1; k++) {
        for (int r = 0; r < WIDTH; r++) {
            const uint16_t want = r < ROWS && k < K ? source[r * K + k] : 0;
            assert_int_equal(pairs[k / 2][r][k % 2], want);
            if (k < K) {
                uint32_t bits;
                memcpy(&bits, &wide[k][r], sizeof bits);
                assert_int_equal(bits, (uint32_t)want << 16);
            }
        }
    }
}

/* A plan judges every kernel of every level: its list has room for all. */
static void candidates_have_room(void **state) {
    (void)state;
    int rows = 0;
    for (int level = 0; level < rft__isa_count(); level++) {
        rows += rft__isa_at(level)->n_kernels;
    }
    assert_in_range(rows, 1, RFT__MAX_CANDIDATES);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(candidates_have_room),
        cmocka_unit_test(ref_packs_the_layout),
        cmocka_unit_test(packs_like_ref),
        cmocka_unit_test(decodes_like_ref),
    };
    source_memory = arena_make();
    panel_memory = arena_make();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
