/* SPDX-License-Identifier: Apache-2.0
 *
 * test_avxvnni.c - the stand-in of vpdpbusd says what the instruction means: the sums of its definition everywhere, and the same
 * bits as the instruction where this machine has it, as VEX (AVX-VNNI) or as EVEX (AVX512-VNNI and VL).
 */
#if defined(__x86_64__)
#include "avxvnni_standin.h"
#endif

#include "cpu/cpuid.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <string.h>

#if defined(__x86_64__)
enum { WORDS = 8, ROUNDS = 4000 };

typedef struct operands {
    uint32_t sum[WORDS];
    unsigned char q[4 * WORDS];
    signed char x[4 * WORDS];
} operands;

#define WITH(target_name, name, operation)                                                                             \
    __attribute__((target(target_name))) static void name(operands *o) {                                               \
        __m256i sum = _mm256_loadu_si256((const void *)o->sum), q = _mm256_loadu_si256((const void *)o->q);            \
        const __m256i x = _mm256_loadu_si256((const void *)o->x);                                                      \
        operation;                                                                                                     \
        _mm256_storeu_si256((void *)o->sum, sum);                                                                      \
    }
WITH("avx2", stand_in, sum = rft__vpdpbusd(sum, q, x))
WITH("avx2", by_vex, __asm__("%{vex%} vpdpbusd %2, %1, %0" : "+x"(sum) : "x"(q), "x"(x)))
WITH("avx2", by_evex, __asm__("%{evex%} vpdpbusd %2, %1, %0" : "+x"(sum) : "x"(q), "x"(x)))

static uint64_t draws = 1;

static uint32_t draw(void) {
    draws = draws * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(draws >> 32);
}

/* Any bytes; now and then the extremes, which saturate in 16 bits. */
static void fill(operands *o, int round) {
    for (int i = 0; i < 4 * WORDS; i++) {
        o->q[i] = round % 4 == 0 ? 255 : (unsigned char)draw();
        o->x[i] = (signed char)(round % 8 == 0 ? -128 : round % 8 == 4 ? 127 : (int)(draw() & 255) - 128);
    }
    for (int i = 0; i < WORDS; i++) {
        o->sum[i] = draw();
    }
}

static void by_definition(operands *o) {
    for (int i = 0; i < 4 * WORDS; i++) {
        o->sum[i / 4] += (uint32_t)(o->q[i] * o->x[i]);
    }
}

static void compare(void (*one)(operands *), void (*other)(operands *)) {
    for (int round = 0; round < ROUNDS; round++) {
        operands a, b;
        fill(&a, round);
        b = a;
        one(&a);
        other(&b);
        assert_memory_equal(a.sum, b.sum, sizeof a.sum);
    }
}

static void test_definition(void **state) {
    (void)state;
    if (!rft__isa_available("avx2")) {
        skip();
    }
    compare(by_definition, stand_in);
}

static void test_vex(void **state) {
    (void)state;
    if (!rft__isa_available("avx2vnni")) {
        print_message("skipped: this machine lacks AVX-VNNI\n");
        skip();
    }
    compare(by_vex, stand_in);
}

static void test_evex(void **state) {
    (void)state;
    if (!rft__isa_available("avx512")) {
        print_message("skipped: this machine lacks AVX512-VNNI\n");
        skip();
    }
    compare(by_evex, stand_in);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_definition),
        cmocka_unit_test(test_vex),
        cmocka_unit_test(test_evex),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
#else
int main(void) { return 0; }
#endif
