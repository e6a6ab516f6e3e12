/* SPDX-License-Identifier: Apache-2.0
 *
 * shape_amx.h - the eight tiles of a thread as the products of this folder shape them:
 *     0 1 2 3 sums, 4 5 X, 6 7 W;   0 1 4 the first half of the rows, 2 3 5 the second
 * A row of X and a column of W have as many bytes of k as the product takes at once, 64 or fewer.
 */
#ifndef RFT_CPU_AMX_SHAPE_AMX_H
#define RFT_CPU_AMX_SHAPE_AMX_H

enum { RFT__TILE_ROWS = 16, RFT__TILE_BYTES = 64 };

/* Rows of the first of two tiles; all of them where there is one. */
static inline int rft__tiles_first(int rows) { return rows > RFT__TILE_ROWS ? (rows + 1) / 2 : rows; }

/* This thread's tiles for so many rows, 1 to 32, and bytes of k, a multiple of 4. Clears them unless they are shaped so. */
void rft__tiles_shape(int rows, int k_bytes);
/* Gives them back as they were found. */
void rft__tiles_leave(void);

#endif
