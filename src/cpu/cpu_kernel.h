/* SPDX-License-Identifier: Apache-2.0
 *
 * cpu_kernel.h - the contract between the loops of cpu_gemm.c and the kernels of the ISA folders.
 *
 * Panels. W lives in panels of 16 columns, [ceil(k / KR)][16][KR] elements, zero-padded; X in panels of r <= MR rows,
 * [ceil(k / KR)][r][KR]. KR is 2 where one 32-bit lane holds two consecutive k (bf16), else 1.
 * Kernels of panels and of columns sum in ascending k, one chain an element, and an accumulating call goes on where the last
 * one stopped: so the bits of y depend on neither tiles, nor K blocks, nor threads. Kernels of rows sum k in many lanes.
 * Tile kernels sum KR of k at a time, in an order of their own, and then in ascending k: the same holds for them, as blocks of K
 * begin at multiples of the row's KR.
 * Panels of low-bit W hold codes and scales (packing.h). Kernels of codes make the stored weights of them in registers, to the
 * bit, and go on as above, or sum values times x over 32 k or fewer and scale that sum; those that multiply in 8 bits take X
 * rounded to 8 bits (rft__x8), and sum groups of k in int32.
 */
#ifndef RFT_CPU_CPU_KERNEL_H
#define RFT_CPU_CPU_KERNEL_H

#include "cpu/packing.h"
#include "epilogue/epi_tile.h"
#include "rooftile_analysis.h"

#include <math.h>
#include <stdbool.h>

enum { RFT__PANEL = RFT__EPI_SEGMENT, RFT__MAX_ROWS = RFT__EPI_MAX_ROWS, RFT__MAX_PANELS = RFT__EPI_MAX_SEGMENTS };

/* Packed W that a later call will read, to be fetched to L2 meanwhile: with every (mask + 1)-th 64 bytes of a W panel one line
 * of each panel at `w`, `stride` apart. It need not be readable. mask -1: hardly ever. */
typedef struct rft__ahead {
    const char *w;
    size_t stride;
    int64_t mask;
} rft__ahead;

/* One register tile over k (a multiple of KR, or the rest of a padded panel): acc[rows][16 * panels] (+)= x * w.
 * w_stride: bytes from one W panel to the next. */
typedef void rft__tile_fn(int64_t k, const void *x, const void *w, size_t w_stride, float *acc, bool accumulate,
                          const rft__ahead *ahead);

/* All register tiles of one pair of panel types on one ISA: tile[panels - 1][rows - 1], NULL beyond the register file. */
typedef struct rft__family {
    rft__tile_fn *tile[RFT__MAX_PANELS][RFT__MAX_ROWS];
} rft__family;

/* Products of whole tiles in registers that a thread must configure: rows <= MR of x, k-contiguous and x_stride bytes apart,
 * times panels of w. Any k; no element of x read but those described. */
typedef void rft__tiles_fn(int rows, int panels, int64_t k, const void *x, int64_t x_stride, const void *w, size_t w_stride,
                           float *acc, bool accumulate, const rft__ahead *ahead);

/* One register tile over panels of codes: acc[rows][16 * panels], acc_stride floats from row to row, (+)= x * w. k: as many as
 * there are; it starts at a multiple of 256. */
typedef void rft__codes_fn(const rft__packing *packing, int64_t k, const void *x, const char *w, size_t w_stride, float *acc,
                           int acc_stride, bool accumulate);

/* wide: for `panels` at once and few rows; one: for one panel, and as many rows as registers hold. NULL beyond. */
typedef struct rft__codes_family {
    int panels;
    rft__codes_fn *wide[RFT__MAX_ROWS], *one[RFT__MAX_ROWS];
} rft__codes_family;

/* X in 8 bits: 256 k of a row, the rest of a shorter chunk 0. Chunks of all rows lie side by side, those of the next k behind
 * them. scale: of each packing.x_group k. sum: what the kernel adds for each rft__packing_sum k, without offset the word
 * -i8_bias * (sum of codes), before a minimum the number scale * (sum of codes), before a zero point -(sum of codes); where
 * packing.one_sum is set the word of all codes of the row so far. */
typedef struct rft__x8 {
    signed char code[RFT__CHUNK];
    float scale[RFT__CHUNK / RFT__BLOCK];
    union {
        int32_t word;
        float real;
    } sum[RFT__CHUNK / RFT__LEAST_SUM];
    uint32_t unused[8]; /* rows begin at cache lines */
} rft__x8;

/* Lines that are fetched to L2 meanwhile, so many of each panel with every 32 k. They need not be readable. Beside panels of
 * codes w is laid out as those are, and the lines are of each block, from number `first` on, with number 0 the head as well;
 * beside strips and for tile registers lines follow each other, and first is 0. x, unless it is NULL: the records of these rows
 * over the k of the next pass, which tile registers fetch whole. */
