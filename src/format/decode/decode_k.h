/* SPDX-License-Identifier: Apache-2.0
 *
 * decode_k.h - GGUF "K" blocks: 256 weights under one f16 scale d (and minimum dmin), with small integer scales for
 * each 16 or 32 of them.
 *
 * Called as decode_scalar.h says, after it. Layouts with offsets: docs/formats/gguf.md.
 */
#ifndef RFT_DECODE_K_H
#define RFT_DECODE_K_H

/* Six-bit scale j of 8, packed in 12 bytes: the first four whole, the others in a low nibble and two spare bits. */
RFT_FN unsigned rft__k_scale(const unsigned char *s, unsigned j) {
    return j < 4 ? s[j] & 63u : (s[j + 4] & 15u) | (unsigned)(s[j - 4] >> 6) << 4;
}

/* Its partner, the six-bit minimum. */
RFT_FN unsigned rft__k_min(const unsigned char *s, unsigned j) {
    return j < 4 ? s[j + 4] & 63u : (unsigned)(s[j + 4] >> 4) | (unsigned)(s[j] >> 6) << 4;
}

/* Two-bit code of weight i: each 32 bytes hold 128 weights in four planes. */
RFT_FN unsigned rft__k_two_bits(const unsigned char *qs, unsigned i) {
    return qs[(i >> 7) * 32 + (i & 31u)] >> 2 * (i >> 5 & 3u) & 3u;
}

RFT_FN float rft__decode_q2_k(const unsigned char *block, unsigned i) {
    const unsigned scales = block[i >> 4];
    const float scale = rft__f16_f32(rft__load_u16(block + 80)) * (float)(int)(scales & 15u);
    const float minimum = rft__f16_f32(rft__load_u16(block + 82)) * (float)(int)(scales >> 4);
    return scale * (float)(int)rft__k_two_bits(block + 16, i) - minimum;
}

/* Scale j of 16: nibbles of bytes 0..7 below, bit pairs of bytes 8..11 above. */
RFT_FN int rft__q3_k_scale(const unsigned char *s, unsigned j) {
    return (int)(rft__nibble(s[j & 7u], j >> 3) | (s[8 + (j & 3u)] >> 2 * (j >> 2) & 3u) << 4) - 32;
}

RFT_FN float rft__decode_q3_k(const unsigned char *block, unsigned i) {
    const float scale = rft__f16_f32(rft__load_u16(block + 108)) * (float)rft__q3_k_scale(block + 96, i >> 4);
    const unsigned third_bit = block[i & 31u] >> (i >> 5) & 1u; /* clear: four less */
    return scale * (float)((int)(rft__k_two_bits(block + 32, i) | third_bit << 2) - 4);
}

/* Nibble of weight i: each 32 bytes hold 64 weights, the low nibbles first. */
RFT_FN unsigned rft__k_four_bits(const unsigned char *qs, unsigned i) {
    return rft__nibble(qs[(i >> 6) * 32 + (i & 31u)], i >> 5 & 1u);
}

RFT_FN float rft__k_affine(const unsigned char *block, unsigned sub, unsigned q) {
    const float scale = rft__f16_f32(rft__load_u16(block)) * (float)(int)rft__k_scale(block + 4, sub);
    const float minimum = rft__f16_f32(rft__load_u16(block + 2)) * (float)(int)rft__k_min(block + 4, sub);
    return scale * (float)(int)q - minimum;
}

RFT_FN float rft__decode_q4_k(const unsigned char *block, unsigned i) {
    return rft__k_affine(block, i >> 5, rft__k_four_bits(block + 16, i));
}

RFT_FN float rft__decode_q5_k(const unsigned char *block, unsigned i) {
    const unsigned fifth_bit = block[16 + (i & 31u)] >> (i >> 5) & 1u;
    return rft__k_affine(block, i >> 5, rft__k_four_bits(block + 48, i) | fifth_bit << 4);
}

RFT_FN float rft__decode_q6_k(const unsigned char *block, unsigned i) {
    const unsigned half = i >> 7, plane = i >> 5 & 3u, l = i & 31u;
    const unsigned low = rft__nibble(block[half * 64 + (plane & 1u) * 32 + l], plane >> 1);
    const unsigned high = block[128 + half * 32 + l] >> 2 * plane & 3u;
    const float scale = rft__f16_f32(rft__load_u16(block + 208)) * (float)rft__load_i8(block + 192 + (i >> 4));
    return scale * (float)((int)(low | high << 4) - 32);
}

#endif
