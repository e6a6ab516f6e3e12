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
    const float *global;
    const int32_t *g_idx;
} rft__stored_w;

/* Scale of group g of row n in batch b, with the global one, and its zero point (0: there is none), where they lie apart from
 * the codes. */
float rft__stored_scale(const rft__matrix *w, const rft__stored_w *from, int64_t b, int64_t n, int64_t g);
int rft__stored_zero(const rft__matrix *w, const rft__stored_w *from, int64_t b, int64_t n, int64_t g);
/* g_idx, where w has one, names groups that there are. */
rft_status rft__stored_check_groups(const rft__matrix *w, const rft__stored_w *from, rft_error *err);
/* The k of batch b by their groups, ascending in each, which must be as large as they are without g_idx. next: one a group. */
rft_status rft__stored_order(const rft__matrix *w, const rft__stored_w *from, int64_t b, int64_t *next, int32_t *order,
                             rft_error *err);
/* The group of k. */
int64_t rft__stored_group(const rft__matrix *w, const rft__stored_w *from, int64_t b, int64_t k);
/* The block that holds k of row n of batch b; blocks follow each other along k. */
const unsigned char *rft__stored_block(const rft__matrix *w, const rft__stored_w *from, int64_t b, int64_t n, int64_t k);
/* All k of row n of batch b of a low-bit W. magnitude: of a weight with a minimum, |code * scale| + |minimum| instead. */
void rft__stored_row(const rft__matrix *w, const rft__stored_w *from, int64_t b, int64_t n, bool magnitude, float *out);

#endif