typedef struct rft__fetch {
    const char *w;
    size_t stride;
    int first, lines;
    const rft__x8 *x;
} rft__fetch;

/* One register tile in 8 bits: acc[rows][16 * panels], acc_stride floats from row to row, (+)= x * w. x: rows side by side,
 * x_stride of them from chunk to chunk; w: panels of codes, or the strip that rft__unpack_fn made of them. k as above. Where
 * packing.one_sum is set acc holds words, the sums of bytes of W times codes of x, until rft__settle_fn makes them numbers. */
typedef void rft__codes8_fn(const rft__packing *packing, int64_t k, const rft__x8 *x, int64_t x_stride, const char *w,
                            size_t w_stride, float *acc, int acc_stride, bool accumulate, const rft__fetch *next);

/* The same of tile registers: rows <= MR, panels <= NR / 16. Fetches the lines of each panel whatever W's form. */
typedef void rft__tiles8_fn(int rows, int panels, const rft__packing *packing, int64_t k, const rft__x8 *x, int64_t x_stride,
                            const char *w, size_t w_stride, float *acc, int acc_stride, bool accumulate, const rft__fetch *next);

/* A family of tile registers has one of the two products. */
typedef struct rft__tiles {
    rft__tiles_fn *multiply;
    rft__tiles8_fn *multiply8;
    void (*leave)(void); /* a thread calls it behind its last product: gives the registers back as they were found */
} rft__tiles;

/* tile[panels - 1][rows - 1]; NULL where wider or narrower ones serve. One panel is always there. */
typedef struct rft__codes8_family {
    rft__codes8_fn *tile[RFT__MAX_PANELS][RFT__MAX_ROWS];
} rft__codes8_family;

/* How a kernel reads W. */
typedef enum rft__w_form {
    RFT__FORM_PANELS,
    RFT__FORM_TILES,  /* panels too, but X in rows */
    RFT__FORM_CODES,  /* panels of low-bit W */
    RFT__FORM_BYTES,  /* strips of low-bit W that are unpacked to bytes first */
    RFT__FORM_ROWS,   /* a K-contiguous W where it lies: each row of W times x */
    RFT__FORM_COLUMNS /* an MN-contiguous W where it lies: at each k, x times the columns of all panels */
} rft__w_form;

/* Where the panels of a strip begin in a W that is not packed. */
typedef struct rft__w_lines {
    const char *panel[RFT__MAX_PANELS];
    int columns[RFT__MAX_PANELS]; /* rows of W behind panel[p], 0..16; a kernel of columns finds 16 columns behind each */
    int64_t stride;               /* bytes from row to row of W, or from k to k */
} rft__w_lines;

/* acc[rows][16 * panels] (+)= x * w, any k, no element of W read but those described. x: rows k-contiguous and x_stride bytes
 * apart for kernels of rows, [k][rows] for those of columns. ahead: what a later call will read, fetched to L2; kernels of rows
 * fetch its rows, kernels of columns a line of each panel a k, one stride further each time. It need not be readable. */
typedef void rft__direct_fn(int64_t k, const void *x, int64_t x_stride, const rft__w_lines *w, const rft__w_lines *ahead,
                            float *acc, bool accumulate);

typedef struct rft__direct_family {
    rft__direct_fn *tile[RFT__MAX_PANELS][RFT__MAX_ROWS];
} rft__direct_family;

/* A kernel row: a family used at one tile shape. */
typedef struct rft__cpu_kernel {
    const char *name, *isa;
    rft_type x, w, acc; /* of the panels, or of x and w where they lie */
    int mr, nr, kr;
    double gamma;       /* |err| <= gamma * k * 2^-24 * sum|x||w| + eta */
    double eta_lane;    /* eta = eta_lane * k: what flushed denormals can hide */
    rft__w_form form;
    struct {
        int bits;
        rft__offset_kind offset;
    } kind;                           /* of FORM_CODES */
    bool sums;                        /* of those in f32: sums codes times x before it scales them */
    const rft__family *family;        /* of FORM_PANELS */
    const rft__tiles *tiles;          /* of kernels of tile registers, else NULL: of FORM_TILES, or instead of codes8 */
    const rft__codes_family *codes;   /* of FORM_CODES where x is f32 */
    const rft__codes8_family *codes8; /* of FORM_CODES where x is i8; of FORM_BYTES one for each rft__offset_kind */
    const rft__direct_family *direct; /* of the others */
} rft__cpu_kernel;

/* rows x k elements (row i, column k at i * row_stride + k * k_stride) into one panel of `width` >= rows rows; rows beyond
 * and k's padding become zero. Serves X (width = rows of the tile) and W (width = 16, a row is a column of the panel). */
