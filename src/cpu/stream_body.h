/* SPDX-License-Identifier: Apache-2.0
 *
 * stream_body.h - the text of the memory loops, compiled by stream_<isa>.c at the width of that level. Before it, define
 *     STREAM_NAME(x)           the function's name at this level
 *     STREAM_BYTES             of a vector
 *     STREAM_BYPASS(p, v)      a store around the caches of the vector v at p
 *     STREAM_FENCE()           what makes such stores visible
 * Invariant: no access beyond the bytes given but prefetches, which never fault.
 */
#include "cpu/peak.h"
#include "cpu/tile_family.h"

enum { LINE = 64, VECTORS = RFT_STREAM_STEP / STREAM_BYTES, CHAINS = 4 };

typedef int64_t vector __attribute__((vector_size(STREAM_BYTES), may_alias));

/* One step of one stream; the chains keep the checksum from becoming the limit. */
RFT_INLINE void read_step(const unsigned char *p, bool fetch, size_t ahead, vector sum[CHAINS]) {
    if (fetch) {
        RFT_UNROLL
        for (int i = 0; i < RFT_STREAM_STEP; i += LINE) {
            __builtin_prefetch(p + ahead + i, 0, 3);
        }
    }
    RFT_UNROLL
    for (int i = 0; i < VECTORS; i++) {
        sum[i % CHAINS] ^= *(const vector *)(const void *)(p + i * STREAM_BYTES);
    }
}

RFT_INLINE uint64_t read_streams(const unsigned char *p, size_t bytes, int streams, bool fetch, size_t ahead) {
    const size_t part = bytes / (size_t)streams;
    vector sum[CHAINS] = {{0}};
    for (const unsigned char *end = p + part; p < end; p += RFT_STREAM_STEP) {
        RFT_UNROLL
        for (int s = 0; s < streams; s++) {
            read_step(p + (size_t)s * part, fetch, ahead, sum);
        }
    }
    const vector all = (sum[0] ^ sum[1]) ^ (sum[2] ^ sum[3]);
    uint64_t checksum = 0;
    for (size_t i = 0; i < STREAM_BYTES / sizeof checksum; i++) {
        checksum ^= (uint64_t)all[i];
    }
    return checksum;
}

RFT_INLINE uint64_t read_any(const unsigned char *p, size_t bytes, int streams, bool fetch, size_t ahead) {
    switch (streams) {
    case 8:
        return read_streams(p, bytes, 8, fetch, ahead);
    case 4:
        return read_streams(p, bytes, 4, fetch, ahead);
    case 2:
        return read_streams(p, bytes, 2, fetch, ahead);
    default:
        return read_streams(p, bytes, 1, fetch, ahead);
    }
}

uint64_t STREAM_NAME(rft__stream_read)(const unsigned char *p, size_t bytes, int streams, size_t ahead) {
    return ahead != 0 ? read_any(p, bytes, streams, true, ahead) : read_any(p, bytes, streams, false, 0);
}

void STREAM_NAME(rft__stream_copy)(unsigned char *dst, const unsigned char *src, size_t bytes, bool bypass) {
    for (size_t at = 0; at < bytes; at += RFT_STREAM_STEP) {
        vector v[VECTORS];
        RFT_UNROLL
        for (int i = 0; i < VECTORS; i++) {
            v[i] = *(const vector *)(const void *)(src + at + i * STREAM_BYTES);
        }
        RFT_UNROLL
        for (int i = 0; i < VECTORS; i++) {
            void *const to = dst + at + i * STREAM_BYTES;
            if (bypass) {
                STREAM_BYPASS(to, v[i]);
            } else {
                *(vector *)to = v[i];
            }
        }
    }
    STREAM_FENCE();
}
