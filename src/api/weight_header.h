/* SPDX-License-Identifier: Apache-2.0
 *
 * weight_header.h - the first 128 bytes of a packed weight; docs/formats/packed-weight.md is its specification.
 * Written and read by weight.c. Invariant: little endian, no padding; a field that a reader does not know is zero.
 */
#ifndef RFT_API_WEIGHT_HEADER_H
#define RFT_API_WEIGHT_HEADER_H

#include <assert.h>
#include <stdint.h>

#define RFT__WEIGHT_MAGIC "RFTWGT01"

typedef struct rft__weight_header {
    char magic[8];
    uint32_t version;      /* 1 */
    uint32_t header_bytes; /* 128; the packed data begins there */
    uint64_t layout;       /* identity of the packed form, given by the backend */
    int64_t n, k, batch;
    uint32_t elem; /* rft_type */
    uint32_t glu;  /* 0 none, 1 halves, 2 interleaved */
    uint64_t data_bytes;
    uint32_t scale, zero;      /* rft_type of scales and zero points that lay apart, or 0 */
    int64_t group_n, group_k;  /* of these */
    uint32_t global; /* number of all scales: 0 none, 1 multiplies, 2 divides */
    uint32_t sorted; /* 1: k lie in the order of an act-order index */
    uint64_t reserved[3];
    uint64_t checksum; /* FNV-1a of the 120 bytes before it */
} rft__weight_header;

static_assert(sizeof(rft__weight_header) == 128, "the header is 128 bytes on disk");

#endif
