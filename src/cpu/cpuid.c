/* SPDX-License-Identifier: Apache-2.0
 *
 * cpuid.c - detection of ISA levels. Built with baseline flags so that it cannot itself fault. See cpuid.h.
 */
#include "cpu/cpuid.h"

#include "base/env.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>

typedef struct features {
    uint32_t leaf1_ecx, leaf7_ebx, leaf7_ecx, leaf7_1_eax;
    uint64_t xcr0;
} features;

static features read_features(void) {
    features f = {0};
    uint32_t a = 0, b = 0, c = 0, d = 0;
    if (__get_cpuid(1, &a, &b, &f.leaf1_ecx, &d) && (f.leaf1_ecx & bit_OSXSAVE)) {
        uint32_t low = 0, high = 0;
        __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
        f.xcr0 = (uint64_t)high << 32 | low;
    }
    if (__get_cpuid_count(7, 0, &a, &f.leaf7_ebx, &f.leaf7_ecx, &d) && a >= 1) {
        __get_cpuid_count(7, 1, &f.leaf7_1_eax, &b, &c, &d);
    }
    return f;
}

static const char *missing_avx2(const features *f) {
    const uint32_t need1 = bit_AVX | bit_FMA | bit_F16C;
    if ((f->leaf1_ecx & need1) != need1 || !(f->leaf7_ebx & bit_AVX2)) {
        return "the CPU lacks AVX2, FMA or F16C";
    }
    return (f->xcr0 & 0x6) == 0x6 ? NULL : "the system does not save ymm registers (XCR0)";
}

static const char *missing_avx2vnni(const features *f) {
    return f->leaf7_1_eax & bit_AVXVNNI ? NULL : "the CPU lacks AVX-VNNI";
}

/* F, BW, DQ, VL and VNNI: Cascade Lake on. */
static const char *missing_avx512(const features *f) {
    const uint32_t need = bit_AVX512F | bit_AVX512BW | bit_AVX512DQ | bit_AVX512VL;
    if ((f->leaf7_ebx & need) != need || !(f->leaf7_ecx & bit_AVX512VNNI)) {
        return "the CPU lacks AVX-512 F, BW, DQ, VL or VNNI";
    }
    return (f->xcr0 & 0xe6) == 0xe6 ? NULL : "the system does not save zmm registers (XCR0)";
}

static const char *missing_avx512bf16(const features *f) {
    return f->leaf7_1_eax & bit_AVX512BF16 ? NULL : "the CPU lacks AVX-512 BF16";
}
#else
typedef struct features {
    int none;
} features;

static features read_features(void) { return (features){0}; }
#endif

#define ISA(name, below, missing) extern const rft__isa rft__isa_##name;
#include "cpu/isa.def"
#undef ISA

static const rft__isa *const levels[] = {
#define ISA(name, below, missing) &rft__isa_##name,
#include "cpu/isa.def"
#undef ISA
};

int rft__isa_count(void) { return (int)(sizeof levels / sizeof *levels); }

const rft__isa *rft__isa_at(int level) { return levels[level]; }

int rft__isa_find(const char *name) {
    for (int i = 0; i < rft__isa_count(); i++) {
        if (strcmp(levels[i]->name, name) == 0) {
            return i;
        }
    }
    return -1;
}

static uint32_t here; /* a bit for each level that runs */
static char here_missing[192]; /* what keeps the next level away, or empty */
static pthread_once_t here_once = PTHREAD_ONCE_INIT;

static bool is_here(int level) { return here >> level & 1; }

/* A level of which that is missing. What stands in here_missing at the end is of the first above all that run. */
static void judge(int level, const char *missing) {
    if (missing == NULL) {
        here |= 1u << level;
        here_missing[0] = '\0';
    } else if (here_missing[0] == '\0') {
        snprintf(here_missing, sizeof here_missing, "%s: %s", levels[level]->name, missing);
    }
}

static void find_among(const features *f) {
    (void)f;
    here = 0;
    here_missing[0] = '\0';
#define ISA(name, below, missing)                                    \
    if (#below[0] == '\0' || is_here(rft__isa_find(#below))) {       \
        judge(rft__isa_find(#name), missing);                        \
    }
#include "cpu/isa.def"
#undef ISA
}

/* CPUID leaves a virtual machine each time, and every kernel query asks: so once a process. */
static void find_here(void) {
    const features f = read_features();
    find_among(&f);
}

bool rft__isa_runs(int level) {
    pthread_once(&here_once, find_here);
    return is_here(level);
}

/* The highest that runs, of those up to `most`. */
static int highest_to(int most) {
    int level = most;
    while (level > 0 && !rft__isa_runs(level)) {
        level--;
    }
    return level;
}

int rft__isa_here(void) { return highest_to(rft__isa_count() - 1); }

bool rft__isa_available(const char *name) {
    const int level = rft__isa_find(name);
    return level >= 0 && rft__isa_runs(level);
}

int rft__isa_cap(const char *cap) {
    const char *name = cap != NULL ? cap : rft__env_text("RFT_MAX_ISA");
    return name == NULL ? rft__isa_here() : highest_to(rft__isa_find(name));
}

const char *rft__cpu_isa_built(void) {
    static const char with_comma[] = ""
#define ISA(name, below, missing) "," #name
#include "cpu/isa.def"
#undef ISA
        ;
    return &with_comma[1];
}

const char *rft__cpu_isa_here(void) {
    const int cap = rft__isa_cap(NULL);
    return levels[cap >= 0 ? cap : rft__isa_here()]->name;
}

const char *rft__cpu_isa_missing(void) {
    static const char *const capped[] = {
#define ISA(name, below, missing) #name ": above RFT_MAX_ISA",
#include "cpu/isa.def"
#undef ISA
    };
    const int highest = rft__isa_here(), cap = rft__isa_cap(NULL);
    int next = cap + 1;
    while (next < highest && !rft__isa_runs(next)) {
        next++;
    }
    return cap >= 0 && cap < highest ? capped[next] : here_missing;
}

void rft__cpu_name(char *buf, size_t cap) {
    char brand[49] = "unknown";
#if defined(__x86_64__)
    uint32_t *words = (uint32_t[12]){0};
    bool known = true;
    for (uint32_t i = 0; i < 3; i++) {
        known = known && __get_cpuid(0x80000002u + i, words + 4 * i, words + 4 * i + 1, words + 4 * i + 2, words + 4 * i + 3);
    }
    if (known) {
        memcpy(brand, words, 48);
        brand[48] = '\0';
    }
#endif
    const char *start = brand + strspn(brand, " ");
    size_t length = strlen(start);
    while (length > 0 && start[length - 1] == ' ') {
        length--;
    }
    snprintf(buf, cap, "%.*s", (int)length, start);
}
