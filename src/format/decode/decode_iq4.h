/* SPDX-License-Identifier: Apache-2.0
 *
 * decode_iq4.h - GGUF IQ4_NL (32 weights) and IQ4_XS (256): four-bit codes for 16 unevenly spaced values.
 *
 * Called as decode_scalar.h says, after it and decode_q.h. Layouts with offsets: docs/formats/gguf.md.
 */
#ifndef RFT_DECODE_IQ4_H
#define RFT_DECODE_IQ4_H

/* -127 -104 -83 -65 -49 -35 -22 -10 1 13 25 38 53 69 89 113, as bytes v + 128 of four words, first value lowest. */
RFT_FN float rft__iq4_value(unsigned code) {
    const unsigned word = code < 8 ? (code < 4 ? 0x3f2d1801u : 0x766a5d4fu) : (code < 12 ? 0xa6998d81u : 0xf1d9c5b5u);
    return (float)((int)(word >> 8 * (code & 3u) & 255u) - 128);
}

RFT_FN float rft__decode_iq4_nl(const unsigned char *block, unsigned i) {
    return rft__f16_f32(rft__load_u16(block)) * rft__iq4_value(rft__halves(block + 2, i));
}

RFT_FN float rft__decode_iq4_xs(const unsigned char *block, unsigned i) {
    const unsigned sub = i >> 5;
    const unsigned scale_low = rft__nibble(block[4 + (sub >> 1)], sub & 1u);
    const unsigned scale_high = rft__load_u16(block + 2) >> 2 * sub & 3u;
    const float scale = rft__f16_f32(rft__load_u16(block)) * (float)((int)(scale_low | scale_high << 4) - 32);
    return scale * rft__iq4_value(rft__halves(block + 8 + 16 * sub, i & 31u));
}

#endif