typedef void rft__pack_fn(const void *src, int64_t row_stride, int64_t k_stride, int rows, int width, int64_t k, void *dst);
/* A packed W panel of k rows (k a multiple of the source's KR, or its padded rest) widened to an f32 panel. */
typedef void rft__decode_fn(const void *panel, int64_t k, float *dst);

/* Codes of one panel from a chunk's start over k widened to an f32 panel. */
typedef void rft__widen_fn(const rft__packing *packing, const char *w, int64_t k, float *dst);

/* Codes of one panel from a chunk's start over k as a panel of a strip (rft__strip_bytes), each chunk so:
 *     float [sums][16]: scales;  float [sums][16]: minima or zero points, where there are;  bytes [k / 4][16][4], whole blocks */
typedef void rft__unpack_fn(const rft__packing *packing, const char *w, int64_t k, char *dst);

/* Up to 256 k of a row in f32, rounded:
 *     scale = (largest |x|) / 127, x = scale * round(x * (127 / largest)), all in f32, to nearest even.
 * largest: of the whole row; NULL: of each packing.x_group k. */
typedef void rft__quantise_fn(const rft__packing *packing, const float *x, const float *largest, int64_t k, rft__x8 *dst);
/* The same of codes that are given, with a scale for each packing.x_group k. */
typedef void rft__record_fn(const rft__packing *packing, const signed char *x, const float *scale, int64_t k, rft__x8 *dst);

/* Words of a panel, summed over all k, become numbers in their place. head: of any chunk of the panel; x: the rows' records of
 * the last chunk; before: of the one in front of the first, NULL if there is none. */
typedef void rft__settle_fn(const rft__packing *packing, const char *head, int rows, const rft__x8 *x, const rft__x8 *before,
                            float *acc, int acc_stride);

/* Activations in 8 bits, RFT_I8 or RFT_E4M3; n of one scale. */
enum { RFT__X8_TYPES = 2 };
static inline int rft__x8_index(rft_type type) { return type == RFT_I8 ? 0 : 1; }

typedef void rft__narrow8_fn(const float *x, float by, int64_t n, void *q);
typedef struct rft__x8_ops {
    void (*widen)(rft_type type, const void *q, float scale, int64_t n, float *out); /* code * scale */
    uint32_t (*largest)(const float *x, int64_t n);                                  /* |x|, as bits: a NaN's are above Inf's */
    rft__narrow8_fn *multiply[RFT__X8_TYPES], *divide[RFT__X8_TYPES];                /* x * by and x / by, by rft__x8_index */
    void (*groups[RFT__X8_TYPES])(const float *x, int64_t n, float *scale, void *q); /* n groups of 32 with scales of their own */
} rft__x8_ops;

/* Of a group, whose codes are x * (top / largest) where it is above 0, else 0. largest: |x|, maybe NaN. */
static inline float rft__x8_scale(float largest, float top) {
    return !(largest < (float)INFINITY) ? (float)NAN : largest < 0x1p-110f ? 0.0f : largest / top;
}

/* What one ISA level brings besides kernels; NULL entries fall to the level below. Indexed by rft_type. */
typedef struct rft__isa_ops {
    rft__pack_fn *to_f32[RFT_BF16 + 1];  /* that type to f32, KR = 1 */
    rft__pack_fn *to_same[RFT_BF16 + 1]; /* that type kept, at the KR of its panels */
    rft__decode_fn *decode[RFT_BF16 + 1];
    rft__widen_fn *widen;
    rft__unpack_fn *unpack;
    rft__quantise_fn *quantise;
    rft__record_fn *record;
    rft__settle_fn *settle;
    const rft__x8_ops *x8;
    rft__epi_tile_fn *epilogue;
} rft__isa_ops;

typedef struct rft__isa {
    const char *name;
    const rft__cpu_kernel *kernels; /* best first */
    int n_kernels;
    rft__isa_ops ops;
} rft__isa;

/* KR of a packed panel of that type. */
static inline int rft__panel_kr(rft_type type) { return type == RFT_BF16 ? 2 : 1; }

/* Bytes of k (rounded up to KR) in a panel of that type and width; RFT_I8 is X in 8 bits. */
static inline int64_t rft__panel_bytes(rft_type type, int width, int64_t k) {
    return type == RFT_F32   ? 4 * width * k
           : type == RFT_F16 ? 2 * width * k
           : type == RFT_I8  ? (int64_t)sizeof(rft__x8) * width * rft__ceil_div(k, RFT__CHUNK)
                             : 4 * width * ((k + 1) / 2);
}

uint32_t rft__cpu_kernel_count(void);
rft_status rft__cpu_kernel_get(uint32_t i, rft_kernel_info *info);

#endif
