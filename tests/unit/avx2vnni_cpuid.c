/* SPDX-License-Identifier: Apache-2.0
 *
 * avx2vnni_cpuid.c - the detection of levels over this machine's CPUID with the bit of AVX-VNNI set, for programs that have the
 * level over a stand-in.
 */
#include <cpuid.h>
#include <stdint.h>

static int with_avxvnni(uint32_t leaf, uint32_t sub, uint32_t *a, uint32_t *b, uint32_t *c, uint32_t *d) {
    const int known = __get_cpuid_count(leaf, sub, a, b, c, d);
    if (leaf == 7 && sub == 0 && *a == 0) {
        *a = 1; /* there is a subleaf 1 */
    }
    if (leaf == 7 && sub == 1) {
        *a |= bit_AVXVNNI;
    }
    return known;
}

#define __get_cpuid_count with_avxvnni
#include "cpu/cpuid.c"
