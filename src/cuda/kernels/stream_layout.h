/* SPDX-License-Identifier: Apache-2.0
 *
 * stream_layout.h - the arithmetic of stream_sm90: shared memory of a block, and which block of a cluster sums which piece of a
 * tile. Plain C for both compilers: the host plans shared memory with it, tests/unit/test_cuda_stream.c proves it.
 *
 * A tile is RFT_BN rows of W by RFT_BM tokens. Its pieces are fragments, 8 rows by 8 tokens: row group g = row / 8, token group
 * token / 8. Each block of a cluster has a partial sum of the whole tile and the last word on some row groups, its slots.
 */
#ifndef RFT_CUDA_KERNELS_STREAM_LAYOUT_H
#define RFT_CUDA_KERNELS_STREAM_LAYOUT_H

#include "hopper_layout.h"

#define RFT_STREAM_PITCH    72 /* floats from fragment to fragment: 64, and 8 so that 4 neighbours lie in different banks */
#define RFT_STREAM_BARRIERS 256

/* Tokens of which sums meet at a time: the rest of a tile stays in registers until then, so that the ring keeps the memory. */
RFT_FN int rft__stream_slab(int bm) { return bm < 32 ? bm : 32; }

/* A stage: `merge` chunks, each the 128-byte rows of W and then those of X. */
RFT_FN int rft__stream_chunk_bytes(int bm, int bn) { return (bm + bn) * RFT_SWIZZLE_ROW; }
RFT_FN int rft__stream_partial_bytes(int bm, int bn) { return rft__stream_slab(bm) / 8 * (bn / 8) * RFT_STREAM_PITCH * 4; }
/* Of the block: ring, partial sums that it receives, barriers. */
RFT_FN int rft__stream_shared_bytes(int bm, int bn, int merge, int stages) {
    return stages * merge * rft__stream_chunk_bytes(bm, bn) + rft__stream_partial_bytes(bm, bn) + RFT_STREAM_BARRIERS;
}

/* Row groups come in `halves` runs (2: gate rows, then up rows; else 1) of which each block takes an equal share, so that gate
 * and up meet. groups is a multiple of halves * split. */
typedef struct rft__stream_share {
    int run, share; /* row groups of a run; of a block in it */
} rft__stream_share;

RFT_FN rft__stream_share rft__stream_share_of(int groups, int halves, int split) {
    const rft__stream_share s = {groups / halves, groups / halves / split};
    return s;
}
RFT_FN int rft__stream_owner(rft__stream_share s, int group) { return group % s.run / s.share; }
RFT_FN int rft__stream_slot(rft__stream_share s, int group) { return group / s.run * s.share + group % s.share; }
RFT_FN int rft__stream_group(rft__stream_share s, int owner, int slot) {
    return slot / s.share * s.run + owner * s.share + slot % s.share;
}

/* Where a block keeps what it received from the block with part `part` of k: the floats of one fragment begin here, the one of
 * row r and token t is r * 8 + t further on. slots: row groups of a block. */
RFT_FN int rft__stream_place(int part, int token_group, int slot, int token_groups, int slots) {
    return ((part * token_groups + token_group) * slots + slot) * RFT_STREAM_PITCH;
}

#endif
