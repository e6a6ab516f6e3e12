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

typedef struct rft__sm80_lane { /* the 16 bytes that a lane names to ldmatrix, in a block of 16 rows by 2 chunks */
    unsigned row, chunk;
} rft__sm80_lane;

/* across: matrices 1 and 2 swap places. x K-contiguous and w MN-contiguous go down first, the others across. */
RFT_LAYOUT_FN rft__sm80_lane rft__sm80_lane_at(unsigned lane, int across) {
    const rft__sm80_lane down_first = {lane % 16, lane / 16}, across_first = {lane / 16 * 8 + lane % 8, lane / 8 % 2};
    return across ? across_first : down_first;
}

/* Gate and up halves alternate in the tile every 8 columns, so that a lane's sums of both have the same place in neighbouring
 * accumulators. The row of W within its half, from the tile's first, behind tile column c; and whether it is an up row. */
RFT_LAYOUT_FN int rft__sm80_half_row(int c) { return c / 16 * 8 + c % 8; }
RFT_LAYOUT_FN int rft__sm80_is_up(int c) { return c / 8 % 2; }

#undef RFT_LAYOUT_FN
#endif
