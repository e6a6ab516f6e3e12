/* SPDX-License-Identifier: Apache-2.0
 *
 * gemm_sm80_layout.h - where things lie in a stage of gemm_sm80.cu, as the C compiler and NVRTC both read it; a unit test proves
 * it on the host. A tile is stored as it lies in memory: rows of `chunks` 16-byte chunks, a row along k for a K-contiguous
 * operand, along M or N else. Invariant: 8 lanes that ldmatrix serves together meet 8 different groups of 4 banks.
 */
#ifndef RFT_CUDA_KERNELS_GEMM_SM80_LAYOUT_H
#define RFT_CUDA_KERNELS_GEMM_SM80_LAYOUT_H

#ifdef __CUDACC_RTC__
#define RFT_LAYOUT_FN static __device__ __forceinline__
#else
#define RFT_LAYOUT_FN static inline
#endif

/* Byte offset of a chunk; chunks: a power of 2. Rows that begin at the same bank get different permutations: 8 of them for
 * ldmatrix; for words (f32 along M or N, read 4 rows by 2 chunks at once) 4 permutations that keep pairs of chunks. Unsigned, so
 * that compilers see what 16 rows more leave alone. */
RFT_LAYOUT_FN unsigned rft__sm80_offset(unsigned row, unsigned chunk, unsigned chunks, int words) {
    const unsigned per_line = chunks < 8 ? 8 / chunks : 1, turn = row / per_line;
    const unsigned swizzle = words ? turn % 4 * 2 % chunks : turn % (chunks < 8 ? chunks : 8);
    return (row * chunks + (chunk ^ swizzle)) * 16;
}

/* What a lane reads of 16 rows of an operand and 32 bytes of k, at its first block of rows and first step: the 16 bytes that it
 * names to ldmatrix, or its first word. mn: stored along M or N. row0: a multiple of the rows that the warp reads in all. The
 * fragments of x go down rows first, those of w along k first; ldmatrix.trans changes that over. */
RFT_LAYOUT_FN unsigned rft__sm80_first(unsigned lane, unsigned row0, unsigned chunks, int mn, int words, int is_w) {
    const unsigned down = lane % 16, beside = lane / 16, across_down = lane / 16 * 8 + lane % 8, across_beside = lane / 8 % 2;
    const unsigned row = is_w != mn ? across_down : down, chunk = is_w != mn ? across_beside : beside;
    if (words) {
        return rft__sm80_offset(lane % 4, (row0 + lane / 4) / 4, chunks, 1) + lane / 4 % 4 * 4;
    }
    return mn ? rft__sm80_offset(row, row0 / 8 + chunk, chunks, 0) : rft__sm80_offset(row0 + row, chunk, chunks, 0);
}

/* From there to block `block` and step `step`: (first ^ flip) + add, with tiles on multiples of 1024 bytes. Word i of 4: 8 rows
 * beside the first where i is odd for x, or 2 and 3 for w; 4 k further for the others. */
RFT_LAYOUT_FN unsigned rft__sm80_flip(unsigned block, unsigned step, int mn, int words, int beside) {
    return words ? block * 64 + (beside ? 32u : 0u) : (mn ? block : step) * 32;
}

RFT_LAYOUT_FN unsigned rft__sm80_add(unsigned block, unsigned step, unsigned chunks, int mn, int words, int further) {
    return words ? (step * 8 + (further ? 4u : 0u)) * chunks * 16 : (mn ? step : block) * 16 * chunks * 16;
}

/* Gate and up halves alternate in the tile every 8 columns, so that a lane's sums of both have the same place in neighbouring
 * accumulators. The row of W within its half, from the tile's first, behind tile column c; and whether it is an up row. */
RFT_LAYOUT_FN int rft__sm80_half_row(int c) { return c / 16 * 8 + c % 8; }
RFT_LAYOUT_FN int rft__sm80_is_up(int c) { return c / 8 % 2; }

#undef RFT_LAYOUT_FN
#endif
