/* SPDX-License-Identifier: Apache-2.0
 *
 * test_amx_tiles.c - the stand-in of tile instructions says what they mean: known values everywhere, and where this machine has
 * tiles the same bits as the instructions, for values of all sizes.
 */
#include "amx_standin.h"

#include "cpu/cpuid.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum { ROWS = 16, COLUMNS = 16, K = 32, BYTES = 64 };

typedef struct tiles {
    uint16_t x[ROWS][K];
    uint16_t w[K / 2][COLUMNS][2];
    float sums[ROWS][COLUMNS];
} tiles;

typedef struct byte_tiles {
    signed char x[ROWS][BYTES];
    unsigned char w[BYTES / 4][COLUMNS][4];
    int32_t sums[ROWS][COLUMNS];
} byte_tiles;

static uint16_t bf16(float v) {
    uint32_t bits;
    memcpy(&bits, &v, sizeof bits);
    return (uint16_t)(bits >> 16);
}

/* Sums and X of that many rows, W of that many pairs of k. */
static void make_config(unsigned char config[64], int rows, int pairs) {
    static const int tile[] = {0, 4, 6};
    const int height[] = {rows, rows, pairs}, bytes[] = {BYTES, 4 * pairs, BYTES};
    memset(config, 0, 64);
    config[0] = 1;
    for (int i = 0; i < 3; i++) {
        config[16 + 2 * tile[i]] = (unsigned char)bytes[i];
        config[48 + tile[i]] = (unsigned char)height[i];
    }
}

#define STAND_IN(name, type, dot)                     \
    static void name(type *t, int rows, int steps) {  \
        unsigned char config[64];                     \
        make_config(config, rows, steps);             \
        RFT_TILE_CONFIGURE(config);                   \
        RFT_TILE_LOAD(0, t->sums, BYTES);             \
        RFT_TILE_LOAD(4, t->x, BYTES);                \
        RFT_TILE_LOAD(6, t->w, BYTES);                \
        dot(0, 4, 6);                                 \
        RFT_TILE_STORE(0, t->sums, BYTES);            \
        RFT_TILE_RELEASE();                           \
    }

STAND_IN(stand_in, tiles, RFT_TILE_DOT_BF16)
STAND_IN(stand_in_bytes, byte_tiles, RFT_TILE_DOT_I8)

static float one_pair(float x0, float x1, float w0, float w1, float sum) {
    tiles t = {0};
    t.x[0][0] = bf16(x0);
    t.x[0][1] = bf16(x1);
    t.w[0][0][0] = bf16(w0);
    t.w[0][0][1] = bf16(w1);
    t.sums[0][0] = sum;
    stand_in(&t, 1, 1);
    return t.sums[0][0];
}

static void test_pairs(void **state) {
    (void)state;
    assert_true(one_pair(2, 3, 5, 7, 100) == 131);
    tiles t = {0};
    for (int k = 0; k < K; k++) {
        t.x[3][k] = bf16((float)(k + 1));
        t.w[k / 2][5][k % 2] = bf16((float)(k % 7));
    }
    stand_in(&t, ROWS, K / 2);
    float want = 0;
    for (int k = 0; k < K; k++) {
        want += (float)((k + 1) * (k % 7));
    }
    assert_true(t.sums[3][5] == want);
    assert_true(t.sums[3][4] == 0 && t.sums[4][5] == 0);
}

/* 2^24 + 1 is lost in one chain of FMAs; the even chain holds 2^24, the odd one 1 + 1, which together are exact. */
static void test_order(void **state) {
    (void)state;
    tiles t = {0};
    t.x[0][0] = bf16(0x1p24f);
    t.x[0][1] = t.x[0][3] = bf16(1);
    t.w[0][0][0] = t.w[0][0][1] = t.w[1][0][1] = bf16(1);
    stand_in(&t, 1, 2);
    assert_true(t.sums[0][0] == 0x1p24f + 2);
    assert_true(one_pair(0x1p24f, 1, 1, 1, 1) == 0x1p24f); /* a tie to even, twice */
}

static void test_denormals(void **state) {
    (void)state;
    assert_true(one_pair(0x1p-127f, 0, 0x1p100f, 0, 0) == 0);         /* an operand */
    assert_true(one_pair(0x1p-70f, 0, 0x1p-60f, 0, 0) == 0);          /* a product */
    assert_true(one_pair(0, 0, 0, 0, 0x1p-127f) == 0);                /* the sum that was there */
    assert_true(one_pair(0x1p-63f, 0, 0x1p-63f, 0, 0) == 0x1p-126f);  /* the smallest that is kept */
    assert_true(isnan(one_pair(INFINITY, 0, 0, 0, 1)));
    assert_true(one_pair(-INFINITY, 0, 1, 0, 1) == -INFINITY);
}

