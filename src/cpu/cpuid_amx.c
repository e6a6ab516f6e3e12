/* SPDX-License-Identifier: Apache-2.0
 *
 * cpuid_amx.c - whether AMX runs here, which takes more than a feature bit: the shape of the tiles (leaves 1Dh and 1Eh), a system
 * that saves them (XCR0), and its permission, since a process does not have the 8 KiB of state unless it asks. A virtual machine
 * may lack any of these and show the others. Called once a process by cpuid.c. Unit tests replace this file.
 */
#define _GNU_SOURCE 1
#include "cpu/cpuid.h"

#if defined(__x86_64__) && defined(__linux__)
#include <cpuid.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    GET_PERMITTED = 0x1022, /* arch_prctl: ARCH_GET_XCOMP_PERM, ARCH_REQ_XCOMP_PERM; libc has no name for them */
    ASK = 0x1023,
    TILE_CONFIG = 17, /* components of the state that XSAVE saves */
    TILE_DATA = 18
};

static uint64_t saved_components(void) {
    uint32_t a = 0, b = 0, c = 0, d = 0, low = 0, high = 0;
    if (__get_cpuid(1, &a, &b, &c, &d) && (c & bit_OSXSAVE)) {
        __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    }
    return (uint64_t)high << 32 | low;
}

/* Tile, bf16 and int8: all parts with AMX so far have the three. */
static bool has_instructions(void) {
    const uint32_t need = 1u << 22 | 1u << 24 | 1u << 25;
    uint32_t a = 0, b = 0, c = 0, d = 0;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d & need) == need;
}

/* Palette 1 as the kernels use it: 8 tiles of 16 rows of 64 bytes; products of up to 16 rows and 64 bytes of W. */
static bool has_shape(void) {
    uint32_t palettes = 0, bytes = 0, row_names = 0, rows = 0, unused = 0, product = 0, c = 0, d = 0;
    if (!__get_cpuid_count(0x1d, 0, &palettes, &unused, &c, &d) || palettes < 1 ||
        !__get_cpuid_count(0x1d, 1, &bytes, &row_names, &rows, &d) ||
        !__get_cpuid_count(0x1e, 0, &unused, &product, &c, &d)) {
        return false;
    }
    return (bytes & 0xffff) >= 8192 && bytes >> 16 >= 1024 && (row_names & 0xffff) >= 64 && row_names >> 16 >= 8 &&
           (rows & 0xffff) >= 16 && (product & 0xff) >= 16 && (product >> 8 & 0xffff) >= 64;
}

static const char *refusal(int number) {
    static char text[128];
    snprintf(text, sizeof text, "the system gives no permission for tiles (arch_prctl: %s)", strerrordesc_np(number));
    return text;
}

/* It makes the signal frames of the process larger for good. */
static const char *ask(void) {
    unsigned long permitted = 0;
    if (syscall(SYS_arch_prctl, ASK, TILE_DATA) != 0) {
        return refusal(errno);
    }
    if (syscall(SYS_arch_prctl, GET_PERMITTED, &permitted) != 0 || !(permitted >> TILE_DATA & 1)) {
        return "the system gives permission for tiles and does not stand by it (arch_prctl)";
    }
    return NULL;
}

const char *rft__amx_missing(void) {
    if (!has_instructions()) {
        return "the CPU lacks AMX tile, bf16 or int8 (CPUID 7, EDX bits 24, 22, 25)";
    }
    if (!has_shape()) {
        return "the CPU, or the virtual machine, does not tell of 8 tiles of 16 x 64 bytes (CPUID 1Dh, 1Eh)";
    }
    if ((saved_components() >> TILE_CONFIG & 3) != 3) {
        return "the system does not save tiles (XCR0 bits 17 and 18)";
    }
    return ask();
}
#else
const char *rft__amx_missing(void) { return "this system's way to permit tiles is not known"; }
#endif
