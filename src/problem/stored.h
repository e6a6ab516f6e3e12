/* SPDX-License-Identifier: Apache-2.0
 *
 * stored.h - the numbers of a W as its owner stores it: the meaning that packing keeps and that results are judged by.
 * Called by backends that pack and by verify. Invariant: one rounding to f32 where a code meets its scale and a minimum
 * its product, as format/decode/ writes it.
 */
#ifndef RFT_PROBLEM_STORED_H
#define RFT_PROBLEM_STORED_H

#include "problem/problem.h"

/* rft_weight_src, as far as W is made of it. */
typedef struct rft__stored_w {
    const void *q, *scale, *zero;
} rft__stored_w;

/* Scale of group g of row n in batch b, and its zero point (0: there is none), where they lie apart from the codes. */
float rft__stored_scale(const rft__matrix *w, const rft__stored_w *from, int64_t b, int64_t n, int64_t g);
int rft__stored_zero(const rft__matrix *w, const rft__stored_w *from, int64_t b, int64_t n, int64_t g);
/* The block that holds k of row n of batch b; blocks follow each other along k. */
const unsigned char *rft__stored_block(const rft__matrix *w, const rft__stored_w *from, int64_t b, int64_t n, int64_t k);
/* All k of row n of batch b of a low-bit W. magnitude: of a weight with a minimum, |code * scale| + |minimum| instead. */
void rft__stored_row(const rft__matrix *w, const rft__stored_w *from, int64_t b, int64_t n, bool magnitude, float *out);

#endif