/* Signed times unsigned bytes, at the ends of their ranges; other rows and columns stay. */
static void test_bytes(void **state) {
    (void)state;
    byte_tiles t = {0};
    int32_t want = 7;
    for (int k = 0; k < BYTES; k++) {
        t.x[3][k] = (signed char)(k % 2 == 0 ? -128 : k);
        t.w[k / 4][5][k % 4] = (unsigned char)(k % 3 == 0 ? 255 : k);
        want += t.x[3][k] * t.w[k / 4][5][k % 4];
    }
    t.sums[3][5] = 7;
    stand_in_bytes(&t, ROWS, BYTES / 4);
    assert_int_equal(t.sums[3][5], want);
    assert_true(t.sums[3][4] == 0 && t.sums[4][5] == 0);
}

#if defined(__x86_64__)
__attribute__((target("amx-tile,amx-bf16"))) static void hardware(tiles *t, int rows, int pairs) {
    unsigned char config[64];
    const int64_t stride = BYTES;
    make_config(config, rows, pairs);
    __asm__ volatile("ldtilecfg (%0)\n\t"
                     "tileloadd (%1,%4,1), %%tmm0\n\t"
                     "tileloadd (%2,%4,1), %%tmm4\n\t"
                     "tileloadd (%3,%4,1), %%tmm6\n\t"
                     "tdpbf16ps %%tmm6, %%tmm4, %%tmm0\n\t"
                     "tilestored %%tmm0, (%1,%4,1)\n\t"
                     "tilerelease"
                     :
                     : "r"(config), "r"(t->sums), "r"(t->x), "r"(t->w), "r"(stride)
                     : "memory");
}

__attribute__((target("amx-tile,amx-int8"))) static void hardware_bytes(byte_tiles *t, int rows, int quads) {
    unsigned char config[64];
    const int64_t stride = BYTES;
    make_config(config, rows, quads);
    __asm__ volatile("ldtilecfg (%0)\n\t"
                     "tileloadd (%1,%4,1), %%tmm0\n\t"
                     "tileloadd (%2,%4,1), %%tmm4\n\t"
                     "tileloadd (%3,%4,1), %%tmm6\n\t"
                     "tdpbsud %%tmm6, %%tmm4, %%tmm0\n\t"
                     "tilestored %%tmm0, (%1,%4,1)\n\t"
                     "tilerelease"
                     :
                     : "r"(config), "r"(t->sums), "r"(t->x), "r"(t->w), "r"(stride)
                     : "memory");
}

static uint64_t draw(uint64_t *state) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

/* Exponents within `spread` of 1, either sign. */
static uint16_t draw_bf16(uint64_t *state, int spread) {
    const int exponent = 127 - spread + (int)(draw(state) % (uint64_t)(2 * spread + 1));
    return (uint16_t)(draw(state) % 2 << 15 | (uint64_t)exponent << 7 | draw(state) % 128);
}

static void fill(tiles *t, int spread, uint64_t *state) {
    for (int i = 0; i < ROWS * K; i++) {
        t->x[i / K][i % K] = draw_bf16(state, spread);
        t->w[i / K][i / 2 % COLUMNS][i % 2] = draw_bf16(state, spread);
    }
    for (int i = 0; i < ROWS * COLUMNS; i++) {
        const uint32_t bits = (uint32_t)draw_bf16(state, spread) << 16 | (uint32_t)(draw(state) & 0xffff);
        memcpy(&t->sums[i / COLUMNS][i % COLUMNS], &bits, sizeof bits);
    }
}

static void test_hardware(void **state) {
    (void)state;
    static const int spreads[] = {2, 12, 60, 126};
    uint64_t seed = 1;
    if (!rft__isa_available("amx")) {
        print_message("skipped: this machine has no tiles (%s)\n", rft__cpu_isa_missing());
        skip();
    }
    for (int i = 0; i < 4000; i++) {
        tiles a, b;
        fill(&a, spreads[i % 4], &seed);
        b = a;
        const int rows = 1 + i % ROWS, pairs = 1 + i / 16 % (K / 2);
        stand_in(&a, rows, pairs);
        hardware(&b, rows, pairs);
        assert_memory_equal(a.sums, b.sums, sizeof a.sums);
    }
}

static void test_hardware_bytes(void **state) {
    (void)state;
    uint64_t seed = 2;
    if (!rft__isa_available("amx")) {
        skip();
    }
    for (int i = 0; i < 4000; i++) {
        byte_tiles a, b;
        for (size_t at = 0; at < sizeof a; at++) {
            ((unsigned char *)&a)[at] = (unsigned char)draw(&seed);
        }
        b = a;
        const int rows = 1 + i % ROWS, quads = 1 + i / 16 % (BYTES / 4);
        stand_in_bytes(&a, rows, quads);
        hardware_bytes(&b, rows, quads);
        assert_memory_equal(a.sums, b.sums, sizeof a.sums);
    }
}
#else
static void test_hardware(void **state) {
    (void)state;
    skip();
}

static void test_hardware_bytes(void **state) {
    (void)state;
    skip();
}
#endif

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pairs),
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_denormals),
        cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_hardware),
        cmocka_unit_test(test_hardware_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
