/* SPDX-License-Identifier: Apache-2.0
 *
 * decode_q.h - GGUF blocks of 32 weights with one f16 scale d, and in the _1 types one f16 minimum m.
 *
 * Byte j of the nibbles holds weight j (low) and weight j + 16 (high). Called as decode_scalar.h says.
 * Layouts with offsets: docs/formats/gguf.md.
 */
#ifndef RFT_DECODE_Q_H
#define RFT_DECODE_Q_H

/* Code i of 16 bytes that hold weights i and i + 16. */
RFT_FN unsigned rft__halves(const unsigned char *qs, unsigned i) { return rft__nibble(qs[i & 15u], i >> 4); }

/* The fifth bit of code i, from a little-endian word of 32 of them. */
RFT_FN unsigned rft__fifth_bit(const unsigned char *qh, unsigned i) { return (qh[i >> 3] >> (i & 7u) & 1u) << 4; }

RFT_FN float rft__decode_q4_0(const unsigned char *block, unsigned i) {
    return (float)((int)rft__halves(block + 2, i) - 8) * rft__f16_f32(rft__load_u16(block));
}

RFT_FN float rft__decode_q4_1(const unsigned char *block, unsigned i) {
    return (float)(int)rft__halves(block + 4, i) * rft__f16_f32(rft__load_u16(block)) + rft__f16_f32(rft__load_u16(block + 2));
}

RFT_FN float rft__decode_q5_0(const unsigned char *block, unsigned i) {
    const unsigned q = rft__halves(block + 6, i) | rft__fifth_bit(block + 2, i);
    return (float)((int)q - 16) * rft__f16_f32(rft__load_u16(block));
}

RFT_FN float rft__decode_q5_1(const unsigned char *block, unsigned i) {
    const unsigned q = rft__halves(block + 8, i) | rft__fifth_bit(block + 4, i);
    return (float)(int)q * rft__f16_f32(rft__load_u16(block)) + rft__f16_f32(rft__load_u16(block + 2));
}

RFT_FN float rft__decode_q8_0(const unsigned char *block, unsigned i) {
    return (float)rft__load_i8(block + 2 + i) * rft__f16_f32(rft__load_u16(block));
}

#endif
