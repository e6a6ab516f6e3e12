/* SPDX-License-Identifier: Apache-2.0
 *
 * test_cpuid.c - which levels run on machines of several kinds, by their feature bits: some have AVX-VNNI without AVX-512, some
 * AVX-512 without AVX-VNNI, some both.
 */
#include "cpu/cpuid.c"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdlib.h>

#if defined(__x86_64__)
enum { AVX = bit_AVX | bit_FMA | bit_F16C, WIDE = bit_AVX512F | bit_AVX512BW | bit_AVX512DQ | bit_AVX512VL };

static const features haswell = {AVX, bit_AVX2, 0, 0, 0x7}, alder_lake = {AVX, bit_AVX2, 0, bit_AVXVNNI, 0x7},
                      skylake_x = {AVX, bit_AVX2 | WIDE, 0, 0, 0xe7},
                      ice_lake = {AVX, bit_AVX2 | WIDE, bit_AVX512VNNI, 0, 0xe7},
                      zen4 = {AVX, bit_AVX2 | WIDE, bit_AVX512VNNI, bit_AVX512BF16, 0xe7},
                      zen5 = {AVX, bit_AVX2 | WIDE, bit_AVX512VNNI, bit_AVX512BF16 | bit_AVXVNNI, 0xe7},
                      zen5_without_zmm = {AVX, bit_AVX2 | WIDE, bit_AVX512VNNI, bit_AVX512BF16 | bit_AVXVNNI, 0x7},
                      without_ymm = {AVX, bit_AVX2, 0, bit_AVXVNNI, 0x3}, old = {0};

const char *rft__amx_missing(void) { return "none is faked"; }

/* highest, what of the levels up to it runs, and what stands in the way of the next. */
static void expect(const features *f, const char *highest, bool avx2vnni, const char *missing) {
    pthread_once(&here_once, find_here);
    find_among(f);
    assert_string_equal(levels[rft__isa_here()]->name, highest);
    assert_int_equal(rft__isa_available("avx2vnni"), avx2vnni);
    assert_non_null(strstr(rft__cpu_isa_missing(), missing));
    for (int level = 0; level < rft__isa_here(); level++) {
        assert_true(rft__isa_runs(level) || (level == rft__isa_find("avx2vnni") && !avx2vnni));
    }
}

static void test_machines(void **state) {
    (void)state;
    expect(&old, "ref", false, "avx2: the CPU lacks AVX2");
    expect(&without_ymm, "ref", false, "avx2: the system does not save ymm");
    expect(&haswell, "avx2", false, "avx2vnni: the CPU lacks AVX-VNNI");
    expect(&alder_lake, "avx2vnni", true, "avx512: the CPU lacks");
    expect(&skylake_x, "avx2", false, "avx2vnni: the CPU lacks AVX-VNNI");
    expect(&ice_lake, "avx512", false, "avx512bf16: the CPU lacks");
    expect(&zen4, "avx512bf16", false, "amx: none is faked");
    expect(&zen5, "avx512bf16", true, "amx: none is faked");
    expect(&zen5_without_zmm, "avx2vnni", true, "avx512: the system does not save zmm");
}

static void cap(const features *f, const char *to, const char *used, const char *missing) {
    find_among(f);
    setenv("RFT_MAX_ISA", to, 1);
    assert_string_equal(levels[rft__isa_cap(to)]->name, used);
    assert_string_equal(rft__cpu_isa_here(), used);
    assert_string_equal(rft__cpu_isa_missing(), missing);
    unsetenv("RFT_MAX_ISA");
}

static void test_caps(void **state) {
    (void)state;
    cap(&zen4, "avx2vnni", "avx2", "avx512: above RFT_MAX_ISA");
    cap(&zen5, "avx2vnni", "avx2vnni", "avx512: above RFT_MAX_ISA");
    cap(&zen4, "avx2", "avx2", "avx512: above RFT_MAX_ISA");
    cap(&zen5, "avx2", "avx2", "avx2vnni: above RFT_MAX_ISA");
    cap(&alder_lake, "amx", "avx2vnni", "avx512: the CPU lacks AVX-512 F, BW, DQ, VL or VNNI");
    assert_int_equal(rft__isa_cap("avx9000"), -1);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_machines), cmocka_unit_test(test_caps)};
    unsetenv("RFT_MAX_ISA");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
#else
int main(void) { return 0; }
#endif
