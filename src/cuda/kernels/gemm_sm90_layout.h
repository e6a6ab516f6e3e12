/* SPDX-License-Identifier: Apache-2.0
 *
 * gemm_sm90_layout.h - which tile a block of gemm_sm90.cu works on, how its ring passes a tile of another warpgroup, where its
 * epilogue stages accumulators. Plain C that the C compiler and NVRTC both read; tests/unit/test_cuda_gemm_sm90.c proves it.
 *
 * A unit is what a cluster works on at a time: one tile, two that share an operand, or 2 x 2 that share both. The grid walks
 * units in one raster a batch; number[]: rows and columns of units in a batch, rows that the raster walks down, units of all
 * batches, rows of X and of W in a box of the last tile.
 *
 * A warp stages a chunk of 16 rows x 64 columns f32 (4 KiB) in the order of its accumulators and reads it back as spans of 8
 * columns of y: with a gated unit 4 spans a row (gate and up beside each other), else 8.
 */
#ifndef RFT_CUDA_KERNELS_GEMM_SM90_LAYOUT_H
#define RFT_CUDA_KERNELS_GEMM_SM90_LAYOUT_H

#include "gemm_tile.h"
#include "hopper_layout.h"

#define RFT_CHUNK_ROWS 16
#define RFT_CHUNK_COLUMNS 64
#define RFT_CHUNK_BYTES (RFT_CHUNK_ROWS * RFT_CHUNK_COLUMNS * 4)
#define RFT_Y_CHUNK_BYTES (RFT_CHUNK_BYTES / 2) /* of 16-bit y */

/* Whether TMA takes a matrix of 16-bit elements: address and strides (elements; 0: none) are multiples of 16 bytes, strides below
 * 2^40. */
RFT_FN int rft__fits_map(unsigned long long address, long long ld, long long batch_stride) {
    const unsigned long long strides = (unsigned long long)ld | (unsigned long long)batch_stride;
    return address % 16 == 0 && strides % 8 == 0 && strides < 1ull << 39;
}

/* Whether it can store y: rows too are multiples of 16 bytes, as a store writes whole pieces of so many, the last one of a row
 * too where the row ends within (seen on an H200). */
RFT_FN int rft__y_fits_map(unsigned long long address, long long columns, long long ld, long long batch_stride) {
    return columns % 8 == 0 && rft__fits_map(address, ld, batch_stride);
}

/* Byte of an element. Rows are 256 bytes; their 16-byte pieces are permuted so that neither the 8-byte stores of a half warp
 * (4 rows x 8 columns) nor the 16-byte loads of a quarter warp (rows r and r + 4, 4 spans) meet in a bank. */
RFT_FN int rft__chunk_at(int row, int column) {
    const int piece = column / 4 ^ ((row & 3) << 1 | (row >> 2 & 1));
    return row * 256 + piece * 16 + column % 4 * 4;
}

/* Row and span that lane reads at step i; spans_row / 2 steps make the chunk. Each row's spans are read in one step, so y is
 * written in whole lines. */
RFT_FN int rft__chunk_row(int lane, int i, int spans_row) {
    const int quarter = lane / 8, far = lane / 4 % 2 * 4;
    return spans_row == 4 ? quarter + far + 8 * i : quarter / 2 + far + i % 2 * 2 + i / 2 * 8;
}

RFT_FN int rft__chunk_span(int lane, int spans_row) { return spans_row == 4 ? lane % 4 : lane / 8 % 2 * 4 + lane % 4; }

typedef struct rft__unit {
    int tile_m, tile_n, batch;
} rft__unit;

/* The tile of block rank; down, across: tiles of a unit, and blocks walk across it first. */
RFT_FN rft__unit rft__unit_at(int unit, const int *number, int down, int across, int rank) {
    const int of_batch = number[0] * number[1], batch = unit / of_batch;
    const rft__tile t = rft__tile_at(unit - batch * of_batch, number[0], number[1], number[2]);
    const rft__unit u = {t.m * down + (down > 1 ? rank / across : 0), t.n * across + (across > 1 ? rank % across : 0), batch};
    return u;
}

/* The last units, of two tiles each, where they do not fill half of the clusters: then the tiles go to a cluster each, whose
 * two blocks take half of k. They come behind the other units in the order of tiles. */
RFT_FN int rft__tail_units(int units, int clusters) {
    const int rest = units % clusters;
    return 2 * rest <= clusters ? rest : 0;
}

/* Past `uses` uses of the ring. */
RFT_FN void rft__ring_skip(rft__ring *ring, int stages, int uses) {
    const int at = ring->stage + uses;
    ring->stage = at % stages;
    ring->parity ^= (unsigned)(at / stages) & 1u;
}

#endif
