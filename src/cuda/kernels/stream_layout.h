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

/* A stage: `chunks` chunks, each the 128-byte rows of W and then those of X. */
RFT_FN int rft__stream_chunk_bytes(int bm, int bn) { return (bm + bn) * RFT_SWIZZLE_ROW; }

/* A parcel: one block's sums of `slab` tokens for the slots of one block. A block keeps the parcels that it has for itself, by
 * part of k, and behind them those that go to the others. */
RFT_FN int rft__stream_parcel_bytes(int slab, int slots) { return slab / 8 * slots * RFT_STREAM_PITCH * 4; }
RFT_FN int rft__stream_parcels(int split) { return 2 * split - 1; }
RFT_FN int rft__stream_parcel(int split, int part, int owner) { return owner == part ? part : split + owner - (owner > part); }

/* Of what comes before the barriers: the sums behind the ring; or over it, where it is not used again when they come. */
RFT_FN int rft__stream_data_bytes(int ring, int partial, int over) {
    return !over ? ring + partial : ring > partial ? ring : partial;
}

/* Row groups come in `halves` runs (2: gate rows, then up rows; else 1) of which each block takes a part, so that gate and up
 * meet. groups is a multiple of halves. */
typedef struct rft__stream_share {
    int run, least, more; /* row groups of a run; of a block in it, at least; blocks that have one more */
    int most;
} rft__stream_share;

RFT_FN rft__stream_share rft__stream_share_of(int groups, int halves, int split) {
    const int run = groups / halves;
    const rft__stream_share s = {run, run / split, run % split, run / split + (run % split != 0)};
    return s;
}
/* The first row group of block `owner` in a run; that of the block after it is where it ends. */
RFT_FN int rft__stream_begin(rft__stream_share s, int owner) { return s.least * owner + (owner < s.more ? owner : s.more); }
RFT_FN int rft__stream_owner(rft__stream_share s, int group) {
    const int at = group % s.run, big = s.more * (s.least + 1);
    return at < big ? at / (s.least + 1) : s.more + (at - big) / (s.least ? s.least : 1);
}
/* Where a block has it: gate rows' slots come before up rows'. */
RFT_FN int rft__stream_slot(rft__stream_share s, int group) {
    return group / s.run * s.most + group % s.run - rft__stream_begin(s, rft__stream_owner(s, group));
}

/* Where the floats of one fragment begin in a parcel; the one of row r and token t is r * 8 + t further on. */
RFT_FN int rft__stream_place(int token_group, int slot, int slots) { return (token_group * slots + slot) * RFT_STREAM_PITCH; }

#endif
