/* SPDX-License-Identifier: Apache-2.0
 *
 * codes8_avx512.h - what products in 8 bits on other registers share with those of codes8_avx512.c: the scales of W, and how a
 * complete sum becomes a number. So they have the same bits. For the ISA folders above.
 */
#ifndef RFT_CPU_AVX512_CODES8_AVX512_H
#define RFT_CPU_AVX512_CODES8_AVX512_H

#include "cpu/cpu_kernel.h"

enum { RFT__SUM8_PANELS = 2 };

/* One sum of all rows of a tile, in int32, and what scales it. */
typedef struct rft__sum8 {
    const int32_t *words; /* [rows][16 * panels] */
    const rft__x8 *x;     /* the records of its chunk, row by row */
    int64_t i, group;     /* which of a record's sums and scales */
    const float *scale[RFT__SUM8_PANELS], *shift[RFT__SUM8_PANELS]; /* 16 columns of each panel */
} rft__sum8;

/* Rows first .. last - 1 onto acc, acc_stride floats from row to row. */
typedef void rft__scale8_fn(const rft__sum8 *s, int first, int last, float *acc, int acc_stride);
extern rft__scale8_fn *const rft__scale8_avx512[RFT__OFFSET_ZERO + 1][RFT__SUM8_PANELS];

/* The head that a chunk of a panel of 8-bit codes has in a strip (rft__unpack_fn). */
void rft__head8_avx512(const rft__packing *packing, const char *w, int64_t k, float *head);

#endif
