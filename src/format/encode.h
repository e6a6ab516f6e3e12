/* SPDX-License-Identifier: Apache-2.0
 *
 * encode.h - f32 weights as stored formats (encoders.def), the inverse of format.h's decoders.
 *
 * Called by model/quantize.c. Invariant: what an encoder writes, the decoder of the same type reads back as the nearest value
 * that the chosen scales allow; all inputs that rft__encode_check lets through are encoded to finite weights.
 */
#ifndef RFT_FORMAT_ENCODE_H
#define RFT_FORMAT_ENCODE_H

#include "format/format.h"

typedef enum rft__fit {
    RFT_FIT_NEAREST, /* scales that just hold the largest weight of a block, then round to nearest */
    RFT_FIT_SEARCH   /* scales with the least sum of squared errors */
} rft__fit;

/* Encodes whole blocks that lie one after the other. */
typedef void rft__encode_blocks(const float *src, int64_t blocks, rft__fit fit, unsigned char *dst);

typedef struct rft__encoder {
    rft_type type;
    const char *name;
    float limit;       /* the largest magnitude that is stored; 0: any finite f32 */
    rft_type fallback; /* for rows that are not whole blocks, 0: none */
    int32_t file_type; /* general.file_type of a GGUF file that is mostly this */
    rft__encode_blocks *encode_blocks;
} rft__encoder;

const rft__encoder *rft__encoder_find(rft_type type); /* NULL: it cannot be written */
const rft__encoder *rft__encoder_at(uint32_t index);  /* NULL past the last: to list them */

/* Index of the first of n elements that cannot be stored: not a number, infinite or past the limit (0: none); -1: all can. */
int64_t rft__encode_check(float limit, const float *src, int64_t n);

#endif
