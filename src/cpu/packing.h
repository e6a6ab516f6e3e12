/* SPDX-License-Identifier: Apache-2.0
 *
 * packing.h - where codes and scales of a low-bit W lie in its panels; docs/formats/packed-weight.md is the specification.
 * cpu_pack.c writes panels by it, the kernels of codes read them.
 *
 *     panel   chunks of 256 k, the last one shorter, of 16 columns
 *     chunk   head: scales, then minima or zero points; a multiple of 64 bytes
 *             blocks of 32 k: bits * 64 bytes each, vectors of a dword a column
 */
#ifndef RFT_CPU_PACKING_H
#define RFT_CPU_PACKING_H

#include "base/alloc.h"
#include "format/quant.h"

enum { RFT__CHUNK = 256, RFT__BLOCK = 32, RFT__SLICE = 8, RFT__CHUNK_SCALES = RFT__CHUNK / RFT__SLICE, RFT__COLUMNS = 16 };
enum { RFT__LEAST_SUM = 16, RFT__MOST_SUM = RFT__CHUNK }; /* k of a sum in 8 bits */
enum { RFT__MOST_ONE_SUM = 65536 }; /* k of one that goes over all of them: 255 * 128 * k < 2^31 */

/* A code that is a float: shifted to bits 24..31 and from there arithmetically right by `shift`, it has its fields where an f32
 * has them, in the bits `keep`; as such it means value / unit. Bits `exponent` all set are NaN or Inf. */
typedef struct rft__f8 {
    int32_t shift, keep, exponent;
    int finite; /* the largest code without sign that is no NaN or Inf */
    float unit;
} rft__f8;

/* E4M3, else E5M2. */
static inline rft__f8 rft__f8_of(bool e4m3) {
    return e4m3 ? (rft__f8){4, (int32_t)0x87f00000u, 0x07f00000, 0x7e, 0x1p120f}
                : (rft__f8){3, (int32_t)0x8fe00000u, 0x0f800000, 0x7b, 0x1p112f};
}

typedef struct rft__packing {
    rft_type type;
    int bits;
    rft__scale_kind scale;
    rft__offset_kind offset;
    int step;        /* k of a scale in the panel: 8, 16, 32, 64, 128 or 256 */
    int step_shift;  /* step = 8 << step_shift */
    int bias;        /* value(code) = code - bias, or lut[code] where bits are 4 */
    float lut[16];
    rft__f8 f8; /* OFFSET_FLOAT */
    /* For products in 8 bits: value(code) * scale = (u - i8_bias) * i8_factor * scale, with u = code or i8_table[code], which is
     * code where there is no table. */
    bool i8_exact;           /* there are such numbers */
    bool has_table, i8_wide; /* wide: some u are above 127 */
    int i8_bias;
    float i8_factor;
    unsigned char i8_table[16];
    int x_group; /* k of X that are rounded to 8 bits by one scale: 32, or 64, 128 or 256 where a step has as many */
    bool one_sum; /* a scale of W and one of X serve all k: products in 8 bits add up in int32 and are scaled once */
} rft__packing;

static inline int64_t rft__packing_scales(const rft__packing *p, int64_t k) { return (k + p->step - 1) >> (3 + p->step_shift); }

static inline bool rft__packing_has_global(rft__scale_kind kind) {
    return kind == RFT__SCALE_E4M3_TIMES || kind == RFT__SCALE_E4M3_OVER;
}

static inline int64_t rft__packing_scale_bytes(rft__scale_kind kind) {
    return kind == RFT__SCALE_F32 ? 4 : kind == RFT__SCALE_F16 || kind == RFT__SCALE_BF16 ? 2 : 1;
}

/* Of a chunk that holds k, 1..256. */
static inline int64_t rft__packing_head_bytes(const rft__packing *p, int64_t k) {
    const int64_t n = rft__packing_scales(p, k) * RFT__COLUMNS, one = rft__packing_scale_bytes(p->scale);
    const int64_t with_minimum = p->offset == RFT__OFFSET_MINIMUM ? 2 : 1;
    const int64_t super = p->scale == RFT__SCALE_SUPER ? 2 * RFT__COLUMNS * with_minimum : 0;
    const int64_t global = rft__packing_has_global(p->scale) ? 4 * RFT__COLUMNS : 0;
    const int64_t zeros = p->offset == RFT__OFFSET_ZERO ? 2 * n : 0;
    return rft__round_up(super + global + n * one * with_minimum + zeros, 64);
}

/* k that products in 8 bits sum in int32 before they are scaled: they share a scale of W and one of X. */
static inline int rft__packing_sum(const rft__packing *p) { return p->step < p->x_group ? p->step : p->x_group; }

static inline int64_t rft__packing_block_bytes(const rft__packing *p) { return 64 * (int64_t)p->bits; }

static inline int64_t rft__packing_chunk_bytes(const rft__packing *p, int64_t k) {
    return k == 0 ? 0 : rft__packing_head_bytes(p, k) + rft__ceil_div(k, RFT__BLOCK) * rft__packing_block_bytes(p);
}

/* Of a panel over k; also where the chunk that begins at k lies, when k is a multiple of 256. */
static inline int64_t rft__packing_bytes(const rft__packing *p, int64_t k) {
    return k / RFT__CHUNK * rft__packing_chunk_bytes(p, RFT__CHUNK) + rft__packing_chunk_bytes(p, k % RFT__CHUNK);
}

/* Sums of a chunk; whole blocks are summed. */
static inline int64_t rft__packing_sums(const rft__packing *p, int64_t k) {
    return rft__ceil_div(rft__round_up(k, RFT__BLOCK), rft__packing_sum(p));
}

/* Of a panel of a strip over k (rft__unpack_fn): a chunk's scales and offsets, and all chunks. */
static inline int64_t rft__strip_head_bytes(const rft__packing *p, int64_t k) {
    return rft__packing_sums(p, k) * RFT__COLUMNS * (p->offset != RFT__OFFSET_NONE ? 8 : 4);
}

static inline int64_t rft__strip_chunk_bytes(const rft__packing *p, int64_t k) {
    return k == 0 ? 0 : rft__strip_head_bytes(p, k) + rft__round_up(k, RFT__BLOCK) * RFT__COLUMNS;
}

static inline int64_t rft__strip_bytes(const rft__packing *p, int64_t k) {
    return k / RFT__CHUNK * rft__strip_chunk_bytes(p, RFT__CHUNK) + rft__strip_chunk_bytes(p, k % RFT__CHUNK);
}

#endif
