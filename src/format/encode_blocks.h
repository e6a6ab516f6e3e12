/* SPDX-License-Identifier: Apache-2.0
 *
 * encode_blocks.h - what the encoders share: prototypes from encoders.def, little-endian stores, codes and scales as stored.
 *
 * Included by encode*.c only. See encode.h.
 */
#ifndef RFT_FORMAT_ENCODE_BLOCKS_H
#define RFT_FORMAT_ENCODE_BLOCKS_H

#include "format/encode.h"

#include "format/decode/decode_scalar.h"

#define RFT_ENCODER(type, name, limit, fallback, file_type) rft__encode_blocks rft__encode_##name;
#include "format/encoders.def"
#undef RFT_ENCODER

static inline void rft__store_u16(unsigned char *p, unsigned value) {
    p[0] = (unsigned char)value;
    p[1] = (unsigned char)(value >> 8);
}

/* The value that an f16 store of x reads back as. */
static inline float rft__through_f16(float x) { return rft__f16_f32(rft__f16_from_f32(x)); }

static inline void rft__store_f16(unsigned char *p, float value) { rft__store_u16(p, rft__f16_from_f32(value)); }

#endif
