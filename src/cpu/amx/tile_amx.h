/* SPDX-License-Identifier: Apache-2.0
 *
 * tile_amx.h - the tile instructions, one a macro, and the copy that pads a tail. Included by the files of this folder; the unit
 * tests take its guard and stand in with plain C (tests/unit/amx_standin.h).
 * The number of a tile is part of the instruction, hence macros. Each is a barrier to the compiler, which knows neither that a
 * load reads memory (gcc's own intrinsics do not tell it) nor which registers there are.
 */
#ifndef RFT_CPU_AMX_TILE_AMX_H
#define RFT_CPU_AMX_TILE_AMX_H

#include <immintrin.h>
#include <stdint.h>

#define RFT_TILE_CONFIGURE(p)      __asm__ volatile("ldtilecfg %0" : : "m"(*(const char(*)[64])(p)) : "memory")
#define RFT_TILE_CONFIG_READ(p)    __asm__ volatile("sttilecfg %0" : "=m"(*(char(*)[64])(p)) : : "memory")
#define RFT_TILE_RELEASE()         __asm__ volatile("tilerelease" : : : "memory")
#define RFT_TILE_ZERO(t)           __asm__ volatile("tilezero %%tmm" #t : : : "memory")
#define RFT_TILE_LOAD(t, p, bytes) \
    __asm__ volatile("tileloadd (%0,%1,1), %%tmm" #t : : "r"(p), "r"((int64_t)(bytes)) : "memory")
#define RFT_TILE_STORE(t, p, bytes) \
    __asm__ volatile("tilestored %%tmm" #t ", (%0,%1,1)" : : "r"(p), "r"((int64_t)(bytes)) : "memory")
/* sums += x * w, of pairs of bf16 */
#define RFT_TILE_DOT_BF16(sums, x, w) __asm__ volatile("tdpbf16ps %%tmm" #w ", %%tmm" #x ", %%tmm" #sums : : : "memory")
/* The same in int32, of four signed bytes of x and unsigned ones of w. */
#define RFT_TILE_DOT_I8(sums, x, w)   __asm__ volatile("tdpbsud %%tmm" #w ", %%tmm" #x ", %%tmm" #sums : : : "memory")

/* The first `bytes` (even) of 64, the rest zero; reads no more. */
static inline void rft__tile_pad(void *dst, const void *src, int bytes) {
    _mm512_store_si512(dst, _mm512_maskz_loadu_epi16((__mmask32)((UINT64_C(1) << (bytes / 2)) - 1), src));
}

#endif
