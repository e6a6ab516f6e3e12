/* SPDX-License-Identifier: Apache-2.0
 *
 * peak.h - loops that do nothing but reach a roof: arithmetic in registers, and reads and copies of memory. One table of
 * each over the ISA levels, lowest first. Called by probe/measure.c, one thread each, many at a time.
 */
#ifndef RFT_CPU_PEAK_H
#define RFT_CPU_PEAK_H

#include "rooftile.h"

#include <stdbool.h>

/* Runs the loop body that many times and adds the FLOPs it did. */
typedef void rft__peak_fn(int64_t iterations, double *flops);

typedef struct rft__peak {
    const char *isa, *op;
    rft_type type; /* of the operands multiplied */
    rft__peak_fn *run;
} rft__peak;

#define RFT_STREAM_STEP 256 /* bytes of one stream at a time */

/* Reads bytes (a multiple of 8 * RFT_STREAM_STEP) at p as 1, 2, 4 or 8 streams side by side, fetching `ahead` bytes ahead
 * (0: not). Returns a checksum, so that the reads cannot be left out. */
typedef uint64_t rft__stream_read_fn(const unsigned char *p, size_t bytes, int streams, size_t ahead);
/* Copies bytes, a multiple of RFT_STREAM_STEP; bypass: with stores that go around the caches. Both aligned to 64. */
typedef void rft__stream_copy_fn(unsigned char *dst, const unsigned char *src, size_t bytes, bool bypass);

typedef struct rft__stream {
    const char *isa;
    rft__stream_read_fn *read;
    rft__stream_copy_fn *copy;
} rft__stream;

rft__peak_fn rft__peak_fma_f32_ref, rft__peak_fma_f32_avx2, rft__peak_madd_i8_avx2, rft__peak_dot_i8_avx2vnni,
    rft__peak_fma_f32_avx512, rft__peak_dot_i8_avx512, rft__peak_dot_bf16_avx512bf16, rft__peak_tile_bf16_amx,
    rft__peak_tile_i8_amx;
rft__stream_read_fn rft__stream_read_ref, rft__stream_read_avx2, rft__stream_read_avx512;
rft__stream_copy_fn rft__stream_copy_ref, rft__stream_copy_avx2, rft__stream_copy_avx512;

const rft__peak *rft__peak_row(int i);     /* NULL past the last row */
const rft__stream *rft__stream_row(int i); /* NULL past the last row */

#endif
