/* SPDX-License-Identifier: Apache-2.0
 *
 * format.h - what is known of each stored format (formats.def): name, block size, exact storage, decoder to f32.
 *
 * Called by the model readers, by weight packing and by the reference. Invariant: a format with a NULL decode_blocks is
 * only named: its storage is exact, its weights cannot be read.
 */
#ifndef RFT_FORMAT_FORMAT_H
#define RFT_FORMAT_FORMAT_H

#include "rooftile.h"

#include <stdbool.h>

/* Decodes whole blocks that lie one after the other, at any address. */
typedef void rft__decode_blocks(const unsigned char *src, int64_t blocks, float *dst);

typedef struct rft__format {
    rft_type type;
    int32_t gguf; /* number in a GGUF file, or -1 */
    const char *name;
    uint32_t block_elements, block_bytes; /* along K */
    rft__decode_blocks *decode_blocks;
} rft__format;

const rft__format *rft__format_find(rft_type type);         /* NULL: unknown */
const rft__format *rft__format_find_gguf(uint32_t number);  /* NULL: unknown */
const char *rft__format_name(rft_type type);                /* "?" for an unknown type */
const rft__format *rft__format_at(uint32_t index);          /* NULL past the last row: to list them */

/* Storage of n rows of k elements. k must be a multiple of the block. */
rft_status rft__format_bytes(rft_type type, int64_t n, int64_t k, int64_t *bytes, rft_error *err);

/* Round to nearest even; NaN stays NaN, what is too large becomes infinity. */
uint16_t rft__bf16_from_f32(float value);
uint16_t rft__f16_from_f32(float value);
/* The nearest OCP E4M3 code; what is beyond 448 becomes 448, NaN stays NaN. */
uint8_t rft__e4m3_from_f32(float value);

#endif
