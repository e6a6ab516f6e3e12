/* SPDX-License-Identifier: Apache-2.0
 *
 * epi_tile.h - the tile that CPU kernels leave in L1 and the call that finishes it. epi_tile_body.h holds the one text;
 * each cpu/<isa>/ folder compiles it with its flags (epi_tile_<isa>.c) and puts the function in its table.
 */
#ifndef RFT_EPILOGUE_EPI_TILE_H
#define RFT_EPILOGUE_EPI_TILE_H

#include "epilogue/epi.h"

#define RFT__EPI_SEGMENT 16 /* columns of a packed panel; tiles are a whole number of panels wide */
#define RFT__EPI_MAX_SEGMENTS 4
#define RFT__EPI_MAX_ROWS 32 /* a whole number of segments */

/* rows x (16 * segments) accumulators, row i at acc + i * 16 * segments. With a GLU list even segments are gate columns and
 * odd ones the up columns of the same outputs. */
typedef struct rft__epi_tile {
    float *acc;               /* in: products, out: scratch */
    int rows, segments;
    int64_t b, m, panel;      /* batch, first row, index of the first 16-column panel */
    bool glu_interleaved;     /* which source columns a GLU panel pair holds: 2h, 2h+1 or h, n/2 + h */
    const rft__epi *epi;
    const rft_operand *operands;
    void *y;                  /* y of batch b: element (row, column) at row * ldy + column */
    int64_t ldy;
    rft_type y_type;          /* f32, bf16, f16; i8 or e4m3 where the list ends in QUANTIZE */
} rft__epi_tile;

/* Applies the list and stores the tile's part of y, once; columns beyond n are not stored, operands beyond them not read. */
typedef void rft__epi_tile_fn(const rft__epi_tile *tile);

rft__epi_tile_fn rft__epi_tile_ref, rft__epi_tile_avx2, rft__epi_tile_avx512;

#endif
