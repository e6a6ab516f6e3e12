/* SPDX-License-Identifier: Apache-2.0
 *
 * tile_family.h - makes all register tiles of a family from one inline body: tile_<type>(rows, panels, ...) with constant
 * counts. For the ISA folders only; each says how many rows fit beside 1, 2, 3 and 4 panels.
 */
#ifndef RFT_CPU_TILE_FAMILY_H
#define RFT_CPU_TILE_FAMILY_H

#include "cpu/cpu_kernel.h"

/* Full unrolling keeps the accumulators in registers. */
#if defined(__clang__)
#define RFT_UNROLL _Pragma("clang loop unroll(full)")
#else
#define RFT_UNROLL _Pragma("GCC unroll 32")
#endif
#define RFT_INLINE static inline __attribute__((always_inline))
/* Keeps the compiler from hoisting the loads below above the work before, which would spill. */
#define RFT_NO_HOIST() __asm__ volatile("" ::: "memory")

/* F(type, panels, rows) for every tile of at most that many rows. */
#define RFT_ROWS_0(F, t, p)
#define RFT_ROWS_1(F, t, p) F(t, p, 1)
#define RFT_ROWS_2(F, t, p) RFT_ROWS_1(F, t, p) F(t, p, 2)
#define RFT_ROWS_3(F, t, p) RFT_ROWS_2(F, t, p) F(t, p, 3)
#define RFT_ROWS_4(F, t, p) RFT_ROWS_3(F, t, p) F(t, p, 4)
#define RFT_ROWS_5(F, t, p) RFT_ROWS_4(F, t, p) F(t, p, 5)
#define RFT_ROWS_6(F, t, p) RFT_ROWS_5(F, t, p) F(t, p, 6)
#define RFT_ROWS_8(F, t, p) RFT_ROWS_6(F, t, p) F(t, p, 7) F(t, p, 8)
#define RFT_ROWS_9(F, t, p) RFT_ROWS_8(F, t, p) F(t, p, 9)
#define RFT_ROWS_14(F, t, p) RFT_ROWS_9(F, t, p) F(t, p, 10) F(t, p, 11) F(t, p, 12) F(t, p, 13) F(t, p, 14)
#define RFT_ROWS_16(F, t, p) RFT_ROWS_14(F, t, p) F(t, p, 15) F(t, p, 16)
#define RFT_ROWS_20(F, t, p) \
    RFT_ROWS_16(F, t, p) F(t, p, 17) F(t, p, 18) F(t, p, 19) F(t, p, 20)
#define RFT_ROWS_24(F, t, p) RFT_ROWS_20(F, t, p) F(t, p, 21) F(t, p, 22) F(t, p, 23) F(t, p, 24)
#define RFT_ROWS_28(F, t, p) RFT_ROWS_24(F, t, p) F(t, p, 25) F(t, p, 26) F(t, p, 27) F(t, p, 28)

#define RFT_TILE_FUNCTION(type, p, r)                                                                                            \
    static void tile_##type##_##r##x##p(int64_t k, const void *x, const void *w, size_t w_stride, float *acc, bool accumulate,   \
                                        const rft__ahead *ahead) {                                                               \
        tile_##type(r, p, k, x, w, w_stride, acc, accumulate, ahead);                                                            \
    }
#define RFT_TILE_ENTRY(type, p, r) tile_##type##_##r##x##p,

/* rows1..rows4: the most rows beside 1..4 panels, from the list above. */
#define RFT_FAMILY(symbol, type, rows1, rows2, rows3, rows4)      \
    RFT_ROWS_##rows1(RFT_TILE_FUNCTION, type, 1)                  \
    RFT_ROWS_##rows2(RFT_TILE_FUNCTION, type, 2)                  \
    RFT_ROWS_##rows3(RFT_TILE_FUNCTION, type, 3)                  \
    RFT_ROWS_##rows4(RFT_TILE_FUNCTION, type, 4)                  \
    const rft__family symbol = {{                                 \
        {RFT_ROWS_##rows1(RFT_TILE_ENTRY, type, 1)},              \
        {RFT_ROWS_##rows2(RFT_TILE_ENTRY, type, 2)},              \
        {RFT_ROWS_##rows3(RFT_TILE_ENTRY, type, 3)},              \
        {RFT_ROWS_##rows4(RFT_TILE_ENTRY, type, 4)},              \
    }};

/* The same for kernels that read W where it lies: direct_<type>(rows, panels, ...). */
#define RFT_DIRECT_FUNCTION(type, p, r)                                                                       \
    static void direct_##type##_##r##x##p(int64_t k, const void *x, int64_t x_stride, const rft__w_lines *w,  \
                                          const rft__w_lines *ahead, float *acc, bool accumulate)             \
    {                                                                                                         \
        direct_##type(r, p, k, x, x_stride, w, ahead, acc, accumulate);                                       \
    }
#define RFT_DIRECT_ENTRY(type, p, r) direct_##type##_##r##x##p,

#define RFT_DIRECT_FAMILY(symbol, type, rows1, rows2, rows3, rows4) \
    RFT_ROWS_##rows1(RFT_DIRECT_FUNCTION, type, 1)                  \
    RFT_ROWS_##rows2(RFT_DIRECT_FUNCTION, type, 2)                  \
    RFT_ROWS_##rows3(RFT_DIRECT_FUNCTION, type, 3)                  \
    RFT_ROWS_##rows4(RFT_DIRECT_FUNCTION, type, 4)                  \
    const rft__direct_family symbol = {{                            \
        {RFT_ROWS_##rows1(RFT_DIRECT_ENTRY, type, 1)},              \
        {RFT_ROWS_##rows2(RFT_DIRECT_ENTRY, type, 2)},              \
        {RFT_ROWS_##rows3(RFT_DIRECT_ENTRY, type, 3)},              \
        {RFT_ROWS_##rows4(RFT_DIRECT_ENTRY, type, 4)},              \
    }};

#endif
