/* SPDX-License-Identifier: Apache-2.0
 *
 * gemm_tile.h - where a block's tile lies and how tiles are walked, as the C compiler and NVRTC both read it: launch shapes and
 * kernels of the tiled families share it, and unit tests prove it on the host.
 * Invariant: every tile of tiles_m x tiles_n is some index below tiles_m * tiles_n, exactly once.
 */
#ifndef RFT_CUDA_KERNELS_GEMM_TILE_H
#define RFT_CUDA_KERNELS_GEMM_TILE_H

#ifdef __CUDACC_RTC__
#define RFT_TILE_FN static __device__ __forceinline__
#else
#define RFT_TILE_FN static inline
#endif

typedef struct rft__tile {
    int m, n; /* in tiles */
} rft__tile;

/* Down the rows of a group of `group` tile rows, then one column to the right: blocks that run at the same time share about
 * as many tiles of X as of W, and both stay in L2. */
RFT_TILE_FN rft__tile rft__tile_at(int index, int tiles_m, int tiles_n, int group) {
    const int in_group = group * tiles_n, first = index / in_group * group;
    const int height = tiles_m - first < group ? tiles_m - first : group;
    const int rest = index - first * tiles_n;
    const rft__tile at = {first + rest % height, rest / height};
    return at;
}

/* The row of W behind column c of the tile that begins at row n0 of W, for bn columns a tile and w of n rows. Halves of a
 * gated unit: the tile holds bn / 2 gate rows, then the bn / 2 up rows that belong to them. */
RFT_TILE_FN int rft__tile_w_row(int n0, int c, int bn, int n, int halves) {
    if (!halves) {
        return n0 + c;
    }
    return c < bn / 2 ? n0 / 2 + c : n / 2 + n0 / 2 + (c - bn / 2);
}

#undef RFT_TILE_FN
#endif
