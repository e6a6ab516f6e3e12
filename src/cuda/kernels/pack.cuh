/* SPDX-License-Identifier: Apache-2.0
 *
 * pack.cuh - packing of W, as what one thread does between two barriers. Called by pack.cu. config.h says how W lies
 * (RFT_W_MN) and the bytes of an element (RFT_ELEM_SIZE: 2 or 4).
 *
 * Packed: K-contiguous rows of `pitch` bytes, batch after batch, zeros behind k. A thread writes granules of 16 bytes; for an
 * N-contiguous W they come out of a tile in shared memory, tile[k][n], whose odd pitch keeps 8 granules in distinct banks.
 */
#ifndef RFT_PACK_CUH
#define RFT_PACK_CUH

#ifndef RFT_ELEM_SIZE /* a test has its own */
#include "config.h"
#endif
#include "device.cuh"
#include "pack_args.h"

#if RFT_ELEM_SIZE == 2
typedef unsigned short rft__element;
#else
typedef unsigned rft__element;
#endif

enum { RFT_GRANULE = RFT_PACK_GRANULE / RFT_ELEM_SIZE, RFT_TILE_GRANULES = RFT_PACK_TILE / RFT_GRANULE };

typedef rft__element rft__pack_tile[RFT_PACK_TILE][RFT_PACK_TILE + 1];

RFT_FN long long rft__pack_parts(long long whole, long long part) { return (whole + part - 1) / part; }

RFT_FN uint4 rft__granule(const rft__element *e) {
    unsigned word[4];
    RFT_UNROLL
    for (int i = 0; i < 4; i++) {
        word[i] = RFT_ELEM_SIZE == 2 ? e[2 * i] | (unsigned)e[2 * i + 1] << 16 : e[i];
    }
    return make_uint4(word[0], word[1], word[2], word[3]);
}

/* Row `row` of all batches' rows. */
RFT_FN uint4 *rft__packed_granule(const rft__pack_args *a, long long row, long long granule) {
    return (uint4 *)((char *)a->data + row * a->pitch) + granule;
}

/* ---- a K-contiguous W: granule after granule ---- */

RFT_FN void rft__pack_row_granule(const rft__pack_args *a, long long index) {
    const long long granules = a->pitch / RFT_PACK_GRANULE, row = index / granules, k = index % granules * RFT_GRANULE;
    const rft__element *const source = (const rft__element *)a->source + row / a->n * a->batch_stride + row % a->n * a->ld + k;
    rft__element e[RFT_GRANULE];
    RFT_UNROLL
    for (int i = 0; i < RFT_GRANULE; i++) {
        e[i] = k + i < a->k ? source[i] : (rft__element)0;
    }
    *rft__packed_granule(a, row, index % granules) = rft__granule(e);
}

/* ---- an N-contiguous W: tile after tile ---- */

typedef struct rft__pack_place { /* of a tile */
    long long batch, n, k;
} rft__pack_place;

RFT_FN long long rft__pack_tiles(const rft__pack_args *a) {
    return rft__pack_parts(a->n, RFT_PACK_TILE) * rft__pack_parts(a->k, RFT_PACK_TILE) * a->batch;
}

RFT_FN rft__pack_place rft__pack_place_of(const rft__pack_args *a, long long index) {
    const long long across = rft__pack_parts(a->n, RFT_PACK_TILE), down = rft__pack_parts(a->k, RFT_PACK_TILE);
    const rft__pack_place p = {index / (across * down), index % across * RFT_PACK_TILE, index / across % down * RFT_PACK_TILE};
    return p;
}

RFT_FN void rft__pack_tile_load(const rft__pack_args *a, rft__pack_place p, rft__pack_tile tile, int thread) {
    const rft__element *const source = (const rft__element *)a->source + p.batch * a->batch_stride + p.k * a->ld + p.n;
    for (int i = thread; i < RFT_PACK_TILE * RFT_PACK_TILE; i += RFT_PACK_THREADS) {
        const int k = i / RFT_PACK_TILE, n = i % RFT_PACK_TILE;
        tile[k][n] = p.k + k < a->k && p.n + n < a->n ? source[k * a->ld + n] : (rft__element)0;
    }
}

RFT_FN void rft__pack_tile_store(const rft__pack_args *a, rft__pack_place p, rft__pack_tile tile, int thread) {
    for (int i = thread; i < RFT_PACK_TILE * RFT_TILE_GRANULES; i += RFT_PACK_THREADS) {
        const int n = i / RFT_TILE_GRANULES, first = i % RFT_TILE_GRANULES * RFT_GRANULE;
        if (p.n + n >= a->n || p.k + first >= a->k) {
            continue;
        }
        rft__element e[RFT_GRANULE];
        RFT_UNROLL
        for (int j = 0; j < RFT_GRANULE; j++) {
            e[j] = tile[first + j][n];
        }
        *rft__packed_granule(a, p.batch * a->n + p.n + n, (p.k + first) / RFT_GRANULE) = rft__granule(e);
    }
}

#endif
